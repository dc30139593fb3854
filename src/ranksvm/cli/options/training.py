"""Options of the commands that train: data, weights, hyper-parameters, how they are chosen, and settings files."""

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from ranksvm._util.parameters import LOSSES, PARAMETERS, Count, NotNegative, OneOf, Parameter, Positive, Range
from ranksvm.cli.clicks import click_options
from ranksvm.cli.options.models import Categories, Interactions, InteractionsList
from ranksvm.cli.options.paths import STDIN
from ranksvm.cli.options.shared import (
    EXISTING_FILE,
    IntList,
    Name,
    NameList,
    Number,
    NumberRange,
    all_options,
    column_of,
    convention_option,
    flag,
    given,
    joined_option,
    list_option,
    qrels_option,
    reading_options,
)
from ranksvm.cli.output.tables import json_text

__all__ = [
    "CHOICES",
    "RULES",
    "SETTINGS",
    "c_range_option",
    "check_choice_options",
    "choice_options",
    "data_options",
    "parameter_options",
    "settings_lines",
    "settings_option",
    "signs_of_columns",
]

# Parameters chosen by name, and their values. Some repeat the library's lists, because the library must not be
# imported for --help. The first value of each is the default.
CHOICES = {
    "loss": list(LOSSES),
    "scaler": [
        *("none", "query-minmax", "query-standard", "standard", "minmax"),
        *("elasticsearch-minmax", "elasticsearch-l2_norm", "elasticsearch-none"),
        *("opensearch-minmax", "opensearch-l2_norm"),
    ],
}
RULES = ["best", "one_standard_error"]
# the parameters that a settings file may hold
SETTINGS = (*dict.fromkeys(each.name for each in PARAMETERS if each.section and each.saved), "C")

# the values of --monotone: signs of features, and words for all features
_SIGNS = {"increasing": 1, "decreasing": -1, "1": 1, "+1": 1, "-1": -1, "0": 0}
_SIGNS_OF_ALL = ("increasing", "decreasing")
# Longer lists of names are moved from the metavar to the help text, which can be broken into lines.
MAX_CHARACTERS = 60


def data_options(command: Callable) -> Callable:
    """The options for validation and test data, weights of the training data, and pairs to use instead of labels."""
    return all_options(
        click.option("--valid", type=EXISTING_FILE, metavar="FILE", help="Validation data, on which C is chosen."),
        click.option(
            "--test", type=EXISTING_FILE, metavar="FILE", help="Test data, used only for an evaluation at the end."
        ),
        qrels_option,
        _numbers_option(
            "--sample-weight",
            "Weight of each row of TRAIN: a pair is weighted by the product of its two rows' weights.",
        ),
        _numbers_option("--query-weight", "Weight of each row's query, the same for all its rows."),
        _numbers_option(
            "--propensity",
            "Probability that feedback on a row was observed; the weights of pairs that prefer the row are divided by "
            "it.",
        ),
        click.option(
            "--pairs",
            type=EXISTING_FILE,
            metavar="FILE",
            help="Learn from these pairs, not from labels. Each line is 'preferred other [weight]', with the numbers "
            "of two rows of TRAIN, from 0.",
        ),
        click_options,
        reading_options,
    )(command)


def _numbers_option(name: str, meaning: str) -> Callable[[Callable], Callable]:
    return click.option(name, type=EXISTING_FILE, metavar="FILE", help=f"{meaning} One number per line.")


def c_range_option(default: str | None = None) -> Callable[[Callable], Callable]:
    """The option that lists the values of C to choose from."""
    return list_option(
        "--C-range",
        "Cs",
        type=NumberRange(),
        default=default,
        metavar="RANGE",
        help="Values of C to choose from: 2^-15:2^5, 2^-15:2^5:2, 1e-4:1e2 or 0.01,0.1,1.",
    )


