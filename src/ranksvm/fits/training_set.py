"""The data of a fit: the arguments of ``fit``, and the pairs that they imply."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ranksvm.data import ComparablePairs, PairList, Queries
from ranksvm.data.censoring import checked_event
from ranksvm.data.numeric_column import checked_weights
from ranksvm.data.pair_list import groups_of_pairs
from ranksvm.data.queries import check_grouped
from ranksvm.datasets.file_data import TextFeatures
from ranksvm.exceptions import DataError, OptionError
from ranksvm.fits.options import FitOptions
from ranksvm.losses import Pairs
from ranksvm.metrics import Metric

__all__ = [
    "EvalArguments",
    "ForEachSet",
    "ListedPairs",
    "TrainingArguments",
    "TrainingSet",
    "training_pairs",
    "training_set",
]

# One value for each of several evaluation sets, or the value for a single set.
ForEachSet = ArrayLike | Sequence[ArrayLike | None] | None


@dataclass(frozen=True, eq=False)
class TrainingArguments:
    """The training data of ``fit``, as passed by the user or as arrays.

    Parameters
    ----------
    X : object
        Features.
    y : array-like of shape (n_rows,), optional
        Labels, or times with ``event``.
    qid, group : array-like, optional
        Query of each row, or sizes of consecutive queries.
    pairs, pair_weight : array-like, optional
        Row numbers (preferred, other) instead of labels, and the weight of each pair.
    sample_weight, query_weight, propensity : array-like of shape (n_rows,), optional
        Weights by row.
    event : array-like of bool, shape (n_rows,), optional
        Which of the times are observed.
    largest : ndarray of float64, shape (n_features,), optional
        The largest absolute value of each feature, if it is known.
    text_features : TextFeatures, optional
        Names and categories, if X is from a file or RankingData in which features held text.
    feature_names : sequence of str, optional
        Names of the features of a file or of RankingData.
    """

    X: Any
    y: Any = None
    qid: ArrayLike | None = None
    group: ArrayLike | None = None
    pairs: ArrayLike | None = None
    pair_weight: ArrayLike | None = None
    sample_weight: ArrayLike | None = None
    query_weight: ArrayLike | None = None
    propensity: ArrayLike | None = None
    event: ArrayLike | None = None
    largest: np.ndarray | None = None
    text_features: TextFeatures | None = None
    feature_names: Sequence[str] | None = None

    def weights(self) -> dict[str, Any]:
        """The weights by row, and ``event``, by the names that `ComparablePairs` has for them."""
        return {
            "sample_weight": self.sample_weight,
            "query_weight": self.query_weight,
            "propensity": self.propensity,
            "event": self.event,
        }

    def check_pairs(self, selection: str, weighting: str) -> None:
        """Raise an error if labels, pairs, and the selection and weighting of pairs contradict each other."""
        if self.event is not None:
            if self.pairs is not None:
                raise DataError("event says which times in y are observed: give y, not pairs.")
            if selection != "all":
                raise OptionError(f"pair_selection={selection!r} is for labels: with event, leave it at 'all'.")
        if self.pairs is None:
            if self.pair_weight is not None:
                raise DataError("pair_weight is given without pairs.")
            return
        if self.y is not None:
            raise DataError("Give y (labels, which imply the pairs) or pairs, not both.")
        if selection != "all":
            raise OptionError(
                f"pair_selection={selection!r} chooses among the pairs that labels imply: leave it at 'all'."
            )
        if weighting not in ("uniform", "per_query"):
            raise OptionError(f"pair_weighting={weighting!r} is computed from labels: with pairs, give pair_weight.")


@dataclass(frozen=True, eq=False)
class EvalArguments:
    """The arguments of ``fit`` about data to evaluate on, as in LightGBM.

    Parameters
    ----------
    eval_set : list of tuple, tuple, Preferences or None
        The sets.
    eval_qid, eval_group : list of array-like, or one for a single set, optional
        Their queries.
    eval_names : list of str, or one for a single set, optional
        Their names.
    eval_sample_weight : list of array-like, or one for a single set, optional
        The weights of their rows.
    eval_metric : str, Metric, or list of either, optional
        The metrics to evaluate.
    eval_at : int or list of int, optional
        Cutoffs for metrics that are requested without one ("ndcg").
    """

    eval_set: Any = None
    eval_qid: ForEachSet = None
    eval_group: ForEachSet = None
    eval_names: str | Sequence[str] | None = None
    eval_sample_weight: ForEachSet = None
    eval_metric: str | Metric | Sequence[str | Metric] | None = None
    eval_at: int | Iterable[int] | None = None

    def refuse_without_sets(self) -> None:
        """Raise DataError for the first argument that describes evaluation sets, because no set is given."""
        for field in fields(self):
            if field.name != "eval_set" and getattr(self, field.name) is not None:
                raise DataError(f"{field.name} is given without eval_set=[(X, y)].")


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
        Labels of the rows; None if pairs were passed.
    listed : ListedPairs or None
        The pairs as the user passed them; None if labels were passed.
    largest : ndarray of float64, shape (n_features,), or None
        The largest absolute value of each feature, if it is known.
    place : str or None
        Name of the GPU from which X was copied to the host.
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
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.X.shape[1])


@dataclass(frozen=True, eq=False)
class ListedPairs:
    """Pairs as passed to ``fit``, validated, in the user's order: `PairList` has them in another order.

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
        """An id for each pair; pairs with the same id must be in the same fold: see `groups_of_pairs`."""
        return groups_of_pairs(self.queries, *self.rows.T)

    def taken(self, numbers: np.ndarray) -> PairList:
        """Some of the pairs, to learn from."""
        return PairList.from_pairs(self.queries, self.rows[numbers], pair_weight=self.weight[numbers], **self.options)


def training_set(training: TrainingArguments, options: FitOptions) -> TrainingSet:
    """The training set of arrays in memory: the queries, and the pairs that the fit learns from.

    Parameters
    ----------
    training : TrainingArguments
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
        When an option is for labels, and pairs are passed.
    """
    training.check_pairs(options.pair_selection, options.pair_weighting)
    X = training.X
    # censored times without qid are one query: the times of one study
    if training.pairs is None and training.event is None:
        check_grouped(training.qid, training.group, X.shape[0])
    grouping = Queries.of(training.qid, training.group, X.shape[0])
    pairs = training_pairs(grouping, training, options.pair_selection, options.pair_weighting, options.n_threads)
    listed = None
    if training.pairs is not None:
        rows = np.asarray(training.pairs, dtype=np.int64)
        each = checked_weights("pair_weight", training.pair_weight, len(rows), "pairs")
        by_row = {name: value for name, value in training.weights().items() if name != "event"}
        listed = ListedPairs(grouping, rows, each, {"weighting": options.pair_weighting, **by_row})
    return TrainingSet(X, pairs, grouping.n_queries, options.n_threads, training.y, listed, training.largest)


def training_pairs(
    grouping: Queries, training: TrainingArguments, selection: str, weighting: str, n_threads: int
) -> Pairs:
    """The pairs that a fit learns from: those implied by labels, or the listed ones."""
    weights = training.weights()
    event = weights.pop("event")
    if training.pairs is not None:
        return PairList.from_pairs(
            grouping, training.pairs, pair_weight=training.pair_weight, weighting=weighting, **weights
        )
    if event is not None:
        weights["event"] = checked_event(event, grouping.n_rows)
    return ComparablePairs.from_labels(
        grouping, training.y, selection=selection, weighting=weighting, n_threads=n_threads, **weights
    )
