"""The validated data of a fit, and the pairs that they imply."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ranksvm._util.threads import effective_n_jobs
from ranksvm.data import ComparablePairs, PairList, Preferences, Queries, validation
from ranksvm.data.censoring import checked_event
from ranksvm.data.pair_list import groups_of_pairs
from ranksvm.data.pair_weights import checked_weights
from ranksvm.device.arrays import host_values
from ranksvm.exceptions import DataError, OptionError
from ranksvm.losses import Pairs

__all__ = ["TrainingSet", "check_source_of_pairs", "training_pairs", "training_set"]


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


def training_set(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    qid: Any,
    group: Any,
    pairs: Any = None,
    pair_weight: Any = None,
    **weights: Any,
) -> TrainingSet:
    """The validated data of an estimator's ``fit``; the estimator stores the names of the features.

    ``weights`` are ``sample_weight``, ``query_weight``, ``propensity`` and ``event``.
    """
    n_threads = effective_n_jobs(estimator.n_jobs)
    # the pairs are made on the host
    y, qid, group, pairs, pair_weight = map(host_values, (y, qid, group, pairs, pair_weight))
    weights = {name: host_values(value) for name, value in weights.items()}
    if isinstance(X, Preferences):
        given = {"y": y, "qid": qid, "group": group, "pairs": pairs, "pair_weight": pair_weight}
        qid, pairs, pair_weight = X.arguments(**given)
    selection, weighting = estimator.pair_selection, estimator.pair_weighting
    check_source_of_pairs(selection, weighting, y, pairs, pair_weight)
    if y is None and pairs is None:
        name = type(estimator).__name__
        raise DataError(f"{name} requires y to be passed, but the target y is None (or give pairs of rows instead).")
    if pairs is None:
        X, y = validation.features_and_labels(estimator, X, y, n_threads=n_threads, finite=False)
    else:
        X = validation.features(estimator, X, n_threads=n_threads, reset=True, finite=False)
    largest = validation.largest_values(estimator, X, n_threads)
    if pairs is None and weights.get("event") is None:  # times of one study are one query
        validation.check_grouped(qid, group, X.shape[0])
    grouping = validation.queries(qid, group, X.shape[0])
    how = {"selection": selection, "weighting": weighting, "n_threads": n_threads}
    found = training_pairs(grouping, y, pairs, pair_weight, **how, **weights)
    listed = None
    if pairs is not None:
        rows = np.asarray(pairs, dtype=np.int64)
        each = checked_weights("pair_weight", pair_weight, len(rows), "pairs")
        by_row = {name: value for name, value in weights.items() if name != "event"}
        listed = ListedPairs(grouping, rows, each, {"weighting": weighting, **by_row})
    return TrainingSet(X, found, grouping.n_queries, n_threads, y, listed, largest)


def training_pairs(
    grouping: Queries,
    y: Any,
    pairs: Any,
    pair_weight: Any,
    *,
    selection: str,
    weighting: str,
    n_threads: int,
    event: Any = None,
    **weights: Any,
) -> Pairs:
    """The pairs that a fit learns from: those implied by labels, or those listed in ``pairs``."""
    if event is not None:
        if pairs is not None:
            raise DataError("event says which times in y are observed: give y, not pairs.")
        if selection != "all":
            raise OptionError(f"pair_selection={selection!r} is for labels: with event, leave it at 'all'.")
        weights["event"] = checked_event(event, grouping.n_rows)
    if pairs is None:
        return ComparablePairs.from_labels(
            grouping, y, selection=selection, weighting=weighting, n_threads=n_threads, **weights
        )
    return PairList.from_pairs(grouping, pairs, pair_weight=pair_weight, weighting=weighting, **weights)


def check_source_of_pairs(selection: str, weighting: str, y: Any, pairs: Any, pair_weight: Any) -> None:
    """Refuse options that conflict with labels, or with explicit pairs."""
    if pairs is None:
        if pair_weight is not None:
            raise DataError("pair_weight is given without pairs.")
        return
    if y is not None:
        raise DataError("Give y (labels, which imply the pairs) or pairs, not both.")
    if selection != "all":
        raise OptionError(f"pair_selection={selection!r} chooses among the pairs that labels imply: leave it at 'all'.")
    if weighting not in ("uniform", "per_query"):
        raise OptionError(f"pair_weighting={weighting!r} is computed from labels: with pairs, give pair_weight.")
