"""The ranker at the end of a Pipeline, and its input data."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ranksvm._util.pipeline_steps import steps_of
from ranksvm._util.types import MatrixLike
from ranksvm.data import frames
from ranksvm.exceptions import DataError, OptionError

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


class RankerInput(NamedTuple):
    """A ranker and its input."""

    ranker: "BaseEstimator"
    X: MatrixLike
    qid: ArrayLike | None
    feature_names: ArrayLike | None


def ranker_input(
    model: "BaseEstimator", X: MatrixLike, qid: ArrayLike | None = None, feature_names: ArrayLike | None = None
) -> RankerInput:
    """The ranker of a model, and X transformed by the steps before it; steps receive the queries if they request them.

    Raises
    ------
    OptionError
        When the model does not end with a linear or additive ranker.
    DataError
        When the names do not fit X.
    """
    ranker = steps_of(model)[-1]
    if isinstance(ranker, type) or not hasattr(ranker, "explain"):
        from ranksvm.estimators.base.kernel_ranker import KernelRanker

        if isinstance(ranker, KernelRanker):
            raise OptionError(
                f"the score of a {type(ranker).__name__} is not a sum over the features and cannot be attributed to "
                "them: explain a RankSVM or an AdditiveRankSVM. A kernel model can predict, rank and be evaluated."
            )
        raise OptionError(
            f"a linear or additive ranker such as RankSVM is needed, or a Pipeline that ends with one, got {model!r}."
        )
    return last_step_input(model, X, qid, feature_names)


def last_step_input(
    model: "BaseEstimator", X: MatrixLike, qid: ArrayLike | None = None, feature_names: ArrayLike | None = None
) -> RankerInput:
    """Like `ranker_input`, for any model: its last step, or the model itself if it is not a Pipeline."""
    *steps, ranker = steps_of(model)
    if not steps:
        return RankerInput(ranker, X, qid, feature_names)
    from sklearn.utils.metadata_routing import get_routing_for_object

    X, qid, _ = frames.split_qid(X, qid)
    names = feature_names
    for step in steps:
        if step in (None, "passthrough"):
            continue
        wants_qid = get_routing_for_object(step).consumes("transform", ["qid"])
        X = step.transform(X, qid=qid) if wants_qid else step.transform(X)
        names = _names_out(step, names)
    return RankerInput(ranker, X, qid, names)


def _names_out(step: "BaseEstimator", names: ArrayLike | None) -> ArrayLike | None:
    """Names of the output columns of a step; None if they or the names of the input are unknown."""
    known = names is not None or hasattr(step, "feature_names_in_")
    if not known or not hasattr(step, "get_feature_names_out"):
        return None
    try:
        return step.get_feature_names_out(None if names is None else np.asarray(names, dtype=object))
    except ValueError as error:
        raise DataError(f"feature_names: {error}") from error
