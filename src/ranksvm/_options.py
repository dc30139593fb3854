"""Hyper-parameters checked before any work, with a sentence that says what is allowed."""

import logging
import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from ranksvm._checks import is_integer, is_number
from ranksvm.exceptions import OptionError


def positive(value: Any) -> str | None:
    """What is wrong with a number that must be positive and finite; None if nothing is."""
    if _is_finite(value) and value > 0:
        return None
    return f"must be a positive, finite number, got {value!r}"


def not_negative(value: Any) -> str | None:
    """What is wrong with a number that must be at least 0 and finite; None if nothing is."""
    if _is_finite(value) and value >= 0:
        return None
    return f"must be a finite number from 0, got {value!r}"


def count(value: Any) -> str | None:
    """What is wrong with a whole number that must be at least 1."""
    if is_integer(value, 1):
        return None
    return f"must be a whole number from 1, got {value!r}"


def one_of(value: Any, names: Iterable[str]) -> str | None:
    """What is wrong with the name of a choice."""
    allowed = list(names)
    if isinstance(value, str) and value in allowed:
        return None
    return f"must be one of {', '.join(map(repr, allowed))}, got {value!r}"


def check(**complaints: str | None) -> None:
    """Raise OptionError for the first parameter with a complaint."""
    for name, complaint in complaints.items():
        if complaint is not None:
            raise OptionError(f"{name} {complaint}.")


def _is_finite(value: Any) -> bool:
    return is_number(value) and math.isfinite(value)


@contextmanager
def verbosity(verbose: int) -> Iterator[None]:
    """Show the iterations while it lasts, if asked for: on stderr, or wherever logging was configured to go."""
    if not verbose:
        yield
        return
    logger = logging.getLogger("ranksvm")
    level = logger.level
    handler = None if logger.hasHandlers() else logging.StreamHandler()
    if handler is not None:
        handler.setFormatter(logging.Formatter("%(message)s"))
        logger.addHandler(handler)
    if not logger.isEnabledFor(logging.INFO):
        logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.setLevel(level)
        if handler is not None:
            logger.removeHandler(handler)
