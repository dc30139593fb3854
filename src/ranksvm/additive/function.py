"""The scoring function of an additive model (linear part, functions of one or two features), also as plain arrays."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, overload

import numpy as np

import ranksvm._compiled.coded as coded
from ranksvm._util.checks import is_sparse
from ranksvm._util.lazy import cached_property
from ranksvm._util.threads import parallel_map
from ranksvm._util.types import Features
from ranksvm.additive.bins import MAX_BINS, FeatureBins, codes_of
from ranksvm.additive.columns import CellTables, Pair, cell_tables, coded_columns
from ranksvm.data.scores import linear_scores

__all__ = ["AdditiveFunction", "FunctionArrays", "Interaction", "TrainingShares", "arrays_of", "function_of", "joined"]

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
            The result of `codes_of` for these levels and rows, if already computed.

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
            own = codes_of(self.bins, block, 1, self.names, start) if codes is None else codes[start:stop]
            part[:] = linear_scores(self.filled(block), self.coef, 1)
            coded.CodedFeatures(self._cell_tables.appended(own), *self._columns).look_up(entries, 0, len(part), part)

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
        cells = self._cell_tables.appended(codes)[:, self.n_features :]
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
        """The description of the columns of codes, and a scale of 1 for each variable (scoring does not use scales)."""
        columns, n_variables = coded_columns(self.bins, self.interaction_pairs)
        return columns, np.ones(n_variables)

    @cached_property
    def _cell_tables(self) -> CellTables:
        """The tables for the cells of the interactions."""
        return cell_tables(self.bins, self.interaction_pairs)

    @cached_property
    def _entries(self) -> np.ndarray:
        """The values of all levels, then of all cells."""
        cells = [each.values.ravel() for each in self.interactions]
        return np.concatenate([*self.shapes, *cells]) if len(self.shapes) else np.empty(0)


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


class FunctionArrays(NamedTuple):
    """The arrays of an additive function.

    Attributes
    ----------
    linear_coef, fill : ndarray of float64, shape (n_features,)
        The weights of the linear part, and the value that it uses for missing values.
    has_missing : ndarray of int64, shape (n_features,)
        1 for a feature whose missing values have a level.
    is_categorical : ndarray of int64, shape (n_features,)
        1 for a categorical feature.
    n_cuts : ndarray of int64, shape (n_features,)
        Number of cuts of each feature, or of categories of a categorical feature.
    cuts : ndarray of float64, shape (sum of n_cuts,)
        The cuts or categories of all features, one feature after the other.
    shape_values : ndarray of float64
        The values of all levels, one feature after the other.
    interactions : ndarray of int64, shape (n_interactions, 2)
        Numbers of the features.
    n_interaction_cuts, interaction_cuts : ndarray
        As ``n_cuts`` and ``cuts``, for the levels in interactions; a feature that is in no interaction has none.
    interaction_values : ndarray of float64
        The values of all cells (combinations of two levels), one interaction after the other, row by row.
    """

    linear_coef: np.ndarray
    fill: np.ndarray
    has_missing: np.ndarray
    is_categorical: np.ndarray
    n_cuts: np.ndarray
    cuts: np.ndarray
    shape_values: np.ndarray
    interactions: np.ndarray
    n_interaction_cuts: np.ndarray
    interaction_cuts: np.ndarray
    interaction_values: np.ndarray


def arrays_of(function: AdditiveFunction) -> FunctionArrays:
    """The arrays of a function.

    Parameters
    ----------
    function : AdditiveFunction
        The function.

    Returns
    -------
    FunctionArrays
        The arrays.
    """
    coarse: dict[int, FeatureBins] = {}
    for each in function.interactions:
        coarse[each.first], coarse[each.second] = each.first_bins, each.second_bins
    own = [_places(each) for each in function.bins]
    in_pairs = [_places(coarse[j]) if j in coarse else np.empty(0) for j in range(function.n_features)]
    return FunctionArrays(
        linear_coef=function.coef,
        fill=function.fill,
        has_missing=np.array([int(each.missing) for each in function.bins], dtype=np.int64),
        is_categorical=np.array([int(each.categories is not None) for each in function.bins], dtype=np.int64),
        n_cuts=np.array([len(each) for each in own], dtype=np.int64),
        cuts=joined(own),
        shape_values=joined(function.shapes),
        interactions=np.array([(e.first, e.second) for e in function.interactions], dtype=np.int64).reshape(-1, 2),
        n_interaction_cuts=np.array([len(each) for each in in_pairs], dtype=np.int64),
        interaction_cuts=joined(in_pairs),
        interaction_values=joined([each.values for each in function.interactions]),
    )


def function_of(arrays: FunctionArrays) -> AdditiveFunction:
    """The function that arrays describe. The arrays are checked, because they may come from a file.

    Parameters
    ----------
    arrays : FunctionArrays
        The arrays.

    Returns
    -------
    AdditiveFunction
        The function.

    Raises
    ------
    ValueError
        When the arrays do not agree with each other.
    """
    n = len(arrays.linear_coef)
    bins = _bins(arrays, arrays.n_cuts, arrays.cuts, "cuts")
    coarse = _bins(arrays, arrays.n_interaction_cuts, arrays.interaction_cuts, "interaction_cuts")
    shapes = _split(arrays.shape_values, [each.n_levels for each in bins], "shape_values")
    pairs = [(int(a), int(b)) for a, b in arrays.interactions]
    if any(not (0 <= a < b < n) for a, b in pairs) or len(set(pairs)) < len(pairs):
        raise ValueError("interactions are not pairs of two features, each once")
    for j in {j for pair in pairs for j in pair}:
        if not np.isin(_places(coarse[j]), _places(bins[j])).all():
            raise ValueError(f"interaction_cuts of feature {j} are not among its cuts")
    if any(coarse[a].n_levels * coarse[b].n_levels > MAX_BINS + 1 for a, b in pairs):
        raise ValueError("an interaction has more cells than a code of one byte")
    sizes = [coarse[a].n_levels * coarse[b].n_levels for a, b in pairs]
    cells = _split(arrays.interaction_values, sizes, "interaction_values")
    interactions = [
        Interaction(a, b, coarse[a], coarse[b], values.reshape(coarse[a].n_levels, coarse[b].n_levels))
        for (a, b), values in zip(pairs, cells, strict=True)
    ]
    return AdditiveFunction(arrays.linear_coef, arrays.fill, bins, shapes, interactions)


def _places(bins: FeatureBins) -> np.ndarray:
    return bins.cuts if bins.categories is None else bins.categories


def joined(parts: Sequence[np.ndarray]) -> np.ndarray:
    """The values of arrays of any shape, one array after the other.

    Parameters
    ----------
    parts : sequence of ndarray
        The arrays.

    Returns
    -------
    ndarray of float64, shape (sum of sizes,)
        Their values.
    """
    return np.concatenate([np.empty(0), *(part.ravel() for part in parts)]).astype(np.float64)


def _split(values: np.ndarray, sizes: Sequence[int], name: str) -> list[np.ndarray]:
    if len(values) != sum(sizes):
        raise ValueError(f"{name} has {len(values)} values, not {sum(sizes)}")
    return np.split(values, np.cumsum(sizes)[:-1]) if len(sizes) else []


def _bins(arrays: FunctionArrays, counts: np.ndarray, cuts: np.ndarray, name: str) -> list[FeatureBins]:
    if (counts < 0).any() or (counts > MAX_BINS).any():
        raise ValueError(f"{name} has a feature with more levels than a code of one byte")
    found = []
    for part, missing, category in zip(
        _split(cuts, counts.tolist(), name), arrays.has_missing, arrays.is_categorical, strict=True
    ):
        if (np.diff(part) <= 0).any():
            raise ValueError(f"{name} of a feature do not ascend")
        if len(part) + int(missing) > MAX_BINS:
            raise ValueError(f"{name} has a feature with more levels than a code of one byte")
        places = (np.empty(0), bool(missing), part) if category else (part, bool(missing), None)
        found.append(FeatureBins(*places))
    return found
