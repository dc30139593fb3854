"""All pairs against pairs of adjacent levels only, on lists whose labels are all distinct.

python benchmarks/adjacent_pairs.py -o benchmarks/results/adjacent_pairs.md

Lee & Lin (Neural Computation 26, 2014), section 5 and Table 10, on data of the shape of MQ2007-list made here.
"""

import numpy as np

from _common import arguments, interleaved, page, publish, table
from ranksvm import RankingData, RankSVM, make_ranking, metrics

SELECTIONS = ("all", "adjacent")
# Standard deviation of the noise in a document's relevance; what the features say of it has 1.
NOISES = (0.1, 0.5, 1.0, 2.0)
# C times the number of pairs: about the same fit for both selections.
BUDGETS = 4.0 ** np.arange(-2, 12)
# Test pairwise accuracy in %, seconds: MQ2007-list, L2 loss, C chosen on validation.
PUBLISHED = {"all": (80.71, 38.7), "adjacent": (79.10, 19.9)}
SEED = 0


def parts_of(noise: float, smoke: bool) -> list[RankingData]:
    """Training, validation and test lists; the training part has the shape of MQ2007-list."""
    sizes = (8, 4, 4) if smoke else (1014, 100, 300)
    n_docs, n_features = (30, 6) if smoke else (730, 46)
    data = make_ranking(sum(sizes), n_docs, n_features, n_levels=None, noise=noise, random_state=SEED)
    ends = np.cumsum(np.array(sizes) * n_docs)
    return [data.select(slice(end - size * n_docs, end)) for size, end in zip(sizes, ends, strict=True)]


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


def compare(noise: float, smoke: bool, repeats: int) -> list[tuple]:
    """A row for each selection."""
    train, valid, test = parts_of(noise, smoke)
    rankers = {selection: chosen(train, valid, selection) for selection in SELECTIONS}
    actions = {
        selection: lambda ranker=ranker: ranker.fit(train.X, train.y, qid=train.qid)
        for selection, ranker in rankers.items()
    }
    times = interleaved(actions, repeats)
    return [
        (
            f"{noise:g}",
            selection,
            f"{ranker.n_pairs_:,}",
            f"{ranker.C:.1e}",
            f"{accuracy(ranker, test):.2f}",
            f"{times[selection].min():.3f} / {np.median(times[selection]):.3f}",
            ranker.n_iter_,
        )
        for selection, ranker in rankers.items()
    ]


def report(options) -> str:
    """The page."""
    rows = []
    for noise in NOISES[:1] if options.smoke else NOISES:
        rows += compare(noise, options.smoke, 1 if options.smoke else options.repeats)
    published = [(selection, f"{share:.2f}", f"{seconds:.1f}") for selection, (share, seconds) in PUBLISHED.items()]
    train = parts_of(NOISES[0], options.smoke)[0]
    header = ["noise", "pairs of", "number of pairs", "C", "test pairwise accuracy, %", "seconds, least / median"]
    parts = [
        f"Lists of {train.n_rows // train.queries.n_queries} documents, all labels of a list distinct: "
        f"{train.n_rows:,} x {train.n_features} training rows. C, times the number of pairs, is one of "
        f"{len(BUDGETS)} values from {BUDGETS[0]:g} to {BUDGETS[-1]:g}, chosen by pairwise accuracy on validation "
        "lists. Accuracy is over all pairs of the test lists, whatever was trained on. The relevance of a document is "
        "a linear function of its features, of variance 1, plus noise of the standard deviation given; labels are its "
        "order.",
        table([*header, "iterations"], rows),
        "## Published: MQ2007-list, 743,790 x 46",
        table(["pairs of", "test pairwise accuracy, %", "seconds (2.5 GHz Xeon E5504)"], published),
        "The more noise, the less the order of two neighbours says of the features.",
    ]
    return page("All pairs against adjacent levels", "adjacent_pairs", options, parts)


def main(argv=None):
    """Run from the command line."""
    options = arguments(__doc__, argv, ("--repeats", {"type": int, "default": 5, "help": "rounds"}))
    publish(report(options), options)


if __name__ == "__main__":
    main()
