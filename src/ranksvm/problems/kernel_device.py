"""Which device a kernel model is fitted on: the one that the user names, or with "auto" the cheaper of two."""

import logging
from typing import Any

from ranksvm import _options
from ranksvm.device.names import device_complaint, device_names, open_device
from ranksvm.device.protocol import Device
from ranksvm.exceptions import OptionError
from ranksvm.problems.device_choice import cheaper_device, check_device, check_place, devices_for
from ranksvm.problems.problem import loss_of

__all__ = ["check_kernel_device", "kernel_device"]

logger = logging.getLogger("ranksvm.problems")

# What an exact fit costs, in seconds. NOT YET MEASURED on a GPU: assumed, so that "auto" leaves small data to the
# processor. Products with Q, and what one costs for a value of it: 43 ms on two threads for the triangle of 30,117 rows
# (benchmarks/results/kernel_product.md), on a GPU a read of float32; what a product costs besides; the compilation of
# kernels.
PRODUCTS = 100.0
CPU_VALUE, GPU_VALUE = 9.5e-11, 1.0e-12
GPU_PRODUCT, COMPILATION = 1.0e-4, 0.6


def check_kernel_device(estimator: Any) -> None:
    """Refuse a device that is not there, or that cannot do what a kernel estimator asks for.

    Parameters
    ----------
    estimator : estimator
        With its hyper-parameters, of which all but ``device`` are checked.

    Raises
    ------
    OptionError
        When there is no such name, or the device cannot do it.
    MissingDependencyError
        When the packages of the extra ``cuda`` are not installed.
    DeviceError
        When there is no such device.
    """
    device = estimator.device
    _options.check(device=device_complaint(device))
    names = device_names(device)
    complaint = _unable(estimator.kernel) if names else None
    if len(names) > 1:
        complaint = "names several GPUs, and a kernel model is fitted on one"
    if complaint is not None:
        instead = "name one of them" if len(names) > 1 else "use device='cpu'"
        raise OptionError(f"device={device!r} {complaint}: {instead}.")
    if estimator.approximation is not None:
        check_device(device, estimator.solver, loss_of(estimator.loss, estimator.huber_width))
    for name in names:
        open_device(name)


def kernel_device(estimator: Any, n_rows: int, n_threads: int, place: str | None = None) -> Device | None:
    """The device of a kernel estimator's fit; None for the processor.

    Parameters
    ----------
    estimator : estimator
        With its hyper-parameters, checked.
    n_rows : int
        Number of rows with pairs.
    n_threads : int
        Number of threads that the fit may use.
    place : str, optional
        Name of the GPU where X lies, which is the one that is used.

    Returns
    -------
    Device or None
        The device.

    Raises
    ------
    OptionError
        When X lies on a GPU that cannot be used, or another device is asked for.
    """
    device = estimator.device
    if place is not None:
        check_place(device, place, estimator.solver, loss_of(estimator.loss, estimator.huber_width))
        unable = _unable(estimator.kernel)
        if unable is not None:
            raise OptionError(f"X lies on {place}, which {unable}: copy X to the host, by X.get() or X.cpu().")
        return open_device(place)
    if device == "auto":
        unable = _unable(estimator.kernel)
        if unable is not None:
            logger.info("device='auto': the processor, because a GPU %s", unable)
            return None
        if estimator.approximation is None:
            return cheaper_device(*_costs(n_rows, n_threads))
    loss = loss_of(estimator.loss, estimator.huber_width)
    if estimator.approximation is not None:
        item = 4 if estimator.kernel_dtype == "float32" else 8
        row_bytes = item * estimator.n_components
        names = devices_for(device, estimator.solver, loss, n_rows, row_bytes, n_threads)
    else:
        names = device_names(device)
    return open_device(names[0]) if names else None


def _unable(kernel: Any) -> str | None:
    """What a GPU cannot do, as the end of a sentence; None if it can do all."""
    return "cannot evaluate a kernel that is a function of Python" if callable(kernel) else None


def _costs(n_rows: int, n_threads: int) -> tuple[float, float]:
    """Seconds that an exact fit takes on the processor, and on a GPU."""
    values = float(n_rows) ** 2
    on_cpu = PRODUCTS * CPU_VALUE * values / n_threads
    on_gpu = PRODUCTS * (GPU_PRODUCT + GPU_VALUE * values) + COMPILATION
    return on_cpu, on_gpu
