"""What a row of a log says: how likely it was examined, and its click less what its rank alone would bring."""

from os import PathLike
from typing import Any

import numpy as np

from ranksvm.exceptions import DataError, OptionError

__all__ = ["check_bias", "check_log", "clip_of", "gains", "propensities", "unclipped"]


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


def gains(log: Any, bias: Any) -> np.ndarray:
    """Click of each row of a block, less the offset of its rank."""
    clicked = log.clicked.astype(np.float64)
    return clicked if bias is None or isinstance(bias, str) else clicked - bias.offset_at(log.rank)


def clip_of(bias: Any) -> float:
    """Limit of the exposures; 0 limits nothing."""
    return 0.0 if bias is None or isinstance(bias, str) else bias.clip


def unclipped(bias: Any) -> Any:
    """The propensities without their limit, which applies to mean exposures."""
    return bias if bias is None or isinstance(bias, str) else bias.clipped(0.0)
