"""The kernel matrix Q of all documents with each other, computed or given, as solvers use it: products with vectors."""

from typing import Protocol

import numpy as np

from ranksvm._util.types import Features
from ranksvm.device import Device
from ranksvm.device.protocol import StoredArray
from ranksvm.kernels.functions import Kernel, KernelValues, refuse_infinite
from ranksvm.kernels.linear_matrix import LinearKernelMatrix
from ranksvm.kernels.packed_matrix import PackedKernelMatrix

__all__ = ["KernelMatrix", "kernel_matrix", "precomputed_matrix"]


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
        """``Q b``, of shape (n_rows,), summed in float64."""

    def columns(self, positions: np.ndarray) -> np.ndarray:
        """``Q[:, positions]`` in float64, the values that `product` uses."""

    def submatrix(self, positions: np.ndarray, dtype: type[np.floating]) -> np.ndarray:
        """``Q[positions][:, positions]`` for ascending positions; only the lower triangle need be filled in."""

    def diagonal(self) -> np.ndarray:
        """The diagonal of Q, of shape (n_rows,), the values that `product` uses."""

    def product_error(self, b: np.ndarray, product: np.ndarray) -> tuple[float, float]:
        """Bounds on the largest error of a computed product ``Qb``, and on the error of ``b'Qb`` computed from it."""

    def form_rounding(self, b: np.ndarray) -> float:
        """Approximate error of ``b'Qb`` due to the rounding of Q."""


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
