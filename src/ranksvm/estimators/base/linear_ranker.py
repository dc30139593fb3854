"""Base of the rankers with a linear scoring function, and classes for the linear rankers in model files."""

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

import ranksvm._compiled.linear as linear
from ranksvm._util.text import feature_labels
from ranksvm._util.threads import effective_n_jobs
from ranksvm._util.types import Features, MatrixLike
from ranksvm.data import Queries, frames, validation
from ranksvm.data.device_features import DeviceFeatures
from ranksvm.data.scores import linear_scores
from ranksvm.data.statistics import within_query_variance
from ranksvm.estimators import ONLINE_CHOICES
from ranksvm.estimators.base.arguments import Validated
from ranksvm.estimators.base.ranker import Ranker, check_is_fitted
from ranksvm.exceptions import DataError
from ranksvm.fits.results.explanation import Explanation
from ranksvm.model_files.schema import Array, Schema

if TYPE_CHECKING:
    from ranksvm.kernels.expansions import ScoringFunction

# The sign constraints on the weights; files of earlier versions have none.
SIGNS_SCHEMA: Schema = {
    "monotone_": Array("n_features", dtype="int64", minimum=-1, maximum=1, nullable=True, default=None)
}


class LinearRanker(Ranker):
    """Base of the rankers whose score of a document is ``<coef_, x>``."""

    coef_: np.ndarray

    @property
    def intercept_(self) -> float:
        """0, for tools that read linear models: a ranking depends only on differences between scores."""
        check_is_fitted(self)
        return 0.0

    def coef_table(self) -> Any:
        """Weights with the names of their features, the largest absolute value first.

        Returns
        -------
        DataFrame or structured ndarray, shape (n_features,)
            Columns ``feature`` (the name; if X had none ``f1``, ``f2``, ..., numbered as in LETOR files), ``weight``,
            and ``rank`` by ``|weight|``, from 1; ties in the order of the features. The table is a DataFrame of the
            library whose DataFrame was passed to `fit`, if that library is installed. Otherwise it is a structured
            array: ``table["weight"]``, ``table[:10]``.
        """
        check_is_fitted(self)
        names = np.array(feature_labels(len(self.coef_), getattr(self, "feature_names_in_", None)), dtype=str)
        order = np.argsort(-np.abs(self.coef_), kind="stable")
        columns = {"feature": names[order], "weight": self.coef_[order], "rank": np.arange(1, len(order) + 1)}
        return frames.table_from(columns, getattr(self, "frame_type_", None))

    @property
    def feature_importances_(self) -> np.ndarray:
        """``|w_f|`` over the sum of ``|w_f|``, as in XGBoost's `gblinear`; ndarray of float64, shape (n_features,).

        These values are comparable only if all features have the same scale; `feature_importance` takes the spread of
        each feature into account.
        """
        check_is_fitted(self)
        sizes = np.abs(self.coef_)
        total = sizes.sum()
        shares: np.ndarray = sizes / total if total > 0.0 else sizes
        return shares

    def explain(
        self, X: MatrixLike, qid: ArrayLike | None = None, *, feature_names: ArrayLike | None = None
    ) -> Explanation:
        """Per-feature attribution of score differences within queries.

        Document i ranks above document j of its query because ``s_i - s_j = sum over features f of w_f (x_if - x_jf)``;
        the score of document i, minus the mean score of its query, is the same sum with the mean of the query's
        features in place of x_j.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features.
        qid : array-like of shape (n_samples,) or str, optional
            Query of each row, as in `rank`.
        feature_names : array-like of str, shape (n_features,), optional
            Names of the features; None: the column names, if `fit` was given a DataFrame.

        Returns
        -------
        Explanation
            With methods ``document(row)``, ``pair(row, other_row)`` and ``query(id)``, and all ``contributions``.

        Raises
        ------
        DataError
            When the features of X are not the model's, or lengths differ.

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
        X, ids = self._split_qid(X, qid)
        features = on_host(self._features(X))
        scores, names = self._scores(features), self._names_or(feature_names)
        return Explanation(features, self.coef_, scores, Queries.from_qid(ids, len(scores)), names)

    def feature_importance(self, X: MatrixLike, qid: ArrayLike | None = None) -> np.ndarray:
        """Importance of each feature: ``|w_f|`` times the standard deviation of the feature within queries.

        The variance is pooled over the queries: ``sum over queries q and rows i of q of (x_if - mean_qf)^2 /
        (n_samples - n_queries)``. One query's variance is half the mean squared difference of two of its documents.
        Differences of a feature between queries do not count, as in the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features.
        qid : array-like of shape (n_samples,) or str, optional
            Query of each row, as in `rank`.

        Returns
        -------
        ndarray of float64, shape (n_features,)
            The importances, in the unit of the scores; 0 if no query has two documents.

        See Also
        --------
        ranksvm.analysis.feature_importance : The same for a Pipeline that ends with a ranker.
        """
        X, ids = self._split_qid(X, qid)
        features = on_host(self._features(X))
        queries = Queries.from_qid(ids, features.shape[0])
        variance = within_query_variance(features, queries, effective_n_jobs(self.n_jobs))
        importance: np.ndarray = np.abs(self.coef_) * np.sqrt(variance)
        return importance

    def _predicted(self, X: MatrixLike) -> np.ndarray:
        # A value that is not finite makes the score of its row not finite, for any weight (0 * inf is NaN). X is read
        # a second time only if a score is not finite, which may also be due to overflow.
        features = self._features(X, finite=False)
        scores = self._scores(features)
        if not linear.all_finite(scores):
            validation.check_finite(features, effective_n_jobs(self.n_jobs), getattr(self, "feature_names_in_", None))
        return validation.check_scores(scores)

    def _function(self) -> "ScoringFunction":
        """The scoring function, from the fitted attributes."""
        from ranksvm.kernels.expansions import LinearFunction

        return LinearFunction(self.coef_)

    def _scores(self, X: Validated) -> np.ndarray:
        return linear_scores(X, self.coef_, effective_n_jobs(self.n_jobs))

    def _features(self, X: MatrixLike, finite: bool = True) -> Validated:
        found = super()._features(X, finite)
        if self.coef_.shape != (found.shape[1],):
            raise DataError(f"X has {found.shape[1]} features, but coef_ has shape {self.coef_.shape}: fit again.")
        return found


def on_host(X: Validated) -> Features:
    """Validated features in memory of the host."""
    return X.on_host() if isinstance(X, DeviceFeatures) else X


class SavedLinearRanker(LinearRanker):
    """A linear ranker of a model file: it scores, ranks and explains documents, and cannot be fitted.

    Parameters
    ----------
    **params : optional
        The hyper-parameters of the saved class.
    """

    _fitted_schema: ClassVar[Schema] = {"coef_": Array("n_features")}

    def __init__(self, **params: Any):
        vars(self).update(params)


class SavedOnlineRanker(SavedLinearRanker):
    """An online ranker of a model file: it scores, ranks and explains documents, and cannot learn.

    Parameters
    ----------
    **params : optional
        The hyper-parameters of the saved class.
    """

    _fitted_schema: ClassVar[Schema] = {
        "coef_": Array("n_features", required=False),
        "weights_": Array("n_features"),
        "lag_": Array("n_features", nullable=True),
        "counts_": Array(4),
    }
    weights_: np.ndarray
    lag_: np.ndarray | None
    counts_: np.ndarray

    def _check_loaded(self) -> None:
        """Compute the weights, or their mean over all pairs seen, as `OnlineRanker.coef_` does."""
        if hasattr(self, "weights_"):
            mean = self.lag_ is not None
            self.coef_ = self.weights_ - self.lag_ / max(self.counts_[0], 1.0) if mean else self.weights_


# Name of each class whose model files hold `coef_` -> the class that reads them. It has the same name, which messages
# show.
SAVED_LINEAR_RANKERS = {
    name: type(name, (SavedLinearRanker,), {})
    for name in ("RankSVM", "RankSVMCV", "FactorizedRankSVM", "RegularizedRankSVM", "ImportedRanker")
}

# The same for online rankers, whose `coef_` is computed from `weights_`, `lag_` and `counts_`.
SAVED_ONLINE_RANKERS = {
    choice.estimator: type(choice.estimator, (SavedOnlineRanker,), {})
    for choice in ONLINE_CHOICES.values()
    if choice.linear
}
