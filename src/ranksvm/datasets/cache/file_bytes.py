"""Reading of an open file at any position, on several threads."""

import os
import threading
from typing import IO


class BytesOfFile:
    """A binary file that several threads read, each at its own position.

    Parameters
    ----------
    file : binary file
        Open for reading, with a descriptor.
    """

    def __init__(self, file: IO[bytes]):
        self._file = file
        self._seek_and_read = threading.Lock()

    def fill(self, view: memoryview, offset: int) -> bool:
        """Fill memory with the bytes from ``offset`` on; False if the file ends too early."""
        while len(view):
            n_read = self._read_at(view, offset)
            if n_read == 0:
                return False
            view, offset = view[n_read:], offset + n_read
        return True

    def _read_at(self, view: memoryview, offset: int) -> int:
        if hasattr(os, "preadv"):
            return os.preadv(self._file.fileno(), [view], offset)
        with self._seek_and_read:  # Windows
            self._file.seek(offset)
            return self._file.readinto(view) or 0  # type: ignore[attr-defined]
