"""Singular-value thresholding: the proximal operator of the nuclear norm."""

from dataclasses import dataclass

import numpy as np

__all__ = ["LowRank", "soft_threshold"]

# For thresholds below this multiple of the Frobenius norm, singular values must not be computed as square roots of
# eigenvalues. If s is the largest singular value, eigenvalues of the Gram matrix have errors of 1e-16 s^2, and so
# singular values at the threshold t have errors of 1e-16 s^2 / t.
SQUARES_SUFFICE = 1e-5


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

    |A|_* is the nuclear norm, the sum of singular values. The minimum has the singular vectors of ``block``, and its
    singular values minus the threshold if they are above it ([1]_, Theorem 2.1).

    Parameters
    ----------
    block : ndarray of float64, shape (m, n)
        The matrix, finite.
    threshold : float
        At least 0. If it is 0, A is ``block``, with its nonzero singular values.

    Returns
    -------
    LowRank
        The minimum, to 1e-10 of the largest singular value of ``block``.

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
        return _shrunk(left, values, right, threshold)
    if block.shape[0] > block.shape[1]:
        right, values, left = _triplets_from_gram_matrix(block.T, threshold)
        return _shrunk(left.T, values, right.T, threshold)
    left, values, right = _triplets_from_gram_matrix(block, threshold)
    return _shrunk(left, values, right, threshold)


def _triplets_from_gram_matrix(block: np.ndarray, threshold: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Singular triplets above the threshold of a block with no more rows than columns."""
    # numpy's, not scipy's: numpy releases the interpreter lock in LAPACK, scipy.linalg holds it (two threads took twice
    # the time of one). Drivers for a part of the spectrum are faster only below a tenth of it.
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
