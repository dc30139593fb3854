"""The functions of an additive model as people read them: shapes of features, and cells of two."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ranksvm._util.feature_names import feature_labels
from ranksvm._util.tables import Table
from ranksvm.additive.bins import FeatureBins
from ranksvm.additive.function import AdditiveFunction, Interaction

__all__ = ["Cells", "Shape", "level_labels", "shapes_of", "term_labels", "term_means"]


@dataclass(frozen=True, eq=False)
class Shape:
    """What one feature adds to scores: its linear part and its steps, with mean 0 over the training rows.

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
    fill : float
        Its mean, which missing values have in the linear part.
    steps : ndarray of float64, shape (n_levels,)
        The value of each level.
    low, high : float
        Its smallest and its largest value in the training data.
    shares : ndarray of float64, shape (n_levels,)
        Share of the training rows at each level.
    """

    feature: int
    name: str
    bins: FeatureBins
    weight: float
    fill: float
    steps: np.ndarray
    low: float
    high: float
    shares: np.ndarray

    @property
    def is_categorical(self) -> bool:
        """Whether the feature is a category."""
        return self.bins.categories is not None

    @property
    def mean(self) -> float:
        """The mean of linear part and steps over the training rows, which is subtracted."""
        return float(self.weight * self.fill + self.shares @ self.steps)

    @property
    def ends(self) -> np.ndarray:
        """The ends of the intervals of the levels, within the training data: float64, shape (n_steps + 2,)."""
        return np.concatenate([[self.low], self.bins.cuts, [self.high]])

    @property
    def labels(self) -> list[str]:
        """What the levels are called."""
        return level_labels(self.bins)

    @property
    def values(self) -> np.ndarray:
        """The value of the whole shape at each level, at the middle of its interval: float64, shape (n_levels,)."""
        return self.at(self._middles())

    def at(self, x: np.ndarray) -> np.ndarray:
        """The value of the whole shape at values of the feature.

        Parameters
        ----------
        x : ndarray of float64
            Values; NaN is a missing one.

        Returns
        -------
        ndarray of float64
            The values.
        """
        linear = self.weight * np.where(np.isnan(x), self.fill, x)
        return linear + self.steps[self.bins.levels_of(x)] - self.mean

    def curve(self) -> tuple[np.ndarray, np.ndarray]:
        """The shape of a feature that is no category as a line: two points for each interval.

        Returns
        -------
        x, values : ndarray of float64, shape (2 * (n_steps + 1),)
            Ends of the intervals, and the values there, of the interval to which each end belongs.
        """
        x = np.repeat(self.ends, 2)[1:-1]
        return x, self.weight * x + np.repeat(self.steps[: self.bins.n_steps + 1], 2) - self.mean

    def table(self) -> Table:
        """The levels, with the value of the whole shape at each.

        Returns
        -------
        Table
            Columns ``level`` (its number), ``label``, ``from`` and ``to`` (its interval, of which ``to`` is no part
            but for the last one; the value of a category), ``value`` (of the whole shape, at the middle of the
            interval), ``step`` (the part that is not linear, as `edit_shape` takes it) and ``share`` (of the training
            rows).
        """
        low, high = self._intervals()
        columns: dict[str, Any] = {
            "level": np.arange(len(self.steps)),
            "label": np.array(self.labels, dtype=str),
            "from": low,
            "to": high,
            "value": self.values,
            "step": self.steps,
            "share": self.shares,
        }
        return Table(columns, f"The shape of {self.name}", formats={"share": ".1%", "from": ".6g", "to": ".6g"})

    @property
    def spread(self) -> float:
        """Standard deviation of the values over the training rows, as if rows were at the middles of intervals."""
        values = self.values
        return float(np.sqrt(self.shares @ np.square(values - self.shares @ values)))

    def _intervals(self) -> tuple[np.ndarray, np.ndarray]:
        """The ends of each level; NaN for missing values, and for values that are no category of their own."""
        low, high = np.full(len(self.steps), np.nan), np.full(len(self.steps), np.nan)
        if self.bins.categories is None:
            ends = self.ends
            low[: len(ends) - 1], high[: len(ends) - 1] = ends[:-1], ends[1:]
        else:
            places = slice(1, 1 + len(self.bins.categories))
            low[places] = high[places] = self.bins.categories
        return low, high

    def _middles(self) -> np.ndarray:
        low, high = self._intervals()
        if self.bins.categories is not None:
            # any value that is no category has level 0
            low[0] = high[0] = np.inf
        return low + np.where(low == high, 0.0, (high - low) / 2.0) if not self.is_categorical else low


@dataclass(frozen=True, eq=False)
class Cells:
    """What two features add to scores together, with mean 0 over the training rows.

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
    """

    first: int
    second: int
    names: tuple[str, str]
    first_bins: FeatureBins
    second_bins: FeatureBins
    values: np.ndarray
    shares: np.ndarray

    @property
    def name(self) -> str:
        """The names of both features."""
        return " x ".join(self.names)

    @property
    def spread(self) -> float:
        """Standard deviation of the values over the training rows."""
        return float(np.sqrt((self.shares * np.square(self.values)).sum()))

    def table(self) -> Table:
        """The cells, one in each row.

        Returns
        -------
        Table
            Columns ``first`` and ``second`` (the levels), ``value`` and ``share`` (of the training rows).
        """
        rows, columns = self.values.shape
        return Table(
            {
                "first": np.repeat(np.array(level_labels(self.first_bins), dtype=str), columns),
                "second": np.tile(np.array(level_labels(self.second_bins), dtype=str), rows),
                "value": self.values.ravel(),
                "share": self.shares.ravel(),
            },
            f"The function of {self.names[0]} and {self.names[1]}",
            headings={"first": self.names[0], "second": self.names[1]},
            formats={"share": ".1%"},
        )


def level_labels(bins: FeatureBins) -> list[str]:
    """What the levels of a feature are called.

    Parameters
    ----------
    bins : FeatureBins
        The levels.

    Returns
    -------
    list of str
        A label for each level: an interval, a category, "other" or "missing".
    """
    if bins.categories is not None:
        labels = ["other", *(f"{value:.6g}" for value in bins.categories)]
    elif not bins.n_steps:
        labels = ["all"]
    else:
        cuts = [f"{cut:.6g}" for cut in bins.cuts]
        between = [f"{low} to {high}" for low, high in zip(cuts[:-1], cuts[1:], strict=True)]
        labels = [f"below {cuts[0]}", *between, f"from {cuts[-1]}"]
    return [*labels, "missing"] if bins.missing else labels


def term_labels(function: AdditiveFunction, names: Sequence[Any] | None) -> list[str]:
    """What the terms of a function are called: its features, then its interactions, "a x b".

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


