"""Sums over a click log for estimates of a new ranker: errors, weights of clicks, documents that were never shown."""

import dataclasses
from typing import Any

import numpy as np
from scipy.special import ndtri

from ranksvm.metrics.click_weights import Bias, Exposures, LogBlock, gains, propensities, unclipped

__all__ = ["Deviation", "Documents", "Residuals", "Support", "doubly_robust", "inverse_exposure", "weight_facts"]

# The relevance of a document is shrunk toward the mean of all documents, which has the weight of this much exposure.
_PRIOR = 1.0
# ranks of the new ranker whose documents should have been shown
_FIRST = 10


@dataclasses.dataclass(frozen=True)
class Documents:
    """Estimated relevance of the rows, and its derivative with respect to their sums of clicks."""

    relevance: np.ndarray
    slope: np.ndarray


def inverse_exposure(sums: Exposures) -> Documents:
    """Relevance by clicks alone: clicks minus offsets, divided by the exposure."""
    return Documents(sums.per_exposure(sums.gain), sums.per_exposure(np.ones(len(sums.gain))))


def doubly_robust(sums: Exposures, regression: np.ndarray | None) -> Documents:
    """A regression of relevance, corrected by the difference between the clicks and what it predicts.

    Without a regression, its place is taken by the relevance by clicks, shrunk to the mean of all documents.
    """
    slope = sums.per_exposure(np.ones(len(sums.gain)))
    if regression is None:
        total = sums.exposure + _PRIOR
        regression = (sums.gain + _PRIOR * _mean_relevance(sums)) / total
        relevance = regression + slope * (sums.gain - sums.exposure * regression)
        return Documents(relevance, np.where(sums.exposure > 0, (1.0 - slope * sums.exposure) / total + slope, 0.0))
    return Documents(regression + slope * (sums.gain - sums.exposure * regression), slope)


def _mean_relevance(sums: Exposures) -> float:
    """Mean relevance of what users saw."""
    return float(sums.gain.sum() / max(float(sums.exposure.sum()), 1e-300))


@dataclasses.dataclass(frozen=True)
class Deviation:
    """A metric, and what each query and each row contribute to its error.

    Parameters
    ----------
    value : float
        The metric: a sum over impressions divided by ``size``.
    size : float
        Number of impressions, or estimated number of relevant documents.
    query : ndarray of float64, shape (n_queries,)
        What an impression of the query adds to ``size * value``, minus ``value`` times what it adds to ``size``.
    row : ndarray of float64, shape (n_rows,)
        Derivative of ``query`` with respect to the relevance of each row.
    """

    value: float
    size: float
    query: np.ndarray
    row: np.ndarray

    def interval(self, square: float, n_units: int, confidence: float) -> tuple[float, float]:
        """Ends of the normal interval, from the sum of the squares over the independent units."""
        if n_units < 2 or not np.isfinite(self.value):
            return np.nan, np.nan
        error = np.sqrt(square * n_units / (n_units - 1)) / self.size
        half = float(ndtri(0.5 + confidence / 2)) * error
        return float(self.value - half), float(self.value + half)


class Residuals:
    """Sums of squares of the errors that the clicks of each impression add to estimates, without the errors of queries.

    The error of a query's estimate is a sum over its impressions of ``click - offset - propensity r(d)`` times
    derivatives of the estimate. r(d) is the relevance by the other impressions, shrunk to the mean of all documents: if
    the impression itself counted, a document that was shown once would have no error.
    """

    def __init__(self, sums: Exposures, bias: Bias, slopes: list[np.ndarray]):
        self._sums, self._bias = sums, unclipped(bias)
        self._mean = _mean_relevance(sums)
        self._slopes = [slope * sums.impressions_by_row for slope in slopes]
        # the squared deviations of the queries already include the share 1 / impressions of this variance
        self._share = 1.0 - 1.0 / np.maximum(sums.impressions, 1.0)
        self.squares = np.zeros(len(slopes))

    def add(self, block: LogBlock, rows: np.ndarray) -> None:
        """Add the impressions of a block; ``rows`` has the row of the data for each of its rows."""
        sums, propensity, gain = self._sums, propensities(block, self._bias), gains(block, self._bias)
        others = (sums.gain[rows] - gain + _PRIOR * self._mean) / (sums.exposure[rows] - propensity + _PRIOR)
        residual = gain - propensity * others
        starts = block.pointers[:-1]
        share = self._share[sums.query[rows[starts]]]
        for place, slope in enumerate(self._slopes):
            self.squares[place] += share @ np.add.reduceat(residual * slope[rows], starts) ** 2


class Support:
    """Which documents at the first ranks of the new ranker users could see: in any list, and in each ranker's lists.

    Documents are weighted by the DCG discount of their rank and the number of impressions of their query.
    """

    def __init__(self, sums: Exposures, rank: np.ndarray):
        first = np.flatnonzero(rank <= _FIRST)
        self._place = np.full(len(rank), -1)
        self._place[first] = np.arange(len(first))
        weight = sums.impressions_by_row[first] / np.log2(1.0 + rank[first])
        self._weight = weight / max(float(weight.sum()), 1e-300)
        self._exposed = sums.exposure[first] > 0
        self._shown = np.zeros((0, len(first)), dtype=bool)
        self._names: list[Any] = []

    def add(self, block: LogBlock, rows: np.ndarray) -> None:
        """Add the impressions of a block; ``rows`` has the row of the data for each of its rows."""
        if block.ranker is None:
            return
        self._names = block.ranker_names
        more = len(self._names) - len(self._shown)
        self._shown = np.pad(self._shown, ((0, more), (0, 0)))
        place = self._place[rows]
        first = place >= 0
        self._shown[block.ranker[first], place[first]] = True

    @property
    def unseen_share(self) -> float:
        """Share of the first documents that no user could see."""
        return float(self._weight @ ~self._exposed)

    @property
    def unseen_by_ranker(self) -> dict[str, float]:
        """Share of the first documents that each ranker never showed."""
        shares = (~self._shown) @ self._weight
        return {str(name): float(share) for name, share in zip(self._names, shares, strict=True)}


def weight_facts(sums: Exposures) -> tuple[int, float, float]:
    """Number of clicks, their effective number, and the share of the weight in the top 1 % of the clicks."""
    clicked = np.flatnonzero(sums.clicks)
    weight, counts = sums.click_weight[clicked], sums.clicks[clicked]
    order = np.argsort(-weight, kind="stable")
    weight, counts = weight[order], counts[order]
    n, total = counts.sum(), weight @ counts
    if not n:
        return 0, 0.0, np.nan
    taken = np.clip(max(1.0, 0.01 * n) - (np.cumsum(counts) - counts), 0.0, counts)
    return int(n), float(total**2 / (weight**2 @ counts)), float(weight @ taken / total)
