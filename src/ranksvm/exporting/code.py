"""What the exports to Python, JavaScript, Java and C have in common: templates, and the values that fill them."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from string import Template
from typing import NamedTuple

import numpy as np

from ranksvm.exporting.request import Request, Target
from ranksvm.exporting.text import exact, identifier_checked

__all__ = ["Language", "ScoringTemplates", "filled"]

# Numbers, or names, in one line of a file.
PER_LINE = 6
# A self-test accepts scores that differ by this part of the largest.
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
        Template of the file: ``about``, ``name``, ``file``, ``n``, ``names``, ``declarations``, ``arrays``, ``single``,
        ``scores``, and of the self-test ``n_test``, ``entries``, ``expected`` and ``tolerance``.
    array : str
        Template of an array: ``array``, ``numbers`` and ``function``, the name in lower case.
    scores : callable
        From a `Request` to the functions that score.
    literal : callable
        From the name of a feature to a string of the language.
    entry : str
        A value of the self-test, a format of document, column and value.
    entry_indent : str
        Indent of lines of entries.
    indent : str
        Indent of lines of numbers and names.
    declaration : str
        Template of what declares an array elsewhere: as ``array``.
    single : str
        Template of what the file has only if it scores documents one by one: ``name``.
    """

    title: str
    reserved: Sequence[str]
    file: str
    array: str
    scores: Callable[[Request], str]
    literal: Callable[[str], str]
    entry: str
    entry_indent: str
    indent: str = "    "
    declaration: str = ""
    single: str = ""

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
        values = [
            {"array": name, "function": name.lower(), "numbers": _lines(map(exact, numbers), self.indent)}
            for name, numbers in arrays.items()
        ]
        model, n = request.scoring.model, request.scoring.n_features
        tested = [
            self.entry.format(document, column, exact(x[column]))
            for document, x in enumerate(request.test.X)
            for column in x.nonzero()[0]
        ]
        return filled(
            self.file,
            about=f"The scores of a {model} of {n} feature{'s' if n != 1 else ''}, written by ranksvm.",
            name=request.name,
            file=request.file,
            n=n,
            names=_lines(map(self.literal, request.names), self.indent),
            declarations="\n".join(filled(self.declaration, **value) for value in values),
            arrays="\n".join(filled(self.array, **value) for value in values),
            single=filled(self.single, name=request.name) if request.query_scaling is None else "",
            scores=self.scores(request),
            n_test=len(request.test.X),
            entries=_lines(tested, self.entry_indent),
            expected=", ".join(map(exact, request.test.scores)),
            tolerance=exact(TOLERANCE * (1.0 + float(np.abs(request.test.scores).max()))),
        ).encode()

    def target(self, name: str, suffix: str, write: Callable[[Request], bytes] | None = None) -> Target:
        """The format of files in this language; ``write`` if it is not just `write`."""
        return Target(
            name,
            suffix,
            self.write if write is None else write,
            query_methods=frozenset({"min_max", "standard"}),
            check_name=lambda model: identifier_checked(model, self.title, self.reserved),
        )


class ScoringTemplates(NamedTuple):
    """The functions that score in a language with the syntax of C: documents one by one, or those of a query.

    Attributes
    ----------
    static : str
        By document: of ``name``, the number of features ``n`` and a scaled ``value``.
    by_query : str
        By query: of ``name`` and a ``body``, which adds a feature to the scores.
    min_max : str
        The body for features from 0 to 1; no template.
    standard : str
        The body for features relative to their mean: of ``spread``, which computes the deviation, its ``variables``,
        ``minus_mean`` and ``value``.
    spread : str
        Computes the deviation; no template.
    value, value_of_query : str
        A feature of a document, by itself and in its query.
    centred : str
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
    centred: str = "centred"
    variables: str = ""

    def functions(self, request: Request) -> str:
        """Those of a model."""
        scaling, name = request.query_scaling, request.name
        if scaling is None:
            value = self.value if request.scaling is None else f"(({self.value} - SHIFT[j]) / SCALE[j])"
            return filled(self.static, name=name, n=request.scoring.n_features, value=value)
        if scaling.method == "min_max":
            return filled(self.by_query, name=name, body=self.min_max)
        value = self.centred if scaling.with_mean else self.value_of_query
        if scaling.with_std:  # a constant feature has none
            value = f"(deviation > 0 ? {value} / deviation : {'0' if scaling.with_mean else value})"
        body = filled(
            self.standard,
            value=value,
            spread=self.spread if scaling.with_std else "",
            variables=self.variables if scaling.with_std else "",
            minus_mean=" - first - mean" if scaling.with_mean else "",
        )
        return filled(self.by_query, name=name, body=body)


def filled(template: str, **values: object) -> str:
    """A template with its values."""
    return Template(template).substitute(values)


def _lines(words: Iterable[str], indent: str) -> str:
    """Lines of words, separated by commas."""
    listed = list(words)
    starts = range(0, len(listed), PER_LINE)
    return ",\n".join(indent + ", ".join(listed[start : start + PER_LINE]) for start in starts)
