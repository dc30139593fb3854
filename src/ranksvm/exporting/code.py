"""What the exports to Python, JavaScript, Java and C have in common: templates, and the values that fill them."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from string import Template
from typing import NamedTuple

import numpy as np

from ranksvm.exporting.request import Request, Target
from ranksvm.exporting.scoring import Additive
from ranksvm.exporting.text import NO_RETRIEVERS, check_identifier, exact

__all__ = ["AdditiveTemplates", "Language", "ScoringTemplates", "filled"]

# Number of numbers, or of names, in one line of a file.
PER_LINE = 6
# Arrays whose length does not depend on the number of features.
LONG = ("CUTS", "VALUES")
# Maximum number of values in one string literal of such an array.
PER_TEXT = 2_000
# Tolerance of a self-test, relative to the largest score.
TOLERANCE = 1e-9


@dataclass(frozen=True)
class Language:
    """A programming language, and how a model is written in it.

    Parameters
    ----------
    title : str
        Its name in messages.
    reserved : sequence of str
        Words that cannot name a model.
    file : str
        Template of the file, with the placeholders ``about``, ``name``, ``file``, ``n``, ``names``, ``declarations``,
        ``arrays``, ``single``, ``scores``, and for the self-test ``n_test``, ``entries``, ``expected`` and
        ``tolerance``.
    array : str
        Template of an array, with the placeholders ``array`` (its name), ``function`` (its name in lower case),
        ``type``, ``length`` and ``numbers``.
    scores, additive : callable
        From a `Request`, write the scoring functions of a linear model, and of an additive one.
    literal : callable
        Writes the name of a feature as a string literal of the language.
    entry_indent : str
        Indent of lines of the values of the self-test.
    entry : str
        Format string of one of these values; its arguments are document, column and value. A language with a
        ``long_array`` has none: there, these three numbers of all values are in string literals.
    indent : str
        Indent of lines of numbers and names.
    declaration : str
        Template of a separate declaration of an array, with the placeholders of ``array``.
    single : str
        Template of a part that is written only if documents are scored one by one, with the placeholder ``name``.
    long_array : str
        Template for long arrays, if a language limits the length of ``array``. It has the placeholders of ``array`` and
        ``texts``, the numbers as string literals.
    """

    title: str
    reserved: Sequence[str]
    file: str
    array: str
    scores: Callable[[Request], str]
    additive: Callable[[Request], str]
    literal: Callable[[str], str]
    entry_indent: str
    entry: str = ""
    indent: str = "    "
    declaration: str = ""
    single: str = ""
    long_array: str = ""

    def write(self, request: Request) -> bytes:
        """The file.

        Parameters
        ----------
        request : Request
            What to write.

        Returns
        -------
        bytes
            Source code.
        """
        arrays = {"WEIGHTS": request.coef}
        if request.query_scaling is None and request.scaling is not None:
            arrays |= {"SHIFT": request.scaling.shift, "SCALE": request.scaling.scale}
        if request.additive is not None:
            arrays |= _table_arrays(request.additive)
        values = [self._array(name, numbers, request.scoring.n_features) for name, numbers in arrays.items()]
        model, n = request.scoring.model, request.scoring.n_features
        tested = [
            (str(document), str(column), exact(x[column]))
            for document, x in enumerate(request.test.X)
            for column in x.nonzero()[0]
        ] or [("0", "0", exact(0.0))]  # C has no empty arrays
        return filled(
            self.file,
            about=f"The scores of a {model} of {n} feature{'s' if n != 1 else ''}, written by ranksvm.",
            name=request.name,
            file=request.file,
            n=n,
            names=_lines(map(self.literal, request.names), self.indent),
            declarations="\n".join(filled(self.declaration, **value) for value in values),
            arrays="\n".join(filled(self._array_template(value["array"]), **value) for value in values),
            single=filled(self.single, name=request.name) if request.query_scaling is None else "",
            scores=(self.scores if request.additive is None else self.additive)(request),
            n_test=len(request.test.X),
            entries=_texts(list(chain.from_iterable(tested)), self.entry_indent)
            if self.long_array
            else _lines((self.entry.format(*words) for words in tested), self.entry_indent),
            expected=", ".join(map(exact, request.test.scores)),
            tolerance=exact(TOLERANCE * (1.0 + float(np.abs(request.test.scores).max()))),
        ).encode()

    def _array(self, name: str, numbers: np.ndarray, n_features: int) -> dict[str, str]:
        """The values that fill a template of an array."""
        whole = numbers.dtype.kind == "i"
        words = [str(number) if whole else exact(number) for number in numbers.tolist()]
        return {
            "array": name,
            "function": name.lower(),
            "type": "int" if whole else "double",
            "length": "N_FEATURES" if len(words) == n_features else str(len(words)),
            "numbers": _lines(words, self.indent),
            "texts": _texts(words, self.indent) if self._array_template(name) == self.long_array else "",
        }

    def _array_template(self, name: str) -> str:
        return self.long_array if self.long_array and name in LONG else self.array

    def target(self, name: str, suffix: str, write: Callable[[Request], bytes] | None = None) -> Target:
        """The export target of this language; ``write`` replaces `Language.write`."""
        return Target(
            name,
            suffix,
            self.write if write is None else write,
            query_methods=frozenset({"min_max", "standard"}),
            no_query_scaler=NO_RETRIEVERS,
            check_name=lambda model: check_identifier(model, self.title, self.reserved),
        )


class ScoringTemplates(NamedTuple):
    """Templates of scoring functions, for one document or a query, in a language with the syntax of C.

    Attributes
    ----------
    static : str
        The function that scores one document; placeholders: ``name``, ``n`` (the number of features) and ``value``
        (the scaled feature).
    by_query : str
        The function that scores a query; placeholders: ``name`` and ``body``, which adds a feature to the scores.
    min_max : str
        The body for features from 0 to 1; no placeholders.
    standard : str
        The body for features relative to their mean; placeholders: ``spread`` (code that computes the deviation),
        ``variables`` (their declaration), ``minus_mean`` and ``value``.
    spread : str
        Computes the deviation; no placeholders.
    value, value_of_query : str
        Expression for a feature of a document, in the function for one document and in the function for a query.
    centered : str
        The variable that has the feature relative to its mean.
    variables : str
        Declares the variables of ``spread``.
    """

    static: str
    by_query: str
    min_max: str
    standard: str
    spread: str
    value: str
    value_of_query: str
    centered: str = "centered"
    variables: str = ""

    def functions(self, request: Request) -> str:
        """The code of the scoring functions of one model."""
        scaling, name = request.query_scaling, request.name
        if scaling is None:
            value = self.value if request.scaling is None else f"(({self.value} - SHIFT[j]) / SCALE[j])"
            return filled(self.static, name=name, n=request.scoring.n_features, value=value)
        if scaling.method == "min_max":
            return filled(self.by_query, name=name, body=self.min_max)
        value = self.centered if scaling.with_mean else self.value_of_query
        if scaling.with_std:  # the deviation of a constant feature is 0
            value = f"(deviation > 0 ? {value} / deviation : {'0' if scaling.with_mean else value})"
        body = filled(
            self.standard,
            value=value,
            spread=self.spread if scaling.with_std else "",
            variables=self.variables if scaling.with_std else "",
            minus_mean=" - first - mean" if scaling.with_mean else "",
        )
        return filled(self.by_query, name=name, body=body)


class AdditiveTemplates(NamedTuple):
    """Templates of the scoring functions of an additive model in a language with the syntax of C.

    Attributes
    ----------
    sums : str
        The score of one document; placeholders: ``value`` (the scaled feature j) and ``scaled``.
    static : str
        The function that scores one document; placeholders: ``name`` and ``n`` (the number of features).
    by_query : str
        The function that scores a query; placeholders: ``name`` and ``statistics`` (code that sets shift and
        scale of feature j).
    min_max : str
        The statistics for features from 0 to 1; no placeholders.
    standard : str
        The statistics for features relative to their mean; placeholders: ``shift`` and ``scale``.
    value : str
        A feature of a document.
    scaled : str
        The parameters of ``sums`` for shift and scale; no placeholders.
    mean, deviation : str
        Expressions for shift and scale, from the statistics.
    """

    sums: str
    static: str
    by_query: str
    min_max: str
    standard: str
    value: str
    scaled: str
    mean: str
    deviation: str

    def functions(self, request: Request) -> str:
        """The code of the scoring functions of one model."""
        scaling, name, n = request.query_scaling, request.name, request.scoring.n_features
        if scaling is None:
            value = self.value if request.scaling is None else f"(({self.value} - SHIFT[j]) / SCALE[j])"
            return filled(self.sums, value=value, scaled="") + filled(self.static, name=name, n=n)
        statistics = self.min_max
        if scaling.method == "standard":
            shift = self.mean if scaling.with_mean else "0"
            statistics = filled(self.standard, shift=shift, scale=self.deviation if scaling.with_std else "1")
        sums = filled(self.sums, value=f"(({self.value} - shift[j]) / scale[j])", scaled=self.scaled)
        return sums + filled(self.by_query, name=name, n=n, statistics=statistics)


def filled(template: str, **values: object) -> str:
    """A template with its placeholders replaced by values."""
    return Template(template).substitute(values)


def _lines(words: Iterable[str], indent: str) -> str:
    """Lines of words, separated by commas."""
    listed = list(words)
    starts = range(0, len(listed), PER_LINE)
    return ",\n".join(indent + ", ".join(listed[start : start + PER_LINE]) for start in starts)


def _texts(words: list[str], indent: str) -> str:
    """String literals with the words, each within Java's limit; the compiler concatenates the lines of a literal."""
    texts = []
    for first in range(0, len(words), PER_TEXT):
        part = words[first : first + PER_TEXT]
        lines = [" ".join(part[start : start + PER_LINE]) for start in range(0, len(part), PER_LINE)]
        texts.append(" +\n".join(f'{indent}"{line} "' for line in lines))
    return ",\n".join(texts)


def _table_arrays(function: Additive) -> dict[str, np.ndarray]:
    """The arrays that describe an additive model in the file.

    A row of ``TABLES`` describes the function of one feature, or of two, by seven numbers: the feature, the index of
    its first cut in ``CUTS``, and the number of its cuts; the same for a second feature, or zeros; and the index of the
    first value of the function in ``VALUES``.
    """
    rows, cuts, values = [], [np.empty(0)], []
    n_cuts = n_values = 0
    for table in function.tables:
        row = []
        for axis in table.axes:
            row += [axis.feature, n_cuts, len(axis.cuts)]
            cuts.append(axis.cuts)
            n_cuts += len(axis.cuts)
        rows.append([*row, *[0] * (6 - len(row)), n_values])
        values.append(table.values.ravel())
        n_values += table.values.size
    return {
        "MISSING": function.missing.astype(np.int64),
        "TABLES": np.array(rows, dtype=np.int64).ravel(),
        "CUTS": np.concatenate(cuts),
        "VALUES": np.concatenate(values),
    }
