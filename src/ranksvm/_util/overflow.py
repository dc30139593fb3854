"""Overflow of float64: no warnings from NumPy, but an error for a result that is not finite."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from ranksvm.exceptions import DataError

__all__ = ["overflow_of_certificate", "overflow_refused", "quiet_overflow"]

_CURE = "features, weights of pairs or C are too large. Scale them down."


def quiet_overflow() -> np.errstate:
    """Context without NumPy's warnings of overflow: values become infinity or NaN; the caller checks the results."""
    return np.errstate(over="ignore", invalid="ignore", divide="ignore")


@contextmanager
def overflow_refused() -> Iterator[None]:
    """Context of a fit: like `quiet_overflow`, and arithmetic errors that overflow causes become a DataError."""
    with quiet_overflow():
        try:
            yield
        except (OverflowError, np.linalg.LinAlgError) as error:
            raise DataError(f"The fit overflows float64 ({error}): {_CURE}") from error


def overflow_of_certificate(value: float, gap: float) -> DataError:
    """The error to raise for an objective or a duality gap that is not finite."""
    return DataError(f"The objective and its duality gap overflow float64 ({value:g}, {gap:g}): {_CURE}")
