"""Names for the types of arguments, as NumPy and scikit-learn use them.

`numpy.typing.ArrayLike` and `numpy.typing.DTypeLike` are used under their own names. SciPy, pandas, polars and pyarrow
are not imported: what the package needs of their objects is described by protocols.
"""

import os
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

__all__ = [
    "COOMatrix",
    "CSRMatrix",
    "DataFrame",
    "Features",
    "Json",
    "MatrixLike",
    "MemoryLimit",
    "PathLike",
    "RandomState",
    "SparseMatrix",
    "Splits",
    "Splitter",
]


class SparseMatrix(Protocol):
    """A sparse matrix or array of SciPy, in any format."""

    @property
    def shape(self) -> tuple[int, int]: ...
    @property
    def dtype(self) -> np.dtype: ...
    @property
    def nnz(self) -> int: ...
    @property
    def format(self) -> str: ...
    def tocsr(self) -> "CSRMatrix": ...
    def tocsc(self) -> "CSRMatrix": ...
    def tocoo(self) -> "COOMatrix": ...
    def toarray(self) -> np.ndarray: ...


class COOMatrix(SparseMatrix, Protocol):
    """A sparse matrix or array of SciPy in COO format."""

    data: np.ndarray
    row: np.ndarray
    col: np.ndarray


class CSRMatrix(SparseMatrix, Protocol):
    """A sparse matrix or array of SciPy in CSR format (or CSC, which has the same arrays)."""

    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray

    @property
    def has_canonical_format(self) -> bool: ...
    def sum_duplicates(self) -> None: ...
    @property
    def T(self) -> "CSRMatrix": ...  # noqa: N802 -- the name in SciPy
    def astype(self, dtype: DTypeLike, *, copy: bool = True) -> "CSRMatrix": ...
    def copy(self) -> "CSRMatrix": ...
    # the result depends on the other operand: an element, a row or a matrix
    def __getitem__(self, index: Any) -> Any: ...
    def __matmul__(self, other: Any) -> Any: ...


class DataFrame(Protocol):
    """A table of pandas, polars, pyarrow or another library that narwhals supports."""

    @property
    def shape(self) -> tuple[int, int]: ...
    @property
    def columns(self) -> Iterable[Any]: ...


class Splitter(Protocol):
    """An object that divides rows: a splitter of scikit-learn, or one with the same method."""

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterable[tuple[np.ndarray, np.ndarray]]: ...


# Features as users pass them.
MatrixLike = ArrayLike | SparseMatrix | DataFrame
# Features in the form that matrix products need: C-contiguous float32 or float64, or CSR.
Features = np.ndarray | CSRMatrix
# The name of a file.
PathLike = str | os.PathLike[str]
# How to divide rows: a number of folds, a splitter, or the rows of each training and test part.
Splits = int | Splitter | Iterable[tuple[ArrayLike, ArrayLike]]
# A seed or a generator of random numbers, as in scikit-learn.
RandomState = int | np.random.RandomState | None
# Bytes, or text such as "2GB"; None: no limit was chosen.
MemoryLimit = int | str | None
# An object of a JSON document.
Json = Mapping[str, Any]
