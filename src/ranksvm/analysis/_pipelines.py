"""The ranker at the end of a Pipeline, and the data as it sees them."""

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import get_routing_for_object

from ranksvm.data import frames
from ranksvm.estimators.kernel_ranker import KernelRanker
from ranksvm.exceptions import DataError, OptionError


class RankerInput(NamedTuple):
    """A ranker and what reaches it."""

    ranker: Any
    X: Any
    qid: Any
    feature_names: np.ndarray | None


def ranker_input(model: Any, X: Any, qid: Any = None, feature_names: Any = None) -> RankerInput:
    """The ranker of a model, and X after the steps before it, which are given the queries where they ask for them.

    Parameters
    ----------
    model : estimator
        A linear ranker, or a fitted Pipeline that ends with one.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Features as the model takes them.
    qid : array-like of shape (n_samples,) or str, optional
        Query of each row, or the column of X that has them.
    feature_names : array-like of str, optional
        Names of the columns of X.

    Returns
    -------
    RankerInput
        Ranker, features, queries and the features' names, None where they are not known.

    Raises
    ------
    OptionError
        When the model is neither.
    DataError
        When the names do not fit X.
    """
    ranker = _steps(model)[-1]
    if isinstance(ranker, KernelRanker):
        raise OptionError(
            f"the score of a {type(ranker).__name__} is no sum over the features, so there is nothing to share out: a "
            "RankSVM can be explained. A kernel model can predict, rank and be evaluated."
        )
    if not isinstance(ranker, BaseEstimator) or not hasattr(ranker, "explain"):
        raise OptionError(
            f"a linear ranker such as RankSVM is needed, or a Pipeline that ends with one, got {model!r}."
        )
    return last_step_input(model, X, qid, feature_names)


def last_step_input(model: Any, X: Any, qid: Any = None, feature_names: Any = None) -> RankerInput:
    """As `ranker_input`, for a model of any kind: its last step, or the model itself where it is no Pipeline."""
    *steps, ranker = _steps(model)
    if not steps:
        return RankerInput(ranker, X, qid, feature_names)
    X, qid, _ = frames.split_qid(X, qid)
    names = feature_names
    for step in steps:
        if step in (None, "passthrough"):
            continue
        wants_qid = get_routing_for_object(step).consumes("transform", ["qid"])
        X = step.transform(X, qid=qid) if wants_qid else step.transform(X)
        names = _names_out(step, names)
    return RankerInput(ranker, X, qid, names)


def _steps(model: Any) -> list[Any]:
    return [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]


def _names_out(step: Any, names: Any) -> Any:
    """Names of what a step gives; None where it does not know, or knows no names of what it takes."""
    known = names is not None or hasattr(step, "feature_names_in_")
    if not known or not hasattr(step, "get_feature_names_out"):
        return None
    try:
        return step.get_feature_names_out(None if names is None else np.asarray(names, dtype=object))
    except ValueError as error:
        raise DataError(f"feature_names: {error}") from error
