"""Pairs per document: how many comparisons the labels of a data set imply, relative to its documents."""

import numpy as np
from numpy.typing import ArrayLike

from ranksvm.data.numeric_column import label_column
from ranksvm.data.pairs import ComparablePairs
from ranksvm.data.queries import Queries
from ranksvm.exceptions import DataError

__all__ = ["pairs_per_document"]


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
