"""Online learning: pairs per second of every update, a pass over real data, and time per query compared with refitting.

python benchmarks/online_speed.py -o benchmarks/results/online_speed.md
"""

import time
from functools import partial

import numpy as np
import ranksvm._compiled.online as online
from scipy.linalg.blas import daxpy, sdot

from _common import arguments, data_folder, interleaved, page, publish, read, seconds, summary, table
from ranksvm import (
    PairwisePerceptronRanker,
    PerceptronCommitteeRanker,
    PRanker,
    RankingData,
    RankSVM,
    SOLARRanker,
    make_ranking,
)
from ranksvm._util.threads import one_blas_thread
from ranksvm.plotting.figures import line_style

# Number of documents of the query whose pairs are timed: as in LETOR's lists, so that they fit into caches.
DOCUMENTS = 100
SIZES = (46, 136)
# Goals: pairs per second if the model learns from every pair; None: a share of the bound.
WANTED = {("SOLAR-I", 46): 5e6, ("SOLAR-I", 136): None, ("SOLAR-II", 46): 1e6, ("SOLAR-II", 136): 1.5e5}
SHARE_OF_BOUND = 0.6
# C of RankSVM, which is among the best on MQ2008.
C = 2.0**-5
SEED = 0


# -- pairs a second ----------------------------------------------------------------------------------------------------


def processor_seconds(action) -> float:
    """Processor time of this thread during an action."""
    started = time.thread_time()
    action()
    return time.thread_time() - started


def fastest(action, repeats: int) -> float:
    """The shortest processor time of several calls."""
    return min(processor_seconds(action) for _ in range(repeats))


class Pairs:
    """Random pairs of the documents of a query, for a learner with some number of features."""

    def __init__(self, n_features: int, n_pairs: int):
        rng = np.random.default_rng(SEED)
        self.X = rng.random((DOCUMENTS, n_features), dtype=np.float32)
        self.preferred = rng.integers(0, DOCUMENTS, n_pairs).astype(np.int32)
        self.other = ((self.preferred + rng.integers(1, DOCUMENTS, n_pairs)) % DOCUMENTS).astype(np.int32)
        self.w = np.zeros(n_features)

    def learn(self, method: int, parameter: float, S: np.ndarray | None):
        """Learn from all pairs; they contradict each other, so nearly every pair changes the model."""

        def action():
            self.w[:] = 0.0
            model = online.Model(self.w, None, np.zeros(4))
            online.learn_dense(model, method, parameter, S, self.X, self.preferred, self.other, None)

        return action

    def pass_over(self):
        """Process pairs that all have a margin of at least 1, so that none changes the model."""
        self.w[:] = np.random.default_rng(SEED).normal(size=len(self.w))
        scores = self.X.astype(np.float64) @ self.w
        swap = scores[self.preferred] < scores[self.other]
        preferred = np.where(swap, self.other, self.preferred)
        other = np.where(swap, self.preferred, self.other)
        self.w *= 1.0 / np.abs(scores[preferred] - scores[other]).min()
        model = online.Model(self.w, None, np.zeros(4))
        return lambda: online.learn_dense(model, "solar_first", 1e-5, None, self.X, preferred, other, None)


def products_a_second(repeats: int) -> float:
    """Multiply-adds of doubles per second in a product of matrices, with one thread."""
    A = np.random.default_rng(SEED).random((768, 768))
    with one_blas_thread():
        return A.shape[0] ** 3 / fastest(lambda: A @ A, repeats)


def moved_a_second(repeats: int) -> float:
    """Elements of y += a x per second in the fastest cache, with one thread; each reads 16 bytes and writes 8.

    Computed from the difference of two lengths, so that the cost of the calls is not included.
    """
    short, long, calls = 400, 1400, 50_000

    def calls_on(length: int):
        x, y = np.ones(length), np.zeros(length)
        return lambda: [daxpy(x, y, a=1e-3) for _ in range(calls)]

    with one_blas_thread():
        taken = fastest(calls_on(long), repeats) - fastest(calls_on(short), repeats)
    return calls * (long - short) / taken


