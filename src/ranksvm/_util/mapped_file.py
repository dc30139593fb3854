"""Files that are mapped into memory, with checks that they can still be read; files that several threads read."""

import mmap
import os
import threading
from contextlib import suppress
from typing import IO

from ranksvm.exceptions import DataError

__all__ = ["BytesOfFile", "MappedFile"]


class MappedFile(mmap.mmap):
    """A read-only map of a file that is not empty; arrays in it refer to this object as their base.

    Attributes
    ----------
    path : str
        The file.
    """

    path: str
    _inode: tuple[int, int]

    @classmethod
    def of(cls, file: IO[bytes], size: int) -> "MappedFile":
        """Map the first bytes of an open file.

        Parameters
        ----------
        file : file object
            The file, open for reading; it may be closed later.
        size : int
            Number of bytes, at least 1.

        Returns
        -------
        MappedFile
            The map.
        """
        try:
            found = cls(file.fileno(), size, access=mmap.ACCESS_READ)
        except OSError as error:  # such as a limit of the address space, by `ulimit -v`
            error.filename = file.name
            raise
        state = os.fstat(file.fileno())
        found.path, found._inode = os.path.abspath(file.name), (state.st_dev, state.st_ino)
        return found

    def check_whole(self) -> None:
        """Refuse a file that has become shorter than its map: reading past its end kills the process (SIGBUS).

        Raises
        ------
        DataError
            If it has become shorter. A file that was deleted or replaced stays in the map as it was.
        """
        with suppress(OSError):
            now = os.stat(self.path)
            if (now.st_dev, now.st_ino) == self._inode and now.st_size < len(self):
                raise DataError(f"{self.path} was truncated since it was loaded: write it again, and load it again.")


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
