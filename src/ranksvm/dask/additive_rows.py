"""The training set of an additive model on a cluster: rows, the levels (bins) of their features, and the loss."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from distributed import Future

from ranksvm._util.types import Features
from ranksvm.additive import AdditiveDesign, AdditiveTerms, FeatureBins, codes_of
from ranksvm.additive.bins import (
    FeatureStatistics,
    described_sample,
    level_counts,
    missing_features,
    quantile_rows,
    shares_of_counts,
)
from ranksvm.dask.backend import DaskBackend
from ranksvm.dask.cluster import Cluster
from ranksvm.dask.preparation import DescribeRows, Prepared, parts_of_rows, refuse_no_pairs
from ranksvm.dask.rows import Columns, Rows
from ranksvm.data import frames
from ranksvm.exceptions import NoComparablePairsError
from ranksvm.fits.additive_levels import AdditiveLevels, categorical_and_signs, feature_scales
from ranksvm.fits.additive_options import AdditiveOptions
from ranksvm.fits.additive_partitioned import SAMPLE_ROWS
from ranksvm.terms.parts.part import Part
from ranksvm.terms.parts.term import PartitionedTerm
from ranksvm.terms.parts.tree_sum import tree_sum

__all__ = ["AdditiveRows", "describing", "levels_on_cluster"]


class AdditiveRows:
    """Rows on a cluster, with the levels of their features; implements the protocol `AdditiveParts`.

    `term` makes the loss for one set of variables. All these losses share the rows and their codes, which are one byte
    for each value: its level.

    Parameters
    ----------
    cluster : Cluster
        The cluster.
    prepared : Prepared
        The rows.
    levels : AdditiveLevels
        The levels of their features.
    options : AdditiveOptions
        The hyper-parameters.
    n_threads : int
        Number of threads in this process.
    prepare_again : callable, optional
        Prepares the rows again after their workers were lost; None: losing workers is an error.

    Attributes
    ----------
    made : list of PartitionedTerm
        The results of `term` so far.
    """

    def __init__(
        self,
        cluster: Cluster,
        prepared: Prepared,
        levels: AdditiveLevels,
        options: AdditiveOptions,
        n_threads: int,
        prepare_again: Callable[[], Prepared] | None = None,
    ):
        self.levels = levels
        self.made: list[PartitionedTerm] = []
        self._cluster, self._n_threads, self._prepare_again = cluster, n_threads, prepare_again
        self._how = options.pair_selection, options.pair_weighting, True
        self._parts = parts_of_rows(cluster, prepared, *self._how)

    def term(self, terms: AdditiveTerms, options: AdditiveOptions) -> PartitionedTerm:
        """The loss over all parts of the rows, with the variables of ``terms``."""
        prepare_again = self._prepare_again

        def make_parts() -> list[Future]:
            assert prepare_again is not None
            return self._with_terms(parts_of_rows(self._cluster, prepare_again(), *self._how), terms)

        backend = DaskBackend(self._cluster, None if prepare_again is None else make_parts)
        backend.put(self._with_terms(self._parts, terms))
        known: dict[str, Any] = {"sample_rows": SAMPLE_ROWS}
        if self.made and (sample := self.made[0].fetch()) is not None:
            known["sample"] = Part(sample.X, sample.pairs, terms)
        term = PartitionedTerm(backend, options.loss, self._n_threads, **known)
        self._parts = backend.parts  # later calls share the codes of these parts
        self.made.append(term)
        refuse_no_pairs(term)
        return term

    def close(self) -> None:
        """Free the rows on the workers, without waiting for the garbage collector."""
        self._parts = []
        for term in self.made:
            term.backend.close()

    def _with_terms(self, parts: list[Future], terms: AdditiveTerms) -> list[Future]:
        return self._cluster.mapped(_part_with_terms, parts, terms)


def describing(cluster: Cluster, options: AdditiveOptions) -> DescribeRows:
    """Return a function that computes the levels of the features from all rows, to pass to `prepared_rows`."""

    def levels(rows: list[Future], columns: Columns) -> AdditiveLevels:
        assert columns.n_features is not None
        names = None if columns.names is None else columns.names.tolist()
        return levels_on_cluster(cluster, rows, columns.n_features, options, names)

    return levels


def levels_on_cluster(
    cluster: Cluster,
    rows: Sequence[Future],
    n_features: int,
    options: AdditiveOptions,
    feature_names: Sequence[str] | None,
    missing: np.ndarray | None = None,
) -> AdditiveLevels:
    """Compute the levels of the features from all rows; they are the same as in a fit in one process.

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
        Whether the missing values of each feature have a level; None: they have one if any row has a missing value.

    Returns
    -------
    AdditiveLevels
        The levels.

    Raises
    ------
    NoComparablePairsError
        When no row has a positive weight.
    """
    categorical, signs = categorical_and_signs(options, n_features, feature_names)
    sizes, found_missing = zip(*cluster.results(cluster.mapped(_counted, rows, n_features)), strict=True)
    ends = np.cumsum(sizes)
    if not ends[-1]:
        raise NoComparablePairsError("No comparable pair: there are no rows of positive weight.")
    places = quantile_rows(int(ends[-1]))
    owned = np.split(places, np.searchsorted(places, ends[:-1]))
    starts = ends - np.array(sizes)
    chosen = [own - start for own, start in zip(owned, starts.tolist(), strict=True)]
    pieces = cluster.mapped(_piece, rows, n_features, second_arguments=chosen)
    how = np.any(found_missing, axis=0) if missing is None else missing, options.max_bins, categorical
    (found,) = cluster.results([cluster.client.submit(_described, pieces, *how, pure=False)])
    bins, statistics = found
    counts, total = tree_sum(cluster.results(cluster.mapped(_levels, rows, bins)), _plus)
    shares = shares_of_counts(bins, counts, total)
    scales = feature_scales(statistics.ranges, categorical)
    terms = AdditiveTerms(bins, shares, scales, statistics.mean, float(options.step_weight), options.linear)
    return AdditiveLevels(terms, statistics.ranges, statistics.level_means, signs, feature_names)


def _part_with_terms(part: Part, terms: AdditiveTerms) -> Part:
    """A new part with the variables ``terms``; it shares X with the given part, and the codes if that part has them."""
    found = Part(part.X, part.pairs, terms, part.sample_weight)
    if isinstance(part.features, AdditiveTerms):
        assert isinstance(part.design, AdditiveDesign)
        found.design = part.design.with_terms(terms)
    return found


def _counting(rows: Rows) -> np.ndarray | None:
    """Row numbers of the rows with positive weight; None if rows have no weights, so that all of them count."""
    weight = rows.weights.get("sample_weight")
    return None if weight is None else np.flatnonzero(weight > 0.0)


def _counted(rows: Rows, n_features: int) -> tuple[int, np.ndarray]:
    """Number of rows with positive weight, and which features have missing values."""
    counting = _counting(rows)
    n_rows = len(rows) if counting is None else len(counting)
    return n_rows, missing_features(rows.with_features(n_features).X) if len(rows) else np.zeros(n_features, bool)


def _piece(rows: Rows, chosen: np.ndarray, n_features: int) -> tuple[Features, np.ndarray | None]:
    """Features and weights of some rows; ``chosen`` has their numbers among the rows with positive weight."""
    counting = _counting(rows)
    own = chosen if counting is None else counting[chosen]
    return rows.with_features(n_features).X[own], None if counting is None else rows.weights["sample_weight"][own]


def _described(
    pieces: list[tuple[Features, np.ndarray | None]], missing: np.ndarray, max_bins: int, categorical: list[int]
) -> tuple[list[FeatureBins], FeatureStatistics]:
    """The levels and statistics of the features, from the chosen rows of all parts."""
    pieces = [piece for piece in pieces if piece[0].shape[0]]
    weights = [weight for _, weight in pieces if weight is not None]
    X = frames.stacked(*(X for X, _ in pieces))
    return described_sample(X, missing, max_bins, categorical, 1, np.concatenate(weights) if weights else None)


def _levels(rows: Rows, bins: list[FeatureBins]) -> tuple[np.ndarray, float]:
    """Number of rows, or sum of their weights, for each level of each feature of a part, and for all its rows."""
    weight = rows.weights.get("sample_weight")
    if not len(rows):
        return np.zeros(sum(each.n_levels for each in bins)), 0.0
    codes = codes_of(bins, rows.with_features(len(bins)).X)
    return level_counts(bins, codes, weight).astype(np.float64), float(len(rows) if weight is None else weight.sum())


def _plus(one: tuple[np.ndarray, float], other: tuple[np.ndarray, float]) -> tuple[np.ndarray, float]:
    return one[0] + other[0], one[1] + other[1]
