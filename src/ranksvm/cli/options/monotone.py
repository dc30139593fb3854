"""The option ``--monotone``: signs that weights must have, for features as data files name or number them."""

from collections.abc import Sequence

import click

from ranksvm.cli.options.columns import column_of

__all__ = ["Monotone", "signs_of_columns"]

_SIGNS = {"increasing": 1, "decreasing": -1, "1": 1, "+1": 1, "-1": -1, "0": 0}
_ALL = ("increasing", "decreasing")


class Monotone(click.ParamType):
    """``increasing``, ``decreasing``, or a list of ``FEATURE=SIGN``, which is checked and stays text."""

    name = "signs"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value in _ALL:
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


def signs_of_columns(text: str | None, names: Sequence[str] | None, n_features: int) -> str | dict[int, int] | None:
    """The parameter ``monotone`` of an estimator for a value of the option.

    Columns without names are numbered from 1, as in LETOR text. A number that is a feature's name counts as the name.
    """
    if text is None or text in _ALL:
        return text
    signs: dict[int, int] = {}
    for item in text.split(","):
        feature, _, sign = item.strip().rpartition("=")
        column = column_of("--monotone", feature, names, n_features)
        if column in signs:
            raise click.UsageError(f"--monotone: the feature {feature!r} is given twice.")
        signs[column] = _SIGNS[sign]
    return signs
