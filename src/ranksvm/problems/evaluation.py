"""Data on which a fit is evaluated, and the metrics: ``eval_set``, ``eval_metric`` and so on, as in LightGBM."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ranksvm._parallel import effective_n_jobs
from ranksvm.data import frames, validation
from ranksvm.data.pair_weights import checked_weights
from ranksvm.exceptions import DataError
from ranksvm.metrics import Convention, Evaluation, Metric, evaluate, parse_metrics
from ranksvm.metrics.cutoffs import metrics_at

# What is evaluated unless the user names a metric.
DEFAULT_METRIC = "ndcg@10"

# The evaluations of one model, one for each set.
Parts = Sequence[Evaluation]


@dataclass(frozen=True, eq=False)
class EvaluationSet:
    """Documents with labels and queries, in the form used for scoring, validated.

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
    """

    X: Any
    y: np.ndarray
    numbers: np.ndarray
    sample_weight: Any = None

    def evaluate(
        self,
        scores: Callable[[Any], np.ndarray],
        metrics: Metric | Iterable[Metric],
        convention: str | Convention = "default",
    ) -> Evaluation:
        """The metrics of the ranking by a scoring function from features to scores."""
        found = scores(self.X)
        return evaluate(self.y, found, self.numbers, metrics, convention=convention, sample_weight=self.sample_weight)


@dataclass(frozen=True, eq=False)
class EvaluationSets:
    """The sets to evaluate models on, and the metrics; the first metric on the first set decides where one has to.

    Parameters
    ----------
    names : list of str
        Name of each set.
    sets : list of EvaluationSet
        The sets; there may be none.
    metrics : list of Metric
        The metrics.
    convention : str or Convention
        Their definitions, as in `ranksvm.metrics.evaluate`.
    """

    names: list[str]
    sets: list[EvaluationSet]
    metrics: list[Metric]
    convention: str | Convention = "default"

    def __bool__(self) -> bool:
        return bool(self.sets)

    def evaluate(self, scores: Callable[[Any], np.ndarray]) -> list[Evaluation]:
        """The metrics of a scoring function, from features to scores, on each set."""
        return [each.evaluate(scores, self.metrics, self.convention) for each in self.sets]

    def evals_result(self, evaluations: Sequence[Parts]) -> dict[str, dict[str, list[float]]]:
        """Set -> metric -> values of consecutive models, as in LightGBM; each item holds the parts of one model."""
        if not self.sets:
            return {}
        by_set = zip(*evaluations, strict=True)
        return {
            name: {metric: [each.means[metric] for each in models] for metric in models[0].means}
            for name, models in zip(self.names, by_set, strict=True)
        }


def evaluation_sets(
    estimator: Any,
    n_queries: int,
    eval_set: Any,
    eval_qid: Any,
    eval_group: Any,
    eval_names: Any,
    eval_sample_weight: Any,
    eval_metric: Any,
    eval_at: Any,
    *,
    deciding: Any = None,
    convention: str | Convention = "default",
) -> EvaluationSets:
    """The evaluation sets passed to ``fit``, validated against the training data; none without ``eval_set``.

    ``deciding`` is the estimator's own metric, or metrics, which come before those of ``eval_metric``. Raises
    DataError, with the set's name as in ``evals_result_``, if a set cannot be used, or lacks query ids although the
    training data have ``n_queries`` queries.
    """
    options = {"eval_qid": eval_qid, "eval_group": eval_group, "eval_names": eval_names}
    options |= {"eval_sample_weight": eval_sample_weight, "eval_metric": eval_metric, "eval_at": eval_at}
    metrics = _metrics(deciding, eval_metric, eval_at)
    if eval_set is None:
        for name, value in options.items():
            if value is not None:
                raise DataError(f"{name} is given without eval_set=[(X, y)].")
        return EvaluationSets([], [], metrics, convention)
    pairs = [eval_set] if isinstance(eval_set, tuple) else eval_set
    if not isinstance(pairs, list) or not pairs or any(not _is_pair(pair) for pair in pairs):
        raise DataError("eval_set must be a list of tuples (X, y), or one such tuple.")
    names = _names(eval_names, len(pairs))
    qids = _one_for_each("eval_qid", eval_qid, pairs)
    groups = _one_for_each("eval_group", eval_group, pairs)
    weights = _one_for_each("eval_sample_weight", eval_sample_weight, pairs)
    sets = []
    for name, (X, y), qid, group, weight in zip(names, pairs, qids, groups, weights, strict=True):
        try:
            sets.append(_checked(estimator, X, y, qid, group, weight, n_queries))
        except DataError as error:
            raise DataError(f"eval_set, {name}: {error}") from error
    return EvaluationSets(names, sets, metrics, convention)


def _metrics(deciding: Any, eval_metric: Any, eval_at: Any) -> list[Metric]:
    """The estimator's own metrics, then those that ``fit`` was asked for; a default if there are none."""
    own = [] if deciding is None else parse_metrics(deciding)
    if eval_metric is None and eval_at is None:
        return own or parse_metrics(DEFAULT_METRIC)
    asked = metrics_at(parse_metrics("ndcg" if eval_metric is None else eval_metric), eval_at)
    return list(dict.fromkeys(own + asked))


def _names(eval_names: Any, n_sets: int) -> list[str]:
    """A name for each set: those given, or ``valid_0``, ``valid_1``, ... as in LightGBM."""
    if eval_names is None:
        return [f"valid_{number}" for number in range(n_sets)]
    names = [eval_names] if isinstance(eval_names, str) else list(eval_names)
    if len(set(names)) != n_sets or len(names) != n_sets or not all(isinstance(name, str) for name in names):
        raise DataError(f"eval_names must be {n_sets} different strings, one for each set in eval_set; got {names}.")
    return names


def _is_pair(pair: Any) -> bool:
    return isinstance(pair, tuple | list) and len(pair) == 2


def _one_for_each(name: str, values: Any, pairs: list) -> list[Any]:
    """What each set is given as a list with one item for each set, or, for one set, directly."""
    if values is None or isinstance(values, str):
        return [values] * len(pairs)
    if isinstance(values, list | tuple) and len(values) == len(pairs):
        belongs = [
            value is None or frames.has_column(X, value) or (not isinstance(value, str) and np.ndim(value) > 0)
            for value, (X, _) in zip(values, pairs, strict=True)
        ]
        if all(belongs):
            return list(values)
    if len(pairs) > 1:
        raise DataError(f"{name} must be a list of {len(pairs)}, one for each set in eval_set.")
    return [values]


def _checked(estimator: Any, X: Any, y: Any, qid: Any, group: Any, sample_weight: Any, n_queries: int) -> EvaluationSet:
    if isinstance(qid, str):
        X, qid, _ = frames.split_qid(X, qid)
    elif group is None:
        qid = estimator._query_ids(X, qid)
        if qid is None and n_queries > 1:
            raise DataError(f"the training data have {n_queries} queries: give this set's in eval_qid or eval_group.")
    X = estimator._without_qid_column(X)
    X, y = validation.features_and_labels(estimator, X, y, n_threads=effective_n_jobs(estimator.n_jobs), reset=False)
    queries = validation.queries(qid, group, len(y))
    if sample_weight is not None:
        sample_weight = checked_weights("eval_sample_weight", sample_weight, len(y), "rows")
    return EvaluationSet(X, y, queries.numbers(), sample_weight)
