"""Random search that can be interrupted: fits run in separate processes, and each result is stored in a file."""

import json
import multiprocessing
import time
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from papers.data_sets import Parts
from papers.xu_2019.models import MODELS
from ranksvm import metrics
from ranksvm.datasets.ranking_data import RankingData
from ranksvm.exceptions import RankSVMError

__all__ = ["CONVENTIONS", "MEASURES", "Cache", "Result", "Search", "Task", "evaluated"]

MEASURES = ("map", "ndcg@1", "ndcg@3", "ndcg@5")
# Fits are evaluated twice: with the standard discount, and as LETOR's own tool does it.
CONVENTIONS = ("default", "letor")
# A function that returns the parts of a fold of a data set, given by name; it is sent to other processes.
PartsOf = Callable[[str, int], Parts]


class Task(NamedTuple):
    """One fit: data, fold, model, parameters, and the metric for early stopping."""

    data: str
    fold: int
    model: str
    params: tuple[tuple[str, Any], ...]
    metric: str

    @classmethod
    def of(cls, data: str, fold: int, model: str, params: dict[str, Any], metric: str) -> "Task":
        """Make a task from parameters given as a dict."""
        return cls(data, fold, model, tuple(sorted(params.items())), metric)

    @property
    def key(self) -> str:
        """The key of the task in the cache."""
        return json.dumps([self.data, self.fold, self.model, dict(self.params), self.metric], sort_keys=True)


class Result(NamedTuple):
    """The result of a fit: seconds, notes, means on the validation part, values of every test query by convention."""

    seconds: float
    notes: dict[str, Any]
    vali: dict[str, float]
    test: dict[str, dict[str, list[float]]]

    def mean(self, measure: str, convention: str = "default") -> float:
        """Mean over the test queries."""
        return float(np.mean(self.test[convention][measure]))


# -- one fit -----------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=2)
def _parts(parts_of: PartsOf, data: str, fold: int) -> Parts:
    return parts_of(data, fold)


def evaluated(data: RankingData, scores: np.ndarray, convention: str = "default") -> metrics.Evaluation:
    """Evaluate scores with the measures."""
    return metrics.evaluate(data.y, scores, data.qid, MEASURES, convention=convention)


def _run(parts_of: PartsOf, task: Task) -> Result:
    """Fit the model of a task, and evaluate it."""
    parts = _parts(parts_of, task.data, task.fold)
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
    """Results by task. Each is also appended to a file as a line of JSON, so that a stopped run loses nothing."""

    def __init__(self, path: Path | None):
        self.path = path
        self.results: dict[str, Result] = {}
        if path is not None and path.exists():
            text = path.read_text(encoding="utf-8")
            # the last line may be incomplete if a run was killed
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
        """Store a result."""
        self.results[task.key] = result
        if self.path is not None:
            with open(self.path, "a", encoding="utf-8") as file:
                file.write(json.dumps([task.key, *result]) + "\n")


class Search:
    """A random search: candidates of each model in each fold, and the candidates that validation data choose.

    Parameters
    ----------
    parts_of : callable
        Returns the parts of a fold of a data set, given by name. It must be possible to pickle and hash it.
    n_candidates : int
        Number of candidates of each model in each fold.
    metric : str
        Metric for the choice and for early stopping.
    n_processes : int
        Number of fits at the same time; 0: one fit at a time, in this process.
    limit : float
        Seconds after which no further fit begins.
    cache : Path, optional
        File of finished fits, which is read and extended.
    say : callable
        Is called with a text after each fit.
    """

    def __init__(
        self,
        parts_of: PartsOf,
        *,
        n_candidates: int,
        metric: str = "map",
        n_processes: int = 0,
        limit: float = np.inf,
        cache: Path | None = None,
        say: Callable[[str], None] = lambda text: None,
    ):
        self.parts_of, self.n_candidates, self.metric = parts_of, n_candidates, metric
        self.n_processes, self.say, self.cache = n_processes, say, Cache(cache)
        self._deadline = time.monotonic() + limit

    def tasks(self, data: str, folds: Iterable[int], models: Iterable[str]) -> list[Task]:
        """The candidates of each fold and model; each fold has different draws."""
        return [
            Task.of(data, fold, model, params, self.metric)
            for fold in folds
            for model in models
            for params in MODELS[model].candidates(self.n_candidates, seed=fold)
        ]

    def chosen(self, data: str, fold: int, model: str) -> Task:
        """The candidate with the best metric on the validation part."""
        return max(self.tasks(data, [fold], [model]), key=lambda task: self.cache[task].vali[self.metric])

    def complete(self, tasks: Iterable[Task]) -> None:
        """Run the tasks that are not in the cache.

        Raises
        ------
        RankSVMError
            When fits are left because the time is over.
        """
        missing = list({task.key: task for task in tasks if task not in self.cache}.values())
        left = self._run_all(missing)
        if left:
            raise RankSVMError(f"{left} fits are left: run the same command again.")

    def _run_all(self, missing: list[Task]) -> int:
        if self.n_processes == 0:
            for number, task in enumerate(missing):
                if time.monotonic() > self._deadline:
                    return len(missing) - number
                self._keep(task, _run(self.parts_of, task), len(missing) - number - 1)
            return 0
        if not missing or time.monotonic() > self._deadline:
            return len(missing)
        # spawned and not forked, because libraries of other tools have threads
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(self.n_processes, mp_context=context) as pool:
            # start one process first, because the import of an editable install may build it
            pool.submit(len, "ready").result()
            return self._feed(pool.submit, missing)

    def _feed(self, submit: Callable[..., Future], missing: list[Task]) -> int:
        running: dict[Future, Task] = {}
        left = len(missing)
        waiting = iter(missing)
        while True:
            while len(running) < 2 * self.n_processes and time.monotonic() < self._deadline:
                task = next(waiting, None)
                if task is None:
                    break
                running[submit(_run, self.parts_of, task)] = task
            if not running:
                return left
            for done in wait(running, return_when=FIRST_COMPLETED).done:
                left -= 1
                self._keep(running.pop(done), done.result(), left)

    def _keep(self, task: Task, result: Result, left: int) -> None:
        self.cache.add(task, result)
        self.say(f"{task.data} fold {task.fold}, {task.model}: {result.seconds:.2f} s, {left} fits left")
