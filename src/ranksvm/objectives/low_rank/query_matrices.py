"""Low-rank matrices, one for each query, in a few arrays, as stored in a fitted model."""

import numpy as np

from ranksvm.data import PairBlocks
from ranksvm.objectives.low_rank.singular_values import LowRank


class QueryMatrices:
    """A matrix of documents by documents for each query, stored as its singular values and vectors.

    Parameters
    ----------
    pointers : ndarray of int64, shape (n_queries + 1,)
        First position of each query among the documents sorted by query.
    ranks : ndarray of int64, shape (n_queries,)
        Rank of each matrix.
    values : ndarray of float64, shape (sum of ranks,)
        Singular values, one query after another.
    left, right : ndarray of float64, shape (sum of ranks times documents,)
        Singular vectors: for each query an array of shape (rank, documents).
    """

    def __init__(
        self, pointers: np.ndarray, ranks: np.ndarray, values: np.ndarray, left: np.ndarray, right: np.ndarray
    ):
        self.ranks = ranks
        self.values = values
        self.left = left
        self.right = right
        self._pointers = pointers
        self._first_value = np.concatenate(([0], np.cumsum(ranks)))
        self._first_entry = np.concatenate(([0], np.cumsum(ranks * np.diff(pointers))))

    @classmethod
    def from_blocks(cls, blocks: PairBlocks, pointers: np.ndarray, matrices: list[LowRank]) -> "QueryMatrices":
        """Build from matrices over the documents of blocks; entries of other documents are 0."""
        ranks = np.array([matrix.rank for matrix in matrices], dtype=np.int64)
        left, right = np.zeros((2, int(ranks @ np.diff(pointers))))
        found = cls(pointers, ranks, np.concatenate([matrix.values for matrix in matrices]), left, right)
        for query, matrix in enumerate(matrices):
            preferred, other = (positions - pointers[query] for positions in blocks.documents(query))
            _, left, right = found.factors(query)
            left[:, preferred], right[:, other] = matrix.left.T, matrix.right
        return found

    def to_blocks(self, blocks: PairBlocks) -> list[LowRank]:
        """The matrices over the documents of blocks."""
        matrices = []
        for query in range(blocks.n_queries):
            preferred, other = (positions - self._pointers[query] for positions in blocks.documents(query))
            values, left, right = self.factors(query)
            matrices.append(LowRank(np.ascontiguousarray(left[:, preferred].T), values, right[:, other]))
        return matrices

    def fits(self) -> bool:
        """Whether the arrays have the sizes required by ranks and queries."""
        shapes = (self._first_value[-1],), (self._first_entry[-1],), (self._first_entry[-1],)
        return tuple(array.shape for array in (self.values, self.left, self.right)) == shapes

    def factors(self, query: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The singular values of a query's matrix, and views whose rows are its left and its right singular vectors."""
        values = self.values[self._first_value[query] : self._first_value[query + 1]]
        part = slice(self._first_entry[query], self._first_entry[query + 1])
        shape = len(values), self._pointers[query + 1] - self._pointers[query]
        return values, self.left[part].reshape(shape), self.right[part].reshape(shape)

    def entries(self, query: int, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """The entries ``(i[t], j[t])`` of a query's matrix; i and j number the documents within the query."""
        values, left, right = self.factors(query)
        # the matrix is computed for the given documents only: if one is preferred to thousands of others, it has one
        # row
        rows, columns = (np.bincount(each, minlength=left.shape[1]) > 0 for each in (i, j))
        dense = (left[:, rows].T * values) @ right[:, columns]
        found: np.ndarray = dense[np.cumsum(rows)[i] - 1, np.cumsum(columns)[j] - 1]
        return found
