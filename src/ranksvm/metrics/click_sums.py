"""Sums over a click log, by document: propensities, and clicks minus offsets; and errors of estimates from them."""

import dataclasses
from collections.abc import Iterator
from os import PathLike
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from scipy.special import ndtri

from ranksvm.exceptions import DataError, OptionError

if TYPE_CHECKING:
    from ranksvm.datasets import RankingData

__all__ = [
    "Bias",
    "Deviation",
    "Documents",
    "Exposures",
    "Log",
    "Residuals",
    "Support",
    "check_bias",
    "check_log",
    "doubly_robust",
    "exposures",
    "gains",
    "inverse_exposure",
    "list_exposures",
    "propensities",
    "weight_facts",
]

# The relevance of a document is shrunk toward the mean of all documents, as if the mean had been observed at the
# document with this much exposure.
_PRIOR = 1.0
# number of first ranks of the new ranker whose documents `Support` looks for in the lists of the log
_FIRST = 10


class LogBlock(Protocol):
    """Whole impressions of a log: `ClickLog`."""

    pointers: np.ndarray
    query: np.ndarray
    rank: np.ndarray
    clicked: np.ndarray
    propensity: np.ndarray | None
    ranker: np.ndarray | None
    ranker_names: list[Any]

    @property
    def n_rows(self) -> int:
        """Number of rows."""

    def rows(self, data: "RankingData") -> np.ndarray:
        """For each row of the log, its row in the data."""


class Log(Protocol):
    """Either kind of log: `ClickLog` or `ClickLogFile`."""

    def blocks(self) -> Iterator[LogBlock]:
        """The log, in blocks of whole impressions."""


class RankBias(Protocol):
    """Click probability at each rank, ``propensity * relevance + offset``: `PositionBias`."""

    @property
    def clip(self) -> float:
        """Lower limit of mean exposures."""

    def at(self, rank: np.ndarray) -> np.ndarray:
        """Propensity of each rank."""

    def offset_at(self, rank: np.ndarray) -> np.ndarray:
        """Offset of each rank."""

    def clipped(self, clip: float) -> "RankBias":
        """The same with another limit."""


# "log" for the propensities that the log has; None for 1
Bias = RankBias | str | None


def check_log(log: object) -> None:
    """Raise OptionError unless ``log`` is a `ClickLog` or a `ClickLogFile`."""
    if not hasattr(log, "blocks"):
        hint = ": read it with ClickLog.read(path)" if isinstance(log, str | PathLike) else ""
        raise OptionError(f"log must be a ClickLog or a ClickLogFile, got {type(log).__name__}{hint}.")


def check_bias(bias: object) -> None:
    """Raise OptionError unless ``bias`` is a `PositionBias`, "log" or None."""
    if bias is None or (isinstance(bias, str) and bias == "log") or hasattr(bias, "at"):
        return
    raise OptionError(f"bias must be a PositionBias, 'log' (the log's own propensities) or None, got {bias!r}.")


def propensities(log: LogBlock, bias: Bias) -> np.ndarray:
    """Propensity of each row of a block of a log: by its rank, from the log itself, or 1."""
    if bias is None:
        return np.ones(log.n_rows)
    if isinstance(bias, str):
        if log.propensity is None:
            raise DataError("bias='log' needs propensities in the log, which has none.")
        return log.propensity
    return bias.at(log.rank)


def gains(log: LogBlock, bias: Bias) -> np.ndarray:
    """Click of each row of a block, minus the offset of its rank."""
    clicked = log.clicked.astype(np.float64)
    return clicked if bias is None or isinstance(bias, str) else clicked - bias.offset_at(log.rank)


def _clip_of(bias: Bias) -> float:
    """Lower limit of the mean exposures; 0 if there is none."""
    return 0.0 if bias is None or isinstance(bias, str) else bias.clip


def _unclipped(bias: Bias) -> Bias:
    """The propensities without their limit, which applies to mean exposures."""
    return bias if bias is None or isinstance(bias, str) else bias.clipped(0.0)


