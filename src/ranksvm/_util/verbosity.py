"""What ``verbose`` shows of a fit, on stderr or as configured in logging, and attributes of log records."""

import logging
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from ranksvm._util.live_line import LiveLine, terminal
from ranksvm._util.text import visible

__all__ = ["PASSING", "Steps", "is_passing", "steps_of", "verbosity"]

# ``logger.info(..., extra=PASSING)``: the record reports one step of many, and the next one replaces it.
PASSING = {"ranksvm_passing": True}


def is_passing(record: logging.LogRecord) -> bool:
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


def steps_of(record: logging.LogRecord) -> tuple[int, int] | None:
    """Number of fits done and number of all fits, if a log record has them."""
    return getattr(record, "ranksvm_steps", None)


# the loggers that report single steps
_LOGGERS = ("ranksvm.solvers", "ranksvm.estimators")


@contextmanager
def verbosity(verbose: int, iterations_from: int = 1) -> Iterator[None]:
    """Context that shows the log of a fit, if requested.

    Parameters
    ----------
    verbose : int
        0 shows nothing; larger values show the log.
    iterations_from : int
        The smallest value of ``verbose`` that shows the iterations of solvers. It is 2 for a comparison of many fits,
        which shows one line for each fit, and a progress bar on a terminal.
    """
    if not verbose:
        yield
        return
    logger = logging.getLogger("ranksvm")
    level = logger.level
    handler = None if logger.hasHandlers() else _Lines()
    fewer = _WithoutIterations() if verbose < iterations_from else None
    if handler is not None:
        logger.addHandler(handler)
    if fewer is not None:
        for name in _LOGGERS:
            logging.getLogger(name).addFilter(fewer)
    if not logger.isEnabledFor(logging.INFO):
        logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.setLevel(level)
        if fewer is not None:
            for name in _LOGGERS:
                logging.getLogger(name).removeFilter(fewer)
        if handler is not None:
            logger.removeHandler(handler)
            handler.close()


class _WithoutIterations(logging.Filter):
    """Hides the iterations of the fits in this thread."""

    def __init__(self) -> None:
        super().__init__()
        self._thread = threading.get_ident()

    def filter(self, record: logging.LogRecord) -> bool:
        return not (is_passing(record) and threading.get_ident() == self._thread)


class _Lines(logging.Handler):
    """Lines on stderr; on a terminal, with a bar below them from the first record that counts steps."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self._live: LiveLine | None = None

    def emit(self, record: logging.LogRecord) -> None:
        try:
            steps = steps_of(record)
            if steps is not None and self._live is None and sys.stderr.isatty():
                self._live = LiveLine(terminal())
            if self._live is None:
                print(visible(record.getMessage()), file=sys.stderr)
                return
            if steps is not None:
                self._live.steps(*steps)
            self._live.print(record.getMessage())
        except Exception:  # logging must never end a fit
            self.handleError(record)

    def close(self) -> None:
        if self._live is not None:
            self._live.stop()
        super().close()
