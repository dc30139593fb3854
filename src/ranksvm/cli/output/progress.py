"""Progress of a command, on stderr: a live line on a terminal, plain lines elsewhere, nothing when quiet."""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING

from ranksvm._util.text import visible
from ranksvm._util.verbosity import LiveLine, is_passing, steps_of, terminal
from ranksvm.cli.output.tables import counted
from ranksvm.cli.terminal import say, takes_live_line

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["Progress", "Stopwatch"]

# Without a terminal, progress is printed if nothing has been printed for this number of seconds: logs then show it.
LONGEST_SILENCE = 10.0


class Stopwatch:
    """Measures the seconds spent on named tasks."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start


class Progress:
    """Shows steps, and the log records of ``ranksvm``, within a block.

    Each kind of step has a level: its texts are printed if ``verbose`` is at least this level. On a terminal, texts
    about iterations, and about one of many fits, are printed only with at least one -v. A text that is not printed
    appears in the live line of a terminal. Without a terminal, it is printed after all if nothing has been printed for
    `LONGEST_SILENCE` seconds.

    Parameters
    ----------
    quiet : bool
        Show nothing.
    verbose : int
        The level: how often -v was given.
    iterations_from : int
        Level from which iterations are printed.
    fits_from : int
        Level from which the other log records are printed, such as one for each fit of a comparison.

    Attributes
    ----------
    heading : str
        Text in front of the current step.
    n_fits : int or None
        Number of fits of all comparisons in the block; None: each comparison counts its own.
    """

    def __init__(self, quiet: bool = False, verbose: int = 0, *, iterations_from: int = 0, fits_from: int = 0):
        self.quiet = quiet
        self.heading = ""
        self.n_fits: int | None = None
        self._verbose = verbose
        self._iterations_from = iterations_from
        self._fits_from = fits_from
        self._n_done = 0
        self._done = ""
        self._printed_at = 0.0
        self._console: Console | None = None
        self._live: LiveLine | None = None
        self._handler = _Handler(self)
        self._logger = logging.getLogger("ranksvm")
        self._level = self._logger.level

    def __enter__(self) -> "Progress":
        if self.quiet:
            return self
        self._printed_at = time.monotonic()
        if takes_live_line():
            self._console = terminal()
            self._live = LiveLine(self._console)
        self._level = self._logger.level
        self._logger.setLevel(logging.INFO)
        self._logger.addHandler(self._handler)
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        if self.quiet:
            return
        self._logger.removeHandler(self._handler)
        self._logger.setLevel(self._level)
        if self._live is not None:
            self._live.stop()
            self._live = None

    def line(self, text: str) -> None:
        """Print a permanent line."""
        self._printed_at = time.monotonic()
        if self._console is not None:
            self._console.print(visible(text), markup=False)
        elif not self.quiet:
            say(text, err=True)

    def now(self, text: str) -> None:
        """Show the current step, after the ``heading``, in the live line of a terminal."""
        if self._live is not None:
            self._live.text = f"{self.heading}{text}"

    def megabytes(self, done: int, total: int) -> None:
        """Show how many of all bytes are done, in MB, as a bar in the live line of a terminal."""
        if self._live is None:
            return
        if done < total:
            self._live.steps(done // 1_000_000, max(1, total // 1_000_000), "MB")
        else:
            self._live.no_steps()

    def iteration(self, text: str) -> None:
        """Show an iteration."""
        self._pass(text, self._iterations_from, passes=True)

    def fit(self, text: str, steps: tuple[int, int] | None) -> None:
        """Show one of many fits, and how many are done."""
        self._n_done += steps is not None
        if steps is not None and self.n_fits is not None:
            steps = self._n_done, self.n_fits
        if steps is not None and self._live is not None:
            self._live.steps(*steps)
        self._done = "" if steps is None else f" ({steps[0]} of {counted(steps[1], 'fit')} done)"
        self._pass(text, self._fits_from, passes=steps is not None)

    def _pass(self, text: str, level: int, *, passes: bool) -> None:
        """Print a text if ``verbose`` is at least ``level``, or else show it in the live line.

        On a terminal, ``passes`` (the text is about one of many steps) raises the level to at least 1. Without a
        terminal, a text whose level is too high is printed after a long silence, with the number of fits done so far.
        """
        if self._verbose >= (max(1, level) if passes and self._live is not None else level):
            self.line(text)
        elif self._live is not None:
            self.now(text)
        elif time.monotonic() - self._printed_at > LONGEST_SILENCE:
            self.line(f"{self.heading}{text.strip()}{self._done}")


class _Handler(logging.Handler):
    """Turns log records into progress."""

    def __init__(self, progress: Progress):
        super().__init__(logging.INFO)
        self._progress = progress

    def emit(self, record: logging.LogRecord) -> None:
        try:
            text = record.getMessage()
            if record.levelno >= logging.WARNING:
                self._progress.line(text)
            elif is_passing(record):
                self._progress.iteration(f"  {text}")
            else:
                self._progress.fit(text, steps_of(record))
        except Exception:  # logging must never end a fit
            self.handleError(record)
