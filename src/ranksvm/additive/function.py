"""The scoring function of an additive model: a linear part, functions of one feature, and functions of two features."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import overload

import numpy as np

import ranksvm._compiled.coded as coded
from ranksvm._util.checks import is_sparse
from ranksvm._util.lazy import cached_property
from ranksvm._util.threads import parallel_map
from ranksvm._util.types import Features
from ranksvm.additive.bins import FeatureBins, codes_of
from ranksvm.additive.columns import Pair, coded_columns, pair_codes
from ranksvm.data.scores import linear_scores

__all__ = ["AdditiveFunction", "Interaction", "TrainingShares"]

# Number of rows that a thread scores at a time.
SCORED_ROWS = 1 << 13


@dataclass(frozen=True, eq=False)
class Interaction:
    """A function of two features: a value for each cell, which is a combination of their levels.

    Parameters
    ----------
    first, second : int
        Numbers of the features.
    first_bins, second_bins : FeatureBins
        Their levels in this function.
    values : ndarray of float64, shape (first_bins.n_levels, second_bins.n_levels)
        The values; 0 at level 0 of either feature.
    """

    first: int
    second: int
    first_bins: FeatureBins
    second_bins: FeatureBins
    values: np.ndarray


@dataclass(frozen=True, eq=False)
class TrainingShares:
    """How the training rows are distributed over the levels and cells.

    Parameters
    ----------
    ranges : ndarray of float64, shape (n_features, 2)
        The smallest and the largest value of each feature.
    means : sequence of ndarray of float64, each of shape (n_levels,)
        Mean of the values at each level of each feature.
    shares : sequence of ndarray of float64, each of shape (n_levels,)
        Share of the rows at each level of each feature.
    cells : sequence of ndarray of float64, each of shape (n_levels of the first, n_levels of the second feature)
        Share of the rows in each cell of each interaction.
    """

    ranges: np.ndarray
    means: Sequence[np.ndarray]
    shares: Sequence[np.ndarray]
    cells: Sequence[np.ndarray]


@dataclass(frozen=True, eq=False)
class AdditiveFunction:
    """``f(x) = sum_j (coef_j x_j + shapes_j[level of x_j]) + sum over interactions of values[level, level]``.

    A missing value counts as ``fill_j`` in the linear part, and has a level of its own in shapes and interactions.

    Parameters
    ----------
    coef : ndarray of float64, shape (n_features,)
        Weights of the linear part; 0 for categorical features.
    fill : ndarray of float64, shape (n_features,)
        The mean of each feature in the training data, for missing values.
    bins : sequence of FeatureBins, of length n_features
        The levels of each feature.
    shapes : sequence of ndarray of float64, each of shape (n_levels,)
        The value of each level; 0 at level 0.
    interactions : sequence of Interaction
        The functions of two features.
    training : TrainingShares, optional
        How the training rows are distributed, if that is known.
    names : sequence of str, optional
        Names of the features, for messages.
    """

    coef: np.ndarray
    fill: np.ndarray
    bins: Sequence[FeatureBins]
    shapes: Sequence[np.ndarray]
    interactions: Sequence[Interaction] = ()
    training: TrainingShares | None = None
    names: Sequence[str] | None = None

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.coef)

    def scores(self, X: Features, n_threads: int = 1, codes: np.ndarray | None = None) -> np.ndarray:
        """Score of each row of X.

        Parameters
        ----------
        X : ndarray or CSR matrix of float32 or float64, shape (n_rows, n_features)
            Documents; NaN is a missing value.
        n_threads : int
            Number of threads.
        codes : ndarray of uint8, shape (n_rows, n_features), optional
            The result of `codes_of` for these levels and rows, if it is known.

        Returns
        -------
        ndarray of float64, shape (n_rows,)
            The scores.

        Raises
        ------
        DataError
            When X has an infinite value, or a missing one in a feature that had none in the training data.
        """
        scores, entries = np.empty(X.shape[0]), self._entries

        def score(rows: tuple[int, int]) -> None:
            start, stop = rows
            block = X[start:stop]
            part = scores[start:stop]
            own = self._with_cells(
                codes_of(self.bins, block, 1, self.names, start) if codes is None else codes[start:stop]
            )
            part[:] = linear_scores(self.filled(block), self.coef, 1)
            coded.CodedFeatures(own, *self._columns).look_up(entries, 0, len(part), part)

        ends = [*range(0, X.shape[0], SCORED_ROWS), X.shape[0]]
        parallel_map(score, list(pairwise(ends)), n_threads)
        return scores

    def filled(self, X: Features) -> Features:
        """X with the mean of the training data in place of missing values.

        Parameters
        ----------
        X : ndarray or CSR matrix of float32 or float64, shape (n_rows, n_features)
            Documents.

        Returns
        -------
        ndarray or CSR matrix
            X itself if nothing is missing.
        """
        return filled(X, self.fill)

    def contributions(self, X: Features) -> tuple[np.ndarray, np.ndarray]:
        """What each feature and each interaction adds to the score of each row.

        Parameters
        ----------
        X : ndarray or CSR matrix of float32 or float64, shape (n_rows, n_features)
            Documents.

        Returns
        -------
        features : ndarray of float64, shape (n_rows, n_features)
            The linear part and the shape of each feature.
        interactions : ndarray of float64, shape (n_rows, n_interactions)
            The value of each interaction.
        """
        codes = codes_of(self.bins, X, 1, self.names)
        Z = self.filled(X)
        features = (Z.toarray() if is_sparse(Z) else Z) * self.coef
        for j, shape in enumerate(self.shapes):
            features[:, j] += shape[codes[:, j]]
        cells = self._cells(codes)
        pairs = np.empty((len(codes), len(self.interactions)))
        for k, interaction in enumerate(self.interactions):
            pairs[:, k] = interaction.values.ravel()[cells[:, k]]
        return features, pairs

    @cached_property
    def interaction_pairs(self) -> list[Pair]:
        """The features of each interaction, and their levels."""
        return [Pair(each.first, each.second, each.first_bins, each.second_bins) for each in self.interactions]

    @cached_property
    def _columns(self) -> tuple[np.ndarray, np.ndarray]:
        """The description of the columns of codes, and 1 as each variable's scale, which scoring does not use."""
        columns, n_variables = coded_columns(self.bins, self.interaction_pairs)
        return columns, np.ones(n_variables)

    @property
    def _entries(self) -> np.ndarray:
        """The values of all levels, then of all cells."""
        cells = [each.values.ravel() for each in self.interactions]
        return np.concatenate([*self.shapes, *cells]) if len(self.shapes) else np.empty(0)

    def _cells(self, codes: np.ndarray) -> np.ndarray:
        return pair_codes(self.bins, self.interaction_pairs, codes)

    def _with_cells(self, codes: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(np.hstack([codes, self._cells(codes)])) if self.interactions else codes


@overload
def filled(X: np.ndarray, fill: np.ndarray) -> np.ndarray: ...
@overload
def filled(X: Features, fill: np.ndarray) -> Features: ...
def filled(X: Features, fill: np.ndarray) -> Features:
    """X with other values in place of missing ones.

    Parameters
    ----------
    X : ndarray or CSR matrix of float32 or float64, shape (n_rows, n_features)
        Rows.
    fill : ndarray of float64, shape (n_features,)
        The value for each feature.

    Returns
    -------
    ndarray or CSR matrix
        X itself if nothing is missing.
    """
    values = X.data if is_sparse(X) else X
    missing = np.isnan(values)
    if not missing.any():
        return X
    X = X.copy()
    if is_sparse(X):
        X.data[missing] = fill[X.indices[missing]]
    else:
        X[missing] = fill[np.nonzero(missing)[1]]
    return X
