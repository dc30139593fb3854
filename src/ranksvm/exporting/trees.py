"""Additive models as regression trees: one for each function of a feature, or of two."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ranksvm.exceptions import OptionError
from ranksvm.exporting.request import Request
from ranksvm.exporting.scoring import Additive
from ranksvm.exporting.tables import Axis, Table

__all__ = [
    "SMALLEST_SHARE",
    "Leaf",
    "Split",
    "Tree",
    "expected_of",
    "score_of_trees",
    "float32_function",
    "float32_trees",
    "tree_of",
]

# A leaf without training rows has this share of them.
SMALLEST_SHARE = 1e-6


@dataclass(frozen=True)
class Leaf:
    """A leaf: the value of all documents that reach it.

    Parameters
    ----------
    value : float
        The value.
    share : float
        The share of the training rows there; it is positive, because the contributions of features that LightGBM and
        XGBoost compute divide by shares.
    """

    value: float
    share: float = 0.5


@dataclass(frozen=True)
class Split:
    """A node that divides the documents by one feature.

    Parameters
    ----------
    column : int
        The feature.
    cut : float
        Documents with ``x >= cut`` are in ``above``, others in ``below``.
    missing : bool
        Whether the feature has a level for missing values, which are then in ``below``.
    below, above : Leaf or Split
        The subtrees.
    """

    column: int
    cut: float
    missing: bool
    below: "Tree"
    above: "Tree"

    @property
    def share(self) -> float:
        """The share of the training rows that reach the node."""
        return self.below.share + self.above.share

    @property
    def value(self) -> float:
        """The mean of the values of these rows."""
        return (self.below.share * self.below.value + self.above.share * self.above.value) / self.share

    @property
    def missing_below(self) -> bool:
        """Whether missing values go to ``below``. If the feature has no level for them, engines treat them as 0."""
        return self.missing or self.cut > 0.0


Tree = Leaf | Split


def tree_of(table: Table) -> Tree:
    """A balanced tree with a leaf for each value of a table.

    Parameters
    ----------
    table : Table
        A function of one feature, or of two.

    Returns
    -------
    Leaf or Split
        The tree.
    """
    return _tree(table.axes, table.values, np.maximum(table.shares, SMALLEST_SHARE))


def _tree(axes: tuple[Axis, ...], values: np.ndarray, shares: np.ndarray) -> Tree:
    if not axes:
        return Leaf(float(values), float(shares))
    axis, *others = axes

    def between(first: int, last: int) -> Tree:
        if first == last:
            return _tree(tuple(others), values[first], shares[first])
        middle = (first + last + 1) // 2
        below, above = between(first, middle - 1), between(middle, last)
        return Split(axis.feature, float(axis.cuts[middle - 1]), axis.missing, below, above)

    return between(0, len(axis.cuts))


def float32_function(request: Request, engine: str) -> Additive:
    """The function of unscaled features for an engine that compares float32.

    The self-test uses the scores of this function.

    Parameters
    ----------
    request : Request
        What to write; a note is added if levels are lost in float32.
    engine : str
        The engine, for messages.

    Returns
    -------
    Additive
        The function.
    """
    function, tables, lost = request.unscaled(), [], 0
    for table in function.tables:
        found, n_lost = table.to_float32()
        tables.append(found)
        lost += n_lost
    if lost:
        request.notes.append(
            f"{lost} {'level was' if lost == 1 else 'levels were'} lost: float32, which {engine} compares, does not "
            "tell their values from values of other levels."
        )
    function = replace(function, tables=tables)
    request.test = replace(request.test, scores=function(request.test.X))
    return function


def float32_trees(request: Request, engine: str) -> tuple[list[Tree], float]:
    """The trees for an engine that adds up trees only, in float32.

    Parameters
    ----------
    request : Request
        What to write.
    engine : str
        The engine, for messages.

    Returns
    -------
    trees : list of Leaf or Split
        The trees, each of which has no negative value if scores must not be negative.
    offset : float
        The sum of the trees minus the score of the model.

    Raises
    ------
    OptionError
        When the model has a linear part.
    """
    function = float32_function(request, engine)
    tables = function.tables
    if not function.used.any():
        raise OptionError("all weights of the model are 0: there is nothing to export.")
    if function.coef.any():
        raise OptionError(
            f"{engine} adds up trees, which cannot express the linear part of this {request.scoring.model}: fit an "
            "AdditiveRankSVM with linear=False, or export to another format."
        )
    lowest = [float(table.values.min()) if request.non_negative else 0.0 for table in tables]
    trees = [tree_of(replace(table, values=table.values - low)) for table, low in zip(tables, lowest, strict=True)]
    return trees, -sum(lowest)


def score_of_trees(request: Request, offset: float) -> str:
    """A description of the engine's scores."""
    shifted = f" plus {offset:.9g}" if request.non_negative else ""
    return f"the score of the model{shifted}, in float32"


def expected_of(request: Request, offset: float) -> list[dict[str, Any]]:
    """The self-test for an engine that takes every feature: nonzero features by name, and scores plus an offset."""
    columns = np.arange(request.scoring.n_features)
    tests = request.test.by_name(request.names, columns)
    return [test | {"score": test["score"] + offset} for test in tests]
