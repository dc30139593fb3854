"""Files are written atomically; devices, pipes and open descriptors are written to directly."""

import contextlib
import errno
import io
import os
import platform
import re
import secrets
import sys
import tempfile
import time
import zlib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import IO, TYPE_CHECKING

from ranksvm._util.compression import compression_of_name, compressor
from ranksvm._util.special_files import descriptor_of, is_special

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

    from ranksvm._util.types import PathLike

try:
    import fcntl
except ImportError:  # Windows, where a file that is open cannot be removed anyway
    fcntl = None  # type: ignore[assignment]

__all__ = [
    "atomic_text_file",
    "atomic_write",
    "remove_abandoned",
    "temporary_beside",
    "temporary_file",
    "write_lines",
]

# "File too large", "No space left on device" and the like, which name no file.
_ERRORS_OF_WRITING = {errno.EFBIG, errno.ENOSPC, errno.EIO, getattr(errno, "EDQUOT", errno.ENOSPC)}
# The name of a temporary file consists of the end of the name of its target, the tag of the system that made it, and
# random digits. If the target is itself a temporary file, it has the same target as that file.
_TEMPORARY = re.compile(r"\.+(?P<target>.+?)\.(?P<tag>[0-9a-f]{16})\.tmp")
# Characters of that end: up to 200 bytes in UTF-8, so that the name is short enough wherever the target's is.
_KEPT = 50
# Seconds for which a temporary file of another system is left alone: its lock may not be visible here.
_ABANDONED_AFTER = 3600.0
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@contextlib.contextmanager
def atomic_write(path: "PathLike") -> Iterator[IO[bytes]]:
    """A binary file that gets its name when the ``with`` block succeeds, and is removed when the block fails.

    Descriptors such as /dev/stdout, pipes, devices and files of `temporary_beside` are written to directly: renaming
    would replace them.
    """
    if is_special(path):
        with _naming(os.fspath(path), None), _directly(path) as stream:
            yield stream
        return
    path = os.path.realpath(os.fspath(path))
    if _TEMPORARY.fullmatch(os.path.basename(path)):
        # a file of `temporary_beside`, which is locked: a file renamed to this name would have no lock
        with _naming(path, None), open(path, "wb") as stream:
            yield stream
        return
    file, temporary = _opened(path)
    try:
        with _kept_locked(file):
            with _naming(path, temporary), file:
                remove_abandoned(os.path.dirname(path), os.path.basename(path))
                yield file
            os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


@contextlib.contextmanager
def temporary_beside(path: "PathLike") -> Iterator[str]:
    """The path of an auxiliary file in the folder of a file that is being written.

    The file is removed at the end of the ``with`` block. If the process is killed, the next process that writes into
    the folder removes the file.
    """
    path = os.path.realpath(os.fspath(path))
    file, temporary = _opened(path)
    with _naming(path, temporary), file:
        remove_abandoned(os.path.dirname(path), os.path.basename(path))
        try:
            yield temporary
        finally:
            with contextlib.suppress(OSError):
                os.unlink(temporary)


def temporary_file() -> contextlib.AbstractContextManager[str]:
    """The path of a file in the system's folder for temporary files, removed as by `temporary_beside`."""
    return temporary_beside(os.path.join(tempfile.gettempdir(), "ranksvm"))


@contextlib.contextmanager
def _naming(path: str, temporary: str | None) -> Iterator[None]:
    """Put the name of the file into write errors that name no file or name the temporary file."""
    try:
        yield
    except OSError as error:
        if error.errno in _ERRORS_OF_WRITING and error.filename in (None, temporary):
            error.filename = path
        raise


def remove_abandoned(folder: "PathLike", name: str | None = None) -> None:
    """Remove the temporary files that killed processes left in a folder: those that no process has locked.

    Parameters
    ----------
    folder : path-like
        The folder.
    name : str, optional
        Name of a file that is about to be written there. Temporary files that another system made, or this system
        before it was last started, are removed only if they belong to this file or to a cache, and were last written
        more than an hour ago.
    """
    if fcntl is None:
        return
    with contextlib.suppress(OSError):
        for found in os.listdir(folder or "."):
            if not (match := _TEMPORARY.fullmatch(found)):
                continue
            if match["tag"].startswith(_tag()):
                _remove_unless_locked(os.path.join(folder, found), -1.0)
            elif match["target"] == (name or "")[-_KEPT:].lstrip(".") or match["target"].endswith(".rsd"):
                _remove_unless_locked(os.path.join(folder, found), _ABANDONED_AFTER)


