"""Compare all pairs with pairs of adjacent levels, if all labels of a list differ (Lee & Lin 2014, Table 10)."""

from typing import NamedTuple

import numpy as np

from papers.data_sets import Parts
from papers.fold_1 import letor, n_pairs
from papers.items import Context
from papers.judgment import PERCENT
from papers.results import Compared, Grid, Part
from papers.timing import least_seconds
from ranksvm.datasets.ranking_data import RankingData
from ranksvm.estimators import RankSVM

__all__ = ["PRINTED", "adjacent"]

SELECTIONS = ("all", "adjacent")
# Test pairwise accuracy in per cent, and seconds, for the L2 loss with C chosen on validation data.
PRINTED = {
    "MQ2007-list": {"all": (80.71, 38.7), "adjacent": (79.10, 19.9)},
    "MQ2008-list": {"all": (82.11, 16.6), "adjacent": (81.81, 10.5)},
}


class Case(NamedTuple):
    """Generated lists.

    The relevance is a linear part with standard deviation 1, plus ``factor`` times a product of two linear combinations
    of features, which a linear model cannot represent, plus noise with standard deviation ``noise``. ``correlations``
    are the correlations of the two combinations with the linear part.
    """

    n_lists: int
    noise: float
    factor: float = 0.0
    correlations: tuple[float, float] = (0.0, 0.0)


CASES = (
    Case(1014, 0.1),
    Case(1014, 1.0),
    Case(50, 1.0),
    Case(1014, 0.5, 1.0),
    Case(1014, 0.5, 1.0, (0.3, 0.0)),
    Case(1014, 0.5, 1.0, (0.7, 0.7)),
)
# Shape of the lists, as in MQ2007-list, and numbers of lists for validation and test.
N_DOCS, N_FEATURES, HELD_OUT = 730, 46, (100, 300)
# Values of C times the number of pairs, with which the fits of both selections are about the same.
BUDGETS = 4.0 ** np.arange(-2, 12)
SEED = 0


def made(case: Case, quick: bool) -> Parts:
    """Generate training, validation and test lists."""
    sizes = (8, 4, 4) if quick else (case.n_lists, *HELD_OUT)
    n_docs, n_features = (30, 6) if quick else (N_DOCS, N_FEATURES)
    rng = np.random.default_rng(SEED)
    directions = np.linalg.qr(rng.standard_normal((n_features, 3)))[0].astype(np.float32)
    found = []
    for size in sizes:
        X = rng.standard_normal((size * n_docs, n_features), dtype=np.float32)
        linear, *others = (X @ directions).T
        product = np.prod(
            [r * linear + np.sqrt(1 - r * r) * z for r, z in zip(case.correlations, others, strict=True)], axis=0
        )
        relevance = linear + case.factor * product + case.noise * rng.standard_normal(len(X))
        y = relevance.reshape(size, n_docs).argsort(axis=1).argsort(axis=1).reshape(-1)
        found.append(RankingData(X, y.astype(np.float64), np.repeat(np.arange(size), n_docs)))
    return Parts(*found)


def accuracy(ranker: RankSVM, data: RankingData) -> float:
    """Share of all pairs that are ranked correctly, in per cent."""
    return letor(data, ranker.predict(data.X), ["pairwise_accuracy"])["pairwise_accuracy"]


def chosen(parts: Parts, selection: str, budgets: np.ndarray) -> RankSVM:
    """The model with the C that is best on the validation part, measured on all of its pairs."""
    train = parts.train
    # number of adjacent pairs if all labels are distinct; equal labels give fewer, which hardly matters here
    pairs = n_pairs(train) if selection == "all" else train.n_rows - train.queries.n_queries
    fits = [
        RankSVM(C=budget / max(pairs, 1), pair_selection=selection).fit(train.X, train.y, qid=train.qid)
        for budget in budgets
    ]
    return max(fits, key=lambda ranker: accuracy(ranker, parts.vali))


def _row(ranker: RankSVM, parts: Parts, repeats: int) -> tuple[float, list[object]]:
    """Accuracy, and the cells of the table."""
    train = parts.train
    taken = least_seconds(lambda: ranker.fit(train.X, train.y, qid=train.qid), repeats, 10.0)
    found = accuracy(ranker, parts.test)
    cells = [ranker.pair_selection, f"{ranker.n_pairs_:,}", f"{ranker.C:.1e}", f"{found:.2f}", f"{taken:.3f}"]
    return found, [*cells, ranker.n_iter_]


def adjacent(context: Context) -> list[Part]:
    """MQ2007-list if it is available, and generated lists of its shape."""
    columns = ["pairs of", "number of pairs", "C", "test pairwise accuracy, %", "seconds", "iterations"]
    repeats, budgets = (1, BUDGETS[::5]) if context.quick else (5, BUDGETS)
    parts: list[Part] = [
        f"C, times the number of pairs, is one of {len(budgets)} values from {budgets[0]:g} to {budgets[-1]:.4g}, "
        "chosen by pairwise accuracy on validation lists. Accuracy is over all pairs of the test lists, whatever "
        "was trained on. Seconds: the chosen fit, the least of 5.",
        "## Published: MQ2007-list and MQ2008-list",
        _published(context, columns, budgets, repeats),
        "Printed seconds (2.5 GHz Xeon E5504): "
        + ", ".join(f"{data} {name} pairs {taken:g}" for data, of in PRINTED.items() for name, (_, taken) in of.items())
        + ".",
    ]
    for name in PRINTED:
        if not context.sources.has(name):
            parts.append(f"Missing: {context.sources.instructions(name)} DIR is the folder of `--data`.")
    rows = []
    for case in CASES[:1] if context.quick else CASES:
        lists = made(case, context.quick)
        r, s = case.correlations
        context.say(f"{case.n_lists} lists, noise {case.noise:g}, product {case.factor:g}")
        labels = (
            f"{lists.train.queries.n_queries:,}",
            f"{case.noise:g}",
            "none" if case.factor == 0 else f"{case.factor:g}, correlated {r:g} and {s:g}",
        )
        rows += [(*labels, *_row(chosen(lists, selection, budgets), lists, repeats)[1]) for selection in SELECTIONS]
    return [
        *parts,
        "## Made lists",
        f"Lists of {N_DOCS} documents with {N_FEATURES} features, all labels of a list distinct: {CASES[0].n_lists:,} "
        "lists have the shape of MQ2007-list. The relevance of a document is linear in its features, of variance 1, "
        "plus noise of the standard deviation given, plus in the last rows a product of two combinations of features, "
        "correlated with the linear part as given; labels are its order.",
        Grid("made", ["lists", "noise", "product", *columns], rows),
        "Where relevance is linear in the features, neighbors tell the weights as all pairs do, and lose a little "
        "where lists are few. Where it is not, the weights that order neighbors best are others than those that order "
        "all pairs best, for better or worse.",
    ]


def _published(context: Context, columns: list[str], budgets: np.ndarray, repeats: int) -> Compared:
    """The printed accuracies, with ours if the data are available."""
    table = Compared("published", ("data", "pairs of"))
    for name, of_data in PRINTED.items():
        lists = context.sources.parts(name) if context.sources.has(name) else None
        for selection, (printed, _) in of_data.items():
            ours = None if lists is None else _row(chosen(lists, selection, budgets), lists, repeats)[0]
            table.add((name, selection), columns[3], PERCENT, ours, printed)
    return table
