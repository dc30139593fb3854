"""Files that are mapped into memory, and checks that arrays in them can still be read."""

import mmap
import os
from contextlib import suppress
from typing import IO

import numpy as np

from ranksvm._util.checks import is_sparse
from ranksvm.exceptions import DataError

__all__ = ["MappedFile", "check_whole", "mapped_file"]


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
        found = cls(file.fileno(), size, access=mmap.ACCESS_READ)
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


def mapped_file(X: object) -> MappedFile | None:
    """The mapped file that holds the values of an array or CSR matrix; None if they are in memory.

    Parameters
    ----------
    X : ndarray, sparse matrix or any other object
        The array.

    Returns
    -------
    MappedFile or None
        The file.
    """
    found = getattr(X, "data", None) if is_sparse(X) else X  # a dok matrix has no array of values
    while isinstance(found, np.ndarray):
        found = found.base
    if isinstance(found, memoryview):
        found = found.obj
    return found if isinstance(found, MappedFile) else None


def check_whole(file: MappedFile | None) -> None:
    """Refuse a mapped file that has become shorter than its map.

    Parameters
    ----------
    file : MappedFile or None
        The file, as `mapped_file` finds it.

    Raises
    ------
    DataError
        If it has become shorter.
    """
    if file is not None:
        file.check_whole()