def choice_options(command: Callable) -> Callable:
    """The options that say how C, and every other setting that is compared, is chosen."""
    return all_options(
        click.option(
            "--metric", default="ndcg@10", show_default=True, metavar="M", help="Metric that decides the choice."
        ),
        convention_option(),
        click.option(
            "--folds",
            type=click.IntRange(min=2),
            default=5,
            show_default=True,
            metavar="N",
            help="Number of folds of queries, used if there are no validation data.",
        ),
        click.option(
            "--rule",
            type=Name(RULES),
            default=RULES[0],
            show_default=True,
            help="Choose the C with the best mean score, or the smallest C within one standard error of it.",
        ),
    )(command)


def check_choice_options(choosing: bool, valid: bool) -> None:
    """Refuse options of a choice that is not made or, if there are validation data, not made by folds."""
    for name in ("folds", "rule"):
        if given(name) and not choosing:
            raise click.UsageError(
                f"--{name} is for a choice among models, but one model is fitted: give --C-range, or omit it."
            )
    if given("folds") and valid:
        raise click.UsageError("--folds is for training data alone, but validation data decide the choice: omit it.")


class _Monotone(click.ParamType):
    """``increasing``, ``decreasing``, or a list of ``FEATURE=SIGN``, which is checked and stays text."""

    name = "signs"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value in _SIGNS_OF_ALL:
            return value
        for item in value.split(","):
            feature, equals, sign = item.strip().rpartition("=")
            if not (feature and equals and sign in _SIGNS):
                self.fail(
                    f"{item.strip()!r} is not FEATURE=SIGN: write 'increasing' or 'decreasing' for all features, or a "
                    "list such as 1=increasing,5=decreasing or bm25=1,length=-1.",
                    param,
                    ctx,
                )
        return value


