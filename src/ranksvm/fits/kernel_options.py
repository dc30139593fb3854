"""Hyper-parameters of kernel models: the kernel and its gamma, and its approximation."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ranksvm._util import checks
from ranksvm._util.checks import is_sparse, quiet_overflow
from ranksvm._util.sparse_format import without_duplicates
from ranksvm._util.types import Features, RandomState
from ranksvm.exceptions import DataError
from ranksvm.fits.options import FitOptions
from ranksvm.kernels import FOURIER_KERNELS, Kernel, kernel_named

PRECOMPUTED = "precomputed"
# Kernels that have a gamma.
_WITH_GAMMA = ("rbf", "poly", "laplacian")
# Rows per block in the sum of a variance.
VARIANCE_ROWS = 1 << 14

# A kernel by name, or as a function of two arrays of documents.
KernelLike = str | Callable[..., Any]


@dataclass(frozen=True)
class KernelOptions(FitOptions):
    """The hyper-parameters of a kernel model; gamma is an argument of `kernel_problem`, because searches try several.

    Parameters
    ----------
    kernel : str or callable
        The kernel.
    degree, coef0
        Its parameters.
    approximation : {"nystroem", "fourier"} or None
        The features that approximate it.
    n_components, landmarks, random_state
        Number of features, method of choosing landmarks, and seed.
    kernel_dtype : {"float32", "float64"}
        Type in which the kernel matrix, or features, are stored.
    stopping : {"gap", "gradient"}
        Stopping rule.
    """

    model: ClassVar[str] = "kernel"
    kernel: KernelLike
    degree: int
    coef0: float
    approximation: str | None
    n_components: int
    landmarks: str
    random_state: RandomState
    kernel_dtype: str
    stopping: str = "gap"

    def __post_init__(self) -> None:
        checks.check(approximation=_approximation_error(self.approximation, self.kernel))

    @property
    def precomputed(self) -> bool:
        """Whether kernel values are given in place of features."""
        return is_precomputed(self.kernel)


def gamma_of(kernel: KernelLike, gamma: str | float, X: Features) -> float | None:
    """The gamma of a kernel on the data of ``fit``; None if the kernel has none.

    "scale" is ``1 / (n_features * X.var())`` (1 if X is constant), "auto" ``1 / n_features``, as in scikit-learn's SVC.
    """
    if callable(kernel) or kernel not in _WITH_GAMMA:
        return None
    if gamma == "auto":
        return 1.0 / float(X.shape[1])
    if gamma == "scale":
        with quiet_overflow():
            variance = _variance(X)
        if not np.isfinite(variance):
            raise DataError(
                "gamma='scale' is 1 / (n_features * X.var()), but the variance of X overflows float64: scale the "
                "features."
            )
        return 1.0 / float(X.shape[1] * variance) if variance > 0.0 else 1.0
    return float(gamma)


def kernel_with(kernel: KernelLike, gamma: float | None, degree: int, coef0: float) -> Kernel:
    """The kernel that a name or a callable stands for, with the parameters that it uses."""
    return kernel_named(kernel, gamma=1.0 if gamma is None else gamma, degree=degree, coef0=float(coef0))


def is_precomputed(kernel: object) -> bool:
    """Whether kernel values are given in place of features."""
    return isinstance(kernel, str) and kernel == PRECOMPUTED


def refuse_sparse_kernels(kernel: KernelLike, X: object) -> None:
    """Raise DataError if the kernel is precomputed and given as a sparse matrix."""
    if is_precomputed(kernel) and is_sparse(X):
        raise DataError("A sparse precomputed kernel is not supported: give a dense array.")


def gamma_error(gamma: object) -> str | None:
    """The error message for a gamma; None if it is valid."""
    if isinstance(gamma, str):
        return None if gamma in ("scale", "auto") else f"must be 'scale', 'auto' or a positive number, got {gamma!r}"
    return checks.positive(gamma)


def _approximation_error(approximation: str | None, kernel: KernelLike) -> str | None:
    """The error message if the kernel does not have this approximation; None if it does."""
    if approximation is None:
        return None
    if is_precomputed(kernel):
        return f"{approximation!r} needs features of documents, and kernel='precomputed' has none: leave it at None"
    if approximation == "fourier" and (callable(kernel) or kernel not in FOURIER_KERNELS):
        known = " and ".join(map(repr, FOURIER_KERNELS))
        return f"'fourier' is for the kernels {known}, not for {_kernel_name(kernel)}: use 'nystroem'"
    return None


def _kernel_name(kernel: KernelLike) -> str:
    return "a callable" if callable(kernel) else repr(kernel)


def _variance(X: Features) -> float:
    """Variance of all values, the zeros of a sparse X included, summed in float64 around their mean."""
    if is_sparse(X):
        stored = without_duplicates(X)
        size = X.shape[0] * X.shape[1]
        mean = stored.data.sum(dtype=np.float64) / size
        deviations = stored.data.astype(np.float64) - mean
        return float((deviations @ deviations + (size - stored.nnz) * mean**2) / size)
    mean = X.mean(dtype=np.float64)
    total = 0.0
    for start in range(0, X.shape[0], VARIANCE_ROWS):
        deviations = (X[start : start + VARIANCE_ROWS].astype(np.float64) - mean).ravel()
        total += float(deviations @ deviations)
    return total / float(X.size)
