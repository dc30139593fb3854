"""Fits on a Dask cluster: what a round costs, what workers gain, what travels, what a kill costs here and in peers.

python benchmarks/scale.py -o benchmarks/results/scale.md

Clusters are processes of this machine with a thread each. The last part is no measurement: a cost model, with its
assumptions, of what it would take beyond this machine.
"""

import logging
import os
import pickle
import resource
import signal
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np

# Dask looks for a package "sparse", which a script of that name beside this one is not: here and in its workers.
FOLDER = str(Path(__file__).resolve().parent)
sys.path = [FOLDER, *(path for path in sys.path if path != FOLDER)]
from _common import arguments, page, publish, table, verdict  # noqa: E402

sys.path.remove(FOLDER)
import dask  # noqa: E402
import dask.array as da  # noqa: E402
from distributed import Client, LocalCluster  # noqa: E402

from ranksvm import make_ranking  # noqa: E402
from ranksvm.dask import DaskRankSVM  # noqa: E402
from ranksvm.dask.backend import DaskBackend  # noqa: E402
from ranksvm.objectives import answers  # noqa: E402
from ranksvm.objectives.tree_sum import tree_sum  # noqa: E402

FEATURES, DOCS = 136, 120
C = 1e-3
# the goals: seconds of a round, rounds of a fit, and how much faster two workers are than one
MOST_ROUND, MOST_ROUNDS, LEAST_GAIN = 0.030, 12, 1.8
# Assumptions of the cost model: an evaluation or product of a worker's thread in values a second (measured below where
# there is time for it), a network of 10 Gbit/s, and tasks one after another in the scheduler.
NETWORK = 1.25e9


