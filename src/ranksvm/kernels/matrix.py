"""The kernel matrix Q of all documents with each other, as solvers see it: its products with vectors."""

from typing import Any, Protocol

import numpy as np

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
        Rows (and columns) of Q.
    n_products : int
        Products with Q made so far.
    product_bytes : int
        Bytes of Q, or of what it is made from, that one product reads from memory; 0 where all of Q is made anew.
    rounding : float
        About how far Q is from what it was rounded from, in the spectral norm.
    """

    n_rows: int
    n_products: int
    product_bytes: int
    rounding: float

    def product(self, b: np.ndarray) -> np.ndarray:
        """``Q b``, of shape (n_rows,), summed in float64."""

    def columns(self, positions: np.ndarray) -> np.ndarray:
        """``Q[:, positions]`` in float64, the values that `product` uses."""

    def diagonal(self) -> np.ndarray:
        """The diagonal of Q, of shape (n_rows,), the values that `product` uses."""

    def form_rounding(self, b: np.ndarray) -> float:
        """About how far ``b'Qb`` is from that of what Q was rounded from."""


def kernel_matrix(kernel: Kernel, X: Any, *, memory: int, dtype: str = "float32", n_threads: int = 1) -> KernelMatrix:
    """The kernel matrix of documents: that of the linear kernel as X X', of any other as one triangle.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    X : ndarray or CSR matrix of float32 or float64, shape (n_rows, n_features)
        The documents, in the order of the rows of Q.
    memory : int
        Bytes that Q may take, with all that building it and multiplying with it needs besides X.
    dtype : {"float32", "float64"}
        Of the values kept. They are made in float64 and rounded once; products sum in float64.
    n_threads : int
        Number of threads. Products do not depend on it beyond round-off.

    Returns
    -------
    KernelMatrix
        Its products.

    Raises
    ------
    OptionError
        When ``memory`` is too small for any product at all.
    DataError
        When a value of the kernel is not finite, or too large for the dtype.
    """
    if kernel.name == "linear":
        sums = max(1, memory // (8 * max(1, X.shape[1])))
        return LinearKernelMatrix(X, n_threads=min(n_threads, sums))
    return PackedKernelMatrix(KernelValues(kernel, X), memory=memory, dtype=dtype, n_threads=n_threads)
