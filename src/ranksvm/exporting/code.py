"""What the functions in Python, JavaScript, Java and C have in common: their arrays and the rows of their self-test."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ranksvm.exporting.request import Request
from ranksvm.exporting.scaling import QueryScaling
from ranksvm.exporting.text import exact

__all__ = [
    "CODE_QUERY_METHODS",
    "Scores",
    "arrays_of",
    "described",
    "lines_of",
    "numbers",
    "over_deviation",
    "test_entries",
    "test_scores",
    "tolerance",
]

CODE_QUERY_METHODS = frozenset({"min_max", "standard"})
# Numbers, or names, in one line of a file.
PER_LINE = 6
# A self-test accepts scores that differ by this part of the largest.
TOLERANCE = 1e-9


def described(request: Request) -> str:
    """First sentence of a file."""
    model, n = request.scoring.model, request.scoring.n_features
    return f"The scores of a {model} of {n} feature{'s' if n != 1 else ''}, written by ranksvm."


def arrays_of(request: Request) -> dict[str, np.ndarray]:
    """Name -> numbers of the arrays that a function needs."""
    arrays = {"WEIGHTS": request.coef}
    if request.query_scaling is None and request.scaling is not None:
        arrays |= {"SHIFT": request.scaling.shift, "SCALE": request.scaling.scale}
    return arrays


def numbers(values: Sequence[float] | np.ndarray, indent: str = "    ") -> str:
    """Lines of numbers, separated by commas."""
    return lines_of([exact(value) for value in values], indent)


def lines_of(words: Sequence[str], indent: str = "    ") -> str:
    """Lines of words, separated by commas."""
    starts = range(0, len(words), PER_LINE)
    return ",\n".join(indent + ", ".join(words[start : start + PER_LINE]) for start in starts)


def over_deviation(value: str, scaling: QueryScaling) -> str:
    """A value over the deviation of its query, in the syntax of C; a constant feature has none."""
    return f"(deviation > 0 ? {value} / deviation : {'0' if scaling.with_mean else value})"


class Scores(NamedTuple):
    """The functions that score, as formats: of documents one by one, or of those of a query.

    Attributes
    ----------
    static : str
        By document: of the number of features ``n`` and a scaled ``value``.
    by_query : str
        By query: of a ``body``, which adds a feature to the scores.
    min_max : str
        The body for features from 0 to 1; no format.
    standard : str
        That for features relative to their mean: of ``spread``, which finds the deviation, and ``value``.
    spread : str
        What finds the deviation; no format.
    value, value_of_query : str
        A feature of a document, by itself and in its query.
    """

    static: str
    by_query: str
    min_max: str
    standard: str
    spread: str
    value: str
    value_of_query: str

    def of(self, request: Request) -> str:
        """Those of a model."""
        scaling = request.query_scaling
        if scaling is None:
            value = self.value if request.scaling is None else f"(({self.value} - SHIFT[j]) / SCALE[j])"
            return self.static.format(n=request.scoring.n_features, value=value)
        if scaling.method == "min_max":
            return self.by_query.format(body=self.min_max)
        value = "centred" if scaling.with_mean else self.value_of_query
        if scaling.with_std:
            value = over_deviation(value, scaling)
        spread = self.spread if scaling.with_std else ""
        return self.by_query.format(body=self.standard.format(value=value, spread=spread))


def test_entries(request: Request, write: str, indent: str) -> str:
    """The values of the self-test that are not 0, in lines: ``write`` is a format of document, column and value."""
    values = [
        write.format(document, column, exact(x[column]))
        for document, x in enumerate(request.test.X)
        for column in x.nonzero()[0]
    ]
    return lines_of(values, indent)


def test_scores(request: Request) -> str:
    """The scores of the self-test, separated by commas."""
    return ", ".join(map(exact, request.test.scores))


def tolerance(request: Request) -> str:
    """Difference up to which the scores of a self-test agree."""
    return exact(TOLERANCE * (1.0 + float(np.abs(request.test.scores).max())))
