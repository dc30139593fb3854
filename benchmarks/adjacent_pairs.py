"""All pairs against pairs of adjacent levels only, on lists whose labels are all distinct.

python benchmarks/adjacent_pairs.py -o benchmarks/results/adjacent_pairs.md

Lee & Lin (Neural Computation 26, 2014), section 5 and Table 10, on made data of the shape of MQ2007-list.
"""

import numpy as np

from _common import arguments, interleaved, page, publish, summary, table
from ranksvm import RankingData, RankSVM, metrics

SELECTIONS = ("all", "adjacent")
# Training lists; standard deviation of the noise in a document's relevance, where what is linear in the features has 1;
# factor of a product of two combinations of features, which no linear model has, and how far each of the two is
# correlated with the linear part.
CASES = (
    (1014, 0.1, 0.0, (0.0, 0.0)),
    (1014, 1.0, 0.0, (0.0, 0.0)),
    (50, 1.0, 0.0, (0.0, 0.0)),
    (1014, 0.5, 1.0, (0.0, 0.0)),
    (1014, 0.5, 1.0, (0.3, 0.0)),
    (1014, 0.5, 1.0, (0.7, 0.7)),
)
# Lists of the shape of MQ2007-list, and how many are for validation and test.
N_DOCS, N_FEATURES, HELD_OUT = 730, 46, (100, 300)
# C times the number of pairs: about the same fit for both selections.
BUDGETS = 4.0 ** np.arange(-2, 12)
# Test pairwise accuracy in %, seconds: MQ2007-list, L2 loss, C chosen on validation.
PUBLISHED = {"all": (80.71, 38.7), "adjacent": (79.10, 19.9)}
SEED = 0


def parts_of(n_lists: int, noise: float, factor: float, correlations, smoke: bool) -> list[RankingData]:
    """Training, validation and test lists."""
    sizes = (8, 4, 4) if smoke else (n_lists, *HELD_OUT)
    n_docs, n_features = (30, 6) if smoke else (N_DOCS, N_FEATURES)
    rng = np.random.default_rng(SEED)
    directions = np.linalg.qr(rng.standard_normal((n_features, 3)))[0].astype(np.float32)
    found = []
    for size in sizes:
        X = rng.standard_normal((size * n_docs, n_features), dtype=np.float32)
        linear, *others = (X @ directions).T
        product = np.prod(
            [r * linear + np.sqrt(1 - r * r) * z for r, z in zip(correlations, others, strict=True)], axis=0
        )
        relevance = linear + factor * product + noise * rng.standard_normal(len(X))
        y = relevance.reshape(size, n_docs).argsort(axis=1).argsort(axis=1).reshape(-1)
        found.append(RankingData(X, y.astype(np.float64), np.repeat(np.arange(size), n_docs)))
    return found


def accuracy(ranker: RankSVM, data: RankingData) -> float:
    """Share of all pairs in order, in percent."""
    name = "pairwise_accuracy"
    return 100 * metrics.evaluate(data.y, ranker.predict(data.X), data.qid, name)[name]


def chosen(train: RankingData, valid: RankingData, selection: str) -> RankSVM:
    """The model whose C is best on validation lists, over all of their pairs."""
    probe = RankSVM(C=1e-12, pair_selection=selection).fit(train.X, train.y, qid=train.qid)
    fits = [
        RankSVM(C=budget / probe.n_pairs_, pair_selection=selection).fit(train.X, train.y, qid=train.qid)
        for budget in BUDGETS
    ]
    return max(fits, key=lambda ranker: accuracy(ranker, valid))


def compare(case: tuple, smoke: bool, repeats: int) -> list[tuple]:
    """A row for each selection."""
    train, valid, test = parts_of(*case, smoke)
    rankers = {selection: chosen(train, valid, selection) for selection in SELECTIONS}
    actions = {
        selection: lambda ranker=ranker: ranker.fit(train.X, train.y, qid=train.qid)
        for selection, ranker in rankers.items()
    }
    times = interleaved(actions, repeats)
    return [
        (
            f"{train.queries.n_queries:,}",
            f"{case[1]:g}",
            "none" if case[2] == 0 else f"{case[2]:g}, correlated {case[3][0]:g} and {case[3][1]:g}",
            selection,
            f"{ranker.n_pairs_:,}",
            f"{ranker.C:.1e}",
            f"{accuracy(ranker, test):.2f}",
            summary(times[selection]),
            ranker.n_iter_,
        )
        for selection, ranker in rankers.items()
    ]


def report(options) -> str:
    """The page."""
    rows = []
    for case in CASES[:1] if options.smoke else CASES:
        rows += compare(case, options.smoke, 1 if options.smoke else options.repeats)
    published = [(selection, f"{share:.2f}", f"{taken:.1f}") for selection, (share, taken) in PUBLISHED.items()]
    header = ["lists", "noise", "product", "pairs of", "number of pairs", "C", "test pairwise accuracy, %"]
    parts = [
        f"Lists of {N_DOCS} documents with {N_FEATURES} features, all labels of a list distinct: {CASES[0][0]:,} lists "
        "have the shape of MQ2007-list. The relevance of a document is linear in its features, of variance 1, plus "
        "noise of the standard deviation given, plus in the last rows a product of two combinations of features, "
        "correlated with the linear part as given; labels are its order.",
        f"C, times the number of pairs, is one of {len(BUDGETS)} values from {BUDGETS[0]:g} to {BUDGETS[-1]:g}, chosen "
        "by pairwise accuracy on validation lists. Accuracy is over all pairs of the test lists, whatever was trained "
        "on.",
        table([*header, "seconds, least / median", "iterations"], rows),
        "## Published: MQ2007-list, 743,790 x 46",
        table(["pairs of", "test pairwise accuracy, %", "seconds (2.5 GHz Xeon E5504)"], published),
        "Where relevance is linear in the features, neighbours tell the weights as all pairs do, and lose a little "
        "where lists are few. Where it is not, the weights that order neighbours best are others than those that order "
        "all pairs best, for better or worse.",
    ]
    return page("All pairs against adjacent levels", "adjacent_pairs", options, parts)


def main(argv=None):
    """Run from the command line."""
    options = arguments(__doc__, argv, ("--repeats", {"type": int, "default": 5, "help": "rounds"}))
    publish(report(options), options)


if __name__ == "__main__":
    main()
