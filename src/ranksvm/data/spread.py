"""Variance of features within queries: sums of squares around the mean of each query, dense or sparse."""

from typing import TYPE_CHECKING

import numpy as np

import ranksvm._compiled.linear as linear
from ranksvm._util.checks import is_sparse
from ranksvm._util.sparse_format import without_duplicates
from ranksvm._util.threads import parallel_map
from ranksvm._util.types import Features
from ranksvm.data.queries import Queries, query_ranges

if TYPE_CHECKING:
    from scipy import sparse

# Values processed at a time by a task, so that their float64 copy stays in cache.
BLOCK = 1 << 18


def within_query_variance(X: Features, queries: Queries, n_threads: int = 1) -> np.ndarray:
    """Pooled variance of each feature within the queries.

    ``sum over queries q and rows i of q of (x_if - mean_qf)^2 / (n_rows - n_queries)``: half the mean squared
    difference of two documents of a query, with each query weighted by its number of rows minus one. A query of one row
    does not count; if all queries have one row, the variance is 0. X is read once, block by block, and centered before
    squaring: a large mean costs no digits, and a constant feature has variance exactly 0.

    Parameters
    ----------
    X : C-contiguous ndarray or CSR matrix of float32 or float64, shape (n_rows, n_features)
        The features.
    queries : Queries
        The grouping of the rows.
    n_threads : int
        Number of threads; the result does not depend on it.

    Returns
    -------
    ndarray of float64, shape (n_features,)
        The variances.
    """
    total = np.zeros(X.shape[1])
    degrees = queries.n_rows - int(np.count_nonzero(queries.sizes))
    if degrees == 0:
        return total
    if is_sparse(X):
        stored = np.concatenate(([0], np.cumsum(queries.to_sorted(np.diff(X.indptr)))))
        blocks = list(query_ranges(stored[queries.pointers], BLOCK))
        for columns, squares in parallel_map(lambda block: _sparse_squares(X, queries, *block), blocks, n_threads):
            total[columns] += squares
    else:
        blocks = list(query_ranges(queries.pointers * max(1, X.shape[1]), BLOCK))
        for squares in parallel_map(lambda block: _dense_squares(X, queries, *block), blocks, n_threads):
            total += squares
    return total / degrees


def cell_squares(
    X: "sparse.csr_matrix", query: np.ndarray, sizes: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sum of squares around the mean, with implicit zeros, for each cell: a query and a feature with stored values.

    Parameters
    ----------
    X : CSR matrix, shape (n_rows, n_features)
        Rows without duplicate entries.
    query : ndarray of int64, shape (n_rows,)
        Number of each row's query.
    sizes : ndarray of int64, shape (n_queries,)
        Rows of each query.

    Returns
    -------
    cells : ndarray of int64, shape (n_cells,)
        ``query * n_features + feature``, ascending.
    cell : ndarray of int64, shape (nnz,)
        Place in ``cells`` of each stored value.
    squares : ndarray of float64, shape (n_cells,)
        The sums.
    """
    n_features = X.shape[1]
    keys = np.repeat(query, np.diff(X.indptr)) * n_features + X.indices
    cells, first, cell = np.unique(keys, return_index=True, return_inverse=True)
    rows = sizes[cells // n_features]
    missing = rows - np.bincount(cell, minlength=len(cells))
    # Values are centered at 0 if there are zeros, else at the first value: a constant feature has variance exactly 0.
    centered = X.data.astype(np.float64)
    centered -= np.where(missing, 0, centered[first])[cell]
    mean = np.bincount(cell, weights=centered, minlength=len(cells)) / rows
    squares = np.bincount(cell, weights=np.square(centered - mean[cell]), minlength=len(cells))
    return cells, cell, squares + missing * np.square(mean)


def _sparse_squares(X: "sparse.csr_matrix", queries: Queries, first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
    """Columns with stored values, and their sums of squares within these queries."""
    start, stop = queries.pointers[first], queries.pointers[last]
    block = X[start:stop] if queries.order is None else X[queries.order[start:stop]]
    block = without_duplicates(block)
    sizes = queries.sizes[first:last]
    cells, _, squares = cell_squares(block, np.repeat(np.arange(last - first), sizes), sizes)
    columns, place = np.unique(cells % X.shape[1], return_inverse=True)
    return columns, np.bincount(place, weights=squares, minlength=len(columns))


def _dense_squares(X: np.ndarray, queries: Queries, first: int, last: int) -> np.ndarray:
    """Sums of squares within these queries."""
    chunk = max(1, BLOCK // X.shape[1])
    if last - first == 1 and queries.sizes[first] > chunk:
        return _long_query_squares(X, queries, first, chunk)
    start, sizes = queries.pointers[first], queries.sizes[first:last]
    values = _gather(X, queries, int(start), int(queries.pointers[last]))
    sizes_filled = sizes[sizes > 0]
    # Values are centered at the first row of the query, so that a constant feature is exactly 0; then at the mean.
    values -= np.repeat(values[queries.pointers[first:last][sizes > 0] - start], sizes_filled, axis=0)
    linear.center_queries(queries.pointers, first, last, values)
    return np.einsum("ij,ij->j", values, values)


def _long_query_squares(X: np.ndarray, queries: Queries, query: int, chunk: int) -> np.ndarray:
    """`_dense_squares` for a query longer than a block: means and sums of squares of chunks are combined.

    Chan, Golub & LeVeque, "Algorithms for computing the sample variance", The American Statistician 37 (1983).
    """
    start, stop = int(queries.pointers[query]), int(queries.pointers[query + 1])
    pivot = _gather(X, queries, start, start + 1)
    n_before, mean, squares = 0, np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for begin in range(start, stop, chunk):
        values = _gather(X, queries, begin, min(begin + chunk, stop))
        values -= pivot
        center = values.mean(axis=0)
        values -= center
        shift, n_here = center - mean, len(values)
        n_all = n_before + n_here
        squares += np.einsum("ij,ij->j", values, values) + shift**2 * (n_before * n_here / n_all)
        mean += shift * (n_here / n_all)
        n_before = n_all
    return squares


def _gather(X: np.ndarray, queries: Queries, start: int, stop: int) -> np.ndarray:
    values = np.empty((stop - start, X.shape[1]))
    linear.dense_gather(X, queries.order, start, stop, values)
    return values


def inverse(spread: np.ndarray, where_zero: float = 0.0) -> np.ndarray:
    """The reciprocals of spreads, and another factor for a spread of 0.

    Parameters
    ----------
    spread : ndarray of float
        The spreads, not negative.
    where_zero : float
        The factor for a spread of 0.

    Returns
    -------
    ndarray of float
        The factors.
    """
    return np.divide(1.0, spread, out=np.full_like(spread, where_zero), where=spread > 0)
