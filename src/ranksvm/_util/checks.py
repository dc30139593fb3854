"""Validation of hyper-parameters before any work, with messages that state the allowed values."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from ranksvm._util.values import is_integer, is_number
from ranksvm.exceptions import OptionError


def positive(value: Any) -> str | None:
    """The error of a number that must be positive and finite; None if it is valid."""
    if _is_finite(value) and value > 0:
        return None
    return f"must be a positive, finite number, got {value!r}"


def not_negative(value: Any) -> str | None:
    """The error of a number that must be at least 0 and finite; None if it is valid."""
    if _is_finite(value) and value >= 0:
        return None
    return f"must be a finite number from 0, got {value!r}"


def count(value: Any, least: int = 1) -> str | None:
    """The error of a whole number that must be at least 1, or another number; None if it is valid."""
    if is_integer(value, least):
        return None
    return f"must be a whole number from {least}, got {value!r}"


def flag(value: Any) -> str | None:
    """The error of what must be True or False; None if it is valid."""
    return None if isinstance(value, bool | np.bool_) else f"must be True or False, got {value!r}"


def one_of(value: Any, names: Iterable[str]) -> str | None:
    """The error of the name of a choice; None if it is valid."""
    allowed = list(names)
    if isinstance(value, str) and value in allowed:
        return None
    return f"must be one of {', '.join(map(repr, allowed))}, got {value!r}"


def check(**complaints: str | None) -> None:
    """Raise OptionError for the first invalid parameter."""
    for name, complaint in complaints.items():
        if complaint is not None:
            raise OptionError(f"{name} {complaint}.")


def _is_finite(value: Any) -> bool:
    try:
        return is_number(value) and math.isfinite(value)
    except OverflowError:  # an integer that is too large for float64
        return False
