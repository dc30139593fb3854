"""An additive model in readable form: shapes of features, tables for pairs of features, and checks of edited shapes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ranksvm._util.checks import is_integer
from ranksvm._util.tables import Table, Tabular
from ranksvm._util.text import digits_apart, feature_labels, told_apart
from ranksvm.additive.bins import FeatureBins
from ranksvm.additive.columns import increments
from ranksvm.additive.function import AdditiveFunction, Interaction
from ranksvm.exceptions import OptionError

__all__ = ["Cells", "Shape", "edited_steps", "level_labels", "shapes_of", "term_labels", "term_means"]


@dataclass(frozen=True, eq=False)
class Shape(Tabular):
    """What one feature adds to scores: its linear part and its steps, with mean 0 over the training rows.

    As a table it has a row for each level, with the columns ``level`` (its number), ``label``, ``from`` and ``to`` (its
    interval, ``from <= x < to``; the value of a category), ``value`` (mean of the whole shape there), ``step`` (the
    part that is not linear, which `edit_shape` takes) and ``share`` (of the training rows).

    Parameters
    ----------
    feature : int
        Number of the feature.
    name : str
        Its name.
    bins : FeatureBins
        Its levels.
    weight : float
        Its weight in the linear part.
    steps : ndarray of float64, shape (n_levels,)
        The value of each level.
    low, high : float
        Its smallest and its largest value in the training data.
    means : ndarray of float64, shape (n_levels,)
        Mean of its training values at each level.
    shares : ndarray of float64, shape (n_levels,)
        Share of the training rows at each level.
    texts : list of str, optional
        The texts of categories 0, 1, ...; None if categories are numbers.

    Examples
    --------
    >>> from ranksvm import AdditiveRankSVM, make_ranking
    >>> data = make_ranking(n_queries=20, n_docs=8, n_features=4, random_state=0)
    >>> shape = AdditiveRankSVM(C=0.01).fit(data.X, data.y, qid=data.qid).shapes()[0]
    >>> shape.name, len(shape.values), bool(abs(shape.shares @ shape.values) < 1e-12)
    ('f1', 32, True)
    """

    feature: int
    name: str
    bins: FeatureBins
    weight: float
    steps: np.ndarray
    low: float
    high: float
    means: np.ndarray
    shares: np.ndarray
    texts: list[str] | None = None

    @property
    def is_categorical(self) -> bool:
        """Whether the feature is categorical."""
        return self.bins.categories is not None

    @property
    def mean(self) -> float:
        """The mean of the linear part plus the steps over the training rows; ``values`` are relative to this mean."""
        return float(self.shares @ (self.weight * self.means + self.steps))

    @property
    def labels(self) -> list[str]:
        """What the levels are called."""
        return level_labels(self.bins, self.texts)

    @property
    def values(self) -> np.ndarray:
        """The mean of the whole shape at each level: float64, shape (n_levels,)."""
        return self.weight * self.means + self.steps - self.mean

    @property
    def spread(self) -> float:
        """Standard deviation of ``values`` over the training rows."""
        return float(np.sqrt(self.shares @ np.square(self.values)))

    @property
    def ends(self) -> np.ndarray:
        """The smallest training value, the cuts, and the largest training value: float64, shape (n_steps + 2,)."""
        return np.concatenate([[self.low], self.bins.cuts, [self.high]])

    def curve(self) -> tuple[np.ndarray, np.ndarray]:
        """The shape of a feature that is not categorical, as a line.

        Returns
        -------
        x, values : ndarray of float64, shape (2 * (n_steps + 1),)
            Both ends of each interval, and the values there.
        """
        x = np.repeat(self.ends, 2)[1:-1]
        return x, self.weight * x + np.repeat(self.steps[: self.bins.n_steps + 1], 2) - self.mean

    def _table(self) -> Table:
        low, high = np.full(len(self.steps), np.nan), np.full(len(self.steps), np.nan)
        if self.bins.categories is None:
            ends = self.ends
            low[: len(ends) - 1], high[: len(ends) - 1] = ends[:-1], ends[1:]
            digits = digits_apart(ends, 6)
        else:
            digits = _digits_of_categories(self.bins.categories)
            low[1 : 1 + len(self.bins.categories)] = high[1 : 1 + len(self.bins.categories)] = self.bins.categories
        columns: dict[str, Any] = {
            "level": np.arange(len(self.steps)),
            "label": np.array(self.labels, dtype=str),
            "from": low,
            "to": high,
            "value": self.values,
            "step": self.steps,
            "share": self.shares,
        }
        places = f".{digits}g"
        return Table(columns, f"The shape of {self.name}", formats={"share": ".1%", "from": places, "to": places})

    def __repr__(self) -> str:
        return self._table().to_text()


@dataclass(frozen=True, eq=False)
class Cells(Tabular):
    """What two features add to scores together, with mean 0 over the training rows.

    As a table it has a row for each cell, with the columns ``first`` and ``second`` (labels of the levels), ``value``
    and ``share`` (of the training rows).

    Parameters
    ----------
    first, second : int
        Numbers of the features.
    names : tuple of str
        Their names.
    first_bins, second_bins : FeatureBins
        Their levels.
    values : ndarray of float64, shape (n_levels of the first, n_levels of the second)
        The values.
    shares : ndarray of float64, of the same shape
        Share of the training rows in each cell.
    texts : tuple of list of str or None
        The texts of categories 0, 1, ... of each feature; None if they are numbers.

    Examples
    --------
    >>> from ranksvm import AdditiveRankSVM, make_ranking
    >>> data = make_ranking(n_queries=20, n_docs=8, n_features=4, random_state=0)
    >>> ranker = AdditiveRankSVM(C=0.01, interactions=[(0, 1)]).fit(data.X, data.y, qid=data.qid)
    >>> cells = ranker.interaction_shapes()[0]
    >>> cells.name, cells.values.shape
    ('f1 x f2', (8, 8))
    """

    first: int
    second: int
    names: tuple[str, str]
    first_bins: FeatureBins
    second_bins: FeatureBins
    values: np.ndarray
    shares: np.ndarray
    texts: tuple[list[str] | None, list[str] | None] = (None, None)

    @property
    def labels(self) -> tuple[list[str], list[str]]:
        """What the levels of both features are called."""
        return level_labels(self.first_bins, self.texts[0]), level_labels(self.second_bins, self.texts[1])

    @property
    def name(self) -> str:
        """The names of both features."""
        return " x ".join(self.names)

    @property
    def spread(self) -> float:
        """Standard deviation of the values over the training rows."""
        return float(np.sqrt((self.shares * np.square(self.values)).sum()))

    def _table(self) -> Table:
        rows, columns = self.values.shape
        first, second = self.labels
        return Table(
            {
                "first": np.repeat(np.array(first, dtype=str), columns),
                "second": np.tile(np.array(second, dtype=str), rows),
                "value": self.values.ravel(),
                "share": self.shares.ravel(),
            },
            f"The function of {self.names[0]} and {self.names[1]}",
            headings={"first": self.names[0], "second": self.names[1]},
            formats={"share": ".1%"},
        )

    def __repr__(self) -> str:
        return self._table().to_text()


def level_labels(bins: FeatureBins, texts: list[str] | None = None) -> list[str]:
    """What the levels of a feature are called.

    Parameters
    ----------
    bins : FeatureBins
        The levels.
    texts : list of str, optional
        The texts of categories 0, 1, ...; None if categories are numbers.

    Returns
    -------
    list of str
        A label for each level: an interval, a category, "other" or "missing". A category with one of these two names
        is in quotes.
    """
    if bins.categories is not None:
        digits = _digits_of_categories(bins.categories)
        named = (f"{value:.{digits}g}" if texts is None else _quoted(texts[int(value)]) for value in bins.categories)
        labels = ["other", *named]
    elif not bins.n_steps:
        labels = ["all"]
    else:
        cuts = told_apart(bins.cuts, 6)
        between = [f"{low} to {high}" for low, high in pairwise(cuts)]
        labels = [f"below {cuts[0]}", *between, f"from {cuts[-1]}"]
    return [*labels, "missing"] if bins.missing else labels


def _quoted(text: str) -> str:
    """The label of a category: its text, in quotes if another level has this name."""
    return repr(text) if text in ("other", "missing") else text


def _digits_of_categories(categories: np.ndarray) -> int:
    """The number of significant digits of categories that are numbers; whole numbers, such as ids, have all of them."""
    return digits_apart(categories, 16 if np.array_equal(categories, np.round(categories)) else 6)


def term_labels(function: AdditiveFunction, names: Sequence[Any] | None) -> list[str]:
    """Labels of the terms of a function: its features, then its interactions, "a x b".

    Parameters
    ----------
    function : AdditiveFunction
        The function.
    names : sequence of str, optional
        Names of the features.

    Returns
    -------
    list of str
        The names.
    """
    labels = feature_labels(function.n_features, names)
    return [*labels, *(f"{labels[each.first]} x {labels[each.second]}" for each in function.interactions)]


def shapes_of(
    function: AdditiveFunction, names: Sequence[Any] | None, categories: Mapping[str, list[str]] | None = None
) -> tuple[list[Shape], list[Cells]]:
    """The shapes of all features, and the cells of all interactions.

    Parameters
    ----------
    function : AdditiveFunction
        The function, with ``training``.
    names : sequence of str, optional
        Names of the features.
    categories : mapping of str to list of str, optional
        The texts of categories 0, 1, ..., by the name of the feature.

    Returns
    -------
    shapes : list of Shape
        In the order of the features.
    cells : list of Cells
        In the order of the interactions.
    """
    training, labels = function.training, feature_labels(function.n_features, names)
    assert training is not None
    texts = [(categories or {}).get(label) for label in labels]
    shapes = [
        Shape(
            j,
            labels[j],
            function.bins[j],
            float(function.coef[j]),
            function.shapes[j],
            float(training.ranges[j, 0]),
            float(training.ranges[j, 1]),
            training.means[j],
            training.shares[j],
            texts[j],
        )
        for j in range(function.n_features)
    ]
    cells = [
        _cells(each, shares, labels, texts) for each, shares in zip(function.interactions, training.cells, strict=True)
    ]
    return shapes, cells


def term_means(function: AdditiveFunction) -> np.ndarray:
    """The mean over the training rows of each feature's contribution, then of each interaction's.

    Parameters
    ----------
    function : AdditiveFunction
        The function, with ``training``.

    Returns
    -------
    ndarray of float64, shape (n_features + n_interactions,)
        The means.
    """
    shapes, _ = shapes_of(function, None)
    training = function.training
    assert training is not None
    pairs = zip(function.interactions, training.cells, strict=True)
    return np.array([*(each.mean for each in shapes), *(_mean(each, shares) for each, shares in pairs)])


def _cells(each: Interaction, shares: np.ndarray, labels: list[str], texts: list[list[str] | None]) -> Cells:
    i, j, values = each.first, each.second, each.values - _mean(each, shares)
    names, both = (labels[i], labels[j]), (texts[i], texts[j])
    return Cells(i, j, names, each.first_bins, each.second_bins, values, shares, both)


def _mean(each: Interaction, shares: np.ndarray) -> float:
    return float((each.values * shares).sum())


def edited_steps(
    bins: FeatureBins, steps: np.ndarray, values: ArrayLike | Mapping[int, float], scales: np.ndarray, sign: int
) -> np.ndarray:
    """The new steps of a feature, validated.

    Parameters
    ----------
    bins : FeatureBins
        Its levels.
    steps : ndarray of float64, shape (n_levels,)
        Its steps so far.
    values : array-like of shape (n_levels,), or mapping of int to float
        The new steps of all levels, or of some levels by their numbers.
    scales : ndarray of float64, shape (n_levels - 1,)
        The scale of each variable of the feature.
    sign : {-1, 0, 1}
        -1 or 1 if the score must decrease or increase in the feature, otherwise 0.

    Returns
    -------
    ndarray of float64, shape (n_levels,)
        The steps; 0 at level 0.

    Raises
    ------
    OptionError
        When there are no such levels, a value is not a finite number, or the model cannot have these steps.
    """
    n = bins.n_levels
    if isinstance(values, Mapping):
        new = steps.copy()
        for level, value in values.items():
            if not is_integer(level, 0) or level >= n:
                raise OptionError(f"edit_shape: there is no level {level!r}: the feature has levels 0 to {n - 1}.")
            new[level] = _as_floats(value, 0, f"the step of level {level} must be a number")
    else:
        new = _as_floats(values, 1, "values must be a list of numbers")
        if new.shape != (n,):
            raise OptionError(f"edit_shape: values has shape {new.shape}, but the feature has {n} levels.")
    if not np.isfinite(new).all():
        raise OptionError("edit_shape: values has values that are not finite.")
    new -= new[0]
    added = increments(new, bins)
    if (lost := np.flatnonzero((added != 0.0) & (scales == 0.0))).size:
        raise OptionError(
            f"edit_shape: the model cannot have a step at level {lost[0] + 1}: step_weight is 0, or no training row is "
            "there."
        )
    if sign and (wrong := np.flatnonzero(sign * added[: bins.n_steps] < 0.0)).size:
        raise OptionError(f"edit_shape: monotone does not admit the step at level {wrong[0] + 1}.")
    return new


def _as_floats(values: object, ndim: int, expected: str) -> np.ndarray:
    """A copy as float64 with ``ndim`` dimensions, or OptionError."""
    try:
        found = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        found = None
    if found is None or found.ndim != ndim:
        raise OptionError(f"edit_shape: {expected}, got {values!r}.")
    return found
