"""The kernel matrix Q of all documents with each other, in the form used by solvers: products with vectors."""

from typing import Protocol

import numpy as np

from ranksvm._util.types import Features
from ranksvm.device import Device
from ranksvm.device.protocol import StoredArray
from ranksvm.kernels.functions import Kernel
from ranksvm.kernels.linear_matrix import LinearKernelMatrix
from ranksvm.kernels.packed_matrix import PackedKernelMatrix
from ranksvm.kernels.tiles import KernelValues

__all__ = ["KernelMatrix", "kernel_matrix"]


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
