"""Rows of features in two arrays, one after the other, without a copy of either."""

import numpy as np

from ranksvm._util.checks import is_sparse
from ranksvm._util.types import CSRMatrix, Features
from ranksvm.data.frames import stacked

__all__ = ["TwoBlocks"]


class TwoBlocks:
    """The rows of ``first``, then the rows of ``second``: like ``np.concatenate``, without copying.

    Parameters
    ----------
    first, second : ndarray of float32 or float64, C-contiguous, of the same type, shape (n_rows, n_features)
        The rows.

    Examples
    --------
    >>> import numpy as np
    >>> from ranksvm.data import TwoBlocks
    >>> rows = TwoBlocks(np.zeros((2, 3)), np.ones((4, 3)))
    >>> rows.shape
    (6, 3)
    """

    def __init__(self, first: np.ndarray, second: np.ndarray):
        self.first = first
        self.second = second
        self.shape = (first.shape[0] + second.shape[0], first.shape[1])
        self.dtype = first.dtype

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        n_first = self.first.shape[0]
        taken = np.empty((len(rows), self.shape[1]), dtype=self.dtype)
        is_first = rows < n_first
        taken[is_first] = self.first[rows[is_first]]
        taken[~is_first] = self.second[rows[~is_first] - n_first]
        return taken

    def stacked(self) -> np.ndarray:
        """Copy the rows into one array.

        Returns
        -------
        ndarray of shape (n_rows, n_features)
            The rows.
        """
        return np.concatenate([self.first, self.second])

    @staticmethod
    def joined(first: Features, second: Features) -> "TwoBlocks | CSRMatrix":
        """Join two blocks of rows: a `TwoBlocks` if both are arrays (converted to one type), otherwise a CSR matrix.

        Parameters
        ----------
        first, second : ndarray or CSR matrix of float32 or float64
            Rows, validated.

        Returns
        -------
        TwoBlocks, or CSR matrix
            The rows of both.
        """
        if is_sparse(first) or is_sparse(second):
            return stacked(first, second)
        dtype = np.result_type(first, second)
        return TwoBlocks(first.astype(dtype, copy=False), second.astype(dtype, copy=False))
