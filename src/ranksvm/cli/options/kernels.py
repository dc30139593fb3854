"""Options of kernel models: which kernel, and how it is approximated."""

from collections.abc import Callable
from typing import Any

import click

from ranksvm.cli.options.low_rank import LOW_RANK_OPTIONS
from ranksvm.cli.options.shared import Name, Number, NumberRange, all_options, flag, list_option

__all__ = [
    "CHOICES",
    "KERNEL_OPTIONS",
    "NO_SIGNS",
    "OF_APPROXIMATIONS",
    "READ_BY",
    "check_kernel_options",
    "common_kernel_options",
    "gamma_range_option",
    "kernel_options",
]

# Parameters chosen by name. They repeat the library's lists, because the library must not be imported for --help. A
# precomputed kernel cannot be stored in a data file.
CHOICES = {
    "kernel": ["rbf", "poly", "linear", "laplacian", "cosine"],
    "approximation": ["nystroem", "fourier"],
    "landmarks": ["uniform", "kmeans++", "leverage"],
    "kernel_dtype": ["float32", "float64"],
}
# Parameters of the estimator, other than ``kernel``, that options set; None: its default.
KERNEL_OPTIONS = (
    *("gamma", "degree", "coef0", "approximation", "n_components", "landmarks", "random_state"),
    *("memory_limit", "kernel_dtype"),
)
NO_SIGNS = "--kernel with --monotone: only the weights of linear models have signs."
# Option -> the kernels that read it.
READ_BY = {
    "gamma": ("rbf", "poly", "laplacian"),
    "gammas": ("rbf", "poly", "laplacian"),
    "degree": ("poly",),
    "coef0": ("poly",),
}
OF_APPROXIMATIONS = {
    "n_components": ("nystroem", "fourier"),
    "landmarks": ("nystroem",),
    "random_state": ("nystroem", "fourier"),
}


class _Gamma(Number):
    """A positive number, ``scale`` or ``auto``; for nuclear norms also 0."""

    name = "gamma"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value in ("scale", "auto"):
            return value
        return 0.0 if value == "0" else super().convert(value, param, ctx)


gamma_range_option = list_option(
    "--gamma-range",
    "gammas",
    type=NumberRange(),
    metavar="RANGE",
    help="Values of gamma of a kernel to choose from.  [default: around scale]",
)


def kernel_options(command: Callable) -> Callable:
    """The kernel of a model that is not linear."""
    return all_options(
        click.option(
            "--kernel", type=Name(CHOICES["kernel"]), help="Score by a kernel expansion instead of a linear function."
        ),
        click.option(
            "--gamma",
            type=_Gamma(),
            metavar="G",
            help="For rbf, poly, laplacian: a number, scale, or auto.  [scale]  For --low-rank regularized: weight of "
            "the nuclear norms.  [1]",
        ),
        gamma_range_option,
        click.option(
            "--n-components",
            type=click.IntRange(min=1),
            metavar="N",
            help="Number of features of --approximation.  [1000]  For --low-rank factorized: the rank.  [5]",
        ),
        common_kernel_options,
    )(command)


def common_kernel_options(command: Callable) -> Callable:
    """What does not depend on whether one kernel is fitted or several are compared."""
    return all_options(
        click.option("--degree", type=click.IntRange(min=1), metavar="D", help="Degree of poly.  [default: 3]"),
        click.option(
            "--coef0", type=click.FloatRange(min=0.0), metavar="X", help="Constant term of poly.  [default: 1]"
        ),
        click.option(
            "--approximation", type=Name(CHOICES["approximation"]), help="Approximate the kernel by features."
        ),
        click.option(
            "--landmarks",
            type=Name(CHOICES["landmarks"]),
            help="How the landmarks of nystroem are drawn.  [default: uniform]",
        ),
        click.option("--random-state", type=click.IntRange(min=0), metavar="SEED", help="Seed of the random numbers."),
        click.option(
            "--memory-limit",
            metavar="SIZE",
            help="Memory for the kernel, for the matrices of --low-rank regularized, or of the process where a linear "
            "model is trained on a larger file: 4GB, 500MB.  [default: half of the free memory]",
        ),
        click.option(
            "--kernel-dtype",
            type=Name(CHOICES["kernel_dtype"]),
            help="Type of the stored kernel values.  [default: float32]",
        ),
    )(command)


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
