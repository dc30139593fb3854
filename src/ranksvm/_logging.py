"""What log records say of themselves beside their text."""

from typing import Any

__all__ = ["PASSING", "is_passing"]

# ``logger.info(..., extra=PASSING)``: the record tells how one step of many went, and the next one takes its place.
PASSING = {"ranksvm_passing": True}


def is_passing(record: Any) -> bool:
    """Whether a log record was written with `PASSING`."""
    return getattr(record, "ranksvm_passing", False)
