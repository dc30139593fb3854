"""Types of options that name files: files to read, files to write, ``-`` for standard input and output."""

import contextlib
import os
import stat
import sys
from pathlib import Path
from typing import NamedTuple

import click

from ranksvm._util.special_files import descriptor_of, is_special

__all__ = [
    "EXISTING_FILE",
    "EXISTING_STORE",
    "OUTPUT_FILE",
    "STDIN",
    "STDOUT",
    "TEXT_FILE",
    "inputs_given",
    "is_stdout",
    "path_to_open",
    "prints_on_stdout",
    "titled",
]

# What ``-`` becomes. Readers of data take STDIN as a str; writers of files take STDOUT on every system.
STDIN = Path("-")
STDOUT = Path("/dev/stdout")

# Extensions of binary formats of data, with what they stand for.
_BINARY = {".parquet": "Parquet", ".pq": "Parquet", ".rsd": "a cache"}
_META = "ranksvm.files"
# The device and inode of a file, or its name: the same for all spellings of its path. None: options may share the file.
_Identity = tuple[int, int] | str | None


class _File(NamedTuple):
    """A file of a command line: its option, its path, and an identity that all spellings of the path share."""

    option: str
    path: str
    identity: _Identity
    written: bool


class _InputFile(click.Path):
    """A file to read, or ``-``; it must not be written by the same command."""

    def convert(self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None) -> Path:
        path = STDIN if str(value) == "-" else _named(super().convert(value, param, ctx))
        _enter(self, param, ctx, path, written=False)
        return path


class _OutputFile(click.Path):
    """A file to write, or ``-``; refused before any work if its folder is absent or the command reads it."""

    def convert(self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None) -> Path:
        path = STDOUT if str(value) == "-" else _named(super().convert(value, param, ctx))
        if not is_special(path):
            if not path.parent.is_dir():
                self.fail(f"{str(path.parent)!r} is not a folder; create it first.", param, ctx)
            if not os.access(path.parent, os.W_OK):
                self.fail(f"{str(path.parent)!r} is not writable.", param, ctx)
        _enter(self, param, ctx, path, written=True)
        if is_stdout(path) and ctx is not None:
            # the file must contain nothing else: the tables of the command go to stderr
            sys.stdout.flush()
            ctx.with_resource(contextlib.redirect_stdout(sys.stderr))
        return path


class _TextFile(_OutputFile):
    """A file to write text to; refused if its name promises a binary format of data."""

    def convert(self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None) -> Path:
        suffix = Path(value).suffix.lower()
        if suffix in _BINARY:
            self.fail(f"{os.fspath(value)!r} would be text, not {_BINARY[suffix]}: name it .txt or .tsv.", param, ctx)
        return super().convert(value, param, ctx)


class _Store(_InputFile):
    """The store of a service that a command reads: a file, or the address of a database."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:  # type: ignore[override]
        return value if value.startswith(("postgresql://", "postgres://")) else str(super().convert(value, param, ctx))


EXISTING_FILE = _InputFile(exists=True, dir_okay=False, readable=True)
OUTPUT_FILE = _OutputFile(dir_okay=False, writable=True)
TEXT_FILE = _TextFile(dir_okay=False, writable=True)
EXISTING_STORE = _Store(exists=True, dir_okay=False, readable=True)


def inputs_given() -> list[tuple[str, Path]]:
    """The files that the current command reads, each with the option or argument that names it."""
    ctx = click.get_current_context(silent=True)
    files: list[_File] = [] if ctx is None else ctx.meta.get(_META, [])
    return [(file.option, Path(file.path)) for file in files if not file.written]


def titled(path: Path) -> str:
    """What messages and titles call a data file."""
    return "standard input" if path == STDIN else str(path)


def path_to_open(path: Path) -> Path:
    """The path of a file to read, for readers that do not know ``-``."""
    return Path("/dev/stdin") if path == STDIN else path


def is_stdout(path: Path) -> bool:
    """Whether a path stands for standard output."""
    return descriptor_of(path) == 1


def prints_on_stdout(ctx: click.Context, param: click.Parameter, value: bool) -> bool:
    """Callback of an option that prints one document on standard output: no file may be written there too."""
    if value:
        _enter(click.Path(), param, ctx, STDOUT, written=True)
    return value


def _named(value: object) -> Path:
    """The path of a file; ``./-``, which pathlib would shorten to ``-``, becomes an absolute path."""
    path = Path(str(value))
    return path.absolute() if path == STDIN else path


def _enter(
    kind: click.ParamType, param: click.Parameter | None, ctx: click.Context | None, path: Path, written: bool
) -> None:
    """Note a file of the command line; refuse one that is read and written, or written twice."""
    if ctx is None or param is None:
        return
    new = _File(
        param.opts[0] if param.param_type_name == "option" else param.human_readable_name,
        str(path),
        _identity(path),
        written,
    )
    known: list[_File] = ctx.meta.setdefault(_META, [])
    for other in known:
        if other.identity is None or other.identity != new.identity:
            continue
        if new.identity == "stdin":
            kind.fail("standard input can be read only once: name a file for all but one of the inputs.", param, ctx)
        if other.written and new.written:
            kind.fail(f"{other.option} and {new.option} would both write {_spelt(other, new)}.", param, ctx)
        if other.written != new.written:
            read, output = (other, new) if new.written else (new, other)
            kind.fail(
                f"{output.option} would overwrite {read.option}, which the command reads: {_spelt(read, output)}.",
                param,
                ctx,
            )
    known.append(new)


def _identity(path: Path) -> _Identity:
    """Equal for two spellings of, or links to, one file; None for devices and pipes, which can be shared."""
    try:
        if path == STDIN:
            status = os.fstat(sys.stdin.fileno())
            return (status.st_dev, status.st_ino) if stat.S_ISREG(status.st_mode) else "stdin"
        if is_stdout(path):
            return "stdout"
        status = os.stat(path)
    except (OSError, ValueError):
        return "stdin" if path == STDIN else os.path.normcase(os.path.realpath(path))
    return (status.st_dev, status.st_ino) if stat.S_ISREG(status.st_mode) else None


def _spelt(one: _File, other: _File) -> str:
    name = "standard output" if one.identity == "stdout" else one.path
    return name if one.path == other.path else f"{name} and {other.path} are one file"
