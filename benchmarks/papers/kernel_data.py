"""Kernel models with C and gamma chosen on validation data, compared with linear ones, on three data sets."""

from functools import partial
from typing import Any

import numpy as np

from papers.data_sets import Parts
from papers.fold_1 import is_whole, letor
from papers.items import Context
from papers.made import Relevance, curved, noisy, straight
from papers.results import Grid, Part
from papers.timing import seconds
from ranksvm import metrics
from ranksvm.datasets.generators import make_ranking
from ranksvm.datasets.ranking_data import RankingData
from ranksvm.estimators import KernelRankSVM, KernelRankSVMCV, RankSVMCV

__all__ = ["CS", "GAMMAS", "LINEAR_CS", "grid", "levels", "mq2007"]

# The grid of the paper.
CS, GAMMAS = 2.0 ** np.arange(-5, 6), 2.0 ** np.arange(-6, 0)
LINEAR_CS = 2.0 ** np.arange(-15, 11)
# A part of the grid, for data on which a fit takes long.
FEW_CS, FEW_GAMMAS, FEW_LINEAR_CS = CS[::5], GAMMAS[::2], LINEAR_CS[:21:2]
CHOSEN_BY = ("mean_ndcg", "pairwise_accuracy")
MEASURES = ("pairwise_accuracy", "mean_ndcg", "ndcg@10")
HEADS = ("pairwise accuracy, %", "mean NDCG", "NDCG@10")
OF_LEVELS = ("pairwise_accuracy", "kendall_tau", "ndcg@10")
NOT_PRINTED = (
    "We have the data sets and the grid of the paper (C from 2^-5 to 2^5, gamma from 2^-6 to 2^-1, chosen on "
    "validation data), but not its figures of quality, so nothing is judged."
)
SEED = 0


def chosen(ranker: Any, parts: Parts) -> tuple[float, str]:
    """Let a ranker choose on the validation part; return the seconds, and C and gamma as text."""
    train, vali, _ = parts
    taken = seconds(lambda: ranker.fit(train.X, train.y, qid=train.qid, eval_set=(vali.X, vali.y), eval_qid=vali.qid))
    label = f"2^{np.log2(ranker.C_):.0f}" + (f", 2^{np.log2(ranker.gamma_):.0f}" if hasattr(ranker, "gamma_") else "")
    return taken, label


def _cells(data: RankingData, scores: np.ndarray) -> list[str]:
    found = letor(data, scores, MEASURES)
    return [f"{found[name]:.2f}" if name == "pairwise_accuracy" else f"{found[name]:.4f}" for name in MEASURES]


# -- MQ2008 ------------------------------------------------------------------------------------------------------------


def grid(context: Context) -> list[Part]:
    """The whole grid on MQ2008 fold 1, with a choice by each measure."""
    parts, rows, scores = context.sources.parts("MQ2008"), [], []
    Cs, gammas = (CS[::5], GAMMAS[::3]) if context.quick else (CS, GAMMAS)
    for metric in CHOSEN_BY:
        options: dict[str, Any] = {"metric": metric, "convention": "letor"}
        for name, ranker in (
            ("linear", RankSVMCV(LINEAR_CS, **options)),
            ("RBF kernel", KernelRankSVMCV(Cs, gammas, **options)),
        ):
            taken, label = chosen(ranker, parts)
            context.say(f"{name}, chosen by {metric}: {taken:.1f} s")
            rows.append((metric, name, label, *_cells(parts.test, ranker.predict(parts.test.X)), f"{taken:.1f}"))
        if metric == CHOSEN_BY[0]:
            scores = [
                (f"2^{np.log2(gamma):.0f}", *(f"{value:.4f}" for value in values))
                for gamma, values in zip(ranker.gammas_, ranker.mean_scores_, strict=True)
            ]
    return [
        NOT_PRINTED,
        "MQ2008 fold 1; beside the kernel the linear model with C from 2^-15 to 2^10. Test figures in LETOR's "
        "convention; seconds are all that choosing takes. `benchmarks/kernel_grid.py` has all five folds, tests of "
        "the difference, and times.",
        Grid("figures", ["chosen by", "model", "C, gamma", *HEADS, "choosing, s"], rows),
        "Mean NDCG on the validation part, of every model of the grid:",
        Grid("validation", ["gamma \\ C", *(f"2^{np.log2(C):.0f}" for C in Cs)], scores),
    ]


# -- MQ2007 ------------------------------------------------------------------------------------------------------------


def first_queries(data: RankingData, n_queries: int) -> RankingData:
    """The first queries of some data."""
    return data.select(np.concatenate([rows for _, rows in data.queries][:n_queries]))


