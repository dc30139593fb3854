"""Design matrices: features with the products, such as ``X w``, that solvers need; one class per storage format."""

from collections.abc import Callable
from functools import partial
from typing import Protocol

import numpy as np

import ranksvm._compiled.dual_descent as dual_descent
import ranksvm._compiled.factorized as factorized
import ranksvm._compiled.linear as linear
from ranksvm._util.checks import is_sparse
from ranksvm._util.mapped_file import MappedFile
from ranksvm._util.threads import even_ranges, parallel_map
from ranksvm._util.types import CSRMatrix, Features, SparseMatrix
from ranksvm.data.frames import stacked

__all__ = [
    "Basis",
    "DenseDesign",
    "DesignMatrix",
    "RowProducts",
    "SparseDesign",
    "TwoBlockDesign",
    "TwoBlocks",
    "as_design_matrix",
    "csr_arrays",
    "mapped_file",
    "stored_bytes",
]


# Minimum number of values among which several threads find the largest ones faster than one thread.
SHARED_VALUES = 1 << 20


class RowProducts(Protocol):
    """Products of some rows of features with vectors; the position of a row is its place among these rows.

    The methods work on the positions ``start`` to ``stop - 1``, and arrays named ``*_range`` have values for these
    positions only. Sums are in float64 unless the caller allowed another type. If the class is compiled
    (`ranksvm._compiled.passes.RowProducts`), a pass over all rows computes the products without calls from Python.
    """

    def scores(self, start: int, stop: int, w: np.ndarray, v_range: np.ndarray) -> None:
        """``v = X w``."""

    def accumulate(self, start: int, stop: int, u_range: np.ndarray, total: np.ndarray) -> None:
        """``total += X' u``."""


class Basis(Protocol):
    """A map between weights and the vectors that the products of a design matrix take; it is applied once per pass.

    Attributes
    ----------
    n_numbers : int
        Length of these vectors.
    """

    @property
    def n_numbers(self) -> int: ...

    def expanded(self, w: np.ndarray) -> np.ndarray:
        """The vector for weights w: ``X w = Y expanded(w)``, where Y are the rows that the products use."""

    def contracted(self, total: np.ndarray) -> np.ndarray:
        """The transposed map: ``X' u = contracted(Y' u)``; the argument is overwritten."""


class DesignMatrix(Protocol):
    """Rows of features, read without copying.

    ``rows`` maps positions to rows (None if they are the same). The methods work on the positions ``start`` to
    ``stop - 1``, and arrays named ``*_range`` have values for these positions only. All sums are in float64 unless the
    caller allows another type.

    Examples
    --------
    >>> import numpy as np
    >>> from ranksvm.data import as_design_matrix
    >>> design = as_design_matrix(np.array([[1.0, 2.0], [3.0, 4.0]]))
    >>> design.n_features, design.taken(np.array([1])).X.tolist()
    (2, [[3.0, 4.0]])
    """

    n_features: int
    row_bytes: float
    dense: bool
    dtype: np.dtype  # of the features as they are stored
    file: MappedFile | None  # the mapped file that holds them

    @property
    def vector_basis(self) -> "Basis | None":
        """The map from weights to the vectors that products take; None if products take the weights themselves."""

    def products(self, rows: np.ndarray | None = None, double: bool = True) -> RowProducts:
        """The products ``X w`` and ``X' u`` with these rows; unless ``double``, sums may be in the features' type."""

    def accumulate_squares(
        self, rows: np.ndarray | None, start: int, stop: int, u_range: np.ndarray, out: np.ndarray
    ) -> None:
        """``out += (X * X)' u``."""

    def gather(self, rows: np.ndarray | None, start: int, stop: int, out_range: np.ndarray) -> None:
        """``out = X``, dense, in the precision of ``out``: float64, or float32 if the features are float32.

        ``out`` may have more columns than X: the extra columns become 0.
        """

    def largest(self, n_threads: int = 1) -> np.ndarray:
        """The largest absolute value of each feature, or a bound on it: float64, shape (n_features,)."""

    @property
    def most_entries(self) -> int:
        """Maximum number of products that are added up for a score."""

    def taken(self, rows: np.ndarray) -> "DesignMatrix":
        """A design matrix with a copy of some rows."""


