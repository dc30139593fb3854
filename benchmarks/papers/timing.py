"""Wall-clock times."""

import time
from collections.abc import Callable
from typing import Any

__all__ = ["least_seconds", "seconds"]


def seconds(action: Callable[[], Any]) -> float:
    """Time of one call."""
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def least_seconds(action: Callable[[], Any], repeats: int, long: float) -> float:
    """The shortest of several times of an action; only one call if it takes longer than ``long`` seconds."""
    first = seconds(action)
    return first if first > long else min([first, *(seconds(action) for _ in range(repeats - 1))])
