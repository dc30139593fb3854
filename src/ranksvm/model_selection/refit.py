"""Refit: a model of all queries at once, made to learn query by query the costly way."""

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone

from ranksvm._checks import check_one_per_row, is_integer
from ranksvm.data import Queries
from ranksvm.exceptions import DataError, OptionError

__all__ = ["Refit"]


class Refit(BaseEstimator):
    """A model that is fitted anew to all queries seen, whenever some more have come.

    With it `progressive_validation` compares a batch learner with online ones. It is what they avoid: all documents are
    kept, and each fit takes longer than the one before.

    Parameters
    ----------
    estimator : object
        Has ``fit(X, y, qid=...)`` and ``predict(X)``; a clone is fitted again and again. Where it has a parameter
        ``warm_start``, as `RankSVM` has, True begins each fit at the weights of the last one.
    every : int, default 1
        Number of new queries after which it is fitted.

    Attributes
    ----------
    estimator_ : object
        The model; fitted once there have been ``every`` queries, one with two different labels among them.
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

    def partial_fit(self, X: Any, y: Any, *, qid: Any = None) -> Self:
        """Add queries to those seen, and fit where enough have come since the last fit.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,)
            Labels.
        qid : array-like of shape (n_samples,), optional
            Query of each row; None: all rows are one query. A query that comes in a later call is another one.

        Returns
        -------
        self
            The model.

        Raises
        ------
        DataError
            When lengths differ, or the number of features is not that of the queries seen. This, and an error of the
            fit, leave the model as it was.
        OptionError
            When ``every`` is no positive integer.
        """
        if not is_integer(self.every, 1):
            raise OptionError(f"every must be a positive integer, got {self.every!r}.")
        X = _rows(X)
        labels = np.asarray(y)
        check_one_per_row("y", labels, X.shape[0])
        queries = Queries.from_qid(qid, len(labels))
        if not hasattr(self, "estimator_"):
            self.estimator_ = clone(self.estimator)
            self.n_queries_ = self.n_fits_ = self._n_queries_fitted = 0
            self._seen: list[tuple[Any, np.ndarray, np.ndarray]] = []
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

    def predict(self, X: Any) -> np.ndarray:
        """Scores by the last fit; before the first one all are 0.

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
            return np.zeros(X.shape[0] if hasattr(X, "shape") else len(X))
        return self.estimator_.predict(_rows(X))

    def _fit(self, seen: list[tuple[Any, np.ndarray, np.ndarray]]) -> list[tuple[Any, np.ndarray, np.ndarray]]:
        """Fit to all queries, and give them joined."""
        parts, labels, qid = zip(*seen, strict=True)
        X = sp.vstack(parts, format="csr") if sp.issparse(parts[0]) else np.concatenate(parts)
        y, numbers = np.concatenate(labels), np.concatenate(qid)
        self.estimator_.fit(X, y, qid=numbers)
        return [(X, y, numbers)]


def _rows(X: Any) -> Any:
    """CSR or an array: what is fitted and what is ranked are both without the names of a DataFrame."""
    return X.tocsr() if sp.issparse(X) else np.asarray(X)
