"""Scaling of features within each query, as in LETOR's query-level normalization."""

from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from ranksvm._util.checks import check, flag, is_sparse, one_of
from ranksvm._util.sparse_format import without_duplicates
from ranksvm._util.types import Features, MatrixLike
from ranksvm.data import frames
from ranksvm.data.queries import Queries, check_grouped, query_ranges
from ranksvm.data.retriever_scores import NORMALIZERS, normalized_scores
from ranksvm.data.statistics import BLOCK, cell_squares, inverse
from ranksvm.data.validation import where_not_finite
from ranksvm.exceptions import DataError, OptionError
from ranksvm.model_files.registry import storable
from ranksvm.model_files.schema import Number, Schema, Texts

__all__ = ["QueryMinMaxScaler", "QueryStandardScaler", "RetrieverScaler"]


class _QueryScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Base of the scalers: they learn only the number of features, and scale each query separately."""

    __metadata_request__fit: ClassVar[dict[str, bool]] = {"qid": True}
    __metadata_request__transform: ClassVar[dict[str, bool]] = {"qid": True}

    _fitted_schema: ClassVar[Schema] = {
        "n_features_in_": Number(integer=True, minimum=1, size="n_features"),
        "feature_names_in_": Texts("n_features", required=False),
    }
    copy: bool
    # whether NaN in X has a meaning for the scaler
    _takes_missing = False

    def fit(self, X: MatrixLike, y: object = None, *, qid: ArrayLike | None = None) -> Self:
        """Validate X and store its number of features; nothing else is learned.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_features)
            Features. `QueryStandardScaler` with ``with_mean=False`` also takes a sparse matrix.
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
            When X is not two-dimensional, is sparse but may not be, has infinite values, or has NaN that the scaler
            does not accept, or ``qid`` and X differ in length.
        OptionError
            When a parameter of the scaler has an invalid value.
        """
        X, qid, _ = frames.split_qid(X, qid)
        X = self._validated(X, reset=True, copy=False)
        Queries.from_qid(qid, X.shape[0])
        return self

    def transform(self, X: MatrixLike, *, qid: ArrayLike | None = None) -> Features:
        """Scale the features of each query by the query's own statistics.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_features)
            Features. `QueryStandardScaler` with ``with_mean=False`` also takes a sparse matrix.
        qid : array-like of shape (n_rows,) or str, optional
            Query id of each row, in any order, or the name of the column of a DataFrame that contains the ids; it is
            not used as a feature. None: all rows are one query, with a `OneQueryWarning`; more than 1,000 rows are then
            refused. If they are one query, pass one id for all of them, ``qid=np.zeros(n_rows)``.

        Returns
        -------
        ndarray or CSR matrix of shape (n_rows, n_features)
            Scaled features; float32 stays float32, other types become float64.

        Raises
        ------
        DataError
            When X is not two-dimensional, is sparse but may not be, has infinite values, or has NaN that the scaler
            does not accept, ``qid`` and X differ in length, or ``qid`` is None and there are more than 1,000 rows.
        OptionError
            When a parameter of the scaler has an invalid value.
        """
        check_is_fitted(self)
        X, qid, _ = frames.split_qid(X, qid)
        X = self._validated(X, reset=False, copy=self.copy)
        check_grouped(qid, None, X.shape[0], type(self).__name__, "scaled together")
        queries = Queries.from_qid(qid, X.shape[0])
        return self._scale_sparse(X, queries) if is_sparse(X) else self._scale_dense(X, queries)

    def fit_transform(self, X: MatrixLike, y: object = None, *, qid: ArrayLike | None = None) -> Features:
        """`fit`, then `transform` of the same data.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_features)
            Features. `QueryStandardScaler` with ``with_mean=False`` also takes a sparse matrix.
        y : None
            Ignored.
        qid : array-like of shape (n_rows,) or str, optional
            Query id of each row, in any order, or the name of the column of a DataFrame that contains the ids; it is
            not used as a feature. None: all rows are one query, with a `OneQueryWarning`; more than 1,000 rows are then
            refused. If they are one query, pass one id for all of them, ``qid=np.zeros(n_rows)``.

        Returns
        -------
        ndarray or CSR matrix of shape (n_rows, n_features)
            Scaled features.
        """
        return self.fit(X, y, qid=qid).transform(X, qid=qid)

    def _validated(self, X: MatrixLike, reset: bool, copy: bool) -> Features:
        check(copy=flag(self.copy))
        if is_sparse(X):
            self._check_sparse()
        checks: dict[str, Any] = {"accept_sparse": "csr", "dtype": (np.float64, np.float32), "order": None}
        finite: str | bool = "allow-nan" if self._takes_missing else True
        # without a copy the array is modified, and the array of a DataFrame may not be writeable
        writing = {"copy": copy, "force_writeable": not reset}
        try:
            found = frames.validated(self, X, reset=reset, ensure_all_finite=finite, **writing, **checks)
            return without_duplicates(found) if is_sparse(found) else found
        except DataError:
            raise
        except ValueError as error:
            try:
                found = frames.validated(self, X, reset=reset, ensure_all_finite=False, **checks)
            except ValueError:
                raise DataError(str(error)) from None
            found = np.where(np.isnan(found), 0.0, found) if self._takes_missing else found
            place = where_not_finite(found, getattr(self, "feature_names_in_", None))
            if place is None:
                raise DataError(str(error)) from None
        # this message replaces scikit-learn's, which gives no position and recommends estimators that accept NaN
        raise DataError(f"Input X contains {place}: drop such rows, or replace the values, before scaling.")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.sparse = False
        return tags

    def _scale_dense(self, X: np.ndarray, queries: Queries) -> np.ndarray:
        for first, last in query_ranges(queries.pointers * X.shape[1], BLOCK):
            start, stop = queries.pointers[first], queries.pointers[last]
            rows: slice | np.ndarray = slice(start, stop) if queries.order is None else queries.order[start:stop]
            block = X[rows].astype(np.float64)
            X[rows] = self._scaled(block, queries.pointers[first:last] - start, queries.sizes[first:last])
        return X

    def _scaled(self, block: np.ndarray, starts: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        """Scale the rows of some queries, in float64; ``block`` may be overwritten."""
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

    def _scaled(self, block: np.ndarray, starts: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        low = np.minimum.reduceat(block, starts, axis=0)
        spread = np.maximum.reduceat(block, starts, axis=0) - low
        spread[spread == 0.0] = 1.0
        number = np.repeat(np.arange(len(starts)), sizes)
        block -= low[number]
        # division, not multiplication by the reciprocal, so that the largest value of a query becomes exactly 1
        block /= spread[number]
        return block


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

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self.with_mean
        return tags

    def _validated(self, X: MatrixLike, reset: bool, copy: bool) -> Features:
        check(with_mean=flag(self.with_mean), with_std=flag(self.with_std))
        return super()._validated(X, reset, copy)

    def _check_sparse(self) -> None:
        if self.with_mean:
            raise DataError(
                "QueryStandardScaler would make a sparse X dense: it subtracts the mean. Use with_mean=False, or pass "
                "X.toarray()."
            )

    def _scaled(self, block: np.ndarray, starts: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        # Centered at the query's first row: a constant feature is then exactly 0, and a large mean costs no digits.
        number = np.repeat(np.arange(len(starts)), sizes)
        centered = block - block[starts][number]
        centered -= (np.add.reduceat(centered, starts, axis=0) / sizes[:, None])[number]
        scaled = centered if self.with_mean else block
        if self.with_std:
            variance = np.add.reduceat(np.square(centered), starts, axis=0) / sizes[:, None]
            scaled *= inverse(np.sqrt(variance), 0.0 if self.with_mean else 1.0)[number]
        return scaled

    def _scale_sparse(self, X: sp.csr_matrix, queries: Queries) -> sp.csr_matrix:
        if not self.with_std:
            return X
        cells, cell, squares = cell_squares(X, queries.numbers(), queries.sizes)
        variance = squares / queries.sizes[cells // X.shape[1]]
        X.data *= inverse(np.sqrt(variance), 1.0)[cell].astype(X.dtype)
        return X


@storable
class RetrieverScaler(_QueryScaler):
    """Normalize scores of retrievers as an engine does in a hybrid search, so that the learned weights fit the engine.

    Each column of X has the scores of one retriever (a lexical query, a vector search, ...). Each row is a document
    that at least one of them returned for the query. NaN means that the retriever did not return the document; then
    the engine adds 0 for it. Nothing is learned in `fit`.

    Parameters
    ----------
    normalizer : {"minmax", "l2_norm", "none"}, default "minmax"
        ``(x - min) / (max - min)`` or ``x / norm`` over the documents that the retriever returned, or the score
        itself ("none": Elasticsearch only).
    engine : {"elasticsearch", "opensearch"}, default "elasticsearch"
        The engine. The two differ in three cases: all scores are equal, the lowest score, and norms near 0.
    copy : bool, default=True
        Whether `transform` leaves X unchanged; False scales a float array in place where possible.

    Attributes
    ----------
    n_features_in_ : int
        Number of retrievers.
    feature_names_in_ : ndarray of str
        Names of the columns, if X had any.

    See Also
    --------
    ranksvm.export : Writes the weights for "elasticsearch-hybrid" and "opensearch-hybrid".

    Examples
    --------
    >>> import numpy as np
    >>> from ranksvm import RetrieverScaler
    >>> scores = [[12.0, 0.9], [8.0, np.nan], [np.nan, 0.5]]  # BM25, vectors
    >>> RetrieverScaler().fit_transform(scores, qid=[1, 1, 1]).tolist()
    [[1.0, 1.0], [0.0, 0.0], [0.0, 0.0]]
    >>> RetrieverScaler(engine="opensearch").fit_transform(scores, qid=[1, 1, 1]).tolist()
    [[1.0, 1.0], [0.001, 0.0], [0.0, 0.001]]
    """

    _takes_missing = True

    def __init__(self, normalizer: str = "minmax", *, engine: str = "elasticsearch", copy: bool = True):
        self.normalizer = normalizer
        self.engine = engine
        self.copy = copy

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _validated(self, X: MatrixLike, reset: bool, copy: bool) -> Features:
        check(engine=one_of(self.engine, NORMALIZERS))
        if self.normalizer not in NORMALIZERS[self.engine]:
            allowed = ", ".join(map(repr, NORMALIZERS[self.engine]))
            raise OptionError(f"normalizer must be one of {allowed} for {self.engine}, got {self.normalizer!r}.")
        return super()._validated(X, reset, copy)

    def _check_sparse(self) -> None:
        raise DataError(
            "RetrieverScaler takes no sparse X, in which a value that is not stored is 0: pass an array with NaN for "
            "each document that a retriever did not return."
        )

    def _scaled(self, block: np.ndarray, starts: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        return normalized_scores(block, starts, sizes, self.engine, self.normalizer)
