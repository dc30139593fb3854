"""Pointwise learners on MQ2008 fold 1: support vector regression, a forest and boosted trees (Tables 5 and 6)."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
from sklearn.svm import LinearSVR

from papers.fold_1 import letor
from papers.items import Context
from papers.judgment import NDCG, PERCENT
from papers.results import Compared, Grid, Part
from ranksvm.datasets.ranking_data import RankingData

__all__ = ["PRINTED", "Scorer", "boosting", "forest", "linear_svr", "pointwise"]

Scorer = Callable[[np.ndarray], np.ndarray]
# MQ2008 fold 1: pairwise accuracy (in per cent) and mean NDCG on the test part.
PRINTED = {
    "LinearSVR, squared": (82.17, 0.4450),
    "random forest, 40 trees": (80.36, 0.4541),
    "gradient boosting, 100 trees": (82.83, 0.4706),
}
# The published settings: leaves of one row or more in the forest, and trees of depth 4 in the boosting.
PUBLISHED_SETTING = {"random forest, 40 trees": 1, "gradient boosting, 100 trees": 4}
SEED = 0


def linear_svr(C: float, loss: str = "squared_epsilon_insensitive") -> Callable[[RankingData], Scorer]:
    """Support vector regression on the labels."""
    # use the primal solver, which is faster here, for the squared loss; the absolute loss has only the dual solver
    dual = loss == "epsilon_insensitive"
    return lambda data: LinearSVR(C=C, loss=loss, dual=dual, random_state=SEED).fit(data.X, data.y).predict


def forest(trees: int, leaf: int) -> Callable[[RankingData], Scorer]:
    """A random forest whose leaves have at least ``leaf`` rows."""
    model = RandomForestRegressor(trees, min_samples_leaf=leaf, max_features=1 / 3, n_jobs=-1, random_state=SEED)
    return lambda data: model.fit(data.X, data.y).predict


def boosting(trees: int, depth: int) -> Callable[[RankingData], Scorer]:
    """Boosted regression trees."""
    model = GradientBoostingRegressor(n_estimators=trees, max_depth=depth, random_state=SEED)
    return lambda data: model.fit(data.X, data.y).predict


class Method(NamedTuple):
    """A learner, its parameter, and the values of the parameter that are tried."""

    fit: Callable[[Any], Callable[[RankingData], Scorer]]
    parameter: str
    values: Sequence[float]


METHODS = {
    "LinearSVR, squared": Method(linear_svr, "C", tuple(2.0 ** np.arange(-15, 16))),
    "random forest, 40 trees": Method(lambda leaf: forest(40, leaf), "rows of a leaf", (1, 2, 5, 10, 20, 50, 100, 200)),
    "gradient boosting, 100 trees": Method(lambda depth: boosting(100, depth), "depth", (1, 2, 3, 4, 5, 6, 8)),
}
MEASURES = {"pairwise_accuracy": PERCENT, "mean_ndcg": NDCG}
HEADS = {"pairwise_accuracy": "pairwise accuracy, %", "mean_ndcg": "mean NDCG"}


def pointwise(context: Context) -> list[Part]:
    """Compare the setting that the validation part chooses, for each measure, with the published figures."""
    train, vali, test = context.sources.parts("MQ2008")
    table, rows = Compared("figures", ("method", "setting")), []
    for name, method in METHODS.items():
        context.say(name)
        found = {}
        for value in method.values[::3] if context.quick else method.values:
            predict = method.fit(value)(train)
            found[value] = [letor(part, predict(part.X), list(MEASURES)) for part in (vali, test)]
        for place, (measure, kind) in enumerate(MEASURES.items()):
            best = max(found, key=lambda value: found[value][0][measure])
            table.add((name, "chosen here"), HEADS[measure], kind, found[best][1][measure], PRINTED[name][place])
            rows.append((name, HEADS[measure], f"{method.parameter} = {best:g}"))
        if name in PUBLISHED_SETTING:
            value = PUBLISHED_SETTING[name]
            figures = letor(test, method.fit(value)(train)(test.X), list(MEASURES))
            for place, (measure, kind) in enumerate(MEASURES.items()):
                labels = (name, f"published: {method.parameter} = {value}")
                table.add(labels, HEADS[measure], kind, figures[measure], PRINTED[name][place])
    return [
        "MQ2008 fold 1. The learners are scikit-learn's, not the programs of the paper, and have grids of their own: "
        "figures near the printed ones are all that can be expected. They fit labels as numbers and know no queries. "
        "`benchmarks/peers.py` sets them beside RankSVM, LightGBM and XGBoost, with times.",
        table,
        "Chosen by the validation part:",
        Grid("chosen", ["method", "by", "setting"], rows),
    ]
