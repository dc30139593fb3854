"""The design matrix of an additive model: scaled features and codes of their levels, side by side."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

import ranksvm._compiled.coded as coded
from ranksvm._util.checks import is_sparse
from ranksvm._util.lazy import cached_property
from ranksvm._util.types import Features
from ranksvm.additive.bins import FeatureBins, as_floats, codes_of
from ranksvm.additive.columns import Pair, cell_tables, coded_columns, increments, level_scales, new_levels
from ranksvm.additive.function import AdditiveFunction, Interaction, filled
from ranksvm.additive.interactions import pair_sums
from ranksvm.data import TwoBlockDesign, TwoBlocks, as_design_matrix
from ranksvm.data.design_matrix import DesignMatrix, RowProducts

__all__ = ["AdditiveDesign", "AdditiveTerms", "features_of"]


@dataclass(frozen=True, eq=False)
class AdditiveTerms:
    """The variables of an additive model: the linear part, then levels of each feature, then cells of each pair.

    Parameters
    ----------
    bins : sequence of FeatureBins, of length n_features
        The levels of each feature.
    shares : sequence of ndarray of float64, each of shape (n_levels,)
        Share of the rows at each level.
    feature_scales : ndarray of float64, shape (n_features,)
        Factors of the features in the linear part.
    fill : ndarray of float64, shape (n_features,)
        The mean of each feature, for missing values.
    step_weight : float
        Factor for the scales of steps.
    linear : bool
        Whether there is a linear part.
    pairs : sequence of Pair
        The pairs of features that have a function of both.
    """

    bins: Sequence[FeatureBins]
    shares: Sequence[np.ndarray]
    feature_scales: np.ndarray
    fill: np.ndarray
    step_weight: float
    linear: bool = True
    pairs: Sequence[Pair] = ()

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.feature_scales)

    @property
    def n_linear(self) -> int:
        """Number of variables of the linear part."""
        return self.n_features if self.linear else 0

    @property
    def n_variables(self) -> int:
        """Number of variables."""
        return self.n_linear + len(self.scales)

    @property
    def linear_scales(self) -> np.ndarray:
        """Factors of the features in the linear part: float64, shape (n_linear,)."""
        return self.feature_scales[: self.n_linear]

    @cached_property
    def columns(self) -> np.ndarray:
        """The columns of codes, as `ranksvm._compiled.coded` describes them: int64, shape (n_columns, 7)."""
        return coded_columns(self.bins, self.pairs)[0]

    @cached_property
    def scales(self) -> np.ndarray:
        """The scale of each variable of a level or cell: float64, shape (n_variables - n_linear,)."""
        found = [self.scales_of(j) for j in range(self.n_features)]
        for pair in self.pairs:
            found.append(np.outer(*(self.pair_scales(pair, each) for each in (0, 1))).ravel())
        return np.concatenate(found) if found else np.empty(0)

    @property
    def level_basis(self) -> "AdditiveBasis":
        """The map from weights to vectors with a value for each level of each column, not for cells of two columns."""
        no_rows = np.zeros((0, len(self.columns)), dtype=np.uint8)
        return AdditiveBasis(self, coded.CodedFeatures(no_rows, self.columns, self.scales))

    def scales_of(self, feature: int) -> np.ndarray:
        """The scale of each variable of the levels of a feature.

        Parameters
        ----------
        feature : int
            Number of the feature.

        Returns
        -------
        ndarray of float64, shape (n_levels - 1,)
            The scales.
        """
        return level_scales(self.bins[feature], self.shares[feature], self.step_weight)

    def pair_scales(self, pair: Pair, which: int) -> np.ndarray:
        """The scale of each variable of one feature of a pair.

        Parameters
        ----------
        pair : Pair
            The pair.
        which : {0, 1}
            Its first or second feature.

        Returns
        -------
        ndarray of float64, shape (n_levels - 1,)
            The scales, for a step weight of 1.
        """
        feature, bins = (pair.first, pair.first_bins) if which == 0 else (pair.second, pair.second_bins)
        return level_scales(bins, self.coarse_shares(feature, bins), 1.0)

    def coarse_shares(self, feature: int, bins: FeatureBins) -> np.ndarray:
        """The share of the rows at each coarser level of a feature.

        Parameters
        ----------
        feature : int
            Number of the feature.
        bins : FeatureBins
            The coarser levels.

        Returns
        -------
        ndarray of float64, shape (bins.n_levels,)
            The shares.
        """
        return np.bincount(new_levels(self.bins[feature], bins), self.shares[feature], minlength=bins.n_levels)

    def variables_at(self, first: int, last: int) -> np.ndarray:
        """The variables of some columns of codes: the levels of features, and the cells of pairs.

        Parameters
        ----------
        first, last : int
            The columns are ``first`` to ``last - 1``.

        Returns
        -------
        ndarray of int64
            Their numbers.
        """
        starts = np.append(self.columns[:, 5], len(self.scales))
        return np.arange(self.n_linear + starts[first], self.n_linear + starts[last])

    def rows_of(self, codes: np.ndarray, first: int, last: int) -> np.ndarray:
        """The values of the variables of some columns of codes, for some rows.

        Parameters
        ----------
        codes : ndarray of uint8, shape (n_rows, n_columns)
            The codes.
        first, last : int
            The columns are ``first`` to ``last - 1``.

        Returns
        -------
        ndarray of float64, shape (n_rows, number of variables)
            The values by which the weights are multiplied.
        """
        own, scales = self.columns[first:last].copy(), self.scales[self.variables_at(first, last) - self.n_linear]
        own[:, 5:] -= own[0, 5:]
        features = coded.CodedFeatures(np.ascontiguousarray(codes[:, first:last]), own, scales)
        found = np.empty((len(codes), len(scales)))
        coded.gather(coded.coded_products(None, np.empty(0), features, None), 0, len(codes), found)
        return found

    def design(self, X: Features) -> "AdditiveDesign":
        """The design matrix of rows.

        Parameters
        ----------
        X : ndarray or CSR matrix, shape (n_rows, n_features)
            The features; NaN is a missing value.

        Returns
        -------
        AdditiveDesign
            Its products.
        """
        X = as_floats(X)
        return AdditiveDesign.of(features_of(X, self), codes_of(self.bins, X), self)

    def row_bytes(self, X_bytes: float) -> float:
        """Bytes of a row that a product reads.

        Parameters
        ----------
        X_bytes : float
            Bytes of a row of X.

        Returns
        -------
        float
            ``X_bytes`` if there is a linear part, plus one for each code.
        """
        return (X_bytes if self.linear else 0.0) + len(self.columns)

    def with_pairs(self, pairs: Sequence[Pair]) -> "AdditiveTerms":
        """The variables of the same features, with other pairs of features.

        Parameters
        ----------
        pairs : sequence of Pair
            The pairs.

        Returns
        -------
        AdditiveTerms
            The variables.
        """
        return replace(self, pairs=tuple(pairs))

    def function(self, w: np.ndarray) -> AdditiveFunction:
        """The scoring function of weights of all variables.

        Parameters
        ----------
        w : ndarray of float64, shape (n_variables,)
            The weights.

        Returns
        -------
        AdditiveFunction
            The function.
        """
        values = self.level_basis.expanded(w)[self.n_linear :]
        ends = np.append(self.columns[:, 6], len(values)).tolist()
        parts = [values[start:stop] for start, stop in pairwise(ends)]
        interactions = [
            Interaction(*pair, part.reshape(pair.first_bins.n_levels, pair.second_bins.n_levels))
            for pair, part in zip(self.pairs, parts[len(self.bins) :], strict=True)
        ]
        coef = w[: self.n_linear] * self.linear_scales if self.linear else np.zeros(self.n_features)
        return AdditiveFunction(coef, self.fill, self.bins, parts[: len(self.bins)], interactions)

    def variables_of(self, function: AdditiveFunction) -> np.ndarray:
        """The weights of all variables that give a function, which must have the same levels and pairs.

        Parameters
        ----------
        function : AdditiveFunction
            The function.

        Returns
        -------
        ndarray of float64, shape (n_variables,)
            The weights; 0 for variables whose scale is 0.
        """
        parts = [function.coef[: self.n_linear]]
        for bins, shape in zip(self.bins, function.shapes, strict=True):
            parts.append(increments(shape, bins))
        for pair, each in zip(self.pairs, function.interactions, strict=True):
            rows = increments(each.values, pair.first_bins)
            parts.append(increments(rows.T, pair.second_bins).T.ravel())
        scales = np.concatenate([self.linear_scales, self.scales])
        values = np.concatenate(parts)
        return np.divide(values, scales, out=np.zeros_like(values), where=scales > 0.0)


@dataclass(frozen=True, eq=False)
class AdditiveBasis:
    """The map between weights and vectors of weights of unscaled features, then values at levels: see `Basis`.

    Parameters
    ----------
    terms : AdditiveTerms
        The variables.
    features : CodedFeatures
        Which values the vectors have: one for each level of each column of codes, or for each cell of two columns.
    """

    terms: AdditiveTerms
    features: coded.CodedFeatures

    @property
    def n_numbers(self) -> int:
        """Length of the vectors."""
        n_numbers: int = self.terms.n_linear + self.features.n_numbers
        return n_numbers

    def expanded(self, w: np.ndarray) -> np.ndarray:
        n_linear = self.terms.n_linear
        values = np.empty(self.n_numbers)
        np.multiply(w[:n_linear], self.terms.linear_scales, out=values[:n_linear])
        self.features.values(np.ascontiguousarray(w[n_linear:]), values[n_linear:])
        return values

    def contracted(self, total: np.ndarray) -> np.ndarray:
        n_linear = self.terms.n_linear
        found = np.zeros(self.terms.n_variables)
        np.multiply(total[:n_linear], self.terms.linear_scales, out=found[:n_linear])
        self.features.gather_sums(total[n_linear:], found[n_linear:])
        return found


class AdditiveDesign:
    """Scaled features, and codes of one byte for their levels: a `DesignMatrix` whose columns are not stored as floats.

    Parameters
    ----------
    features : DesignMatrix
        The features.
    codes : ndarray of uint8, shape (n_rows, n_columns)
        The level of each value, then the cell of each pair.
    terms : AdditiveTerms
        The variables.

    Examples
    --------
    >>> import numpy as np
    >>> from ranksvm.additive import AdditiveDesign, AdditiveTerms, codes_of, feature_bins, level_shares
    >>> from ranksvm.data import as_design_matrix
    >>> X = np.array([[1.0], [2.0], [4.0], [4.0]])
    >>> bins = feature_bins(X, 3)
    >>> codes = codes_of(bins, X)
    >>> terms = AdditiveTerms(bins, level_shares(bins, codes), np.array([1 / 3]), np.zeros(1), 1.0)
    >>> rows = np.empty((4, 3))
    >>> AdditiveDesign(as_design_matrix(X), codes, terms).gather(None, 0, 4, rows)
    >>> rows.round(2).tolist()
    [[0.33, 0.0, 0.0], [0.67, 0.5, 0.0], [1.33, 0.5, 0.61], [1.33, 0.5, 0.61]]
    """

    dense = True
    dtype = np.dtype(np.float64)

    def __init__(self, features: DesignMatrix, codes: np.ndarray, terms: AdditiveTerms):
        self.features = features
        self.codes = codes
        self.terms = terms
        self.file = features.file
        self.n_features = terms.n_variables
        self.row_bytes = terms.row_bytes(features.row_bytes)
        self._coded = coded.CodedFeatures(codes, terms.columns, terms.scales, paired=True)

    @classmethod
    def of(cls, features: DesignMatrix, codes: np.ndarray, terms: AdditiveTerms) -> "AdditiveDesign":
        """The design matrix of features and the codes of their levels, with the cells of the pairs added.

        Parameters
        ----------
        features : DesignMatrix
            The features.
        codes : ndarray of uint8, shape (n_rows, n_features)
            The level of each value.
        terms : AdditiveTerms
            The variables.

        Returns
        -------
        AdditiveDesign
            The design matrix.
        """
        return cls(features, cell_tables(terms.bins, terms.pairs).appended(codes), terms)

    def with_terms(self, terms: AdditiveTerms) -> "AdditiveDesign":
        """The same rows with other variables for the same levels; their codes are kept.

        Parameters
        ----------
        terms : AdditiveTerms
            The variables.

        Returns
        -------
        AdditiveDesign
            The design matrix.
        """
        codes = self.codes if not self.terms.pairs else np.ascontiguousarray(self.codes[:, : terms.n_features])
        return AdditiveDesign.of(self.features, codes, terms)

    def products(self, rows: np.ndarray | None = None, double: bool = True) -> RowProducts:
        features = self.features.products(rows) if self.terms.linear else None
        return coded.coded_products(features, self.terms.linear_scales, self._coded, rows)

    @property
    def vector_basis(self) -> "AdditiveBasis":
        """The map from weights to the vectors that products take."""
        return AdditiveBasis(self.terms, self._coded)

    def scaled_features(self, rows: np.ndarray | None) -> np.ndarray:
        """The scaled features of some rows, as in the linear part.

        Parameters
        ----------
        rows : ndarray of int64, shape (n_rows,), optional
            Their numbers; by default all rows.

        Returns
        -------
        ndarray of float64, shape (n_rows, n_linear)
            The features times their scales.
        """
        n_rows = len(self.codes) if rows is None else len(rows)
        found = np.empty((n_rows, self.terms.n_linear))
        if self.terms.linear:
            self.features.gather(rows, 0, n_rows, found)
            found *= self.terms.linear_scales
        return found

    def accumulate_squares(self, rows, start, stop, u_range, out):
        block = np.empty((stop - start, self.n_features))
        self.gather(rows, start, stop, block)
        out += u_range @ (block * block)

    def gather(self, rows, start, stop, out_range):
        if rows is None:
            coded.gather(self.products(), start, stop, out_range)
        else:  # products check all rows that they are given
            coded.gather(self.products(rows[start:stop]), 0, stop - start, out_range)

    def largest(self, n_threads=1):
        largest = [self.features.largest(n_threads) * self.terms.linear_scales] if self.terms.linear else []
        return np.concatenate([*largest, self.terms.scales])

    @property
    def most_entries(self):
        # the value of a level is a sum of steps, and a score is a sum of these values and of features; sums over the
        # cells of two columns are also added up over the levels of one column
        most_steps = max((each.n_steps for each in self.terms.bins), default=0)
        return self.terms.n_linear + self.codes.shape[1] + 3 * most_steps

    def pair_sums(self, derivative: np.ndarray, n_levels: int) -> np.ndarray:
        """Sums of a derivative over the rows of each cell of every two features, by `interactions.pair_sums`.

        Parameters
        ----------
        derivative : ndarray of float64, shape (n_rows,)
            The derivative with respect to the score of each row.
        n_levels : int
            Maximum number of levels of a feature.

        Returns
        -------
        ndarray of float64, shape (n_features * (n_features - 1) / 2, n_levels, n_levels)
            The sums, in the order of `all_pairs`.
        """
        return pair_sums(self.terms, self.codes, derivative, n_levels)

    def cell_counts(self, sample_weight: np.ndarray | None = None) -> np.ndarray:
        """Number of rows in each cell of each pair; with weights, their sums.

        Parameters
        ----------
        sample_weight : ndarray of float64, shape (n_rows,), optional
            How often each row counts.

        Returns
        -------
        ndarray of int64, or of float64 for weights, shape (number of all cells,)
            The numbers.
        """
        n = self.terms.n_features
        counts = [
            np.bincount(self.codes[:, n + k], sample_weight, pair.n_cells) for k, pair in enumerate(self.terms.pairs)
        ]
        return np.concatenate([np.empty(0, dtype=np.int64), *counts])

    def taken(self, rows):
        return AdditiveDesign(self.features.taken(rows), self.codes[rows], self.terms)

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return AdditiveDesign, (self.features, self.codes, self.terms)


def features_of(X: Features | TwoBlocks, terms: AdditiveTerms) -> DesignMatrix:
    """The features of rows for the linear part: X with means in place of missing values.

    Parameters
    ----------
    X : ndarray or CSR matrix of float32 or float64, or TwoBlocks, shape (n_rows, n_features)
        The rows, not copied if no feature has missing values.
    terms : AdditiveTerms
        The variables.

    Returns
    -------
    DesignMatrix
        The features.
    """
    complete = not any(each.missing for each in terms.bins)
    if isinstance(X, TwoBlocks):
        blocks = [block if complete else filled(block, terms.fill) for block in (X.first, X.second)]
        return TwoBlockDesign(TwoBlocks(*blocks))
    X = X.tocsr() if is_sparse(X) else X
    return as_design_matrix(X if complete else filled(X, terms.fill))
