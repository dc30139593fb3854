"""What all rankers that score with a linear function share: scores, ranking, evaluation, persistence."""

import os
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ranksvm._parallel import effective_n_jobs, parallel_map
from ranksvm.data import Queries, _frames, as_design_matrix
from ranksvm.data._spread import within_query_variance
from ranksvm.estimators import _inputs
from ranksvm.estimators._explanation import Explanation
from ranksvm.exceptions import DataError
from ranksvm.metrics import evaluate
from ranksvm.persistence import save

# Rows scored by one task of a thread.
PREDICT_ROWS = 1 << 15
# What `score` is.
SCORE_METRIC = "ndcg@10"


def linear_scores(X: Any, w: np.ndarray, n_threads: int) -> np.ndarray:
    """``X @ w`` of a C-contiguous float array or CSR matrix, summed in float64."""
    design, n_rows = as_design_matrix(X), X.shape[0]
    scores = np.empty(n_rows)

    def score(start: int) -> None:
        stop = min(start + PREDICT_ROWS, n_rows)
        design.scores(None, start, stop, w, scores[start:stop])

    parallel_map(score, range(0, n_rows, PREDICT_ROWS), n_threads)
    return scores


class LinearRanker(BaseEstimator):
    """Base of the estimators whose score of a document is ``<coef_, x>``."""

    n_jobs: int | None

    __metadata_request__fit: ClassVar = {
        "qid": True,
        "sample_weight": True,
        "query_weight": True,
        "propensity": True,
    }
    __metadata_request__score: ClassVar = {"qid": True, "sample_weight": True}

    def predict(self, X: Any) -> np.ndarray:
        """Score of each document; the higher, the further up it belongs.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)
            Features. A DataFrame's column of query ids, if `fit` was told one, is left out; the other columns must be
            those of `fit`.

        Returns
        -------
        ndarray of float64, shape (n_samples,)
            ``X @ coef_``, summed in float64.
        """
        X = self._features(X)
        return linear_scores(X, self.coef_, effective_n_jobs(self.n_jobs))

    def rank(self, X: Any, qid: Any = None) -> dict[Any, np.ndarray]:
        """Order the documents of each query.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)
            Features.
        qid : array-like of shape (n_samples,) or str, optional
            Query of each row, in any order, or the column of X that has them; None: the column that `fit` was told, if
            X has it, or else all rows are one query, 0.

        Returns
        -------
        dict
            Query id -> its row numbers, best first; equal scores in row order.
        """
        scores = self.predict(X)
        grouping = Queries.from_qid(self._query_ids(X, qid), len(scores))
        ids = grouping.ids.tolist()
        ordered = (rows[np.argsort(-scores[rows], kind="stable")] for _, rows in grouping)
        return dict(zip(ids, ordered, strict=True))

    def score(self, X: Any, y: Any, *, qid: Any = None, sample_weight: Any = None) -> float:
        """Mean NDCG@10 of the ranking (convention "default" of `ranksvm.metrics.evaluate`).

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,)
            Labels.
        qid : array-like of shape (n_samples,) or str, optional
            Query of each row, as in `rank`.
        sample_weight : array-like of shape (n_samples,), optional
            A query counts with the mean weight of its rows.

        Returns
        -------
        float
            Mean NDCG@10 over the queries.

        Raises
        ------
        DataError
            When the model was fitted with several queries and ``qid`` is missing.
        """
        scores = self.predict(X)
        qid = self._query_ids(X, qid)
        if qid is None and self.n_queries_ > 1:
            raise DataError(
                "This model was fitted with qid, but score was called without: pass qid=... . Inside scikit-learn's "
                "searches, sklearn.set_config(enable_metadata_routing=True) passes it on; "
                "ranksvm.cross_validate needs no routing."
            )
        return evaluate(y, scores, qid, [SCORE_METRIC], sample_weight=sample_weight).means[SCORE_METRIC]

    def coef_table(self) -> Any:
        """Weights beside the names of their features, the largest in absolute value first.

        Returns
        -------
        DataFrame or structured ndarray, shape (n_features,)
            Columns ``feature`` (the name, or ``x0``, ``x1``, ... where X had none), ``weight``, and ``rank`` by
            ``|weight|``, from 1; equal ones in the order of the features. A DataFrame of the library that `fit` was
            given one of (where it is installed), else a structured array: ``table["weight"]``, ``table[:10]``.
        """
        check_is_fitted(self, "coef_")
        names = getattr(self, "feature_names_in_", None)
        names = np.array([f"x{number}" for number in range(len(self.coef_))] if names is None else names, dtype=str)
        order = np.argsort(-np.abs(self.coef_), kind="stable")
        columns = {"feature": names[order], "weight": self.coef_[order], "rank": np.arange(1, len(order) + 1)}
        library = getattr(self, "frame_type_", None)
        frame = None if library is None else _frames.frame_from(columns, library)
        if frame is not None:
            return frame
        table = np.empty(len(order), dtype=[(name, values.dtype) for name, values in columns.items()])
        for name, values in columns.items():
            table[name] = values
        return table

    def explain(self, X: Any, qid: Any = None, *, feature_names: Any = None) -> Explanation:
        """Why documents stand where they do, and why one ranks above another: what each feature contributes.

        Document i ranks above document j of its query because ``s_i - s_j = sum over features f of
        w_f (x_if - x_jf)``; its place in the query is explained by the same sum with the mean of the query's documents
        for j.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features.
        qid : array-like of shape (n_samples,) or str, optional
            Query of each row, as in `rank`.
        feature_names : array-like of str, shape (n_features,), optional
            Names of the features; None: those of the DataFrame that `fit` was given, if it was one.

        Returns
        -------
        Explanation
            With methods ``document(row)``, ``pair(row, other_row)`` and ``query(id)``, and all ``contributions``.

        Raises
        ------
        DataError
            When X is not what the model was fitted to, or lengths differ.

        See Also
        --------
        ranksvm.analysis.explain : The same for a Pipeline that ends with a ranker.

        Examples
        --------
        >>> from ranksvm import RankSVM, make_ranking
        >>> data = make_ranking(n_queries=50, n_docs=20, n_features=10, random_state=0)
        >>> ranker = RankSVM(C=0.01).fit(data.X, data.y, qid=data.qid)
        >>> pair = ranker.explain(data.X, data.qid).pair(3, 0)
        >>> bool(abs(pair.contributions.sum() - pair.difference) < 1e-12)
        True
        """
        X, ids = self._features(X), self._query_ids(X, qid)
        scores = linear_scores(X, self.coef_, effective_n_jobs(self.n_jobs))
        names = getattr(self, "feature_names_in_", None) if feature_names is None else np.asarray(feature_names)
        if names is not None and names.shape != self.coef_.shape:
            raise DataError(f"feature_names has shape {names.shape}, but there are {len(self.coef_)} features.")
        return Explanation(X, self.coef_, scores, Queries.from_qid(ids, len(scores)), names)

    def feature_importance(self, X: Any, qid: Any = None) -> np.ndarray:
        """How far each feature moves documents of a query apart: ``|w_f|`` times its standard deviation within queries.

        The variance is pooled over the queries: ``sum over queries q and rows i of q of (x_if - mean_qf)^2 /
        (n_samples - n_queries)``, half the mean squared difference of two documents of a query. What a feature does
        between queries counts for nothing, as in the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features.
        qid : array-like of shape (n_samples,) or str, optional
            Query of each row, as in `rank`.

        Returns
        -------
        ndarray of float64, shape (n_features,)
            The importances, in the unit of the scores; 0 where no query has two documents.

        See Also
        --------
        ranksvm.analysis.feature_importance : The same for a Pipeline that ends with a ranker.
        """
        X, ids = self._features(X), self._query_ids(X, qid)
        variance = within_query_variance(X, Queries.from_qid(ids, X.shape[0]), effective_n_jobs(self.n_jobs))
        return np.abs(self.coef_) * np.sqrt(variance)

    def _features(self, X: Any) -> Any:
        """X as the model was fitted to it, checked, without a column of query ids."""
        check_is_fitted(self, "coef_")
        X = _inputs.features(self, self._without_qid_column(X), n_threads=effective_n_jobs(self.n_jobs))
        if self.coef_.shape != (X.shape[1],):
            raise DataError(f"X has {X.shape[1]} features, but coef_ has shape {self.coef_.shape}: fit anew.")
        return X

    def _has_qid_column(self, X: Any) -> bool:
        column = getattr(self, "qid_column_", None)
        return column is not None and _frames.has_column(X, column)

    def _without_qid_column(self, X: Any) -> Any:
        return _frames.drop_column(X, self.qid_column_) if self._has_qid_column(X) else X

    def _query_ids(self, X: Any, qid: Any) -> Any:
        """The ids given, by name or not, or those in the column that had them in `fit`."""
        if qid is None and self._has_qid_column(X):
            return _frames.column(X, self.qid_column_)
        return _frames.split_qid(X, qid)[1]

    def save(self, path: str | os.PathLike) -> None:
        """Write the model to a file that `ranksvm.load` reads.

        Parameters
        ----------
        path : str or path-like
            File to write, whole or not at all.
        """
        check_is_fitted(self, "coef_")
        save(self, path)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags
