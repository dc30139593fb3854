"""Columns of codes (levels of a feature, or cells, which are pairs of levels of two features), and their variables."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

import ranksvm._compiled.coded as coded
from ranksvm.additive.bins import MAX_BINS, FeatureBins

__all__ = [
    "CellTables",
    "Pair",
    "cell_tables",
    "coded_columns",
    "increments",
    "level_scales",
    "new_levels",
    "variable_support",
]


class Pair(NamedTuple):
    """Two features and their levels in a function of both.

    Attributes
    ----------
    first, second : int
        Numbers of the features.
    first_bins, second_bins : FeatureBins
        Their levels.
    """

    first: int
    second: int
    first_bins: FeatureBins
    second_bins: FeatureBins

    @property
    def n_cells(self) -> int:
        """Number of cells: combinations of a level of the first and a level of the second feature."""
        return self.first_bins.n_levels * self.second_bins.n_levels

    @property
    def n_variables(self) -> int:
        """Number of variables: one for each variable of the first and each variable of the second feature."""
        return (self.first_bins.n_levels - 1) * (self.second_bins.n_levels - 1)


def coded_columns(bins: Sequence[FeatureBins], pairs: Sequence[Pair]) -> tuple[np.ndarray, int]:
    """The description of columns for `ranksvm._compiled.coded`, and the number of their variables.

    Parameters
    ----------
    bins : sequence of FeatureBins
        The levels of each feature.
    pairs : sequence of Pair
        The pairs of features that have a function of both.

    Returns
    -------
    columns : ndarray of int64, shape (n_features + n_pairs, 7)
        Each row describes a column of codes: one for each feature, then one for each pair.
    n_variables : int
        Number of variables.
    """
    columns = np.zeros((len(bins) + len(pairs), 7), dtype=np.int64)
    variable = entry = 0
    for c, each in enumerate(bins):
        columns[c] = each.n_steps, each.n_unordered_levels, 0, 0, 0, variable, entry
        variable, entry = variable + each.n_levels - 1, entry + each.n_levels
    for c, pair in enumerate(pairs, start=len(bins)):
        a, b = pair.first_bins, pair.second_bins
        columns[c] = a.n_steps, a.n_unordered_levels, b.n_steps, b.n_unordered_levels, 1, variable, entry
        variable, entry = variable + pair.n_variables, entry + pair.n_cells
    return columns, variable


class CellTables(NamedTuple):
    """How the cell of a row for each pair of features follows from the levels of the two features.

    Attributes
    ----------
    pairs : ndarray of int64, shape (n_pairs, 2)
        Numbers of the features.
    parts : ndarray of uint8, shape (n_pairs, 2, 256)
        What each level of the first and of the second feature adds to the number of the cell. Cells are numbered by the
        level of the first feature, then by the level of the second.
    """

    pairs: np.ndarray
    parts: np.ndarray

    def appended(self, codes: np.ndarray) -> np.ndarray:
        """The codes of levels, and behind them the cell of each row for each pair.

        Parameters
        ----------
        codes : ndarray of uint8, shape (n_rows, n_features)
            The level of each value.

        Returns
        -------
        ndarray of uint8, shape (n_rows, n_features + n_pairs)
            A copy with the cells; ``codes`` itself if there are no pairs.
        """
        n_rows, n_features = codes.shape
        if not len(self.pairs):
            return codes
        out = np.empty((n_rows, n_features + len(self.pairs)), dtype=np.uint8)
        coded.append_cells(codes, *self, out)
        return out


def cell_tables(bins: Sequence[FeatureBins], pairs: Sequence[Pair]) -> CellTables:
    """The tables for the cells of pairs.

    Parameters
    ----------
    bins : sequence of FeatureBins
        The levels of each feature.
    pairs : sequence of Pair
        The pairs, whose levels are unions of these.

    Returns
    -------
    CellTables
        The tables.
    """
    numbers = np.array([(pair.first, pair.second) for pair in pairs], dtype=np.int64).reshape(-1, 2)
    parts = np.zeros((len(pairs), 2, MAX_BINS + 1), dtype=np.uint8)
    for part, pair in zip(parts, pairs, strict=True):
        first = new_levels(bins[pair.first], pair.first_bins)
        second = new_levels(bins[pair.second], pair.second_bins)
        part[0, : len(first)] = first * np.uint8(pair.second_bins.n_levels)
        part[1, : len(second)] = second
    return CellTables(numbers, parts)


def level_scales(bins: FeatureBins, shares: np.ndarray, step_weight: float) -> np.ndarray:
    """The scale of each variable of a feature: of its steps, then of its other levels.

    For a step between two levels, it is ``step_weight`` times the square root of the share of non-missing values
    between the middles of the two levels. The penalty on the weights is then the discretized integral of the squared
    derivative of the shape with respect to the quantile. For a category, and for the level of missing values, it is the
    square root of one half, as for a feature with two equally frequent values.

    Parameters
    ----------
    bins : FeatureBins
        The levels.
    shares : ndarray of float64, shape (n_levels,)
        Share of the rows at each level.
    step_weight : float
        Factor for steps.

    Returns
    -------
    ndarray of float64, shape (n_levels - 1,)
        The scales.
    """
    scales = np.full(bins.n_levels - 1, np.sqrt(0.5))
    if bins.n_steps:
        ordered = shares[: bins.n_steps + 1]
        ordered = ordered / max(ordered.sum(), np.finfo(np.float64).tiny)
        scales[: bins.n_steps] = step_weight * np.sqrt((ordered[:-1] + ordered[1:]) / 2.0)
    return scales


def increments(values: np.ndarray, bins: FeatureBins) -> np.ndarray:
    """What each variable of a feature adds: the step at each cut, and the value of each other level.

    Parameters
    ----------
    values : ndarray of float64, shape (n_levels, ...)
        The value of each level; 0 at level 0.
    bins : FeatureBins
        The levels.

    Returns
    -------
    ndarray of float64, shape (n_levels - 1, ...)
        The increments.
    """
    found = values[1:].copy()
    found[: bins.n_steps] = np.diff(values[: bins.n_steps + 1], axis=0)
    return found


def variable_support(bins: FeatureBins) -> np.ndarray:
    """At which levels each variable of a feature is not 0.

    Parameters
    ----------
    bins : FeatureBins
        The levels.

    Returns
    -------
    ndarray of bool, shape (n_levels - 1, n_levels)
        True where it is not 0.
    """
    variable, level = np.arange(1, bins.n_levels)[:, None], np.arange(bins.n_levels)[None, :]
    steps = (variable <= bins.n_steps) & (level <= bins.n_steps)
    return np.where(steps, level >= variable, level == variable)


def new_levels(bins: FeatureBins, coarse: FeatureBins) -> np.ndarray:
    """The coarser level of each level.

    Parameters
    ----------
    bins : FeatureBins
        The levels.
    coarse : FeatureBins
        Levels that are unions of these.

    Returns
    -------
    ndarray of uint8, shape (bins.n_levels,)
        The coarser levels.
    """
    new = np.zeros(bins.n_levels, dtype=np.uint8)
    if bins.categories is None:
        at = np.searchsorted(bins.cuts, coarse.cuts) + 1
        new[:] = np.searchsorted(at, np.arange(bins.n_levels), side="right")
    else:
        assert coarse.categories is not None
        new[1 + np.searchsorted(bins.categories, coarse.categories)] = np.arange(1, len(coarse.categories) + 1)
    if bins.missing:
        new[-1] = coarse.n_levels - 1
    return new
