"""Options of additive, kernel and low-rank models: which model, its parameters, and what these models cannot do."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import click
from click.core import ParameterSource

from ranksvm._util.parameters import LOW_RANK, PARAMETERS, names_in, option_names
from ranksvm.cli.options.shared import column_of, flag, given, joined_option

__all__ = [
    "ADDITIVE_OPTIONS",
    "Categories",
    "Interactions",
    "InteractionsList",
    "KERNEL_OPTIONS",
    "LOW_RANK_OPTIONS",
    "NOT_OF_LOW_RANK",
    "NO_SIGNS_OF_KERNELS",
    "OF_APPROXIMATIONS",
    "ALLOWED_IN_LOW_RANK",
    "READ_BY_KERNELS",
    "check_additive_options",
    "check_interaction_options",
    "check_kernel_options",
    "check_linear_part",
    "check_loss_options",
    "check_low_rank_options",
    "check_texts",
    "columns_of_additive",
    "listed_features",
    "pairs_as_text",
    "texts_option",
]

# Low-rank model -> parameters of its estimator that options set. (An option that is None leaves the estimator's
# default.) Some are options of kernels too.
LOW_RANK_OPTIONS = {model: option_names(model) for model in LOW_RANK}
# Options of low-rank models alone.
_LOW_RANK_ALONE = tuple(each.name for each in PARAMETERS if each.section == "low_rank" and each.help and each.models)
# Options of other models -> the only value that low-rank models allow, and the reason.
ALLOWED_IN_LOW_RANK = {each.name: each.low_rank for each in PARAMETERS if each.low_rank is not None}
# Options that low-rank models do not have -> the reason.
NOT_OF_LOW_RANK = {
    "Cs": "the low-rank models are not fitted along a range of C: give -C",
    "gammas": "the low-rank models are not fitted along a range of gamma: give --gamma",
    "sample_weight": "the low-rank models weight all pairs equally",
    "query_weight": "the low-rank models weight all pairs equally",
    "propensity": "the low-rank models weight all pairs equally",
    "pairs": "the low-rank models learn from labels",
    "clicks": "the low-rank models learn from labels",
}
NO_SIGNS_OF_KERNELS = "--kernel with --monotone: only the weights of linear models have signs."
# Parameters of kernel models, other than ``kernel``, that options set.
KERNEL_OPTIONS = tuple(name for name in names_in("kernel") if name != "kernel")
_KERNEL_ROWS = [each for each in PARAMETERS if each.section == "kernel" and each.when is not None]
# Option -> the kernels that read it.
READ_BY_KERNELS = {each.name: each.when[1] for each in _KERNEL_ROWS if each.when and each.when[0] == "kernel"}
READ_BY_KERNELS["gammas"] = READ_BY_KERNELS["gamma"]
OF_APPROXIMATIONS = {each.name: each.when[1] for each in _KERNEL_ROWS if each.when and each.when[0] == "approximation"}
# Parameters of additive models that options set.
ADDITIVE_OPTIONS = tuple(name for name in names_in("additive") if name != "model")
# Options that additive models do not have -> the reason.
_NOT_OF_ADDITIVE = {
    "kernel": "give one of them",
    "low_rank": "give one of them",
    "gammas": "it is an option of kernels",
}
_INTERACTIONS_EXPECTED = "a number from 0, auto, or pairs such as 1:3,bm25:age, by number (from 1) or name"


def check_low_rank_options(ctx: click.Context, options: dict[str, Any]) -> None:
    """Refuse options that the chosen low-rank model does not use; without such a model, refuse all its options."""
    model = options["low_rank"]
    if model is None:
        for name in _LOW_RANK_ALONE:
            if options[name] is not None:
                raise click.UsageError(
                    f"{flag(name)} is an option of --low-rank {_models_with(name)}: give that option too."
                )
        return
    for name, reason in NOT_OF_LOW_RANK.items():
        if options[name] is not None:
            raise click.UsageError(f"--low-rank with {flag(name)}: {reason}.")
    for name, (value, reason) in ALLOWED_IN_LOW_RANK.items():
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


def check_kernel_options(options: dict[str, Any]) -> None:
    """Refuse options that the chosen model, linear or with a kernel, does not use."""
    kernel, approximation = options["kernel"], options["approximation"]
    names = [name for name in (*KERNEL_OPTIONS, "gammas") if options[name] is not None]
    if kernel is not None and options["monotone"] is not None:
        raise click.UsageError(NO_SIGNS_OF_KERNELS)
    of_kernels = [name for name in names if name != "memory_limit"]
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
    for name in names:
        if name in READ_BY_KERNELS and kernel not in READ_BY_KERNELS[name]:
            raise click.UsageError(
                f"{flag(name)} is used by --kernel {' or '.join(READ_BY_KERNELS[name])}, not by {kernel}."
            )
        if name in OF_APPROXIMATIONS and approximation not in OF_APPROXIMATIONS[name]:
            raise click.UsageError(
                f"{flag(name)} is an option of --approximation {' or '.join(OF_APPROXIMATIONS[name])}."
            )


def _without_model(name: str) -> str:
    """The error message for an option that only other models than the chosen one have."""
    words = f"{flag(name)} is an option of kernel models"
    for model, names in LOW_RANK_OPTIONS.items():
        if name in names:
            return f"{words}, or of --low-rank {model}: give --kernel or --low-rank too."
    return f"{words}: give --kernel too."


class Interactions(click.ParamType):
    """A number, "auto", or a list of ``FEATURE:FEATURE``, which is checked and stays text."""

    name = "pairs"

    def convert(self, value: str | int, param: click.Parameter | None, ctx: click.Context | None) -> str | int:
        if value == "auto" or isinstance(value, int):
            return value
        if value.isascii() and value.isdigit():
            return int(value)
        if not all(len(pair) == 2 and all(pair) for pair in _pairs(value)):
            self.fail(f"{value!r} is not {_INTERACTIONS_EXPECTED}.", param, ctx)
        return value


class InteractionsList(click.ParamType):
    """Numbers, "auto", or one list of pairs."""

    name = "list"

    def convert(
        self, value: str | list[str | int], param: click.Parameter | None, ctx: click.Context | None
    ) -> list[str | int]:
        if isinstance(value, list):
            return value
        items = value.split(",") if ":" not in value else [value]
        return [Interactions().convert(item.strip(), param, ctx) for item in items]


class Categories(click.ParamType):
    """Names or numbers of features, separated by commas, which are checked and stay text."""

    name = "features"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not all(map(str.strip, value.split(","))):
            self.fail(f"{value!r} is not a list of features, such as 1,5,kind.", param, ctx)
        return value


def texts_option(command: Callable) -> Callable:
    """The option that lists the features that may hold text, for commands that read data without a model.

    Its value is added to ``reading``, the options of `reading_options`. That decorator has to stand above this one.
    """

    @functools.wraps(command)
    def reading_texts(*args: Any, reading: dict[str, Any], categorical: str | None, **options: Any) -> Any:
        if categorical is not None:
            reading = {**reading, "categorical": listed_features(categorical)}
        return command(*args, reading=reading, **options)

    return joined_option(
        "--categorical",
        type=Categories(),
        metavar="FEATURE,...",
        help="Features of Parquet, CSV and TSV that may hold text: 5,kind, by number (from 1) or name.",
    )(reading_texts)


def check_loss_options(losses: Sequence[str]) -> None:
    """Refuse the width of a loss that is none of ``losses``."""
    if given("huber_width") and "huber" not in losses:
        raise click.UsageError("--huber-width is the width of --loss huber: give that option too.")


def check_interaction_options(interactions: Any) -> None:
    """Refuse levels in functions of two features if there are no such functions."""
    if given("interaction_bins") and not interactions:
        raise click.UsageError("--interaction-bins is for functions of two features: give --interactions too.")


def check_additive_options(options: dict[str, Any]) -> None:
    """Refuse options that the chosen model, additive or not, does not use."""
    if options["low_rank"] is None:
        check_loss_options([options["loss"]])
    if options["model"] != "additive":
        for name in ADDITIVE_OPTIONS:
            if options[name] is not None:
                raise click.UsageError(f"{flag(name)} is an option of --model additive: give that option too.")
        return
    for name, reason in _NOT_OF_ADDITIVE.items():
        if options.get(name) is not None:
            raise click.UsageError(f"--model additive with {flag(name)}: {reason}.")
    check_linear_part(options["linear"], [options["step_weight"]])
    check_interaction_options(options["interactions"])


def listed_features(text: str) -> list[str | int]:
    """The features in the value of an option: each item as a name and, if it is a number, also as a number from 0."""
    names = [each.strip() for each in text.split(",")]
    return [*names, *(int(each) - 1 for each in names if each.isascii() and each.isdigit() and int(each))]


def check_texts(texts: Sequence[str], listed: Sequence[str], additive: bool, scalers: Sequence[str]) -> None:
    """Refuse training data in which features hold text, unless an additive model has them as its categories.

    Parameters
    ----------
    texts : sequence of str
        The features that hold text.
    listed : sequence of str
        The names of the categories.
    additive : bool
        Whether all models are additive.
    scalers : sequence of str
        The scalers to try.
    """
    if not texts:
        return
    left = [name for name in texts if name not in listed]
    words = f"features of the training data hold text ({', '.join(left or texts)})"
    if left or not additive:
        raise click.UsageError(f"{words}: give --model additive --categorical {','.join([*listed, *left])}.")
    if any(scaler != "none" for scaler in scalers):
        raise click.UsageError(f"{words}: give --scaler none. Steps do not depend on the scale.")


def check_linear_part(linear: bool | None, step_weights: Sequence[float | None]) -> None:
    """Refuse models without a linear part and without steps."""
    if linear is False and 0.0 in step_weights:
        raise click.UsageError("--no-linear-part with --step-weight 0 leaves nothing to learn.")


def columns_of_additive(
    options: dict[str, Any], names: Sequence[str] | None, n_features: int
) -> dict[str, list[Any] | int | str | None]:
    """The parameters ``interactions`` and ``categorical`` of an estimator for the values of the options."""
    interactions, categorical = options["interactions"], options["categorical"]
    if isinstance(interactions, str) and interactions != "auto":
        pairs = _pairs(interactions)
        interactions = [[column_of("--interactions", each, names, n_features) for each in pair] for pair in pairs]
    if categorical is not None:
        features = map(str.strip, categorical.split(","))
        categorical = [column_of("--categorical", each, names, n_features) for each in features]
    return {"interactions": interactions, "categorical": categorical}


def pairs_as_text(pairs: Sequence[Sequence[int]], names: Sequence[str] | None) -> str:
    """The value of ``--interactions`` for pairs of columns."""

    def named(column: int) -> str:
        name = str(column + 1) if names is None else names[column]
        # such a name cannot be written in the list
        return str(column + 1) if {",", ":"} & set(name) else name

    return ",".join(f"{named(first)}:{named(second)}" for first, second in pairs)


def _pairs(text: str) -> list[list[str]]:
    return [[feature.strip() for feature in pair.split(":")] for pair in text.split(",")]
