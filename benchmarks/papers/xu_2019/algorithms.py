"""Algorithms 1 and 2 as published, except for corrected signs, with fixed steps and with steps that always descend."""

from typing import Any

import numpy as np

from papers.items import Context
from papers.results import Grid, Part
from papers.xu_2019.published import QUALITY
from ranksvm import metrics
from ranksvm.datasets.ranking_data import RankingData
from ranksvm.estimators import FactorizedRankSVM, RegularizedRankSVM

__all__ = ["fixed_steps"]

# Lengths of steps and values of C in the ranges of the paper, and much shorter steps for comparison.
STEPS, CS = (0.1, 0.01, 0.001), (0.1, 1.0, 10.0)
SHORT = (1e-5, 1e-6)
COMPONENTS, EPOCHS, ROUNDS = 5, 500, 50
SHOWN = ("map", "ndcg@1", "ndcg@5")
SEED = 0


def fixed_steps(context: Context) -> list[Part]:
    """Both algorithms on the first fold of every data set."""
    epochs, rounds = (3, 3) if context.quick else (EPOCHS, ROUNDS)
    parts: list[Part] = [
        "Steps 0.1 to 0.001 and C from 0.1 to 10 are those that the paper searches (first folds, features as the files "
        f"have them, no choice by validation data; K = {COMPONENTS}, gamma = lambda = 1). The dual is minimized, and "
        "it is 0 at V = 0: an objective above 0 is worse than no model. Algorithm 1: "
        f'`FactorizedRankSVM(init="uniform", learning_rate=step)`, {epochs} epochs; "auto": exact line searches from '
        'the same start. Algorithm 2: `RegularizedRankSVM(solver="alternating", learning_rate=step)` from 0, '
        f'{rounds} rounds; "auto": 1 over the Lipschitz constant; the certificate is relative to the objective. With '
        "most of the published steps the objective rises about as often as it falls, because the factors jump from "
        "corner to corner of the box. A model chosen by early stopping on validation data would be one of such points.",
    ]
    for name in context.sources.here(QUALITY):
        train, test = context.sources.read(name), context.sources.read(name, part="test")
        context.say(f"{name}, Algorithm 1")
        parts += [f"## {name} fold 1, Algorithm 1", _factorized(name, train, test, epochs, context.quick)]
        context.say(f"{name}, Algorithm 2")
        parts += [f"## {name} fold 1, Algorithm 2", _regularized(name, train, test, rounds)]
    return parts


def _factorized(name: str, train: RankingData, test: RankingData, epochs: int, quick: bool) -> Grid:
    """Algorithm 1 with fixed steps from uniformly random factors, compared with line searches."""
    rows = []
    for C in CS[:1] if quick else CS:
        for step in (*STEPS, *SHORT, "auto"):
            model = FactorizedRankSVM(
                C,
                n_components=COMPONENTS,
                learning_rate=step,
                init="uniform",
                max_epochs=epochs,
                tol=1e-6,
                random_state=SEED,
            )
            model.fit(train.X, train.y, qid=train.qid)
            values, V = np.array(model.history_["objective"]), model.factors_
            V = V[V.any(axis=1)] if V.any() else V
            corner = np.mean(np.isclose(V, 0.0, atol=0.0) | np.isclose(V, np.sqrt(C / COMPONENTS)))
            cells = [f"{C:g}", step, f"{values[0]:.4g}", f"{values[-1]:.4g}", _rises(values), f"{corner:.0%}"]
            rows.append([*cells, *_quality(test, model.coef_)])
    header = ["C", "step", "objective after an epoch", "at the end", "epochs that rise", "entries at 0 or the bound"]
    return Grid(f"{name}-1", [*header, *(each.upper() for each in SHOWN)], rows)


def _regularized(name: str, train: RankingData, test: RankingData, rounds: int) -> Grid:
    """Algorithm 2 with fixed steps, compared with the default solver."""
    rows = []
    for C in CS[:2]:
        for step in (*STEPS, "auto", "splitting"):
            options: dict[str, Any] = {"solver": "alternating", "learning_rate": step, "max_iter": rounds}
            model = RegularizedRankSVM(C, **({} if step == "splitting" else options))
            model.fit(train.X, train.y, qid=train.qid)
            values = np.array(model.history_["objective"])
            gap, rank = f"{model.duality_gap_ / abs(model.objective_):.1e}", f"{np.median(model.ranks_):.0f}"
            solver = "default solver" if step == "splitting" else step
            cells = [f"{C:g}", solver, model.n_iter_, f"{values[-1]:.6g}", gap, _rises(values), rank]
            rows.append([*cells, *_quality(test, model.coef_)])
    header = ["C", "step", "rounds", "objective (15)", "certificate", "rounds that rise", "median rank"]
    return Grid(f"{name}-2", [*header, *(each.upper() for each in SHOWN)], rows)


def _rises(values: np.ndarray) -> str:
    return f"{np.sum(np.diff(values) > 0)} of {len(values) - 1}"


def _quality(test: RankingData, coef: np.ndarray) -> list[str]:
    means = metrics.evaluate(test.y, test.X @ coef, test.qid, SHOWN, convention="letor").means
    return [f"{means[name]:.4f}" for name in SHOWN]
