"""The rows of X on a device, and their products with vectors there."""

from typing import NamedTuple, Protocol

import numpy as np

from ranksvm.data import DenseDesign, DesignMatrix, SparseDesign, TwoBlockDesign
from ranksvm.data.device_features import DeviceFeatures
from ranksvm.device.launcher import LANES, Launcher, as_int32
from ranksvm.device.protocol import Argument, Device, DeviceArray
from ranksvm.terms.device.sparse_rows import SparseRows

__all__ = [
    "SPARSE_SPAN",
    "DenseRows",
    "DeviceDesign",
    "RowsOnDevice",
    "StreamedRows",
    "additions_of",
    "blocks_for",
    "n_copied",
    "rows_on",
]

# Rows of X are copied as one range, with unused rows in it, if the range has at most SPARSE_SPAN times as many rows as
# are used; otherwise they are gathered, GATHER_BYTES at a time.
SPARSE_SPAN = 1.25
GATHER_BYTES = 64 << 20
# Maximum number of bytes for the partial sums of all blocks of threads.
SUMS_BYTES = 64 << 20


class RowsOnDevice(Protocol):
    """Rows of X on a device; a position is a place in their order there."""

    launcher: Launcher
    n_rows: int
    n_features: int
    largest: np.ndarray
    most_entries: int

    def resident(self, start: int, stop: int) -> tuple[Argument, ...]:
        """The kernel arguments that represent the rows of these positions, valid until the next call."""

    def multiply(self, w: DeviceArray, out: DeviceArray) -> None:
        """``out = X w``."""

    def accumulate(self, u: DeviceArray, out: DeviceArray) -> None:
        """``out = X' u``."""

    def additions(self) -> int:
        """Most additions that one row's summand goes through in ``X' u``, which bounds round-off."""


