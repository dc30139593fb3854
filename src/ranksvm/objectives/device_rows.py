"""The rows of X on a device, and their products with vectors there."""

import logging
from typing import Any, NamedTuple, Protocol

import numpy as np

from ranksvm._memory import in_words
from ranksvm.data import DenseDesign, DesignMatrix, SparseDesign, TwoBlockDesign
from ranksvm.data.device_features import DeviceFeatures
from ranksvm.data.queries import query_ranges
from ranksvm.device.launcher import LANES, Launcher
from ranksvm.device.protocol import Argument, DeviceArray

__all__ = ["DenseRows", "DeviceDesign", "RowsOnDevice", "SparseRows", "StreamedRows", "rows_on"]

logger = logging.getLogger("ranksvm.objectives")

# X is copied to a device as a whole if it takes no more than this share of the free memory, less so many bytes a row
# for scores, pairs and slopes. Otherwise blocks of so many bytes, or a query, stream through. Not yet measured.
RESIDENT_SHARE = 0.8
BESIDE_BYTES = 160
STREAM_BYTES = 256 << 20
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

    def resident(self, start: int, stop: int) -> tuple[Argument, ...]:
        """The arguments of kernels that stand for the rows of these positions, until the next call."""

    def multiply(self, w: DeviceArray, out: DeviceArray) -> None:
        """``out = X w``."""

    def accumulate(self, u: DeviceArray, out: DeviceArray) -> None:
        """``out = X' u``."""

    def additions(self) -> int:
        """Additions that the term of a row goes through in these sums, at most."""

    def taken(self, positions: np.ndarray) -> "RowsOnDevice":
        """The rows of some positions, in the same memory if they are there."""


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
        self._host_rows = rows
        self._rows = launcher.copy_in(rows.astype(np.int32))

    def resident(self, start: int, stop: int) -> tuple[Argument, ...]:
        return self.X, self._rows, self.n_features, 0

    def multiply(self, w: DeviceArray, out: DeviceArray) -> None:
        arguments = *self.resident(0, self.n_rows), 0, self.n_rows
        self.launcher("scores", *arguments, w, out, work=LANES * self.n_rows)

    def accumulate(self, u: DeviceArray, out: DeviceArray) -> None:
        run, n_blocks = self.launcher, self._n_blocks()
        sums = run.scratch("row sums", n_blocks * self.n_features)
        arguments = *self.resident(0, self.n_rows), 0, self.n_rows
        run("accumulate_rows", *arguments, u, sums, n_blocks=n_blocks, shared=run.n_threads)
        run.add_rows(sums, n_blocks, self.n_features, out)

    def additions(self) -> int:
        return _additions(self.n_rows, self.n_features, self._n_blocks(), self.launcher.n_threads)

    def taken(self, positions: np.ndarray) -> "DenseRows":
        return DenseRows(self.launcher.again(), self.X, self._host_rows[positions], self.largest)

    def _n_blocks(self) -> int:
        return _blocks_for(self.launcher, self.n_rows, self.n_features)


