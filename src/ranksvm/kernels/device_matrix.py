"""The kernel matrix on a device: the rows that fit are stored, and every product recomputes the others."""

import logging

import numpy as np

from ranksvm._util.types import Features
from ranksvm.device import Device, DeviceArray
from ranksvm.device.launcher import LANES
from ranksvm.device.protocol import StoredArray
from ranksvm.exceptions import DeviceMemoryError
from ranksvm.kernels.device_values import BlockSource, DocumentValues, GivenValues, kernel_launcher
from ranksvm.kernels.functions import Kernel, KernelValues
from ranksvm.kernels.linear_matrix import LinearKernelMatrix
from ranksvm.kernels.tiles import HEIGHT, MeasuredProducts, Tiles, ValueSource

__all__ = ["DeviceKernelMatrix", "DeviceLinearMatrix", "device_matrix"]

logger = logging.getLogger("ranksvm.kernels")

# Share of the free memory that Q leaves to vectors; and, if not all rows of Q fit, the number of bytes of the rows that
# are computed at a time.
LEFT_SHARE = 1 / 16
BLOCK_BYTES = 256 << 20
# Maximum number of bytes of the partial sums of ``X' b``, one for each block of threads.
SUMS_BYTES = 64 << 20


class DeviceKernelMatrix(MeasuredProducts):
    """A symmetric kernel matrix Q on a device, with both of its triangles: see `KernelMatrix`.

    A product reads each value once, in the order of the rows. Rows that do not fit into the device's memory are
    recomputed by every product, a block at a time, and rounded in the same way.

    Parameters
    ----------
    source : ValueSource
        Source of the values on the host, for the diagonal and for bounds.
    blocks : BlockSource
        Source of the rows on the device.
    device : Device
        The device.
    dtype : dtype
        Type of the stored values. They are computed in float64 and rounded once; products sum in float64.
    n_threads : int
        Number of threads for work on the host.

    Attributes
    ----------
    product_bytes : int
        Bytes of Q that one product reads from the device's memory.

    Raises
    ------
    DeviceMemoryError
        When not even a block of rows fits into the device's memory.
    DataError
        When a value of the kernel is not finite, or too large for the dtype.
    """

    def __init__(self, source: ValueSource, blocks: BlockSource, device: Device, dtype: np.dtype, n_threads: int = 1):
        super().__init__(source, Tiles(source, dtype, HEIGHT), n_threads)
        n = self.n_rows
        self._blocks = blocks
        self._run = run = kernel_launcher(device, dtype)
        self._b, self._out = (device.empty((max(1, n),), np.float64) for _ in range(2))
        self._diagonal = run.copy_in(self.diagonal())
        self._kept, self._made = _memory_for(device, n, dtype)
        self._n_kept, self._step = self._kept.shape[0], self._made.shape[0]
        if self._n_kept < n:
            line = "%s: %d of %d rows of the kernel matrix stay there, the others are computed again for every product"
            logger.info(line, device.name, self._n_kept, n)
        self.product_bytes = self._kept.nbytes
        if self._n_kept:
            self._fill(0, self._n_kept, self._kept)
        if self._n_kept == n:
            self.stored = StoredArray(device, self._kept)

    def product(self, b: np.ndarray) -> np.ndarray:
        """``Q b``: see `KernelMatrix.product`."""
        self.n_products += 1
        n, run = self.n_rows, self._run
        if not n:
            return np.zeros(0)
        vector = run.device.copy_in(np.ascontiguousarray(b, dtype=np.float64), self._b)
        if self._n_kept:
            run("scores", self._kept, None, n, 0, 0, self._n_kept, vector, self._out, work=LANES * self._n_kept)
        for start in range(self._n_kept, n, max(1, self._step)):
            stop = min(start + self._step, n)
            self._fill(start, stop, self._made)
            out = self._out.part(start, stop)
            run("scores", self._made, None, n, 0, 0, stop - start, vector, out, work=LANES * (stop - start))
        return run.device.copy_out(self._out)

    def columns(self, positions: np.ndarray) -> np.ndarray:
        """Some columns of Q: see `KernelMatrix.columns`."""
        positions, n, device = np.asarray(positions), self.n_rows, self._run.device
        out = np.empty((n, len(positions)))
        for place in np.flatnonzero(positions < self._n_kept):
            start = int(positions[place]) * n
            out[:, place] = device.copy_out(self._kept.part(start, start + n))
        made = np.flatnonzero(positions >= self._n_kept)
        for first in range(0, len(made), max(1, self._step)):
            part = made[first : first + self._step]
            self._blocks.rows(positions[part], self._made)
            out[:, part] = device.copy_out(self._made.part(0, len(part) * n)).reshape(-1, n).T
        out[positions[made], made] = self.diagonal()[positions[made]]
        return out

    def _fill(self, start: int, stop: int, out: DeviceArray) -> None:
        self._blocks.fill(start, stop, out)
        self._run("put_diagonal", self._diagonal, start, stop, self.n_rows, out, work=stop - start)


