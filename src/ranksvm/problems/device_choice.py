"""Which devices a fit runs on: those that the user names, or with "auto" the cheaper of the processor and a GPU."""

import logging
from typing import Any

from ranksvm import _options
from ranksvm.device.names import device_complaint, device_names, open_device
from ranksvm.device.protocol import Device
from ranksvm.exceptions import DeviceError, MissingDependencyError, OptionError
from ranksvm.losses import LossSpec

__all__ = ["cheaper_device", "check_device", "check_place", "devices_for", "unable"]

logger = logging.getLogger("ranksvm.problems")

# What a fit costs, in seconds. NOT YET MEASURED on a GPU: assumed, so that "auto" leaves small data to the processor.
# Passes over X, products with the Hessian among them; what one costs the processor for a byte of a row, on one thread,
# and for a row; what it costs a GPU for a byte, and in all; the first copy of a byte, and the compilation of kernels.
PASSES = 30.0
CPU_BYTE, CPU_ROW = 1.3e-10, 1.0e-7
GPU_BYTE, GPU_PASS = 1.0e-12, 1.5e-4
COPY_BYTE, COMPILATION = 1.0e-10, 0.6


def check_device(device: Any, solver: str, loss: LossSpec) -> None:
    """Refuse a device that is not there, or that cannot do what is asked for.

    Parameters
    ----------
    device : str or list of str
        What the user gave; "auto" is always possible.
    solver : str
        Name of the solver.
    loss : LossSpec
        The loss.

    Raises
    ------
    OptionError
        When there is no such name, or the solver or loss is for the processor only.
    MissingDependencyError
        When the packages of the extra ``cuda`` are not installed.
    DeviceError
        When there is no such device.
    """
    _options.check(device=device_complaint(device))
    complaint = None if not device_names(device) else unable(solver, loss)
    if complaint is not None:
        raise OptionError(f"device={device!r} {complaint}: use device='cpu'.")
    for name in device_names(device):
        open_device(name)


def check_place(device: Any, place: str, solver: str, loss: LossSpec) -> None:
    """Refuse X on a GPU that cannot be used there.

    Parameters
    ----------
    device : str or list of str
        What the user gave: "cpu", the default, and "auto" take X where it lies.
    place : str
        Name of the GPU where X lies.
    solver : str
        Name of the solver.
    loss : LossSpec
        The loss.

    Raises
    ------
    OptionError
        When another device is asked for, or the solver or loss is for the processor only.
    """
    names = device_names(device)
    if names and names != (place,):
        raise OptionError(
            f"device={device!r}, but X lies on {place}: move X there, or leave device at 'cpu' or 'auto'."
        )
    complaint = unable(solver, loss)
    if complaint is not None:
        raise OptionError(f"X lies on {place}, which {complaint}: copy X to the host, by X.get() or X.cpu().")


def devices_for(
    device: Any, solver: str, loss: LossSpec, n_rows: int, row_bytes: float, n_threads: int
) -> tuple[str, ...]:
    """The devices of a fit by name; none for the processor.

    Parameters
    ----------
    device : str or list of str
        What the user gave, checked.
    solver : str
        Name of the solver.
    loss : LossSpec
        The loss.
    n_rows : int
        Number of rows with pairs.
    row_bytes : float
        Bytes of X that are read per row.
    n_threads : int
        Number of threads that the fit may use.

    Returns
    -------
    tuple of str
        The names.
    """
    if device != "auto":
        return device_names(device)
    complaint = unable(solver, loss)
    if complaint is not None:
        logger.info("device='auto': the processor, because a GPU %s", complaint)
        return ()
    found = cheaper_device(*_costs(n_rows, n_rows * row_bytes, n_threads))
    return () if found is None else (found.name,)


def cheaper_device(on_cpu: float, on_gpu: float) -> Device | None:
    """The first GPU, if there is one and a fit is estimated to take less time there; the log says why.

    Parameters
    ----------
    on_cpu, on_gpu : float
        Estimated seconds of the fit.

    Returns
    -------
    Device or None
        The GPU; None for the processor.
    """
    if on_gpu >= on_cpu:
        logger.info("device='auto': the processor, an estimated %.2g s, not %.2g s on a GPU", on_cpu, on_gpu)
        return None
    try:
        found = open_device("cuda:0")
    except (DeviceError, MissingDependencyError) as error:
        logger.info("device='auto': the processor. %s", error)
        return None
    logger.info("device='auto': %s, an estimated %.2g s, not %.2g s on the processor", found.name, on_gpu, on_cpu)
    return found


def unable(solver: str, loss: LossSpec) -> str | None:
    """What a GPU cannot do, as the end of a sentence; None if it can do all.

    Parameters
    ----------
    solver : str
        Name of the solver.
    loss : LossSpec
        The loss.

    Returns
    -------
    str or None
        The end of the sentence.
    """
    if solver == "dual":
        return "has no solver 'dual', which reads the rows one at a time"
    if loss.function is not None:
        return "cannot evaluate a loss that is given as functions of Python"
    return None


def _costs(n_rows: int, size_of_X: float, n_threads: int) -> tuple[float, float]:
    """Seconds that a fit takes on the processor, and on a GPU with its first copy of the data."""
    on_cpu = PASSES * (CPU_BYTE * size_of_X + CPU_ROW * n_rows) / n_threads
    on_gpu = PASSES * (GPU_PASS + GPU_BYTE * size_of_X) + COPY_BYTE * size_of_X + COMPILATION
    return on_cpu, on_gpu