class _WordOrNumber(Number):
    """One of some words, 0 if it is allowed, or a positive number."""

    def __init__(self, words: tuple[str, ...], zero: bool):
        self._words, self._zero = words, zero

    def convert(self, value: str | float, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value in self._words:
            return value
        return 0.0 if self._zero and value == "0" else super().convert(value, param, ctx)


_OWN_TYPES = {"monotone": _Monotone(), "interactions": Interactions(), "categorical": Categories()}


def parameter_options(*sections: str, compared: bool = False) -> Callable[[Callable], Callable]:
    """The options of some sections of `PARAMETERS`; with ``compared``, tuned parameters take lists of values."""
    options = []
    for each in PARAMETERS:
        if each.section in sections:
            if each.help and not (compared and each.tuned):
                options.append(_option(each))
            # commands that fit one model also have the option --gamma-range
            if each.tuned and (compared or each.tuned == "gammas"):
                options.append(_list_option(each))
    return all_options(*options)


def _names(parameter: Parameter) -> list[str] | None:
    if parameter.name in CHOICES:
        return CHOICES[parameter.name]
    if isinstance(parameter.constraint, OneOf):
        # a precomputed kernel cannot be stored in a data file
        return [name for name in parameter.constraint.names if name != "precomputed"]
    return None


def _option(parameter: Parameter) -> Callable[[Callable], Callable]:
    if parameter.name == "linear":
        return click.option("--linear-part/--no-linear-part", "linear", default=None, help=parameter.help)
    metavar, text, names = parameter.metavar, parameter.help, _names(parameter)
    if names is not None and len("|".join(names)) > MAX_CHARACTERS:
        metavar, text = "NAME", f"{text}  [{', '.join(names)}]"
    if parameter.name in _OWN_TYPES:
        return joined_option(
            flag(parameter.name), type=_OWN_TYPES[parameter.name], metavar=metavar, default=parameter.default, help=text
        )
    return click.option(
        flag(parameter.name),
        type=_type(parameter),
        metavar=metavar,
        default=parameter.default,
        show_default=parameter.default is not None,
        help=text,
    )


def _type(parameter: Parameter) -> click.ParamType:
    names = _names(parameter)
    if names is not None:
        return Name(names)
    match parameter.constraint:
        case Count(minimum):
            return click.IntRange(min=minimum)
        case Range(minimum, maximum):
            return click.IntRange(minimum, maximum)
        case Positive(words):
            rows = [each.constraint for each in PARAMETERS if each.name == parameter.name and each.section]
            return _WordOrNumber(words, any(isinstance(each, NotNegative) for each in rows))
        case NotNegative():
            return click.FloatRange(min=0.0)
    return click.STRING


def _list_option(parameter: Parameter) -> Callable:
    names = _names(parameter)
    text = parameter.tuned_help or parameter.help
    given: dict[str, Any] = {"type": NumberRange(isinstance(parameter.constraint, NotNegative)), "metavar": "RANGE"}
    if names is not None:
        given = {"type": NameList(names), "metavar": "NAME,..."}
        text += f"  [{', '.join(names)}]"
    elif isinstance(parameter.constraint, Count):
        given = {"type": IntList(), "metavar": "N,..."}
    elif parameter.name == "interactions":
        given = {"type": InteractionsList(), "metavar": "N,..."}
    default = None if parameter.default is None else f"{parameter.default:g}" if names is None else parameter.default
    return list_option(flag(parameter.tuned), parameter.tuned, default=default, help=text, **given)


def signs_of_columns(text: str | None, names: Sequence[str] | None, n_features: int) -> str | dict[int, int] | None:
    """Convert a value of the option --monotone to the parameter ``monotone`` of an estimator.

    Columns without names are numbered from 1, as in LETOR text. A number that is a feature's name counts as the name.
    """
    if text is None or text in _SIGNS_OF_ALL:
        return text
    signs: dict[int, int] = {}
    for item in text.split(","):
        feature, _, sign = item.strip().rpartition("=")
        column = column_of("--monotone", feature, names, n_features)
        if column in signs:
            raise click.UsageError(f"--monotone: the feature {feature!r} is given twice.")
        signs[column] = _SIGNS[sign]
    return signs


def settings_lines(settings: dict[str, Any], found: dict[str, Any]) -> list[str]:
    """The lines of a settings file: the settings, and, for people only, how they were found."""
    unknown = set(settings) - set(SETTINGS)
    assert not unknown, unknown
    return [json_text({"ranksvm": "settings", "settings": settings, "found": found})]


def settings_option(command: Callable) -> Callable:
    """The option ``--settings``: the file's values are the defaults of the other options."""
    return click.option(
        "--settings",
        type=EXISTING_FILE,
        is_eager=True,
        expose_value=False,
        callback=_take_settings,
        metavar="FILE",
        help="Settings that `ranksvm tune --save-choice` wrote; options given here override them.",
    )(command)


def _take_settings(ctx: click.Context, _parameter: click.Parameter, path: Path | None) -> None:
    if path is None:
        return
    options = {option.name: option for option in ctx.command.params}
    values = {}
    for name, value in _read_settings(path).items():
        option = options[name]
        try:
            values[name] = _cast(ctx, option, str(value))
        except click.BadParameter as error:
            raise click.BadParameter(f"{path}: {name}: {error.message}", ctx, param_hint="--settings") from None
    ctx.default_map = {**(ctx.default_map or {}), **values}


def _cast(ctx: click.Context, option: click.Parameter, text: str) -> Any:
    """The default of an option for a text; the values of an option that may be given several times stay texts."""
    if not option.multiple:
        return option.type_cast_value(ctx, text)
    option.process_value(ctx, [text])
    return [text]


def _read_settings(path: Path) -> dict[str, Any]:
    try:
        text = sys.stdin.buffer.read() if path == STDIN else path.read_bytes()
        content = json.loads(text.decode("utf-8"))
    except ValueError as error:  # not text, or not JSON
        raise click.BadParameter(f"{path} is not a settings file: {error}", param_hint="--settings") from None
    if not isinstance(content, dict) or content.get("ranksvm") != "settings":
        raise click.BadParameter(
            f"{path} is not a settings file, as `ranksvm tune --save-choice` writes them.", param_hint="--settings"
        )
    settings = content.get("settings")
    if not isinstance(settings, dict):
        raise click.BadParameter(f"{path}: 'settings' is missing, or is not an object.", param_hint="--settings")
    for name in settings:
        if name not in SETTINGS:
            raise click.BadParameter(
                f"{path}: unknown setting {name!r}: expected some of {', '.join(SETTINGS)}.", param_hint="--settings"
            )
    return settings
