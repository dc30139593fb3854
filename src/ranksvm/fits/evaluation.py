"""Data on which a fit is evaluated, and the metrics: ``eval_set``, ``eval_metric`` etc., as in LightGBM."""

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from ranksvm._util.checks import is_sparse, level_of_caller, n_rows_of
from ranksvm._util.types import MatrixLike
from ranksvm.data import Preferences, Queries, frames
from ranksvm.data.device_features import DeviceFeatures
from ranksvm.data.numeric_column import checked_weights
from ranksvm.data.pair_list import groups_of_pairs, row_numbers
from ranksvm.data.scores import scores_of_rows
from ranksvm.exceptions import DataError, ScaleWarning
from ranksvm.metrics import Convention, Evaluation, Metric, evaluate, evaluate_pairs, parse_metrics
from ranksvm.metrics.definitions import ACCURACY, CONCORDANCE, DEFAULT_METRIC, metrics_at, only_metric

# The evaluations of one model, one for each set.
SetEvaluations = Sequence[Evaluation]
# Features as a model scores them.
Scorable = MatrixLike | DeviceFeatures
# Metrics, by name or as objects.
MetricsLike = str | Metric | Iterable[str | Metric]
Sets = TypeVar("Sets")

# Number of evenly spaced rows from which the scale of each feature is computed.
_ROWS = 1000
# A warning is given from this ratio of scales on. Parts of one data set differ by less: on LETOR's folds of OHSUMED,
# MQ2007 and MQ2008, and on sparse word pairs, by factors from 0.97 to 1.10.
_FACTOR = 10.0


@dataclass(frozen=True, eq=False)
class EvaluationSet:
    """Validated documents with labels and queries, in the form that is used for scoring.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_rows, n_features)
        Features.
    y : ndarray of float64, shape (n_rows,)
        Labels.
    numbers : ndarray of int, shape (n_rows,)
        Number of the query of each row.
    sample_weight : array-like of shape (n_rows,) or None
        A query is weighted by the mean weight of its rows.
    event : array-like of shape (n_rows,) or None
        Which of the times in ``y`` are observed; if this is given, the metric is the concordance index.
    """

    X: Scorable
    y: np.ndarray
    numbers: np.ndarray
    sample_weight: ArrayLike | None = None
    event: ArrayLike | None = None

    @property
    def features(self) -> Scorable:
        """The features."""
        return self.X

    @property
    def own_metric(self) -> Metric | None:
        """The only metric that can be computed on this set; None if it has labels, which allow any metric."""
        return None if self.event is None else CONCORDANCE

    def metric_for(self, metric: Metric) -> Metric:
        """The metric by which this set is evaluated, if ``metric`` was requested."""
        return metric if self.event is None else only_metric("censored times", CONCORDANCE, metric)

    def evaluate(
        self,
        scores: Callable[[Any], np.ndarray],
        metrics: Metric | Iterable[Metric],
        convention: str | Convention = "default",
    ) -> Evaluation:
        """The metrics of the ranking by ``scores``, a function that takes features and returns scores."""
        if self.event is not None:
            metrics = CONCORDANCE
        weight, event = self.sample_weight, self.event
        return evaluate(
            self.y, scores(self.X), self.numbers, metrics, convention=convention, sample_weight=weight, event=event
        )


