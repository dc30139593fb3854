"""Checks of kernel matrices: symmetry, and positive semi-definiteness as far as a few products can tell."""

import numpy as np
import scipy.linalg

from ranksvm._util.threads import one_blas_thread, parallel_map
from ranksvm.exceptions import DataError
from ranksvm.kernels.matrix import KernelMatrix
from ranksvm.kernels.tiles import ROUND_OFF

__all__ = ["check_definite", "check_precomputed"]

# Number of rows of the random submatrix of Q whose eigenvalues are computed, and number of steps of Lanczos' method.
SAMPLE_ROWS = 500
LANCZOS_STEPS = 15
# Rounding n x n values with a relative error e moves eigenvalues by up to e sqrt(n) times the largest. This e allows
# for float32, and for values that come from sums in float32.
EIGENVALUE_ROUND_OFF = 8 * 2.0**-24
# Number of rows and of columns of a submatrix that is compared with its mirror image at a time.
TILE = 512


def check_precomputed(K: np.ndarray, n_threads: int = 1) -> None:
    """Refuse an invalid kernel matrix; K is read once, each value together with its mirror image.

    Parameters
    ----------
    K : ndarray, shape (n, n)
        The values of a kernel for every two documents.
    n_threads : int
        Number of threads.

    Raises
    ------
    DataError
        When K is not square, holds values that are not finite, is not symmetric, has a negative value on the diagonal,
        or a value off the diagonal that is larger than the diagonal allows: ``k(x, z)^2 <= k(x, x) k(z, z)``. The
        message names the first such position.
    """
    if K.ndim != 2 or K.shape[0] != K.shape[1]:
        raise DataError(
            f"A precomputed kernel matrix must be square, with one row and one column for each document; got {K.shape}."
        )
    diagonal = np.diagonal(K).astype(np.float64)
    for found in np.flatnonzero(~(diagonal >= 0.0) | np.isinf(diagonal))[:1]:
        raise DataError(
            f"The precomputed kernel matrix holds {diagonal[found]:g} on its diagonal, in row {found}: the value of a "
            "kernel for a document and itself is a finite number that is not negative."
        )
    roots = np.sqrt(diagonal)
    slack = ROUND_OFF * diagonal.max(initial=0.0)
    tops = range(0, len(K), TILE)
    for fault in parallel_map(lambda top: _first_fault(K, top, roots, slack), tops, n_threads):
        if fault is not None:
            raise DataError(fault)


def _first_fault(K: np.ndarray, top: int, roots: np.ndarray, slack: float) -> str | None:
    """The error message for the first invalid value in some rows, up to the diagonal; None if all are valid."""
    rows = slice(top, min(top + TILE, len(K)))
    for left in range(0, rows.stop, TILE):
        columns = slice(left, min(left + TILE, len(K)))
        values, mirrored = K[rows, columns].astype(np.float64), K[columns, rows].T.astype(np.float64)
        with np.errstate(invalid="ignore"):
            equal = np.abs(values - mirrored) <= slack
            bounded = np.abs(values) <= np.outer(roots[rows], roots[columns]) + slack
        for i, j in np.argwhere(~(equal & bounded))[:1]:
            row, column, value, other = top + i, left + j, values[i, j], mirrored[i, j]
            if not np.isfinite([value, other]).all():
                bad = value if np.isfinite(other) else other
                place = (row, column) if bad is value else (column, row)
                return f"The precomputed kernel matrix holds {bad:g} in row {place[0]}, column {place[1]}."
            if not equal[i, j]:
                return (
                    f"The precomputed kernel matrix is not symmetric: row {row}, column {column} holds {value:g}, and "
                    f"row {column}, column {row} holds {other:g}."
                )
            return (
                f"The precomputed matrix is not a kernel matrix: row {row}, column {column} holds {value:g}, and the "
                f"diagonal allows k(x, z)^2 <= k(x, x) k(z, z) = {roots[row] ** 2:g} * {roots[column] ** 2:g}."
            )
    return None


def check_definite(matrix: KernelMatrix, name: str) -> None:
    """Refuse a kernel matrix that has a negative eigenvalue which rounding to float32 does not explain.

    The eigenvalues of up to 500 rows and columns, drawn at random, are computed: no eigenvalue of a submatrix is below
    the smallest of the whole matrix, so a negative one proves that the matrix is indefinite. If there are more rows, 15
    steps of Lanczos' method on the whole matrix follow; the values that they give are not below its smallest eigenvalue
    either. Negative eigenvalues missed by both are small relative to the largest. The check costs 15 products with Q
    and about 0.1 seconds.

    Parameters
    ----------
    matrix : KernelMatrix
        The matrix Q.
    name : str
        Name of the kernel, for the message.

    Raises
    ------
    DataError
        When a negative eigenvalue is found; the message has its size relative to the largest.
    """
    rng = np.random.default_rng(0)
    n_rows = matrix.n_rows
    sample = np.sort(rng.permutation(n_rows)[:SAMPLE_ROWS])
    block = matrix.columns(sample)[sample]
    with one_blas_thread():
        eigenvalues = np.linalg.eigvalsh(block)
    _refuse_negative(eigenvalues, len(sample), name)
    if n_rows > SAMPLE_ROWS:
        _refuse_negative(_ritz_values(matrix, rng.normal(size=n_rows)), n_rows, name)


def _ritz_values(matrix: KernelMatrix, v: np.ndarray) -> np.ndarray:
    """Eigenvalues of Q on the Krylov space of a vector (Golub & Van Loan, Matrix Computations, algorithm 10.1.1).

    Loss of orthogonality is harmless here: it only repeats values.
    """
    v = v / np.linalg.norm(v)
    previous, diagonal, off_diagonal = np.zeros_like(v), [], [0.0]
    for _ in range(LANCZOS_STEPS):
        product = matrix.product(v)
        diagonal.append(float(v @ product))
        product -= diagonal[-1] * v + off_diagonal[-1] * previous
        norm = float(np.linalg.norm(product))
        if norm <= EIGENVALUE_ROUND_OFF * max(np.abs(diagonal)):
            break
        off_diagonal.append(norm)
        previous, v = v, product / norm
    return scipy.linalg.eigvalsh_tridiagonal(diagonal, off_diagonal[1 : len(diagonal)])


def _refuse_negative(eigenvalues: np.ndarray, n_rows: int, name: str) -> None:
    smallest, largest = float(eigenvalues[0]), float(np.abs(eigenvalues).max())
    if smallest < -EIGENVALUE_ROUND_OFF * np.sqrt(n_rows) * largest:
        raise DataError(
            f"The kernel {name!r} is not positive semi-definite on these documents: its matrix has an eigenvalue of "
            f"{smallest:.3g} or below, {abs(smallest) / largest:.1e} of the largest in size, and rounding explains "
            f"{EIGENVALUE_ROUND_OFF * np.sqrt(n_rows):.1e}. Use other parameters or another kernel, or project the "
            "matrix onto the positive semi-definite matrices first."
        )
