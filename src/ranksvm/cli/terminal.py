"""The output of the command: standard streams in any condition, and text in which data cannot control a terminal.

A stream may be closed, full, or unable to encode a character. A command fails if standard output does not take its
result; it does not fail if standard error does not take its progress.
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

# Replacements of characters that an encoding lacks; other characters are escaped as in Python.
_SPELLED = {"±": "+-", "─": "-", "━": "-", "╸": "-", "╺": "-", **dict.fromkeys("▏▎▍▌▋▊▉█▐▕", "#")}
_ERRORS = "ranksvm.spelled"


def say(text: str = "", *, err: bool = False, fg: str | None = None, bold: bool | None = None) -> None:
    """Print text for people; control characters, which names in data may contain, are escaped."""
    # without an explicit stream, click writes UTF-8 even if the locale is ASCII
    click.secho(visible(text), file=sys.stderr if err else sys.stdout, fg=fg, bold=bold)


def print_data(text: str) -> None:
    """Print a line of data on stdout: on a terminal as `say` does, else unchanged, in UTF-8 as in a file."""
    if sys.stdout.isatty():
        say(text)
    else:
        click.echo(text.encode("utf-8", "surrogateescape"))


def takes_color() -> bool:
    """Whether the user wants colors, and the terminal has them."""
    return not os.environ.get("NO_COLOR") and not _is_dumb()


def takes_live_line() -> bool:
    """Whether stderr is a terminal that can overwrite a line."""
    return sys.stderr.isatty() and not _is_dumb()


def _is_dumb() -> bool:
    return os.environ.get("TERM", "").lower() in ("dumb", "unknown")


@contextlib.contextmanager
def standard_streams() -> Iterator[None]:
    """Context in which the standard streams are open, and in which writing to stderr never fails."""
    if sys.platform == "win32":  # consoles are not files there
        yield
        return
    for number, flags in enumerate((os.O_WRONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            # Otherwise a file that the command opens would get this number, and a library might print into it. Stdin is
            # opened for writing and stdout for reading, so that using them is an error.
            os.set_inheritable(os.open(os.devnull, flags), True)
    before = sys.stdin, sys.stdout, sys.stderr
    # streams that were replaced before are kept
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
    """Writes to a descriptor; on standard output the first error is raised, on standard error none is."""

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
            self._may_fail = False  # the rest is dropped when Python ends
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
