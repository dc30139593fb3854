"""The models that are compared: the ranges of their parameters, and their fits."""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from papers.data_sets import Parts
from ranksvm import metrics
from ranksvm.datasets.ranking_data import RankingData
from ranksvm.estimators import FactorizedRankSVM, RankSVM, RegularizedRankSVM

__all__ = ["MODELS", "PATIENCE", "Fitted", "Model", "Range"]

Scorer = Callable[[np.ndarray], np.ndarray]
SEED = 0
# Boosting and descent stop after this number of rounds or epochs without a better score on the validation part.
PATIENCE = 50
MAX_ROUNDS = 1000


class Range(NamedTuple):
    """The range from which a parameter is drawn, including both ends."""

    low: float
    high: float
    log: bool = True
    integer: bool = False

    def draw(self, rng: np.random.Generator) -> float | int:
        """Draw a value, rounded to four digits, so that tables show exactly the value that was used."""
        if self.integer:
            # draw up to high + 1 and round down, so that the last integer also has its share
            low, high = (np.log([self.low, self.high + 1])) if self.log else (self.low, self.high + 1)
            value = rng.uniform(low, high)
            return int(min(np.floor(np.exp(value) if self.log else value), self.high))
        value = np.exp(rng.uniform(*np.log([self.low, self.high]))) if self.log else rng.uniform(self.low, self.high)
        return float(f"{value:.4g}")

    def __str__(self) -> str:
        return f"{self.low:g} to {self.high:g}" + (" (log)" if self.log else "")


class Fitted(NamedTuple):
    """The result of a fit: a scoring function, notes, and possibly another scoring function for the test rows."""

    predict: Scorer
    notes: dict[str, Any]
    final: Scorer | None = None


@dataclass(frozen=True)
class Model:
    """A model: its label in tables, the ranges of its parameters, and a function that fits it."""

    label: str
    ranges: Mapping[str, Range]
    fit: Callable[[Parts, dict[str, Any], str], Fitted] = field(repr=False)

    def candidates(self, n: int, seed: int) -> list[dict[str, Any]]:
        """The first draws with a seed, so that a larger budget begins with the draws of a smaller one."""
        rng = np.random.default_rng(seed)
        return [{name: each.draw(rng) for name, each in self.ranges.items()} for _ in range(n)]


# -- ours --------------------------------------------------------------------------------------------------------------


def _fitted(ranker: Any, parts: Parts, **options: Any) -> Fitted:
    train = parts.train
    with warnings.catch_warnings():
        # no warnings: a note says if an iteration limit was reached
        warnings.simplefilter("ignore", ConvergenceWarning)
        ranker.fit(train.X, train.y, qid=train.qid, **options)
    notes = {"objective": ranker.objective_, "n_iter": ranker.n_iter_, "converged": bool(ranker.converged_)}
    if getattr(ranker, "best_iteration_", None) is not None:
        notes["best_iteration"] = ranker.best_iteration_
    return Fitted(ranker.predict, notes)


def _rank_svm(**fixed: Any) -> Callable[[Parts, dict[str, Any], str], Fitted]:
    def fit(parts: Parts, params: dict[str, Any], metric: str) -> Fitted:
        return _fitted(RankSVM(**fixed, **params, n_jobs=1), parts)

    return fit


def _refitted(parts: Parts, params: dict[str, Any], metric: str) -> Fitted:
    """The plain model; for the test, it is fitted again to the training and the validation part together."""
    fit = _rank_svm()
    both = RankingData(
        np.concatenate([parts.train.X, parts.vali.X]),
        np.concatenate([parts.train.y, parts.vali.y]),
        np.concatenate([parts.train.queries.numbers(), -1 - parts.vali.queries.numbers()]),
    )
    first, again = fit(parts, params, metric), fit(parts._replace(train=both), params, metric)
    return first._replace(final=again.predict)


def _factorized(**fixed: Any) -> Callable[[Parts, dict[str, Any], str], Fitted]:
    def fit(parts: Parts, params: dict[str, Any], metric: str) -> Fitted:
        options: dict[str, Any] = {
            "early_stopping_rounds": PATIENCE,
            "eval_metric": metric,
            "random_state": SEED,
            "n_jobs": 1,
        }
        ranker = FactorizedRankSVM(**options, **fixed, **params)
        vali = parts.vali
        return _fitted(ranker, parts, eval_set=[(vali.X, vali.y)], eval_qid=[vali.qid])

    return fit


def _regularized(parts: Parts, params: dict[str, Any], metric: str) -> Fitted:
    return _fitted(RegularizedRankSVM(**params, n_jobs=1), parts)


# -- boosted trees -----------------------------------------------------------------------------------------------------


def _value(data: RankingData, scores: np.ndarray, metric: str) -> float:
    return metrics.evaluate(data.y, scores, data.qid, metric)[metric]