@dataclasses.dataclass(frozen=True, eq=False)
class Exposures:
    """Sums over the impressions of each query, whichever ranker made them; a row is a document of a query.

    Parameters
    ----------
    query : ndarray of int64, shape (n_rows,)
        Number of the query of each row.
    impressions : ndarray of float64, shape (n_queries,)
        Number of impressions of each query.
    exposure : ndarray of float64, shape (n_rows,)
        Sum of the propensities of the ranks at which the row was shown.
    gain : ndarray of float64, shape (n_rows,)
        Sum of the clicks, minus the offsets of these ranks.
    clicks : ndarray of float64, shape (n_rows,)
        Number of clicks.
    clip : float
        Lower limit of the mean exposures: smaller ones are raised to it.
    """

    query: np.ndarray
    impressions: np.ndarray
    exposure: np.ndarray
    gain: np.ndarray
    clicks: np.ndarray
    clip: float

    @property
    def impressions_by_row(self) -> np.ndarray:
        """Number of impressions of the query of each row."""
        return self.impressions[self.query]

    @property
    def limited(self) -> np.ndarray:
        """The exposure, at least ``clip`` times the number of impressions."""
        return np.maximum(self.exposure, self.clip * self.impressions_by_row)

    def per_exposure(self, values: np.ndarray) -> np.ndarray:
        """Values of the rows divided by the limited exposure; 0 for rows that users did not see."""
        return np.divide(values, self.limited, out=np.zeros(len(values)), where=self.exposure > 0)

    @property
    def click_weight(self) -> np.ndarray:
        """Weight of a click on each row: 1 over its mean exposure; 0 for rows that users did not see."""
        return self.per_exposure(self.impressions_by_row)


def exposures(log: Log, data: "RankingData", bias: Bias) -> Exposures:
    """The sums for the rows of the data, in one pass over the log."""
    query, plain = data.queries.numbers(), _unclipped(bias)
    impressions = np.zeros(data.queries.n_queries)
    exposure, gain, clicks = np.zeros((3, data.n_rows))
    for block in log.blocks():
        rows, propensity = block.rows(data), propensities(block, plain)
        exposure += np.bincount(rows, propensity, data.n_rows)
        gain += np.bincount(rows, gains(block, plain), data.n_rows)
        clicks += np.bincount(rows[block.clicked], minlength=data.n_rows)
        impressions += np.bincount(query[rows[block.pointers[:-1]]], minlength=len(impressions))
    return Exposures(query, impressions, exposure, gain, clicks, _clip_of(bias))


def list_exposures(log: Log, bias: Bias) -> tuple[Exposures, np.ndarray]:
    """The sums for the rows of the log, as if each impression were a query, and the query of each impression."""
    plain, columns, sizes, queries = _unclipped(bias), [], [], []
    for block in log.blocks():
        columns.append((propensities(block, plain), gains(block, plain), block.clicked.astype(np.float64)))
        sizes.append(np.diff(block.pointers))
        queries.append(block.query[block.pointers[:-1]])
    exposure, gain, clicks = (np.concatenate(column) for column in zip(*columns, strict=True))
    size = np.concatenate(sizes)
    impression = np.repeat(np.arange(len(size)), size)
    sums = Exposures(impression, np.ones(len(size)), exposure, gain, clicks, _clip_of(bias))
    return sums, np.concatenate(queries)


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
    """For each estimate, the squared errors due to clicks, summed over impressions; the choice of queries adds others.

    The error of a query's estimate is a sum over its impressions of ``click - offset - propensity r(d)`` times
    derivatives of the estimate. r(d) is the relevance by the other impressions, shrunk to the mean of all documents: if
    the impression itself counted, a document that was shown once would have no error.
    """

    def __init__(self, sums: Exposures, bias: Bias, slopes: list[np.ndarray]):
        self._sums, self._bias = sums, _unclipped(bias)
        self._mean = _mean_relevance(sums)
        self._slopes = [slope * sums.impressions_by_row for slope in slopes]
        # the squared deviations of the queries already include the share 1 / impressions of this variance
        self._share = 1.0 - 1.0 / np.maximum(sums.impressions, 1.0)
        self.squares = np.zeros(len(slopes))

    def add(self, block: LogBlock, rows: np.ndarray) -> None:
        """Add the impressions of a block; ``rows`` has, for each row of the block, its row in the data."""
        sums, propensity, gain = self._sums, propensities(block, self._bias), gains(block, self._bias)
        others = (sums.gain[rows] - gain + _PRIOR * self._mean) / (sums.exposure[rows] - propensity + _PRIOR)
        residual = gain - propensity * others
        starts = block.pointers[:-1]
        share = self._share[sums.query[rows[starts]]]
        for place, slope in enumerate(self._slopes):
            self.squares[place] += share @ np.add.reduceat(residual * slope[rows], starts) ** 2


class Support:
    """Which documents at the new ranker's first ranks users could see, in any list and in the lists of each ranker.

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
        """Add the impressions of a block; ``rows`` has, for each row of the block, its row in the data."""
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