class DenseDesign:
    """A C-contiguous float32 or float64 array.

    Parameters
    ----------
    X : ndarray of float32 or float64, shape (n_rows, n_features)
        The features.
    largest : ndarray of float64, shape (n_features,), optional
        The largest absolute value of each column, if it is known.

    Examples
    --------
    >>> import numpy as np
    >>> from ranksvm.data import as_design_matrix
    >>> design = as_design_matrix(np.array([[1.0, 2.0], [3.0, 4.0]]))
    >>> type(design).__name__, design.largest().tolist()
    ('DenseDesign', [3.0, 4.0])
    """

    dense = True
    vector_basis: Basis | None = None

    def __init__(self, X: np.ndarray, largest: np.ndarray | None = None):
        self._X = X
        self.file = mapped_file(X)
        self._largest = largest
        self.dtype = X.dtype
        self.n_features = X.shape[1]
        self.row_bytes = max(1, X.shape[1] * X.itemsize)

    @property
    def X(self) -> np.ndarray:  # noqa: N802
        """The features; DataError if their file has become shorter."""
        if self.file is not None:
            self.file.check_whole()
        return self._X

    def products(self, rows: np.ndarray | None = None, double: bool = True) -> RowProducts:
        return linear.dense_products(self.X, rows, double)

    def accumulate_squares(
        self, rows: np.ndarray | None, start: int, stop: int, u_range: np.ndarray, out: np.ndarray
    ) -> None:
        block = np.empty((stop - start, self.n_features))
        linear.dense_gather(self.X, rows, start, stop, block)
        block *= block
        linear.dense_products(block, None).accumulate(0, stop - start, u_range, out)

    def gather(self, rows: np.ndarray | None, start: int, stop: int, out_range: np.ndarray) -> None:
        linear.dense_gather(self.X, rows, start, stop, out_range)

    def largest(self, n_threads: int = 1) -> np.ndarray:
        if self._largest is None:
            self._largest = _largest(partial(linear.dense_largest, self.X), len(self.X), self.n_features, n_threads)
        return self._largest

    @property
    def most_entries(self) -> int:
        return self.n_features

    def taken(self, rows: np.ndarray) -> "DenseDesign":
        return DenseDesign(self.X[rows])

    def gram(self, rows: np.ndarray | None) -> np.ndarray:
        """Inner products of some rows, or of all rows (None), with each other, in float64."""
        X = (self.X if rows is None else self.X[rows]).astype(np.float64, copy=False)
        return X @ X.T

    def visit_factors(
        self, factors: factorized.QueryFactors, order: np.ndarray, upper: float, fixed_step: float, beta: np.ndarray
    ) -> float:
        return float(factorized.visit_dense(self.X, factors, order, upper, fixed_step, beta))

    def query_grams(self, arrays: dual_descent.PairArrays, order: np.ndarray) -> None:
        dual_descent.dense_grams(self.X, arrays, order, np.zeros(self.n_features))

    def dual_ascent(
        self,
        arrays: dual_descent.PairArrays,
        order: np.ndarray,
        alpha: np.ndarray,
        z: np.ndarray,
        signs: np.ndarray | None,
        w: np.ndarray,
    ) -> float:
        return float(dual_descent.dense_ascent(self.X, arrays, order, alpha, z, signs, w))


class TwoBlocks:
    """The rows of ``first``, then the rows of ``second``: like ``np.concatenate``, without copying.

    Parameters
    ----------
    first, second : ndarray of float32 or float64, C-contiguous, of the same type, shape (n_rows, n_features)
        The rows.

    Examples
    --------
    >>> import numpy as np
    >>> from ranksvm.data import TwoBlocks
    >>> rows = TwoBlocks(np.zeros((2, 3)), np.ones((4, 3)))
    >>> rows.shape
    (6, 3)
    """

    def __init__(self, first: np.ndarray, second: np.ndarray):
        self.first = first
        self.second = second
        self.shape = (first.shape[0] + second.shape[0], first.shape[1])
        self.dtype = first.dtype

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        n_first = self.first.shape[0]
        taken = np.empty((len(rows), self.shape[1]), dtype=self.dtype)
        is_first = rows < n_first
        taken[is_first] = self.first[rows[is_first]]
        taken[~is_first] = self.second[rows[~is_first] - n_first]
        return taken

    def stacked(self) -> np.ndarray:
        """Copy the rows into one array.

        Returns
        -------
        ndarray of shape (n_rows, n_features)
            The rows.
        """
        return np.concatenate([self.first, self.second])

    @staticmethod
    def joined(first: Features, second: Features) -> "TwoBlocks | CSRMatrix":
        """Join two blocks of rows: a `TwoBlocks` if both are arrays (converted to one type), otherwise a CSR matrix.

        Parameters
        ----------
        first, second : ndarray or CSR matrix of float32 or float64
            Rows, validated.

        Returns
        -------
        TwoBlocks, or CSR matrix
            The rows of both.
        """
        if is_sparse(first) or is_sparse(second):
            return stacked(first, second)
        dtype = np.result_type(first, second)
        return TwoBlocks(first.astype(dtype, copy=False), second.astype(dtype, copy=False))