@dataclass(frozen=True, eq=False)
class PairEvaluationSet:
    """Explicit pairs; the only metric that they allow is the pairwise accuracy.

    Parameters
    ----------
    blocks : list of ndarray or CSR matrix, of shape (n_rows, n_features)
        Features, in one block or in two (chosen and rejected), in the form used for scoring.
    rows : ndarray of int64, shape (n_pairs, 2)
        Row numbers (preferred, other); the rows of all blocks are numbered consecutively.
    groups : ndarray, shape (n_pairs,)
        Query of each pair.
    weight : ndarray of float64, shape (n_pairs,), or None
        Weight of each pair.
    """

    blocks: Sequence[Scorable]
    rows: np.ndarray
    groups: np.ndarray
    weight: np.ndarray | None = None

    @property
    def features(self) -> Scorable:
        """The features of the first block."""
        return self.blocks[0]

    @property
    def own_metric(self) -> Metric:
        """The pairwise accuracy, the only metric of pairs."""
        return ACCURACY

    def metric_for(self, metric: Metric) -> Metric:
        """The pairwise accuracy, if ``metric`` allows it."""
        return only_metric("pairs", ACCURACY, metric)

    def evaluate(
        self,
        scores: Callable[[Any], np.ndarray],
        metrics: Metric | Iterable[Metric] = ACCURACY,
        convention: str | Convention = "default",
    ) -> Evaluation:
        """The pairwise accuracy of ``scores``, a function that takes features and returns scores."""
        used = np.unique(self.rows)
        ends = np.cumsum([0, *map(n_rows_of, self.blocks)])
        parts = np.split(used, np.searchsorted(used, ends[1:-1]))
        found = np.concatenate(
            [
                scores_of_rows(scores, block, part - first)
                for block, part, first in zip(self.blocks, parts, ends[:-1], strict=True)
            ]
        )
        preferred, other = found[np.searchsorted(used, self.rows)].T
        return evaluate_pairs(preferred, other, self.groups, pair_weight=self.weight)


def pairs_to_evaluate(
    features: Callable[[MatrixLike], Scorable],
    X: MatrixLike | Preferences,
    *,
    qid: ArrayLike | None = None,
    group: ArrayLike | None = None,
    pairs: ArrayLike | None = None,
    pair_weight: ArrayLike | None = None,
) -> PairEvaluationSet:
    """The evaluation set of `Preferences`, or of X and pairs; ``features`` prepares a block of X for scoring."""
    if isinstance(X, Preferences):
        given = {"qid": qid, "group": group, "pairs": pairs, "pair_weight": pair_weight}
        qid, pairs, pair_weight = X.arguments(**given)
        blocks = [features(block) for block in X.blocks]
    else:
        blocks = [features(X)]
    queries = Queries.of(qid, group, sum(n_rows_of(block) for block in blocks))
    assert pairs is not None
    preferred, other = row_numbers(pairs, queries)
    weight = None if pair_weight is None else checked_weights("pair_weight", pair_weight, len(preferred), "pairs")
    groups = groups_of_pairs(queries, preferred, other)
    return PairEvaluationSet(blocks, np.column_stack([preferred, other]), groups, weight)


@dataclass(frozen=True, eq=False)
class EvaluationSets:
    """The sets to evaluate models on, and the metrics; models are chosen by the first metric on the first set.

    Parameters
    ----------
    names : list of str
        Name of each set.
    sets : list of EvaluationSet or PairEvaluationSet
        The sets; there may be none.
    metrics : list of Metric
        The metrics.
    convention : str or Convention
        Their definitions, as in `ranksvm.metrics.evaluate`.
    """

    names: list[str]
    sets: list[EvaluationSet | PairEvaluationSet]
    metrics: list[Metric]
    convention: str | Convention = "default"

    def __bool__(self) -> bool:
        return bool(self.sets)

    def evaluate(self, scores: Callable[[Any], np.ndarray]) -> list[Evaluation]:
        """The metrics, on each set, of ``scores``, a function that takes features and returns scores."""
        return [each.evaluate(scores, self.metrics, self.convention) for each in self.sets]

    def evals_result(self, evaluations: Sequence[SetEvaluations]) -> dict[str, dict[str, list[float]]]:
        """Set -> metric -> values of consecutive models, as in LightGBM; ``evaluations`` has an item for each model."""
        if not self.sets or not evaluations:  # an interrupted fit may have evaluated no model
            return {}
        by_set = zip(*evaluations, strict=True)
        return {
            name: {metric: [each.means[metric] for each in models] for metric in models[0].means}
            for name, models in zip(self.names, by_set, strict=True)
        }


