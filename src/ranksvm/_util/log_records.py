"""Attributes of log records in addition to their text."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from logging import LogRecord

__all__ = ["PASSING", "Steps", "is_passing", "steps_of"]

# ``logger.info(..., extra=PASSING)``: the record reports one step of many, and the next one replaces it.
PASSING = {"ranksvm_passing": True}


def is_passing(record: "LogRecord") -> bool:
    """Whether a log record was written with `PASSING`."""
    return getattr(record, "ranksvm_passing", False)


class Steps:
    """Counts the fits of a comparison: ``logger.info(..., extra=steps.next())`` says how many of all are done.

    Parameters
    ----------
    total : int
        Number of all fits.
    """

    def __init__(self, total: int):
        self.total = total
        self.done = 0

    def next(self) -> dict[str, tuple[int, int]]:
        """Count one more fit, and return the attributes of its log record."""
        self.done += 1
        return {"ranksvm_steps": (self.done, self.total)}


def steps_of(record: "LogRecord") -> tuple[int, int] | None:
    """Number of fits done and number of all fits, if a log record has them."""
    return getattr(record, "ranksvm_steps", None)