class TwoBlockDesign:
    """Rows in two C-contiguous arrays, such as the preferred and the other documents of listed pairs.

    Parameters
    ----------
    X : TwoBlocks
        The features.

    Examples
    --------
    >>> import numpy as np
    >>> from ranksvm.data import TwoBlockDesign, TwoBlocks
    >>> design = TwoBlockDesign(TwoBlocks(np.zeros((2, 3)), np.ones((4, 3))))
    >>> design.n_features, design.largest().tolist()
    (3, [1.0, 1.0, 1.0])
    """

    dense = True
    vector_basis: Basis | None = None

    def __init__(self, X: TwoBlocks):
        self.X = X
        self.file = mapped_file(X.first) or mapped_file(X.second)
        self.dtype = X.dtype
        self.n_features = X.shape[1]
        self.row_bytes = max(1, X.shape[1] * X.dtype.itemsize)

    def products(self, rows: np.ndarray | None = None, double: bool = True) -> RowProducts:
        return linear.two_block_products(self.X.first, self.X.second, rows, double)

    def accumulate_squares(
        self, rows: np.ndarray | None, start: int, stop: int, u_range: np.ndarray, out: np.ndarray
    ) -> None:
        block = np.empty((stop - start, self.n_features))
        self.gather(rows, start, stop, block)
        block *= block
        linear.dense_products(block, None).accumulate(0, stop - start, u_range, out)

    def gather(self, rows: np.ndarray | None, start: int, stop: int, out_range: np.ndarray) -> None:
        linear.two_block_gather(self.X.first, self.X.second, rows, start, stop, out_range)

    def taken(self, rows: np.ndarray) -> "DenseDesign":
        return DenseDesign(self.X[rows])

    def largest(self, n_threads: int = 1) -> np.ndarray:
        blocks = self.X.first, self.X.second
        return np.maximum(*(DenseDesign(block).largest(n_threads) for block in blocks))

    @property
    def most_entries(self) -> int:
        return self.n_features


