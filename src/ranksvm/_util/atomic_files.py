"""Files are written atomically; devices, pipes and open descriptors are written to directly."""

import contextlib
import errno
import io
import os
import re
import secrets
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from typing import IO, Any

from ranksvm._util.compression import compression_of_name, compressor
from ranksvm._util.special_files import descriptor_of, is_special

try:
    import fcntl
except ImportError:  # Windows, where a file that is open cannot be removed anyway
    fcntl = None  # type: ignore[assignment]

__all__ = ["atomic_text_file", "atomic_write", "temporary_beside", "temporary_file", "write_lines"]

# "File too large", "No space left on device" and the like, which name no file.
_ERRORS_OF_WRITING = {errno.EFBIG, errno.ENOSPC, errno.EIO, getattr(errno, "EDQUOT", errno.ENOSPC)}
# Seconds for which a temporary file that nobody has locked is left alone.
_ABANDONED_AFTER = 2.0


@contextlib.contextmanager
def atomic_write(path: Any) -> Iterator[IO[bytes]]:
    """A binary file that gets its name when the block succeeds, and is removed when it fails.

    Descriptors such as /dev/stdout, pipes and devices are written to directly: renaming would replace them.
    """
    if is_special(path):
        with _naming(os.fspath(path), None), _directly(path) as stream:
            yield stream
        return
    path, folder, name, temporary = _names(path)
    try:
        # "x": never an existing file; the permissions follow the umask, as for any new file.
        with _naming(path, temporary), _opened(temporary, folder, path) as file:
            _lock(file)
            _remove_abandoned(folder, name, temporary)
            yield file
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


@contextlib.contextmanager
def temporary_beside(path: Any) -> Iterator[str]:
    """The path of a file that is needed while another one is written, in the folder of that one.

    It is removed at the end of the block; if the process is killed, by the next one that writes the other file.
    """
    path, folder, name, temporary = _names(path)
    with _naming(path, temporary), _opened(temporary, folder, path) as file:
        _lock(file)
        _remove_abandoned(folder, name, temporary)
        try:
            yield temporary
        finally:
            with contextlib.suppress(OSError):
                os.unlink(temporary)


def temporary_file() -> contextlib.AbstractContextManager[str]:
    """The path of a file in the system's folder for temporary files; a killed process leaves it to the next one."""
    return temporary_beside(os.path.join(tempfile.gettempdir(), "ranksvm"))


def _names(path: Any) -> tuple[str, str, str, str]:
    """The absolute path of a file, its folder, its name, and the path of a temporary file for it."""
    path = os.path.realpath(os.fspath(path))
    folder, name = os.path.split(path)
    return path, folder, name, os.path.join(folder, f".{name}.{secrets.token_hex(8)}.tmp")


@contextlib.contextmanager
def _naming(path: str, temporary: str | None) -> Iterator[None]:
    """Put the name of the file into errors of writing that have none, or that of the temporary file."""
    try:
        yield
    except OSError as error:
        if error.errno in _ERRORS_OF_WRITING and error.filename in (None, temporary):
            error.filename = path
        raise


def _lock(file: IO[bytes]) -> None:
    """Mark a temporary file as being written: the lock ends with the process, however that ends."""
    if fcntl is not None:
        with contextlib.suppress(OSError):  # some network file systems have no locks
            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)


def _remove_abandoned(folder: str, name: str, own: str) -> None:
    """Remove temporary files for the same target that killed processes left: those that nobody has locked."""
    if fcntl is None:
        return
    # also those for a temporary file
    left = re.compile(rf"\.+{re.escape(name)}(\.[0-9a-f]{{16}}\.tmp)+")
    with contextlib.suppress(OSError):
        for found in os.listdir(folder or "."):
            path = os.path.join(folder, found)
            if left.fullmatch(found) and path != own:
                _remove_unless_locked(path)


def _remove_unless_locked(path: str) -> None:
    assert fcntl is not None
    with contextlib.suppress(OSError), open(path, "rb") as file:
        # one that was just made, and is not locked yet, is left alone
        if time.time() - os.fstat(file.fileno()).st_mtime > _ABANDONED_AFTER:
            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.unlink(path)


@contextlib.contextmanager
def _directly(path: Any) -> Iterator[IO[bytes]]:
    """A file that is written from its first byte to its last, at the current end of a descriptor."""
    if (number := descriptor_of(path)) is None:
        raw = open(path, "wb", buffering=0)  # noqa: SIM115 (closed below)
    else:
        # text printed before comes first
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

    A descriptor may be that of a regular file, opened to append, where going back would have no effect.
    """

    def __init__(self, raw: Any):
        self._raw, self._position = raw, 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def write(self, content: Any) -> int:
        written = self._raw.write(content) or 0
        self._position += written
        return written


def _opened(temporary: str, folder: str, path: str) -> IO[bytes]:
    """The temporary file; errors name the path that the caller gave."""
    if os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, "cannot write to a folder", path)
    try:
        return open(temporary, "xb")
    except FileNotFoundError as error:
        raise FileNotFoundError(error.errno, "the folder does not exist", folder) from None
    except NotADirectoryError as error:
        raise NotADirectoryError(error.errno, "this is not a folder", folder) from None
    except OSError as error:
        error.filename = path
        raise


@contextlib.contextmanager
def atomic_text_file(path: Any) -> Iterator[IO[bytes]]:
    """Like `atomic_write`, compressed if the name ends in .gz, .bz2, .xz or .zst."""
    kind = compression_of_name(os.fspath(path))
    with atomic_write(path) as file:
        if kind is None:
            yield file
            return
        with compressor(file, kind) as packed:
            yield packed


def write_lines(path: Any, lines: Iterable[str]) -> None:
    """Write lines of text, as `atomic_text_file` writes."""
    with atomic_text_file(path) as file:
        for line in lines:  # the writers of zstandard have no writelines
            file.write(f"{line}\n".encode())
