"""The levels of features: intervals between quantiles, categories, and a level for missing values."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import NamedTuple

import numpy as np

import ranksvm._compiled.coded as coded
from ranksvm._util.checks import is_sparse
from ranksvm._util.threads import even_ranges, parallel_map
from ranksvm._util.types import Features
from ranksvm.data.design_matrix import DenseDesign, TwoBlocks
from ranksvm.data.validation import check_not_infinite, first_place
from ranksvm.exceptions import DataError

__all__ = [
    "MAX_BINS",
    "FeatureBins",
    "FeatureStatistics",
    "as_floats",
    "check_missing",
    "codes_of",
    "described_features",
    "described_sample",
    "feature_bins",
    "level_counts",
    "level_shares",
    "missing_features",
    "quantile_rows",
    "shares_of_counts",
]

# Rows of features that may have missing values.
Rows = Features | TwoBlocks

# Maximum number of bins. A code (number of a level) is one byte, and one of its 256 values is for missing values.
MAX_BINS = 255
# Quantiles are computed from at most this many rows, one drawn from each of as many ranges of equal length: the
# standard deviation of the share of the rows below a cut is then at most 0.002. (If rows at even distances were taken
# instead, and each range were one query whose rows have an order, all rows could have the same place in that order.)
QUANTILE_ROWS = 1 << 16
SEED = 0
# Added to values, it replaces -0 by 0: which of the two comes first in a sort depends on the machine.
ZERO = 0.0
# Number of rows whose levels are computed in one call; rows of sparse X are made dense in blocks of the same size.
CODED_ROWS = 1 << 13
# Number of features whose values are copied and sorted together. In a row of X they are adjacent, so that copying reads
# few cache lines; the copies are small, so that the next features can reuse their memory.
FEATURES_TOGETHER = 8


@dataclass(frozen=True, eq=False)
class FeatureBins:
    """The levels of one feature.

    Level 0 has the values below the first cut, level k those from cut k to the next (``cuts[k - 1] <= x < cuts[k]``).
    Missing values have the level after these. For a categorical feature, level 0 has the values that are none of
    ``categories``.

    Parameters
    ----------
    cuts : ndarray of float64, shape (n_cuts,)
        The cuts, ascending: each is in the middle between two neighboring values of the training data.
    missing : bool
        Whether missing values (NaN) have a level.
    categories : ndarray of float64, shape (n_categories,), or None
        The values that have a level each, ascending, if the feature is categorical.

    Examples
    --------
    >>> import numpy as np
    >>> from ranksvm.additive import FeatureBins
    >>> bins = FeatureBins(np.array([0.5, 2.0]), missing=True)
    >>> bins.levels_of(np.array([0.0, 0.5, 7.0, np.nan])).tolist()
    [0, 1, 2, 3]
    """

    cuts: np.ndarray
    missing: bool = False
    categories: np.ndarray | None = None

    @property
    def n_steps(self) -> int:
        """Number of steps, one for each cut: the value of an interval is the sum of the steps at the cuts below it."""
        return len(self.cuts)

    @property
    def n_unordered_levels(self) -> int:
        """Number of levels whose values are not sums of steps: categories, and missing values."""
        return (0 if self.categories is None else len(self.categories)) + int(self.missing)

    @property
    def n_levels(self) -> int:
        """Number of levels."""
        return self.n_steps + self.n_unordered_levels + 1

    def levels_of(self, values: np.ndarray) -> np.ndarray:
        """The level of each value.

        Parameters
        ----------
        values : ndarray of float32 or float64, shape (n_values,)
            Values of the feature.

        Returns
        -------
        ndarray of uint8, shape (n_values,)
            The levels; ``n_levels`` for missing values if they have no level.
        """
        if self.categories is None:
            levels = np.searchsorted(self.cuts, values, side="right")
        else:
            categories = self.categories.astype(values.dtype)
            place = np.searchsorted(categories, values)
            # a number of float32 may stand for several categories of float64: it is none of them
            known = np.searchsorted(categories, values, side="right") == place + 1
            levels = np.where(known, place + 1, 0)
        last = self.n_levels - 1 if self.missing else self.n_levels
        return np.where(np.isnan(values), last, levels).astype(np.uint8)

    def coarser(self, shares: np.ndarray, n_levels: int) -> "FeatureBins":
        """Merge levels into fewer ones of about equal shares of the rows; of categories, keep the most frequent.

        Parameters
        ----------
        shares : ndarray of float64, shape (self.n_levels,)
            Share of the rows at each level.
        n_levels : int
            Maximum number of levels, including the level for missing values if there is one.

        Returns
        -------
        FeatureBins
            The new levels, which are unions of the levels of this object.
        """
        max_other_levels = n_levels - 1 - int(self.missing)
        if self.categories is not None:
            kept = np.sort(np.argsort(-shares[1 : 1 + len(self.categories)], kind="stable")[:max_other_levels])
            return FeatureBins(self.cuts, self.missing, self.categories[kept])
        at = _equal_cuts(shares[: self.n_steps + 1], max_other_levels + 1)
        return FeatureBins(self.cuts[at - 1], self.missing)


# The levels of a feature, and the mean of its values at each level.
Described = tuple[FeatureBins, np.ndarray]


class FeatureStatistics(NamedTuple):
    """What a model stores about its features, computed over the rows that `quantile_rows` selects.

    Attributes
    ----------
    mean : ndarray of float64, shape (n_features,)
        Mean of each feature without missing values, rounded to the type of X, in which it replaces missing values; 0
        for a feature without values.
    ranges : ndarray of float64, shape (n_features, 2)
        The smallest and the largest value.
    level_means : list of ndarray of float64, each of shape (n_levels,)
        Mean of each feature at each level. For missing values, levels without rows, and level 0 (all other categories)
        of a categorical feature, it is the mean of the whole feature.
    """

    mean: np.ndarray
    ranges: np.ndarray
    level_means: list[np.ndarray]


def feature_bins(X: Rows, max_bins: int, categorical: Sequence[int] = (), n_threads: int = 1) -> list[FeatureBins]:
    """The levels of each feature, from its values in the training data.

    A feature with at most ``max_bins`` distinct values has a level for each of them. Otherwise levels have about equal
    shares of the rows. But a value whose share is larger than that counts as if it just filled one level, so that the
    other values are spread over the other levels; it may share its level with neighboring values. Quantiles are exact
    for up to 65,536 rows; for more they are computed from that many, one drawn at random from each of as many ranges of
    equal length. Cuts lie in the middle between two values, so that round-off (of float64 to float32, for instance)
    changes no level. An increasing transformation of a feature changes no level of the data that it is computed from.

    Parameters
    ----------
    X : ndarray or CSR matrix of float32 or float64, or TwoBlocks, shape (n_rows, n_features)
        The features; NaN is a missing value.
    max_bins : int
        Maximum number of levels for values that are not missing, from 2 to 255.
    categorical : sequence of int
        Numbers of the categorical features. The ``max_bins - 1`` most frequent categories have a level each.
    n_threads : int
        Number of threads.

    Returns
    -------
    list of FeatureBins
        The levels.
    """
    return described_features(X, max_bins, categorical, n_threads)[0]


def described_features(
    X: Rows,
    max_bins: int,
    categorical: Sequence[int] = (),
    n_threads: int = 1,
    sample_weight: np.ndarray | None = None,
    missing: np.ndarray | None = None,
) -> tuple[list[FeatureBins], FeatureStatistics]:
    """The levels of each feature, as `feature_bins` gives them, and its statistics, from one sort of its values.

    Parameters
    ----------
    X, max_bins, categorical, n_threads
        As in `feature_bins`.
    sample_weight : ndarray of float64, shape (n_rows,), optional
        How often each row counts.
    missing : ndarray of bool, shape (n_features,), optional
        Whether the missing values of each feature have a level; None: they have one if X has a missing value.

    Returns
    -------
    bins : list of FeatureBins
        The levels.
    statistics : FeatureStatistics
        The statistics.
    """
    rows, weights = _sampled(X, sample_weight)
    missing = missing_features(X, n_threads) if missing is None else missing
    return described_sample(rows, missing, max_bins, categorical, n_threads, weights)


def described_sample(
    rows: Features,
    missing: np.ndarray,
    max_bins: int,
    categorical: Sequence[int] = (),
    n_threads: int = 1,
    weights: np.ndarray | None = None,
) -> tuple[list[FeatureBins], FeatureStatistics]:
    """The result of `described_features`, from the rows on which it depends.

    Parameters
    ----------
    rows : ndarray or CSR matrix of float32 or float64, shape (n_rows, n_features)
        The rows that `quantile_rows` selects.
    missing : ndarray of bool, shape (n_features,)
        Whether the missing values of each feature have a level; True if any of the rows has a missing value.
    max_bins, categorical, n_threads
        As in `feature_bins`.
    weights : ndarray of float64, shape (n_rows,), optional
        How often each of the rows counts.

    Returns
    -------
    bins : list of FeatureBins
        The levels.
    statistics : FeatureStatistics
        The statistics.
    """
    X = rows.tocsc() if is_sparse(rows) else np.ascontiguousarray(rows)
    n_rows, n_features = X.shape
    mean, ranges = np.zeros(n_features), np.zeros((n_features, 2))

    def described(j: int, values: np.ndarray, counted: np.ndarray | None, cuts: np.ndarray) -> Described:
        """The levels of a feature, and its mean at each level, from its ascending values and the places of its cuts."""
        if len(values):
            first = np.append(0, cuts)
            totals, counts = _totals(values, counted, first), _sums(counted, first, len(values))
            mean[j] = values.dtype.type(totals.sum() / counts.sum())
            ranges[j] = values[0] + ZERO, values[-1] + ZERO
        if j in categorical:
            starts, frequencies = _distinct(values, counted)
            kept = np.sort(np.argsort(-frequencies, kind="stable")[: max_bins - 1])
            bins = FeatureBins(np.empty(0), bool(missing[j]), values[starts[kept]].astype(np.float64) + ZERO)
            means = np.full(bins.n_levels, mean[j])
            means[1 : 1 + len(kept)] = values[starts[kept]]
            return bins, means
        bins = FeatureBins(_between(values[cuts - 1], values[cuts]), bool(missing[j]))
        means = np.full(bins.n_levels, mean[j])
        if len(values):
            means[: bins.n_steps + 1] = totals / counts
        return bins, means

    def several(first: int) -> list[Described]:
        columns = _columns(X, first, min(first + FEATURES_TOGETHER, n_features))
        own = range(first, first + len(columns))
        lengths = np.full(len(columns), n_rows)
        if weights is None:
            columns.sort(axis=1)  # missing values come last
            for k, j in enumerate(own):
                if missing[j]:
                    lengths[k] = np.searchsorted(columns[k], np.nan)
            cuts, n_cuts = np.empty((len(columns), max_bins - 1), dtype=np.int64), np.zeros_like(lengths)
            coded.row_cuts(columns, lengths, cuts, n_cuts)
            each = zip(own, columns, lengths, cuts, n_cuts, strict=True)
            return [described(j, values[:n], None, places[:k]) for j, values, n, places, k in each]
        found = []
        for j, column in zip(own, columns, strict=True):
            order = np.argsort(column, kind="stable")
            values, counted = column[order], weights[order]
            if missing[j]:
                n_there = int(np.searchsorted(values, np.nan))
                values, counted = values[:n_there], counted[:n_there]
            starts, counts = _distinct(values, counted)
            found.append(described(j, values, counted, starts[_equal_cuts(counts, max_bins)]))
        return found

    groups = parallel_map(several, range(0, n_features, FEATURES_TOGETHER), n_threads)
    found = list(chain.from_iterable(groups))
    return [bins for bins, _ in found], FeatureStatistics(mean, ranges, [means for _, means in found])


def quantile_rows(n_rows: int, sample_weight: np.ndarray | None = None) -> np.ndarray:
    """The rows from which quantiles are computed: all of positive weight, or 65,536 of these.

    Of more than 65,536 rows, one is drawn at random from each of 65,536 ranges of equal length.

    Parameters
    ----------
    n_rows : int
        Number of rows.
    sample_weight : ndarray of float64, shape (n_rows,), optional
        How often each row counts.

    Returns
    -------
    ndarray of int64
        Their numbers, ascending.
    """
    counted = None if sample_weight is None else np.flatnonzero(sample_weight > 0.0)
    n_rows = n_rows if counted is None else len(counted)
    if n_rows > QUANTILE_ROWS:
        ends = n_rows * np.arange(QUANTILE_ROWS + 1) // QUANTILE_ROWS
        places = np.random.default_rng(SEED).integers(ends[:-1], ends[1:])
        return places if counted is None else counted[places]
    return np.arange(n_rows) if counted is None else counted


def as_floats(X: Features) -> Features:
    """X from a file, in a type that ``fit`` uses: float32 and float64 unchanged, other types as float64.

    Parameters
    ----------
    X : ndarray or CSR matrix
        The features.

    Returns
    -------
    ndarray or CSR matrix
        X itself, or a copy.
    """
    return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)


def codes_of(
    bins: Sequence[FeatureBins],
    X: Rows,
    n_threads: int = 1,
    names: Sequence[str] | None = None,
    first_row: int = 0,
) -> np.ndarray:
    """The level of each value of X.

    Parameters
    ----------
    bins : sequence of FeatureBins, of length n_features
        The levels.
    X : ndarray or CSR matrix of float32 or float64, or TwoBlocks, shape (n_rows, n_features)
        The features.
    n_threads : int
        Number of threads.
    names : sequence of str, optional
        Names of the features, for messages.
    first_row : int
        Number of the first row, for messages.

    Returns
    -------
    ndarray of uint8, shape (n_rows, n_features)
        The levels.

    Raises
    ------
    DataError
        When X has an infinite value, or a missing one in a feature without a level for these.
    """
    n_rows, n_features = X.shape
    codes = np.empty((n_rows, n_features), dtype=np.uint8)
    if isinstance(X, TwoBlocks):
        codes[: len(X.first)] = codes_of(bins, X.first, n_threads, names)
        codes[len(X.first) :] = codes_of(bins, X.second, n_threads, names)
        return codes
    cuts = np.concatenate([each.cuts for each in bins]) if bins else np.empty(0)
    pointers = np.concatenate([[0], np.cumsum([each.n_steps for each in bins])]).astype(np.int64)
    others = [j for j, each in enumerate(bins) if each.categories is not None]
    has_level = np.array([each.missing for each in bins], dtype=bool)

    def code(rows: tuple[int, int]) -> None:
        start, stop = rows
        block = np.ascontiguousarray(X[start:stop].toarray() if is_sparse(X) else X[start:stop])
        part = codes[start:stop]
        finite = coded.feature_levels(block, cuts, pointers, 0, stop - start, part)
        for j in others:
            part[:, j] = bins[j].levels_of(block[:, j])
        if not finite:
            check_not_infinite(block, names, first_row + start)
            check_missing(has_level, block, names, first_row + start)

    ends = [*range(0, n_rows, CODED_ROWS), n_rows]
    parallel_map(code, list(pairwise(ends)), n_threads)
    return codes


def level_shares(
    bins: Sequence[FeatureBins], codes: np.ndarray, sample_weight: np.ndarray | None = None, n_threads: int = 1
) -> list[np.ndarray]:
    """The share of the rows at each level of each feature.

    Parameters
    ----------
    bins : sequence of FeatureBins
        The levels.
    codes : ndarray of uint8, shape (n_rows, n_features)
        The level of each value.
    sample_weight : ndarray of float64, shape (n_rows,), optional
        How often each row counts.
    n_threads : int
        Number of threads.

    Returns
    -------
    list of ndarray of float64
        The shares.
    """
    total = max(1, len(codes)) if sample_weight is None else sample_weight.sum()
    return shares_of_counts(bins, level_counts(bins, codes, sample_weight, n_threads), total)


def shares_of_counts(bins: Sequence[FeatureBins], counts: np.ndarray, total: float) -> list[np.ndarray]:
    """The share of the rows at each level of each feature, from their numbers.

    Parameters
    ----------
    bins : sequence of FeatureBins
        The levels.
    counts : ndarray of int64 or float64, shape (number of all levels,)
        Number of rows at each level, as `level_counts` gives them.
    total : float
        Number of rows; with weights, their sum.

    Returns
    -------
    list of ndarray of float64
        The shares, at most 1: a sum of weights in another order than ``total`` may exceed it by round-off.
    """
    ends = np.cumsum([each.n_levels for each in bins])[:-1]
    return np.split(np.minimum(counts / total, 1.0), ends) if len(bins) else []


def level_counts(
    bins: Sequence[FeatureBins], codes: np.ndarray, sample_weight: np.ndarray | None = None, n_threads: int = 1
) -> np.ndarray:
    """Number of rows at each level, one feature after the other; with weights, their sums.

    Parameters
    ----------
    bins, codes, sample_weight, n_threads
        As in `level_shares`.

    Returns
    -------
    ndarray of int64, or of float64 for weights, shape (number of all levels,)
        The numbers.
    """
    if sample_weight is not None:
        counts = [np.bincount(codes[:, j], sample_weight, each.n_levels) for j, each in enumerate(bins)]
        return np.concatenate([np.empty(0), *counts])
    pointers = np.concatenate([[0], np.cumsum([each.n_levels for each in bins])]).astype(np.int64)

    def counted(rows: tuple[int, int]) -> np.ndarray:
        found = np.zeros(pointers[-1], dtype=np.int64)
        coded.level_counts(codes, pointers, *rows, found)
        return found

    n_ranges = min(n_threads, 1 + len(codes) // CODED_ROWS)
    parts = parallel_map(counted, even_ranges(0, len(codes), n_ranges), n_threads)
    return sum(parts, start=np.zeros(pointers[-1], dtype=np.int64))


def check_missing(has_level: np.ndarray, X: Features, names: Sequence[str] | None = None, first_row: int = 0) -> None:
    """Refuse missing values of features without a level for them.

    Parameters
    ----------
    has_level : ndarray of bool, shape (n_features,)
        Whether the missing values of each feature have a level.
    X : ndarray or CSR matrix, shape (n_rows, n_features)
        The features.
    names : sequence of str, optional
        Names of the features, for messages.
    first_row : int
        Number of the first row, for messages.

    Raises
    ------
    DataError
        When there is such a value; the message has its place.
    """
    place = first_place(X, np.isnan, names, first_row, ~has_level)
    if place is not None:
        raise DataError(f"Input X contains NaN at {place}: this feature had no missing value in the training data.")


def missing_features(X: Rows, n_threads: int = 1) -> np.ndarray:
    """Which features have missing values.

    Parameters
    ----------
    X : ndarray or CSR matrix of float32 or float64, or TwoBlocks, shape (n_rows, n_features)
        The features.
    n_threads : int
        Number of threads.

    Returns
    -------
    ndarray of bool, shape (n_features,)
        True if a value is NaN.
    """
    if isinstance(X, TwoBlocks):
        return missing_features(X.first, n_threads) | missing_features(X.second, n_threads)
    missing = np.zeros(X.shape[1], dtype=bool)
    if is_sparse(X):
        missing[X.indices[np.isnan(X.data)]] = True
        return missing
    for j in np.flatnonzero(~np.isfinite(DenseDesign(np.ascontiguousarray(X)).largest(n_threads))):
        missing[j] = np.isnan(X[:, j]).any()
    return missing


def _sampled(X: Rows, sample_weight: np.ndarray | None) -> tuple[Features, np.ndarray | None]:
    """The rows of X that `quantile_rows` selects, and how often each counts."""
    rows = quantile_rows(X.shape[0], sample_weight)
    if len(rows) == X.shape[0]:
        return X.stacked() if isinstance(X, TwoBlocks) else X, sample_weight
    return X[rows], None if sample_weight is None else sample_weight[rows]


def _columns(X: Features, first: int, last: int) -> np.ndarray:
    """The features ``first`` to ``last - 1``, each in a row."""
    if is_sparse(X):
        return np.ascontiguousarray(X[:, first:last].toarray().T)
    columns = np.empty((last - first, len(X)), X.dtype)
    coded.copy_columns(X, first, last, columns)
    return columns


def _between(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Numbers in the middle between low and high ones; the high one if the middle is not above the low one in float32.

    Trees of XGBoost compare numbers in float32.
    """
    low, high = low.astype(np.float64), high.astype(np.float64)
    middle = low + (high / 2.0 - low / 2.0)
    with np.errstate(over="ignore"):
        above = middle.astype(np.float32) > low.astype(np.float32)
    return np.where(above, middle, high) + ZERO


