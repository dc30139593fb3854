"""Propensities of the rows of a log, and their clicks minus the offsets of their ranks."""

from collections.abc import Iterator
from os import PathLike
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ranksvm.exceptions import DataError, OptionError

if TYPE_CHECKING:
    from ranksvm.datasets import RankingData

__all__ = ["Bias", "Log", "LogBlock", "check_bias", "check_log", "clip_of", "gains", "propensities", "unclipped"]


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
