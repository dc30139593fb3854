"""The pairs of each query as a matrix (block), preferred by other documents; dual variables have this layout."""

import numpy as np

import ranksvm._compiled.blocks as blocks
from ranksvm.data.pairs import ComparablePairs

__all__ = ["PairBlocks"]


class PairBlocks:
    """One matrix per query: its rows are the preferred documents of pairs, and its columns the other documents.

    Rows and columns are sorted by label, the highest first, so that the pairs of a row are in its last columns. With
    two levels a block is a full rectangle of pairs. With more levels it is block-triangular and has entries that are
    not pairs: the two documents have the same intermediate level, or their levels are in reverse order. The entries of
    all blocks are stored in one array, block after block, each by row.

    Parameters
    ----------
    pairs : ComparablePairs
        All pairs implied by labels, not only pairs of adjacent levels.

    Attributes
    ----------
    preferred, other : ndarray of int64
        Positions of the documents in the rows and in the columns, block after block.
    rows, columns : ndarray of int64, shape (n_queries + 1,)
        Where the rows of each query start in ``preferred``, and its columns in ``other``. A query without pairs has
        neither.
    first : ndarray of int64, shape (rows[-1],)
        Column, within its block, at which the pairs of each row begin.
    offsets : ndarray of int64, shape (n_queries + 1,)
        Start of the entries of each query's block.
    n_documents : int
        Number of documents, in pairs or not.

    Examples
    --------
    >>> import numpy as np
    >>> from ranksvm.data import ComparablePairs, PairBlocks, Queries
    >>> blocks = PairBlocks(ComparablePairs.from_labels(Queries.from_qid([1, 1, 1, 1]), np.array([2.0, 1.0, 0.0, 0.0])))
    >>> blocks.shape(0)                                 # preferred by other documents
    (2, 3)
    """

    def __init__(self, pairs: ComparablePairs):
        self.n_documents = pairs.n_rows
        sizes = np.diff(pairs.pointers)
        query = np.repeat(np.arange(pairs.n_queries), sizes)
        order = np.lexsort((-pairs.levels, query))
        query, level = query[order], pairs.levels[order]
        is_preferred, is_other = (side[order] for side in pairs.sides())
        self.preferred, self.other = (order[chosen].astype(np.int64) for chosen in (is_preferred, is_other))
        self.rows, self.columns = (_starts(query[chosen], pairs.n_queries) for chosen in (is_preferred, is_other))
        # the documents of a query at or above a level end where the next level, or query, begins
        begins = np.flatnonzero(np.diff(level, prepend=-1) | np.diff(query, prepend=-1))
        ends = np.repeat(np.append(begins[1:], len(level)), np.diff(np.append(begins, len(level))))
        others_before = np.concatenate(([0], np.cumsum(is_other)))
        self.first = (others_before[ends] - self.columns[query])[is_preferred]
        self.offsets = np.concatenate(([0], np.cumsum(np.diff(self.rows) * np.diff(self.columns)))).astype(np.int64)
        self.arrays = blocks.BlockArrays(
            pairs.pointers, self.rows, self.columns, self.offsets, self.preferred, self.other, self.first
        )

    @property
    def n_queries(self) -> int:
        """Number of queries, with pairs or not."""
        return len(self.rows) - 1

    @property
    def n_entries(self) -> int:
        """Number of entries of all blocks, pairs or not."""
        return int(self.offsets[-1])

    def shape(self, query: int) -> tuple[int, int]:
        """Number of rows and columns of a query's block.

        Parameters
        ----------
        query : int
            Number of the query.

        Returns
        -------
        n_rows, n_columns : int
            Both are 0 if it has no pairs.
        """
        n_rows = self.rows[query + 1] - self.rows[query]
        return int(n_rows), int(self.columns[query + 1] - self.columns[query])

    def block(self, entries: np.ndarray, query: int) -> np.ndarray:
        """The block of a query, as a view of the array of all entries.

        Parameters
        ----------
        entries : ndarray, shape (n_entries,)
            Entries of all blocks.
        query : int
            Number of the query.

        Returns
        -------
        ndarray, shape (n_rows, n_columns)
            A view.
        """
        return entries[self.offsets[query] : self.offsets[query + 1]].reshape(self.shape(query))

    def documents(self, query: int) -> tuple[np.ndarray, np.ndarray]:
        """Positions of the documents of a block's rows and columns.

        Parameters
        ----------
        query : int
            Number of the query.

        Returns
        -------
        preferred, other : ndarray of int64
            The positions.
        """
        return (
            self.preferred[self.rows[query] : self.rows[query + 1]],
            self.other[self.columns[query] : self.columns[query + 1]],
        )

    def is_pair(self, query: int) -> np.ndarray:
        """Mask of the entries of a block that are pairs.

        Parameters
        ----------
        query : int
            Number of the query.

        Returns
        -------
        ndarray of bool, shape (n_rows, n_columns)
            True from the first column of a row's pairs on.
        """
        first = self.first[self.rows[query] : self.rows[query + 1]]
        return np.arange(self.shape(query)[1]) >= first[:, np.newaxis]


def _starts(query: np.ndarray, n_queries: int) -> np.ndarray:
    """Start of each query in a sorted array of query numbers."""
    return np.searchsorted(query, np.arange(n_queries + 1)).astype(np.int64)
