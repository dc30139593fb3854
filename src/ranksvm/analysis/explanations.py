"""Explanations and importances of any model that ends with a linear or additive ranker; the input of that ranker."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ranksvm._util.pipeline_steps import steps_of
from ranksvm._util.types import MatrixLike
from ranksvm.data import frames
from ranksvm.exceptions import DataError, OptionError
from ranksvm.fits.results.explanation import Explanation

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

__all__ = ["explain", "feature_importance"]


def explain(
    model: "BaseEstimator", X: MatrixLike, qid: ArrayLike | None = None, *, feature_names: ArrayLike | None = None
) -> Explanation:
    """Per-feature attribution of score differences within queries.

    For a ranker, this calls its method `explain` (see `RankSVM.explain`). For a Pipeline, the input features of the
    ranker are explained, with the names that the previous steps give them: after a scaler, the scaled features.

    Parameters
    ----------
    model : estimator
        A fitted linear or additive ranker, or a fitted Pipeline that ends with one.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Features in the form expected by the model.
    qid : array-like of shape (n_samples,) or str, optional
        Query of each row, or the column of X that has them; None: one query.
    feature_names : array-like of str, shape (n_features,), optional
        Names of the columns of X; None: the names in the DataFrame that the model was fitted to, if any.

    Returns
    -------
    Explanation
        With methods ``document(row)``, ``pair(row, other_row)`` and ``query(id)``, and all ``contributions``.

    Raises
    ------
    OptionError
        When the model is not one of these.
    DataError
        When the features of X are not the model's, or lengths differ.

    Examples
    --------
    >>> from ranksvm import QueryMinMaxScaler, RankSVM
    >>> from ranksvm.analysis import explain
    >>> from sklearn.pipeline import Pipeline
    >>> X, y, qid = [[9.0, 1.0], [1.0, 1.0], [5.0, 3.0]], [1, 0, 0], [7, 7, 7]
    >>> scaler = QueryMinMaxScaler().fit(X, qid=qid)
    >>> ranker = RankSVM(C=100.0, tol=1e-10).fit(scaler.transform(X, qid=qid), y, qid=qid)
    >>> model = Pipeline([("scaler", scaler), ("ranker", ranker)])
    >>> explain(model, X, qid, feature_names=["bm25", "links"]).pair(0, 2)
    Row 0 (rank 1 of 3, query 7) scores 0.9975 above row 2 (rank 3)
    feature   weight  value  other  contribution
    links    -0.4994      0      1       +0.4994
    bm25      0.9963      1    0.5       +0.4981
    sum                                  +0.9975
    """
    ranker, X, qid, names = ranker_input(model, X, qid, feature_names)
    return ranker.explain(X, qid, feature_names=names)


def feature_importance(model: "BaseEstimator", X: MatrixLike, qid: ArrayLike | None = None) -> np.ndarray:
    """Importance of each feature: how much its contribution to scores varies within queries.

    For a ranker, this calls its method, `RankSVM.feature_importance` or `AdditiveRankSVM.feature_importance`, which
    defines the importance. For a Pipeline, the features are the input of the ranker.

    Parameters
    ----------
    model : estimator
        A fitted linear or additive ranker, or a fitted Pipeline that ends with one.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Features in the form expected by the model.
    qid : array-like of shape (n_samples,) or str, optional
        Query of each row, or the column of X that has them; None: one query.

    Returns
    -------
    ndarray of float64, shape (n_features,)
        The importances of the features, in the unit of the scores. For an additive model, the importances of the
        interactions follow.

    Raises
    ------
    OptionError
        When the model is not one of these.
    DataError
        When the features of X are not the model's, or lengths differ.

    Examples
    --------
    >>> from ranksvm import RankSVM, analysis, make_ranking
    >>> data = make_ranking(n_queries=20, n_docs=8, n_features=4, random_state=0)
    >>> ranker = RankSVM(C=0.01).fit(data.X, data.y, qid=data.qid)
    >>> analysis.feature_importance(ranker, data.X, data.qid).shape
    (4,)
    """
    ranker, X, qid, _ = ranker_input(model, X, qid)
    return ranker.feature_importance(X, qid)


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
