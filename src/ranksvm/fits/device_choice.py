"""Devices of a fit: those that the user names or, with "auto", the CPU or a calibrated GPU, whichever is faster."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ranksvm.device.calibration import calibrated
from ranksvm.device.names import device_names, open_device
from ranksvm.device.protocol import Device
from ranksvm.exceptions import OptionError
from ranksvm.losses import LossSpec

if TYPE_CHECKING:
    from ranksvm.fits.work import Work

__all__ = ["cheaper_device", "check_device", "check_place", "devices_for", "reason_against_gpu"]

logger = logging.getLogger("ranksvm.fits")

# The argument of estimators: the name of a device, or of several.
DeviceNames = str | Sequence[str]

NOT_CALIBRATED = (
    "device='auto': the CPU, because no GPU is calibrated. ranksvm.calibrate_device() measures the first GPU, and from "
    "then on 'auto' may choose it."
)


def check_device(device: DeviceNames, solver: str, loss: LossSpec) -> None:
    """Refuse a device that does not exist, or that cannot do the requested work.

    Parameters
    ----------
    device : str or list of str
        The user's argument, a valid name; "auto" is always possible.
    solver : str
        Name of the solver.
    loss : LossSpec
        The loss.

    Raises
    ------
    OptionError
        When the solver or loss is for the CPU only.
    MissingDependencyError
        When the packages of the extra ``cuda`` are not installed.
    DeviceError
        When there is no such device.
    """
    names = device_names(device)
    reason = reason_against_gpu(solver, loss) if names else None
    if reason is not None:
        raise OptionError(f"device={device!r} {reason}: use device='cpu'.")
    for name in names:
        open_device(name)


def check_place(device: DeviceNames, place: str, reason: str | None) -> None:
    """Refuse X on a GPU if the fit cannot run there.

    Parameters
    ----------
    device : str or list of str
        The user's argument. With "cpu", the default, and with "auto", the fit runs where X is.
    place : str
        Name of the GPU where X is.
    reason : str or None
        The reason why a GPU cannot do the work, as `reason_against_gpu` returns it.

    Raises
    ------
    OptionError
        When the user names another device, or ``reason`` is not None.
    """
    names = device_names(device)
    if names and names != (place,):
        raise OptionError(f"device={device!r}, but X is on {place}: move X there, or leave device at 'cpu' or 'auto'.")
    if reason is not None:
        raise OptionError(f"X is on {place}, which {reason}: copy X to the host, by X.get() or X.cpu().")


def devices_for(
    device: DeviceNames, solver: str, loss: LossSpec, n_threads: int, work: Callable[[], Work]
) -> tuple[str, ...]:
    """The names of the devices of a linear or additive model's fit; none for the CPU.

    Parameters
    ----------
    device : str or list of str
        The user's argument, checked.
    solver : str
        Name of the solver.
    loss : LossSpec
        The loss.
    n_threads : int
        Number of threads that the fit may use.
    work : callable
        Returns the work of the fit; called only with "auto".

    Returns
    -------
    tuple of str
        The names.
    """
    if device != "auto":
        return device_names(device)
    reason = reason_against_gpu(solver, loss)
    if reason is not None:
        logger.info("device='auto': the CPU, because a GPU %s", reason)
        return ()
    found = cheaper_device(work(), n_threads)
    return () if found is None else (found.name,)


def cheaper_device(work: Work, n_threads: int) -> Device | None:
    """The calibrated GPU, if there is one and the work is estimated to take less time there; the log says why.

    Parameters
    ----------
    work : Work
        The work of a fit.
    n_threads : int
        Number of threads that it may use on the CPU.

    Returns
    -------
    Device or None
        The GPU; None for the CPU.
    """
    found = calibrated()
    if found is None:
        logger.info(NOT_CALIBRATED)
        return None
    gpu, costs = found
    try:
        free = gpu.free_bytes
    except Exception as error:  # an error of the driver: a fit must not fail because a GPU does not work
        logger.info("device='auto': the CPU, because %s does not answer: %s", gpu.name, error)
        return None
    on_cpu = work.on_cpu(n_threads)
    on_gpu = work.on_gpu(costs, free, gpu.compiled(work.variant, work.kernel))
    if on_gpu >= on_cpu:
        logger.info("device='auto': the CPU, an estimated %.2g s, not %.2g s on %s", on_cpu, on_gpu, gpu.name)
        return None
    logger.info("device='auto': %s, an estimated %.2g s, not %.2g s on the CPU", gpu.name, on_gpu, on_cpu)
    return gpu


def reason_against_gpu(solver: str, loss: LossSpec) -> str | None:
    """The reason why a GPU cannot fit a linear model, as the end of a sentence; None if it can.

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
    if solver == "direct":
        return "has no solver 'direct', except for exact kernels"
    if loss.function is not None:
        return "cannot evaluate a loss that is given as Python functions"
    from ranksvm.terms.device.term import DeviceTerm  # here, because few fits need it

    if loss.name not in DeviceTerm.supported_losses:
        return f"has no loss {loss.name!r}, only {', '.join(map(repr, DeviceTerm.supported_losses))}"
    return None