class StreamedRows:
    """Dense rows that stay on the host and go through a device block by block: see `RowsOnDevice` for the methods.

    A block is some whole queries. Every product reads all rows from the host; copies and kernels take turns.

    Parameters
    ----------
    launcher : Launcher
        The device, and the variant of its kernels.
    design : DesignMatrix
        The features on the host.
    rows : ndarray of int64, shape (n_rows,)
        Row of each position.
    pointers : ndarray of int64, shape (n_queries + 1,)
        First position of each query.
    largest : ndarray of float64, shape (n_features,)
        The largest absolute value of each column.
    """

    def __init__(
        self, launcher: Launcher, design: DesignMatrix, rows: np.ndarray, pointers: np.ndarray, largest: np.ndarray
    ):
        self.launcher = launcher
        self.n_rows = len(rows)
        self.n_features = self.most_entries = design.n_features
        self.largest = largest
        self._design = design
        self._rows = rows
        block_rows = max(1, int(STREAM_BYTES / design.row_bytes))
        ranges = query_ranges(pointers, block_rows)
        starts = [(int(pointers[first]), int(pointers[last])) for first, last in ranges]
        self._blocks = [(start, stop) for start, stop in starts if stop > start]
        self._memory: DeviceArray | None = None
        self._loaded = (0, 0)

    def resident(self, start: int, stop: int) -> tuple[Argument, ...]:
        n = self.n_features
        if self._loaded != (start, stop):
            taken = self._design.taken(self._rows[start:stop])
            assert isinstance(taken, DenseDesign)
            size = (stop - start) * n
            if self._memory is None or self._memory.size < size:
                self._memory = None  # not both at a time
                self._memory = self.launcher.device.empty((size,), taken.X.dtype)
            self.launcher.device.copy_in(taken.X.ravel(), self._memory.part(0, size))
            self._loaded = start, stop
        return self._memory, None, n, start

    def multiply(self, w: DeviceArray, out: DeviceArray) -> None:
        for start, stop in self._blocks:
            arguments = *self.resident(start, stop), start, stop
            self.launcher("scores", *arguments, w, out, work=LANES * (stop - start))

    def accumulate(self, u: DeviceArray, out: DeviceArray) -> None:
        run, n = self.launcher, self.n_features
        totals = run.scratch("block totals", len(self._blocks) * n)
        for number, (start, stop) in enumerate(self._blocks):
            n_blocks = _blocks_for(run, stop - start, n)
            sums = run.scratch("row sums", n_blocks * n)
            arguments = *self.resident(start, stop), start, stop
            run("accumulate_rows", *arguments, u, sums, n_blocks=n_blocks, shared=run.n_threads)
            run.add_rows(sums, n_blocks, n, totals.part(number * n, (number + 1) * n))
        run.add_rows(totals, len(self._blocks), n, out)

    def additions(self) -> int:
        run, n = self.launcher, self.n_features
        sizes = [stop - start for start, stop in self._blocks]
        of_block = max((_additions(size, n, _blocks_for(run, size, n), run.n_threads) for size in sizes), default=0)
        return of_block + -(-len(sizes) * LANES // run.n_threads) + run.n_threads // LANES

    def taken(self, positions: np.ndarray) -> DenseRows:
        run = self.launcher.again()
        part = self._design.taken(self._rows[positions])
        assert isinstance(part, DenseDesign)
        return DenseRows(run, run.copy_in(part.X), np.arange(len(positions)), self.largest)


def _blocks_for(launcher: Launcher, n_rows: int, n_features: int) -> int:
    """Number of blocks that add up so many rows."""
    most = max(1, SUMS_BYTES // (8 * max(1, n_features)))
    return min(launcher.blocks_for(LANES * n_rows), most)


def _additions(n_rows: int, n_features: int, n_blocks: int, n_threads: int) -> int:
    """Additions that the term of a row goes through in the kernels that add up rows, at most."""
    parts = max(1, n_threads // max(1, n_features))
    of_block = -(-n_rows // (n_blocks * parts)) + parts
    return of_block + -(-n_blocks * LANES // n_threads) + n_threads // LANES


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
            values, positions = copy_in(taken.data), copy_in(taken.indices.astype(np.int32))
            longest = int(n_pieces.max(initial=0))
            self._by_columns = _Columns(
                values, positions, copy_in(pieces), copy_in(begin), n_pieces=int(begin[-1]), longest=longest
            )
        return self._by_columns


def rows_on(
    launcher: Launcher, design: DesignMatrix | DeviceDesign, rows: np.ndarray, pointers: np.ndarray, n_threads: int = 1
) -> DenseRows | StreamedRows | SparseRows:
    """Copy the rows of a design matrix to a device, if they are not there; dense ones only if they fit.

    Parameters
    ----------
    launcher : Launcher
        The device, and the variant of its kernels.
    design : DesignMatrix
        The features: a `DenseDesign`, `TwoBlockDesign`, `SparseDesign` or `DeviceDesign`.
    rows : ndarray of int64, shape (n_rows,)
        Row of each position.
    pointers : ndarray of int64, shape (n_queries + 1,)
        First position of each query.
    n_threads : int
        Number of threads that look for the largest values.

    Returns
    -------
    DenseRows, StreamedRows or SparseRows
        The rows there, or those that go through it.
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
    assert isinstance(design, DenseDesign | TwoBlockDesign)
    size, free = int(design.row_bytes * design.X.shape[0]), launcher.device.free_bytes
    name = launcher.device.name
    if size > RESIDENT_SHARE * free - BESIDE_BYTES * len(rows):
        block = in_words(min(size, STREAM_BYTES))
        line = "%s: X takes %s and %s are free, so rows stream through in blocks of %s for every product"
        logger.info(line, name, in_words(size), in_words(free), block)
        return StreamedRows(launcher, design, rows, pointers, largest)
    logger.info("%s: X stays there, %s", name, in_words(size))
    if isinstance(design, TwoBlockDesign):
        first, second = design.X.first, design.X.second
        X = launcher.device.empty(design.X.shape, design.X.dtype)
        launcher.device.copy_in(first.ravel(), X.part(0, first.size))
        launcher.device.copy_in(second.ravel(), X.part(first.size, first.size + second.size))
    else:
        X = launcher.copy_in(design.X)
    return DenseRows(launcher, X, rows, largest)
