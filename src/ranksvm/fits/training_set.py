"""The validated data of a fit, and the pairs that they imply."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ranksvm.data import ComparablePairs, PairList, Queries, validation
from ranksvm.data.censoring import checked_event
from ranksvm.data.pair_list import groups_of_pairs
from ranksvm.data.pair_weights import checked_weights
from ranksvm.fits.arguments import TrainingArguments
from ranksvm.fits.options import FitOptions
from ranksvm.losses import Pairs

__all__ = ["ListedPairs", "TrainingSet", "training_pairs", "training_set"]


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """The validated arguments of ``fit``.

    Parameters
    ----------
    X : ndarray or CSR matrix, shape (n_rows, n_features)
        Features.
    pairs : ComparablePairs or PairList
        Pairs of the rows.
    n_queries : int
        Number of queries, with pairs or not.
    n_threads : int
        Number of threads.
    labels : ndarray of float64, shape (n_rows,), or None
        Labels of the rows; None if pairs were given.
    listed : ListedPairs or None
        The pairs as they were given; None if labels were.
    largest : ndarray of float64, shape (n_features,), or None
        The largest absolute value of each feature, where it is known.
    place : str or None
        Name of the GPU where X lay that was copied to the host.
    """

    X: Any
    pairs: Pairs
    n_queries: int
    n_threads: int
    labels: np.ndarray | None = None
    listed: "ListedPairs | None" = None
    largest: np.ndarray | None = None
    place: str | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows of X."""
        return self.X.shape[0]

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.X.shape[1]


@dataclass(frozen=True, eq=False)
class ListedPairs:
    """Pairs as they were given to ``fit``, validated, in their order: `PairList` has them in another one.

    Parameters
    ----------
    queries : Queries
        The rows' queries.
    rows : ndarray of int64, shape (n_pairs, 2)
        Row numbers (preferred, other).
    weight : ndarray of float64, shape (n_pairs,)
        ``pair_weight`` of each.
    options : dict
        Weighting, and weights by row.
    """

    queries: Queries
    rows: np.ndarray
    weight: np.ndarray
    options: dict[str, Any]

    def groups(self) -> np.ndarray:
        """An id for each pair, the same for pairs that have to stay together in folds: see `groups_of_pairs`."""
        return groups_of_pairs(self.queries, *self.rows.T)

    def taken(self, numbers: np.ndarray) -> PairList:
        """Some of the pairs, to learn from."""
        return PairList.from_pairs(self.queries, self.rows[numbers], pair_weight=self.weight[numbers], **self.options)


def training_set(given: TrainingArguments, options: FitOptions) -> TrainingSet:
    """The training set of arrays in memory: the queries, and the pairs that the fit learns from.

    Parameters
    ----------
    given : TrainingArguments
        The arguments of ``fit``, as arrays.
    options : FitOptions
        The hyper-parameters.

    Returns
    -------
    TrainingSet
        The training set.

    Raises
    ------
    NoComparablePairsError
        When no query has two documents with different labels.
    DataError
        When lengths do not agree, or weights are invalid.
    OptionError
        When an option is for labels, and pairs are given.
    """
    given.check_pairs(options.pair_selection, options.pair_weighting)
    X = given.X
    if given.pairs is None and given.event is None:  # times of one study are one query
        validation.check_grouped(given.qid, given.group, X.shape[0])
    grouping = validation.queries(given.qid, given.group, X.shape[0])
    pairs = training_pairs(grouping, given, options.pair_selection, options.pair_weighting, options.n_threads)
    listed = None
    if given.pairs is not None:
        rows = np.asarray(given.pairs, dtype=np.int64)
        each = checked_weights("pair_weight", given.pair_weight, len(rows), "pairs")
        by_row = {name: value for name, value in given.weights().items() if name != "event"}
        listed = ListedPairs(grouping, rows, each, {"weighting": options.pair_weighting, **by_row})
    return TrainingSet(X, pairs, grouping.n_queries, options.n_threads, given.y, listed, given.largest)


def training_pairs(
    grouping: Queries, given: TrainingArguments, selection: str, weighting: str, n_threads: int
) -> Pairs:
    """The pairs that a fit learns from: those implied by labels, or the listed ones."""
    weights = given.weights()
    event = weights.pop("event")
    if given.pairs is not None:
        return PairList.from_pairs(grouping, given.pairs, pair_weight=given.pair_weight, weighting=weighting, **weights)
    if event is not None:
        weights["event"] = checked_event(event, grouping.n_rows)
    return ComparablePairs.from_labels(
        grouping, given.y, selection=selection, weighting=weighting, n_threads=n_threads, **weights
    )
