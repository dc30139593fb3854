"""Statistics of data sets: documents that occur in several queries, and pairs per document."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ranksvm.data.numeric_column import label_column
from ranksvm.data.pairs import ComparablePairs
from ranksvm.data.queries import Queries
from ranksvm.exceptions import DataError

__all__ = ["SharedDocuments", "pairs_per_document", "shared_documents"]


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
            f"queries; {self.queries_per_document:.2f} queries per document; of a query's documents "
            f"{self.share_per_query.mean():.1%} in another one too)"
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
        When there are no ids, or lengths differ.

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
    _, document = np.unique(docid, return_inverse=True)
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

    A pair is two documents of one query with different labels. A query without pairs counts 0, and a row is a document
    of its query. This is the statistic of Table 1 of Xu et al. (IEEE TKDE 2019), which prints 30.6 for OHSUMED and 2.45
    for MQ2008; over all queries of these data sets it is 30.615 and 2.485. The number of documents that occur in
    several queries is another statistic, `shared_documents`.

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