def _memory_for(device: Device, n: int, dtype: np.dtype) -> tuple[DeviceArray, DeviceArray]:
    """Memory for the rows that stay on a device, as many as fit, and for a block of the other rows."""
    row_bytes = max(1, n) * dtype.itemsize
    left = min(int((1.0 - LEFT_SHARE) * device.free_bytes), n * row_bytes)
    while True:
        n_kept, step = n, 0
        if n * row_bytes > left:
            step = max(1, min(BLOCK_BYTES, left // 2) // row_bytes)
            n_kept = max(0, min(n, left // row_bytes - step))
        try:
            return device.empty((n_kept, n), dtype), device.empty((step, n), dtype)
        except DeviceMemoryError:  # other programs have taken the free memory, or it is fragmented
            if n_kept == 0:
                raise
        left //= 2


class DeviceLinearMatrix(LinearKernelMatrix):
    """Matrix of the inner products of dense documents on a device, ``Q b = X (X' b)``: see `LinearKernelMatrix`.

    Parameters
    ----------
    X : ndarray of float32 or float64, shape (n_rows, n_features)
        The documents.
    device : Device
        The device.
    n_threads : int
        Number of threads for work on the host.
    """

    def __init__(self, X: np.ndarray, device: Device, *, n_threads: int = 1):
        super().__init__(X, n_threads=n_threads)
        self._run = kernel_launcher(device, X.dtype)
        self._X = self._run.copy_in(X)
        n, n_features = X.shape
        self._n_blocks = max(1, min(self._run.blocks_for(LANES * n), SUMS_BYTES // (8 * max(1, n_features))))
        self._b, self._w = (device.empty((max(1, size),), np.float64) for size in (n, n_features))

    def product(self, b: np.ndarray) -> np.ndarray:
        """``Q b``: see `KernelMatrix.product`."""
        self.n_products += 1
        n, n_features = self._X.shape
        if not n:
            return np.zeros(0)
        run = self._run
        vector = run.device.copy_in(np.ascontiguousarray(b, dtype=np.float64), self._b)
        rows = self._X, None, n_features, 0, 0, n
        sums = run.scratch("row sums", self._n_blocks * n_features)
        run("accumulate_rows", *rows, vector, sums, n_blocks=self._n_blocks, shared=run.n_threads)
        run.add_rows(sums, self._n_blocks, n_features, self._w)
        run("scores", *rows, self._w, self._b, work=LANES * n)
        return run.device.copy_out(self._b)


def device_matrix(
    kernel: Kernel | None,
    X: Features,
    source: ValueSource,
    device: Device,
    *,
    dtype: str = "float32",
    rows: np.ndarray | None = None,
    n_threads: int = 1,
) -> DeviceKernelMatrix | DeviceLinearMatrix:
    """The kernel matrix of documents, or a submatrix of a precomputed kernel matrix, on a device.

    Parameters
    ----------
    kernel : Kernel or None
        The kernel; None: X is the precomputed matrix.
    X : ndarray or CSR matrix of float32 or float64
        The documents, in the order of the rows of Q; or the precomputed matrix of all documents.
    source : ValueSource
        Source of the values on the host.
    device : Device
        The device.
    dtype : {"float32", "float64"}
        Type of the stored values.
    rows : ndarray of int64, optional
        The rows (and columns) of the precomputed matrix that Q consists of.
    n_threads : int
        Number of threads for work on the host.

    Returns
    -------
    DeviceKernelMatrix or DeviceLinearMatrix
        The matrix, for products with vectors.
    """
    if kernel is not None and kernel.name == "linear" and isinstance(X, np.ndarray):
        return DeviceLinearMatrix(X, device, n_threads=n_threads)
    run, stored = kernel_launcher(device, np.dtype(dtype)), np.dtype(dtype)
    if kernel is None:
        assert rows is not None
        assert isinstance(X, np.ndarray)
        blocks: BlockSource = GivenValues(run, X, rows, stored)
    else:
        assert isinstance(source, KernelValues)
        blocks = DocumentValues(run, kernel, source)
    return DeviceKernelMatrix(source, blocks, device, stored, n_threads)
