"""Devices of workers: the workers that have a requested device, and the device that computes a part."""

import logging
import warnings
from functools import cache

from ranksvm.dask.cluster import Cluster
from ranksvm.device.names import device_names, open_device
from ranksvm.exceptions import DeviceError, MissingDependencyError, OptionError
from ranksvm.fits.device_choice import devices_for, reason_against_gpu
from ranksvm.losses import LossSpec
from ranksvm.terms.parts.part import Part

__all__ = ["check_devices", "device_of_part"]

logger = logging.getLogger("ranksvm.dask")


def check_devices(cluster: Cluster, device: str, loss: LossSpec) -> None:
    """Refuse a device that no worker has; warn if only some workers have it.

    Parameters
    ----------
    cluster : Cluster
        The cluster.
    device : str
        What the user gave; "cpu" and "auto" are always possible.
    loss : LossSpec
        The loss.

    Raises
    ------
    OptionError
        When the loss can only be computed on a CPU.
    DeviceError
        When no worker has the device; the message has the reason of one worker.

    Warns
    -----
    UserWarning
        When some workers lack the device, and so use their CPU.
    """
    if not device_names(device):
        return
    if complaint := reason_against_gpu("auto", loss):
        raise OptionError(f"device={device!r} {complaint}: use device='cpu'.")
    found = cluster.run_on_workers(complaint_of_worker, device)
    lacking = {worker: str(reason) for worker, reason in found.items() if reason is not None}
    if lacking and len(lacking) == len(found):
        worker, reason = next(iter(lacking.items()))
        raise DeviceError(f"no worker has the device {device!r}; of {worker}: {reason}")
    if lacking:
        warnings.warn(
            f"{len(lacking)} of {len(found)} workers do not have the device {device!r} ({', '.join(lacking)}): they "
            "compute on their processor, so that the last digits of a fit depend on which worker has which part.",
            UserWarning,
            stacklevel=2,
        )


def complaint_of_worker(device: str) -> str | None:
    """Reason why the worker that runs this cannot open a device; None if it can."""
    try:
        for name in device_names(device):
            open_device(name)
    except (DeviceError, MissingDependencyError) as error:
        return str(error)
    return None


def device_of_part(part: Part, device: str, loss: LossSpec) -> str:
    """The device, by its full name, on which this worker computes a part; "cpu" if it has no other.

    Parameters
    ----------
    part : Part
        The part.
    device : str
        What the user gave.
    loss : LossSpec
        The loss.

    Returns
    -------
    str
        The name.
    """
    if device == "cpu" or part.pairs.weight <= 0.0:
        return "cpu"
    if device == "auto":
        from ranksvm.fits.work import linear_work  # here, because few fits need it

        names = devices_for(device, "auto", loss, 1, lambda: linear_work(loss, part.pairs, part.design))
        return names[0] if names else "cpu"
    return device_names(device)[0] if _has(device) else "cpu"


@cache
def _has(device: str) -> bool:
    complaint = complaint_of_worker(device)
    if complaint is not None:
        logger.warning("parts of this worker are computed on its processor: %s", complaint)
    return complaint is None
