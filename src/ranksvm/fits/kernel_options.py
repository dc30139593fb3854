"""Hyper-parameters of kernel models: the kernel and its gamma, its approximation, and the device that fits it."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ranksvm._util import checks
from ranksvm._util.checks import is_sparse, quiet_overflow
from ranksvm._util.sparse_format import without_duplicates
from ranksvm._util.types import Features, RandomState
from ranksvm.device.names import device_names, open_device
from ranksvm.device.protocol import Device
from ranksvm.exceptions import DataError, OptionError
from ranksvm.fits.device_choice import cheaper_device, check_device, check_place, reason_against_gpu
from ranksvm.fits.options import FitOptions
from ranksvm.fits.training_set import TrainingSet
from ranksvm.fits.work import Work, feature_work, kernel_work
from ranksvm.kernels import FOURIER_KERNELS, Kernel, kernel_named

logger = logging.getLogger("ranksvm.fits")

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


def check_kernel_device(options: KernelOptions) -> None:
    """Refuse a device that is not there, or that cannot do the work of a kernel model.

    Parameters
    ----------
    options : KernelOptions
        The hyper-parameters.

    Raises
    ------
    OptionError
        When several GPUs are named, or a GPU cannot do the work.
    MissingDependencyError
        When the packages of the extra ``cuda`` are not installed.
    DeviceError
        When there is no such device.
    """
    device = options.device
    names = device_names(device)
    reason = _unable(options.kernel) if names else None
    if len(names) > 1:
        reason = "names several GPUs, and a kernel model is fitted on one"
    if reason is not None:
        instead = "name one of them" if len(names) > 1 else "use device='cpu'"
        raise OptionError(f"device={device!r} {reason}: {instead}.")
    if options.approximation is not None:
        check_device(device, options.solver, options.loss)
    for name in names:
        open_device(name)


def kernel_device(options: KernelOptions, data: TrainingSet, n_fits: int = 1) -> Device | None:
    """The device of a kernel model's fit; None for the CPU.

    Parameters
    ----------
    options : KernelOptions
        The hyper-parameters.
    data : TrainingSet
        Documents and pairs; if the documents came from a GPU, the model is fitted there.
    n_fits : int
        Number of values of C that are solved for, one after another; for "auto".

    Returns
    -------
    Device or None
        The device.

    Raises
    ------
    OptionError
        When X is on a GPU that cannot be used, or another device is asked for.
    """
    device, place = options.device, data.place
    reason = _unable(options.kernel)
    if reason is None and options.approximation is not None:  # a GPU can fit exact kernels with every solver and loss
        reason = reason_against_gpu(options.solver, options.loss)
    if place is not None:
        check_place(device, place, reason)
        return open_device(place)
    if device != "auto":
        names = device_names(device)
        return open_device(names[0]) if names else None
    if reason is not None:
        logger.info("device='auto': the CPU, because a GPU %s", reason)
        return None
    return cheaper_device(_work(options, data).repeated(n_fits), data.n_threads)


def _work(options: KernelOptions, data: TrainingSet) -> Work:
    """The work of the fit."""
    double, X = options.kernel_dtype == "float64", data.X
    entries = X.nnz // X.shape[0] if is_sparse(X) else X.shape[1]
    if options.approximation is None:
        return kernel_work(data.pairs.n_rows, entries, 8 if double else 4, options.precomputed)
    n = options.n_components
    # a value of a Nystroem feature takes n more multiplications: n kernel values times a column of a matrix
    multiplications = entries + (n if options.approximation == "nystroem" else 0)
    return feature_work(options.loss, data.pairs, _Features(n, np.dtype("f8" if double else "f4")), multiplications)


class _Features(NamedTuple):
    """The sizes of the features of an approximation: see `Rows`."""

    n_features: int
    dtype: np.dtype

    @property
    def row_bytes(self) -> float:
        return float(self.n_features * self.dtype.itemsize)

    @property
    def dense(self) -> bool:
        return True


def _unable(kernel: KernelLike) -> str | None:
    """The reason why a GPU cannot do the work, as the end of a sentence; None if it can."""
    return "cannot evaluate a kernel that is a Python function" if callable(kernel) else None
