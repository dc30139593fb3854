"""What a click says about relevance: the click less its offset, over the propensity of its rank."""

from os import PathLike
from typing import Any

import numpy as np

from ranksvm.exceptions import DataError, OptionError

__all__ = ["check_bias", "check_log", "propensities", "relevances"]


def check_log(log: Any) -> None:
    """Refuse what is neither a `ClickLog` nor a `ClickLogFile`."""
    if not hasattr(log, "blocks"):
        hint = ": read it with ClickLog.read(path)" if isinstance(log, str | PathLike) else ""
        raise OptionError(f"log must be a ClickLog or a ClickLogFile, got {type(log).__name__}{hint}.")


def check_bias(bias: Any) -> None:
    """Refuse what is neither a `PositionBias`, "log" nor None."""
    if bias is None or (isinstance(bias, str) and bias == "log") or hasattr(bias, "at"):
        return
    raise OptionError(f"bias must be a PositionBias, 'log' (the log's own propensities) or None, got {bias!r}.")


def propensities(log: Any, bias: Any) -> np.ndarray:
    """Propensity of each row of a block of a log: those of the ranks, of the log itself, or 1."""
    if bias is None:
        return np.ones(log.n_rows)
    if isinstance(bias, str):
        if log.propensity is None:
            raise DataError("bias='log' needs propensities in the log, which has none.")
        return log.propensity
    return bias.at(log.rank)


def relevances(log: Any, bias: Any) -> np.ndarray:
    """Estimate of the relevance of each row of a block from its click."""
    if bias is None or isinstance(bias, str):
        return log.clicked / propensities(log, bias)
    return bias.relevance(log.rank, log.clicked)
