"""Options and value types that several commands share."""

import math
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

__all__ = [
    "EXISTING_FILE",
    "OUTPUT_FILE",
    "CommaList",
    "Number",
    "NumberRange",
    "convention_option",
    "json_option",
    "metrics_option",
    "n_jobs_option",
    "quiet_option",
    "zero_based_option",
]

# the keys of ranksvm.metrics.CONVENTIONS, which must not be imported for --help
CONVENTIONS = ["default", "letor", "mslr", "trec", "lightgbm", "xgboost", "sklearn"]


class _OutputFile(click.Path):
    """A file to be written: its folder is looked at before any work is done."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        path = Path(str(super().convert(value, param, ctx)))
        if not path.parent.is_dir():
            self.fail(f"{str(path.parent)!r} is no folder; make it first.", param, ctx)
        if not os.access(path.parent, os.W_OK):
            self.fail(f"{str(path.parent)!r} cannot be written to.", param, ctx)
        return path


EXISTING_FILE = click.Path(exists=True, dir_okay=False, readable=True, path_type=Path)
OUTPUT_FILE = _OutputFile(dir_okay=False, writable=True)

_POWER = re.compile(r"([^\^]+?)(?:\^|\*\*)(.+)")


class Number(click.ParamType):
    """A positive number: ``1``, ``0.25``, ``1e-4`` or a power such as ``2^-3``."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        try:
            return _positive(_number(value))
        except (ValueError, OverflowError):
            self.fail(f"{value!r} is no positive number (write 0.25, 1e-4 or 2^-3).", param, ctx)


class NumberRange(click.ParamType):
    """Positive numbers: ``2^-15:2^5`` (every power), ``2^-15:2^5:2`` (every second one) or ``0.01,0.1,1``."""

    name = "range"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[float]:
        if isinstance(value, list):
            return value
        try:
            numbers = _powers(value) if ":" in value else [_number(item) for item in value.split(",")]
            return [_positive(number) for number in numbers]
        except (ValueError, OverflowError):
            self.fail(
                f"{value!r} is no range of positive numbers: write 2^-15:2^5, with a step of the exponent "
                "2^-15:2^5:2, powers of ten 1e-4:1e2, or a list 0.01,0.1,1.",
                param,
                ctx,
            )


class CommaList(click.ParamType):
    """Names separated by commas."""

    name = "list"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[str]:
        if isinstance(value, list):
            return value
        names = [name.strip() for name in value.split(",") if name.strip()]
        if not names:
            self.fail("the list is empty.", param, ctx)
        return list(dict.fromkeys(names))


def _number(text: str) -> float:
    power = _POWER.fullmatch(text.strip())
    return _positive(float(power[1])) ** float(power[2]) if power else float(text)


def _positive(number: float) -> float:
    if not 0 < number < math.inf:
        raise ValueError
    return number


def _powers(text: str) -> list[float]:
    """``base^a : base^b [: step]`` as a list of powers, both ends included."""
    first, last, *rest = text.split(":")
    step = float(rest[0]) if rest else 1.0
    if len(rest) > 1 or not 0 < step < math.inf:
        raise ValueError
    base, low = _base_and_exponent(first)
    other_base, high = _base_and_exponent(last)
    if base != other_base or low > high:
        raise ValueError
    # a little slack keeps the last power in spite of round-off
    count = math.floor((high - low) / step + 1e-9) + 1
    if count > 10_000:
        raise ValueError
    return [base ** (low + i * step) for i in range(count)]


def _base_and_exponent(text: str) -> tuple[float, float]:
    power = _POWER.fullmatch(text.strip())
    if power:
        base, exponent = float(power[1]), float(power[2])
        if not 1 < base < math.inf:
            raise ValueError
        return base, exponent
    exponent = math.log10(_positive(float(text)))
    if abs(exponent - round(exponent)) > 1e-9:
        raise ValueError
    return 10.0, float(round(exponent))


def json_option(command: Callable) -> Callable:
    return click.option(
        "--json", "as_json", is_flag=True, help="Print one JSON document on stdout, and nothing else there."
    )(command)


def quiet_option(command: Callable) -> Callable:
    return click.option("-q", "--quiet", is_flag=True, help="No progress on stderr.")(command)


def zero_based_option(command: Callable) -> Callable:
    return click.option(
        "--zero-based/--one-based",
        default=None,
        help="Whether feature ids of LETOR text count from 0.  [default: a file's do if it has an id 0]",
    )(command)


def n_jobs_option(command: Callable) -> Callable:
    return click.option(
        "--n-jobs", type=int, default=None, metavar="N", help="Number of threads (-1: all).  [default: all]"
    )(command)


def convention_option(command: Callable) -> Callable:
    return click.option(
        "--convention",
        type=click.Choice(CONVENTIONS),
        default="default",
        show_default=True,
        help="Whose definition of the metrics.",
    )(command)


def metrics_option(default: str) -> Callable[[Callable], Callable]:
    return click.option(
        "--metrics",
        type=CommaList(),
        default=default,
        show_default=True,
        metavar="M,M,...",
        help="Of ndcg, mean_ndcg, map, mrr, err, p@k, r@k (with @k where wanted), pairwise_accuracy, kendall_tau.",
    )
