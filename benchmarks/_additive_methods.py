"""The methods of `additive.py`, each with its grid: RankSVM, additive models, and tools with boosted trees.

CatBoost and EBM are also searched in ``build/peers``:
python -m pip install --no-deps --target build/peers catboost interpret-core
"""

import importlib.util
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from _common import ROOT
from _widening import Axis
from papers.data_sets import Parts
from papers.pointwise import Scorer
from ranksvm import AdditiveRankSVM, AdditiveRankSVMCV, RankingData, RankSVM

FOLDER = ROOT / "build" / "peers"
if FOLDER.is_dir():
    sys.path.append(str(FOLDER))

SEED = 0
# Maximum number of boosting rounds; boosting stops after PATIENCE rounds without a gain on validation data.
ROUNDS, PATIENCE = 5000, 100
# EBM: number of bags, and the share of the queries that each bag holds out for early stopping.
BAGS, HELD_OUT = 8, 0.15
PAIR_WEIGHTINGS = ("uniform", "gain_gap", "per_query")


class Fitted(NamedTuple):
    """A scoring function, and what was chosen while it was fitted."""

    score: Scorer
    chosen: str = ""
    # whether boosting stopped at the limit of rounds
    cut_off: bool = False


class Method(NamedTuple):
    """A way to learn to rank: its parameters, and a function that fits it to parts, given a number of threads."""

    axes: tuple[Axis, ...]
    fit: Callable[..., Fitted]
    peer: str = ""
    # whether a fit takes so long that only neighbors of the best setting are tried, not a whole grid
    slow: bool = False


def peers(smoke: bool) -> dict[str, Method | None]:
    """Other tools by name; None for those that are not installed."""
    leaves = Axis("{} leaves", (2, 3, 4, 8, 16, 32, 64, 128, 256), 3, 16, bounded=True)
    rates = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
    sizes = Axis("leaves of {}", (1, 5, 20, 80, 320, 1280, 5120), 5, 80, bounded=True)
    depth = Axis("depth {}", (1, 2, 3, 4, 5, 6, 7, 8, 10), 1, 3, bounded=True)
    mass = Axis("child weight {}", (0, 0.01, 0.1, 1, 10, 100, 1000), 0.1, 10, bounded=True)
    penalty = Axis("l2 {}", (0, 1, 3, 10, 30, 100, 300, 1000, 3000), 1, 10, bounded=True)
    counts = Axis("{} interactions", (0, 5, 10, 20, 40, 80, 160, 320), 0, 10, bounded=True)
    smoothing = Axis("{} rounds of smoothing", (0, 25, 100, 200, 500, 1000, 2000), 0, 25, bounded=True)
    rate = Axis("rate {}", rates, 0.03, 0.3)
    slow = Axis("rate {}", (0.0006, 0.00125, 0.0025, 0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32), 0.01, 0.04)
    found = {
        "LightGBM lambdarank": Method((leaves, rate, sizes), _lightgbm, "lightgbm"),
        "XGBoost rank:ndcg": Method((depth, rate, mass), _xgboost, "xgboost"),
        "CatBoost YetiRank": Method((depth._replace(first=2, last=4), rate, penalty), _catboost, "catboost", True),
        "EBM, labels as numbers": Method((counts, slow, smoothing), _ebm, "interpret", True),
    }
    if smoke:
        found = {
            name: _short(method, smoke)._replace(fit=partial(method.fit, rounds=20)) for name, method in found.items()
        }
    return {name: method if importlib.util.find_spec(method.peer) else None for name, method in found.items()}


def ours(smoke: bool) -> dict[str, Method]:
    """RankSVM, and additive models: linear part, steps, both, both with interactions, and the default choice."""
    C = Axis("C = 4^{}", range(-20, 16), -6, 0)
    steps = Axis(
        "steps {}",
        (0.00390625, 0.0078125, 0.015625, 0.03125, 0.0625, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0),
        0.5,
        2.0,
    )
    counts = Axis("{} interactions", (0, 4, 8, 16, 32, 64, 128, 256), 0, 16, bounded=True)
    found = {}
    for weighting in PAIR_WEIGHTINGS:
        kinds: dict[str, tuple[tuple[Axis, ...], Callable[..., dict[str, Any]]]] = {
            "linear part": ((C,), lambda: {"step_weight": 0.0}),
            "steps": ((C,), lambda: {"linear": False}),
            "linear part and steps": ((C, steps), lambda step_weight: {"step_weight": step_weight}),
            "linear part, steps and interactions": (
                (C, steps, counts),
                lambda step_weight, n: {"step_weight": step_weight, "interactions": n},
            ),
        }
        found[f"RankSVM, {weighting}"] = Method((C,), _rank_svm(weighting))
        found |= {
            f"additive, {name}, {weighting}": Method(axes, _additive(weighting, options))
            for name, (axes, options) in kinds.items()
        }
        found[f"AdditiveRankSVMCV, default, {weighting}"] = Method((), _chosen(weighting, 0))
    found["AdditiveRankSVMCV, interactions auto, gain_gap"] = Method((), _chosen("gain_gap", "auto"))
    return {name: _short(method, smoke) for name, method in found.items()}


def _short(method: Method, smoke: bool) -> Method:
    """The method; for a smoke run, with only two values of each parameter."""
    if not smoke:
        return method
    axes = []
    for axis in method.axes:
        start = list(axis.values).index(axis.first)
        values = tuple(axis.values[start : start + 2])
        axes.append(axis._replace(values=values, first=values[0], last=values[1], bounded=False))
    return method._replace(axes=tuple(axes))


# -- ours --------------------------------------------------------------------------------------------------------------


