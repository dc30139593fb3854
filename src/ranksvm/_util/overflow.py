"""Numbers beyond float64: infinite or NaN without a warning, and refused where results are made of them."""

import math
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from ranksvm.exceptions import DataError

__all__ = ["check_certificate", "overflow_refused", "quiet_overflow"]

_CURE = "features, weights of pairs or C are too large. Scale them down."


def quiet_overflow() -> np.errstate:
    """Context in which NumPy makes infinity or NaN of what overflows, without a warning: the results are checked."""
    return np.errstate(over="ignore", invalid="ignore", divide="ignore")


@contextmanager
def overflow_refused() -> Iterator[None]:
    """Context of a fit: `quiet_overflow`; arithmetic that raises an error because of such numbers raises DataError."""
    with quiet_overflow():
        try:
            yield
        except (OverflowError, np.linalg.LinAlgError) as error:
            raise DataError(f"The fit overflows float64 ({error}): {_CURE}") from error


def check_certificate(value: float, gap: float) -> None:
    """Raise DataError if an objective, or its duality gap, is not finite."""
    if not (math.isfinite(value) and math.isfinite(gap)):
        raise DataError(f"The objective and its duality gap overflow float64 ({value:g}, {gap:g}): {_CURE}")
