"""Inverse of ``I + C H Q``, from a factor that has rows only for documents in active pairs.

H is the Hessian of the loss with respect to the scores, and Q has the inner products of the documents: the matrix is
the Hessian of a kernel problem, and its inverse also gives the inverse of a linear problem's Hessian. A pair is active
if the loss has a positive second derivative at its margin.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

import ranksvm._compiled.cholesky as cholesky
import ranksvm._compiled.kernel as compiled
from ranksvm._compiled.passes import QueryOperator as CompiledOperator
from ranksvm._util.threads import even_ranges, parallel_map
from ranksvm._util.types import CSRMatrix
from ranksvm.losses.protocol import QueryOperator

__all__ = [
    "ActivePairs",
    "HostInversion",
    "Inversion",
    "Values",
    "active_sizes",
    "avoids_difference",
    "correction_by_active_pairs",
    "factor_type",
    "factorize",
    "inverse_cost",
    "potentials_of",
]

# Number of tasks for each thread: several, because the later blocks of a triangle take longer.
TASKS_PER_THREAD = 4
# Number of rows of a block on the diagonal, which LAPACK factorizes. (Factors of 1,000 and 3,800 rows in float32 take
# 3.2 and 88 ms of one thread with 256, 2.5 and 86 ms with 128, 2.4 and 85 ms with 96.)
BLOCK = 128
# Costs are measured in bytes: those that a product with Q reads from memory in the same time. If there are n documents
# in active pairs, and the squares of their numbers in each query add up to s, an inverse by LU costs ``LU_COST n^3 +
# SQUARE_COST n^2``, and an inverse by Cholesky ``CHOLESKY_COST n^3 + SQUARE_COST n^2 + BLOCK_COST n s + CALL_COST``.
# The cheaper one is used: LU if there are few documents, or long lists. (Inverses of 600 and 2,000 rows take 2.5 and 58
# ms by LU. By Cholesky they take 1.4 and 20 ms with lists of 20 documents, 1.7 and 25 ms with lists of 60 and 100, 5.0
# and 153 ms with lists of 300 and 1,000. With 200 rows in lists of 20, LU takes 0.25 ms, Cholesky 0.32 ms.)
LU_COST, CHOLESKY_COST, SQUARE_COST, BLOCK_COST, CALL_COST = 1 / 11, 1 / 40, 36.0, 0.3, 1.4e6
# The factor is in float32 if C times the largest degree times the largest value of Q is at most this; otherwise, a
# factor in float32 would be too inaccurate.
SINGLE_RANGE = 1e4
# If the same product is above this, the inverse is not computed as ``r - M Q r`` (see `correction_by_active_pairs`):
# both terms are nearly equal, and half of the digits of float64 are lost. `potentials_of` is used instead. (Three sets
# of 30 random problems, all steps direct, tol = 1e-6. With C times Q from 1e6 on, fits took 245 products with Q with
# the difference, and 221 without; from 1e8 on, 1,677 and 281; from 1e9 on, 8,834 and 1,432. In this last set, 9 and 20
# fits converged.)
DIFFERENCE_RANGE = 1e8
# Lists with more active documents than this keep the difference: to eliminate one document after another takes the cube
# of their number, for 1,000 twice as long as the factor of the whole matrix, for 2,000 six times, with one thread.
LONGEST_ELIMINATION = 1000


def inverse_cost(degrees: np.ndarray, pointers: np.ndarray, memory: int) -> float:
    """Cost of `correction_by_active_pairs`, as the bytes that a product reads in the same time.

    Parameters
    ----------
    degrees : ndarray of float64, shape (n_rows,)
        The diagonal of the Hessian with respect to the scores.
    pointers : ndarray of int64, shape (n_queries + 1,)
        First row of each query, and the number of rows.
    memory : int
        Bytes that the inverse may take, including the values of Q, the factor, and the memory to compute them.

    Returns
    -------
    float
        The cost; infinite if it needs more memory.
    """
    sizes = active_sizes(np.flatnonzero(degrees > 0.0), pointers)
    by_lu, by_cholesky = _costs(sizes)
    n, squares = float(sizes.sum()), float(sizes @ sizes)
    needed = 8.0 * (3.0 * n**2 if by_lu < by_cholesky else 2.0 * n**2 + 3.0 * squares)
    return min(by_lu, by_cholesky) if needed <= memory else float("inf")


def _costs(sizes: np.ndarray) -> tuple[float, float]:
    """Costs of an inverse by LU and by Cholesky, if queries have these numbers of documents with an active pair."""
    n, squares = float(sizes.sum()), float(sizes @ sizes)
    both = SQUARE_COST * n**2
    return LU_COST * n**3 + both, CHOLESKY_COST * n**3 + both + BLOCK_COST * n * squares + CALL_COST


def active_sizes(positions: np.ndarray, pointers: np.ndarray) -> np.ndarray:
    """Number of documents with an active pair in each query.

    Parameters
    ----------
    positions : ndarray of int64, shape (n_active,)
        The documents with an active pair, ascending.
    pointers : ndarray of int64, shape (n_queries + 1,)
        First row of each query, and the number of rows.

    Returns
    -------
    ndarray of int64, shape (n_queries,)
        The numbers.
    """
    return np.diff(np.searchsorted(positions, pointers))


class ActivePairs:
    """The Hessian of a loss with respect to the scores as ``U'U``, over the documents that have an active pair.

    The Hessian is the Laplacian of a graph: its nodes are the documents, its edges the active pairs, weighted by their
    curvature. It has one block for each query, and so has U. Its rank is the number of documents minus the number of
    connected components of the graph.

    Parameters
    ----------
    hessian : callable
        The Hessian with respect to the scores, as in `PairwiseLoss.hessian`.
    degrees : ndarray of float64, shape (n_rows,)
        Its diagonal.
    pointers : ndarray of int64, shape (n_queries + 1,)
        First row of each query, and the number of rows.

    Attributes
    ----------
    positions : ndarray of int64, shape (n_active,)
        The documents that have an active pair, ascending.
    rows, columns : ndarray of int64, shape (n_blocks + 1,)
        First row and first column of each block of U, and the numbers of rows and columns.
    values : ndarray of float64
        The blocks, one after the other, row by row.
    has_row : ndarray of bool, shape (n_active,)
        Whether a document has a row in U: all but the last document of each connected component.
    """

    def __init__(self, hessian: QueryOperator, degrees: np.ndarray, pointers: np.ndarray):
        self.positions = np.flatnonzero(degrees > 0.0)
        places = np.searchsorted(self.positions, pointers)
        queries = np.flatnonzero(np.diff(places))
        sizes = np.diff(places)[queries]
        blocks = _blocks_of(hessian, self.positions, places, pointers, queries)
        cholesky.factorize_laplacians(blocks, sizes)
        row_sizes = np.repeat(sizes, sizes)
        kept = np.logical_or.reduceat(blocks != 0.0, np.cumsum(row_sizes) - row_sizes)
        self.values = blocks[np.repeat(kept, row_sizes)]
        self.columns = np.append(0, np.cumsum(sizes))
        self.rows = np.append(0, np.cumsum(np.add.reduceat(kept.astype(np.int64), self.columns[:-1])))
        self.has_row = kept

    def matrix(self) -> CSRMatrix:
        """U as a sparse matrix.

        Returns
        -------
        csr_matrix of float64, shape (rank, n_active)
            U.
        """
        from scipy.sparse import csr_matrix

        sizes, ranks = np.diff(self.columns), np.diff(self.rows)
        row_sizes = np.repeat(sizes, ranks)
        indptr = np.append(0, np.cumsum(row_sizes))
        within = np.arange(indptr[-1]) - np.repeat(indptr[:-1], row_sizes)
        indices = within + np.repeat(self.columns[:-1], sizes * ranks)
        shape = int(self.rows[-1]), len(self.positions)
        U: CSRMatrix = csr_matrix((self.values, indices, indptr), shape=shape)
        return U


class Values(Protocol):
    """A symmetric positive semi-definite matrix Q; `KernelMatrix` and `Gram` return submatrices of it."""

    @property
    def largest(self) -> float: ...

    def submatrix(self, positions: np.ndarray, dtype: type[np.floating]) -> np.ndarray:
        """``Q[positions][:, positions]`` for ascending positions; only the lower triangle need be filled in."""


class Inversion(Protocol):
    """Inverts Hessians ``I + C H Q``, on the host (`HostInversion`) or on a device (`DeviceInversion`)."""

    def cost(self, degrees: np.ndarray, pointers: np.ndarray) -> float:
        """Cost of an inverse, as the bytes that a product with Q reads in the same time; infinite if impossible."""

    def solver(
        self, hessian: QueryOperator, degrees: np.ndarray, pointers: np.ndarray, C: float
    ) -> Callable[[np.ndarray], np.ndarray] | None:
        """M of `correction_by_active_pairs`, for documents with an active pair only; None if it cannot be computed."""


class HostInversion:
    """Inverses of Hessians on the host: see `Inversion` for the methods.

    Parameters
    ----------
    matrix : Values
        Q.
    memory : int
        Bytes that an inverse may take.
    n_threads : int
        Number of threads.
    """

    def __init__(self, matrix: Values, memory: int = 0, n_threads: int = 1):
        self._matrix = matrix
        self._memory = memory
        self._n_threads = n_threads

    def cost(self, degrees: np.ndarray, pointers: np.ndarray) -> float:
        return inverse_cost(degrees, pointers, self._memory)

    def solver(
        self, hessian: QueryOperator, degrees: np.ndarray, pointers: np.ndarray, C: float
    ) -> Callable[[np.ndarray], np.ndarray] | None:
        positions = np.flatnonzero(degrees > 0.0)
        values = self._matrix.submatrix(positions, factor_type(degrees, self._matrix.largest, C))
        by_lu, by_cholesky = _costs(active_sizes(positions, pointers))
        if by_lu < by_cholesky:
            return _by_lu(hessian, positions, len(pointers) - 1, len(degrees), values, C, self._n_threads)
        return _by_cholesky(ActivePairs(hessian, degrees, pointers), values, C, self._n_threads)


def factor_type(degrees: np.ndarray, largest: float, C: float) -> type[np.floating]:
    """The type of a factor: float32 unless C is too large for it; conjugate gradients correct its errors.

    Parameters
    ----------
    degrees : ndarray of float64, shape (n_rows,)
        The diagonal of the Hessian with respect to the scores.
    largest : float
        Largest value of Q.
    C : float
        Weight of a pair.

    Returns
    -------
    type
        float32, or float64.
    """
    return np.float32 if C * float(degrees.max()) * largest <= SINGLE_RANGE else np.float64


def avoids_difference(degrees: np.ndarray, pointers: np.ndarray, largest: float, C: float) -> bool:
    """Whether to use `potentials_of`, because ``r - M Q r`` is inaccurate (M: `correction_by_active_pairs`).

    Parameters
    ----------
    degrees : ndarray of float64, shape (n_rows,)
        The diagonal of the Hessian with respect to the scores.
    pointers : ndarray of int64, shape (n_queries + 1,)
        First row of each query, and the number of rows.
    largest : float
        Largest value of Q.
    C : float
        Weight of a pair.

    Returns
    -------
    bool
        Whether C is so large, and no list is too long.
    """
    if C * float(degrees.max()) * largest <= DIFFERENCE_RANGE:
        return False
    return int(active_sizes(np.flatnonzero(degrees > 0.0), pointers).max()) <= LONGEST_ELIMINATION


def potentials_of(pairs: ActivePairs, n_rows: int) -> Callable[[np.ndarray], np.ndarray]:
    """The operator from coefficients r to scores y with ``H y = r``, H the Hessian with respect to the scores.

    The last document of each connected component has the score 0. There the equation holds only if the coefficients of
    the component add up to 0.

    Parameters
    ----------
    pairs : ActivePairs
        The active pairs, with ``H = U'U``.
    n_rows : int
        Number of rows.

    Returns
    -------
    callable
        From coefficients to scores, of shape (n_rows,) each.
    """
    from scipy.linalg.lapack import dpotrs

    positions, factors, entry = pairs.positions[pairs.has_row], [], 0
    for block, (height, width) in enumerate(zip(np.diff(pairs.rows), np.diff(pairs.columns), strict=True)):
        rows = pairs.values[entry : entry + height * width].reshape(height, width)
        triangle = rows[:, pairs.has_row[pairs.columns[block] : pairs.columns[block + 1]]]
        factors.append((positions[pairs.rows[block] : pairs.rows[block + 1]], np.asfortranarray(triangle)))
        entry += height * width

    def potentials(coefficients: np.ndarray) -> np.ndarray:
        scores = np.zeros(n_rows)
        for places, factor in factors:
            scores[places] = dpotrs(factor, coefficients[places], lower=0)[0]
        return scores

    return potentials


def correction_by_active_pairs(
    hessian: QueryOperator, degrees: np.ndarray, pointers: np.ndarray, C: float, inversion: Inversion
) -> Callable[[np.ndarray], np.ndarray] | None:
    """The operator ``M = C H (I + C Q H)^-1`` on scores: the inverse of a Hessian ``I + C H Q`` is ``I - M Q``.

    Only the rows and columns of documents with an active pair are needed. With ``H = U'U``, M is ``C U' (I + C U Q
    U')^-1 U``. This takes one Cholesky factor of a positive definite matrix, which has as many rows as there are such
    documents, minus the number of connected components. If there are few documents, or lists so long that U costs more
    than it saves, the host factorizes ``I + C H Q`` itself, by LU. A device has no inverse if a list is too long.

    Parameters
    ----------
    hessian : callable
        H, as in `PairwiseLoss.hessian`.
    degrees : ndarray of float64, shape (n_rows,)
        The diagonal of H.
    pointers : ndarray of int64, shape (n_queries + 1,)
        First row of each query, and the number of rows.
    C : float
        Weight of a pair.
    inversion : Inversion
        The host or the device that computes the inverse, and has Q.

    Returns
    -------
    callable or None
        The operator, which maps scores to coefficients, both of shape (n_rows,). None if round-off makes the matrix
        singular, or if a device lacks the memory, or a query has too many of these documents for it.
    """
    positions = np.flatnonzero(degrees > 0.0)
    if not len(positions):
        return np.zeros_like
    with np.errstate(over="ignore", invalid="ignore"):  # an inverse that overflows is refused
        solve = inversion.solver(hessian, degrees, pointers, C)
    if solve is None:
        return None

    def correct(scores: np.ndarray) -> np.ndarray:
        coefficients = np.zeros_like(scores)
        coefficients[positions] = solve(scores[positions])
        return coefficients

    return correct


def _by_cholesky(
    pairs: ActivePairs, values: np.ndarray, C: float, n_threads: int
) -> Callable[[np.ndarray], np.ndarray] | None:
    from scipy.linalg.lapack import dpotrs, spotrs

    solve_triangles = spotrs if values.dtype == np.float32 else dpotrs
    U, blocks = pairs.matrix(), pairs.values.astype(values.dtype, copy=False)
    inner = np.zeros((U.shape[0],) * 2, dtype=values.dtype)

    def form(part: tuple[int, int]) -> None:
        compiled.form_blocks(values, blocks, pairs.rows, pairs.columns, *part, C, inner)

    parallel_map(form, even_ranges(0, len(pairs.rows) - 1, TASKS_PER_THREAD * n_threads), n_threads)
    if not factorize(inner, n_threads):
        return None
    # the lower triangle, row by row, is the upper one column by column
    factor = inner.T
    return lambda scores: C * (U.T @ solve_triangles(factor, U @ scores, lower=0)[0])


def _by_lu(
    hessian: QueryOperator,
    positions: np.ndarray,
    n_queries: int,
    n_rows: int,
    values: np.ndarray,
    C: float,
    n_threads: int,
) -> Callable[[np.ndarray], np.ndarray] | None:
    from scipy.linalg.lapack import dgetrf, dgetrs, sgetrf, sgetrs

    single = values.dtype == np.float32
    factorize, solve = (sgetrf, sgetrs) if single else (dgetrf, dgetrs)
    whole, product = np.zeros(n_rows), np.empty(n_rows)

    def multiplied(scores: np.ndarray) -> np.ndarray:
        """``C H`` times scores of the documents at the positions."""
        whole[positions] = scores
        hessian(0, n_queries, whole, product)
        out: np.ndarray = C * product[positions]
        return out

    _fill_upper_triangle(values)
    matrix = np.empty_like(values)
    if isinstance(hessian, CompiledOperator):

        def multiply(columns: tuple[int, int]) -> None:
            part = slice(*columns)
            hessian.product(0, n_queries, values[:, part], matrix[:, part])
            matrix[:, part] *= C

        parallel_map(multiply, even_ranges(0, len(positions), n_threads), n_threads)
    else:
        for k in range(len(positions)):
            matrix[:, k] = multiplied(values[k])
    matrix[np.diag_indices(len(positions))] += 1
    # LAPACK factorizes the transpose, which is in its order
    factor, pivots, failed = factorize(matrix.T, overwrite_a=1)
    if failed or not np.isfinite(np.diagonal(factor)).all():
        return None
    return lambda scores: solve(factor, pivots, multiplied(scores), trans=1)[0]


def _fill_upper_triangle(matrix: np.ndarray) -> None:
    """Copy the lower triangle of a square matrix to the upper one, by blocks that stay in the cache."""
    size = 64
    for start in range(0, len(matrix), size):
        block = slice(start, start + size)
        matrix[block, start + size :] = matrix[start + size :, block].T
        lower = np.tril(matrix[block, block])
        lower += np.tril(lower, -1).T
        matrix[block, block] = lower


def factorize(matrix: np.ndarray, n_threads: int) -> bool:
    """Overwrite the lower triangle of a symmetric matrix by its Cholesky factor, with several threads.

    The threads share the rows below each block on the diagonal. Meanwhile, one of them factorizes the next block.

    Parameters
    ----------
    matrix : ndarray of float32 or float64, shape (n, n)
        The matrix; what is above the blocks on its diagonal is neither read nor written.
    n_threads : int
        Number of threads.

    Returns
    -------
    bool
        Whether the matrix is positive definite; if it is not, its contents are lost.
    """
    n = len(matrix)
    block = _factorize_block(matrix, 0, min(BLOCK, n))
    for start in range(0, n, BLOCK):
        if block is None:
            return False
        stop, after = min(start + BLOCK, n), min(start + 2 * BLOCK, n)

        def divide(rows: tuple[int, int], start: int = start, stop: int = stop, block: _Block = block) -> _Block | None:
            compiled.factor_rows(matrix, *rows, start, stop, *block)
            return _factorize_block(matrix, *rows) if rows[0] == stop else None

        if stop < n:
            tasks = [(stop, after), *even_ranges(after, n, TASKS_PER_THREAD * n_threads)]
            block = parallel_map(divide, tasks, n_threads)[0]
    return True


class _Block(NamedTuple):
    """The rows of a block of a factor, as `compiled.packed_rows`: left of the diagonal, and their inverse on it."""

    left: np.ndarray
    inverse: np.ndarray


def _factorize_block(matrix: np.ndarray, start: int, stop: int) -> _Block | None:
    """Factorize a block on the diagonal, whose rows are complete to its left; None if it is not positive definite."""
    from scipy.linalg.lapack import dpotrf, dtrtri, spotrf, strtri

    cholesky_of, inverse_of = (spotrf, strtri) if matrix.dtype == np.float32 else (dpotrf, dtrtri)
    left = compiled.packed_rows(matrix[start:stop, :start])
    compiled.factor_rows(matrix, start, stop, start, stop, left)
    square = matrix[start:stop, start:stop]
    upper, failed = cholesky_of(square.T, lower=0, clean=1)
    if failed:
        return None
    square[...] = upper.T
    return _Block(left, compiled.packed_rows(inverse_of(upper, lower=0)[0].T))


def _blocks_of(
    hessian: QueryOperator, positions: np.ndarray, places: np.ndarray, pointers: np.ndarray, queries: np.ndarray
) -> np.ndarray:
    """The blocks of a Hessian for some queries, with only the documents at some positions."""
    sizes = np.diff(places)[queries]
    blocks, entry = np.empty(int(sizes @ sizes)), 0
    if isinstance(hessian, CompiledOperator):
        units = {size: np.eye(size) for size in np.unique(sizes).tolist()}
        for query, size in zip(queries.tolist(), sizes.tolist(), strict=True):
            hessian.product(query, query + 1, units[size], blocks[entry : entry + size * size].reshape(size, size))
            entry += size * size
        return blocks
    for query, size in zip(queries.tolist(), sizes.tolist(), strict=True):
        start, stop = int(pointers[query]), int(pointers[query + 1])
        active = positions[places[query] : places[query + 1]] - start
        unit, column = np.zeros(stop - start), np.empty(stop - start)
        for document in active.tolist():
            unit[document] = 1.0
            hessian(query, query + 1, unit, column)
            unit[document] = 0.0
            blocks[entry : entry + size] = column[active]
            entry += size
    return blocks
