"""Simulated rankers, lists and users; estimates of the quality of rankers are compared with the true values."""

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np

from ranksvm import make_ranking, metrics
from ranksvm.clicks import ClickLog, PositionBias, attractiveness, simulate_clicks
from ranksvm.metrics.click_sums import exposures, gains, propensities

__all__ = ["BY_RANK", "FACTORS", "METRICS", "World", "worlds"]

N_DOCS = 20
NOISE = 0.1
METRICS = {
    "ips": ("dcg@10", "mrr@10", "mean_relevant_rank"),
    "snips": ("dcg@10",),
    "dr": ("dcg@10",),
}
# an estimator that divides each click by the propensity of its rank, whatever other lists show
BY_RANK = "rank dcg@10"
FACTORS: dict[str, tuple[Any, ...]] = {
    "n_rankers": (1, 2, 3, 4),
    "depth": (5, 10, N_DOCS),
    "swap": ("none", "top", "adjacent"),
    "model": ("position", "cascade", "trust"),
    "epsilon": (0.0, 0.05, 0.1, 0.2),
    "n_queries": (50, 200),
    "n_impressions": (5_000, 20_000, 50_000),
}


@dataclasses.dataclass(frozen=True)
class World:
    """Simulated rankers that show lists, and users who click on documents.

    Parameters
    ----------
    n_rankers : int
        Number of rankers that share the traffic.
    depth : int
        Length of the lists.
    swap : str
        Randomization of the lists, as for `simulate_clicks`.
    model : str
        How users click, as for `simulate_clicks`.
    epsilon : float
        Share of the impressions that show random documents in random order.
    n_queries, n_impressions : int
        Number of queries and of impressions.
    seed : int
        Seed of the random numbers.
    """

    n_rankers: int
    depth: int
    swap: str
    model: str
    epsilon: float
    n_queries: int
    n_impressions: int
    seed: int

    def estimates(self) -> list[dict[str, Any]]:
        """For each ranker, estimator and metric: the estimate, its interval, and the true value."""
        data = make_ranking(n_queries=self.n_queries, n_docs=N_DOCS, n_features=8, random_state=self.seed)
        rng = np.random.default_rng(self.seed)
        weights = rng.standard_normal((self.n_rankers + 1, 8))
        scores = {str(place): data.X @ weight for place, weight in enumerate(weights[:-1])}
        log = self._log(data, scores, rng)
        # a new ranker, whose lists are not in the log
        scores["new"] = data.X @ weights[-1]
        bias, relevance = self._truth(data)
        exposed = exposures(log, data, bias).exposure > 0
        results = []
        for ranker, values in scores.items():
            known = {"world": self.seed, "ranker": ranker}
            for estimator, names in METRICS.items():
                one = metrics.estimate(log, values, names, bias, data=data, estimator=estimator)
                for name in names:
                    kind = f"{estimator} {name}"
                    result = known | self._compared(data, values, kind, relevance, exposed)
                    low, high = one.intervals[name]
                    results.append(result | {"value": one[name], "low": low, "high": high, "unseen": one.unseen_share})
            value, half = _by_rank(log, data, values, bias)
            result = known | self._compared(data, values, BY_RANK, relevance, exposed) | {"unseen": one.unseen_share}
            results.append(result | {"value": value, "low": value - half, "high": value + half})
        return results

    @staticmethod
    def _compared(
        data: Any, scores: np.ndarray, kind: str, relevance: np.ndarray, exposed: np.ndarray
    ) -> dict[str, Any]:
        """The true values if all documents keep their relevance, and if only those that users could see keep it."""
        whole, seen = (true_value(data, scores, kind, r) for r in (relevance, relevance * exposed))
        return {"estimator": kind, "whole": whole, "seen": seen}

    def _log(self, data: Any, scores: dict[str, np.ndarray], rng: np.random.Generator) -> ClickLog:
        """A log with lists of the rankers, and lists in random order."""
        options = {"model": self.model, "noise": NOISE, "propensities": True}
        n_random = round(self.epsilon * self.n_impressions)
        parts = [
            simulate_clicks(
                data,
                scores,
                self.n_impressions - n_random,
                n_ranks=self.depth,
                swap=self.swap,
                random_state=rng,
                **options,
            )
        ]
        if n_random:
            whole = simulate_clicks(
                data, scores["0"], n_random, n_ranks=N_DOCS, swap="shuffle", random_state=rng, **options
            )
            parts.append(whole.top(self.depth))
        columns = {
            "query": [part.query_ids[part.query] for part in parts],
            "document": [part.document_ids[part.document] for part in parts],
            "rank": [part.rank for part in parts],
            "clicked": [part.clicked for part in parts],
            "propensity": [part.propensity for part in parts],
        }
        return ClickLog(**{name: np.concatenate(values) for name, values in columns.items()})

    def _truth(self, data: Any) -> tuple[Any, np.ndarray]:
        """Propensities of the users, and the relevance that clicks estimate with them."""
        rank = np.arange(1, N_DOCS + 1)
        if self.model == "position":
            return PositionBias.power(N_DOCS), attractiveness(data, NOISE)
        if self.model == "cascade":
            return "log", attractiveness(data, NOISE)
        relevant, other = 1 - (np.minimum(rank, 20) + 1) / 100, np.maximum(NOISE, 0.65 / np.minimum(rank, 10))
        return PositionBias((relevant - other) / rank, offset=other / rank), attractiveness(data, 0.0)


