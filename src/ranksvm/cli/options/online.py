"""Learners of ``ranksvm online`` and ``ranksvm serve``, and the options that each of them has."""

from collections.abc import Callable
from typing import Any

import click
from click.core import ParameterSource

from ranksvm.cli.options.shared import Number, all_options, flag, list_option

__all__ = ["LEARNERS", "learner_options", "make_learner"]

# Learner -> class, the parameters that its name sets, and its options other than the seed.
LEARNERS: dict[str, tuple[str, dict[str, Any], tuple[str, ...]]] = {
    "solar1": ("SOLARRanker", {"order": 1}, ("C", "decay", "average")),
    "solar2": ("SOLARRanker", {"order": 2}, ("gamma", "covariance", "decay", "average")),
    "prank": ("PRanker", {}, ("levels", "average")),
    "perceptron": ("PairwisePerceptronRanker", {}, ("average",)),
    "committee": ("CommitteePerceptronRanker", {}, ("n_experts",)),
}
_OPTIONS = list(dict.fromkeys(name for *_, names in LEARNERS.values() for name in names))


class _Decay(Number):
    """A number above 0 and at most 1."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number = super().convert(value, param, ctx)
        if number > 1:
            self.fail(f"{value!r} is above 1; a decay of 1 forgets nothing.", param, ctx)
        return number


class _Levels(click.ParamType):
    """Labels separated by commas."""

    name = "list"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[float]:
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
            type=click.Choice(list(LEARNERS)),
            default="solar2",
            show_default=True,
            help="What learns: SOLAR of first or second order, or a baseline.",
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
            help="For solar1 and solar2: factor on what earlier queries taught, applied at every query.",
        ),
        click.option("--average", is_flag=True, help="Score with the mean of the weights over all pairs."),
        click.option(
            "--n-experts", type=click.IntRange(min=1), default=20, show_default=True, help="For committee: its size."
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


def make_learner(ctx: click.Context, options: dict[str, Any]) -> Any:
    """The unfitted ranker; options of other learners are refused."""
    import ranksvm

    name, settled, own = LEARNERS[options["learner"]]
    for option in _OPTIONS:
        if option not in own and ctx.get_parameter_source(option) is ParameterSource.COMMANDLINE:
            having = ", ".join(learner for learner, (*_, names) in LEARNERS.items() if option in names)
            raise click.UsageError(f"{flag(option)} is an option of {having}, not of {options['learner']}.")
    chosen = {option: options[option] for option in own}
    return getattr(ranksvm, name)(**settled, **chosen, random_state=options["random_state"])
