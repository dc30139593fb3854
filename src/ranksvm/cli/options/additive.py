"""Options of additive models: functions of two features, categories, and what these models cannot do."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import click

from ranksvm._util.parameters import names_in
from ranksvm.cli.options.shared import column_of, flag

__all__ = [
    "ADDITIVE_OPTIONS",
    "Categories",
    "Interactions",
    "InteractionsList",
    "check_additive_options",
    "check_linear_part",
    "check_texts",
    "columns_of_additive",
    "listed_features",
    "pairs_as_text",
    "texts_option",
]

# Parameters of the estimator that options set.
ADDITIVE_OPTIONS = tuple(name for name in names_in("additive") if name != "model")
# Options of other models -> the reason in the error message.
_MISSING = {
    "kernel": "give one of them",
    "low_rank": "give one of them",
    "gammas": "it is an option of kernels",
}
_EXPECTED = "a number from 0, auto, or pairs such as 1:3,bm25:age, by number (from 1) or name"


class Interactions(click.ParamType):
    """A number, "auto", or a list of ``FEATURE:FEATURE``, which is checked and stays text."""

    name = "pairs"

    def convert(self, value: str | int, param: click.Parameter | None, ctx: click.Context | None) -> str | int:
        if value == "auto" or isinstance(value, int):
            return value
        if value.isascii() and value.isdigit():
            return int(value)
        if not all(len(pair) == 2 and all(pair) for pair in _pairs(value)):
            self.fail(f"{value!r} is not {_EXPECTED}.", param, ctx)
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
    """The option of features that hold text, for commands that read data without a model.

    It is added to ``reading``, the options of `reading_options`, which has to be the decorator above.
    """

    @functools.wraps(command)
    def reading_texts(*args: Any, reading: dict[str, Any], categorical: str | None, **options: Any) -> Any:
        if categorical is not None:
            reading = {**reading, "categorical": listed_features(categorical)}
        return command(*args, reading=reading, **options)

    return click.option(
        "--categorical",
        type=Categories(),
        metavar="FEATURE,...",
        help="Features of Parquet, CSV and TSV that may hold text: 5,kind, by number (from 1) or name.",
    )(reading_texts)


def check_additive_options(options: dict[str, Any]) -> None:
    """Refuse options that the chosen model, additive or not, does not use."""
    if options["model"] != "additive":
        for name in ADDITIVE_OPTIONS:
            if options[name] is not None:
                raise click.UsageError(f"{flag(name)} is an option of --model additive: give that option too.")
        return
    for name, reason in _MISSING.items():
        if options.get(name) is not None:
            raise click.UsageError(f"--model additive with {flag(name)}: {reason}.")
    check_linear_part(options["linear"], [options["step_weight"]])


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
