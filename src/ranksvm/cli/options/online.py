"""Learners of ``ranksvm online`` and ``ranksvm serve``, and the options that each of them has."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from ranksvm import estimators
from ranksvm.cli.options.shared import Number, all_options, flag, list_option
from ranksvm.estimators import ONLINE_CHOICES

if TYPE_CHECKING:
    from ranksvm.estimators.base.online_ranker import OnlineRanker

__all__ = ["learner_options", "make_learner"]

_OPTIONS = list(dict.fromkeys(name for choice in ONLINE_CHOICES.values() for name in choice.options))


class _Decay(Number):
    """A number above 0 and at most 1."""

    def convert(self, value: str | float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number = super().convert(value, param, ctx)
        if number > 1:
            self.fail(f"{value!r} is above 1; a decay of 1 forgets nothing.", param, ctx)
        return number


class _Levels(click.ParamType):
    """Labels separated by commas."""

    name = "list"

    def convert(
        self, value: str | list[float], param: click.Parameter | None, ctx: click.Context | None
    ) -> list[float]:
        if isinstance(value, list):
            return value
        try:
            return [float(item) for item in value.split(",")]
        except ValueError:
            self.fail(f"{value!r} is not a list of labels, such as 0,1,2.", param, ctx)


def learner_options(*, levels: str) -> Callable[[Callable], Callable]:
    """The choice of a learner, and its parameters; ``levels`` says what the command does without ``--levels``."""
    options = [
        click.option(
            "--learner",
            type=click.Choice(list(ONLINE_CHOICES)),
            default="solar2",
            show_default=True,
            help="Learner: SOLAR of the first or second order, or a baseline.",
        ),
        click.option("-C", "C", type=Number(), default=1e-5, show_default=True, help="For solar1: weight of a pair."),
        click.option(
            "--gamma",
            type=Number(),
            default=1e4,
            show_default=True,
            metavar="G",
            help="For solar2: regularization; a larger value makes a pair change the model less.",
        ),
        click.option(
            "--covariance",
            type=click.Choice(["full", "diagonal"]),
            default="full",
            show_default=True,
            help="For solar2: the full matrix, or its diagonal for many features.",
        ),
        click.option(
            "--decay",
            type=_Decay(),
            default=1.0,
            show_default=True,
            metavar="D",
            help="For solar1 and solar2: factor, at most 1; at each query it reduces the influence of all earlier "
            "queries.",
        ),
        click.option(
            "--average",
            is_flag=True,
            help="Score with the mean of the weights that the model had after each pair so far, instead of its last "
            "weights.",
        ),
        click.option(
            "--n-experts",
            type=click.IntRange(min=1),
            default=20,
            show_default=True,
            metavar="N",
            help="For committee: its size.",
        ),
        list_option(
            "--levels",
            type=_Levels(),
            metavar="L,L,...",
            help=f"For prank: all labels that may occur.  [{levels}]",
        ),
        click.option(
            "--random-state",
            type=click.IntRange(min=0),
            default=0,
            show_default=True,
            metavar="SEED",
            help="Seed of the order of the pairs of a query.",
        ),
    ]
    return all_options(*options)


def make_learner(ctx: click.Context, options: dict[str, Any]) -> "OnlineRanker":
    """The unfitted ranker; options of other learners are refused."""
    learner = options["learner"]
    choice = ONLINE_CHOICES[learner]
    for option in _OPTIONS:
        if option not in choice.options and ctx.get_parameter_source(option) is ParameterSource.COMMANDLINE:
            having = ", ".join(name for name, other in ONLINE_CHOICES.items() if option in other.options)
            raise click.UsageError(f"{flag(option)} is an option of {having}, not of {learner}.")
    chosen = {option: options[option] for option in choice.options}
    return getattr(estimators, choice.estimator)(**choice.fixed_params, **chosen, random_state=options["random_state"])
