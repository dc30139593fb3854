"""Explanations and importances of any model that ends with a linear ranker."""

from typing import Any

import numpy as np

from ranksvm.analysis._pipelines import ranker_input
from ranksvm.problems.explanation import Explanation

__all__ = ["explain", "feature_importance"]


def explain(model: Any, X: Any, qid: Any = None, *, feature_names: Any = None) -> Explanation:
    """Why documents stand where they do, and why one ranks above another: what each feature contributes.

    For a ranker this is its method `RankSVM.explain`. Of a Pipeline the features that the ranker sees are explained,
    under the names that the steps before it give them: scaled ones, after a scaler.

    Parameters
    ----------
    model : estimator
        A fitted linear ranker, or a fitted Pipeline that ends with one.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Features as the model takes them.
    qid : array-like of shape (n_samples,) or str, optional
        Query of each row, or the column of X that has them; None: one query.
    feature_names : array-like of str, shape (n_features,), optional
        Names of the columns of X; None: those of the DataFrame that the model was fitted to, if it was one.

    Returns
    -------
    Explanation
        With methods ``document(row)``, ``pair(row, other_row)`` and ``query(id)``, and all ``contributions``.

    Raises
    ------
    OptionError
        When the model is neither.
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


def feature_importance(model: Any, X: Any, qid: Any = None) -> np.ndarray:
    """How far each feature moves documents of a query apart: ``|w_f|`` times its standard deviation within queries.

    For a ranker this is its method `RankSVM.feature_importance`, which defines it; of a Pipeline the features are those
    that the ranker sees.

    Parameters
    ----------
    model : estimator
        A fitted linear ranker, or a fitted Pipeline that ends with one.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Features as the model takes them.
    qid : array-like of shape (n_samples,) or str, optional
        Query of each row, or the column of X that has them; None: one query.

    Returns
    -------
    ndarray of float64, shape (n_features,)
        The importances, in the unit of the scores.

    Raises
    ------
    OptionError
        When the model is neither.
    DataError
        When X is not what the model was fitted to, or lengths differ.
    """
    ranker, X, qid, _ = ranker_input(model, X, qid)
    return ranker.feature_importance(X, qid)
