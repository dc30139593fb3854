"""Checks the arrays of a sparse matrix: if they are invalid, products and conversions could read beyond their ends."""

from typing import Any

import numpy as np

import ranksvm._compiled.linear as linear
from ranksvm._util.types import CSRMatrix, SparseMatrix
from ranksvm.exceptions import DataError

__all__ = ["check_sparse_format", "contiguous", "without_duplicates"]


def check_sparse_format(X: SparseMatrix, name: str = "X") -> None:
    """Refuse a sparse matrix whose arrays do not agree; one pass over its column numbers.

    SciPy checks lengths only when a matrix is made, and nothing when its arrays are changed.

    Parameters
    ----------
    X : scipy.sparse matrix or array
        The matrix, checked if it is CSR, CSC, BSR or COO. SciPy converts other formats safely.
    name : str
        Name of the matrix in messages.

    Raises
    ------
    DataError
        When there are not two dimensions, pointers do not ascend from 0 to the number of entries, or a row or column
        number is beyond the shape.
    """
    if len(X.shape) != 2:
        raise DataError(f"{name} must have two dimensions, got shape {X.shape}: take a row by {name}[[i]].")
    if X.format == "coo":
        coo = X.tocoo()
        for axis, (places, size) in enumerate(zip((coo.row, coo.col), X.shape, strict=True)):
            if len(places) != len(coo.data) or (len(places) and not 0 <= places.min() <= places.max() < size):
                which = ("row", "column")[axis]
                raise DataError(f"{name} is not a valid COO matrix: its {which} numbers exceed the shape {X.shape}.")
    elif X.format in ("csr", "csc", "bsr"):
        _check_compressed(X, name)


def contiguous(X: CSRMatrix) -> CSRMatrix:
    """A CSR matrix as compiled loops need it: the matrix itself, or a copy if an array of it is a view with gaps.

    Parameters
    ----------
    X : CSR matrix or array
        The matrix.

    Returns
    -------
    CSR matrix or array
        The same matrix.
    """
    return X if all(array.flags.c_contiguous for array in (X.data, X.indices, X.indptr)) else X.copy()


def without_duplicates(X: CSRMatrix) -> CSRMatrix:
    """A CSR matrix whose duplicate entries are added up: the matrix itself if it has none, otherwise a copy.

    Parameters
    ----------
    X : CSR matrix or array
        A matrix, which may have several entries for one place.

    Returns
    -------
    CSR matrix or array
        The same values, sorted by column in each row.
    """
    if X.has_canonical_format:
        return X
    X = X.copy()
    X.sum_duplicates()
    return X


def _check_compressed(X: Any, name: str) -> None:
    shape = X.shape if X.format != "csc" else X.shape[::-1]
    if X.format == "bsr":
        shape = tuple(size // block for size, block in zip(shape, X.blocksize, strict=True))
    try:
        indices, indptr = _same_type(X.indices, X.indptr)
        if len(indptr) != shape[0] + 1 or len(indices) != len(X.data):
            raise ValueError(f"{len(indptr)} pointers, {len(indices)} indices and {len(X.data)} values")
        linear.check_csr(indices, indptr, shape[1])
    except (TypeError, ValueError) as error:
        raise DataError(
            f"{name} is not a valid {X.format.upper()} matrix of shape {X.shape} ({error}): its arrays were wrong, or "
            "were changed later; build it again from rows, columns and values."
        ) from None


def _same_type(indices: np.ndarray, indptr: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both as int32, or both as int64, as compiled loops need them."""
    types = {indices.dtype, indptr.dtype}
    if indices.ndim != 1 or indptr.ndim != 1 or not types <= {np.dtype(np.int32), np.dtype(np.int64)}:
        raise TypeError(f"indices of {indices.dtype} and pointers of {indptr.dtype}, not of int32 or int64")
    dtype = np.int32 if types == {np.dtype(np.int32)} else np.int64
    return tuple(np.ascontiguousarray(array, dtype=dtype) for array in (indices, indptr))  # type: ignore[return-value]
