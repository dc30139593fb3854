"""A kernel matrix that the user has computed."""

import numpy as np

from ranksvm.device import Device
from ranksvm.kernels.functions import refuse_infinite
from ranksvm.kernels.matrix import KernelMatrix
from ranksvm.kernels.packed_matrix import PackedKernelMatrix

__all__ = ["precomputed_matrix"]


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

    def values(self, rows: np.ndarray, columns: np.ndarray, out: np.ndarray) -> None:
        out[...] = self._K[rows[:, np.newaxis], columns]
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
