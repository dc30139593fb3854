"""The option ``--device``: the device that fits a model, or computes scores."""

from collections.abc import Callable
from typing import Any

import click

from ranksvm.cli.terminal import say

__all__ = ["check_device_option", "device_option", "scoring_device", "scoring_device_option"]


class _Device(click.ParamType):
    """A device by its name, or several with commas between them."""

    name = "device"

    def convert(
        self, value: str | list[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> str | list[str]:
        names = [name.strip() for name in value.split(",")] if isinstance(value, str) else value
        return names[0] if len(names) == 1 else names


def device_option(command: Callable) -> Callable:
    """The option ``--device``."""
    return click.option(
        "--device",
        type=_Device(),
        metavar="NAME",
        help="Device on which a linear, additive or kernel model is fitted: cpu, cuda, cuda:1, auto; or, for a linear "
        "model, several GPUs, cuda:0,cuda:1.  [default: cpu]",
    )(command)


def check_device_option(options: dict[str, Any]) -> None:
    """Refuse a device that is not there, or that cannot do what the options ask for, before the data are read."""
    device = options["device"]
    if device is None:
        return
    from ranksvm.device.names import device_complaint, device_names, open_device

    complaint = device_complaint(device)
    if complaint is not None:
        raise click.UsageError(f"--device {complaint}.")
    if options["low_rank"]:
        raise click.UsageError("--device is for linear, additive and kernel models: omit it with --low-rank.")
    if device == "auto":
        _say_auto()
    names = device_names(device)
    one = "a kernel" if options["kernel"] else "an additive" if "additive" in options["model"] else ""
    if one and len(names) > 1:
        raise click.UsageError(f"--device with several GPUs is for linear models: {one} model is fitted on one.")
    for name in names:
        open_device(name)


def scoring_device_option(command: Callable) -> Callable:
    """The option ``--device`` of commands that compute scores."""
    return click.option(
        "--device",
        metavar="NAME",
        help="Device on which a linear or kernel model computes the scores: cpu, cuda, cuda:1, auto.  [default: cpu]",
    )(command)


def scoring_device(name: str | None) -> str | None:
    """The full name of the GPU that computes scores; None for the CPU.

    A GPU that is not there is refused.
    """
    if name == "auto":
        _say_auto()
    if name in (None, "cpu", "auto"):
        return None
    from ranksvm.device.names import device_names, open_device

    names = device_names(name)
    if not names:
        raise click.UsageError(f"--device must be 'cpu', 'cuda', 'cuda:1' (any number from 0) or 'auto', got {name!r}.")
    open_device(names[0])
    return names[0]


def _say_auto() -> None:
    """Say that "auto" is the CPU: it chooses a GPU only after `ranksvm.calibrate_device` in the same process."""
    say("--device auto: the CPU. Name a GPU to use it, such as --device cuda.", err=True)
