"""Options of low-rank models: the choice of a model, and its parameters."""

from typing import Any

import click
from click.core import ParameterSource

from ranksvm._util.parameters import LOW_RANK, PARAMETERS, option_names
from ranksvm.cli.options.shared import flag

__all__ = ["LOW_RANK_OPTIONS", "MISSING", "OF_OTHERS", "check_low_rank_options"]

# Model -> parameters of its estimator that options set. (An option that is None leaves the estimator's default.) Some
# are options of kernels too.
LOW_RANK_OPTIONS = {model: option_names(model) for model in LOW_RANK}
# Options of these models alone.
_OWN = tuple(each.name for each in PARAMETERS if each.section == "low_rank" and each.help and each.models)
# Options of other models -> the only value that low-rank models allow, and the reason.
OF_OTHERS = {each.name: each.low_rank for each in PARAMETERS if each.low_rank is not None}
# Options that low-rank models do not have -> the reason.
MISSING = {
    "Cs": "the low-rank models are not fitted along a range of C: give -C",
    "gammas": "the low-rank models are not fitted along a range of gamma: give --gamma",
    "sample_weight": "the low-rank models weight all pairs equally",
    "query_weight": "the low-rank models weight all pairs equally",
    "propensity": "the low-rank models weight all pairs equally",
    "pairs": "the low-rank models learn from labels",
    "clicks": "the low-rank models learn from labels",
}


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
    for name, (value, reason) in OF_OTHERS.items():
        if ctx.get_parameter_source(name) is not ParameterSource.DEFAULT and options[name] != value:
            raise click.UsageError(f"--low-rank with {flag(name)}: {reason}.")
    for name in dict.fromkeys(name for names in LOW_RANK_OPTIONS.values() for name in names):
        if options.get(name) is not None and name not in LOW_RANK_OPTIONS[model]:
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
