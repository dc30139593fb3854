"""Attributes of log records in addition to their text."""

from typing import Any

__all__ = ["PASSING", "is_passing"]

# ``logger.info(..., extra=PASSING)``: the record reports one step of many, and the next one replaces it.
PASSING = {"ranksvm_passing": True}


def is_passing(record: Any) -> bool:
    """Whether a log record was written with `PASSING`."""
    return getattr(record, "ranksvm_passing", False)
