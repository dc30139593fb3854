"""Formats results as text for tables, plots and messages, and as plain values for JSON."""

import math
import re
from collections.abc import Collection, Iterable, Sequence
from typing import Any
from unicodedata import bidirectional

__all__ = [
    "aligned",
    "compared",
    "count",
    "counted",
    "digits_apart",
    "feature_label",
    "feature_labels",
    "isolated",
    "number",
    "one_line",
    "place_in_words",
    "plain",
    "power",
    "queries",
    "seconds",
    "told_apart",
    "visible",
    "weight_columns",
    "weights",
]

# control characters but for the end of a line and the tab character
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def visible(text: str) -> str:
    """Text whose control characters are escaped as Python writes them, so that a terminal does not obey them."""
    return _CONTROL.sub(lambda found: ascii(found[0])[1:-1], text)


def one_line(text: str) -> str:
    """The text on one line: like `visible`, but line breaks and tabs are also escaped."""
    return "".join(ascii(each)[1:-1] if each in "\t\n\u2028\u2029" else each for each in visible(text))


def isolated(name: str) -> str:
    """A name as a part of a sentence on a page, with marks around it if parts of it are written from right to left.

    Without the marks a browser would also write from right to left what follows the name: a number, or another name.
    """
    kinds = set(map(bidirectional, name))
    return name if kinds.isdisjoint(("R", "AL", "AN", "RLE", "RLO", "RLI", "LRE", "LRO")) else f"\u2068{name}\u2069"


def number(value: float | None, digits: int = 4) -> str:
    """A measured value with fixed digits; a dash if there is none."""
    return "-" if value is None or math.isnan(value) else f"{value:.{digits}f}"


def weights(values: Sequence[float]) -> list[str]:
    """Values of C as text; also as powers of two if all of them are such powers and at least one is not 1."""
    as_powers = all(math.frexp(value)[0] == 0.5 for value in values) and any(value != 1 for value in values)
    return [f"{value:.4g} = 2^{math.frexp(value)[1] - 1}" if as_powers else f"{value:.4g}" for value in values]


def power(value: float) -> str:
    """A value of C in short form: as a power of two if it is one."""
    return weights([value])[0].split(" = ")[-1]


def aligned(values: Sequence[float]) -> list[str]:
    """Numbers with equally many decimals, such that the largest has five significant digits, and their range three.

    If the largest is below 1e-10 or at least 1e15, they are written with exponents instead. Infinities and NaN do not
    count.
    """
    finite = [value for value in values if math.isfinite(value)]
    largest = max(map(abs, finite), default=0.0)
    exponent = math.floor(math.log10(largest)) if largest else 0
    digits = 4 - exponent
    extent = max(finite, default=0.0) - min(finite, default=0.0)
    if 1e-12 * largest < extent < math.inf:  # a smaller one is round-off
        digits = max(digits, 2 - math.floor(math.log10(extent)))
    if not -10 <= exponent < 15:
        return [f"{value:.{digits + exponent}e}" if value else "0" for value in values]
    return [f"{value:.{min(max(digits, 0), 15)}f}" for value in values]


def weight_columns(importances: Sequence[float], *columns: Sequence[float]) -> list[list[str]]:
    """Weights of features, and the ends of their intervals, with equally many decimals if these are enough.

    Parameters
    ----------
    importances : sequence of float
        The importance of each feature.
    *columns : sequences of float
        The weights, and other columns in their unit.

    Returns
    -------
    list of list of str
        Each column as text. If equally many decimals would make a weight 0 although its feature has 0.1 % of all
        importance, or half of the largest, all numbers have four significant digits instead: features may have very
        different units.
    """
    values = [value for column in columns for value in column]
    texts = aligned(values)
    least = min(0.001 * sum(importances), 0.5 * max(importances, default=0.0))
    if any(each > least and float(text) == 0.0 for each, text in zip(importances, texts, strict=False)):
        texts = [f"{value:.4g}" for value in values]
    n = len(importances)
    return [texts[start : start + n] for start in range(0, len(values), n or 1)]


def digits_apart(values: Iterable[float], digits: int) -> int:
    """The least number of significant digits, from ``digits`` to 15, that tells all values apart; else ``digits``."""
    different = set(values)
    enough = (n for n in range(digits, 16) if len({f"{value:.{n}g}" for value in different}) == len(different))
    return next(enough, digits)


def told_apart(values: Collection[float], digits: int) -> list[str]:
    """Numbers with as many significant digits as tell all of them apart, at least ``digits``."""
    digits = digits_apart(values, digits)
    return [f"{value:.{digits}g}" for value in values]


def compared(*values: float | str | None) -> list[str]:
    """Values of one feature as text: with four digits, or with as many as tell them apart.

    A value that is negligible relative to another, such as 1e-17, becomes 0.
    """
    numbers = [value for value in values if isinstance(value, float)]
    negligible = 1e-6 * max(map(abs, numbers), default=0.0)
    texts = iter(told_apart([value if abs(value) > negligible else 0.0 for value in numbers], 4))
    return [next(texts) if isinstance(value, float) else value or "" for value in values]


def count(value: float) -> str:
    """An integer with commas between thousands."""
    return f"{int(value):,}"


def counted(value: float, word: str) -> str:
    """A number and its noun; ``word`` is the singular of a noun with a plural in s."""
    return f"{count(value)} {word}" if value == 1 else f"{count(value)} {word}s"


def queries(value: int) -> str:
    """A number of queries, with the noun."""
    return "1 query" if value == 1 else f"{count(value)} queries"


def seconds(value: float) -> str:
    """A duration for people."""
    return f"{value:.2f} s" if value < 100 else f"{value:.0f} s"


def feature_label(column: int, names: Sequence[Any] | None = None) -> str:
    """The name of a feature; ``f1``, ``f2``, ... without names.

    Numbers begin at 1, as in a LETOR file: column 0 of X is feature ``f1``, and is called so in Parquet. In a file
    whose ids begin at 0, the feature with id 0 is ``f1``.

    Parameters
    ----------
    column : int
        Column of X, from 0.
    names : sequence of str, optional
        Names of all features.

    Returns
    -------
    str
        What tables, plots and messages show.
    """
    return f"f{column + 1}" if names is None else str(names[column])


def feature_labels(n_features: int, names: Sequence[Any] | None = None) -> list[str]:
    """The labels of all features, in the order of the columns."""
    return [feature_label(column, names) for column in range(n_features)]


def place_in_words(row: int, column: int, names: Sequence[Any] | None = None) -> str:
    """A place of X as Python indexes it, and the feature there: ``X[3, 40] (feature f41)``."""
    return f"X[{row}, {column}] (feature {feature_label(column, names)})"


def plain(value: Any) -> Any:
    """A value as Python lists, dicts, numbers and strings; numbers that JSON cannot express (nan, inf) become None.

    Dates and times become text as in ISO 8601 ("2026-01-31", "2026-01-31T10:00:00"), and durations of NumPy become text
    such as "5 days". Other objects are returned unchanged.
    """
    if isinstance(value, dict):
        return {plain(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if getattr(getattr(value, "dtype", None), "kind", None) in ("m", "M"):
        value = value.astype(str)  # tolist would make integers of nanoseconds
    if hasattr(value, "tolist"):  # an array or a scalar of NumPy
        return plain(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value
