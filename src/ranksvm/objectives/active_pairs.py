"""The inverse of the Hessian of a kernel problem, by one Cholesky factor over the documents that have active pairs."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

import ranksvm._compiled.cholesky as cholesky
import ranksvm._compiled.kernel as compiled
from ranksvm._util.threads import parallel_map
from ranksvm.kernels import KernelMatrix
from ranksvm.losses.protocol import QueryOperator

__all__ = ["ActivePairs", "factorize", "inverse_bytes", "inverse_by_active_pairs", "inverse_cost"]

# Tasks for each thread: the later blocks of a triangle take longer.
TASKS_PER_THREAD = 4
# Rows of a block on the diagonal that LAPACK factorizes.
BLOCK = 256
# The inverse costs as much as a product that reads this many bytes for each unit of the number of documents cubed, and
# squared, and of the number of documents times the sum of the squared sizes of the blocks.
CUBE_COST, SQUARE_COST, BLOCK_COST = 1 / 22, 36.0, 2.0
# Largest ``C * degree * value of Q`` with a factor in float32: beyond it the factor is too far from the inverse.
SINGLE_RANGE = 1e4


def inverse_cost(sizes: np.ndarray) -> float:
    """Cost of `inverse_by_active_pairs`, as the bytes of Q that a product reads in the same time.

    Parameters
    ----------
    sizes : ndarray of int64, shape (n_queries,)
        Number of documents with an active pair in each query.

    Returns
    -------
    float
        The cost.
    """
    n_active, squares = float(sizes.sum()), float(np.square(sizes.astype(np.float64)).sum())
    return CUBE_COST * n_active**3 + SQUARE_COST * n_active**2 + BLOCK_COST * n_active * squares


def inverse_bytes(sizes: np.ndarray) -> int:
    """Memory of `inverse_by_active_pairs`: values of Q, the factor, and blocks in two precisions.

    Parameters
    ----------
    sizes : ndarray of int64, shape (n_queries,)
        Number of documents with an active pair in each query.

    Returns
    -------
    int
        Bytes.
    """
    return 8 * (2 * int(sizes.sum()) ** 2 + 3 * int(sizes @ sizes))


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
    """

    def __init__(self, hessian: QueryOperator, degrees: np.ndarray, pointers: np.ndarray):
        self.positions = np.flatnonzero(degrees > 0.0)
        places = np.searchsorted(self.positions, pointers)
        queries = np.flatnonzero(np.diff(places))
        sizes = np.diff(places)[queries]
        blocks = _blocks_of(hessian, self.positions, places, pointers, queries)
        cholesky.factorise_laplacians(blocks, sizes)
        row_sizes = np.repeat(sizes, sizes)
        kept = np.logical_or.reduceat(blocks != 0.0, np.cumsum(row_sizes) - row_sizes)
        self.values = blocks[np.repeat(kept, row_sizes)]
        self.columns = np.append(0, np.cumsum(sizes))
        self.rows = np.append(0, np.cumsum(np.add.reduceat(kept.astype(np.int64), self.columns[:-1])))

    def matrix(self) -> Any:
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
        return csr_matrix((self.values, indices, indptr), shape=(int(self.rows[-1]), len(self.positions)))


def inverse_by_active_pairs(
    pairs: ActivePairs, matrix: KernelMatrix, C: float, largest: float, n_threads: int
) -> Callable[[np.ndarray], np.ndarray] | None:
    """The inverse of the Hessian ``I + C H Q`` of a kernel objective.

    With ``H = U'U`` it is ``I - C U' (I + C U Q U')^-1 U Q``: one Cholesky factor of a positive definite matrix with a
    row for each document that has an active pair, except one for each connected component. The inverse is self-adjoint
    in the inner product of Q, and at most the identity. The factor is in float32 if C is not too large for that:
    conjugate gradients correct its errors.

    Parameters
    ----------
    pairs : ActivePairs
        H.
    matrix : KernelMatrix
        Q.
    C : float
        Weight of a pair.
    largest : float
        Largest value on the diagonal of H.
    n_threads : int
        Number of threads.

    Returns
    -------
    callable or None
        ``r -> z`` for vectors of two rows, coefficients and scores; each call takes one product with Q. None if
        round-off makes the matrix indefinite.
    """
    from scipy.linalg.lapack import dpotrs, spotrs

    single = C * largest * matrix.largest <= SINGLE_RANGE
    dtype, solve_triangles = (np.float32, spotrs) if single else (np.float64, dpotrs)
    U, positions = pairs.matrix(), pairs.positions
    values, blocks = matrix.among(positions, dtype), pairs.values.astype(dtype, copy=False)
    inner = np.empty((U.shape[0],) * 2, dtype=dtype)
    n_blocks = len(pairs.rows) - 1
    cuts = np.linspace(0, n_blocks, min(n_blocks, TASKS_PER_THREAD * n_threads) + 1).astype(np.int64).tolist()

    def form(first: int, last: int) -> None:
        compiled.form_blocks(values, blocks, pairs.rows, pairs.columns, first, last, C, inner)

    parallel_map(lambda task: form(*task), list(pairwise(cuts)), n_threads)
    if not factorize(inner, n_threads):
        return None
    # the lower triangle, row by row, is the upper one column by column
    factor = inner.T

    def solve(r: np.ndarray) -> np.ndarray:
        z = np.zeros_like(r)
        z[0, positions] = -C * (U.T @ solve_triangles(factor, U @ r[1, positions], lower=0)[0])
        z[1] = matrix.product(z[0])
        z += r
        return z

    return solve


def factorize(matrix: np.ndarray, n_threads: int) -> bool:
    """Overwrite the lower triangle of a symmetric matrix by its Cholesky factor, with several threads.

    LAPACK factorizes blocks on the diagonal; the products beside them are shared among the threads.

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
    from scipy.linalg.lapack import dpotrf, dtrtri, spotrf, strtri

    cholesky_of, inverse_of = (spotrf, strtri) if matrix.dtype == np.float32 else (dpotrf, dtrtri)
    n = len(matrix)
    for start in range(0, n, BLOCK):
        stop = min(start + BLOCK, n)
        block, left = matrix[start:stop, start:stop], matrix[start:stop, :start]
        block -= left @ left.T
        upper, failed = cholesky_of(block.T, lower=0, clean=1)
        if failed:
            return False
        block[...] = upper.T
        inverse = inverse_of(upper, lower=0)[0]

        def divide(rows: tuple[int, int], stop: int = stop, left: Any = left, inverse: Any = inverse) -> None:
            below = matrix[slice(*rows), stop - len(left) : stop]
            below -= matrix[slice(*rows), : stop - len(left)] @ left.T
            below[...] = below @ inverse

        cuts = np.linspace(stop, n, min(n - stop, TASKS_PER_THREAD * n_threads) + 1).astype(int).tolist()
        parallel_map(divide, list(pairwise(cuts)), n_threads)
    return True


def _blocks_of(
    hessian: QueryOperator, positions: np.ndarray, places: np.ndarray, pointers: np.ndarray, queries: np.ndarray
) -> np.ndarray:
    """The blocks of a Hessian over the documents at some positions, of some queries, a column at a time."""
    sizes = np.diff(places)[queries]
    blocks, entry = np.empty(int(sizes @ sizes)), 0
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
