"""Low-rank matrices, also one for each query; singular-value thresholding, the nuclear norm's proximal operator."""

from dataclasses import dataclass

import numpy as np

from ranksvm.data import PairBlocks

__all__ = ["LowRank", "QueryMatrices", "soft_threshold"]

# For thresholds below this multiple of the Frobenius norm, singular values must not be computed as square roots of
# eigenvalues. If s is the largest singular value, eigenvalues of the Gram matrix have errors of 1e-16 s^2, and so
# singular values at the threshold t have errors of 1e-16 s^2 / t.
SQUARES_SUFFICE = 1e-5
# Singular values up to this fraction of the largest one are round-off of a block of dual variables.
ROUND_OFF = 1e-12


@dataclass(frozen=True, eq=False)
class LowRank:
    """A matrix as its singular value decomposition, ``left @ diag(values) @ right``.

    Attributes
    ----------
    left : ndarray of float64, shape (m, r)
        Left singular vectors, the columns orthonormal.
    values : ndarray of float64, shape (r,)
        Singular values, positive, from the largest on. r may be 0.
    right : ndarray of float64, shape (r, n)
        Right singular vectors, the rows orthonormal.
    """

    left: np.ndarray
    values: np.ndarray
    right: np.ndarray

    @property
    def rank(self) -> int:
        """Number of singular values."""
        return len(self.values)

    @property
    def nuclear_norm(self) -> float:
        """Sum of the singular values."""
        return float(self.values.sum())

    @property
    def shape(self) -> tuple[int, int]:
        """Shape (m, n) of the matrix."""
        return self.left.shape[0], self.right.shape[1]

    def dense(self, out: np.ndarray | None = None) -> np.ndarray:
        """The matrix itself.

        Parameters
        ----------
        out : ndarray of float64, shape (m, n), optional
            Output array.

        Returns
        -------
        ndarray of float64, shape (m, n)
            The matrix; ``out`` if it is not None.
        """
        return np.matmul(self.left * self.values, self.right, out=out)


def soft_threshold(block: np.ndarray, threshold: float) -> LowRank:
    """Matrix A that minimizes ``1/2 |A - block|_F^2 + threshold |A|_*``.

    |A|_* is the nuclear norm, the sum of singular values. The minimizer has the singular vectors of ``block`` and, as
    singular values, those of ``block`` above the threshold minus the threshold ([1]_, Theorem 2.1).

    Parameters
    ----------
    block : ndarray of float64, shape (m, n)
        The matrix, finite.
    threshold : float
        At least 0. If it is 0, A is ``block``, with as many singular values as its numerical rank.

    Returns
    -------
    LowRank
        The minimizer, with errors of at most 1e-10 times the largest singular value of ``block``.

    Notes
    -----
    Singular vectors are eigenvectors of the smaller Gram matrix, unless the threshold is so small that squaring would
    lose digits. BLAS and LAPACK release the interpreter lock in all of these steps, so each thread may take a block.

    References
    ----------
    .. [1] J.-F. Cai, E. J. Candès and Z. Shen, "A Singular Value Thresholding Algorithm for Matrix Completion",
       SIAM Journal on Optimization 20(4), 2010.
    """
    norm = float(np.linalg.norm(block))
    if norm <= threshold:
        return _zero(block)
    if min(block.shape) == 1:
        return _shrunk_vector(block, norm, threshold)
    if threshold < SQUARES_SUFFICE * norm:
        left, values, right = np.linalg.svd(block, full_matrices=False)
        values[values <= ROUND_OFF * values[0]] = 0.0
        return _shrunk(left, values, right, threshold)
    if block.shape[0] > block.shape[1]:
        right, values, left = _triplets_from_gram_matrix(block.T, threshold)
        return _shrunk(left.T, values, right.T, threshold)
    left, values, right = _triplets_from_gram_matrix(block, threshold)
    return _shrunk(left, values, right, threshold)


def _triplets_from_gram_matrix(block: np.ndarray, threshold: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Singular triplets above the threshold of a block with no more rows than columns."""
    # numpy's eigh, not scipy's: numpy releases the interpreter lock in LAPACK, scipy.linalg holds it (two threads took
    # twice the time of one). LAPACK drivers for a part of the spectrum are faster only for less than a tenth of it.
    values, vectors = np.linalg.eigh(block @ block.T)
    left = vectors[:, np.searchsorted(values, threshold * threshold, side="right") :][:, ::-1]
    right = left.T @ block
    # The lengths of these vectors are singular values with twice as many digits as the eigenvalues.
    values = np.linalg.norm(right, axis=1)
    return left, values, right / values[:, np.newaxis]


def _shrunk(left: np.ndarray, values: np.ndarray, right: np.ndarray, threshold: float) -> LowRank:
    above = values > threshold
    return LowRank(np.ascontiguousarray(left[:, above]), values[above] - threshold, np.ascontiguousarray(right[above]))


def _shrunk_vector(block: np.ndarray, norm: float, threshold: float) -> LowRank:
    one, values = np.ones((1, 1)), np.array([norm - threshold])
    if block.shape[0] == 1:
        return LowRank(one, values, block / norm)
    return LowRank(block / norm, values, one)


def _zero(block: np.ndarray) -> LowRank:
    m, n = block.shape
    return LowRank(np.zeros((m, 0)), np.zeros(0), np.zeros((0, n)))


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
        # compute only the rows and columns of the given documents: if one document is preferred to thousands of
        # others, this is a single row
        rows, columns = (np.bincount(each, minlength=left.shape[1]) > 0 for each in (i, j))
        dense = (left[:, rows].T * values) @ right[:, columns]
        found: np.ndarray = dense[np.cumsum(rows)[i] - 1, np.cumsum(columns)[j] - 1]
        return found
