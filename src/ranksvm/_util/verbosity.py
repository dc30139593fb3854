"""What ``verbose`` shows of a fit: log records, on stderr or as logging is configured, and a terminal's live line."""

import logging
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ranksvm._util.text import visible

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table

__all__ = ["LiveLine", "PASSING", "Steps", "is_passing", "steps_of", "terminal", "verbosity"]

# ``logger.info(..., extra=PASSING)``: the record reports one step of many, and the next one replaces it.
PASSING = {"ranksvm_passing": True}
# characters of the bar of a live line
BAR_WIDTH = 24


def is_passing(record: logging.LogRecord) -> bool:
    """Whether a log record was written with `PASSING`."""
    return getattr(record, "ranksvm_passing", False)


class Steps:
    """Counts the fits of a comparison: ``logger.info(..., extra=steps.next())`` says how many of all are done."""

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


# the loggers of records written with `PASSING`
_LOGGERS = ("ranksvm.solvers", "ranksvm.fits", "ranksvm.estimators")


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
    """Prints lines to stderr; on a terminal, a bar appears below them at the first record that counts steps."""

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


def terminal() -> "Console":
    """A console of rich that writes to stderr."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, soft_wrap=True)


class LiveLine:
    """A line at the bottom of a terminal, which disappears in the end."""

    def __init__(self, console: "Console"):
        from rich.live import Live
        from rich.spinner import Spinner

        self.text = ""
        self._console = console
        self._spinner = Spinner("dots" if console.encoding.startswith("utf") else "line")
        self._steps: tuple[int, int] | None = None
        self._unit = ""
        self._began = time.monotonic()
        self._live = Live(get_renderable=self._line, console=console, transient=True, refresh_per_second=10)
        self._live.start()

    def steps(self, done: int, total: int, unit: str = "") -> None:
        """Show a bar with the number of steps done, and their unit, if any."""
        if self._steps is None or done < self._steps[0]:
            self._began = time.monotonic()
        self._steps = (done, total)
        self._unit = f" {unit}" if unit else ""

    def no_steps(self) -> None:
        """Hide the bar."""
        self._steps = None

    def print(self, text: str) -> None:
        """Print a permanent line above the live line."""
        self._console.print(visible(text), markup=False)

    def stop(self) -> None:
        """Remove the line."""
        self._live.stop()

    def _line(self) -> "Table":
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        cells: list[RenderableType] = [self._spinner]
        if self._steps is not None:
            done, total = self._steps
            counted = f"{done} of {total}{self._unit}{self._left(done, total)}"
            cells += [ProgressBar(total, done, width=BAR_WIDTH), Text(counted)]
        line = Table.grid(padding=(0, 1))
        for _ in cells:
            line.add_column(no_wrap=True)
        line.add_column(no_wrap=True, overflow="ellipsis")
        line.add_row(*cells, Text(visible(self.text), no_wrap=True, overflow="ellipsis"))
        return line

    def _left(self, done: int, total: int) -> str:
        """The time left at the mean pace since the first step: too short if later fits, at larger C, take longer."""
        passed = time.monotonic() - self._began
        if done < 2 or done == total or passed < 2.0:
            return ""
        minutes, seconds = divmod(round(passed / (done - 1) * (total - done)), 60)
        return f", {minutes}:{seconds:02d} left"
