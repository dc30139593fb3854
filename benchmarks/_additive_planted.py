"""Known interactions in generated data: how the bounds rank them, and how much functions of two features gain."""

import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from _additive_data import N_CURVED, NOISE, Planted, planted
from _additive_methods import peers
from _additive_speed import THREADS
from _common import table
from _pieces import Found, Section
from _widening import Axis, Grid
from ranksvm import AdditiveRankSVM, RankingData, RankSVM, metrics
from ranksvm.additive.interactions import all_pairs

MEASURE = "ndcg@10"
# LightGBM: learning rate, smallest size of a leaf, and largest number of trees.
RATE, LEAF, TREES = 0.1, 20, 3000

Fit = Callable[..., Any]


class Race:
    """Models of the same generated data; each has a row in the table.

    Parameters
    ----------
    made : Planted
        The data.
    """

    def __init__(self, made: Planted):
        self.parts = made.parts
        truth = [self.ndcg(part, value) for part, value in zip(made.parts[1:], made.truth[1:], strict=True)]
        self.rows = [["the true function, without noise", "", *map("{:.4f}".format, truth), ""]]

    def ndcg(self, part: RankingData, scores: np.ndarray) -> float:
        """NDCG@10 of the queries of a part."""
        return metrics.evaluate(part.y, scores, part.qid, MEASURE).means[MEASURE]

    def enter(self, name: str, setting: str, fit: Fit) -> tuple[Any, float]:
        """Fit a model and add its row to the table; return its scoring function and its NDCG on validation queries."""
        started = time.perf_counter()
        score = fit()
        taken = time.perf_counter() - started
        vali, test = (self.ndcg(part, np.asarray(score(part.X))) for part in self.parts[1:])
        self.rows.append([name, setting, f"{vali:.4f}", f"{test:.4f}", f"{taken:.1f}"])
        print(*self.rows[-1], file=sys.stderr, flush=True)
        return score, vali

    def best(self, name: str, axis: Axis, fit: Fit) -> float:
        """The value of the parameter that is best on validation queries; only its row stays in the table."""
        grid, before, entered = Grid((axis,), (MEASURE,)), list(self.rows), {}

        def try_out(value: float) -> float:
            _, vali = self.enter(name, axis.form.format(value), partial(fit, value))
            entered[value] = self.rows[-1]
            return vali

        grid.search(try_out, lambda vali: {MEASURE: vali})
        (value,) = grid.values(grid.best(MEASURE))
        self.rows = [*before, entered[value]]
        return value


def planted_pairs(n_queries: int, n_docs: int, n_features: int, n_planted: int, smoke: bool) -> dict[str, Any]:
    """Measure which pairs of features have the largest bounds, and how much their functions gain."""
    made = planted(n_queries, n_docs, n_features, n_planted)
    train, race, bounds = made.parts.train, Race(made), []

    def additive(power: int, n_interactions: int = 0) -> Fit:
        model = AdditiveRankSVM(C=4.0**power, interactions=n_interactions, n_jobs=THREADS)
        model.fit(train.X, train.y, qid=train.qid)
        if n_interactions:
            bounds.append([f"C = 4^{power}", *places(model.candidate_bounds_, made.pairs, n_features)])
        return model.predict

    def linear(power: int) -> Fit:
        return RankSVM(C=4.0**power, n_jobs=THREADS).fit(train.X, train.y, qid=train.qid).predict

    C = Axis("C = 4^{}", range(-20, 11), -6 if smoke else -9, -5 if smoke else -7)
    race.best("RankSVM", C, linear)
    power = int(race.best("additive", C, additive))
    for number in (n_planted // 2, n_planted, 2 * n_planted):
        race.enter(f"additive, {number} interactions", f"C = 4^{power}", partial(additive, power, number))
    del bounds[1:]  # the bounds are the same for any number of functions
    for other in (power - 2, power + 2):
        race.enter(f"additive, {n_planted} interactions", f"C = 4^{other}", partial(additive, other, n_planted))
    _enter_boosting(race, smoke)
    n_rows = sum(part.n_rows for part in made.parts)
    shape = f"{n_rows:,} x {n_features}, {train.n_rows:,} rows to learn from"
    return {"shape": shape, "n_planted": n_planted, "bounds": bounds, "rows": race.rows}


def _enter_boosting(race: Race, smoke: bool) -> None:
    """Add the row of LightGBM with the best number of leaves."""
    method = peers(smoke)["LightGBM lambdarank"]
    if method is None:
        return
    trees = 20 if smoke else TREES
    axis = Axis("{} leaves", (2, 3, 4, 8, 16, 32, 64, 128), 4, 8 if smoke else 16, bounded=True)

    def boosting(leaves: int) -> Fit:
        return method.fit(race.parts, THREADS, leaves, RATE, LEAF, rounds=trees).score

    race.best("LightGBM lambdarank", axis, boosting)


def places(bounds: np.ndarray, pairs: list[tuple[int, int]], n_features: int) -> list[str]:
    """A table row: ranks of some pairs when sorted by bound, their bounds, the largest other bound, number of pairs."""
    numbers = {tuple(pair): number for number, pair in enumerate(all_pairs(n_features).tolist())}
    chosen = np.array([numbers[pair] for pair in pairs])
    place = np.argsort(np.argsort(-bounds, kind="stable"))[chosen] + 1
    others = np.delete(bounds, chosen).max()
    largest, least = bounds[chosen].max(), bounds[chosen].min()
    return [", ".join(map(str, np.sort(place))), f"{largest:.4g} to {least:.4g}", f"{others:.4g}", f"{len(bounds):,}"]


def planted_in_words(found: list[Found]) -> list[str]:
    """The part of the page about known interactions."""
    parts = [
        "## Planted interactions",
        f"Uniform features; a function with {N_CURVED} curved effects, and products of two centered features; noise of "
        f"{NOISE:g} times its standard deviation; 4 levels. Bounds are those without interactions: what a function of "
        "two features could lower the objective by at most. C is chosen by NDCG@10 on the validation queries, for the "
        "additive model without interactions; interactions are then added at that C and two others. LightGBM: the best "
        f"number of leaves on the validation queries, rate {RATE:g}, early stopping, up to {TREES:,} trees. Seconds "
        f"are for one fit with {THREADS} threads.",
    ]
    for each in found:
        value = each.value
        header = ["C", f"places of the {value['n_planted']} planted", "their bounds", "largest of the others", "pairs"]
        parts += [f"### {value['shape']}", table(header, value["bounds"])]
        parts.append(table(["model", "setting", "NDCG@10, validation", "test", "fit, s"], value["rows"]))
    return parts


def planted_section(smoke: bool) -> Section:
    """The section with its measurements; a smoke run has tiny sizes."""
    shapes = ((60, 20, 8, 2),) if smoke else ((500, 100, 60, 10), (10_000, 100, 60, 10))
    pieces = {f"{q * d:,} x {n}": partial(planted_pairs, q, d, n, k, smoke) for q, d, n, k in shapes}
    return Section("planted", pieces, planted_in_words)
