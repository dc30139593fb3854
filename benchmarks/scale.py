"""Fits on a Dask cluster: cost of a round, gain from workers, transferred bytes, and the effect of killing a worker.

python benchmarks/scale.py --cache build/scale.jsonl -o benchmarks/results/scale.md

A cluster consists of processes on this machine with one thread each. The last part is not a measurement, but a cost
model with stated assumptions for larger clusters. With --cache, each result is stored, so that runs may be short.
"""

import itertools
import logging
import os
import pickle
import resource
import signal
import threading
import time
import zlib
from collections.abc import Callable
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

from _common import arguments, least_seconds, page, publish, table, verdict
from _pieces import Found, Pieces, Section
from ranksvm import make_ranking
from ranksvm.dask import DaskRankSVM
from ranksvm.dask.backend import DaskBackend
from ranksvm.terms.parts import answers
from ranksvm.terms.parts.tree_sum import tree_sum

FEATURES, DOCS = 136, 120
C = 1e-3
# goals: seconds of a round, rounds of a fit, and the speed of two workers relative to one
MAX_ROUND, MAX_ROUNDS, MIN_GAIN = 0.030, 12, 1.8
KILLED_QUERIES = 4000
# Assumptions of the cost model in addition to the measurements: a network of 10 Gbit/s; for a file that is read in
# passes, a disk of 1 GB/s (`beyond_memory.py` measures the disk of this machine), and the number of readings.
NETWORK, DISK, READINGS = 1.25e9, 1e9, 4
STEPS = (1, 2, 10, 100, 1000)
# Number of trees for the other libraries, which take some seconds, and the seconds after which a fit is given up.
TREES, LIMIT = 20, 60


