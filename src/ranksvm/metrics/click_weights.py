"""Propensities and clicks, less the offsets of their ranks: of the rows of a log, and of each document of a query."""

import dataclasses
from collections.abc import Iterator
from os import PathLike
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ranksvm.exceptions import DataError, OptionError

if TYPE_CHECKING:
    from ranksvm.datasets import RankingData

__all__ = [
    "Bias",
    "Exposures",
    "Log",
    "LogBlock",
    "check_bias",
    "check_log",
    "clip_of",
    "exposures",
    "gains",
    "list_exposures",
    "propensities",
    "unclipped",
]


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
        """The row of the data for each row."""


class Log(Protocol):
    """Either kind of log: `ClickLog` or `ClickLogFile`."""

    def blocks(self) -> Iterator[LogBlock]:
        """The log in parts."""


class RankBias(Protocol):
    """Propensities and offsets of ranks: `PositionBias`."""

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


def clip_of(bias: Bias) -> float:
    """Limit of the exposures; 0 limits nothing."""
    return 0.0 if bias is None or isinstance(bias, str) else bias.clip


def unclipped(bias: Bias) -> Bias:
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
    query, plain = data.queries.numbers(), unclipped(bias)
    impressions = np.zeros(data.queries.n_queries)
    exposure, gain, clicks = np.zeros((3, data.n_rows))
    for block in log.blocks():
        rows, propensity = block.rows(data), propensities(block, plain)
        exposure += np.bincount(rows, propensity, data.n_rows)
        gain += np.bincount(rows, gains(block, plain), data.n_rows)
        clicks += np.bincount(rows[block.clicked], minlength=data.n_rows)
        impressions += np.bincount(query[rows[block.pointers[:-1]]], minlength=len(impressions))
    return Exposures(query, impressions, exposure, gain, clicks, clip_of(bias))


def list_exposures(log: Log, bias: Bias) -> tuple[Exposures, np.ndarray]:
    """The sums for the rows of the log, as if each impression were a query, and the query of each impression."""
    plain, columns, sizes, queries = unclipped(bias), [], [], []
    for block in log.blocks():
        columns.append((propensities(block, plain), gains(block, plain), block.clicked.astype(np.float64)))
        sizes.append(np.diff(block.pointers))
        queries.append(block.query[block.pointers[:-1]])
    exposure, gain, clicks = (np.concatenate(column) for column in zip(*columns, strict=True))
    size = np.concatenate(sizes)
    impression = np.repeat(np.arange(len(size)), size)
    sums = Exposures(impression, np.ones(len(size)), exposure, gain, clicks, clip_of(bias))
    return sums, np.concatenate(queries)
