"""Files are written whole or not at all."""

import contextlib
import errno
import os
import secrets
from collections.abc import Iterator
from typing import IO, Any

from ranksvm.data.compression import compression_of_name, compressor

__all__ = ["atomic_write", "atomic_text_file"]


@contextlib.contextmanager
def atomic_write(path: Any) -> Iterator[IO[bytes]]:
    """A binary file that gets its name when the block ends well, and is removed when it does not."""
    path = os.path.realpath(os.fspath(path))
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f".{name}.{secrets.token_hex(8)}.tmp")
    try:
        # "x": never another file of that name; its permissions follow the umask, as those of any new file do.
        with _opened(temporary, folder, path) as file:
            yield file
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _opened(temporary: str, folder: str, path: str) -> IO[bytes]:
    """The temporary file; errors name what the caller knows of."""
    if os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, "cannot write to a folder", path)
    try:
        return open(temporary, "xb")
    except FileNotFoundError as error:
        raise FileNotFoundError(error.errno, "the folder does not exist", folder) from None
    except NotADirectoryError as error:
        raise NotADirectoryError(error.errno, "this is no folder", folder) from None
    except OSError as error:
        error.filename = path
        raise


@contextlib.contextmanager
def atomic_text_file(path: Any) -> Iterator[IO[bytes]]:
    """As `atomic_write`, compressing where the name ends in .gz, .bz2, .xz or .zst."""
    kind = compression_of_name(os.fspath(path))
    with atomic_write(path) as file:
        if kind is None:
            yield file
            return
        with compressor(file, kind) as packed:
            yield packed