def _rank_svm(weighting: str) -> Callable[..., Fitted]:
    def fit(parts: Parts, threads: int, power: int) -> Fitted:
        data = parts.train
        model = RankSVM(C=4.0**power, pair_weighting=weighting, n_jobs=threads)
        return Fitted(model.fit(data.X, data.y, qid=data.qid).predict)

    return fit


def _additive(weighting: str, options: Callable[..., dict[str, Any]]) -> Callable[..., Fitted]:
    def fit(parts: Parts, threads: int, power: int, *values: float) -> Fitted:
        data = parts.train
        model = AdditiveRankSVM(C=4.0**power, pair_weighting=weighting, n_jobs=threads, **options(*values))
        return Fitted(model.fit(data.X, data.y, qid=data.qid).predict)

    return fit


def _chosen(weighting: str, interactions: Any) -> Callable[..., Fitted]:
    def fit(parts: Parts, threads: int) -> Fitted:
        train, vali = parts.train, parts.vali
        model = AdditiveRankSVMCV(pair_weighting=weighting, interactions=interactions, n_jobs=threads)
        model.fit(train.X, train.y, qid=train.qid, eval_set=[(vali.X, vali.y)], eval_qid=[vali.qid])
        chosen = f"C = 4^{np.log2(model.C_) / 2:g}, steps {model.step_weight_:g}, {model.n_interactions_} interactions"
        return Fitted(model.predict, chosen)

    return fit


# -- peers: whole queries, one seed, early stopping on the validation part ---------------------------------------------


def _lightgbm(parts: Parts, threads: int, leaves: int, rate: float, size: int, rounds: int = ROUNDS) -> Fitted:
    import lightgbm

    options = {"objective": "lambdarank", "num_leaves": leaves, "learning_rate": rate, "min_data_in_leaf": size}
    options |= {"metric": "ndcg", "eval_at": [10], "num_threads": threads, "seed": SEED, "verbose": -1}
    train = lightgbm.Dataset(parts.train.X, parts.train.y, group=parts.train.queries.sizes)
    vali = lightgbm.Dataset(parts.vali.X, parts.vali.y, group=parts.vali.queries.sizes, reference=train)
    stop = lightgbm.early_stopping(PATIENCE, verbose=False)
    model = lightgbm.train(options, train, rounds, valid_sets=[vali], callbacks=[stop])
    return Fitted(model.predict, f"{model.best_iteration} trees", model.best_iteration > rounds - PATIENCE)


def _xgboost(parts: Parts, threads: int, depth: int, rate: float, mass: float, rounds: int = ROUNDS) -> Fitted:
    import xgboost

    options = {"objective": "rank:ndcg", "max_depth": depth, "learning_rate": rate, "min_child_weight": mass}
    options |= {"eval_metric": "ndcg@10", "nthread": threads, "seed": SEED, "verbosity": 0}
    train, vali = (
        xgboost.DMatrix(part.X, part.y, qid=part.queries.numbers(), nthread=threads)
        for part in (parts.train, parts.vali)
    )
    model = xgboost.train(
        options, train, rounds, evals=[(vali, "vali")], early_stopping_rounds=PATIENCE, verbose_eval=False
    )
    best = model.best_iteration + 1

    def score(X: np.ndarray) -> np.ndarray:
        return model.predict(xgboost.DMatrix(X, nthread=threads), iteration_range=(0, best))

    return Fitted(score, f"{best} trees", best > rounds - PATIENCE)


def _catboost(parts: Parts, threads: int, depth: int, rate: float, penalty: float, rounds: int = ROUNDS) -> Fitted:
    import catboost

    options = {"loss_function": "YetiRank", "depth": depth, "learning_rate": rate, "l2_leaf_reg": penalty}
    options |= {"iterations": rounds, "od_type": "Iter", "od_wait": PATIENCE, "use_best_model": True}
    options |= {"eval_metric": "NDCG:top=10;type=Exp", "thread_count": threads, "random_seed": SEED}
    train, vali = (
        catboost.Pool(part.X, part.y, group_id=part.queries.numbers(), thread_count=threads)
        for part in (parts.train, parts.vali)
    )
    model = catboost.CatBoost({**options, "verbose": False, "allow_writing_files": False}).fit(train, eval_set=vali)
    best = model.tree_count_
    return Fitted(lambda X: model.predict(X, thread_count=threads), f"{best} trees", best > rounds - PATIENCE)


def _ebm(parts: Parts, threads: int, n_interactions: int, rate: float, smoothing: int, rounds: int = 50_000) -> Fitted:
    from interpret.glassbox import ExplainableBoostingRegressor

    data = parts.train
    model = ExplainableBoostingRegressor(
        interactions=n_interactions,
        learning_rate=rate,
        smoothing_rounds=smoothing,
        interaction_smoothing_rounds=smoothing,
        max_rounds=rounds,
        outer_bags=BAGS,
        n_jobs=threads,
        random_state=SEED,
    )
    model.fit(np.asarray(data.X), data.y, bags=_bags(data))
    return Fitted(lambda X: model.predict(np.asarray(X)))


def _bags(data: RankingData) -> np.ndarray:
    """For each bag: -1 for rows of queries that it holds out, and 1 for other rows."""
    rng, n_queries = np.random.default_rng(SEED), data.queries.n_queries
    numbers = data.queries.numbers()
    _, numbers = np.unique(numbers, return_inverse=True)
    held_out: Sequence[np.ndarray] = [
        rng.permutation(n_queries) < max(1, round(HELD_OUT * n_queries)) for _ in range(BAGS)
    ]
    return np.stack([np.where(out[numbers], -1, 1) for out in held_out], axis=1).astype(np.int8)
