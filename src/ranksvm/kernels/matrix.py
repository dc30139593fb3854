"""The kernel matrix Q of all documents with each other, computed or given, as solvers use it: products with vectors."""

import itertools
from typing import Protocol

import numpy as np

import ranksvm._compiled.kernel as compiled
from ranksvm._util.threads import even_ranges, parallel_map
from ranksvm._util.types import Features
from ranksvm.device import Device
from ranksvm.device.protocol import StoredArray
from ranksvm.exceptions import OptionError
from ranksvm.kernels.functions import Kernel, KernelValues, refuse_infinite
from ranksvm.kernels.linear_matrix import LinearKernelMatrix
from ranksvm.kernels.tiles import HEIGHT, MeasuredProducts, Tiles, ValueSource

__all__ = ["KernelMatrix", "kernel_matrix", "precomputed_matrix"]

# Possible numbers of columns of the tiles in which values are computed; narrow tiles are for small matrices and small
# memory.
WIDTHS = (2048, 1024, 512, 256, 128, 64)
# Share of the memory that tiles may use before they become narrower.
TILES_SHARE = 0.25
# Number of ranges of panels (groups of consecutive rows) that threads share, each with its own sums: enough that no
# thread waits long for another. The number is the same for any small number of threads, so that the products are then
# equal bit by bit.
TASKS = 16
TASKS_PER_THREAD = 4
VALUES_PER_TASK = 1 << 17


class KernelMatrix(Protocol):
    """A symmetric positive semi-definite matrix Q of kernel values.

    Attributes
    ----------
    n_rows : int
        Number of rows (and columns) of Q.
    n_products : int
        Number of products with Q so far.
    product_bytes : int
        Bytes of Q, or of the data from which it is computed, that one product reads from memory; 0 if all of Q is
        recomputed.
    rounding : float
        Approximate error of Q due to rounding, in the spectral norm.
    largest : float
        Largest value of Q: it is on the diagonal.
    stored : StoredArray or None
        All rows of Q in full, if they are stored on a device.
    """

    n_rows: int
    n_products: int
    product_bytes: int
    rounding: float
    stored: StoredArray | None

    @property
    def largest(self) -> float: ...

    def product(self, b: np.ndarray) -> np.ndarray:
        """``Q b``.

        Parameters
        ----------
        b : ndarray of float64, shape (n_rows,)
            The vector.

        Returns
        -------
        ndarray of float64, shape (n_rows,)
            The product, summed in float64.
        """

    def columns(self, positions: np.ndarray) -> np.ndarray:
        """Some columns of Q, the values that `product` uses.

        Parameters
        ----------
        positions : ndarray of int, shape (n_positions,)
            The columns.

        Returns
        -------
        ndarray of float64, shape (n_rows, n_positions)
            ``Q[:, positions]``.
        """

    def submatrix(self, positions: np.ndarray, dtype: type[np.floating]) -> np.ndarray:
        """``Q[positions][:, positions]`` for ascending positions; only the lower triangle need be filled in."""

    def diagonal(self) -> np.ndarray:
        """The diagonal of Q, of shape (n_rows,), the values that `product` uses."""

    def product_error(self, b: np.ndarray, product: np.ndarray) -> tuple[float, float]:
        """Bounds on the largest error of a computed product ``Qb``, and on the error of ``b'Qb`` computed from it."""

    def form_rounding(self, b: np.ndarray) -> float:
        """Approximate error of ``b'Qb`` due to the rounding of Q."""


