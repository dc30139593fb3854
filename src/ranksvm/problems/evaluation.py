"""Data on which a fit is evaluated: ``eval_set``, ``eval_qid`` and ``eval_group``, as LightGBM has them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ranksvm._parallel import effective_n_jobs
from ranksvm.data import frames, validation
from ranksvm.exceptions import DataError
from ranksvm.metrics import Convention, Evaluation, Metric, evaluate


@dataclass(frozen=True, eq=False)
class EvaluationSet:
    """Documents with labels and queries, in the form that models are scored on, checked.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_rows, n_features)
        Features.
    y : ndarray of float64, shape (n_rows,)
        Labels.
    numbers : ndarray of int, shape (n_rows,)
        Number of the query of each row.
    sample_weight : array-like of shape (n_rows,) or None
        A query counts with the mean weight of its rows.
    """

    X: Any
    y: np.ndarray
    numbers: np.ndarray
    sample_weight: Any = None

    def evaluate(
        self, scores: Callable[[Any], np.ndarray], metric: str | Metric, convention: str | Convention = "default"
    ) -> Evaluation:
        """The metric of the ranking that a scoring function, from features to scores, gives."""
        found = scores(self.X)
        return evaluate(self.y, found, self.numbers, [metric], convention=convention, sample_weight=self.sample_weight)


def evaluation_sets(
    estimator: Any, eval_set: Any, eval_qid: Any, eval_group: Any, n_queries: int
) -> list[EvaluationSet]:
    """The sets that ``fit`` was given, checked against the training data; none without ``eval_set``.

    Raises DataError, with the set's name as in ``evals_result_``, where one cannot be used, or lacks its queries though
    the training data have ``n_queries`` of them.
    """
    if eval_set is None:
        for name, value in (("eval_qid", eval_qid), ("eval_group", eval_group)):
            if value is not None:
                raise DataError(f"{name} is given without eval_set=[(X, y)].")
        return []
    pairs = [eval_set] if isinstance(eval_set, tuple) else eval_set
    if not isinstance(pairs, list) or not pairs or any(not _is_pair(pair) for pair in pairs):
        raise DataError("eval_set must be a list of tuples (X, y), or one such tuple.")
    qids = _one_for_each("eval_qid", eval_qid, pairs)
    groups = _one_for_each("eval_group", eval_group, pairs)
    sets = []
    for number, ((X, y), qid, group) in enumerate(zip(pairs, qids, groups, strict=True)):
        try:
            sets.append(_checked(estimator, X, y, qid, group, n_queries))
        except DataError as error:
            raise DataError(f"eval_set, {set_name(number)}: {error}") from error
    return sets


def evals_result(evaluations: Sequence[Sequence[Evaluation]]) -> dict[str, dict[str, list[float]]]:
    """Set -> metric -> value of one model after another, as LightGBM has it; each item holds a model's sets."""
    by_set = zip(*evaluations, strict=True)
    return {
        set_name(number): {metric: [each.means[metric] for each in models] for metric in models[0].means}
        for number, models in enumerate(by_set)
    }


def set_name(number: int) -> str:
    """Name of an evaluation set, by its number from 0, as LightGBM has it."""
    return f"valid_{number}"


def _is_pair(pair: Any) -> bool:
    return isinstance(pair, tuple | list) and len(pair) == 2


def _one_for_each(name: str, values: Any, pairs: list) -> list[Any]:
    """Queries of each set: they may come as a list of one for each, or, for one set, as they are."""
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


def _checked(estimator: Any, X: Any, y: Any, qid: Any, group: Any, n_queries: int) -> EvaluationSet:
    if isinstance(qid, str):
        X, qid, _ = frames.split_qid(X, qid)
    elif group is None:
        qid = estimator._query_ids(X, qid)
        if qid is None and n_queries > 1:
            raise DataError(f"the training data have {n_queries} queries: give this set's by eval_qid or eval_group.")
    X = estimator._without_qid_column(X)
    X, y = validation.features_and_labels(estimator, X, y, n_threads=effective_n_jobs(estimator.n_jobs), reset=False)
    return EvaluationSet(X, y, validation.queries(qid, group, len(y)).numbers())
