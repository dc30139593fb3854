"""Sparse rows on a device, and their products with vectors there."""

from typing import NamedTuple

import numpy as np

from ranksvm._util.types import CSRMatrix
from ranksvm.device.launcher import LANES, Launcher, as_int32
from ranksvm.device.protocol import Argument, DeviceArray

__all__ = ["SparseRows"]

# The columns of sparse X are added up in pieces of this number of entries.
PIECE = 1024


class _Columns(NamedTuple):
    """Sparse rows by columns, in pieces of at most `PIECE` entries."""

    data: DeviceArray
    positions: DeviceArray
    pieces: DeviceArray  # first entry of each piece
    begin: DeviceArray  # first piece of each column
    n_pieces: int
    longest: int  # largest number of pieces of a column


class SparseRows:
    """Rows of a CSR matrix: see `RowsOnDevice` for the methods.

    The matrix is on the device twice, by rows and by columns, so that the order of each sum is fixed.

    Parameters
    ----------
    launcher : Launcher
        The device, and the variant of its kernels.
    matrix : scipy.sparse.csr_array, shape (any, n_features)
        The matrix.
    arrays : tuple of DeviceArray
        Its values, columns and pointers.
    rows : ndarray of int64, shape (n_rows,)
        The row of the matrix at each position (place in the order of the device).
    largest : ndarray of float64, shape (n_features,)
        The largest absolute value of each column.
    """

    def __init__(
        self,
        launcher: Launcher,
        matrix: CSRMatrix,
        arrays: tuple[DeviceArray, DeviceArray, DeviceArray],
        rows: np.ndarray,
        largest: np.ndarray,
    ):
        self.launcher = launcher
        self.n_rows = len(rows)
        self.n_features = matrix.shape[1]
        self.most_entries = int(np.diff(matrix.indptr).max(initial=0))
        self.largest = largest
        self._matrix = matrix
        self._arrays = arrays
        self._host_rows = rows
        self._rows = launcher.copy_in(as_int32(rows))
        self._by_columns: _Columns | None = None

    def resident(self, start: int, stop: int) -> tuple[Argument, ...]:
        return *self._arrays, self._rows, self.n_features

    def multiply(self, w: DeviceArray, out: DeviceArray) -> None:
        arguments = *self.resident(0, self.n_rows), 0, self.n_rows
        self.launcher("scores", *arguments, w, out, work=LANES * self.n_rows)

    def accumulate(self, u: DeviceArray, out: DeviceArray, squares: bool = False) -> None:
        run, columns = self.launcher, self._columns()
        sums = run.scratch("piece sums", max(1, columns.n_pieces))
        entries = columns.data, columns.positions, columns.pieces, columns.n_pieces
        run("accumulate_columns", *entries, u, int(squares), sums, work=LANES * columns.n_pieces)
        run("add_pieces", sums, columns.begin, self.n_features, out, work=LANES * self.n_features)

    def additions(self) -> int:
        return PIECE // LANES + self._columns().longest // LANES + 2 * LANES

    def taken(self, positions: np.ndarray) -> "SparseRows":
        rows = self._host_rows[positions]
        return SparseRows(self.launcher.again(), self._matrix, self._arrays, rows, self.largest)

    def _columns(self) -> _Columns:
        if self._by_columns is None:
            taken = self._matrix[self._host_rows].tocsc()
            sizes = np.diff(taken.indptr)
            n_pieces = -(-sizes // PIECE)
            begin = np.concatenate(([0], np.cumsum(n_pieces))).astype(np.int64)
            # the k-th piece of a column begins k * PIECE entries after the column
            within = np.arange(begin[-1]) - np.repeat(begin[:-1], n_pieces)
            starts = np.repeat(taken.indptr[:-1].astype(np.int64), n_pieces) + PIECE * within
            pieces = np.append(starts, taken.indptr[-1]).astype(np.int64)
            copy_in = self.launcher.copy_in
            values, positions = copy_in(taken.data), copy_in(as_int32(taken.indices))
            longest = int(n_pieces.max(initial=0))
            self._by_columns = _Columns(
                values, positions, copy_in(pieces), copy_in(begin), n_pieces=int(begin[-1]), longest=longest
            )
        return self._by_columns
