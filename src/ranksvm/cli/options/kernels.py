"""Options of kernel models: which kernel, and how it is approximated."""

from typing import Any

import click

from ranksvm._util.parameters import PARAMETERS, names_in
from ranksvm.cli.options.low_rank import LOW_RANK_OPTIONS
from ranksvm.cli.options.shared import flag

__all__ = [
    "KERNEL_OPTIONS",
    "NO_SIGNS",
    "OF_APPROXIMATIONS",
    "READ_BY",
    "check_kernel_options",
]

NO_SIGNS = "--kernel with --monotone: only the weights of linear models have signs."
# Parameters of the estimator, other than ``kernel``, that options set.
KERNEL_OPTIONS = tuple(name for name in names_in("kernel") if name != "kernel")
_ROWS = [each for each in PARAMETERS if each.section == "kernel" and each.when is not None]
# Option -> the kernels that read it.
READ_BY = {each.name: each.when[1] for each in _ROWS if each.when and each.when[0] == "kernel"}
READ_BY["gammas"] = READ_BY["gamma"]
OF_APPROXIMATIONS = {each.name: each.when[1] for each in _ROWS if each.when and each.when[0] == "approximation"}


def check_kernel_options(options: dict[str, Any]) -> None:
    """Refuse options that the chosen model, linear or with a kernel, does not use."""
    kernel, approximation = options["kernel"], options["approximation"]
    given = [name for name in (*KERNEL_OPTIONS, "gammas") if options[name] is not None]
    if kernel is not None and options["monotone"] is not None:
        raise click.UsageError(NO_SIGNS)
    of_kernels = [name for name in given if name != "memory_limit"]
    if kernel is None and of_kernels:
        raise click.UsageError(_without_model(of_kernels[0]))
    if options["gamma"] == 0.0:
        raise click.UsageError("--gamma 0: the gamma of a kernel is a positive number.")
    if options["gamma"] is not None and options["gammas"] is not None:
        raise click.UsageError("give --gamma or --gamma-range, not both.")
    if options["gamma"] is not None and options["Cs"] is not None:
        if isinstance(options["gamma"], str):
            raise click.UsageError(
                f"--gamma {options['gamma']} with --C-range: give a number, or --gamma-range (by default it is chosen "
                "around scale)."
            )
        options["gammas"], options["gamma"] = [options["gamma"]], None
    for name in given:
        if name in READ_BY and kernel not in READ_BY[name]:
            raise click.UsageError(f"{flag(name)} is used by --kernel {' or '.join(READ_BY[name])}, not by {kernel}.")
        if name in OF_APPROXIMATIONS and approximation not in OF_APPROXIMATIONS[name]:
            raise click.UsageError(
                f"{flag(name)} is an option of --approximation {' or '.join(OF_APPROXIMATIONS[name])}."
            )


def _without_model(name: str) -> str:
    """The message about an option of models that were not chosen."""
    words = f"{flag(name)} is an option of kernel models"
    for model, names in LOW_RANK_OPTIONS.items():
        if name in names:
            return f"{words}, or of --low-rank {model}: give --kernel or --low-rank too."
    return f"{words}: give --kernel too."