def mq2007(context: Context) -> list[Part]:
    """Linear model, approximated and exact kernel, on all rows and on the rows of some queries."""
    (name,) = context.sources.here(("MQ2007", "MQ2007-partial"))
    parts = context.sources.parts(name)
    n_queries, n_components = (5, 20) if context.quick else (200, 300)
    few = parts._replace(train=first_queries(parts.train, n_queries))
    options: dict[str, Any] = {"metric": "pairwise_accuracy", "convention": "letor"}
    approximation: dict[str, Any] = {"approximation": "nystroem", "n_components": n_components, "random_state": SEED}
    rows: list[tuple] = []
    settings: list[tuple] = []
    for label, of in (("all", parts), (f"{n_queries} queries", few)):
        for method, ranker in (
            ("linear", RankSVMCV(FEW_LINEAR_CS, **options)),
            (
                f"RBF, Nyström, {n_components} landmarks",
                KernelRankSVMCV(FEW_CS, FEW_GAMMAS, **options, **approximation),
            ),
        ):
            taken, setting = chosen(ranker, of)
            context.say(f"{label}, {method}: {taken:.1f} s")
            figures = _cells(of.test, ranker.predict(of.test.X))
            rows.append((label, f"{of.train.n_rows:,}", method, setting, f"{taken:.1f}", *figures))
        settings.append((label, of, ranker.C_, ranker.gamma_, setting))
    for label, of, C, gamma, setting in settings:
        model, train = KernelRankSVM(C, gamma=gamma), of.train
        taken = seconds(partial(model.fit, train.X, train.y, qid=train.qid))
        context.say(f"{label}, exact: {taken:.1f} s")
        figures = _cells(of.test, model.predict(of.test.X))
        rows.append((label, f"{train.n_rows:,}", "RBF, exact", setting, f"{taken:.1f} (one fit)", *figures))
    header = ["training queries", "rows", "method", "C, gamma", "all fits, s", *HEADS]
    return [
        NOT_PRINTED,
        f"{name} fold 1{'' if is_whole(name) else ', 85 % of the rows of MQ2007'}. Chosen by pairwise accuracy on the "
        "validation part: linear C of 2^-15, 2^-13 .. 2^5, RBF C of "
        f"{', '.join(f'{C:g}' for C in FEW_CS)} and gamma of {', '.join(f'{gamma:g}' for gamma in FEW_GAMMAS)}, from "
        "the grid of the paper. LETOR's convention.",
        Grid("figures", header, rows),
    ]


# -- a thousand levels -------------------------------------------------------------------------------------------------


def listed(relevance: Relevance, n_queries: int, n_docs: int) -> Parts:
    """Queries in which all labels differ: they are the ranks of a noisy relevance."""
    parts = []
    for part in range(3):
        data = make_ranking(n_queries, n_docs, 10, random_state=SEED + part)
        values, labels = noisy(relevance, data.X, SEED + part), np.empty(data.n_rows)
        for _, rows in data.queries:
            labels[rows] = np.argsort(np.argsort(values[rows]))
        parts.append(RankingData(data.X, labels, data.qid))
    return Parts(*parts)


def levels(context: Context) -> list[Part]:
    """Linear model and exact kernel on queries in which all labels differ; and the gain, which overflows there."""
    n_queries, n_docs = (2, 30) if context.quick else (3, 1000)
    rows, Cs = [], 2.0 ** np.arange(-20, 1, 5)
    options: dict[str, Any] = {"metric": "pairwise_accuracy", "convention": "letor"}
    for name, relevance in (("curved", curved), ("linear", straight)):
        parts = listed(relevance, n_queries, n_docs)
        for method, ranker in (
            ("linear", RankSVMCV(Cs, **options)),
            ("RBF, exact", KernelRankSVMCV(Cs, GAMMAS[::4], **options)),
        ):
            taken, setting = chosen(ranker, parts)
            context.say(f"{name}, {method}: {taken:.1f} s")
            test = parts.test
            means = metrics.evaluate(test.y, ranker.predict(test.X), test.qid, OF_LEVELS).means
            cells = [f"{means[each]:.4f}" for each in OF_LEVELS]
            rows.append((name, f"{ranker.n_pairs_:,}", method, setting, f"{taken:.1f}", *cells))
    header = [
        "relevance",
        "pairs",
        "method",
        "C, gamma",
        "all fits, s",
        "pairwise accuracy",
        "Kendall's tau",
        "NDCG@10",
    ]
    return [
        f"{n_queries} made queries of {n_docs:,} documents and 10 features, all labels of a query distinct (0 to "
        f"{n_docs - 1:,}); as many queries for validation and for the test. C of 2^-20, 2^-15 .. 1 by pairwise "
        "accuracy on the validation part. The data of the paper of this kind (5 % of MQ2007-list: 37,251 rows, k = "
        "1,128, 14,090,798 pairs) are a random draw that is not published.",
        Grid("figures", header, rows),
        "## NDCG of a thousand levels",
        "The paper could not compute NDCG of such labels, because 2^y overflowed. The largest float64 is below 2^1024, "
        "so the gain 2^y - 1 is infinite from y = 1,024 on, and NDCG is infinite over infinite. It is a ratio: gains "
        "relative to that of the highest label leave it as it is, and none of them overflows (all of NDCG is then in "
        "the first documents). `ranksvm.metrics` divides so. One query of 1,128 documents with labels 0 to 1,127, in "
        "the order of their labels but for the first and the second, which are exchanged:",
        _overflow(),
    ]


def _overflow() -> Grid:
    """NDCG@10 of 1,128 levels, by the formula, and with gains relative to the largest gain."""
    y = np.arange(1127.0, -1.0, -1.0)
    scores = -np.arange(1128.0)
    scores[:2] = scores[1::-1]
    order = np.argsort(-scores)[:10]
    discounts = 1.0 / np.log2(np.arange(2, 12))
    with np.errstate(over="ignore", invalid="ignore"):
        gains = np.exp2(y) - 1.0
        by_formula = float(gains[order] @ discounts / (gains[:10] @ discounts))
    ours = metrics.evaluate(y, scores, np.zeros(len(y)), "ndcg@10").means["ndcg@10"]
    relative = np.exp2(y - y.max())
    expected = float(relative[order] @ discounts / (relative[:10] @ discounts))
    rows = [
        ("2^y - 1 in float64", f"{by_formula:.6f}"),
        ("2^(y - 1,127)", f"{expected:.6f}"),
        ("`ranksvm.metrics`", f"{ours:.6f}"),
    ]
    return Grid("overflow", ["gain", "NDCG@10"], rows)