def _lightgbm(parts: Parts, params: dict[str, Any], metric: str) -> Fitted:
    import lightgbm

    train, vali, _ = parts
    options = {"objective": "lambdarank", "metric": "None", "verbose": -1, "seed": SEED, "num_threads": 1}
    options |= {"bagging_freq": 1, "deterministic": True, **params}
    matrix = lightgbm.Dataset(train.X, train.y, group=train.queries.sizes)
    held = lightgbm.Dataset(vali.X, vali.y, group=vali.queries.sizes, reference=matrix)
    booster = lightgbm.train(
        options,
        matrix,
        MAX_ROUNDS,
        valid_sets=[held],
        feval=lambda scores, _: (metric, _value(vali, scores, metric), True),
        callbacks=[lightgbm.early_stopping(PATIENCE, verbose=False)],
    )
    return Fitted(lambda X: np.asarray(booster.predict(X)), {"best_iteration": booster.best_iteration})


def _xgboost(parts: Parts, params: dict[str, Any], metric: str) -> Fitted:
    import xgboost

    train, vali, _ = parts
    options = {"objective": "rank:ndcg", "tree_method": "hist", "disable_default_eval_metric": True, "seed": SEED}
    options |= {"nthread": 1, "verbosity": 0, **params}
    matrix, held = (xgboost.DMatrix(part.X, part.y, qid=part.queries.numbers(), nthread=1) for part in (train, vali))
    stop = xgboost.callback.EarlyStopping(rounds=PATIENCE, metric_name=metric, maximize=True, save_best=True)
    booster = xgboost.train(
        options,
        matrix,
        MAX_ROUNDS,
        evals=[(held, "vali")],
        custom_metric=lambda scores, _: (metric, _value(vali, scores, metric)),
        callbacks=[stop],
        verbose_eval=False,
    )
    predict = lambda X: booster.predict(xgboost.DMatrix(X, nthread=1))  # noqa: E731
    return Fitted(predict, {"best_iteration": booster.best_iteration})


# -- all ---------------------------------------------------------------------------------------------------------------

# The ranges of the paper (Xu et al., TKDE 2019), and a wider range of C for plain models.
PAPER_C = Range(0.1, 10.0)
WIDE_C = Range(2.0**-20, 2.0**5)
PAPER_FACTORS = {"n_components": Range(1, 20, log=False, integer=True), "max_epochs": Range(100, 5000, integer=True)}
PAPER_PENALTIES = {"gamma": Range(0.1, 50.0), "lam": Range(0.1, 10.0)}

MODELS = {
    "plain": Model("RankSVM, squared hinge", {"C": WIDE_C}, _rank_svm()),
    "refitted": Model("RankSVM, squared hinge, refitted with the validation part", {"C": WIDE_C}, _refitted),
    "hinge": Model("RankSVM, hinge", {"C": WIDE_C}, _rank_svm(loss="hinge")),
    "hinge-paper": Model("RankSVM, hinge, C as published", {"C": PAPER_C}, _rank_svm(loss="hinge")),
    "factorized": Model("FactorizedRankSVM", {"C": PAPER_C, **PAPER_FACTORS}, _factorized()),
    "factorized-fixed": Model(
        "FactorizedRankSVM, fixed step",
        {"C": PAPER_C, **PAPER_FACTORS, "learning_rate": Range(0.001, 0.1)},
        _factorized(),
    ),
    "factorized-wide": Model("FactorizedRankSVM, any C", {"C": WIDE_C, **PAPER_FACTORS}, _factorized()),
    "regularized": Model("RegularizedRankSVM", {"C": PAPER_C, **PAPER_PENALTIES}, _regularized),
    "regularized-wide": Model(
        "RegularizedRankSVM, any C", {"C": WIDE_C, "gamma": Range(1e-3, 50.0), "lam": Range(0.1, 1e3)}, _regularized
    ),
    "lightgbm": Model(
        "LightGBM lambdarank",
        {
            "learning_rate": Range(0.01, 0.3),
            "num_leaves": Range(2, 64, integer=True),
            "min_data_in_leaf": Range(5, 200, integer=True),
            "lambda_l2": Range(1e-3, 100.0),
            "feature_fraction": Range(0.3, 1.0, log=False),
            "bagging_fraction": Range(0.5, 1.0, log=False),
        },
        _lightgbm,
    ),
    "xgboost": Model(
        "XGBoost rank:ndcg",
        {
            "eta": Range(0.01, 0.3),
            "max_depth": Range(1, 8, log=False, integer=True),
            "min_child_weight": Range(0.01, 30.0),
            "lambda": Range(1e-3, 100.0),
            "colsample_bytree": Range(0.3, 1.0, log=False),
            "subsample": Range(0.5, 1.0, log=False),
        },
        _xgboost,
    ),
}