def joined_sets(eval_set: Sets, eval_X: object, eval_y: object) -> Sets | list[Any]:
    """The sets in the form of ``eval_set``, from whichever arguments of ``fit`` were given.

    Parameters
    ----------
    eval_set
        The argument of ``fit``. A tuple of sets becomes a list.
    eval_X, eval_y : array-like, or tuple of array-likes, or None
        The features and the labels of one set, or, in tuples, of several.

    Returns
    -------
    list of tuple, or eval_set
        The sets.

    Raises
    ------
    DataError
        When both forms are given, or features without labels or labels without features.
    """
    if eval_X is None and eval_y is None:
        if isinstance(eval_set, tuple) and all(isinstance(each, tuple | Preferences) for each in eval_set):
            return list(eval_set)
        return eval_set
    if eval_set is not None:
        raise DataError("eval_set and eval_X with eval_y are two forms of the same sets: give one of them.")
    if eval_X is None or eval_y is None:
        raise DataError("eval_X and eval_y belong together: give both, or eval_set=[(X, y)].")
    if isinstance(eval_X, tuple) and isinstance(eval_y, tuple) and len(eval_X) == len(eval_y):
        return list(zip(eval_X, eval_y, strict=True))
    if isinstance(eval_X, tuple) or isinstance(eval_y, tuple):
        raise DataError("eval_X and eval_y must both be arrays, or tuples with one array for each set.")
    return [(eval_X, eval_y)]


def metrics_of_sets(
    eval_metric: MetricsLike | None, eval_at: int | Iterable[int] | None, deciding: MetricsLike | None = None
) -> list[Metric]:
    """The estimator's own metrics, then the metrics requested in ``fit``; a default if there are none.

    Parameters
    ----------
    eval_metric, eval_at
        The arguments of ``fit``.
    deciding : optional
        The estimator's own metric, or metrics.

    Returns
    -------
    list of Metric
        The metrics, without duplicates.
    """
    own = [] if deciding is None else parse_metrics(deciding)
    if eval_metric is None and eval_at is None:
        return own or parse_metrics(DEFAULT_METRIC)
    requested = metrics_at(parse_metrics("ndcg" if eval_metric is None else eval_metric), eval_at)
    return list(dict.fromkeys(own + requested))


class Evaluated(Protocol):
    """A set on which models are evaluated, in memory or on a cluster."""

    @property
    def own_metric(self) -> Metric | None:
        """The only metric that can be computed on this set; None if it has labels, which allow any metric."""

    def metric_for(self, metric: Metric) -> Metric:
        """The metric by which this set is evaluated, if ``metric`` was requested."""


def decided_metrics(metrics: Sequence[Metric], sets: Sequence[Evaluated]) -> list[Metric]:
    """The metrics to compute; if the first set allows only one metric, this replaces the first of them.

    Parameters
    ----------
    metrics : sequence of Metric
        The requested metrics.
    sets : sequence of EvaluationSet, PairEvaluationSet or another set
        The sets.

    Returns
    -------
    list of Metric
        The metrics, the first replaced by the metric of the first set.

    Raises
    ------
    OptionError
        When each set allows only one metric, because none has labels, and a requested metric is not among these.
    """
    own = [each.own_metric for each in sets]
    if None not in own:
        for metric in metrics[1:]:
            if metric not in own:
                sets[0].metric_for(metric)
    return [sets[0].metric_for(metrics[0]), *metrics[1:]]


def refuse_labels_of_times() -> NoReturn:
    """Raise the DataError for an evaluation set with labels if the training data are censored times."""
    raise DataError(
        "the training data are censored times: give this set as (X, time, event), "
        "with np.ones(len(time)) for event if all its times are observed."
    )


