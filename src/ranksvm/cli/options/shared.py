"""Options and value types that several commands share."""

import functools
import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import click
from click.core import ParameterSource

from ranksvm.cli.options.paths import EXISTING_FILE, OUTPUT_FILE, TEXT_FILE, prints_on_stdout
from ranksvm.cli.terminal import say

__all__ = [
    "EXISTING_FILE",
    "OUTPUT_FILE",
    "TEXT_FILE",
    "CommaList",
    "IntList",
    "Name",
    "NameList",
    "Number",
    "NumberRange",
    "Probability",
    "Shares",
    "all_options",
    "check_device_option",
    "check_reading_options",
    "check_run_name",
    "column_of",
    "convention_option",
    "device_option",
    "flag",
    "given",
    "joined_option",
    "json_option",
    "list_option",
    "metrics_option",
    "n_jobs_option",
    "qrels_option",
    "quiet_option",
    "reading_options",
    "run_name_option",
    "scoring_device",
    "scoring_device_option",
    "verbose_option",
]

# the keys of ranksvm.metrics.CONVENTIONS, which must not be imported for --help
CONVENTIONS = ["default", "letor", "mslr", "trec", "lightgbm", "xgboost", "sklearn"]
# Options that are not named after their parameters.
_FLAGS = {"C": "-C", "Cs": "--C-range", "gammas": "--gamma-range", "linear": "--no-linear-part"}


# Columns of a table that are not features: option -> what they hold.
_COLUMNS = {"label": "labels", "qid": "query ids", "docid": "document ids"}
_POWER = re.compile(r"([^\^]+?)(?:\^|\*\*)(.+)")