def _remove_unless_locked(path: str, after: float) -> None:
    assert fcntl is not None
    with contextlib.suppress(OSError), open(path, "rb") as file:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        if time.time() - os.fstat(file.fileno()).st_mtime > after:
            os.unlink(path)


@cache
def _tag() -> str:
    """Eight hexadecimal digits for this boot of the system; processes with the same digits see each other's locks."""
    try:
        system = _BOOT_ID.read_text(encoding="ascii")
    except OSError:
        system = platform.node()
    return f"{zlib.crc32(system.encode()):08x}"


@contextlib.contextmanager
def _directly(path: "PathLike") -> Iterator[IO[bytes]]:
    """A file that is written sequentially: a device or pipe, or an open descriptor at its current end."""
    if (number := descriptor_of(path)) is None:
        raw = open(path, "wb", buffering=0)  # noqa: SIM115 (closed below)
    else:
        # flushed, so that text printed before comes first
        sys.stdout.flush()
        try:
            raw = os.fdopen(os.dup(number), "wb", buffering=0)
        except OSError as error:
            error.filename = os.fspath(path)
            raise
    with raw, io.BufferedWriter(_Sequential(raw)) as stream:
        yield stream


class _Sequential(io.RawIOBase):
    """A file that cannot seek but tells its position: writers of ZIP and Parquet then never go back.

    A descriptor may belong to a regular file that is open for appending, in which going back would have no effect.
    """

    def __init__(self, raw: io.FileIO):
        self._raw, self._position = raw, 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def write(self, content: "ReadableBuffer") -> int:
        written = self._raw.write(content) or 0
        self._position += written
        return written


def _opened(path: str) -> tuple[IO[bytes], str]:
    """Create and lock a temporary file beside ``path``; return the file and its path.

    Errors name ``path`` or its folder, not the temporary file.
    """
    folder, name = os.path.split(path)
    if os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, "cannot write to a folder", path)
    try:
        with contextlib.suppress(FileNotFoundError):
            os.lstat(path)  # an error if the name is too long, although the temporary one is not
        target = match["target"] if (match := _TEMPORARY.fullmatch(name)) else name
        while True:
            temporary = os.path.join(folder, f".{target[-_KEPT:]}.{_tag()}{secrets.token_hex(4)}.tmp")
            # "x": never an existing file; the permissions follow the umask, as for any new file.
            file = open(temporary, "xb")  # noqa: SIM115 (closed by the caller)
            if _lock(file, temporary):
                return file, temporary
            file.close()
    except FileNotFoundError as error:
        raise FileNotFoundError(error.errno, "the folder does not exist", folder) from None
    except NotADirectoryError as error:
        raise NotADirectoryError(error.errno, "this is not a folder", folder) from None
    except OSError as error:
        error.filename = path
        raise


def _lock(file: IO[bytes], path: str) -> bool:
    """Mark a temporary file as being written, by a lock that ends with the process, even if the process is killed.

    False if another process has removed the file before it was locked.
    """
    if fcntl is None:
        return True
    with contextlib.suppress(OSError):  # some network file systems have no locks
        fcntl.flock(file.fileno(), fcntl.LOCK_EX)
    return os.path.exists(path)


@contextlib.contextmanager
def _kept_locked(file: IO[bytes]) -> Iterator[None]:
    """Keep the lock of a file that is closed in the ``with`` block: until it is renamed it is not abandoned."""
    if fcntl is None:
        yield
        return
    descriptor = os.dup(file.fileno())
    try:
        yield
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def atomic_text_file(path: "PathLike") -> Iterator[IO[bytes]]:
    """Like `atomic_write`, compressed if the name ends in .gz, .bz2, .xz or .zst."""
    kind = compression_of_name(os.fspath(path))
    with atomic_write(path) as file:
        if kind is None:
            yield file
            return
        with compressor(file, kind) as packed:
            yield packed


def write_lines(path: "PathLike", lines: Iterable[str]) -> None:
    """Write lines of text, as `atomic_text_file` writes; bytes of file names that are not UTF-8 stay the same."""
    with atomic_text_file(path) as file:
        for line in lines:  # the writers of zstandard have no writelines
            file.write(f"{line}\n".encode("utf-8", "surrogateescape"))
