"""Scoring functions of kernel models: sums of functions of a document, computed in blocks on threads, and pruned."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import scipy.sparse

from ranksvm._util.checks import is_sparse
from ranksvm._util.threads import one_blas_thread, parallel_map
from ranksvm._util.types import Features
from ranksvm.data.scores import linear_scores
from ranksvm.kernels import Kernel
from ranksvm.kernels.functions import Documents

__all__ = [
    "Basis",
    "Expansion",
    "KernelsOf",
    "LinearFunction",
    "Pruning",
    "ScoringFunction",
    "expansion",
    "smallest_terms",
]

# Bytes of the basis functions' values that a thread computes at a time.
BLOCK_BYTES = 8 << 20


class ScoringFunction(Protocol):
    """A function from documents to scores."""

    def scores(self, X: Features, n_threads: int) -> np.ndarray:
        """Score of each row of X, float64."""


class LinearFunction:
    """``f(x) = <coef, x>``, summed in float64.

    Parameters
    ----------
    coef : ndarray of float64, shape (n_columns,)
        The weights.
    """

    def __init__(self, coef: np.ndarray):
        self.coef = coef

    def scores(self, X: Features, n_threads: int) -> np.ndarray:
        """Score of each row of X.

        Parameters
        ----------
        X : ndarray or CSR matrix of floats, shape (n_rows, n_columns)
            Documents.
        n_threads : int
            Number of threads.

        Returns
        -------
        ndarray of float64, shape (n_rows,)
            The scores.
        """
        return linear_scores(X, self.coef, n_threads)


class Basis(Protocol):
    """Functions of a document.

    Attributes
    ----------
    n_functions : int
        Their number.
    """

    n_functions: int

    def basis(self, X: Features) -> np.ndarray:
        """Values of the functions for each row of X, float64, shape (n_rows, n_functions)."""


class KernelsOf:
    """The functions ``k(., z)`` of some documents z.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    vectors : ndarray or CSR matrix of floats, shape (n_functions, n_features)
        The documents.

    Attributes
    ----------
    n_functions : int
        Their number.
    kernel : Kernel
        The kernel.
    documents : Documents
        The documents z, prepared by the kernel.
    parallel : bool
        Whether several threads may evaluate at a time: a function of the user may not be thread-safe.
    """

    def __init__(self, kernel: Kernel, vectors: Features):
        self.n_functions = vectors.shape[0]
        self.parallel = kernel.name != "callable"
        self.kernel = kernel
        self._center = kernel.center(vectors)
        self.documents = kernel.documents(vectors, self._center)
        self._sparse = is_sparse(vectors)

    def basis(self, X: Features) -> np.ndarray:
        """Values of the functions for each row of X.

        Parameters
        ----------
        X : ndarray or CSR matrix of floats, shape (n_rows, n_features)
            Documents.

        Returns
        -------
        ndarray of float64, shape (n_rows, n_functions)
            The values.
        """
        out = np.empty((X.shape[0], self.n_functions))
        self.kernel.values(self.prepared(X), self.documents, out)
        return out

    def prepared(self, X: Features) -> Documents:
        """Documents prepared to be compared with the documents z: sparse if these are sparse, otherwise dense.

        Parameters
        ----------
        X : ndarray or CSR matrix of floats, shape (n_rows, n_features)
            Documents.

        Returns
        -------
        Documents
            The documents.
        """
        if self._sparse and not is_sparse(X):
            X = scipy.sparse.csr_array(X)
        elif is_sparse(X) and not self._sparse:
            X = X.toarray()
        return self.kernel.documents(X, self._center)

    def submatrix(self, some: slice, others: slice) -> np.ndarray:
        """Kernel values of some of the documents z with others of the documents z.

        Parameters
        ----------
        some, others : slice
            Positions of the documents.

        Returns
        -------
        ndarray of float64
            The values.
        """
        some_documents, other_documents = self.documents[some], self.documents[others]
        out = np.empty((len(some_documents), len(other_documents)))
        self.kernel.values(some_documents, other_documents, out)
        return out


class Expansion:
    """``f(x) = sum_j coef_j basis_j(x)``, computed in blocks: a thread holds the values of one block at a time.

    Parameters
    ----------
    functions : Basis
        The functions.
    coef : ndarray of float64, shape (n_functions,)
        Their coefficients.
    """

    def __init__(self, functions: Basis, coef: np.ndarray):
        self.functions = functions
        self.coef = coef

    def scores(self, X: Features, n_threads: int) -> np.ndarray:
        """Score of each row of X.

        Parameters
        ----------
        X : ndarray or CSR matrix of floats, shape (n_rows, n_features)
            Documents.
        n_threads : int
            Number of threads.

        Returns
        -------
        ndarray of float64, shape (n_rows,)
            The scores.
        """
        n_rows, n_functions = X.shape[0], self.functions.n_functions
        scores = np.zeros(n_rows)
        if n_functions == 0:
            return scores
        if not getattr(self.functions, "parallel", True):
            n_threads = 1
        size = max(1, min(BLOCK_BYTES // (8 * n_functions), -(-n_rows // n_threads)))

        def score(start: int) -> None:
            stop = min(start + size, n_rows)
            # unlike a product of BLAS, these sums do not depend on the place of a row
            scores[start:stop] = linear_scores(self.functions.basis(X[start:stop]), self.coef, 1)

        with one_blas_thread():
            parallel_map(score, range(0, n_rows, size), n_threads)
        return scores


def expansion(kernel: Kernel, vectors: Features, coef: np.ndarray) -> ScoringFunction:
    """``f(x) = sum_j coef_j k(x, vectors_j)``, which is linear in x if the kernel is linear.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    vectors : ndarray or CSR matrix of floats, shape (n_terms, n_features)
        Documents.
    coef : ndarray of float64, shape (n_terms,)
        Their coefficients.

    Returns
    -------
    ScoringFunction
        The function.
    """
    if kernel.name == "linear":
        return LinearFunction(vectors.T @ coef)
    return Expansion(KernelsOf(kernel, vectors), coef)


# A thread computes the kernel values of BLOCK_TERMS terms with BLOCK_OTHERS other terms at a time.
BLOCK_TERMS, BLOCK_OTHERS = 256, 4096
# Sums of products of terms have errors up to about this multiple of the sum of their absolute values.
ROUND_OFF = 4 * np.finfo(np.float64).eps
# Kernels with k(x, x) <= 1 for every x.
BOUNDED = ("rbf", "laplacian", "cosine")


@dataclass(frozen=True)
class Pruning:
    """The effect of dropping terms of a kernel model.

    Parameters
    ----------
    n_dropped : int
        Number of terms dropped.
    n_support : int
        Number of terms left.
    norm : float
        Norm of the function before terms were dropped, in the kernel's RKHS.
    distance : float
        Norm of the dropped terms in the RKHS: the change of the function, up to round-off.
    score_change : float or None
        Bound on the change of any score, ``distance`` times the square root of the largest ``k(x, x)``. None if ``k(x,
        x)`` is unbounded: then the score of x has changed by at most ``distance * sqrt(k(x, x))``.

    Examples
    --------
    >>> from ranksvm import KernelRankSVM, make_ranking
    >>> data = make_ranking(n_queries=20, n_docs=8, n_features=4, random_state=0)
    >>> ranker = KernelRankSVM(C=0.1).fit(data.X, data.y, qid=data.qid)
    >>> lost = ranker.prune(tol=0.05)
    >>> lost.n_support == len(ranker.dual_coef_), lost.relative_distance <= 0.05
    (True, True)
    """

    n_dropped: int
    n_support: int
    norm: float
    distance: float
    score_change: float | None

    @property
    def relative_distance(self) -> float:
        """``distance / norm``; 0 if nothing was dropped."""
        return self.distance / self.norm if self.distance > 0.0 else 0.0


def smallest_terms(
    kernel: Kernel, vectors: Features, coef: np.ndarray, tol: float, n_threads: int
) -> tuple[np.ndarray, Pruning]:
    """The terms ``coef_j k(., z_j)`` to keep when the smallest are dropped, as many as ``tol`` allows.

    Terms are ordered by their norms, ``|coef_j| sqrt(k(z_j, z_j))``. The largest number of terms is dropped whose sum
    has a norm of at most ``tol`` times the norm of all terms; computing the norms of all partial sums costs half the
    kernel matrix.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    vectors : ndarray or CSR matrix of floats, shape (n_terms, n_features)
        The documents z_j.
    coef : ndarray of float64, shape (n_terms,)
        Their coefficients.
    tol : float
        Largest change of the function, relative to its norm.
    n_threads : int
        Number of threads.

    Returns
    -------
    kept : ndarray of int64
        The terms left, ascending.
    pruning : Pruning
        The effect of dropping the others.
    """
    norms = np.abs(coef) * np.sqrt(kernel.diagonal(vectors))
    order = np.argsort(norms, kind="stable")
    squares = _squared_norms_of_sums(KernelsOf(kernel, vectors[order]), coef[order], n_threads)
    # large terms may cancel, so that the squared norm of their sum may be wrong by this much
    round_off = ROUND_OFF * np.cumsum(norms[order]) ** 2
    total = squares[-1] if len(squares) else 0.0
    least = max(0.0, total - round_off[-1]) if len(squares) else 0.0
    within = np.flatnonzero(squares + round_off <= tol**2 * least)
    n_dropped = int(within[-1]) + 1 if len(within) else 0
    distance = float(np.sqrt(squares[n_dropped - 1])) if n_dropped else 0.0
    pruning = Pruning(
        n_dropped=n_dropped,
        n_support=len(coef) - n_dropped,
        norm=float(np.sqrt(total)),
        distance=distance,
        score_change=distance if kernel.name in BOUNDED else None,
    )
    return np.sort(order[n_dropped:]), pruning


def _squared_norms_of_sums(functions: KernelsOf, coef: np.ndarray, n_threads: int) -> np.ndarray:
    """``|sum of the first m terms|^2`` for m = 1, 2, ...: each is the one before plus ``c_m (2 f(z_m) + c_m k_mm)``."""
    n_terms = len(coef)
    growth = np.empty(n_terms)

    def grow(start: int) -> None:
        stop = min(start + BLOCK_TERMS, n_terms)
        block = slice(start, stop)
        before = np.zeros(stop - start)
        for first in range(0, start, BLOCK_OTHERS):
            others = slice(first, min(first + BLOCK_OTHERS, start))
            before += functions.submatrix(block, others) @ coef[others]
        submatrix = functions.submatrix(block, block)
        c = coef[start:stop]
        before += np.tril(submatrix, -1) @ c
        growth[start:stop] = c * (2.0 * before + np.diagonal(submatrix) * c)

    with one_blas_thread():
        parallel_map(grow, range(0, n_terms, BLOCK_TERMS), n_threads if functions.parallel else 1)
    return np.maximum(np.cumsum(growth), 0.0)
