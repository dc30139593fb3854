"""Sources of text: memory, a file that is read part by part, or a file that may still grow."""

import contextlib
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager
from types import TracebackType
from typing import IO, Protocol

import numpy as np

from ranksvm._util.mapped_file import BytesOfFile
from ranksvm.exceptions import DataError

__all__ = ["ChangedTextError", "FileText", "GrowingFile", "MemoryText", "Text", "after_newline"]


class Text(Protocol):
    """Text of ``size`` bytes; several threads may use parts of it at the same time."""

    size: int

    def part(self, start: int, stop: int) -> AbstractContextManager[np.ndarray]:
        """Bytes ``start`` to ``stop - 1``, valid within the context."""


class MemoryText:
    """Text in memory."""

    def __init__(self, text: np.ndarray):
        self.size = len(text)
        self._text = text

    def part(self, start: int, stop: int) -> AbstractContextManager[np.ndarray]:
        """Bytes ``start`` to ``stop - 1``, not copied."""
        return contextlib.nullcontext(self._text[start:stop])


class FileText:
    """Text of a regular file. Leaving its context raises `DataError` if the file has changed in the meantime.

    A part is copied into a buffer, which is reused and stays in the cache of the processor. Mapping the file would save
    the copy (a twentieth of the time of parsing). But if the file is truncated, the system kills a process that reads a
    mapped page beyond the new end.
    """

    def __init__(self, file: IO[bytes], path: str):
        self._file, self._path = file, path
        self._bytes = BytesOfFile(file)
        self._buffers: list[np.ndarray] = []
        self.size, self._modified = self._state()

    def _state(self) -> tuple[int, int]:
        state = os.fstat(self._file.fileno())
        return state.st_size, state.st_mtime_ns

    def __enter__(self) -> "FileText":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        # If the file has changed, any other error is probably a consequence.
        if error is None or isinstance(error, Exception):
            size, modified = self._state()
            if (size, modified) != (self.size, self._modified) or isinstance(error, ChangedTextError):
                sizes = "" if size == self.size else f" (it had {self.size} bytes, now it has {size})"
                raise DataError(
                    f"{self._path} was changed by another process while it was read{sizes}: read it again when it is "
                    "complete."
                ) from None

    @contextlib.contextmanager
    def part(self, start: int, stop: int) -> Iterator[np.ndarray]:
        """Bytes ``start`` to ``stop - 1``, read from the file into a buffer."""
        size = stop - start
        buffer = self._buffers.pop() if self._buffers else np.empty(0, dtype=np.uint8)
        if len(buffer) < size:
            buffer = np.empty(size + size // 8, dtype=np.uint8)
        try:
            if not self._bytes.fill(buffer.data[:size], start):
                raise ChangedTextError
            yield buffer[:size]
        finally:
            self._buffers.append(buffer)


class GrowingFile:
    """A binary file read from its beginning to its end, which may grow during the read, but must not become shorter.

    At its end `DataError` is raised if fewer bytes were read than the file had at first: otherwise a truncated line
    would be used as the last line. A pipe has no size, so nothing is checked.
    """

    def __init__(self, file: IO[bytes], path: str):
        self._file, self._path = file, path
        self._size_at_first, self._n_read = os.fstat(file.fileno()).st_size, 0

    def read(self, size: int = -1) -> bytes:
        """Read the next bytes, like the file's own method."""
        return self._counted(self._file.read(size), size)

    def read1(self, size: int = -1) -> bytes:
        """Read the next bytes, like the file's own method."""
        return self._counted(self._file.read1(size), size)  # type: ignore[attr-defined]

    def seek(self, place: int) -> int:
        """Go to a position, to read again from there."""
        self._n_read = self._file.seek(place)
        return self._n_read

    def _counted(self, content: bytes, size: int) -> bytes:
        self._n_read += len(content)
        if (size < 0 or not content) and self._n_read < self._size_at_first:
            raise DataError(
                f"{self._path} was shortened by another process while it was read (it had {self._size_at_first} bytes, "
                f"{self._n_read} were read): read it again when it is complete."
            )
        return content


class ChangedTextError(Exception):
    """The file has changed since its size was read; `FileText` reports this to the user."""


def after_newline(text: Text, position: int) -> int:
    """Start of the first line that begins after ``position``, or the end of the text."""
    step = 1 << 12
    while position < text.size:
        with text.part(position, min(position + step, text.size)) as block:
            hits = np.flatnonzero(block == 10)
        if len(hits):
            return position + int(hits[0]) + 1
        position += step
        step = min(2 * step, 1 << 20)
    return text.size
