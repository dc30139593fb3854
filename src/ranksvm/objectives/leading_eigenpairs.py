"""Eigenpairs of a symmetric matrix above a bound: from all of them, or from those of a matrix nearby and a proof."""

import numpy as np

__all__ = ["all_above", "found_from"]

# Vectors added to the subspace: a Ritz value at or below the bound has to be seen.
N_GUARDS = 5
# Blocks of a Krylov space, and how often one is made. More of either, or of guards, took longer (300 to 2,000 rows).
N_BLOCKS = 6
N_ROUNDS = 3
# Rows of the matrix for each vector of the subspace from which this is worth while: two rounds then take half of the
# time of the whole spectrum (measured on blocks of 500 to 1,000 rows, one thread).
ROWS_A_VECTOR = 25
# Errors relative to the largest singular value: of the result, and of values above the bound that may be missed.
TOLERANCE = 1e-11


def all_above(matrix: np.ndarray, bound: float) -> tuple[np.ndarray, np.ndarray]:
    """Eigenpairs above a bound, from all eigenpairs.

    Parameters
    ----------
    matrix : ndarray of float64, shape (n, n)
        Symmetric.
    bound : float
        The bound.

    Returns
    -------
    values : ndarray of float64, shape (r,)
        The eigenvalues above ``bound``, from the largest on.
    vectors : ndarray of float64, shape (n, r)
        Their orthonormal eigenvectors.
    """
    # numpy's, not scipy's: numpy releases the interpreter lock in LAPACK, scipy.linalg holds it (two threads took twice
    # the time of one). Drivers for a part of the spectrum are faster only below a tenth of it.
    values, vectors = np.linalg.eigh(matrix)
    first = np.searchsorted(values, bound, side="right")
    return values[first:][::-1], vectors[:, first:][:, ::-1]


def found_from(matrix: np.ndarray, bound: float, start: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Eigenpairs above a bound, refined from the eigenvectors of a matrix nearby.

    A block Krylov space of ``start`` and a few random vectors gives Ritz pairs, from which it is restarted until the
    residuals vanish. That no eigenvalue above the bound is missed is then proved, not hoped for: the identity times the
    bound, less the matrix without the pairs found, has a Cholesky factor.

    Parameters
    ----------
    matrix : ndarray of float64, shape (n, n)
        Symmetric and positive semidefinite.
    bound : float
        The bound, positive.
    start : ndarray of float64, shape (n, k)
        Vectors whose span is about that of the eigenvectors sought; any vectors give the same answer or none.

    Returns
    -------
    tuple of ndarray or None
        What `all_above` returns, or None where it would take longer than `all_above` or could not be proved.
        Square roots of eigenvalues may be missed that are above that of ``bound`` by less than 1e-11 times the largest.

    Notes
    -----
    An eigenvector x of eigenvalue s^2 and residual q moves the soft-thresholded matrix by at most |q| / (s + t), where
    t^2 is the bound: the part of x outside the true space, |q| / (s^2 - m^2) for an eigenvalue m^2 <= t^2, times s - t.
    """
    n, n_start = start.shape
    if (n_start + N_GUARDS) * ROWS_A_VECTOR > n:
        return None
    guards = np.random.default_rng(0).standard_normal((n, N_GUARDS))
    block = np.linalg.qr(np.hstack([start, guards]))[0]
    last = np.inf
    for rounds_left in reversed(range(N_ROUNDS)):
        values, block, residuals = _ritz_pairs(matrix, block)
        rank = int(np.count_nonzero(values > bound))
        if rank == len(values):
            return None
        largest = np.sqrt(values[0])
        moves = residuals[:, :rank] / (np.sqrt(values[:rank]) + np.sqrt(bound))
        error = float(np.linalg.norm(moves)) / largest
        if error <= TOLERANCE:
            found = values[:rank], block[:, :rank]
            return found if _holds_all(matrix, bound + TOLERANCE * np.sqrt(bound) * largest, *found) else None
        if error * (error / last) ** rounds_left > TOLERANCE:
            return None
        last = error
    return None


def _ritz_pairs(matrix: np.ndarray, block: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The largest Ritz values in the Krylov space of a block of orthonormal columns, their vectors and residuals."""
    n, width = block.shape
    space = np.empty((n, width * N_BLOCKS), order="F")
    image = np.empty_like(space)
    for start in range(0, width * N_BLOCKS, width):
        stop = start + width
        space[:, start:stop] = block
        image[:, start:stop] = matrix @ block
        if stop < space.shape[1]:
            block = image[:, start:stop]
            # Twice: what is left of a product nearly inside the space is rounding, which is not orthogonal to it.
            for _ in range(2):
                block = np.linalg.qr(block - space[:, :stop] @ (space[:, :stop].T @ block))[0]
    projected = space.T @ image
    values, vectors = np.linalg.eigh(0.5 * (projected + projected.T))
    values, vectors = values[::-1][:width], vectors[:, ::-1][:, :width]
    block = space @ vectors
    return values, block, image @ vectors - block * values


def _holds_all(matrix: np.ndarray, bound: float, values: np.ndarray, vectors: np.ndarray) -> bool:
    """Whether the matrix without these eigenpairs has no eigenvalue at or above the bound."""
    rest = (vectors * values) @ vectors.T - matrix
    rest[np.diag_indices_from(rest)] += bound
    try:
        np.linalg.cholesky(rest)
    except np.linalg.LinAlgError:
        return False
    return True
