"""Base of the low-rank rankers: it checks the training data, and computes the learned dual variables."""

from collections.abc import Callable
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.metadata_routing import UNUSED

from ranksvm._util import checks
from ranksvm._util.threads import effective_n_jobs
from ranksvm._util.types import Features, MatrixLike
from ranksvm.data import ComparablePairs, Queries, validation
from ranksvm.data.queries import check_grouped
from ranksvm.estimators.base.inputs import read_training_data
from ranksvm.estimators.base.linear_ranker import LinearRanker, on_host
from ranksvm.estimators.base.sklearn_base import BaseEstimator
from ranksvm.exceptions import DataError
from ranksvm.fits.results.dual import AlphaOfPairs, DualCoef, WholeBlocks
from ranksvm.fits.training_set import TrainingArguments, TrainingSet
from ranksvm.model_files.schema import Array, Flag, Number, PlainDict, Schema, Text, Trace

# Features, queries, labels and pairs of the training data.
DataOfFit = tuple[Features, Queries, np.ndarray, ComparablePairs]


class LowRankRanker(LinearRanker, BaseEstimator):
    """Base of the linear rankers whose dual variables form a low-rank matrix for each query.

    ``fit`` takes neither weights nor explicit pairs. A subclass defines its alpha (`_alpha`) and its low-rank matrices
    (`_entries`).
    """

    _model_kind: ClassVar[str]
    _fitted_schema: ClassVar[Schema] = {
        "coef_": Array("n_features"),
        "objective_": Number(),
        "converged_": Flag(),
        "status_": Text(),
        "n_iter_": Number(integer=True, minimum=0),
        "history_": Trace(),
        "n_pairs_": Number(integer=True, minimum=0),
        "n_queries_": Number(integer=True, minimum=0, size="n_queries"),
        "fitted_params_": PlainDict(),
        "evals_result_": Trace(required=False),
    }
    objective_: float
    converged_: bool
    status_: str
    n_iter_: int
    history_: dict[str, list[float]]
    n_pairs_: int
    evals_result_: dict[str, dict[str, list[float]]]

    __metadata_request__fit: ClassVar = dict.fromkeys(("sample_weight", "query_weight", "propensity", "event"), UNUSED)
    # requests of `score` alone would hide that `fit` does not use these
    __metadata_request__score: ClassVar = {"sample_weight": None, "event": None}

    def dual_coef(
        self, X: MatrixLike, y: ArrayLike, qid: ArrayLike | None = None, *, group: ArrayLike | None = None
    ) -> DualCoef:
        """The learned dual variables: one alpha for each pair, query by query, computed on access.

        ``coef_`` is ``sum of alpha_ij (x_i - x_j)``, which equals ``X' beta``, where beta is the ``per_document()`` of
        the result.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The features that the model was fitted to.
        y : array-like of shape (n_samples,)
            Their labels.
        qid : array-like of shape (n_samples,) or str, optional
            Query of each row, as in `rank`.
        group : array-like of int, shape (n_queries,), optional
            Instead of ``qid``: sizes of consecutive queries.

        Returns
        -------
        DualCoef
            A sequence with a `DualBlock` for each query, in order of appearance. A block takes 16 bytes for each of its
            entries (alpha and weight) and is not stored.

        Raises
        ------
        NoComparablePairsError
            When no query has two documents with different labels.
        DataError
            When lengths differ, or queries or labels show that these are not the training data. Some changes in the
            order of rows go unnoticed.
        """
        X, queries, labels, pairs = self._data_of_fit(X, y, qid, group)
        return DualCoef(pairs, queries, labels, self._alpha(X, queries))

    def low_rank_coef(
        self, X: MatrixLike, y: ArrayLike, qid: ArrayLike | None = None, *, group: ArrayLike | None = None
    ) -> DualCoef:
        """The learned low-rank matrices, one for each query, with all of their entries, computed on access.

        For `FactorizedRankSVM`, the entry of preferred document i and other document j is ``<v_i, v_j>``, the inner
        product of their factors, so that the rank is at most ``n_components``. For `RegularizedRankSVM`, they are the
        matrices A_q, with the ranks ``ranks_`` and with entries that may be negative or larger than C. If labels have
        three or more levels, some entries of a matrix are not pairs. Here such entries have values; in `dual_coef` they
        are 0, which raises the rank of its matrices. So ``X'`` times ``per_document()`` of this result is in general
        not ``coef_``, unlike with `dual_coef`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The features that the model was fitted to.
        y : array-like of shape (n_samples,)
            Their labels.
        qid : array-like of shape (n_samples,) or str, optional
            Query of each row, as in `rank`.
        group : array-like of int, shape (n_queries,), optional
            Instead of ``qid``: sizes of consecutive queries.

        Returns
        -------
        DualCoef
            A sequence as from `dual_coef`. The ``alpha`` of each `DualBlock` are the entries of the query's matrix; its
            ``weights`` show which entries are pairs.

        Raises
        ------
        NoComparablePairsError
            When no query has two documents with different labels.
        DataError
            When lengths differ, or queries or labels show that these are not the training data. Some changes in the
            order of rows go unnoticed.
        """
        _, queries, labels, pairs = self._data_of_fit(X, y, qid, group)
        entries = self._entries(queries)
        return WholeBlocks(pairs, queries, labels, lambda query, i, j, _: entries(query, i, j))

    def _entries(self, queries: Queries) -> Callable[[int, np.ndarray, np.ndarray], np.ndarray]:
        """A function that returns entries of the low-rank matrix of a query, given its number and rows of documents."""
        raise NotImplementedError

    def _alpha(self, X: Features, queries: Queries) -> AlphaOfPairs:
        """A function that gives the alpha of pairs."""
        raise NotImplementedError

    def _data_of_fit(self, X: MatrixLike, y: ArrayLike, qid: ArrayLike | None, group: ArrayLike | None) -> DataOfFit:
        """Features, queries, labels and pairs of the training data; DataError if the data are not those of ``fit``."""
        X, ids = self._split_qid(X, qid)
        features = on_host(self._features(X))
        queries, labels = Queries.of(ids, group, features.shape[0]), validation.checked_labels(y, features.shape[0])
        pairs = ComparablePairs.from_labels(queries, labels, n_threads=effective_n_jobs(self.n_jobs))
        if (pairs.n_pairs, queries.n_queries) != (self.n_pairs_, self.n_queries_):
            raise DataError(
                f"There are {pairs.n_pairs:,} pairs in {queries.n_queries} queries, but the model was fitted to "
                f"{self.n_pairs_:,} pairs in {self.n_queries_}: give the training data."
            )
        return features, queries, labels, pairs

    def _training_set(self, training: TrainingArguments) -> TrainingSet:
        """The training set made from features and labels; the estimator stores the names and number of the features."""
        self._check_labels(training.X, training.y)
        training = read_training_data(self, training)
        check_grouped(training.qid, training.group, training.X.shape[0])
        n_threads = effective_n_jobs(self.n_jobs)
        queries = Queries.of(training.qid, training.group, training.X.shape[0])
        pairs = ComparablePairs.from_labels(queries, training.y, n_threads=n_threads)
        return TrainingSet(training.X, pairs, queries.n_queries, n_threads, training.y)

    def _check_loaded(self) -> None:
        super()._check_loaded()
        if hasattr(self, "fitted_params_"):
            checks.check_parameters(self._model_kind, {name: self.fitted_params_[name] for name in self._model_params})
