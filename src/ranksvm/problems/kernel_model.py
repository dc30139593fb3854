"""What a kernel model consists of, as fitted attributes."""

from typing import Any

import numpy as np
import scipy.sparse

from ranksvm.exceptions import DataError
from ranksvm.problems.kernel_options import PRECOMPUTED

__all__ = ["is_precomputed", "keep_features", "keep_terms", "refuse_sparse_kernels", "scattered"]

# What a model scores with: which of them it has depends on its kernel and approximation.
_FUNCTION = ("coef_", "dual_coef_", "support_", "support_vectors_", "frequencies_", "feature_coef_", "pruned_")


def keep_terms(estimator: Any, support: np.ndarray, vectors: Any, coef: np.ndarray) -> None:
    """Give an estimator the function ``sum_j coef_j k(., vectors_j)``; of a precomputed kernel there are no vectors."""
    _forget(estimator)
    estimator.dual_coef_ = coef
    estimator.support_ = support
    if vectors is not None:
        estimator.support_vectors_ = vectors
        if estimator.kernel == "linear":
            estimator.coef_ = vectors.T @ coef


def keep_features(estimator: Any, frequencies: np.ndarray, coef: np.ndarray) -> None:
    """Give an estimator a linear function of random Fourier features."""
    _forget(estimator)
    estimator.frequencies_ = frequencies
    estimator.feature_coef_ = coef


def scattered(coef: np.ndarray, support: np.ndarray, n_columns: int) -> np.ndarray:
    """Coefficients of some columns as those of all of them."""
    weights = np.zeros(n_columns)
    weights[support] = coef
    return weights


def _forget(estimator: Any) -> None:
    """Take what an estimator scored with away: a model of another kernel has other parts."""
    for name in _FUNCTION:
        vars(estimator).pop(name, None)


def is_precomputed(estimator: Any) -> bool:
    """Whether an estimator is given kernels in place of features."""
    return isinstance(estimator.kernel, str) and estimator.kernel == PRECOMPUTED


def refuse_sparse_kernels(estimator: Any, X: Any) -> None:
    """Raise DataError where kernels are given in place of features, as a sparse matrix."""
    if is_precomputed(estimator) and scipy.sparse.issparse(X):
        raise DataError("A sparse precomputed kernel is not supported: give a dense array.")