def _new_ranks(data: Any, scores: np.ndarray) -> np.ndarray:
    """Rank of each row within its query, from 1."""
    rank = np.empty(data.n_rows, dtype=np.int64)
    rank[np.lexsort((-scores, data.queries.numbers()))] = np.tile(np.arange(1, N_DOCS + 1), data.queries.n_queries)
    return rank


def _by_rank(log: ClickLog, data: Any, scores: np.ndarray, bias: Any) -> tuple[float, float]:
    """DCG@10 from clicks divided by the propensities of their ranks, and half the width of its interval."""
    rows = log.rows(data)
    rank = _new_ranks(data, scores)[rows]
    propensity = propensities(log, bias)
    relevance = np.divide(gains(log, bias), propensity, out=np.zeros(log.n_rows), where=propensity > 0)
    values = np.add.reduceat(np.where(rank <= 10, relevance / np.log2(1 + rank), 0.0), log.pointers[:-1])
    return float(values.mean()), float(1.959964 * values.std(ddof=1) / np.sqrt(len(values)))


def true_value(data: Any, scores: np.ndarray, kind: str, relevance: np.ndarray) -> float:
    """The true value for an estimator, if documents have this relevance and all queries are equally frequent."""
    order = np.lexsort((-scores, data.queries.numbers()))
    r, rank = relevance[order].reshape(-1, N_DOCS), np.arange(1, N_DOCS + 1)
    estimator, name = kind.split()
    if name == "mean_relevant_rank":
        return float((r * rank).sum() / r.sum())
    first = rank <= 10
    if name == "mrr@10":
        above = np.cumprod(np.column_stack((np.ones(len(r)), 1.0 - r[:, :-1])), axis=1)
        return float((r * above / rank)[:, first].sum(axis=1).mean())
    total = float((r / np.log2(1 + rank))[:, first].sum())
    return total / float(r.sum()) if estimator == "snips" else total / len(r)


def worlds(n: int, n_impressions: tuple[int, ...] = FACTORS["n_impressions"]) -> Iterator[World]:
    """Random combinations of all factors, in which each value of a factor is equally frequent."""
    rng = np.random.default_rng(0)
    factors = FACTORS | {"n_impressions": n_impressions}
    columns = {name: rng.permutation(np.arange(n) % len(values)) for name, values in factors.items()}
    for seed in range(n):
        yield World(seed=seed, **{name: values[columns[name][seed]] for name, values in factors.items()})
