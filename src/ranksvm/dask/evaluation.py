"""Metrics on parts: scores stay where the rows are, sums over queries travel."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from distributed import Future

from ranksvm.dask.cluster import Cluster
from ranksvm.dask.rows import Rows
from ranksvm.data.linear_scores import linear_scores
from ranksvm.data.validation import check_scores
from ranksvm.metrics import Convention, Metric, evaluate
from ranksvm.objectives.tree_sum import tree_sum

__all__ = ["Sums", "evaluated"]


class Sums(NamedTuple):
    """Sums over queries, from which mean and standard error of a metric follow.

    Attributes
    ----------
    weight, value, weight2, value2, square2 : float
        Sums over the queries that have a value v of their weights w, of w v, of w^2, of w^2 v and of w^2 v^2.
    n : int
        Number of these queries.
    """

    weight: float
    value: float
    weight2: float
    value2: float
    square2: float
    n: int

    @classmethod
    def of(cls, values: np.ndarray, weights: np.ndarray) -> "Sums":
        """The sums of some queries."""
        there = (weights > 0.0) & ~np.isnan(values)
        v, w = values[there], weights[there]
        squares = w * w
        value, value2, square2 = float(w @ v), float(squares @ v), float(squares @ (v * v))
        return cls(float(w.sum()), value, float(squares.sum()), value2, square2, int(there.sum()))

    def plus(self, more: "Sums") -> "Sums":
        """The sums of both sets of queries."""
        return Sums._make(a + b for a, b in zip(self, more, strict=True))

    @property
    def mean(self) -> float:
        """The mean of the metric; NaN without a value."""
        return self.value / self.weight if self.weight > 0.0 else float("nan")

    @property
    def standard_error(self) -> float:
        """That of the mean: see `ranksvm.model_selection.choice.standard_error_over_queries`."""
        if self.n < 2:
            return float("nan")
        mean = self.mean
        squares = max(0.0, self.square2 - 2.0 * mean * self.value2 + mean * mean * self.weight2)
        return float(np.sqrt(self.n / (self.n - 1) * squares) / self.weight)


def evaluated(
    cluster: Cluster,
    rows: Sequence[Future],
    coefs: Sequence[np.ndarray],
    metrics: Sequence[Metric],
    convention: str | Convention = "default",
    held_out: np.ndarray | None = None,
) -> list[dict[str, Sums]]:
    """The metrics of several models on rows of a cluster.

    Parameters
    ----------
    cluster : Cluster
        The cluster.
    rows : sequence of Future
        The `Rows` of each part, whole queries.
    coefs : sequence of ndarray
        The weights of each model.
    metrics : sequence of Metric
        The metrics.
    convention : str or Convention
        Their definitions.
    held_out : ndarray of uint64, optional
        The hashes of the queries that count; None: all of them.

    Returns
    -------
    list of dict
        For each model the sums of each metric, by name.
    """
    client = cluster.client
    arguments = list(coefs), list(metrics), convention, held_out
    found = [client.submit(_evaluated, part, *arguments, pure=False) for part in rows]
    return tree_sum(cluster.results(found), _plus)


def _plus(a: list[dict[str, Sums]], b: list[dict[str, Sums]]) -> list[dict[str, Sums]]:
    return [{name: x[name].plus(y[name]) for name in x} for x, y in zip(a, b, strict=True)]


def _evaluated(
    rows: Rows, coefs: list[np.ndarray], metrics: list[Metric], convention: Any, held_out: np.ndarray | None
) -> list[dict[str, Sums]]:
    if held_out is not None:
        rows = rows.of_queries(held_out)
    return [sums_of(rows, coef, metrics, convention) for coef in coefs]


def sums_of(rows: Rows, coef: np.ndarray, metrics: list[Metric], convention: Any = "default") -> dict[str, Sums]:
    """The sums of each metric for one model on one part."""
    if not len(rows.y):
        return {metric.name: Sums(0.0, 0.0, 0.0, 0.0, 0.0, 0) for metric in metrics}
    scores = check_scores(linear_scores(rows.with_features(len(coef)).X, coef, 1))
    sample_weight, event = rows.weights.get("sample_weight"), rows.weights.get("event")
    options: dict[str, Any] = {"convention": convention, "sample_weight": sample_weight, "event": event}
    found = evaluate(rows.y, scores, rows.queries.numbers(), metrics, **options)
    return {name: Sums.of(found.per_query[name], found.weights[name]) for name in found.means}
