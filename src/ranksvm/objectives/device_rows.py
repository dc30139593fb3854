"""The rows of X on a device, and their products with vectors there."""

from typing import Any, NamedTuple, Protocol

import numpy as np

from ranksvm.data import DenseDesign, DesignMatrix, SparseDesign, TwoBlockDesign
from ranksvm.data.device_features import DeviceFeatures
from ranksvm.device.launcher import LANES, Launcher
from ranksvm.device.protocol import Argument, DeviceArray

__all__ = ["DenseRows", "DeviceDesign", "RowsOnDevice", "SparseRows", "rows_on"]

# Sums of blocks take at most so many bytes.
SUMS_BYTES = 64 << 20
# A column of sparse X is added up in pieces of so many entries.
PIECE = 1024


class RowsOnDevice(Protocol):
    """Rows of X by position, on a device."""

    launcher: Launcher
    n_rows: int
    n_features: int
    largest: np.ndarray
    most_entries: int

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """The arguments of kernels that stand for the rows."""

    def accumulate(self, u: DeviceArray, out: DeviceArray) -> None:
        """``out = X' u``."""

    def additions(self) -> int:
        """Additions that the term of a row goes through in these sums, at most."""

    def taken(self, rows: np.ndarray) -> "RowsOnDevice":
        """Some rows of X, in the same memory."""


