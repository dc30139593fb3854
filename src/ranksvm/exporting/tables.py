"""Additive models as tables: a value for each interval of one feature, or each pair of intervals of two features."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:  # linear models load no additive ones
    from ranksvm.additive import AdditiveFunction, FeatureBins

__all__ = ["LOWEST", "Axis", "ScalerOffset", "Table", "tables_of"]

# A cut that every value reaches, except missing ones: comparisons with NaN are false.
LOWEST = -float(np.finfo(np.float64).max)
# An exported model rounds scaled features in another way than scikit-learn. A value of the training data that is close
# to a cut might then be below it. So cuts are lowered by this many units of round-off.
ROUND_OFF = 16.0
# Scaling in float32 is wrong by two units at most. A category has values within this many units.
ROUND_OFF_FLOAT32 = 3.0
# Width of the interval of a category: CATEGORY_WIDTH units of the spacing of float32, up to MAX_CATEGORY_WIDTH. The
# threshold in a Solr model is rounded again, because Solr adds 1e-6 to it.
CATEGORY_WIDTH, MAX_CATEGORY_WIDTH = 4, 1e-5


@dataclass(frozen=True, eq=False)
class Axis:
    """Intervals of one feature: interval k has the values that reach k cuts, ``cuts[k - 1] <= x < cuts[k]``.

    Parameters
    ----------
    feature : int
        Number of the feature.
    cuts : ndarray of float64, shape (n_cuts,)
        The cuts, ascending; the first one is `LOWEST` if missing values have an interval, which is then interval 0.
    missing : bool
        Whether missing values have an interval.
    category : bool
        Whether the feature is categorical. The interval of a category begins at one cut and ends at the next.
    """

    feature: int
    cuts: np.ndarray
    missing: bool
    category: bool = False

    def intervals_of(self, x: np.ndarray) -> np.ndarray:
        """The interval of each value; 0 for missing ones."""
        return np.where(np.isnan(x), 0, np.searchsorted(self.cuts, x, side="right"))

    def moved(self, shift: float, scale: float) -> "Axis":
        """The intervals of ``x * scale + shift``."""
        cuts = self.cuts * 1.0
        cuts[int(self.missing) :] = cuts[int(self.missing) :] * scale + shift
        return replace(self, cuts=cuts)

    def to_float32(self) -> "Axis":
        """The same axis with cuts of float32, so that some may be equal; float32 values keep their intervals."""
        largest = np.finfo(np.float32).max
        cuts = np.clip(self.cuts, -largest, largest).astype(np.float32)
        if not self.category:
            # a float32 value reaches a cut exactly if it reaches the smallest float32 number that is not below the cut
            cuts = np.where(cuts < self.cuts, np.nextafter(cuts, largest), cuts)
        else:
            values, ends = cuts[int(self.missing) :: 2], cuts[int(self.missing) + 1 :: 2]
            width = np.minimum(CATEGORY_WIDTH * np.spacing(np.abs(values)), np.float32(MAX_CATEGORY_WIDTH))
            np.maximum(ends, _after(values) + width, out=ends)
            np.minimum(ends[:-1], values[1:], out=ends[:-1])
            # a float32 number that stands for several categories is none of them
            ends[1:][values[1:] == values[:-1]] = values[1:][values[1:] == values[:-1]]
        return replace(self, cuts=cuts.astype(np.float64))


@dataclass(frozen=True, eq=False)
class Table:
    """A function of one feature or two: a value for each interval, or pair of intervals.

    Parameters
    ----------
    axes : tuple of Axis
        The intervals of one feature, or of two.
    values : ndarray of float64, shape (n_intervals,) or (n_intervals, n_intervals)
        The values.
    shares : ndarray of float64, of the same shape
        Share of the training rows in each interval, or pair of intervals.
    """

    axes: tuple[Axis, ...]
    values: np.ndarray
    shares: np.ndarray

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """The value of each row."""
        return self.values[tuple(axis.intervals_of(X[:, axis.feature]) for axis in self.axes)]

    def to_float32(self) -> tuple["Table", int]:
        """The same table with cuts of float32, without intervals that become empty, and how many levels are lost."""
        axes, values, shares, n_lost = [], self.values, self.shares, 0
        for dimension, axis in enumerate(map(Axis.to_float32, self.axes)):
            empty = np.flatnonzero(np.diff(axis.cuts) <= 0.0)
            values, shares = (np.delete(each, empty + 1, axis=dimension) for each in (values, shares))
            axes.append(replace(axis, cuts=np.delete(axis.cuts, empty)))
            # between two categories there may be no other float32 number
            lost = empty[(empty - int(axis.missing)) % 2 == 0] if axis.category else empty
            n_lost += len(lost)
        return Table(tuple(axes), values, shares), n_lost


@dataclass(frozen=True, eq=False)
class ScalerOffset:
    """What a scaler subtracts.

    Parameters
    ----------
    size : ndarray of float64, shape (n_features,)
        Absolute value of what it subtracts, in units of the scaled features.
    in_float32 : bool
        Whether it subtracts in float32 if the features are float32. Otherwise it rounds only the scaled features.
    """

    size: np.ndarray
    in_float32: bool

    def round_off(self, feature: int, values: np.ndarray) -> np.ndarray:
        """Upper bound of the difference between scaled values and what an exported model computes for them."""
        return ROUND_OFF * np.finfo(np.float64).eps * (np.abs(values) + float(self.size[feature]))

    def width(self, feature: int, categories: np.ndarray) -> np.ndarray:
        """How far from each of these scaled categories a value may be, at most half the way to the next category."""
        width = self.round_off(feature, categories)
        # if float32 represents all categories exactly, they were scaled in float32, or rounded to it
        if np.array_equal(categories.astype(np.float32), categories):
            offset = float(self.size[feature]) if self.in_float32 else 0.0
            width += ROUND_OFF_FLOAT32 * np.finfo(np.float32).eps * (np.abs(categories) + offset)
        between = np.diff(categories) / 2.0
        return np.minimum(width, np.minimum(np.append(between, np.inf), np.append(np.inf, between)))


def tables_of(function: "AdditiveFunction", offset: ScalerOffset | None = None) -> list[Table]:
    """The tables of an additive model: its functions of features, and what missing values add to the linear part.

    Parameters
    ----------
    function : AdditiveFunction
        The function, with ``training``.
    offset : ScalerOffset, optional
        What the scaler subtracts; None without a scaler.

    Returns
    -------
    list of Table
        The functions of one feature, then functions of two; there is none for a feature whose values are all 0.
    """
    training = function.training
    assert training is not None
    found = []
    for j, (bins, shape, shares) in enumerate(zip(function.bins, function.shapes, training.shares, strict=True)):
        values = np.array(shape, dtype=np.float64)
        needed = bool(values.any())
        if bins.missing:
            values[-1] += function.coef[j] * function.fill[j]
            needed = needed or function.coef[j] != 0.0
        if needed:
            found.append(_table((j,), (bins,), values, shares, offset))
    for each, shares in zip(function.interactions, training.cells, strict=True):
        if each.values.any():
            bins_of_both = each.first_bins, each.second_bins
            found.append(_table((each.first, each.second), bins_of_both, each.values, shares, offset))
    return found


def _table(
    features: tuple[int, ...],
    bins: tuple["FeatureBins", ...],
    values: np.ndarray,
    shares: np.ndarray,
    offset: ScalerOffset | None,
) -> Table:
    """The table of one function, from its values, and the shares of the training rows, at the levels."""
    for dimension, each in enumerate(bins):
        levels = _levels(each)
        values, shares = (np.take(array, levels, axis=dimension) for array in (values, shares))
        # the rows of other categories are in several intervals
        times = np.bincount(levels)[levels]
        shares = shares / (times if dimension == shares.ndim - 1 else times[:, np.newaxis])
    axes = (_axis(feature, each, offset) for feature, each in zip(features, bins, strict=True))
    return Table(tuple(axes), values, shares)


def _levels(bins: "FeatureBins") -> list[int]:
    """The level (bin or category) to which each interval belongs."""
    if bins.categories is None:
        levels = list(range(bins.n_steps + 1))
    else:
        levels = [0]
        for level in range(1, len(bins.categories) + 1):
            levels += [level, 0]
    return [bins.n_levels - 1, *levels] if bins.missing else levels


def _axis(feature: int, bins: "FeatureBins", offset: ScalerOffset | None) -> Axis:
    lowest: Sequence[float] = [LOWEST] if bins.missing else []
    if bins.categories is None:
        cuts = bins.cuts if offset is None else bins.cuts - offset.round_off(feature, bins.cuts)
    else:
        values = bins.categories
        width = np.zeros(len(values)) if offset is None else offset.width(feature, values)
        first, ends = values - width, np.maximum(values + width, _after(values))
        ends[:-1] = np.minimum(ends[:-1], first[1:])
        cuts = np.column_stack([first, ends]).ravel()
    return Axis(feature, np.concatenate([lowest, cuts]), bins.missing, bins.categories is not None)


def _after(values: np.ndarray) -> np.ndarray:
    """The next number after each value; after 0, the smallest normal one: programs may treat smaller ones as 0."""
    return np.where(values == 0.0, np.finfo(values.dtype).tiny, np.nextafter(values, np.inf, dtype=values.dtype))