@contextmanager
def cluster(n_workers, smoke):
    """Start ``n_workers`` processes with a thread each (in a smoke run, threads); this process has the scheduler."""
    settings = {"distributed.scheduler.allowed-failures": 10}
    options = {"processes": not smoke, "threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 50}
    with (
        dask.config.set(settings),
        LocalCluster(n_workers=n_workers, **options) as started,
        Client(started) as client,
    ):
        yield client


def made(n_queries, n_parts, seed=0):
    """Dask arrays X, y and qid, whose parts the workers generate; each part has whole queries."""
    share = n_queries // n_parts
    blocks = [dask.delayed(part, pure=True)(seed + number, share) for number in range(n_parts)]
    n = share * DOCS
    X = da.concatenate([da.from_delayed(block[0], (n, FEATURES), np.float32) for block in blocks])
    y = da.concatenate([da.from_delayed(block[1], (n,), float) for block in blocks])
    qid = da.concatenate([da.from_delayed(block[2] + number * share, (n,), int) for number, block in enumerate(blocks)])
    return X, y, qid


def part(seed, n_queries):
    """Generate one part of the data."""
    data = make_ranking(n_queries, DOCS, FEATURES, random_state=seed)
    return data.X.astype(np.float32), data.y.astype(float), np.repeat(np.arange(n_queries), DOCS)


class Watched:
    """Records the rounds of a fit: their times, and the bytes of requests and answers."""

    def __enter__(self):
        self.times, self.bytes = [], 0
        plain, self.plain = DaskBackend._sum, DaskBackend._sum

        def watched(backend, jobs):
            start = time.perf_counter()
            found = plain(backend, jobs)
            self.times.append(time.perf_counter() - start)
            self.bytes += len(backend.parts) * (len(jobs) + len(pickle.dumps(found)))
            return found

        DaskBackend._sum = watched
        return self

    def __exit__(self, *_):
        DaskBackend._sum = self.plain


def overhead(smoke: bool) -> dict[str, Any]:
    """Time rounds over parts of a few rows, which show the overhead of Dask."""
    with cluster(2, smoke) as client:
        X, y, qid = client.persist(made(40, 4))
        DaskRankSVM(C=C, n_partitions=4).fit(X, y, qid=qid)  # imports
        with Watched() as watched:
            for _ in range(1 if smoke else 10):
                DaskRankSVM(C=C, n_partitions=4).fit(X, y, qid=qid)
    times = np.array(watched.times)
    return {"n": len(times), "median": float(np.median(times)), "high": float(np.quantile(times, 0.9))}


def overhead_in_words(found: list[Found]) -> list[str]:
    """The table of a round."""
    (value,) = (each.value for each in found)
    shown = f"{1e3 * value['median']:.1f} / {1e3 * value['high']:.1f}"
    goal = verdict(value["median"], MAX_ROUND)
    header = ["round, 2 workers x 2 parts", "ms, median / 90 %", "goal, seconds of the median"]
    return ["## A round", table(header, [[f"{value['n']} rounds", shown, goal]])]


def peak():
    """Largest memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def workers(smoke: bool, n_queries: int, repeats: int, n_workers: int) -> dict[str, Any]:
    """Time, rounds, bytes and memory of fits to four parts with ``n_workers`` workers."""
    with cluster(n_workers, smoke) as client:
        X, y, qid = client.persist(made(n_queries, 4))
        fit = DaskRankSVM(C=C, n_partitions=4, n_jobs=1)
        fit.fit(X[: 8 * DOCS], y[: 8 * DOCS], qid=qid[: 8 * DOCS])  # imports
        times, rounds = [], []
        for _ in range(1 if smoke else repeats):
            with Watched() as watched:
                start = time.perf_counter()
                fit.fit(X, y, qid=qid)
                times.append(time.perf_counter() - start)
            rounds.append(sum(watched.times))
        memory = max(client.run(peak).values())
    return {
        "workers": n_workers, "rows": n_queries // 4 * 4 * DOCS, "fit": min(times), "rounds": min(rounds),
        "n_rounds": fit.n_rounds_, "bytes": watched.bytes, "memory": memory, "client": peak(),
        "bits": zlib.crc32(fit.coef_.tobytes()),
    }  # fmt: skip


def workers_in_words(found: list[Found]) -> list[str]:
    """The table of workers."""
    values = [each.value for each in found]
    rows = [
        [
            value["workers"], f"{value['fit']:.2f}", f"{value['rounds']:.2f}",
            f"{value['n_rounds']} ({verdict(value['n_rounds'], MAX_ROUNDS)})", f"{value['bytes'] / 1e6:.2f}",
            f"{value['memory']:.0f}", f"{value['client']:.0f}",
        ]
        for value in values
    ]  # fmt: skip
    header = ["workers", "fit, s (least)", "of it rounds, s (least)", f"rounds (goal: <= {MAX_ROUNDS})"]
    header += ["MB of sums", "MB, largest worker", "MB, client"]
    n = values[0]["rows"]
    text = f"{n:,} x {FEATURES} float32 ({4e-9 * n * FEATURES:.2f} GB), made by the workers."
    if len(values) == 2:
        gain = values[0]["rounds"] / values[1]["rounds"]
        met = "met" if gain >= MIN_GAIN else "**MISSED**"
        same = "the same bits" if values[0]["bits"] == values[1]["bits"] else "OTHER BITS"
        text += f" Rounds with two workers: {gain:.2f} times as fast (goal: >= {MIN_GAIN}, {met}); {same}."
    return ["## Workers", text, table(header, rows)]


def within_limit(fit: Callable[[], Any]) -> Any:
    """Return or raise what a fit does; raise TimeoutError if it takes too long (its thread is then left running)."""
    found: dict[str, Any] = {}

    def run():
        try:
            found["result"] = fit()
        except BaseException as error:
            found["error"] = error

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(LIMIT)
    if thread.is_alive():
        raise TimeoutError(f"no answer within {LIMIT} s")
    if "error" in found:
        raise found["error"]
    return found["result"]


def kill(smoke: bool, n_queries: int, name: str) -> dict[str, Any]:
    """Run a fit of a library, and another fit during which one of the workers is killed."""
    with cluster(2, smoke) as client:
        X, y, qid = client.persist(made(n_queries, 4))
        fit = LIBRARIES[name](client)
        fit(X, y, qid)
        start = time.perf_counter()
        expected = fit(X, y, qid)
        undisturbed = time.perf_counter() - start
        victim = next(iter(client.run(os.getpid).values()))
        timer = threading.Timer(0.5 * undisturbed, os.kill, (victim, signal.SIGKILL))
        if not smoke:  # in a smoke run, this process would be killed
            timer.start()
        start, outcome = time.perf_counter(), "fitted"
        try:
            with_kill = within_limit(lambda: fit(X, y, qid))
            if with_kill is not None:
                outcome += ", the same bits" if np.array_equal(with_kill, expected) else ", OTHER BITS"
        except TimeoutError as error:
            outcome = f"hangs: {error}"
        except Exception as error:
            outcome = f"{type(error).__name__}: {str(error).splitlines()[0][:60]}"
        timer.cancel()
        taken = time.perf_counter() - start
    return {"name": name, "undisturbed": undisturbed, "taken": taken, "outcome": outcome.replace("|", "/")}


def kills_in_words(found: list[Found]) -> list[str]:
    """The table of kills."""
    rows = [
        [value["name"], f"{value['undisturbed']:.1f}", f"{value['taken']:.1f}", value["outcome"]]
        for value in (each.value for each in found)
    ]
    header = ["library", "undisturbed, s", "with a kill, s", "outcome"]
    text = f"The same data and the same kill for every library; a fit that has not ended after {LIMIT} s is given up."
    return ["## A worker killed half-way", text, table(header, rows)]


def ours(client):
    def fit(X, y, qid):
        ranker = DaskRankSVM(C=C, n_partitions=4, tol=1e-6)
        ranker.client = client
        return ranker.fit(X, y, qid=qid).coef_

    return fit


def xgboost(client):
    from xgboost.dask import DaskXGBRanker

    def fit(X, y, qid):
        # every part has whole queries, so XGBoost need not sort them
        ranker = DaskXGBRanker(n_estimators=TREES, tree_method="hist", allow_group_split=True)
        ranker.client = client
        ranker.fit(X, y.astype(int), qid=qid)

    return fit


def lightgbm(client):
    from lightgbm import DaskLGBMRanker

    def fit(X, y, qid):
        group = da.from_array(np.full(len(qid) // DOCS, DOCS), chunks=len(qid) // DOCS // 4)
        DaskLGBMRanker(n_estimators=TREES, client=client, verbose=-1).fit(X, y.astype(int), group=group)

    return fit


LIBRARIES = {"ranksvm": ours, "XGBoost": xgboost, "LightGBM": lightgbm}


def reduction(n_workers: int) -> dict[str, Any]:
    """Time the addition of the results of ``n_workers`` workers; the results are generated here, not sent."""
    gradient = np.random.default_rng(0).normal(size=FEATURES)
    found = [[[answers.Evaluation(answers.LossSums(1.0), gradient)]] for _ in range(n_workers)]
    return {"workers": n_workers, "seconds": least_seconds(lambda: tree_sum(found, answers.add), 5, 1.0)}


def reductions_in_words(found: list[Found]) -> list[str]:
    """The table of sums."""
    values = [each.value for each in found]
    rows = [[f"{value['workers']:,}", f"{1e3 * value['seconds']:.2f}"] for value in values]
    header = ["workers, a part each", f"adding up {FEATURES} + 3 numbers, ms"]
    return ["## Sums of many workers, simulated", table(header, rows)]


def tasks(smoke: bool, n_parts: int) -> dict[str, Any]:
    """Time a round over many parts of a few rows each with two workers, which shows the cost of a task."""
    with cluster(2, smoke) as client:
        X, y, qid = client.persist(made(4 * n_parts, n_parts))
        DaskRankSVM(C=C, n_partitions=n_parts).fit(X, y, qid=qid)
        with Watched() as watched:
            DaskRankSVM(C=C, n_partitions=n_parts).fit(X, y, qid=qid)
    return {"parts": n_parts, "seconds": float(np.median(watched.times))}


def tasks_in_words(found: list[Found]) -> list[str]:
    """The table of parts."""
    rows = [[each.value["parts"], f"{1e3 * each.value['seconds']:.1f}"] for each in found]
    return [table(["parts, 2 workers", "round, ms (median)"], rows)]


def seconds_of(n_rows: float, n_workers: int, speed: float, base: float, task: float) -> float:
    """The cost model: seconds of the rounds of a fit."""
    # one process needs no rounds of Dask
    dask_cost = 0.0 if n_workers == 1 else base + n_workers * (task + 8 * (FEATURES + 3) / NETWORK)
    return MAX_ROUNDS * (n_rows * FEATURES / speed / n_workers + dask_cost)


def model(speed: float, few: dict[str, Any], many: dict[str, Any]) -> list[str]:
    """The size of data from which each number of workers pays, according to the measured costs."""
    task = max(0.0, (many["seconds"] - few["seconds"]) / (many["parts"] - few["parts"]))
    base = max(0.0, few["seconds"] - few["parts"] * task)
    rows = []
    for n_rows in (1e6, 1e7, 1e8, 1e9):
        size = 4.0 * n_rows * FEATURES
        times = {n: seconds_of(n_rows, n, speed, base, task) for n in STEPS}
        in_passes = READINGS * max(size / DISK, n_rows * FEATURES / speed)
        shown = [f"{value:,.1f}" for value in (in_passes, *times.values())]
        rows.append([f"{n_rows:.0e}", f"{size / 1e9:,.1f}", *shown, f"{min(times, key=lambda n: times[n]):,}"])
    header = ["rows", "GB of float32", "a file in passes", *(f"{n:,} in memory" for n in STEPS), "least with"]
    header = [name.replace("1 in memory", "1 worker in memory") for name in header[:4]] + header[4:]
    pays = []
    for fewer, more in itertools.pairwise(STEPS):
        cost = seconds_of(0.0, more, speed, base, task) - seconds_of(0.0, fewer, speed, base, task)
        least = cost / (MAX_ROUNDS * FEATURES / speed * (1.0 / fewer - 1.0 / more))
        pays.append([f"{fewer:,} to {more:,} workers", f"{least:,.0f}", f"{4e-9 * least * FEATURES:,.2f}"])
    text = (
        f"Seconds of {MAX_ROUNDS} rounds. Assumed: a worker has one thread, which evaluates {speed / 1e9:.2f} billion "
        f"values a second, rows in its memory (measured above); a round costs {1e3 * base:.1f} ms and {1e3 * task:.2f} "
        f"ms for each worker's task (measured above, and linear in the tasks); answers of {8 * (FEATURES + 3):,} bytes "
        f"arrive one after another at {NETWORK / 1e9:.2f} GB/s; reading the data and the sample are not counted. A "
        f"file in passes takes {READINGS} readings, by one thread at that speed or from a disk of {DISK / 1e9:g} GB/s, "
        "whichever is slower, and needs no memory for the rows."
    )
    steps = table(["step", "pays from so many rows", "GB of float32"], pays)
    return ["## Beyond this machine: a cost model", text, table(header, rows), steps]


def modeled(found: list[Found]) -> list[str]:
    """The part of the page about the cost model, from the pieces that it needs."""
    few, many, one = (each.value for each in found)
    return model(one["rows"] * FEATURES / (one["rounds"] / one["n_rounds"]), few, many)


def sections(smoke: bool, n_queries: int, repeats: int) -> list[Section]:
    """All parts of the page that are measured."""
    n_parts = (4, 8) if smoke else (4, 100)
    libraries = ("ranksvm",) if smoke else tuple(LIBRARIES)
    n_killed = 40 if smoke else KILLED_QUERIES
    return [
        Section("round", {"2": partial(overhead, smoke)}, overhead_in_words),
        Section("tasks", {f"{n}": partial(tasks, smoke, n) for n in n_parts}, tasks_in_words),
        Section("workers", {f"{n}": partial(workers, smoke, n_queries, repeats, n) for n in (1, 2)}, workers_in_words),
        Section("kill", {name: partial(kill, smoke, n_killed, name) for name in libraries}, kills_in_words),
        Section(
            "sums", {f"{n}": partial(reduction, n) for n in ((10,) if smoke else (10, 100, 1000))}, reductions_in_words
        ),
    ]


def main(argv=None):
    """Run from the command line."""
    options = arguments(
        __doc__,
        argv,
        ("--queries", {"type": int, "default": 8000, "help": "queries of 120 documents in the comparison of workers"}),
        ("--repeats", {"type": int, "default": 3, "help": "fits of each cluster"}),
        ("--only", {"default": "", "help": "measure only pieces whose 'section/piece' has this in it"}),
        ("--cache", {"type": Path, "help": "file of the pieces that are done"}),
    )
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    found = sections(options.smoke, 40 if options.smoke else options.queries, options.repeats)
    pieces = Pieces(options.cache)
    pieces.measure(found, options.only)
    parts = pieces.parts(found)
    of_model = [pieces.found("tasks"), pieces.found("workers")]
    if all(len(each) == 2 for each in of_model):
        parts += modeled([*of_model[0], of_model[1][0]])
    publish(page("Fits on a cluster", "scale", options, parts, "dask", "distributed"), options)


if __name__ == "__main__":
    main()