class SparseDesign:
    """A CSR matrix of float32 or float64 values.

    Parameters
    ----------
    X : scipy.sparse CSR matrix or array, shape (n_rows, n_features)
        The features.

    Examples
    --------
    >>> import scipy.sparse
    >>> from ranksvm.data import as_design_matrix
    >>> design = as_design_matrix(scipy.sparse.csr_array([[1.0, 0.0], [0.0, 4.0]]))
    >>> type(design).__name__, design.largest().tolist()
    ('SparseDesign', [1.0, 4.0])
    """

    dense = False
    vector_basis: Basis | None = None

    def __init__(self, X: CSRMatrix):
        self._arrays = csr_arrays(X)
        self.file = mapped_file(X)
        self.n_features = X.shape[1]
        data, indices, *_ = self._arrays
        self.dtype = data.dtype
        self.row_bytes = max(1.0, X.nnz / max(1, X.shape[0]) * (data.itemsize + indices.itemsize))

    @property
    def _csr(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
        if self.file is not None:
            self.file.check_whole()
        return self._arrays

    def products(self, rows: np.ndarray | None = None, double: bool = True) -> RowProducts:
        return linear.sparse_products(*self._csr, rows)

    def accumulate_squares(
        self, rows: np.ndarray | None, start: int, stop: int, u_range: np.ndarray, out: np.ndarray
    ) -> None:
        linear.sparse_accumulate_squares(*self._csr, rows, start, stop, u_range, out)

    def gather(self, rows: np.ndarray | None, start: int, stop: int, out_range: np.ndarray) -> None:
        linear.sparse_gather(*self._csr, rows, start, stop, out_range)

    def largest(self, n_threads: int = 1) -> np.ndarray:
        n_rows = len(self._csr[2]) - 1
        return _largest(partial(linear.sparse_largest, *self._csr), n_rows, self.n_features, n_threads)

    @property
    def most_entries(self) -> int:
        return int(np.diff(self._csr[2]).max(initial=0))

    def taken(self, rows: np.ndarray) -> "SparseDesign":
        return SparseDesign(self._matrix()[rows])

    def gram(self, rows: np.ndarray | None) -> np.ndarray:
        """Inner products of some rows, or of all rows (None), with each other, in float64."""
        n = len(self._csr[2]) - 1 if rows is None else len(rows)
        products = np.empty((n, n))
        linear.sparse_gram(*self._csr, rows, products)
        return products

    def _matrix(self) -> CSRMatrix:
        from scipy import sparse

        data, indices, pointers, _ = self._csr
        return sparse.csr_array((data, indices, pointers), shape=(len(pointers) - 1, self.n_features))

    def visit_factors(
        self, factors: factorized.QueryFactors, order: np.ndarray, upper: float, fixed_step: float, beta: np.ndarray
    ) -> float:
        return float(factorized.visit_sparse(*self._csr, factors, order, upper, fixed_step, beta))

    def query_grams(self, arrays: dual_descent.PairArrays, order: np.ndarray) -> None:
        dual_descent.sparse_grams(*self._csr, arrays, order, np.zeros(self.n_features))

    def dual_ascent(
        self,
        arrays: dual_descent.PairArrays,
        order: np.ndarray,
        alpha: np.ndarray,
        z: np.ndarray,
        signs: np.ndarray | None,
        w: np.ndarray,
    ) -> float:
        return float(dual_descent.sparse_ascent(*self._csr, arrays, order, alpha, z, signs, w))


def _largest(visit: Callable[..., None], n_rows: int, n_features: int, n_threads: int) -> np.ndarray:
    """The largest absolute value of each feature: threads call ``visit`` on ranges of rows."""

    def part(rows: tuple[int, int]) -> np.ndarray:
        out = np.zeros(n_features)
        visit(*rows, out)
        return out

    # a small matrix is not worth a second thread; several ranges per thread balance the load
    if n_threads == 1 or n_rows * n_features < SHARED_VALUES:
        return part((0, n_rows))
    return np.max(parallel_map(part, even_ranges(0, n_rows, 4 * n_threads), n_threads), axis=0)


def csr_arrays(X: CSRMatrix) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """The arrays of a CSR matrix for compiled loops: column numbers and pointers have one type, int32 or int64.

    The loops trust pointers and column numbers; `check_sparse_format` has checked every matrix that a user passes.

    For a matrix without entries the arrays hold one explicit zero that belongs to no row, so that they are not empty.

    Parameters
    ----------
    X : scipy.sparse CSR matrix or array of floats, shape (n_rows, n_features)
        The matrix.

    Returns
    -------
    data, indices, indptr : ndarray
        Values, columns and pointers.
    n_features : int
        Number of columns.
    """
    data, indices = (X.data, X.indices) if X.nnz else (np.zeros(1, X.data.dtype), np.zeros(1, X.indptr.dtype))
    if X.nnz > np.iinfo(np.int32).max:
        indices = indices.astype(np.int64, copy=False)
    return data, indices, X.indptr.astype(indices.dtype, copy=False), X.shape[1]


def stored_bytes(X: Features) -> int:
    """Bytes that the values of a dense array or CSR matrix take, with their column numbers.

    Parameters
    ----------
    X : ndarray or CSR matrix, shape (n_rows, n_features)
        The features.

    Returns
    -------
    int
        The bytes.
    """
    return X.data.nbytes + X.indices.nbytes if is_sparse(X) else X.nbytes


def mapped_file(X: object) -> MappedFile | None:
    """The mapped file that holds the values of an array or CSR matrix; None if they are in memory."""
    found = X
    if not isinstance(X, np.ndarray) and is_sparse(X):
        found = getattr(X, "data", None)  # a dok matrix has no array of values
    while isinstance(found, np.ndarray):
        found = found.base
    if isinstance(found, memoryview):
        found = found.obj
    return found if isinstance(found, MappedFile) else None


def as_design_matrix(X: np.ndarray | SparseMatrix, largest: np.ndarray | None = None) -> DenseDesign | SparseDesign:
    """The design matrix of a dense array or a sparse matrix, without copying C-contiguous floats or CSR.

    Parameters
    ----------
    X : ndarray or scipy.sparse matrix, shape (n_rows, n_features)
        The features.
    largest : ndarray of float64, shape (n_features,), optional
        The largest absolute value of each column of a dense X, if it is known.

    Returns
    -------
    DesignMatrix
        The design matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from ranksvm.data import as_design_matrix
    >>> as_design_matrix(np.ones((3, 2))).n_features
    2
    """
    if is_sparse(X):
        X = X.tocsr()
        if X.dtype not in (np.float32, np.float64):
            X = X.astype(np.float64)
        return SparseDesign(X)
    if X.dtype not in (np.float32, np.float64):
        X = X.astype(np.float64)
    return DenseDesign(np.ascontiguousarray(X), largest)
