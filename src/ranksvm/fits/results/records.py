"""Records of the results of a fit."""

from dataclasses import dataclass

import numpy as np

from ranksvm._util.types import Features

__all__ = ["Fourier", "KernelModel", "KernelTerms", "Outcome", "scattered"]


@dataclass(frozen=True, eq=False)
class Outcome:
    """The outcome of a solve, and the size of its problem.

    Parameters
    ----------
    objective, duality_gap : float
        Value of the objective, and an upper bound on its distance from the minimum.
    converged : bool
        Whether the solver met its stopping rule: the gap, or the norm of the gradient, met the tolerance.
    status : str
        A sentence: the reason for stopping.
    n_iter : int
        Iterations of the solver.
    solver : str
        Its name.
    history : dict of list
        Trace over the iterations.
    n_pairs, n_queries : int
        Numbers of pairs and of queries.
    width : float or None
        Width of the Huberized hinge that was minimized last, if any.
    device : str or list of str
        Device of the solver: "cpu", or the name of a device or of several.
    pair_alpha : ndarray of float64, shape (n_pairs,), or None
        Dual variables of the pairs, query by query, if the dual was solved.
    """

    objective: float
    duality_gap: float
    converged: bool
    status: str
    n_iter: int
    solver: str
    history: dict[str, list[float]]
    n_pairs: int
    n_queries: int
    width: float | None
    device: str | list[str]
    pair_alpha: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class KernelTerms:
    """The function ``sum_j dual_coef_j k(., support_vectors_j)``.

    Parameters
    ----------
    dual_coef : ndarray of float64, shape (n_support,)
        The coefficients.
    support : ndarray of int64, shape (n_support,)
        The rows that they belong to.
    support_vectors : ndarray or CSR matrix, shape (n_support, n_features), or None
        The documents; None with a precomputed kernel.
    coef : ndarray of float64, shape (n_features,), or None
        Weights of the features if the kernel is linear.
    """

    dual_coef: np.ndarray
    support: np.ndarray
    support_vectors: Features | None = None
    coef: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class Fourier:
    """A linear function of random Fourier features.

    Parameters
    ----------
    frequencies : ndarray of float64, shape (n_components / 2, n_features)
        The frequencies.
    feature_coef : ndarray of float64, shape (n_components,)
        Weights of the features.
    """

    frequencies: np.ndarray
    feature_coef: np.ndarray


@dataclass(frozen=True, eq=False)
class KernelModel:
    """The scoring function of a kernel model, and how it was computed.

    Parameters
    ----------
    function : KernelTerms or Fourier
        The function.
    gamma : float or None
        The kernel's gamma, if it has one.
    kernel_dtype : str
        Type in which the kernel matrix, or features, were stored.
    n_kernel_products : int
        Products with the kernel matrix.
    """

    function: KernelTerms | Fourier
    gamma: float | None
    kernel_dtype: str
    n_kernel_products: int


def scattered(coef: np.ndarray, support: np.ndarray, n_columns: int) -> np.ndarray:
    """Coefficients of some columns as a vector over all columns, with zeros elsewhere."""
    weights = np.zeros(n_columns)
    weights[support] = coef
    return weights