class Number(click.ParamType):
    """A positive number: ``1``, ``0.25``, ``1e-4`` or a power such as ``2^-3``."""

    name = "number"

    def convert(self, value: str | float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        try:
            return _positive(_number(value))
        except (ValueError, OverflowError):
            self.fail(f"{value!r} is not a positive number (write 0.25, 1e-4 or 2^-3).", param, ctx)


class Probability(click.FloatRange):
    """A number from 0 to 1; the class of click takes NaN as well."""

    def __init__(self) -> None:
        super().__init__(0, 1)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number: float = super().convert(value, param, ctx)
        if number != number:
            self.fail(f"{value!r} is not a number from 0 to 1.", param, ctx)
        return number


class NumberRange(click.ParamType):
    """Positive numbers: ``2^-15:2^5`` (every power), ``2^-15:2^5:2`` (every second one) or ``0.01,0.1,1``.

    Ends written as plain numbers must both be powers of 2, ``0.25:4``, or both of 10, ``1e-4:1e2``. With ``zero`` a
    list may have 0.
    """

    name = "range"

    def __init__(self, zero: bool = False):
        self._zero = zero

    def convert(
        self, value: str | list[float], param: click.Parameter | None, ctx: click.Context | None
    ) -> list[float]:
        if isinstance(value, list):
            return value
        try:
            numbers = _powers(value) if ":" in value else [_number(item) for item in value.split(",")]
            return [number if self._zero and number == 0.0 else _positive(number) for number in numbers]
        except (ValueError, OverflowError):
            self.fail(
                f"{value!r} is not a range: write its smaller and its larger end, both powers of 2 (2^-15:2^5, 1:4), "
                "both of 10 (1e-4:1e2) or both of one other base (3^-2:3^2), with or without a step of the exponent "
                "(2^-15:2^5:2); or a list of positive numbers (0.01,0.1,1).",
                param,
                ctx,
            )


class Shares(click.ParamType):
    """Numbers above 0 and at most 1, separated by commas."""

    name = "list"

    def convert(
        self, value: str | list[float], param: click.Parameter | None, ctx: click.Context | None
    ) -> list[float]:
        if isinstance(value, list):
            return value
        try:
            numbers = [_positive(float(item)) for item in value.split(",")]
        except ValueError:
            numbers = []
        if not numbers or max(numbers) > 1:
            self.fail(f"{value!r} is not a list of numbers above 0 and at most 1, such as 0.9,1.", param, ctx)
        return list(dict.fromkeys(numbers))


def flag(name: str) -> str:
    """The option that sets a parameter, as users write it."""
    return _FLAGS.get(name, "--" + name.replace("_", "-"))


class CommaList(click.ParamType):
    """Names separated by commas."""

    name = "list"

    def convert(self, value: str | list[str], param: click.Parameter | None, ctx: click.Context | None) -> list[str]:
        if isinstance(value, list):
            return value
        names = [name.strip() for name in value.split(",") if name.strip()]
        if not names:
            self.fail("the list is empty.", param, ctx)
        return list(dict.fromkeys(names))


class IntList(click.ParamType):
    """Whole numbers from 1, separated by commas."""

    name = "list"

    def convert(self, value: str | list[int], param: click.Parameter | None, ctx: click.Context | None) -> list[int]:
        if isinstance(value, list):
            return value
        try:
            numbers = [int(item) for item in value.split(",")]
        except ValueError:
            numbers = []
        if not numbers or min(numbers) < 1:
            self.fail(f"{value!r} is not a list of whole numbers from 1, such as 5,10,20.", param, ctx)
        return list(dict.fromkeys(numbers))


class Name(click.Choice):
    """One of several names of the Python API; ``-`` is accepted for ``_``."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        known = {str(choice).replace("-", "_"): choice for choice in self.choices}
        return super().convert(known.get(str(value).replace("-", "_"), value), param, ctx)


class NameList(click.ParamType):
    """Some of several names, separated by commas."""

    name = "list"

    def __init__(self, choices: list[str]):
        self._list, self._item = CommaList(), Name(choices)

    def convert(self, value: str | list[str], param: click.Parameter | None, ctx: click.Context | None) -> list[str]:
        names = self._list.convert(value, param, ctx)
        return list(dict.fromkeys(self._item.convert(name, param, ctx) for name in names))


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
    base, low, high = _base_and_exponents(first.strip(), last.strip())
    if low > high:
        raise ValueError
    # a little slack keeps the last power in spite of round-off
    count = math.floor((high - low) / step + 1e-9) + 1
    if count > 10_000:
        raise ValueError
    return [base ** (low + i * step) for i in range(count)]


def _base_and_exponents(first: str, last: str) -> tuple[float, float, float]:
    """Both ends as powers of one base: the base of an end written as a power, else 2 or 10."""
    powers = [_POWER.fullmatch(text) for text in (first, last)]
    bases = {float(power[1]) for power in powers if power} or {2.0, 10.0}
    if any(powers) and (len(bases) > 1 or not 1 < min(bases) < math.inf):
        raise ValueError
    for base in sorted(bases):
        low, high = (
            float(power[2]) if power else _exponent(text, base)
            for power, text in zip(powers, (first, last), strict=True)
        )
        if low is not None and high is not None:
            return base, low, high
    raise ValueError


def _exponent(text: str, base: float) -> float | None:
    """The integer ``e`` with ``base**e`` equal to the number; None if there is none."""
    number = _positive(float(text))
    exponent = float(round(math.log(number, base)))
    return exponent if math.isclose(base**exponent, number, rel_tol=1e-12) else None


def all_options(*decorators: Callable[[Callable], Callable]) -> Callable[[Callable], Callable]:
    """Combine the decorators of several options, given in the order in which --help shows them."""

    def decorate(command: Callable) -> Callable:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return decorate


def json_option(command: Callable) -> Callable:
    return click.option(
        "--json",
        "as_json",
        is_flag=True,
        callback=prints_on_stdout,
        help="Print one JSON document, and nothing else, on stdout.",
    )(command)


def quiet_option(command: Callable) -> Callable:
    return click.option("-q", "--quiet", is_flag=True, help="Show no progress on stderr.")(command)


def verbose_option(command: Callable) -> Callable:
    return click.option(
        "-v",
        "--verbose",
        count=True,
        help="Print a line for every iteration. With several fits, -v prints a line for every fit, and -vv also for "
        "every iteration.",
    )(command)


def reading_options(command: Callable) -> Callable:
    """Options for reading data files, passed as ``reading`` to `ranksvm.datasets.read_data`."""

    @functools.wraps(command)
    def reading(
        *args: Any, zero_based: bool | None, ignore: list[str] | None, missing_values: bool, **options: Any
    ) -> Any:
        columns = {name: options.pop(name) for name in _COLUMNS}
        found = {**columns, "ignore": ignore or [], "zero_based": "auto" if zero_based is None else zero_based}
        if missing_values:
            found["missing"] = True
        return command(*args, reading=found, **options)

    decorators = [
        click.option(
            "--zero-based/--one-based",
            default=None,
            help="Whether feature ids of LETOR text start at 0.  [default: they do if the file has an id 0]",
        ),
        *(
            click.option(
                f"--{name}",
                default=name,
                show_default=True,
                metavar="COLUMN",
                help=f"Column of {what} in Parquet, CSV and TSV.",
            )
            for name, what in _COLUMNS.items()
        ),
        list_option(
            "--ignore",
            type=CommaList(),
            metavar="COLUMN,...",
            help="Columns of Parquet, CSV and TSV that are not features.",
        ),
        click.option(
            "--missing-values",
            is_flag=True,
            help="Accept empty cells in Parquet, CSV and TSV as missing values, for additive models and the scalers of "
            "hybrid search.",
        ),
    ]
    for decorator in reversed(decorators):
        reading = decorator(reading)
    return reading


def check_reading_options(data_read: bool) -> None:
    """Refuse the options of `reading_options` if no data file is read."""
    for name in ("zero_based", *_COLUMNS, "ignore", "missing_values"):
        if given(name) and not data_read:
            raise click.UsageError(f"{flag(name)} says how to read a data file, but none is read.")


def given(name: str) -> bool:
    """Whether the command line itself has an option; the value in a settings file does not count."""
    return click.get_current_context().get_parameter_source(name) is ParameterSource.COMMANDLINE


def qrels_option(command: Callable) -> Callable:
    return click.option(
        "--qrels",
        type=EXISTING_FILE,
        metavar="FILE",
        help="TREC relevance judgments, which replace the labels of the data; matched by query and document id.",
    )(command)


def run_name_option(command: Callable) -> Callable:
    return click.option(
        "--run-name",
        default="ranksvm",
        show_default=True,
        metavar="NAME",
        callback=_one_word,
        help="Last column of a TREC run file.",
    )(command)


def check_run_name(written: bool, option: str) -> None:
    """Refuse ``--run-name`` without the option that writes a run."""
    if given("run_name") and not written:
        raise click.UsageError(f"--run-name names a TREC run: give {option} too.")


def _one_word(_ctx: click.Context, _param: click.Parameter, value: str) -> str:
    if not value or any(character.isspace() for character in value):
        raise click.BadParameter("it must be one word.")
    return value


def n_jobs_option(command: Callable) -> Callable:
    return click.option(
        "--n-jobs", type=int, default=None, metavar="N", help="Number of threads (-1: all).  [default: all]"
    )(command)


def convention_option(default: str | None = "default", shown: str | None = None) -> Callable[[Callable], Callable]:
    """The option that chooses a definition of the metrics; ``shown`` describes a default that depends on options."""
    text = "Definition of the metrics to use."
    return click.option(
        "--convention",
        type=click.Choice(CONVENTIONS),
        default=default,
        show_default=shown is None,
        help=text if shown is None else f"{text}  [default: {shown}]",
    )


def list_option(*names: str, type: click.ParamType, default: str | None = None, **named: Any) -> Callable:
    """An option whose value is a list; given several times, the lists are joined, without repetitions."""

    def joined(_ctx: click.Context, _param: click.Parameter, lists: tuple[list[Any], ...]) -> list[Any] | None:
        return list(dict.fromkeys(item for part in lists for item in part)) or None

    return click.option(
        *names,
        type=type,
        multiple=True,
        default=None if default is None else [default],
        show_default=default is not None,
        callback=joined,
        **named,
    )


def joined_option(*names: str, type: click.ParamType, **named: Any) -> Callable:
    """An option whose type converts a text of items with commas between them; the texts of several uses are joined."""

    def joined(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> Any:
        return type.convert(",".join(texts), param, ctx) if texts else None

    return click.option(*names, type=click.STRING, multiple=True, callback=joined, **named)


def metrics_option(default: str) -> Callable[[Callable], Callable]:
    return list_option(
        "--metrics",
        type=CommaList(),
        default=default,
        metavar="M,M,...",
        help="Metrics such as ndcg, ndcg@10, mean_ndcg, map, mrr, err, p@10, r@10, pairwise_accuracy; names of other "
        "tools, such as ndcg_cut_10, P_10, recip_rank, AP, RR@10; an unknown name lists all.",
    )


def column_of(option: str, feature: str, names: Sequence[str] | None, n_features: int) -> int:
    """The column, from 0, of a feature in the training data. A number that is a feature's name counts as the name."""
    if names is not None and feature in names:
        return names.index(feature)
    number = int(feature) if feature.isascii() and feature.isdigit() else 0
    if not 1 <= number <= n_features:
        known = f"numbers 1 to {n_features}" if names is None else f"such as {', '.join(map(repr, names[:5]))}"
        raise click.UsageError(f"{option}: there is no feature {feature!r} in the training data ({known}).")
    return number - 1


class _Device(click.ParamType):
    """A device by its name, or several with commas between them."""

    name = "device"

    def convert(
        self, value: str | list[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> str | list[str]:
        names = [name.strip() for name in value.split(",")] if isinstance(value, str) else value
        return names[0] if len(names) == 1 else names


def device_option(command: Callable) -> Callable:
    """The option ``--device``."""
    return joined_option(
        "--device",
        type=_Device(),
        metavar="NAME",
        help="Device on which a linear, additive or kernel model is fitted: cpu, cuda, cuda:1, auto; or, for a linear "
        "model, several GPUs, cuda:0,cuda:1.  [default: cpu]",
    )(command)


def check_device_option(options: dict[str, Any]) -> None:
    """Refuse a device that is not there, or that cannot do what the options ask for, before the data are read."""
    device = options["device"]
    if device is None:
        return
    from ranksvm.device.names import device_complaint, device_names, open_device

    complaint = device_complaint(device)
    if complaint is not None:
        raise click.UsageError(f"--device {complaint}.")
    if options["low_rank"]:
        raise click.UsageError("--device is for linear, additive and kernel models: omit it with --low-rank.")
    if device == "auto":
        _say_auto()
    names = device_names(device)
    one = "a kernel" if options["kernel"] else "an additive" if "additive" in options["model"] else ""
    if one and len(names) > 1:
        raise click.UsageError(f"--device with several GPUs is for linear models: {one} model is fitted on one.")
    for name in names:
        open_device(name)


def scoring_device_option(command: Callable) -> Callable:
    """The option ``--device`` of commands that compute scores."""
    return click.option(
        "--device",
        metavar="NAME",
        help="Device on which a linear or kernel model computes the scores: cpu, cuda, cuda:1, auto.  [default: cpu]",
    )(command)


def scoring_device(name: str | None) -> str | None:
    """The full name of the GPU that computes scores; None for the CPU.

    A GPU that is not there is refused.
    """
    if name == "auto":
        _say_auto()
    if name in (None, "cpu", "auto"):
        return None
    from ranksvm.device.names import device_names, open_device

    names = device_names(name)
    if not names:
        raise click.UsageError(f"--device must be 'cpu', 'cuda', 'cuda:1' (any number from 0) or 'auto', got {name!r}.")
    open_device(names[0])
    return names[0]


def _say_auto() -> None:
    """Say that "auto" is the CPU: it chooses a GPU only after `ranksvm.calibrate_device` in the same process."""
    say("--device auto: the CPU. Name a GPU to use it, such as --device cuda.", err=True)
