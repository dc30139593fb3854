"""Levels of the features of rows on a cluster, and parts of additive models."""

from collections.abc import Sequence

import numpy as np
from distributed import Future

from ranksvm._util.types import Features
from ranksvm.additive import AdditiveDesign, AdditiveTerms, FeatureBins, codes_of
from ranksvm.additive.bins import FeatureStatistics, described_sample, level_counts, missing_features, quantile_rows
from ranksvm.dask.cluster import Cluster
from ranksvm.dask.rows import Rows
from ranksvm.data import frames
from ranksvm.fits.additive_levels import AdditiveLevels, categorical_and_signs, feature_scales
from ranksvm.fits.additive_options import AdditiveOptions
from ranksvm.terms.parts.part import Part
from ranksvm.terms.parts.tree_sum import tree_sum

__all__ = ["levels_on_cluster", "with_terms"]


def levels_on_cluster(
    cluster: Cluster,
    rows: Sequence[Future],
    n_features: int,
    options: AdditiveOptions,
    feature_names: Sequence[str] | None,
    missing: np.ndarray | None = None,
) -> AdditiveLevels:
    """The levels of the features of all rows, the same as in a fit in one process.

    The rows that determine the quantiles, at most 65,536, go to one worker, which sorts them. Then each part counts its
    rows at each level.

    Parameters
    ----------
    cluster : Cluster
        The cluster.
    rows : sequence of Future
        The `Rows` of each part, in the order of the data.
    n_features : int
        Number of features.
    options : AdditiveOptions
        The hyper-parameters.
    feature_names : sequence of str, optional
        Names of the features, by which hyper-parameters may name them.
    missing : ndarray of bool, shape (n_features,), optional
        Whether the missing values of each feature have a level; None: if any row has one.

    Returns
    -------
    AdditiveLevels
        The levels.
    """
    categorical, signs = categorical_and_signs(options, n_features, feature_names)
    sizes, found_missing = zip(*cluster.results(cluster.mapped(_counted, rows, n_features)), strict=True)
    ends = np.cumsum(sizes)
    places = quantile_rows(int(ends[-1]))
    owned = np.split(places, np.searchsorted(places, ends[:-1]))
    starts = ends - np.array(sizes)
    chosen = [own - start for own, start in zip(owned, starts.tolist(), strict=True)]
    pieces = cluster.mapped(_piece, rows, n_features, second_arguments=chosen)
    how = np.any(found_missing, axis=0) if missing is None else missing, options.max_bins, categorical
    (found,) = cluster.results([cluster.client.submit(_described, pieces, *how, pure=False)])
    bins, statistics = found
    counts, total = tree_sum(cluster.results(cluster.mapped(_levels, rows, bins)), _plus)
    shares = np.split(counts / total, np.cumsum([each.n_levels for each in bins])[:-1])
    scales = feature_scales(statistics.ranges, categorical)
    terms = AdditiveTerms(bins, shares, scales, statistics.mean, float(options.step_weight), options.linear)
    return AdditiveLevels(terms, statistics.ranges, statistics.level_means, signs, feature_names)


def with_terms(part: Part, terms: AdditiveTerms) -> Part:
    """A part with the variables of an additive model; it shares X, and the codes if the part has any.

    Parameters
    ----------
    part : Part
        The rows.
    terms : AdditiveTerms
        The variables.

    Returns
    -------
    Part
        The part.
    """
    found = Part(part.X, part.pairs, terms)
    if isinstance(part.features, AdditiveTerms):
        assert isinstance(part.design, AdditiveDesign)
        found.design = part.design.with_terms(terms)
    return found


def _counting(rows: Rows) -> np.ndarray | None:
    """The rows with positive weight; None if there are no weights, so that each row counts once."""
    weight = rows.weights.get("sample_weight")
    return None if weight is None else np.flatnonzero(weight > 0.0)


def _counted(rows: Rows, n_features: int) -> tuple[int, np.ndarray]:
    """Number of rows with positive weight, and which features have missing values."""
    counting = _counting(rows)
    n_rows = len(rows) if counting is None else len(counting)
    return n_rows, missing_features(rows.with_features(n_features).X) if len(rows) else np.zeros(n_features, bool)


def _piece(rows: Rows, chosen: np.ndarray, n_features: int) -> tuple[Features, np.ndarray | None]:
    """Some of the rows with positive weight, and their weights."""
    counting = _counting(rows)
    own = chosen if counting is None else counting[chosen]
    return rows.with_features(n_features).X[own], None if counting is None else rows.weights["sample_weight"][own]


def _described(
    pieces: list[tuple[Features, np.ndarray | None]], missing: np.ndarray, max_bins: int, categorical: list[int]
) -> tuple[list[FeatureBins], FeatureStatistics]:
    """The levels and statistics of the rows of all parts."""
    pieces = [piece for piece in pieces if piece[0].shape[0]]
    weights = [weight for _, weight in pieces if weight is not None]
    X = frames.stacked(*(X for X, _ in pieces))
    return described_sample(X, missing, max_bins, categorical, 1, np.concatenate(weights) if weights else None)


def _levels(rows: Rows, bins: list[FeatureBins]) -> tuple[np.ndarray, float]:
    """Number of rows at each level, or the sums of their weights, and the total."""
    weight = rows.weights.get("sample_weight")
    if not len(rows):
        return np.zeros(sum(each.n_levels for each in bins)), 0.0
    codes = codes_of(bins, rows.with_features(len(bins)).X)
    return level_counts(bins, codes, weight).astype(np.float64), float(len(rows) if weight is None else weight.sum())


def _plus(one: tuple[np.ndarray, float], other: tuple[np.ndarray, float]) -> tuple[np.ndarray, float]:
    return one[0] + other[0], one[1] + other[1]
