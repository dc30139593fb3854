"""Options that set hyper-parameters, from the table of the library."""

from collections.abc import Callable
from typing import Any

import click

from ranksvm._util.parameters import PARAMETERS, Count, NotNegative, OneOf, Parameter, Positive, Range
from ranksvm.cli.options.additive import Categories, Interactions, InteractionsList
from ranksvm.cli.options.monotone import Monotone
from ranksvm.cli.options.shared import IntList, Name, NameList, Number, NumberRange, all_options, flag, list_option
from ranksvm.cli.options.training import CHOICES

__all__ = ["SETTINGS", "parameter_options"]

# the parameters that a settings file may hold
SETTINGS = (*dict.fromkeys(each.name for each in PARAMETERS if each.section and each.saved), "C")

_OWN_TYPES = {"monotone": Monotone(), "interactions": Interactions(), "categorical": Categories()}

# Longer lists of names are moved from the metavar to the help text, which can be broken into lines.
MAX_CHARACTERS = 60


class _WordOrNumber(Number):
    """One of some words, 0 if it is allowed, or a positive number."""

    def __init__(self, words: tuple[str, ...], zero: bool):
        self._words, self._zero = words, zero

    def convert(self, value: str | float, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value in self._words:
            return value
        return 0.0 if self._zero and value == "0" else super().convert(value, param, ctx)


def parameter_options(*sections: str, compared: bool = False) -> Callable[[Callable], Callable]:
    """The options of some sections of the table; with ``compared``, lists of values for tuned parameters."""
    options = []
    for each in PARAMETERS:
        if each.section in sections:
            if each.help and not (compared and each.tuned):
                options.append(_option(each))
            # commands that fit one model also have the option of a range of gamma
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
    if parameter.name in _OWN_TYPES:
        return _OWN_TYPES[parameter.name]
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