class DenseRows:
    """Rows of a C-contiguous array: see `RowsOnDevice` for the methods.

    Parameters
    ----------
    launcher : Launcher
        The device, and the variant of its kernels.
    X : DeviceArray of float32 or float64, shape (any, n_features)
        The array.
    rows : ndarray of int64, shape (n_rows,)
        Row of each position.
    largest : ndarray of float64, shape (n_features,)
        The largest absolute value of each column.
    """

    def __init__(self, launcher: Launcher, X: DeviceArray, rows: np.ndarray, largest: np.ndarray):
        self.launcher = launcher
        self.X = X
        self.n_rows = len(rows)
        self.n_features = self.most_entries = X.shape[1]
        self.largest = largest
        self._rows = launcher.copy_in(rows.astype(np.int32))

    @property
    def arguments(self) -> tuple[Argument, ...]:
        return self.X, self._rows, self.n_features

    def accumulate(self, u: DeviceArray, out: DeviceArray) -> None:
        run, n_blocks = self.launcher, self._n_blocks()
        sums = run.scratch("row sums", n_blocks * self.n_features)
        run("accumulate_rows", *self.arguments, 0, self.n_rows, u, sums, n_blocks=n_blocks, shared=run.n_threads)
        run.add_rows(sums, n_blocks, self.n_features, out)

    def additions(self) -> int:
        n_blocks, n_threads = self._n_blocks(), self.launcher.n_threads
        parts = max(1, n_threads // max(1, self.n_features))
        of_block = -(-self.n_rows // (n_blocks * parts)) + parts
        return of_block + -(-n_blocks * LANES // n_threads) + n_threads // LANES

    def taken(self, rows: np.ndarray) -> "DenseRows":
        return DenseRows(self.launcher.again(), self.X, rows, self.largest)

    def _n_blocks(self) -> int:
        most = max(1, SUMS_BYTES // (8 * max(1, self.n_features)))
        return min(self.launcher.blocks_for(LANES * self.n_rows), most)


class DeviceDesign:
    """Features that lie on a device, described as a `DesignMatrix` is.

    Parameters
    ----------
    X : DeviceFeatures
        The rows.
    largest : ndarray of float64, shape (n_features,), optional
        The largest absolute value of each column, if it is known.
    """

    dense = True

    def __init__(self, X: DeviceFeatures, largest: np.ndarray | None = None):
        self.X = X
        self.dtype = X.dtype
        self.n_features = X.shape[1]
        self.row_bytes = max(1, X.shape[1] * X.dtype.itemsize)
        self._largest = largest

    def largest(self, n_threads: int = 1) -> np.ndarray:
        """Of each feature the largest absolute value."""
        return self.X.largest() if self._largest is None else self._largest


class _Columns(NamedTuple):
    """Sparse rows by columns, in pieces of at most `PIECE` entries."""

    data: DeviceArray
    positions: DeviceArray
    pieces: DeviceArray  # first entry of each piece
    begin: DeviceArray  # first piece of each column
    n_pieces: int
    longest: int  # most pieces of a column


class SparseRows:
    """Rows of a CSR matrix: see `RowsOnDevice` for the methods.

    The rows are on the device twice, by rows and by columns, so that sums over either have one order.

    Parameters
    ----------
    launcher : Launcher
        The device, and the variant of its kernels.
    matrix : scipy.sparse.csr_array, shape (any, n_features)
        The matrix.
    arrays : tuple of DeviceArray
        Its values, columns and pointers.
    rows : ndarray of int64, shape (n_rows,)
        Row of each position.
    largest : ndarray of float64, shape (n_features,)
        The largest absolute value of each column.
    """

    def __init__(
        self,
        launcher: Launcher,
        matrix: Any,
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
        self._rows = launcher.copy_in(rows.astype(np.int32))
        self._by_columns: _Columns | None = None

    @property
    def arguments(self) -> tuple[Argument, ...]:
        return *self._arrays, self._rows, self.n_features

    def accumulate(self, u: DeviceArray, out: DeviceArray, squares: bool = False) -> None:
        run, columns = self.launcher, self._columns()
        sums = run.scratch("piece sums", max(1, columns.n_pieces))
        entries = columns.data, columns.positions, columns.pieces, columns.n_pieces
        run("accumulate_columns", *entries, u, int(squares), sums, work=LANES * columns.n_pieces)
        run("add_pieces", sums, columns.begin, self.n_features, out, work=LANES * self.n_features)

    def additions(self) -> int:
        return PIECE // LANES + self._columns().longest // LANES + 2 * LANES

    def taken(self, rows: np.ndarray) -> "SparseRows":
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
            values, positions = copy_in(taken.data), copy_in(taken.indices.astype(np.int32))
            longest = int(n_pieces.max(initial=0))
            self._by_columns = _Columns(
                values, positions, copy_in(pieces), copy_in(begin), n_pieces=int(begin[-1]), longest=longest
            )
        return self._by_columns


def rows_on(
    launcher: Launcher, design: DesignMatrix | DeviceDesign, rows: np.ndarray, n_threads: int = 1
) -> DenseRows | SparseRows:
    """Copy the rows of a design matrix to a device, if they are not there.

    Parameters
    ----------
    launcher : Launcher
        The device, and the variant of its kernels.
    design : DesignMatrix
        The features: a `DenseDesign`, `TwoBlockDesign`, `SparseDesign` or `DeviceDesign`.
    rows : ndarray of int64, shape (n_rows,)
        Row of each position.
    n_threads : int
        Number of threads that look for the largest values.

    Returns
    -------
    DenseRows or SparseRows
        The rows there.
    """
    largest = design.largest(n_threads)
    if isinstance(design, SparseDesign):
        from scipy import sparse

        data, indices, pointers, n_features = design._csr
        matrix = sparse.csr_array((data, indices, pointers), shape=(len(pointers) - 1, n_features))
        parts = data, indices.astype(np.int32, copy=False), pointers.astype(np.int64, copy=False)
        values, columns, begin = (launcher.copy_in(part) for part in parts)
        return SparseRows(launcher, matrix, (values, columns, begin), rows, largest)
    if isinstance(design, DeviceDesign):
        return DenseRows(launcher, design.X.array, rows, largest)
    if isinstance(design, TwoBlockDesign):
        first, second = design.X.first, design.X.second
        X = launcher.device.empty(design.X.shape, design.X.dtype)
        launcher.device.copy_in(first.ravel(), X.part(0, first.size))
        launcher.device.copy_in(second.ravel(), X.part(first.size, first.size + second.size))
    else:
        assert isinstance(design, DenseDesign)
        X = launcher.copy_in(design.X)
    return DenseRows(launcher, X, rows, largest)