def refuse_weights_of_pairs() -> NoReturn:
    """Raise the DataError for row weights that are given with an evaluation set of pairs."""
    raise DataError("eval_sample_weight applies to labels: give pairs as Preferences(..., weight=...).")


def names_of_sets(eval_names: str | Sequence[str] | None, n_sets: int) -> list[str]:
    """A name for each set: ``eval_names``, or ``valid_0``, ``valid_1``, ... as in LightGBM.

    Parameters
    ----------
    eval_names : str or list of str, or None
        The argument of ``fit``.
    n_sets : int
        Number of sets.

    Returns
    -------
    list of str
        The names.

    Raises
    ------
    DataError
        When they are not ``n_sets`` different strings.
    """
    if eval_names is None:
        return [f"valid_{number}" for number in range(n_sets)]
    names = [eval_names] if isinstance(eval_names, str) else list(eval_names)
    if len(set(names)) != n_sets or len(names) != n_sets or not all(isinstance(name, str) for name in names):
        raise DataError(f"eval_names must be {n_sets} different strings, one for each set in eval_set; got {names}.")
    return names


def one_for_each(name: str, values: object, pairs: Sequence[tuple[Any, ...]]) -> list[Any]:
    """The value of an argument for each set: the items of a list or, if there is only one set, the argument itself.

    Parameters
    ----------
    name : str
        Name of the argument.
    values : object
        The argument; None and a string are for all sets.
    pairs : list of tuple
        The sets; the first item of each is its features.

    Returns
    -------
    list
        One item for each set.

    Raises
    ------
    DataError
        When there are several sets, and the argument is not a list with one item for each set.
    """
    if values is None or isinstance(values, str):
        return [values] * len(pairs)
    if (
        isinstance(values, list | tuple)
        and len(values) == len(pairs)
        and all(_may_belong(X, value) for value, (X, *_) in zip(values, pairs, strict=True))
    ):
        return list(values)
    if len(pairs) > 1:
        raise DataError(f"{name} must be a list of {len(pairs)}, one for each set in eval_set.")
    return [values]


def _may_belong(X: object, value: Any) -> bool:
    """Whether a value may be the argument of a single set: None, the name of a column, or a value for each row."""
    if isinstance(value, str):  # `frames` does not know a Dask DataFrame, which has columns
        return frames.has_column(X, value) or value in getattr(X, "columns", ())
    return value is None or np.ndim(value) > 0


def warn_of_other_scale(name: str, X: object, other: object) -> None:
    """Warn if the features of an evaluation set are typically 10 times as large as the training data's, or a tenth.

    The typical ratio is the median, over the features, of the ratios of mean absolute values. Only arrays and sparse
    matrices are compared.

    Parameters
    ----------
    name : str
        Name of the set.
    X, other : array-like
        Features of the training data, and of the set.
    """
    sizes, others = _sizes(X), _sizes(other)
    if sizes is None or others is None or sizes.shape != others.shape:
        return
    known = (sizes > 0.0) & (others > 0.0)
    ratio = float(np.median(others[known] / sizes[known])) if known.any() else 1.0
    if 1.0 / _FACTOR < ratio < _FACTOR:
        return
    warnings.warn(
        f"eval_set, {name}: its features are typically {ratio:.3g} times as large as the features of X. Was only "
        "one of them scaled? The steps of a Pipeline transform X, but not eval_set: fit those steps first, transform "
        "both, and fit the ranker to the results.",
        ScaleWarning,
        stacklevel=level_of_caller(),
    )


def _sizes(X: Any) -> np.ndarray | None:
    """Mean absolute value of each feature over some rows; None if X is not a matrix of numbers."""
    if not (is_sparse(X) or (isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "fiu")) or 0 in X.shape:
        return None
    rows = np.unique(np.linspace(0, X.shape[0] - 1, _ROWS).astype(np.int64))
    part = abs((X.tocsr() if is_sparse(X) else X)[rows])
    return np.asarray(part.mean(axis=0, dtype=np.float64)).reshape(-1)
