"""Scaling of features within each query, as in LETOR's query-level normalization."""

from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ranksvm._util.checks import is_sparse
from ranksvm._util.sparse_format import without_duplicates
from ranksvm.data import frames
from ranksvm.data._finite import where_not_finite
from ranksvm.data.queries import Queries, query_ranges
from ranksvm.data.spread import BLOCK, cell_squares, inverse
from ranksvm.data.validation import check_grouped
from ranksvm.exceptions import DataError
from ranksvm.model_files.registry import storable
from ranksvm.model_files.schema import Number, Schema, Texts

__all__ = ["QueryMinMaxScaler", "QueryStandardScaler"]


class _QueryScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Base of both scalers: they learn only the number of features, and scale each query separately."""

    __metadata_request__fit: ClassVar[dict[str, bool]] = {"qid": True}
    __metadata_request__transform: ClassVar[dict[str, bool]] = {"qid": True}

    _fitted_schema: ClassVar[Schema] = {
        "n_features_in_": Number(integer=True, least=1, size="n_features"),
        "feature_names_in_": Texts("n_features", required=False),
    }
    copy: bool

    def fit(self, X: Any, y: Any = None, *, qid: Any = None) -> Any:
        """Validate X and store its number of features; nothing else is learned.

        Parameters
        ----------
        X : array-like, DataFrame or CSR matrix of shape (n_rows, n_features)
            Features.
        y : None
            Ignored.
        qid : array-like of shape (n_rows,) or str, optional
            Query id of each row, in any order, or the name of the column of a DataFrame that contains the ids; it is
            not used as a feature. None: all rows are one query.

        Returns
        -------
        self
            The scaler.

        Raises
        ------
        DataError
            When X holds NaN or infinite values, or ``qid`` and X differ in length.
        """
        X, qid, _ = frames.split_qid(X, qid)
        X = self._validated(X, reset=True, copy=False)
        Queries.from_qid(qid, X.shape[0])
        return self

    def transform(self, X: Any, *, qid: Any = None) -> Any:
        """Scale the features of each query by the query's own statistics.

        Parameters
        ----------
        X : array-like, DataFrame or CSR matrix of shape (n_rows, n_features)
            Features.
        qid : array-like of shape (n_rows,) or str, optional
            Query id of each row, in any order, or the name of the column of a DataFrame that contains the ids; it is
            not used as a feature. None: all rows are one query, with a `OneQueryWarning`; more than 1,000 rows are
            refused then, unless ``qid=np.zeros(n_rows)``, one id for all of them, says that they are one query.

        Returns
        -------
        ndarray or CSR matrix of shape (n_rows, n_features)
            Scaled features; float32 stays float32, other types become float64.

        Raises
        ------
        DataError
            When X holds NaN or infinite values, ``qid`` and X differ in length, or it is missing for more than 1,000
            rows.
        """
        check_is_fitted(self)
        X, qid, _ = frames.split_qid(X, qid)
        X = self._validated(X, reset=False, copy=self.copy)
        check_grouped(qid, None, X.shape[0], type(self).__name__, "scaled together")
        queries = Queries.from_qid(qid, X.shape[0])
        return self._scale_sparse(X, queries) if is_sparse(X) else self._scale_dense(X, queries)

    def fit_transform(self, X: Any, y: Any = None, *, qid: Any = None) -> Any:
        """`fit`, then `transform` of the same data.

        Parameters
        ----------
        X : array-like, DataFrame or CSR matrix of shape (n_rows, n_features)
            Features.
        y : None
            Ignored.
        qid : array-like of shape (n_rows,) or str, optional
            Query id of each row, in any order, or the name of the column of a DataFrame that contains the ids; it is
            not used as a feature. None: all rows are one query, with a `OneQueryWarning`; more than 1,000 rows are
            refused then, unless ``qid=np.zeros(n_rows)``, one id for all of them, says that they are one query.

        Returns
        -------
        ndarray or CSR matrix of shape (n_rows, n_features)
            Scaled features.
        """
        return self.fit(X, y, qid=qid).transform(X, qid=qid)

    def _validated(self, X: Any, reset: bool, copy: bool) -> Any:
        if is_sparse(X):
            self._check_sparse()
        checks: dict[str, Any] = {"accept_sparse": "csr", "dtype": (np.float64, np.float32), "order": None}
        # without a copy the array is modified, and the array of a DataFrame may not be writeable
        writing = {"copy": copy, "force_writeable": not reset}
        try:
            found = frames.validated(self, X, reset=reset, **writing, **checks)
            return without_duplicates(found) if is_sparse(found) else found
        except ValueError:
            found = frames.validated(self, X, reset=reset, ensure_all_finite=False, **checks)
            place = where_not_finite(found, getattr(self, "feature_names_in_", None))
            if place is None:
                raise
        # scikit-learn's message gives no position, and recommends estimators that accept NaN
        raise DataError(f"Input X contains {place}: drop such rows, or replace the values, before scaling.")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.sparse = False
        return tags

    def _scale_dense(self, X: np.ndarray, queries: Queries) -> np.ndarray:
        for first, last in query_ranges(queries.pointers * X.shape[1], BLOCK):
            start, stop = queries.pointers[first], queries.pointers[last]
            rows: Any = slice(start, stop) if queries.order is None else queries.order[start:stop]
            block = X[rows].astype(np.float64)
            starts = queries.pointers[first:last] - start
            shift, scale = self._shift_and_scale(block, starts, queries.sizes[first:last])
            number = np.repeat(np.arange(last - first), queries.sizes[first:last])
            block -= shift[number]
            block *= scale[number]
            X[rows] = block
        return X

    def _shift_and_scale(
        self, block: np.ndarray, starts: np.ndarray, sizes: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        raise NotImplementedError

    def _scale_sparse(self, X: sp.csr_matrix, queries: Queries) -> sp.csr_matrix:
        raise NotImplementedError

    def _check_sparse(self) -> None:
        raise NotImplementedError


@storable
class QueryMinMaxScaler(_QueryScaler):
    """Scale each feature of each query linearly to 0 .. 1, as in the query-normalized LETOR files.

    ``(x - min) / (max - min)`` over the rows of the query; 0 if the feature is constant in the query. Nothing is
    learned in `fit`, so a test query is scaled by its own statistics, without leakage between queries.

    Parameters
    ----------
    copy : bool, default=True
        Whether `transform` leaves X unchanged; False scales a float array in place where possible.

    Attributes
    ----------
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the columns, if X had any.

    Examples
    --------
    >>> QueryMinMaxScaler().fit_transform([[1.0], [3.0], [10.0], [30.0]], qid=[1, 1, 2, 2]).ravel().tolist()
    [0.0, 1.0, 0.0, 1.0]
    """

    def __init__(self, *, copy: bool = True):
        self.copy = copy

    def _check_sparse(self) -> None:
        raise DataError(
            "QueryMinMaxScaler would make a sparse X dense: it subtracts the smallest value. Pass X.toarray(), or use "
            "QueryStandardScaler(with_mean=False), which keeps zeros."
        )

    def _shift_and_scale(
        self, block: np.ndarray, starts: np.ndarray, sizes: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        low = np.minimum.reduceat(block, starts, axis=0)
        return low, inverse(np.maximum.reduceat(block, starts, axis=0) - low)


@storable
class QueryStandardScaler(_QueryScaler):
    """Scale each feature of each query to mean 0 and variance 1.

    ``(x - mean) / standard deviation`` (of the population) over the rows of the query; 0 if the feature is
    constant in the query (with ``with_mean=False``: the value itself). Nothing is learned in `fit`.

    Parameters
    ----------
    with_mean : bool, default=True
        Whether to subtract the mean; must be False for sparse X, which stays sparse.
    with_std : bool, default=True
        Whether to divide by the standard deviation.
    copy : bool, default=True
        Whether `transform` leaves X unchanged; False scales a float array in place where possible.

    Attributes
    ----------
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the columns, if X had any.

    Examples
    --------
    >>> QueryStandardScaler().fit_transform([[1.0], [3.0], [10.0], [30.0]], qid=[1, 1, 2, 2]).ravel().tolist()
    [-1.0, 1.0, -1.0, 1.0]
    """

    def __init__(self, *, with_mean: bool = True, with_std: bool = True, copy: bool = True):
        self.with_mean = with_mean
        self.with_std = with_std
        self.copy = copy

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self.with_mean
        return tags

    def _check_sparse(self) -> None:
        if self.with_mean:
            raise DataError(
                "QueryStandardScaler would make a sparse X dense: it subtracts the mean. Use with_mean=False, or pass "
                "X.toarray()."
            )

    def _shift_and_scale(
        self, block: np.ndarray, starts: np.ndarray, sizes: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        # Centred at the first row of the query: a constant feature is then exactly 0, and large means lose no digits.
        pivot = block[starts]
        number = np.repeat(np.arange(len(starts)), sizes)
        centred = block - pivot[number]
        offset = np.add.reduceat(centred, starts, axis=0) / sizes[:, None]
        shift = pivot + offset if self.with_mean else np.zeros_like(pivot)
        if not self.with_std:
            return shift, np.ones_like(pivot)
        centred -= offset[number]
        variance = np.add.reduceat(np.square(centred, out=centred), starts, axis=0) / sizes[:, None]
        return shift, inverse(np.sqrt(variance), 0.0 if self.with_mean else 1.0)

    def _scale_sparse(self, X: sp.csr_matrix, queries: Queries) -> sp.csr_matrix:
        if not self.with_std:
            return X
        cells, cell, squares = cell_squares(X, queries.numbers(), queries.sizes)
        variance = squares / queries.sizes[cells // X.shape[1]]
        X.data *= inverse(np.sqrt(variance), 1.0)[cell].astype(X.dtype)
        return X
