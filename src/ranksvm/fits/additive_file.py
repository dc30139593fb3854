"""The training set of an additive model whose rows stay in their file, which is read twice or more for the levels."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ranksvm._util.checks import is_sparse
from ranksvm._util.types import CSRMatrix, Features
from ranksvm.additive import AdditiveTerms, FeatureBins, codes_of
from ranksvm.additive.bins import (
    QUANTILE_ROWS,
    FeatureStatistics,
    as_floats,
    described_sample,
    level_counts,
    missing_features,
    quantile_rows,
    shares_of_counts,
)
from ranksvm.datasets.cache.rows import FileRows
from ranksvm.fits.additive_levels import AdditiveLevels, categorical_and_signs, feature_scales
from ranksvm.fits.additive_options import AdditiveOptions
from ranksvm.fits.additive_partitioned import SAMPLE_ROWS
from ranksvm.fits.file_training_set import (
    SAMPLE_SHARE,
    FileTrainingSet,
    check_sample,
    file_backend,
    memory_for,
    planned_bytes,
)
from ranksvm.fits.options import threads_for
from ranksvm.terms.file import FileTerm
from ranksvm.terms.parts.file_backend import FileBackend
from ranksvm.terms.parts.part import Part
from ranksvm.terms.parts.tree_sum import tree_sum

__all__ = ["FileAdditiveTrainingSet", "file_additive_training_set"]

# The rows from which quantiles are computed may take the share QUANTILE_SHARE of the memory. Each of their values is
# counted QUANTILE_COPIES times, because sorting copies it. If not all features fit, the file is read several times,
# each time for a few features.
QUANTILE_SHARE, QUANTILE_COPIES = 0.3, 3


@dataclass(frozen=True, eq=False)
class FileAdditiveTrainingSet:
    """A training set in a file, with the levels of its features.

    Parameters
    ----------
    file : FileTrainingSet
        The rows.
    backend : FileBackend
        The backend that reads them.
    levels : AdditiveLevels
        The levels of the features.
    samples : list of Part
        The sample of the rows, once it has been read.
    """

    file: FileTrainingSet
    backend: FileBackend
    levels: AdditiveLevels
    samples: list[Part] = field(default_factory=list)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.file.n_rows

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return self.file.n_queries

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.file.n_features

    @property
    def n_threads(self) -> int:
        """Number of threads."""
        return self.file.n_threads

    def term(self, terms: AdditiveTerms, options: AdditiveOptions) -> FileTerm:
        """The data term: the loss over all rows as a function of these variables.

        Parameters
        ----------
        terms : AdditiveTerms
            The variables.
        options : AdditiveOptions
            The hyper-parameters.

        Returns
        -------
        FileTerm
            The term.
        """
        limit = options.memory_limit
        copies = 1 + any(each.missing for each in terms.bins)  # without missing values X is not copied
        sample_bytes = int(SAMPLE_SHARE * planned_bytes(limit) / copies)
        term = FileTerm(
            self.backend.computing(terms), options.loss, self.n_threads, sample_bytes, False, sample_rows=SAMPLE_ROWS
        )
        check_sample(int(term.sample_rows * term.row_bytes * copies), limit)
        if not self.samples:
            found = term.fetch()
            self.samples.extend([] if found is None else [found])
            return term
        (sample,) = self.samples
        known: dict[str, Any] = {"info": term.parts_info, "sample": Part(sample.X, sample.pairs, terms)}
        return FileTerm(
            term.backend, options.loss, self.n_threads, sample_bytes, False, sample_rows=SAMPLE_ROWS, **known
        )


def file_additive_training_set(
    data: FileTrainingSet,
    options: AdditiveOptions,
    feature_names: Sequence[str] | None = None,
    missing: np.ndarray | None = None,
) -> FileAdditiveTrainingSet:
    """The training set of an additive model whose rows stay in their file.

    The levels are the same as in a fit in memory, because the same rows determine the quantiles. The first reading
    collects these rows, a second one counts the rows at each level. Each product with the design matrix reads X
    again, block by block, and looks up the level of each value again.

    Parameters
    ----------
    data : FileTrainingSet
        The rows.
    options : AdditiveOptions
        The hyper-parameters.
    feature_names : sequence of str, optional
        Names of the features, by which hyper-parameters may name them.
    missing : ndarray of bool, shape (n_features,), optional
        Whether each feature has a level for missing values; None: it has one if any row has a missing value of it.

    Returns
    -------
    FileAdditiveTrainingSet
        The training set.
    """
    backend = file_backend(data.rows, options.memory_limit, threads_for(options.loss, data.n_threads))
    backend.info()  # rows without pairs are refused before X is read
    categorical, signs = categorical_and_signs(options, data.n_features, feature_names)
    memory = int(QUANTILE_SHARE * memory_for(options.memory_limit))
    bins, statistics = _described(backend, data.rows, options.max_bins, categorical, data.n_threads, memory, missing)
    shares = _shares(backend, data.rows, bins)
    scales = feature_scales(statistics.ranges, categorical)
    terms = AdditiveTerms(bins, shares, scales, statistics.mean, float(options.step_weight), options.linear)
    levels = AdditiveLevels(terms, statistics.ranges, statistics.level_means, signs, feature_names)
    return FileAdditiveTrainingSet(data, backend, levels)


def _described(
    backend: FileBackend,
    rows: FileRows,
    max_bins: int,
    categorical: Sequence[int],
    n_threads: int,
    memory: int,
    known_missing: np.ndarray | None,
) -> tuple[list[FeatureBins], FeatureStatistics]:
    """The results of `described_features`, from one reading; from several if only some features at a time fit."""
    numbers, weights = _chosen_rows(rows)
    n_features = rows.shape[1]
    per_feature = QUANTILE_COPIES * 8 * min(QUANTILE_ROWS, len(numbers))
    step = max(1, min(n_features, memory // per_feature))
    bins: list[FeatureBins] = []
    found: list[FeatureStatistics] = []
    missing = np.zeros(n_features, dtype=bool) if known_missing is None else known_missing.copy()
    for first in range(0, n_features, step):
        columns = slice(first, min(first + step, n_features))
        sample = _collected(backend, rows, numbers, columns, missing if first == 0 else None)
        own = [j - first for j in categorical if columns.start <= j < columns.stop]
        some, statistics = described_sample(sample, missing[columns], max_bins, own, n_threads, weights)
        bins += some
        found.append(statistics)
    means = [mean for each in found for mean in each.level_means]
    return bins, FeatureStatistics(
        np.concatenate([each.mean for each in found]), np.concatenate([each.ranges for each in found]), means
    )


def _chosen_rows(rows: FileRows) -> tuple[np.ndarray, np.ndarray | None]:
    """The rows that determine the quantiles, by their numbers in the file, and how often each of them counts."""
    segments = rows.runs.segments(0, rows.n_queries)
    segments = segments[np.argsort(segments[:, 0], kind="stable")]
    ends = np.cumsum(segments[:, 1] - segments[:, 0])
    weight = rows.sample_weight
    if weight is not None:
        weight = np.concatenate([weight[start:stop] for start, stop in segments.tolist()])
    places = quantile_rows(rows.n_rows, weight)
    segment = np.searchsorted(ends, places, side="right")
    return segments[segment, 1] - ends[segment] + places, None if weight is None else weight[places]


def _collected(
    backend: FileBackend, rows: FileRows, numbers: np.ndarray, columns: slice, missing: np.ndarray | None
) -> Features:
    """Some features of the rows ``numbers``, in this order; also mark features with missing values in ``missing``."""

    def of_block(first: int, last: int, X: Features) -> tuple[np.ndarray, Features, np.ndarray | None]:
        has_missing: np.ndarray | None = None
        if missing is not None:
            rows.check_finite((first, last), X, missing=True)
            has_missing = missing_features(as_floats(X))
        places, positions, place = [], [], 0
        for start, stop in rows.runs.segments(first, last).tolist():
            low, high = np.searchsorted(numbers, [start, stop])
            places.append(np.arange(low, high))
            positions.append(numbers[low:high] - start + place)
            place += stop - start
        rows_of_block = np.concatenate(positions)
        # a slice of copied rows would keep the whole copy in memory
        block = X[rows_of_block][:, columns] if is_sparse(X) else X[rows_of_block, columns]
        return np.concatenate(places), as_floats(block), has_missing

    found = backend.each(of_block)
    for _, _, has_missing in found:
        if missing is not None:
            missing |= has_missing
    order = np.argsort(np.concatenate([places for places, _, _ in found]), kind="stable")
    blocks: list[Any] = [block for _, block, _ in found]  # all dense, or all sparse
    if is_sparse(blocks[0]):
        from scipy import sparse

        stacked: CSRMatrix = sparse.vstack(blocks, format="csr")[order]
        return stacked
    values: np.ndarray = np.concatenate(blocks)[order]
    return values


def _shares(backend: FileBackend, rows: FileRows, bins: Sequence[FeatureBins]) -> list[np.ndarray]:
    """The share of the rows at each level of each feature, from one reading."""

    def of_block(first: int, last: int, X: Features) -> np.ndarray:
        return level_counts(bins, codes_of(bins, as_floats(X)), rows.sample_weight_of(first, last))

    counts = tree_sum(backend.each(of_block), np.ndarray.__add__)
    weight, total = rows.sample_weight, float(rows.n_rows)
    if weight is not None:
        segments = rows.runs.segments(0, rows.n_queries).tolist()
        total = float(sum(weight[start:stop].sum() for start, stop in segments))
    return shares_of_counts(bins, counts, total)
