"""Explanations and importances of any model that ends with a linear or additive ranker."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from ranksvm._util.types import MatrixLike
from ranksvm.analysis._pipelines import ranker_input
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
        When X is not what the model was fitted to, or lengths differ.

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
        The importances, in the unit of the scores.

    Raises
    ------
    OptionError
        When the model is not one of these.
    DataError
        When X is not what the model was fitted to, or lengths differ.

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
