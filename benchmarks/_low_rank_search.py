"""Random search in several sittings: fits in processes of their own, each kept in a file as soon as it is done."""

import argparse
import json
import multiprocessing
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from _low_rank_data import parts_of
from _low_rank_models import MODELS
from ranksvm import RankingData, metrics

MEASURES = ("map", "ndcg@1", "ndcg@3", "ndcg@5")
# Evaluated twice: as said on the page, and as LETOR's own tool does it.
CONVENTIONS = ("default", "letor")


class Task(NamedTuple):
    """One fit: what it is fitted to, with which parameters, and by which metric it stops early."""

    data: str
    fold: int
    model: str
    params: tuple[tuple[str, Any], ...]
    metric: str

    @classmethod
    def of(cls, data: str, fold: int, model: str, params: dict[str, Any], metric: str) -> "Task":
        """A task from parameters as a dict."""
        return cls(data, fold, model, tuple(sorted(params.items())), metric)

    @property
    def key(self) -> str:
        """The name it is kept under."""
        return json.dumps([self.data, self.fold, self.model, dict(self.params), self.metric], sort_keys=True)


class Result(NamedTuple):
    """What a fit gave: seconds, notes, means on the validation part, values of every test query by convention."""

    seconds: float
    notes: dict[str, Any]
    vali: dict[str, float]
    test: dict[str, dict[str, list[float]]]

    def mean(self, measure: str, convention: str = "default") -> float:
        """Mean over the test queries."""
        return float(np.mean(self.test[convention][measure]))


# -- one fit -----------------------------------------------------------------------------------------------------------

_parts = lru_cache(maxsize=2)(parts_of)


def evaluated(data: RankingData, scores: np.ndarray, convention: str = "default") -> metrics.Evaluation:
    """The measures of scores."""
    return metrics.evaluate(data.y, scores, data.qid, MEASURES, convention=convention)


def run(task: Task) -> Result:
    """Fit a task and evaluate what it gave."""
    parts = _parts(task.data, task.fold)
    started = time.perf_counter()
    with threadpool_limits(1):
        fitted = MODELS[task.model].fit(parts, dict(task.params), task.metric)
    taken = time.perf_counter() - started
    vali, scores = evaluated(parts.vali, fitted.predict(parts.vali.X)), (fitted.final or fitted.predict)(parts.test.X)
    test = {}
    for convention in CONVENTIONS:
        values = evaluated(parts.test, scores, convention).per_query
        test[convention] = {name: np.round(each, 7).tolist() for name, each in values.items()}
    return Result(taken, fitted.notes, {name: float(vali[name]) for name in MEASURES}, test)


# -- many --------------------------------------------------------------------------------------------------------------


class Cache:
    """Results by task, and the file that each is added to: a line of JSON, so that a stopped run loses nothing."""

    def __init__(self, path: Path | None):
        self.path = path
        self.results: dict[str, Result] = {}
        if path is not None and path.exists():
            text = path.read_text(encoding="utf-8")
            # the last line of a run that was ended may lack its end
            whole = text[: text.rfind("\n") + 1]
            if whole != text:
                path.write_text(whole, encoding="utf-8")
            for line in whole.splitlines():
                key, *values = json.loads(line)
                self.results[key] = Result(*values)

    def __getitem__(self, task: Task) -> Result:
        return self.results[task.key]

    def __contains__(self, task: Task) -> bool:
        return task.key in self.results

    def add(self, task: Task, result: Result) -> None:
        """Keep a result."""
        self.results[task.key] = result
        if self.path is not None:
            with open(self.path, "a", encoding="utf-8") as file:
                file.write(json.dumps([task.key, *result]) + "\n")


def run_all(tasks: Iterable[Task], cache: Cache, n_processes: int, limit: float) -> int:
    """Run the tasks that the cache lacks, while there is time.

    Parameters
    ----------
    tasks : iterable of Task
        What to run, in this order.
    cache : Cache
        Where results go.
    n_processes : int
        Number of processes; 0 runs in this one.
    limit : float
        Seconds after which no further fit begins.

    Returns
    -------
    int
        Number of tasks that are still to run.
    """
    missing = list({task.key: task for task in tasks if task not in cache}.values())
    deadline = time.monotonic() + limit
    if n_processes == 0:
        for number, task in enumerate(missing):
            if time.monotonic() > deadline:
                return len(missing) - number
            _keep(cache, task, run(task), len(missing) - number - 1)
        return 0
    # not forked: libraries of other tools hold threads
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(n_processes, mp_context=context) as pool:
        # one process alone first: importing an editable install may build it
        pool.submit(len, "ready").result()
        return _feed(pool.submit, missing, cache, n_processes, deadline)


def _feed(submit: Callable[..., Future], missing: list[Task], cache: Cache, n_processes: int, deadline: float) -> int:
    running: dict[Future, Task] = {}
    left = len(missing)
    waiting = iter(missing)
    while True:
        while len(running) < 2 * n_processes and time.monotonic() < deadline:
            task = next(waiting, None)
            if task is None:
                break
            running[submit(run, task)] = task
        if not running:
            return left
        for done in wait(running, return_when=FIRST_COMPLETED).done:
            left -= 1
            _keep(cache, running.pop(done), done.result(), left)


def _keep(cache: Cache, task: Task, result: Result, left: int) -> None:
    cache.add(task, result)
    words = [task.data, task.fold, task.model, dict(task.params), f"{result.seconds:.2f} s", f"{left} left"]
    print(*words, file=sys.stderr, flush=True)


# -- choice ------------------------------------------------------------------------------------------------------------

# Budget of each model in each fold.
CANDIDATES = 30


def search_options(n_candidates: int = CANDIDATES) -> list[tuple[str, dict[str, Any]]]:
    """What every page that searches asks for on the command line."""
    return [
        ("--cache", {"type": Path, "help": "file of fits done by this version, read and added to"}),
        ("--seconds", {"type": float, "default": np.inf, "help": "begin no fit after so many; the next run goes on"}),
        ("--candidates", {"type": int, "default": n_candidates, "help": "budget of each model in each fold"}),
        ("--metric", {"choices": MEASURES, "default": "map", "help": "what chooses and stops"}),
        ("--processes", {"type": int, "default": 2, "help": "fits at a time; 0: one, in this process"}),
    ]


def choices_of(text: str, known: Iterable[str]) -> list[str]:
    """Names separated by commas; ends the program where one is not known."""
    names = text.split(",")
    if wrong := [name for name in names if name not in known]:
        sys.exit(f"There is no {wrong[0]!r}: there are {', '.join(known)}.")
    return names


def complete(tasks: Iterable[Task], cache: Cache, options: argparse.Namespace) -> None:
    """Run what the cache lacks; ends the program where the time that the options give does not suffice."""
    left = run_all(tasks, cache, options.processes, options.seconds)
    if left:
        sys.exit(f"{left} fits are left: run the same command again.")


def search_tasks(data: str, folds: Iterable[int], models: Iterable[str], n: int, metric: str) -> list[Task]:
    """The candidates of each fold and model, drawn anew for each fold."""
    return [
        Task.of(data, fold, model, params, metric)
        for fold in folds
        for model in models
        for params in MODELS[model].candidates(n, seed=fold)
    ]


def chosen(cache: Cache, data: str, fold: int, model: str, n: int, metric: str) -> Task:
    """The candidate that is best by the metric on the validation part."""
    tasks = search_tasks(data, [fold], [model], n, metric)
    return max(tasks, key=lambda task: cache[task].vali[metric])