def shapes_of(function: AdditiveFunction, names: Sequence[Any] | None) -> tuple[list[Shape], list[Cells]]:
    """The shapes of all features, and the cells of all interactions.

    Parameters
    ----------
    function : AdditiveFunction
        The function, with ``training``.
    names : sequence of str, optional
        Names of the features.

    Returns
    -------
    shapes : list of Shape
        In the order of the features.
    cells : list of Cells
        In the order of the interactions.
    """
    training, labels = function.training, feature_labels(function.n_features, names)
    assert training is not None
    shapes = [
        Shape(
            j,
            labels[j],
            function.bins[j],
            float(function.coef[j]),
            float(function.fill[j]),
            function.shapes[j],
            *map(float, training.ranges[j]),
            training.levels[j],
        )
        for j in range(function.n_features)
    ]
    cells = [
        _cells(each, shares, (labels[each.first], labels[each.second]))
        for each, shares in zip(function.interactions, training.cells, strict=True)
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


def _cells(each: Interaction, shares: np.ndarray, names: tuple[str, str]) -> Cells:
    values = each.values - _mean(each, shares)
    return Cells(each.first, each.second, names, each.first_bins, each.second_bins, values, shares)


def _mean(each: Interaction, shares: np.ndarray) -> float:
    return float((each.values * shares).sum())
