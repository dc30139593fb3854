"""Scoring functions of kernel models: sums of functions of a document, computed in blocks on threads."""

from typing import Protocol

import numpy as np
import scipy.sparse

from ranksvm._util.checks import is_sparse
from ranksvm._util.threads import one_blas_thread, parallel_map
from ranksvm._util.types import Features
from ranksvm.data.scores import linear_scores
from ranksvm.kernels import Kernel
from ranksvm.kernels.functions import Documents

__all__ = ["Basis", "Expansion", "KernelsOf", "LinearFunction", "ScoringFunction", "expansion"]

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
            scores[start:stop] = self.functions.basis(X[start:stop]) @ self.coef

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
