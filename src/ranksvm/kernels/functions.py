"""Mercer kernels: similarities of documents, computed block by block in float64."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.metrics.pairwise import cosine_similarity, laplacian_kernel, linear_kernel, polynomial_kernel, rbf_kernel

from ranksvm.exceptions import DataError

__all__ = ["KERNELS", "Kernel", "kernel_named"]

# Name -> (function of scikit-learn, the parameters it reads).
_FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "rbf": (rbf_kernel, ("gamma",)),
    "poly": (polynomial_kernel, ("gamma", "degree", "coef0")),
    "linear": (linear_kernel, ()),
    "laplacian": (laplacian_kernel, ("gamma",)),
    "cosine": (cosine_similarity, ()),
}
KERNELS = tuple(_FUNCTIONS)
# These depend on differences of documents alone.
_TRANSLATION_INVARIANT = ("rbf", "laplacian")
# Rows whose diagonal a callable gives with one block.
CALLABLE_ROWS = 64


@dataclass(frozen=True)
class Kernel:
    """A kernel ``k(x, z)``, with its parameters.

    ``rbf``: ``exp(-gamma |x - z|^2)``; ``laplacian``: ``exp(-gamma |x - z|_1)``; ``poly``: ``(gamma <x, z> +
    coef0)^degree``; ``linear``: ``<x, z>``; ``cosine``: ``<x, z> / (|x| |z|)``; or whatever a callable computes.

    Parameters
    ----------
    name : str
        One of `KERNELS`, or "callable".
    function : callable
        ``(X, Z, **parameters)`` -> array of shape (n_X, n_Z).
    parameters : dict
        Of the function.
    """

    name: str
    function: Callable[..., Any]
    parameters: dict[str, float] = field(default_factory=dict)

    def block(self, X: Any, Z: Any) -> np.ndarray:
        """Values for every row of X with every row of Z.

        Distances are those of float64, of rows from which what they have in common is taken first, so that an offset
        costs no digits.

        Parameters
        ----------
        X, Z : ndarray or CSR matrix of float64, shapes (n_X, n_features) and (n_Z, n_features)
            Documents.

        Returns
        -------
        ndarray of float64, shape (n_X, n_Z)
            The values.

        Raises
        ------
        DataError
            When a callable does not return such an array of finite numbers, or values overflow.
        """
        if self.name in _TRANSLATION_INVARIANT and not scipy.sparse.issparse(X) and len(Z):
            centre = np.mean(Z, axis=0)
            X, Z = X - centre, Z - centre
        with np.errstate(over="ignore", invalid="ignore"):
            values = self.function(X, Z, **self.parameters)
        values = np.asarray(values, dtype=np.float64)
        shape = X.shape[0], Z.shape[0]
        if values.shape != shape:
            raise DataError(f"The kernel of {shape[0]} by {shape[1]} rows must have shape {shape}, got {values.shape}.")
        return values

    def diagonal(self, X: Any) -> np.ndarray:
        """Value for every row of X with itself.

        Parameters
        ----------
        X : ndarray or CSR matrix of float64, shape (n_rows, n_features)
            Documents.

        Returns
        -------
        ndarray of float64, shape (n_rows,)
            The values.
        """
        if self.name in _TRANSLATION_INVARIANT:
            return np.ones(X.shape[0])
        if self.name == "callable":
            starts = range(0, X.shape[0], CALLABLE_ROWS)
            blocks = [X[start : start + CALLABLE_ROWS] for start in starts]
            return np.concatenate([np.diagonal(self.block(block, block)) for block in blocks])
        squares = X.multiply(X).sum(axis=1) if scipy.sparse.issparse(X) else np.einsum("ij,ij->i", X, X)
        squares = np.asarray(squares, dtype=np.float64).ravel()
        if self.name == "cosine":
            return (squares > 0.0).astype(np.float64)
        if self.name == "poly":
            parameters = self.parameters
            return (parameters["gamma"] * squares + parameters["coef0"]) ** parameters["degree"]
        return squares


def kernel_named(
    kernel: str | Callable[..., Any], *, gamma: float = 1.0, degree: float = 3, coef0: float = 1.0
) -> Kernel:
    """The kernel of this name, or that a callable computes.

    Parameters
    ----------
    kernel : str or callable
        One of `KERNELS`, or a function of two arrays of documents, of shapes (n_X, n_features) and (n_Z, n_features),
        that returns the values, of shape (n_X, n_Z), as scikit-learn's SVC takes it.
    gamma, degree, coef0 : float
        Parameters, read by the kernels that have them.

    Returns
    -------
    Kernel
        The kernel.
    """
    if callable(kernel):
        return Kernel("callable", kernel)
    function, names = _FUNCTIONS[kernel]
    values = {"gamma": gamma, "degree": degree, "coef0": coef0}
    return Kernel(kernel, function, {name: values[name] for name in names})
