"""Devices of a fit or of scoring: those that the user names, or with "auto" the cheaper of the CPU and a GPU."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from ranksvm.device.calibration import DeviceCosts, device_costs
from ranksvm.device.names import device_names, is_open, open_device
from ranksvm.device.protocol import Device
from ranksvm.exceptions import DeviceError, MissingDependencyError, OptionError
from ranksvm.losses import LossSpec

if TYPE_CHECKING:
    from ranksvm.fits.work import Rows, Work

__all__ = ["cheaper_device", "check_device", "check_place", "devices_for", "unable"]

logger = logging.getLogger("ranksvm.fits")

# The GPU that "auto" may use.
GPU = "cuda:0"
# If no GPU is open yet, none is opened for a fit that would not be faster on a GPU with these costs: seconds to import
# cuda-core and to create a context (the import alone took 0.33 s), and lower bounds on the costs of today's GPUs.
OPENING = 0.3
FASTEST = DeviceCosts(round=2e-5, copy_byte=2e-11, read_byte=1e-13, visit=2e-13, compilation=0.0)


def check_device(device: Any, solver: str, loss: LossSpec) -> None:
    """Refuse a device that is not there, or that cannot do the requested work.

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
    reason = None if not device_names(device) else unable(solver, loss)
    if reason is not None:
        raise OptionError(f"device={device!r} {reason}: use device='cpu'.")
    for name in device_names(device):
        open_device(name)


def check_place(device: Any, place: str, solver: str, loss: LossSpec) -> None:
    """Refuse X on a GPU that cannot be used there.

    Parameters
    ----------
    device : str or list of str
        The user's argument: "cpu", the default, and "auto" take X where it lies.
    place : str
        Name of the GPU where X lies.
    solver : str
        Name of the solver.
    loss : LossSpec
        The loss.

    Raises
    ------
    OptionError
        When another device is asked for, or the solver or loss is for the CPU only.
    """
    names = device_names(device)
    if names and names != (place,):
        raise OptionError(
            f"device={device!r}, but X lies on {place}: move X there, or leave device at 'cpu' or 'auto'."
        )
    reason = unable(solver, loss)
    if reason is not None:
        raise OptionError(f"X lies on {place}, which {reason}: copy X to the host, by X.get() or X.cpu().")


def devices_for(
    device: Any, solver: str, loss: LossSpec, pairs: Any, design: Rows, n_threads: int, n_fits: int = 1
) -> tuple[str, ...]:
    """The names of the devices of a linear model's fit; none for the CPU.

    Parameters
    ----------
    device : str or list of str
        The user's argument, checked.
    solver : str
        Name of the solver.
    loss : LossSpec
        The loss.
    pairs : ComparablePairs or PairList
        The pairs.
    design : Rows
        The features.
    n_threads : int
        Number of threads that the fit may use.
    n_fits : int
        Number of values of C that are solved for, one after another.

    Returns
    -------
    tuple of str
        The names.
    """
    if device != "auto":
        return device_names(device)
    reason = unable(solver, loss)
    if reason is not None:
        logger.info("device='auto': the processor, because a GPU %s", reason)
        return ()
    from ranksvm.fits.work import linear_work  # not for every fit

    found = cheaper_device(linear_work(loss, pairs, design).repeated(n_fits), n_threads)
    return () if found is None else (found.name,)


def cheaper_device(work: Work, n_threads: int) -> Device | None:
    """The first GPU, if there is one and the work is estimated to take less time there; the log says why.

    Parameters
    ----------
    work : Work
        The work of a fit or of scoring.
    n_threads : int
        Number of threads that it may use on the CPU.

    Returns
    -------
    Device or None
        The GPU; None for the CPU.
    """
    on_cpu = work.on_cpu(n_threads)
    least = OPENING + work.on_gpu(FASTEST)
    if on_cpu <= least and not is_open(GPU):
        logger.info("device='auto': the processor, an estimated %.2g s, not %.2g s on the fastest GPU", on_cpu, least)
        return None
    try:
        gpu = open_device(GPU)
        costs, free = device_costs(gpu), gpu.free_bytes
    except (DeviceError, MissingDependencyError) as error:
        logger.info("device='auto': the processor. %s", error)
        return None
    except Exception as error:  # of cuda-core or the driver: a fit must not fail because a GPU does not work
        logger.info("device='auto': the processor, because the costs of %s cannot be measured: %r", GPU, error)
        return None
    on_gpu = work.on_gpu(costs, free, gpu.compiled(work.variant, work.kernel))
    if on_gpu >= on_cpu:
        logger.info("device='auto': the processor, an estimated %.2g s, not %.2g s on %s", on_cpu, on_gpu, gpu.name)
        return None
    logger.info("device='auto': %s, an estimated %.2g s, not %.2g s on the processor", gpu.name, on_gpu, on_cpu)
    return gpu


def unable(solver: str, loss: LossSpec) -> str | None:
    """The reason why a GPU cannot do the work, as the end of a sentence; None if it can.

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
        return "has no solver 'direct', which factorizes on the CPU"
    if loss.function is not None:
        return "cannot evaluate a loss that is given as functions of Python"
    from ranksvm.terms.device.term import DeviceTerm  # not for every fit

    if loss.name not in DeviceTerm.supported_losses:
        return f"has no loss {loss.name!r}, only {', '.join(map(repr, DeviceTerm.supported_losses))}"
    return None
