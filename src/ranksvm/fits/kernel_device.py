"""The device of a kernel model's fit: the user's choice or, with "auto", the faster of CPU and calibrated GPU."""

import logging
from typing import NamedTuple

import numpy as np

from ranksvm._util.checks import is_sparse
from ranksvm.device.names import device_names, open_device
from ranksvm.device.protocol import Device
from ranksvm.exceptions import OptionError
from ranksvm.fits.device_choice import cheaper_device, check_device, check_place, reason_against_gpu
from ranksvm.fits.kernel_options import KernelLike, KernelOptions
from ranksvm.fits.training_set import TrainingSet
from ranksvm.fits.work import Work, feature_work, kernel_work

__all__ = ["check_kernel_device", "kernel_device"]

logger = logging.getLogger("ranksvm.fits")


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
        When X lies on a GPU that cannot be used, or another device is asked for.
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
    return "cannot evaluate a kernel that is a function of Python" if callable(kernel) else None
