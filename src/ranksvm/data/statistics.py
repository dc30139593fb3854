"""Statistics of data sets: documents shared by queries, pairs per document, variance of features within queries."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

import ranksvm._compiled.linear as linear
from ranksvm._util.checks import is_sparse
from ranksvm._util.sparse_format import without_duplicates
from ranksvm._util.threads import parallel_map
from ranksvm._util.types import Features
from ranksvm.data.numeric_column import label_column
from ranksvm.data.pairs import ComparablePairs
from ranksvm.data.queries import Queries, query_ranges
from ranksvm.exceptions import DataError

if TYPE_CHECKING:
    from scipy import sparse

__all__ = [
    "BLOCK",
    "SharedDocuments",
    "cell_squares",
    "inverse",
    "pairs_per_document",
    "shared_documents",
    "within_query_variance",
]

# Number of values that a thread processes at a time: few enough that their float64 copy stays in the cache.
BLOCK = 1 << 18


@dataclass(frozen=True, eq=False, repr=False)
class SharedDocuments:
    """Number of documents of a data set that belong to several queries, in total and for each query.

    Attributes
    ----------
    n_rows : int
        Number of rows.
    n_documents : int
        Number of distinct documents.
    n_shared : int
        Number of documents that are in more than one query.
    queries_per_document : float
        Mean number of queries that a document is in.
    ids : ndarray, shape (n_queries,)
        Id of each query, in order of appearance.
    documents_per_query : ndarray of int64, shape (n_queries,)
        Number of distinct documents of each query.
    shared_per_query : ndarray of int64, shape (n_queries,)
        Number of each query's documents that another query also has.

    Examples
    --------
    >>> from ranksvm.data import shared_documents
    >>> found = shared_documents(["a", "b", "c", "b"], [1, 1, 2, 2])
    >>> found.n_documents, found.n_shared, found.share_per_query.tolist()
    (3, 1, [0.5, 0.5])
    """

    n_rows: int
    n_documents: int
    n_shared: int
    queries_per_document: float
    ids: np.ndarray
    documents_per_query: np.ndarray
    shared_per_query: np.ndarray

    @property
    def share_per_query(self) -> np.ndarray:
        """Share of each query's documents that another query also has: float64, shape (n_queries,)."""
        return self.shared_per_query / self.documents_per_query

    def __repr__(self) -> str:
        return (
            f"SharedDocuments({self.n_rows} rows, {self.n_documents} documents, {self.n_shared} of them in several "
            f"queries; {self.queries_per_document:.2f} queries per document; on average "
            f"{self.share_per_query.mean():.1%} of the documents of a query are in another one too)"
        )


def shared_documents(docid: ArrayLike | None, qid: ArrayLike | None = None) -> SharedDocuments:
    """Count the documents that occur in several queries.

    A document that occurs twice in a query counts once. A row with an empty id (`read_letor`: a line without an id) is
    a separate document. The statistic of Table 1 of Xu et al. (IEEE TKDE 2019) is a different one,
    `pairs_per_document`.

    Parameters
    ----------
    docid : array-like of shape (n_rows,)
        Document id of each row, such as `RankingData.docid`.
    qid : array-like of shape (n_rows,), optional
        Query id of each row; None: one query.

    Returns
    -------
    SharedDocuments
        The counts.

    Raises
    ------
    DataError
        When there are no ids, one is missing, or lengths differ.

    Examples
    --------
    >>> found = shared_documents(["a", "b", "c", "b", "d", "b"], [1, 1, 1, 2, 2, 3])
    >>> found.n_documents, found.n_shared, found.queries_per_document
    (4, 1, 1.5)
    >>> found.shared_per_query.tolist(), found.share_per_query.round(2).tolist()
    ([1, 1, 1], [0.33, 0.5, 1.0])
    """
    if docid is None:
        raise DataError("docid is None: there are no document ids that queries could share.")
    docid = np.asarray(docid)
    if docid.ndim != 1 or len(docid) == 0:
        raise DataError(f"docid must have one id for each row, and at least one row, got shape {docid.shape}.")
    queries = Queries.from_qid(qid, len(docid))
    document = Queries.from_qid(docid, name="docid").numbers()
    if docid.dtype.kind in "UO":
        nameless = docid == ""
        document[nameless] = len(docid) + np.arange(np.count_nonzero(nameless))
    # each document once per query
    document, query = np.divmod(np.unique(document * queries.n_queries + queries.numbers()), queries.n_queries)
    _, place, n_queries = np.unique(document, return_inverse=True, return_counts=True)
    shared = n_queries[place] > 1
    return SharedDocuments(
        n_rows=len(docid),
        n_documents=len(n_queries),
        n_shared=int(np.count_nonzero(n_queries > 1)),
        queries_per_document=len(document) / len(n_queries),
        ids=queries.ids,
        documents_per_query=np.bincount(query, minlength=queries.n_queries),
        shared_per_query=np.bincount(query[shared], minlength=queries.n_queries),
    )


def pairs_per_document(y: ArrayLike, qid: ArrayLike | None) -> float:
    """Mean, over queries, of the number of pairs divided by the number of documents.

    A pair is two documents of one query with different labels. A query without pairs counts as 0, and a row is a
    document of its query. This is the statistic of Table 1 of Xu et al. (IEEE TKDE 2019), which prints 30.6 for OHSUMED
    and 2.45 for MQ2008; over all queries of these data sets it is 30.615 and 2.485. The number of documents that occur
    in several queries is another statistic, `shared_documents`.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        Label of each row, such as `RankingData.y`.
    qid : array-like of shape (n_rows,), or None
        Query id of each row, such as `RankingData.qid`; None: one query.

    Returns
    -------
    float
        The mean.

    Raises
    ------
    DataError
        When there are no rows, a label is missing or not a finite number, or lengths differ.

    Examples
    --------
    One query has two pairs of three documents, the other no pair.

    >>> from ranksvm.data import pairs_per_document
    >>> round(pairs_per_document([1, 0, 0, 2, 2], [1, 1, 1, 2, 2]), 3)
    0.333
    """
    y = label_column(y)
    if y.ndim != 1 or len(y) == 0:
        raise DataError(f"y must have one label for each row, and at least one row, got shape {y.shape}.")
    queries = Queries.from_qid(qid, len(y))
    pairs = ComparablePairs.from_labels(queries, y, may_be_empty=True)
    return float(np.mean(pairs.pairs_per_query / queries.sizes))


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
    """Sum of squares around the mean for each cell: the values, zeros included, of a feature in a query.

    A cell without stored values is left out.

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
    """The columns with stored values in a range of queries, and the sum of squares of each within the queries."""
    start, stop = queries.pointers[first], queries.pointers[last]
    block = X[start:stop] if queries.order is None else X[queries.order[start:stop]]
    block = without_duplicates(block)
    sizes = queries.sizes[first:last]
    cells, _, squares = cell_squares(block, np.repeat(np.arange(last - first), sizes), sizes)
    columns, place = np.unique(cells % X.shape[1], return_inverse=True)
    return columns, np.bincount(place, weights=squares, minlength=len(columns))


def _dense_squares(X: np.ndarray, queries: Queries, first: int, last: int) -> np.ndarray:
    """The sum of squares of each column within a range of queries."""
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
    """The reciprocals of spreads, such as standard deviations; ``where_zero`` for a spread of 0.

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
