"""Refit: a batch learner that learns query by query through repeated full fits."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone

from ranksvm._util.checks import check_one_per_row, is_integer, is_sparse, n_rows_of
from ranksvm._util.types import Features, MatrixLike
from ranksvm.data import Queries, frames
from ranksvm.data.numeric_column import label_column
from ranksvm.exceptions import DataError, OptionError

__all__ = ["Refit"]

# Features, labels and numbers of queries of some rows.
SeenRows = tuple[Features, np.ndarray, np.ndarray]


class Refit(BaseEstimator):
    """A model that is fitted again, to all queries seen so far, each time ``every`` new queries have arrived.

    With it `progressive_validation` compares a batch learner with online learners. Unlike an online learner, it stores
    all documents, and each fit takes longer than the previous one.

    Parameters
    ----------
    estimator : object
        Has ``fit(X, y, qid=...)`` and ``predict(X)``; a clone is fitted repeatedly. If it has a parameter
        ``warm_start``, as `RankSVM` does, True starts each fit from the weights of the last one.
    every : int, default 1
        Number of new queries between fits.

    Attributes
    ----------
    estimator_ : object
        The model; first fitted after ``every`` queries, at least one of which has two different labels.
    n_queries_ : int
        Number of queries seen.
    n_fits_ : int
        Number of fits.

    Examples
    --------
    >>> from ranksvm import RankSVM, Refit, make_ranking, progressive_validation
    >>> data = make_ranking(n_queries=60, n_docs=20, n_features=10, random_state=0)
    >>> result = progressive_validation(Refit(RankSVM(C=0.01, warm_start=True), every=10), data)
    >>> result.models[0].n_fits_
    6
    """

    def __init__(self, estimator: Any, every: int = 1):
        self.estimator = estimator
        self.every = every

    def partial_fit(self, X: MatrixLike, y: ArrayLike, *, qid: ArrayLike | None = None) -> Self:
        """Add queries to those seen, and fit if there are enough new ones since the last fit.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,)
            Labels.
        qid : array-like of shape (n_samples,), optional
            Query of each row; None: all rows are one query. A query in a later call is a different query.

        Returns
        -------
        self
            The model.

        Raises
        ------
        DataError
            When lengths differ, or the number of features differs from that of earlier queries. After this error, or an
            error of the fit, the model is unchanged.
        OptionError
            When ``every`` is not a positive integer.
        """
        if not is_integer(self.every, 1):
            raise OptionError(f"every must be a positive integer, got {self.every!r}.")
        X = _rows(X)
        labels = label_column(y)
        check_one_per_row("y", labels, X.shape[0])
        queries = Queries.from_qid(qid, len(labels))
        if not hasattr(self, "estimator_"):
            self.estimator_ = clone(self.estimator)
            self.n_queries_ = self.n_fits_ = self._n_queries_fitted = 0
            self._seen: list[SeenRows] = []
            self._has_pairs = False
        if self._seen and X.shape[1:] != self._seen[0][0].shape[1:]:
            raise DataError(f"X has shape {X.shape}, but the queries seen have {self._seen[0][0].shape[1]} features.")
        seen = [*self._seen, (X, labels, self.n_queries_ + queries.numbers())]
        n_queries = self.n_queries_ + queries.n_queries
        has_pairs = self._has_pairs or any(np.ptp(labels[rows]) > 0 for _, rows in queries)
        if has_pairs and n_queries - self._n_queries_fitted >= self.every:
            seen = self._fit(seen)
            self._n_queries_fitted = n_queries
            self.n_fits_ += 1
        self._seen, self.n_queries_, self._has_pairs = seen, n_queries, has_pairs
        return self

    def predict(self, X: MatrixLike) -> np.ndarray:
        """Scores of the last fit; all 0 before the first fit.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of float64, shape (n_samples,)
            The scores.
        """
        if not getattr(self, "n_fits_", 0):
            return np.zeros(n_rows_of(X))
        return self.estimator_.predict(_rows(X))

    def _fit(self, seen: list[SeenRows]) -> list[SeenRows]:
        """Fit to all queries; returns them joined."""
        parts, labels, qid = zip(*seen, strict=True)
        X = frames.stacked(*parts)
        y, numbers = np.concatenate(labels), np.concatenate(qid)
        self.estimator_.fit(X, y, qid=numbers)
        return [(X, y, numbers)]


def _rows(X: MatrixLike) -> Features:
    """CSR or an array, so that fitting and ranking both use X without the names of a DataFrame."""
    return X.tocsr() if is_sparse(X) else np.asarray(X)
