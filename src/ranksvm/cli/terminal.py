"""What the command writes: standard streams in any condition, and text from data that cannot steer a terminal.

A stream may be closed, full, or unable to express a character. A command ends with the exit code of what it did: nobody
has to hear its progress, but a result that standard output does not take is an error.
"""

import codecs
import contextlib
import io
import os
import sys
from collections.abc import Iterator
from typing import Any, TextIO

import click

from ranksvm._util.text import visible

__all__ = ["print_data", "say", "standard_streams", "takes_color", "takes_live_line"]

# What stands for characters that an encoding lacks; others are escaped as Python writes them.
_SPELLED = {"±": "+-", "─": "-", "━": "-", "╸": "-", "╺": "-", **dict.fromkeys("▏▎▍▌▋▊▉█▐▕", "#")}
_ERRORS = "ranksvm.spelled"


def say(text: str = "", *, err: bool = False, fg: str | None = None, bold: bool | None = None) -> None:
    """Print text for people, in which control characters, as of names in data, are escaped."""
    # the stream by name: without it click takes UTF-8 where the locale is ASCII
    click.secho(visible(text), file=sys.stderr if err else sys.stdout, fg=fg, bold=bold)


def print_data(text: str) -> None:
    """Print a line of data on stdout: as it is, in UTF-8 as in a file; on a terminal as `say` does."""
    if sys.stdout.isatty():
        say(text)
    else:
        click.echo(text.encode("utf-8", "surrogateescape"))


def takes_color() -> bool:
    """Whether the user wants colors, and the terminal has them."""
    return not os.environ.get("NO_COLOR") and not _is_dumb()


def takes_live_line() -> bool:
    """Whether stderr is a terminal that can write over a line."""
    return sys.stderr.isatty() and not _is_dumb()


def _is_dumb() -> bool:
    return os.environ.get("TERM", "").lower() in ("dumb", "unknown")


@contextlib.contextmanager
def standard_streams() -> Iterator[None]:
    """Context in which the standard streams are open, and stderr takes everything."""
    if sys.platform == "win32":  # consoles there are no files
        yield
        return
    for number, flags in enumerate((os.O_WRONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            # A file that the command opens would take the number, and what a library prints would get into it. Opened
            # the wrong way round, so that using stdin or stdout is an error.
            os.set_inheritable(os.open(os.devnull, flags), True)
    before = sys.stdin, sys.stdout, sys.stderr
    # streams that somebody has put in their place are left alone
    if sys.stdin is None:
        sys.stdin = open(0, closefd=False)  # noqa: SIM115 (open until the end)
    if sys.stdout is sys.__stdout__:
        sys.stdout = _text(1, sys.stdout)
    if sys.stderr is sys.__stderr__:
        sys.stderr = _text(2, sys.stderr)
    try:
        yield
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        sys.stdin, sys.stdout, sys.stderr = before


class _Descriptor(io.FileIO):
    """A descriptor to write to: standard output fails once, with its name; standard error never does."""

    def __init__(self, number: int):
        super().__init__(number, "w", closefd=False)
        self._may_fail = number == 1

    def write(self, data: Any) -> int:
        """Write, and return the number of bytes."""
        try:
            return super().write(data)
        except OSError as error:
            if not self._may_fail:
                return len(data)
            self._may_fail = False  # what is left is dropped at the end of Python
            error.filename = "standard output"
            raise


def _text(number: int, stream: TextIO | None) -> io.TextIOWrapper:
    """The stream of a descriptor, with the encoding that Python has chosen for it."""
    raw = _Descriptor(number)
    encoding = "utf-8" if stream is None else stream.encoding
    return io.TextIOWrapper(io.BufferedWriter(raw), encoding, _ERRORS, line_buffering=number == 2 or raw.isatty())


def _spelled(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    return "".join(_SPELLED.get(character) or ascii(character)[1:-1] for character in lacking), error.end


codecs.register_error(_ERRORS, _spelled)
