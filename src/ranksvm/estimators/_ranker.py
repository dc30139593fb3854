"""What all rankers that score with a linear function share: scores, ranking, evaluation, persistence."""

import os
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ranksvm._parallel import effective_n_jobs, parallel_map
from ranksvm.data import Queries
from ranksvm.data._spread import within_query_variance
from ranksvm.estimators import _inputs
from ranksvm.estimators._explanation import Explanation
from ranksvm.exceptions import DataError
from ranksvm.metrics import evaluate
from ranksvm.objectives import as_design_matrix
from ranksvm.persistence import save

# Rows scored by one task of a thread.
PREDICT_ROWS = 1 << 15


class LinearRanker(BaseEstimator):
    """Base of the estimators whose score of a document is ``<coef_, x>``."""

    __metadata_request__fit: ClassVar = {"qid": True, "sample_weight": True, "query_weight": True, "propensity": True}
    __metadata_request__score: ClassVar = {"qid": True, "sample_weight": True}

    def predict(self, X: Any) -> np.ndarray:
        """Score of each document; the higher, the further up it belongs.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features. A DataFrame's column of query ids, if `fit` was told one, is left out.

        Returns
        -------
        ndarray of float64, shape (n_samples,)
            ``X @ coef_``, summed in float64.
        """
        return self._scores(self._features(X))

    def rank(self, X: Any, qid: Any = None) -> dict[Any, np.ndarray]:
        """Order the documents of each query.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
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
        X : array-like or sparse matrix of shape (n_samples, n_features)
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
        return evaluate(y, scores, qid, ["ndcg@10"], sample_weight=sample_weight).means["ndcg@10"]

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
        scores = self._scores(X)
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
        if self._has_qid_column(X):
            X = X.drop(columns=self.qid_column_)
        X = _inputs.features(self, X, n_threads=effective_n_jobs(self.n_jobs))
        if self.coef_.shape != (X.shape[1],):
            raise DataError(f"X has {X.shape[1]} features, but coef_ has shape {self.coef_.shape}: fit anew.")
        return X

    def _scores(self, X: Any) -> np.ndarray:
        """``X @ coef_``, of checked features."""
        design = as_design_matrix(X)
        n_rows = X.shape[0]
        scores = np.empty(n_rows)

        def score(start: int) -> None:
            stop = min(start + PREDICT_ROWS, n_rows)
            design.scores(None, start, stop, self.coef_, scores[start:stop])

        parallel_map(score, range(0, n_rows, PREDICT_ROWS), effective_n_jobs(self.n_jobs))
        return scores

    def _has_qid_column(self, X: Any) -> bool:
        column = getattr(self, "qid_column_", None)
        return column is not None and hasattr(X, "columns") and column in X.columns

    def _query_ids(self, X: Any, qid: Any) -> Any:
        """The ids given, by name or not, or those in the column that had them in `fit`."""
        if qid is None and self._has_qid_column(X):
            return X[self.qid_column_]
        return _inputs.split_qid(X, qid)[1]

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