def _distinct(values: np.ndarray, counted: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Where each of the distinct values begins among ascending values, and how often it counts."""
    starts = np.flatnonzero(np.append(True, values[1:] != values[:-1])[: len(values)])
    return starts, _sums(counted, starts, len(values))


def _totals(values: np.ndarray, counted: np.ndarray | None, starts: np.ndarray) -> np.ndarray:
    """The sum of the values, each as often as it counts, from each start to the next."""
    if counted is not None:
        return np.add.reduceat(values * counted, starts, dtype=np.float64)
    sums = np.empty(len(starts))
    coded.range_sums(values, starts, sums)
    return sums


def _sums(counted: np.ndarray | None, starts: np.ndarray, n_values: int) -> np.ndarray:
    """The number of values, or the sum of their weights, from each start to the next."""
    if counted is None:
        return np.append(starts[1:], n_values)[: len(starts)] - starts
    return np.add.reduceat(counted, starts) if len(starts) else np.empty(0)


def _equal_cuts(counts: np.ndarray, max_bins: int) -> np.ndarray:
    """Where to cut values into at most ``max_bins`` bins of about equal counts: the rule of `coded.value_cuts`.

    A value with a larger count than the average bin counts as if it just filled one bin, so that the other values are
    spread over the other bins; its bin may also contain neighboring values.
    """
    if len(counts) <= max_bins:
        return np.arange(1, len(counts))
    sizes = counts.astype(np.float64)
    capped, largest = sizes, sizes.max()
    for _ in range(max_bins):
        share = capped.sum() / max_bins
        if largest <= share * (1.0 + 1e-12):
            break
        capped, largest = np.minimum(sizes, share), share
    middle = np.cumsum(capped) - capped / 2.0
    starts = np.searchsorted(middle / share, np.arange(1, max_bins))
    return np.unique(starts[(starts > 0) & (starts < len(counts))])