class DenseRows:
    """Rows of a C-contiguous array: see `RowsOnDevice` for the methods.

    Parameters
    ----------
    launcher : Launcher
        The device, and the variant of its kernels.
    X : DeviceArray of float32 or float64, shape (any, n_features)
        The array.
    rows : ndarray of int64, shape (n_rows,)
        The row of X at each position.
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
        self._rows = launcher.copy_in(as_int32(rows))

    @property
    def blocks(self) -> list[tuple[int, int]]:
        """One block with all positions, because all rows are on the device."""
        return [(0, self.n_rows)]

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
        return additions_of(self.n_rows, self.n_features, self._n_blocks(), self.launcher.n_threads)

    def taken(self, positions: np.ndarray) -> "DenseRows":
        return DenseRows(self.launcher.again(), self.X, self._host_rows[positions], self.largest)

    def _n_blocks(self) -> int:
        return blocks_for(self.launcher, self.n_rows, self.n_features)


class StreamedRows:
    """Dense rows that stay on the host and go through a device block by block: see `RowsOnDevice` for the methods.

    A block consists of whole queries. Every product reads all rows from the host: while kernels work on one block, the
    next one is copied.

    Parameters
    ----------
    launcher : Launcher
        The device, and the variant of its kernels.
    design : DesignMatrix
        The features on the host.
    rows : ndarray of int64, shape (n_rows,)
        The row of X at each position.
    blocks : list of (int, int)
        The range of positions of each block.
    largest : ndarray of float64, shape (n_features,)
        The largest absolute value of each column.
    """

    def __init__(
        self,
        launcher: Launcher,
        design: DesignMatrix,
        rows: np.ndarray,
        blocks: list[tuple[int, int]],
        largest: np.ndarray,
    ):
        # two blocks: kernels work on one while the other is copied
        self._held: list[_Held | None] = [None, None]
        self.launcher = launcher
        self.n_rows = len(rows)
        self.n_features = self.most_entries = design.n_features
        self.largest = largest
        self._design = design
        self._rows = rows
        self._blocks = [(start, stop) for start, stop in blocks if stop > start]
        spans = [_span(rows[start:stop]) if isinstance(design, DenseDesign) else None for start, stop in self._blocks]
        # for each position, the place of its row within its block
        places = np.empty(len(rows), dtype=np.int32)
        for (start, stop), span in zip(self._blocks, spans, strict=True):
            places[start:stop] = np.arange(stop - start) if span is None else rows[start:stop] - span[0]
        extents = zip(self._blocks, spans, strict=True)
        sizes = (stop - start if span is None else span[1] - span[0] for (start, stop), span in extents)
        self._most_rows = max(sizes, default=0)
        self._spans, self._places = spans, launcher.copy_in(places)
        self._host_array = design.X if isinstance(design, DenseDesign) else None
        self._pinned = launcher.device.pin(self._host_array) if any(spans) and self._host_array is not None else None
        self._other: DeviceArray | None = None
        self._loaded = (0, 0)
        if self._blocks:  # allocate their memory now
            self.resident(*self._blocks[0])

    def __del__(self) -> None:
        # the memory may be used for other arrays once the launches so far have ended, so copies into it must end first
        for held in self._held:
            if held is not None:
                self.launcher.device.await_copy(held.copy)

    @property
    def blocks(self) -> list[tuple[int, int]]:
        """The blocks, in the order in which `resident` copies them ahead."""
        return self._blocks

    def resident(self, start: int, stop: int) -> tuple[Argument, ...]:
        if (start, stop) in self._blocks:
            number = self._blocks.index((start, stop))
            held = self._begin(number, beside=None)
            self._begin((number + 1) % len(self._blocks), beside=number)
            self.launcher.device.await_copy(held.copy)
            return held.memory, self._places, self.n_features, 0
        if self._loaded != (start, stop):
            values = self._gathered(start, stop)
            if self._other is None or self._other.size < values.size:
                self._other = None  # free it first, so that there are never two
                self._other = self.launcher.device.empty((values.size,), values.dtype)
            self.launcher.device.copy_in(values, self._other.part(0, values.size))
            self._loaded = start, stop
        return self._other, None, self.n_features, start

    def _begin(self, number: int, beside: int | None) -> "_Held":
        """Begin to copy a block, unless it is there or being copied; keep the memory of the block ``beside``."""
        for held in self._held:
            if held is not None and held.number == number:
                return held
        place = next(k for k, held in enumerate(self._held) if held is None or held.number != beside)
        start, stop = self._blocks[number]
        span = self._spans[number]
        if span is None or self._host_array is None:
            values = self._gathered(start, stop)
        else:
            values = self._host_array[span[0] : span[1]].reshape(-1)
        old = self._held[place]
        memory = None if old is None else old.memory
        if memory is None or memory.size < values.size:
            self._held[place] = old = memory = None  # free it first, so that there are never two
            memory = self.launcher.device.empty((self._most_rows * self.n_features,), values.dtype)
        copy = self.launcher.device.copy_ahead(values, memory.part(0, values.size))
        self._held[place] = found = _Held(number, memory, copy)
        return found

    def _gathered(self, start: int, stop: int) -> np.ndarray:
        """The values of the rows of these positions."""
        taken = self._design.taken(self._rows[start:stop])
        assert isinstance(taken, DenseDesign)
        return taken.X.ravel()

    def multiply(self, w: DeviceArray, out: DeviceArray) -> None:
        for start, stop in self._blocks:
            arguments = *self.resident(start, stop), start, stop
            self.launcher("scores", *arguments, w, out, work=LANES * (stop - start))

    def accumulate(self, u: DeviceArray, out: DeviceArray) -> None:
        run, n = self.launcher, self.n_features
        totals = run.scratch("block totals", len(self._blocks) * n)
        for number, (start, stop) in enumerate(self._blocks):
            n_blocks = blocks_for(run, stop - start, n)
            sums = run.scratch("row sums", n_blocks * n)
            arguments = *self.resident(start, stop), start, stop
            run("accumulate_rows", *arguments, u, sums, n_blocks=n_blocks, shared=run.n_threads)
            run.add_rows(sums, n_blocks, n, totals.part(number * n, (number + 1) * n))
        run.add_rows(totals, len(self._blocks), n, out)

    def additions(self) -> int:
        run, n = self.launcher, self.n_features
        sizes = [stop - start for start, stop in self._blocks]
        of_block = max((additions_of(size, n, blocks_for(run, size, n), run.n_threads) for size in sizes), default=0)
        return of_block + -(-len(sizes) * LANES // run.n_threads) + run.n_threads // LANES


class _Held(NamedTuple):
    """A block of rows in the memory of a device, or being copied there."""

    number: int
    memory: DeviceArray
    copy: object


def _span(rows: np.ndarray) -> tuple[int, int] | None:
    """First row and one past the last, if nearly all rows between them are used; otherwise None."""
    first, last = int(rows.min()), int(rows.max()) + 1
    return (first, last) if last - first <= SPARSE_SPAN * len(rows) else None


def blocks_for(launcher: Launcher, n_rows: int, n_features: int) -> int:
    """Number of blocks of threads that add up ``n_rows`` rows."""
    most = max(1, SUMS_BYTES // (8 * max(1, n_features)))
    return min(launcher.blocks_for(LANES * n_rows), most)


def additions_of(n_rows: int, n_features: int, n_blocks: int, n_threads: int) -> int:
    """Most additions that one row's summand goes through in the kernels that add up rows."""
    parts = max(1, n_threads // max(1, n_features))
    of_block = -(-n_rows // (n_blocks * parts)) + parts
    return of_block + -(-n_blocks * LANES // n_threads) + n_threads // LANES


class DeviceDesign:
    """Features on a device, with attributes of a `DesignMatrix`.

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
        """The largest absolute value of each feature."""
        return self.X.largest() if self._largest is None else self._largest


def n_copied(design: DenseDesign | TwoBlockDesign, n_rows: int) -> int:
    """Number of rows of a design matrix that are copied to a device, if ``n_rows`` of them are to stay there.

    Parameters
    ----------
    design : DenseDesign or TwoBlockDesign
        The features.
    n_rows : int
        Number of rows that are to be there.

    Returns
    -------
    int
        All rows, or ``n_rows`` if that is much less.
    """
    n_all = design.X.shape[0]
    return n_rows if n_all > SPARSE_SPAN * n_rows else n_all


def rows_on(
    launcher: Launcher,
    design: DesignMatrix | DeviceDesign,
    rows: np.ndarray,
    blocks: list[tuple[int, int]] | None = None,
    n_threads: int = 1,
) -> DenseRows | StreamedRows | SparseRows:
    """Copy the rows of a design matrix to a device, if they are not there.

    Parameters
    ----------
    launcher : Launcher
        The device, and the variant of its kernels.
    design : DesignMatrix
        The features: a `DenseDesign`, `TwoBlockDesign`, `SparseDesign` or `DeviceDesign`.
    rows : ndarray of int64, shape (n_rows,)
        The row of X at each position.
    blocks : list of (int, int), optional
        Blocks of positions that stream through; None: all rows stay on the device.
    n_threads : int
        Number of threads that look for the largest values and copy rows.

    Returns
    -------
    DenseRows, StreamedRows or SparseRows
        The rows on the device, or the rows that stream through it.
    """
    largest = design.largest(n_threads)
    if isinstance(design, SparseDesign):
        from scipy import sparse

        data, indices, pointers, n_features = design._csr
        matrix = sparse.csr_array((data, indices, pointers), shape=(len(pointers) - 1, n_features))
        parts = data, as_int32(indices), pointers.astype(np.int64, copy=False)
        values, columns, begin = (launcher.copy_in(part, n_threads) for part in parts)
        return SparseRows(launcher, matrix, (values, columns, begin), rows, largest)
    if isinstance(design, DeviceDesign):
        return DenseRows(launcher, design.X.array, rows, largest)
    assert isinstance(design, DenseDesign | TwoBlockDesign)
    if blocks is not None:
        return StreamedRows(launcher, design, rows, blocks, largest)
    if n_copied(design, len(rows)) < design.X.shape[0]:
        return DenseRows(launcher, _gathered(launcher.device, design, rows, n_threads), np.arange(len(rows)), largest)
    if isinstance(design, TwoBlockDesign):
        first, second = design.X.first, design.X.second
        X = launcher.device.empty(design.X.shape, design.X.dtype)
        launcher.device.copy_in(first.ravel(), X.part(0, first.size), n_threads)
        launcher.device.copy_in(second.ravel(), X.part(first.size, first.size + second.size), n_threads)
    else:
        X = launcher.copy_in(design.X, n_threads)
    return DenseRows(launcher, X, rows, largest)


def _gathered(device: Device, design: DesignMatrix, rows: np.ndarray, n_threads: int) -> DeviceArray:
    """Copy some rows of the host to a device."""
    n = design.n_features
    X = device.empty((len(rows), n), design.dtype)
    step = max(1, int(GATHER_BYTES / design.row_bytes))
    for start in range(0, len(rows), step):
        part = design.taken(rows[start : start + step])
        assert isinstance(part, DenseDesign)
        device.copy_in(part.X.ravel(), X.part(start * n, start * n + part.X.size), n_threads)
    return X
