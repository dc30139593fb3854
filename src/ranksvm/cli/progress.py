"""What a command is doing, on stderr: a live line on a terminal, plain lines elsewhere, nothing when quiet."""

import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

import click

from ranksvm._logging import is_passing

__all__ = ["Progress", "Stopwatch"]


class Stopwatch:
    """Seconds spent, by name."""

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
    """Shows steps, and what the library logs under ``ranksvm`` while the block lasts.

    Parameters
    ----------
    quiet : bool
        Show nothing.
    iterations : bool
        Show iterations where there is no terminal too, each in a line of its own.
    log_passes : bool
        Everything that is logged is passing, not iterations alone: a command of many fits says itself what stays.
    """

    def __init__(self, quiet: bool = False, iterations: bool = True, log_passes: bool = False):
        self.quiet = quiet
        self.heading = ""
        self.log_passes = log_passes
        self._iterations = iterations
        self._console: Any = None
        self._status: Any = None
        self._handler = _Handler(self)
        self._logger = logging.getLogger("ranksvm")
        self._level = self._logger.level

    def __enter__(self) -> "Progress":
        if self.quiet:
            return self
        if sys.stderr.isatty():
            from rich.console import Console

            self._console = Console(stderr=True, highlight=False, soft_wrap=True)
            self._status = self._console.status("")
            self._status.start()
        self._level = self._logger.level
        self._logger.setLevel(logging.INFO)
        self._logger.addHandler(self._handler)
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        if self.quiet:
            return
        self._logger.removeHandler(self._handler)
        self._logger.setLevel(self._level)
        if self._status is not None:
            self._status.stop()
            self._status = None

    def line(self, text: str) -> None:
        """Print a line that stays."""
        if self._console is not None:
            self._console.print(text, markup=False)
        elif not self.quiet:
            click.echo(text, err=True)

    def now(self, text: str) -> None:
        """Say what is going on now, after the ``heading``, in a live line that the next one replaces, on a terminal."""
        if self._status is not None:
            from rich.text import Text

            self._status.update(Text(f"{self.heading}{text}"))

    def iteration(self, text: str) -> None:
        """Say how an iteration went: in the live line on a terminal, elsewhere in a line of its own where wanted."""
        if self._status is not None:
            self.now(text)
        elif self._iterations:
            self.line(text)


class _Handler(logging.Handler):
    """Log records become progress: iterations, values of C and epochs pass, all others stay."""

    def __init__(self, progress: Progress):
        super().__init__(logging.INFO)
        self._progress = progress

    def emit(self, record: logging.LogRecord) -> None:
        try:
            text = record.getMessage()
            passing = is_passing(record) or self._progress.log_passes
            if passing and record.levelno < logging.WARNING:
                self._progress.iteration(f"  {text}")
            else:
                self._progress.line(text)
        except Exception:  # logging must never end a fit
            self.handleError(record)
