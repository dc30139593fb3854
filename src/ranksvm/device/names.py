"""Names of devices: "cpu", "cuda", "cuda:1", "auto", or a list of GPUs."""

import re
from collections.abc import Callable, Sequence

from ranksvm.device.protocol import Device

__all__ = ["OPENERS", "device_complaint", "device_names", "open_device"]

# Options that name no device.
_NO_DEVICES = "cpu", "auto"
_NAME = re.compile(r"([a-z]+)(?::(\d+))?")
_EXPECTED = "'cpu', 'cuda', 'cuda:1' (any number from 0), 'auto', or a list of GPUs such as ['cuda:0', 'cuda:1']"


def _open_cuda(number: int) -> Device:
    from ranksvm.device.cuda import CudaDevice

    return CudaDevice(number)


# Kind of device -> function that opens the device with a number. A test adds "host" to run fits on a `HostDevice`.
OPENERS: dict[str, Callable[[int], Device]] = {"cuda": _open_cuda}
_opened: dict[tuple[Callable[[int], Device], int], Device] = {}


def device_complaint(device: object) -> str | None:
    """Error message for an invalid device name; None if the name is valid, whether or not the device exists.

    Parameters
    ----------
    device : object
        The user's option.

    Returns
    -------
    str or None
        The rest of a sentence that begins with the name of the option.
    """
    if isinstance(device, str):
        return None if device in _NO_DEVICES or _parsed(device) else f"must be {_EXPECTED}, got {device!r}"
    if not isinstance(device, list | tuple) or not device:
        return f"must be {_EXPECTED}, got {device!r}"
    names = [f"{kind}:{number}" for kind, number in filter(None, map(_parsed, device))]
    if len(names) < len(device):
        return f"must be {_EXPECTED}, got {device!r}"
    if len(set(names)) < len(names):
        return f"names a GPU twice: {device!r}"
    return None


def device_names(device: str | Sequence[str]) -> tuple[str, ...]:
    """Full names of the devices that a valid option names, such as ``("cuda:0",)``; none for "cpu" and "auto".

    Parameters
    ----------
    device : str or list of str
        The option.

    Returns
    -------
    tuple of str
        The names.
    """
    if isinstance(device, str) and device in _NO_DEVICES:
        return ()
    given = [device] if isinstance(device, str) else list(device)
    return tuple(f"{kind}:{number}" for kind, number in filter(None, map(_parsed, given)))


def open_device(name: str) -> Device:
    """A device by its full name; the same object every time.

    Parameters
    ----------
    name : str
        One of `device_names`.

    Returns
    -------
    Device
        The device.

    Raises
    ------
    MissingDependencyError
        When the packages of the extra ``cuda`` are not installed.
    DeviceError
        When there is no such device.
    """
    opener, number = _opener(name)
    if (opener, number) not in _opened:
        _opened[opener, number] = opener(number)
    return _opened[opener, number]


def _opener(name: str) -> tuple[Callable[[int], Device], int]:
    """The function that opens a device, and the device's number."""
    found = _parsed(name)
    assert found is not None, name
    kind, number = found
    return OPENERS[kind], number


def _parsed(name: object) -> tuple[str, int] | None:
    """Kind and number of a device; None if there is no such kind."""
    match = _NAME.fullmatch(name) if isinstance(name, str) else None
    if match is None or match[1] not in OPENERS:
        return None
    return match[1], int(match[2] or 0)
