"""The function of a kernel model as a sum of kernel functions of documents."""

import numpy as np

from ranksvm._util.types import Features
from ranksvm.fits.results.records import KernelTerms
from ranksvm.kernels import Kernel

__all__ = ["kernel_terms", "scattered"]


def kernel_terms(kernel: Kernel | None, support: np.ndarray, vectors: Features | None, coef: np.ndarray) -> KernelTerms:
    """The function ``sum_j coef_j k(., vectors_j)``; for a precomputed kernel (None) there are no vectors."""
    linear = kernel is not None and kernel.name == "linear"
    weights = vectors.T @ coef if linear and vectors is not None else None
    return KernelTerms(coef, support, vectors, weights)


def scattered(coef: np.ndarray, support: np.ndarray, n_columns: int) -> np.ndarray:
    """Coefficients of some columns as a vector over all columns, with zeros elsewhere."""
    weights = np.zeros(n_columns)
    weights[support] = coef
    return weights