class PackedKernelMatrix(MeasuredProducts):
    """One triangle of a symmetric kernel matrix Q, in panels of consecutive rows.

    A product reads each value once and uses it twice. Values that do not fit into memory are recomputed by every
    product, tile by tile in the CPU's cache, and rounded in the same way.

    Parameters
    ----------
    source : ValueSource
        Source of the values.
    memory : int
        Bytes that Q may use, including its construction and products.
    dtype : {"float32", "float64"}
        Type of the stored values. They are computed in float64 and rounded once; products sum in float64.
    n_threads : int
        Number of threads.

    Attributes
    ----------
    product_bytes : int
        Bytes of Q that one product reads from memory.

    Raises
    ------
    OptionError
        When ``memory`` is too small for any product at all.
    DataError
        When a value of the kernel is not finite, or too large for the dtype.
    """

    def __init__(self, source: ValueSource, *, memory: int, dtype: str = "float32", n_threads: int = 1):
        max_tasks = max(TASKS, TASKS_PER_THREAD * n_threads)
        width, self._n_kept = _plan(source, memory, np.dtype(dtype), n_threads if source.parallel else 1, max_tasks)
        super().__init__(source, Tiles(source, np.dtype(dtype), width), n_threads)
        self._stored_tasks = _tasks(0, self._n_kept, max_tasks)
        self._recomputed_tasks = _tasks(self._n_kept, -(-self.n_rows // HEIGHT), max_tasks)
        self._values = np.empty(_n_values(self._n_kept, self.n_rows), dtype=dtype)
        self.product_bytes = self._values.nbytes
        self._tiles.parallel(self._store, self._stored_tasks, n_threads)

    def product(self, b: np.ndarray) -> np.ndarray:
        """``Q b``: see `KernelMatrix.product`."""
        self.n_products += 1
        b = np.ascontiguousarray(b, dtype=np.float64)
        sums = np.zeros((max(len(self._recomputed_tasks), len(self._stored_tasks)), self.n_rows))

        def multiply(task: int) -> None:
            for rows, columns, values in self._tiles.of_panels(*self._recomputed_tasks[task]):
                if rows == columns:
                    compiled.square_product(values, rows.start, b, sums[task])
                else:
                    compiled.block_product(values, rows.start, columns.start, b, sums[task])

        def read(task: int) -> None:
            first, last = self._stored_tasks[task]
            compiled.panels_product(self._values, self.n_rows, HEIGHT, first, last, b, sums[task])

        if self._recomputed_tasks:
            self._tiles.parallel(multiply, range(len(self._recomputed_tasks)), self._n_threads)
        if len(self._stored_tasks) == 1:  # a small matrix, for which threads would take longer
            read(0)
        else:
            parallel_map(read, range(len(self._stored_tasks)), self._n_threads)
        return sums.sum(axis=0)

    def columns(self, positions: np.ndarray) -> np.ndarray:
        """Some columns of Q: see `KernelMatrix.columns`."""
        positions = np.asarray(positions)
        out = np.empty((self.n_rows, len(positions)))
        kept_rows = min(self._n_kept * HEIGHT, self.n_rows)
        kept, made = np.flatnonzero(positions < kept_rows), np.flatnonzero(positions >= kept_rows)

        def read(panels: tuple[int, int]) -> None:
            for panel in range(*panels):
                values, start = self._panel(panel), panel * HEIGHT
                stop = start + len(values)
                left = kept[positions[kept] < stop]
                out[start:stop, left] = values[:, positions[left]]
                within = left[positions[left] >= start]
                out[:start, within] = values[positions[within] - start, :start].T

        parallel_map(read, self._stored_tasks, self._n_threads)
        if self._recomputed_tasks:
            self._tiles.columns(positions, made, 0, kept_rows, out, self._n_threads)
            self._tiles.columns(positions, np.arange(len(positions)), kept_rows, self.n_rows, out, self._n_threads)
        return out

    def submatrix(self, positions: np.ndarray, dtype: type[np.floating]) -> np.ndarray:
        """The kernel values between some documents, in the lower triangle: see `MeasuredProducts.submatrix`."""
        if self._recomputed_tasks:
            return super().submatrix(positions, dtype)
        out = np.empty((len(positions), len(positions)), dtype=dtype)

        def read(rows: tuple[int, int]) -> None:
            compiled.gather_rows(self._values, self.n_rows, HEIGHT, positions, *rows, out)

        parallel_map(read, even_ranges(0, len(positions), TASKS_PER_THREAD * self._n_threads), self._n_threads)
        return out

    def _panel(self, panel: int) -> np.ndarray:
        """The values of a stored panel: its rows, and the columns up to its last row."""
        start, stop = panel * HEIGHT, min((panel + 1) * HEIGHT, self.n_rows)
        first, last = _n_values(panel, self.n_rows), _n_values(panel + 1, self.n_rows)
        return self._values[first:last].reshape(stop - start, stop)

    def _store(self, task: tuple[int, int]) -> None:
        for rows, columns, values in self._tiles.of_panels(*task):
            self._panel(rows.start // HEIGHT)[:, columns] = values


def kernel_matrix(
    kernel: Kernel,
    X: Features,
    *,
    memory: int,
    dtype: str = "float32",
    n_threads: int = 1,
    device: Device | None = None,
) -> KernelMatrix:
    """The kernel matrix of documents: for the linear kernel as X X', for any other as one triangle, or on a device.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    X : ndarray or CSR matrix of float32 or float64, shape (n_rows, n_features)
        The documents, in the order of the rows of Q.
    memory : int
        Bytes that Q may use in addition to X, including its construction and products.
    dtype : {"float32", "float64"}
        Type of the stored values. They are computed in float64 and rounded once; products sum in float64.
    n_threads : int
        Number of threads. Products do not depend on it beyond round-off.
    device : Device, optional
        Device that computes and multiplies Q, in its own free memory; ``memory`` then has no effect. The device cannot
        evaluate a callable.

    Returns
    -------
    KernelMatrix
        The matrix, for products with vectors.

    Raises
    ------
    OptionError
        When ``memory`` is too small for any product.
    DeviceError
        When the device's memory is too small.
    DataError
        When a value of the kernel is not finite, or too large for the dtype.
    """
    if device is not None:
        # imported only if there is a device
        from ranksvm.kernels.device_matrix import device_matrix

        return device_matrix(kernel, X, KernelValues(kernel, X), device, dtype=dtype, n_threads=n_threads)
    if kernel.name == "linear":
        sums = max(1, memory // (8 * max(1, X.shape[1])))
        return LinearKernelMatrix(X, n_threads=min(n_threads, sums))
    return PackedKernelMatrix(KernelValues(kernel, X), memory=memory, dtype=dtype, n_threads=n_threads)


class _GivenValues:
    """Values of some rows and columns of a full matrix."""

    name = "precomputed"
    parallel = True
    row_bytes = 8

    def __init__(self, K: np.ndarray, rows: np.ndarray):
        self.n_rows = len(rows)
        # the selected values are copied before they are written to their place
        self.value_bytes = K.itemsize
        self._K, self._rows = K, rows

    def ready(self, rows: slice | np.ndarray) -> np.ndarray:
        return self._rows[rows]

    def values(self, ours: np.ndarray, rows: slice, theirs: np.ndarray, columns: slice, out: np.ndarray) -> None:
        out[...] = self._K[ours[rows, np.newaxis], theirs[columns]]
        refuse_infinite(self.name, out)

    def diagonal(self) -> np.ndarray:
        values = self._K[self._rows, self._rows].astype(np.float64)
        refuse_infinite(self.name, values)
        return values

    def value_error(self) -> float:
        return 0.0


def precomputed_matrix(
    K: np.ndarray,
    rows: np.ndarray,
    *,
    memory: int,
    dtype: str = "float32",
    n_threads: int = 1,
    device: Device | None = None,
) -> KernelMatrix:
    """The submatrix of a full kernel matrix for some rows, with its lower triangle packed.

    Values that do not fit into memory are read from the full matrix by every product.

    Parameters
    ----------
    K : ndarray, shape (n_samples, n_samples)
        Values of a kernel for every two documents, validated by `check_precomputed`.
    rows : ndarray of int, shape (n_rows,)
        The selected documents, in the desired order.
    memory : int
        Bytes that the packed matrix may take in addition to K, including its construction and products.
    dtype : {"float32", "float64"}
        Type of the stored values; products sum in float64.
    n_threads : int
        Number of threads.
    device : Device, optional
        Device that multiplies the matrix, in its free memory; rows that do not fit are copied there by every
        product.

    Returns
    -------
    KernelMatrix
        The matrix, for products with vectors.

    Raises
    ------
    OptionError
        When ``memory`` is too small for any product at all.
    DeviceError
        When the device's memory is too small.
    DataError
        When a value is not finite, or too large for the dtype.
    """
    source = _GivenValues(K, rows)
    if device is not None:
        from ranksvm.kernels.device_matrix import device_matrix

        return device_matrix(None, K, source, device, dtype=dtype, rows=rows, n_threads=n_threads)
    return PackedKernelMatrix(source, memory=memory, dtype=dtype, n_threads=n_threads)


def _plan(source: ValueSource, memory: int, dtype: np.dtype, makers: int, n_tasks: int) -> tuple[int, int]:
    """The number of columns of a tile, and the number of stored panels."""
    n_rows, n_panels = source.n_rows, -(-source.n_rows // HEIGHT)
    # the sums of the tasks, both vectors of a product, and the diagonal in both precisions
    vectors = 8 * n_rows * (n_tasks + 4)
    whole = _n_values(n_panels, n_rows) * dtype.itemsize

    def tiles(width: int) -> int:
        value_bytes = 8 + dtype.itemsize + source.value_bytes
        return makers * (HEIGHT * width * value_bytes + 2 * width * source.row_bytes)

    for width in WIDTHS:
        if vectors + tiles(width) + whole <= memory:
            return width, n_panels
    width = next((width for width in WIDTHS if tiles(width) <= TILES_SHARE * (memory - vectors)), WIDTHS[-1])
    left = memory - vectors - tiles(width)
    if left < 0:
        raise OptionError(
            f"Products with the kernel matrix of {n_rows:,} rows need at least {_megabytes(vectors + tiles(width))} of "
            f"memory even if none of it is stored, and {_megabytes(max(0, memory))} are left for them (storing all of "
            f"it takes {_megabytes(vectors + tiles(width) + whole)}): raise memory_limit."
        )
    return width, next(kept for kept in range(n_panels, -1, -1) if _n_values(kept, n_rows) * dtype.itemsize <= left)


def _n_values(n_panels: int, n_rows: int) -> int:
    """Number of values in the first panels of a matrix."""
    whole = min(n_panels, n_rows // HEIGHT)
    values = HEIGHT * HEIGHT * (whole * (whole + 1) // 2)
    return values if whole == n_panels else values + (n_rows - whole * HEIGHT) * n_rows


def _tasks(first: int, last: int, max_tasks: int) -> list[tuple[int, int]]:
    """Ranges of panels that have about equal numbers of values."""
    areas = np.cumsum(np.arange(first, last) + 1) * HEIGHT * HEIGHT
    if not len(areas):
        return []
    n_tasks = min(max_tasks, max(1, int(areas[-1]) // VALUES_PER_TASK))
    cuts = first + 1 + np.searchsorted(areas, areas[-1] * (np.arange(1, n_tasks) / n_tasks))
    bounds = np.unique([first, *cuts, last]).tolist()
    return list(itertools.pairwise(bounds))


def _megabytes(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:,.1f} MB"