@contextmanager
def cluster(n_workers, smoke):
    """So many processes with one thread each, or only threads; this process has the scheduler."""
    settings = {"distributed.scheduler.allowed-failures": 10}
    options = {"processes": not smoke, "threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 50}
    with (
        dask.config.set(settings),
        LocalCluster(n_workers=n_workers, **options) as started,
        Client(started) as client,
    ):
        yield client


def made(n_queries, n_parts, seed=0):
    """Rows that workers make, whole queries: dask arrays X, y and qid."""
    share = n_queries // n_parts
    blocks = [dask.delayed(part, pure=True)(seed + number, share) for number in range(n_parts)]
    n = share * DOCS
    X = da.concatenate([da.from_delayed(block[0], (n, FEATURES), np.float32) for block in blocks])
    y = da.concatenate([da.from_delayed(block[1], (n,), float) for block in blocks])
    qid = da.concatenate([da.from_delayed(block[2] + number * share, (n,), int) for number, block in enumerate(blocks)])
    return X, y, qid


def part(seed, n_queries):
    """One part."""
    data = make_ranking(n_queries, DOCS, FEATURES, random_state=seed)
    return data.X.astype(np.float32), data.y.astype(float), np.repeat(np.arange(n_queries), DOCS)


class Watched:
    """Rounds of a fit: their times, and the bytes of questions and answers."""

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


def overhead(smoke):
    """A round over parts of a few rows: what Dask costs, whatever is computed."""
    with cluster(2, smoke) as client:
        X, y, qid = client.persist(made(40, 4))
        DaskRankSVM(C=C, n_partitions=4).fit(X, y, qid=qid)  # imports
        with Watched() as watched:
            for _ in range(1 if smoke else 10):
                DaskRankSVM(C=C, n_partitions=4).fit(X, y, qid=qid)
    times = np.array(watched.times)
    shown = f"{1e3 * np.median(times):.1f} / {1e3 * np.quantile(times, 0.9):.1f}"
    return table(
        ["round, 2 workers x 2 parts", "ms, median / 90 %", f"goal: median <= {1e3 * MOST_ROUND:.0f} ms"],
        [[f"{len(times)} rounds", shown, verdict(np.median(times), MOST_ROUND)]],
    )


def peak():
    """Largest memory that a process has had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def workers(smoke, n_queries, repeats):
    """One and two workers on the same four parts: time, rounds, bytes and memory."""
    rows, least, coefs = [], {}, []
    for n_workers in (1, 2):
        with cluster(n_workers, smoke) as client:
            X, y, qid = client.persist(made(n_queries, 4))
            fit = DaskRankSVM(C=C, n_partitions=4, n_jobs=1)
            fit.fit(X[: 8 * DOCS], y[: 8 * DOCS], qid=qid[: 8 * DOCS])  # imports
            times = []
            for _ in range(1 if smoke else repeats):
                with Watched() as watched:
                    start = time.perf_counter()
                    fit.fit(X, y, qid=qid)
                    times.append(time.perf_counter() - start)
            memory = max(client.run(peak).values())
            least[n_workers] = min(times), sum(watched.times)
            coefs.append(fit.coef_)
            sent = f"{watched.bytes / 1e6:.2f}"
            rounds = f"{fit.n_rounds_} ({verdict(fit.n_rounds_, MOST_ROUNDS)})"
            seconds = f"{min(times):.2f}", f"{sum(watched.times):.2f}"
            rows.append([n_workers, *seconds, rounds, sent, f"{memory:.0f}", f"{peak():.0f}"])
    header = ["workers", "fit, s (least)", "of it rounds, s", f"rounds (goal: <= {MOST_ROUNDS})"]
    header += ["MB of sums", "MB, largest worker", "MB, client"]
    gain = least[1][1] / least[2][1]
    met = "met" if gain >= LEAST_GAIN else "missed"
    same = "the same bits" if np.array_equal(*coefs) else "OTHER BITS"
    n = n_queries // 4 * 4 * DOCS
    text = f"{n:,} x {FEATURES} float32, made by the workers. Rounds with two workers: {gain:.2f} times as fast "
    text += f"(goal: >= {LEAST_GAIN}, {met}); {same}."
    return text + "\n\n" + table(header, rows), n * FEATURES / (least[1][1] / fit.n_rounds_)


def kills(smoke, n_queries):
    """The same data and the same kill, half-way through a fit, for every library."""
    makers = {"ranksvm": lambda client: ours}
    if not smoke:
        makers |= {"XGBoost": lambda client: xgboost(client), "LightGBM": lambda client: lightgbm(client)}
    rows = []
    for name, make in makers.items():
        with cluster(2, smoke) as client:
            X, y, qid = client.persist(made(n_queries, 4))
            fit = make(client)
            fit(X, y, qid)
            start = time.perf_counter()
            fit(X, y, qid)
            undisturbed = time.perf_counter() - start
            victim = next(iter(client.run(os.getpid).values()))
            timer = threading.Timer(0.5 * undisturbed, os.kill, (victim, signal.SIGKILL))
            if not smoke:  # there this process would be the victim
                timer.start()
            start, outcome = time.perf_counter(), "fitted"
            try:
                fit(X, y, qid)
            except Exception as error:
                outcome = f"{type(error).__name__}: {str(error).splitlines()[0][:60]}"
            timer.cancel()
            rows.append([name, f"{undisturbed:.1f}", f"{time.perf_counter() - start:.1f}", outcome.replace("|", "/")])
    return table(["library", "undisturbed, s", "with a kill, s", "outcome"], rows)


def ours(X, y, qid):
    DaskRankSVM(C=C, n_partitions=4, tol=1e-6).fit(X, y, qid=qid)


def xgboost(client):
    from xgboost.dask import DaskXGBRanker

    def fit(X, y, qid):
        ranker = DaskXGBRanker(n_estimators=100, tree_method="hist")
        ranker.client = client
        ranker.fit(X, y.astype(int), qid=qid)

    return fit


def lightgbm(client):
    from lightgbm import DaskLGBMRanker

    def fit(X, y, qid):
        group = da.from_array(np.full(len(qid) // DOCS, DOCS), chunks=len(qid) // DOCS // 4)
        DaskLGBMRanker(n_estimators=100, client=client, verbose=-1).fit(X, y.astype(int), group=group)

    return fit


def reduction(smoke):
    """The sums of 1,000 workers, added up as they would be: their results are made here, none is sent."""
    rows = []
    for n_workers in (10,) if smoke else (10, 100, 1000):
        gradient = np.random.default_rng(0).normal(size=FEATURES)
        found = [[[answers.Evaluation(answers.LossSums(1.0), gradient)]] for _ in range(n_workers)]
        start = time.perf_counter()
        tree_sum(found, answers.add)
        rows.append([f"{n_workers:,}", f"{1e3 * (time.perf_counter() - start):.2f}"])
    return table(["workers, a part each", f"adding up {FEATURES} + 3 numbers, ms"], rows)


def tasks(smoke):
    """A round over many parts of a few rows each on two workers: what a task costs."""
    rows, seconds = [], {}
    with cluster(2, smoke) as client:
        for n_parts in (4, 8) if smoke else (4, 100):
            X, y, qid = client.persist(made(4 * n_parts, n_parts))
            DaskRankSVM(C=C, n_partitions=n_parts).fit(X, y, qid=qid)
            with Watched() as watched:
                DaskRankSVM(C=C, n_partitions=n_parts).fit(X, y, qid=qid)
            seconds[n_parts] = float(np.median(watched.times))
            rows.append([n_parts, f"{1e3 * seconds[n_parts]:.1f}"])
    (few, first), (many, last) = seconds.items()
    each = max(0.0, (last - first) / (many - few))
    return table(["parts", "round, ms"], rows), max(0.0, first - few * each), each


def model(speed, base, task):
    """From which size more workers pay, by the costs measured here."""
    rows = []
    n_rounds = MOST_ROUNDS
    for n_rows in (1e6, 1e7, 1e8, 1e9):
        values, line = n_rows * FEATURES, [f"{n_rows:.0e}", f"{4 * n_rows * FEATURES / 1e9:,.1f}"]
        times = {}
        for n_workers in (1, 2, 10, 100, 1000):
            communication = n_workers * 8 * (FEATURES + 3) / NETWORK
            # one process needs no rounds of Dask
            dask_cost = 0.0 if n_workers == 1 else base + n_workers * task + communication
            times[n_workers] = n_rounds * (values / speed / n_workers + dask_cost)
        line += [f"{seconds:,.1f}" for seconds in times.values()]
        rows.append([*line, f"{min(times, key=lambda n: times[n]):,}"])
    # base + 2 task < values / speed / 2
    even = 2.0 * (base + 2.0 * task) * speed / FEATURES
    text = (
        f"Seconds of {n_rounds} rounds. Assumed: a worker has one thread, which evaluates {speed / 1e9:.2f} billion "
        f"values a second, rows in its memory (measured above); a round costs {1e3 * base:.1f} ms and {1e3 * task:.2f} "
        f"ms for each worker's task (measured above, and linear in the tasks); answers of {8 * (FEATURES + 3):,} bytes "
        f"arrive one after another at {NETWORK / 1e9:.2f} GB/s; reading the data and the sample are not counted. Two "
        f"workers beat one thread from about {even:,.0f} rows on."
    )
    header = ["rows", "GB of float32", *(f"{n:,} workers" for n in (1, 2, 10, 100, 1000)), "least with"]
    return text + "\n\n" + table(header, rows)


def report(options):
    """The page."""
    smoke = options.smoke
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    n_queries = 40 if smoke else options.queries
    of_workers, speed = workers(smoke, n_queries, options.repeats)
    of_tasks, base, task = tasks(smoke)
    parts = [
        "## A round",
        overhead(smoke),
        of_tasks,
        "## Workers",
        of_workers,
        "## A worker killed half-way",
        kills(smoke, max(40, n_queries // 4)),
        "## Sums of many workers, simulated",
        reduction(smoke),
        "## Beyond this machine: a cost model",
        model(speed, base, task),
    ]
    return page("Fits on a cluster", "scale", options, parts, "dask", "distributed")


def main(argv=None):
    """Run from the command line."""
    queries = {"type": int, "default": 8000, "help": "queries of 120 documents in the comparison of workers"}
    repeats = {"type": int, "default": 3, "help": "fits of each cluster"}
    options = arguments(__doc__, argv, ("--queries", queries), ("--repeats", repeats))
    publish(report(options), options)


if __name__ == "__main__":
    main()
