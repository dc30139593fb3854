"""Files are written whole or not at all."""

import contextlib
import os
import secrets
from collections.abc import Iterator
from typing import IO, Any

from ranksvm.data._compression import compression_of_name, compressor

__all__ = ["atomic_write", "atomic_text_file"]


@contextlib.contextmanager
def atomic_write(path: Any) -> Iterator[IO[bytes]]:
    """A binary file that gets its name when the block ends well, and is removed when it does not."""
    path = os.path.realpath(os.fspath(path))
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f".{name}.{secrets.token_hex(8)}.tmp")
    try:
        # "x": never another file of that name; its permissions follow the umask, as those of any new file do.
        with open(temporary, "xb") as file:
            yield file
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
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