def read_a_second(n_bytes: int, repeats: int) -> float:
    """Bytes per second that one thread reads, repeatedly, from float32 arrays with ``n_bytes`` bytes in total."""
    x, y, calls = (*np.ones((2, n_bytes // 8), dtype=np.float32), 20_000)
    with one_blas_thread():
        return calls * n_bytes / fastest(lambda: [sdot(x, y) for _ in range(calls)], repeats)


def throughput(repeats: int, n_pairs: int) -> list[str]:
    """The table of pairs per second, with bounds."""
    rows, reads, products, moved = [], [], products_a_second(repeats), moved_a_second(repeats)
    for n in SIZES:
        pairs, few = Pairs(n, n_pairs), Pairs(n, max(1000, n_pairs // 20))
        few_pairs = len(few.other)
        read = read_a_second(4 * DOCUMENTS * n, repeats)
        reads.append(f"{read / 1e9:.0f} GB/s with {n} features")
        # action, number of pairs, multiply-adds per pair, and elements of y += a x that move as many bytes
        actions = {
            "SOLAR-I": (pairs.learn("solar_first", 1e-5, None), n_pairs, 3 * n, 2 * n),
            "SOLAR-I, nothing learnt": (pairs.pass_over(), n_pairs, 2 * n, n),
            "perceptron": (pairs.learn("perceptron", 0.0, None), n_pairs, 2.5 * n, 1.5 * n),
            "SOLAR-II, diagonal": (pairs.learn("solar_diagonal", 1e4, np.ones(n)), n_pairs, 6 * n, 10 / 3 * n),
            "SOLAR-II": (
                few.learn("solar_second", 1e4, np.eye(n).reshape(-1)),
                few_pairs,
                1.5 * n * n,
                7 / 6 * n * n,
            ),
        }
        for name, (action, size, work, elements) in actions.items():
            seconds = 8 * n / read + (elements - n / 3) / moved
            speed, bounds = size / fastest(action, repeats), (products / work, 1.0 / seconds)
            wanted, verdict = WANTED.get((name, n), 0.0), ""
            if wanted is None:
                wanted, verdict = SHARE_OF_BOUND * min(bounds), f"{100 * SHARE_OF_BOUND:g} % of the bound, "
            if wanted:
                verdict += f"{wanted / 1e6:.3g}: {'met' if speed >= wanted else '**MISSED**'}"
            shares = (f"{bound / 1e6:.1f} ({100 * speed / bound:.0f} %)" for bound in bounds)
            rows.append((n, name, f"{speed / 1e6:.2f}", verdict, *shares))
    header = ["features", "update", "million pairs/s", "wanted", "bound by FMA (share)", "bound by bytes (share)"]
    return [
        "## Pairs a second, one core",
        f"Compiled updates on {DOCUMENTS} documents in float32, {n_pairs:,} random pairs ({few_pairs:,} of SOLAR-II in "
        f"full), processor time of the thread, the least of {repeats} rounds. All are learnt from; the perceptron "
        "learns from about half.",
        "Bounds of this machine. FMA: multiplications with addition of a pair (SOLAR-I: margin, square and step, 3 n; "
        f"SOLAR-II: 3/2 n^2 on a triangle of S) at the {products / 1e9:.1f} billion a second of a product of matrices. "
        "Bytes: of a feature 8 of two documents, at the speed of a float32 dot product of arrays as large as all "
        f"documents ({', '.join(reads)}), and the others that a pair reads and writes (SOLAR-I: 8 of w, z written, "
        "both read and w written, 40 together) at the speed of y += a x in the nearest cache, "
        f"{24 * moved / 1e9:.0f} GB/s. The lower one counts. A chain of pairs reaches neither: a step waits for the "
        "sum of its margin, the next margin for the step; nor do the conversions of float32 count in them.",
        table(header, rows),
    ]


# -- a pass ------------------------------------------------------------------------------------------------------------


def stream(smoke: bool) -> tuple[str, RankingData]:
    """The training part of MQ2008's first fold, or generated data if it is absent."""
    if smoke or data_folder() is None:
        return "made", make_ranking(12, 10, 46, n_levels=3, random_state=SEED)
    return "MQ2008 fold 1", read("MQ2008")


def learners() -> dict:
    """All learners, by name."""
    return {
        "SOLAR-I": SOLARRanker(random_state=SEED),
        "SOLAR-II": SOLARRanker(2, random_state=SEED),
        "SOLAR-II, diagonal": SOLARRanker(2, covariance="diagonal", random_state=SEED),
        "perceptron": PairwisePerceptronRanker(random_state=SEED),
        "committee": PerceptronCommitteeRanker(random_state=SEED),
        "PRank": PRanker(random_state=SEED),
    }


def one_pass(name: str, data: RankingData, repeats: int) -> list[str]:
    """Milliseconds of `fit`, one pass, of every learner."""
    found, n_queries = learners(), len(np.unique(data.qid))
    actions = {key: lambda model=model: model.fit(data.X, data.y, qid=data.qid) for key, model in found.items()}
    times = interleaved(actions, repeats)
    rows = [
        (
            key,
            model.n_pairs_,
            model.n_updates_,
            summary(1e3 * times[key]),
            f"{1e3 * times[key].min() / n_queries:.4f}",
        )
        for key, model in found.items()
    ]
    return [
        "## One pass",
        f"`fit` on {name}, {data.n_rows:,} rows and {n_queries:,} queries, checks and order of pairs included; "
        f"least and median wall-clock time of {repeats} rounds.",
        table(["learner", "pairs (PRank: documents)", "learnt from", "ms", "ms a query (least)"], rows),
    ]


# -- a stream ----------------------------------------------------------------------------------------------------------


def as_they_come(data: RankingData) -> dict[str, np.ndarray]:
    """Milliseconds for each query of a stream: online learners, and RankSVM refitted to all queries so far."""
    rows = [rows for _, rows in data.queries]
    rows = [rows[query] for query in np.random.default_rng(SEED).permutation(len(rows))]
    order = np.concatenate(rows)
    ends = np.cumsum([len(own) for own in rows])
    X, y, qid = data.X[order], data.y[order], data.qid[order]
    models = {
        "RankSVM, from scratch": RankSVM(C=C),
        "RankSVM, warm-started": RankSVM(C=C, warm_start=True),
        "SOLAR-II": SOLARRanker(2, random_state=SEED),
        "SOLAR-I": SOLARRanker(random_state=SEED),
    }
    times: dict[str, list[float]] = {name: [] for name in models}
    # one model after the other, because a fit to all queries fills the caches with other data
    for name, model in models.items():
        online_learner = isinstance(model, SOLARRanker)
        for start, stop in zip(np.concatenate(([0], ends)), ends, strict=False):
            own = slice(start if online_learner else 0, stop)
            if not online_learner and not has_pair(y[own], qid[own]):
                times[name].append(np.nan)
                continue
            learn = model.partial_fit if online_learner else model.fit
            times[name].append(1e3 * seconds(partial(learn, X[own], y[own], qid=qid[own])))
    return {name: np.array(values) for name, values in times.items()}


def has_pair(y: np.ndarray, qid: np.ndarray) -> bool:
    """Whether any query has two different labels: RankSVM refuses data without pairs."""
    return len(np.unique(np.stack((qid, y)), axis=1)[0]) > len(np.unique(qid))


def running_median(values: np.ndarray, width: int) -> np.ndarray:
    """The median over a window around each value."""
    return np.array([np.nanmedian(values[max(0, t - width) : t + width + 1]) for t in range(len(values))])


def plot(times: dict[str, np.ndarray], name: str, path) -> None:
    """Plot the time of each query, and the total time so far."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    figure, (each, total) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for place, (key, values) in enumerate(times.items()):
        number = np.arange(1, len(values) + 1)
        each.semilogy(number, running_median(values, max(1, len(values) // 40)), **line_style(place), label=key)
        known = ~np.isnan(values)
        total.loglog(number[known], np.cumsum(values[known]) / 1e3, **line_style(place), label=key)
    each.set(xlabel="queries so far", ylabel="ms for the next query", title=f"{name}: a query")
    total.set(xlabel="queries so far", ylabel="s", title="all queries so far")
    for axis in (each, total):
        axis.grid(alpha=0.3)
    figure.legend(*each.get_legend_handles_labels(), loc="outside lower center", ncols=4)
    temporary = path.with_name(path.stem + ".part.png")
    figure.savefig(temporary, dpi=80)
    temporary.replace(path)
    plt.close(figure)


def beside_refitting(name: str, data: RankingData, options) -> list[str]:
    """The table of the stream, and the figure."""
    times = as_they_come(data)
    part = max(1, len(times["SOLAR-I"]) // 10)
    rows = [
        (
            key,
            f"{np.nanmedian(values[:part]):.3f}",
            f"{np.nanmedian(values[-part:]):.3f}",
            f"{np.nansum(values) / 1e3:.3f}",
        )
        for key, values in times.items()
    ]
    parts = [
        "## A stream beside refitting",
        f"The queries of {name} one by one, in random order: `partial_fit` on the new one, or "
        f"`RankSVM(C={C:g}).fit` on all so far, at its default tolerance, from scratch or from the last weights: "
        "medians over the first and the last tenth of the queries, wall-clock.",
        table(["learner", "ms a query, first tenth", "last tenth", "the whole stream, s"], rows),
    ]
    if options.output is not None:
        path = options.output.with_suffix(".png")
        path.parent.mkdir(parents=True, exist_ok=True)
        plot(times, name, path)
        parts.append(f"![time of a query as the stream goes on]({path.name})")
    return parts


def report(options) -> str:
    """Make the page, and write the figure."""
    name, data = stream(options.smoke)
    repeats, n_pairs = (1, 10_000) if options.smoke else (options.repeats, 1_000_000)
    parts = [*throughput(repeats, n_pairs), *one_pass(name, data, repeats), *beside_refitting(name, data, options)]
    return page("Online learning: speed", "online_speed", options, parts)


def main(argv=None):
    """Run from the command line."""
    options = arguments(__doc__, argv, ("--repeats", {"type": int, "default": 7, "help": "rounds"}))
    publish(report(options), options)


if __name__ == "__main__":
    main()
