"""Options of low-rank models: the choice of a model, and its parameters."""

from collections.abc import Callable
from typing import Any

import click
from click.core import ParameterSource

from ranksvm.cli.options.shared import Name, Number, all_options, flag

__all__ = ["LOW_RANK_OPTIONS", "MISSING", "check_low_rank_options", "common_low_rank_options", "low_rank_options"]

# Model -> parameters of its estimator that options set; None: its default. Some are options of kernels too.
LOW_RANK_OPTIONS = {
    "factorized": ("n_components", "learning_rate", "init", "max_epochs", "early_stopping_rounds", "random_state"),
    "regularized": ("gamma", "lam", "memory_limit", "max_iter"),
}
# Options of these models alone.
_OWN = ("learning_rate", "init", "max_epochs", "early_stopping_rounds", "lam")
# Options of other models that have a fixed value in these models: the value, and the reason.
_SETTLED = {
    "loss": ("hinge", "the low-rank models have the hinge loss"),
    "huber_width": (None, "the low-rank models have the hinge loss"),
    "pair_selection": ("all", "the low-rank models take all pairs"),
    "pair_weighting": ("uniform", "the low-rank models weight all pairs equally"),
    "solver": ("auto", "the command fits the low-rank models by their default solvers"),
}
# Options of other models that these models do not have, and the reason.
MISSING = {
    "kernel": "the low-rank models are linear: give --kernel or --low-rank",
    "Cs": "the low-rank models are not fitted along a range of C: give -C",
    "gammas": "the low-rank models are not fitted along a range of gamma: give --gamma",
    "monotone": "the weights of low-rank models have no given signs",
    "sample_weight": "the low-rank models weight all pairs equally",
    "query_weight": "the low-rank models weight all pairs equally",
    "propensity": "the low-rank models weight all pairs equally",
    "pairs": "the low-rank models learn from labels",
    "clicks": "the low-rank models learn from labels",
    "approximation": "it is an option of kernels",
    "landmarks": "it is an option of kernels",
    "kernel_dtype": "it is an option of kernels",
    "degree": "it is an option of kernels",
    "coef0": "it is an option of kernels",
}


class _LearningRate(Number):
    """A positive number, or ``auto``."""

    name = "rate"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return value if value == "auto" else super().convert(value, param, ctx)


def low_rank_options(command: Callable) -> Callable:
    """The choice of a low-rank model, and the options that only these models have."""
    return all_options(
        click.option(
            "--low-rank",
            type=Name(list(LOW_RANK_OPTIONS)),
            help="Learn dual variables of low rank for each query, with the hinge loss: as --n-components factors, or "
            "regularized by nuclear norms of weight --gamma.",
        ),
        click.option(
            "--lam",
            type=Number(),
            metavar="L",
            help="For regularized: weight of the distance to low rank.  [default: 1]",
        ),
        common_low_rank_options,
    )(command)


def common_low_rank_options(command: Callable) -> Callable:
    """What does not depend on whether one model is fitted or several are compared."""
    return all_options(
        click.option(
            "--learning-rate", type=_LearningRate(), metavar="R", help="For factorized: auto, or a fixed step.  [auto]"
        ),
        click.option(
            "--init",
            type=Name(["scaled", "uniform"]),
            help="For factorized: initial factors, scaled to the lowest objective or uniform in their box.  [scaled]",
        ),
        click.option(
            "--max-epochs",
            type=click.IntRange(min=1),
            metavar="N",
            help="For factorized: limit of epochs.  [default: 1000]",
        ),
        click.option(
            "--early-stopping-rounds",
            type=click.IntRange(min=1),
            metavar="N",
            help="For factorized: stop after N epochs without a better --metric on --valid, and keep the best epoch.",
        ),
    )(command)


def check_low_rank_options(ctx: click.Context, options: dict[str, Any]) -> None:
    """Refuse options that the chosen low-rank model does not use; all of them if none is chosen."""
    model = options["low_rank"]
    if model is None:
        for name in _OWN:
            if options[name] is not None:
                raise click.UsageError(
                    f"{flag(name)} is an option of --low-rank {_models_with(name)}: give that option too."
                )
        return
    for name, reason in MISSING.items():
        if options[name] is not None:
            raise click.UsageError(f"--low-rank with {flag(name)}: {reason}.")
    for name, (value, reason) in _SETTLED.items():
        if ctx.get_parameter_source(name) is not ParameterSource.DEFAULT and options[name] != value:
            raise click.UsageError(f"--low-rank with {flag(name)}: {reason}.")
    for name in dict.fromkeys(name for names in LOW_RANK_OPTIONS.values() for name in names):
        if options[name] is not None and name not in LOW_RANK_OPTIONS[model]:
            raise click.UsageError(f"{flag(name)} is used by --low-rank {_models_with(name)}, not by {model}.")
    if isinstance(options["gamma"], str):
        raise click.UsageError(f"--low-rank regularized with --gamma {options['gamma']}: give a number.")
    if options["early_stopping_rounds"] is not None:
        _check_early_stopping(options)


def _check_early_stopping(options: dict[str, Any]) -> None:
    if options["valid"] is None:
        raise click.UsageError("--early-stopping-rounds needs data to evaluate every epoch on: give --valid.")
    if options["convention"] != "default":
        raise click.UsageError(
            f"--early-stopping-rounds with --convention {options['convention']}: epochs are evaluated by the default "
            "convention; use ranksvm evaluate for another one."
        )


def _models_with(name: str) -> str:
    return " or ".join(model for model, names in LOW_RANK_OPTIONS.items() if name in names)
