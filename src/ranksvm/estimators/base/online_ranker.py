"""Base of the online rankers: queries arrive one by one, and each is learned from once, without retraining."""

import copy
import logging
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state
from sklearn.utils.metadata_routing import UNUSED

import ranksvm._compiled.online as online
from ranksvm._util import checks
from ranksvm._util.checks import is_sparse, n_rows_of
from ranksvm._util.threads import effective_n_jobs
from ranksvm._util.types import Features, MatrixLike, RandomState
from ranksvm._util.verbosity import PASSING
from ranksvm.data import Queries, as_design_matrix, frames
from ranksvm.data.design_matrix import DesignMatrix, RowProducts, csr_arrays
from ranksvm.data.numeric_column import checked_weights
from ranksvm.data.pair_list import row_numbers
from ranksvm.data.pairs import PairWeights
from ranksvm.data.queries import check_grouped
from ranksvm.estimators.base.arguments import EvalFeatures, EvalSets, ForEachSet, MetricsLike, Names
from ranksvm.estimators.base.evaluation_rounds import Callbacks, EvaluationRounds, checked_callbacks, checked_patience
from ranksvm.estimators.base.inputs import (
    features_and_labels,
    read_evaluation_sets,
    read_training_data,
    validated_features,
)
from ranksvm.estimators.base.linear_ranker import LinearRanker, on_host
from ranksvm.estimators.base.ranker import all_or_nothing, hyper_parameters
from ranksvm.estimators.base.sklearn_base import BaseEstimator
from ranksvm.estimators.base.undo import lock_of, undone_if_not_finite, undone_if_refused
from ranksvm.exceptions import ModelFileError, OptionError
from ranksvm.fits.evaluation import joined_sets
from ranksvm.fits.training_set import EvalArguments, TrainingArguments
from ranksvm.model_files.schema import Array, Number, Schema, Trace, schema_of

__all__ = ["OnlineRanker", "OnlineRows", "learn_checked_pairs"]

logger = logging.getLogger("ranksvm.estimators")

_ROUTED = {"qid": True, "query_weight": True, "propensity": True}


class OnlineRanker(LinearRanker, BaseEstimator):
    """Base of the linear rankers that learn query by query; time and memory depend on the current query only.

    Learning changes arrays in place. Only one thread may learn; meanwhile, another thread that reads the model (with
    ``predict``, ``rank``, ``coef_`` or ``save``) may see weights of which some are old and some are new. `snapshot` may
    be called from any thread: serve the copy that it returns.

    A subclass defines its initial state (`_begin`), and the update for the pairs of a query (`_learn`).
    """

    _model_kind: ClassVar[str] = "online"
    _fitted_schema: ClassVar[Schema] = {
        "weights_": Array("n_features"),
        "lag_": Array("n_features", nullable=True),
        "counts_": Array(4, minimum=0.0),
        "seed_": Number(integer=True, minimum=0, maximum=np.iinfo(np.int32).max),
        "evals_result_": Trace(required=False),
        "best_iteration_": Number(integer=True, minimum=1, nullable=True, required=False),
        "best_score_": Number(finite=False, nullable=True, required=False),
    }
    n_passes: int
    early_stopping_rounds: int | None
    eval_metric: MetricsLike
    verbose: int
    average: bool
    shuffle_pairs: bool
    random_state: RandomState
    # state of the last fit or partial_fit, in addition to the state of a subclass; the arrays change in place
    weights_: np.ndarray
    lag_: np.ndarray | None
    counts_: np.ndarray
    seed_: int
    evals_result_: dict[str, dict[str, list[float]]]
    best_iteration_: int | None
    best_score_: float | None

    __metadata_request__fit: ClassVar = {"sample_weight": UNUSED, "event": UNUSED}
    # requests of `score` alone would hide that `fit` does not use these
    __metadata_request__score: ClassVar = {"sample_weight": None, "event": None}
    __metadata_request__partial_fit: ClassVar = _ROUTED

    # -- learning ----------------------------------------------------------------------------------------------------

    def fit(
        self,
        X: MatrixLike,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
        query_weight: ArrayLike | None = None,
        propensity: ArrayLike | None = None,
        eval_set: EvalSets | None = None,
        eval_qid: ForEachSet | None = None,
        eval_group: ForEachSet | None = None,
        eval_names: Names | None = None,
        eval_sample_weight: ForEachSet | None = None,
        eval_metric: MetricsLike | None = None,
        eval_at: int | Sequence[int] | None = None,
        eval_X: EvalFeatures | None = None,
        eval_y: ArrayLike | tuple[ArrayLike, ...] | None = None,
        callbacks: Callbacks | None = None,
    ) -> Self:
        """Learn from scratch, in ``n_passes`` passes over queries in the order in which they first appear.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)
            Features, as in `RankSVM.fit`.
        y : array-like of shape (n_samples,)
            Relevance labels: any real numbers; only their order within a query counts.
        qid : array-like of shape (n_samples,) or str, optional
            Query of each row: ids of any dtype, in any order; or the name of the column of a DataFrame X that has them.
            None: the column "qid" of a DataFrame; if there is none, all rows are one query, with a `OneQueryWarning`,
            and more than 1,000 rows are refused unless ``group=[n_samples]`` says that they are one query.
        group : array-like of int, shape (n_queries,), optional
            Instead of ``qid``: sizes of consecutive queries.
        query_weight : array-like of shape (n_samples,), optional
            Weight of each row's query, constant within a query; it is the weight of the query's pairs.
        propensity : array-like of shape (n_samples,), optional
            Probability, in (0, 1], with which feedback on the row was observed. The weights of the pairs in which the
            row is preferred are divided by it.
        eval_set : list or tuple of tuples (X, y), or one such tuple, optional
            Data to evaluate the model on after each pass, as in LightGBM and XGBoost.
        eval_X, eval_y : array-like, or tuples of array-likes, optional
            Instead of ``eval_set``: the features and the labels of one set, or of several, as in LightGBM 4.7.
        eval_qid, eval_group : list of array-like, or one for a single set, optional
            Queries of each set, as ``qid`` or ``group``. If ``qid`` named a column, the same column of the sets is
            used.
        eval_names, eval_sample_weight, eval_at : optional
            As in `RankSVM.fit`.
        eval_metric : str, Metric, or list of either, optional
            What to evaluate on the sets besides the estimator's ``eval_metric``, which comes first and decides on early
            stopping.
        callbacks : list of callable, optional
            Functions called after each pass, as in `FactorizedRankSVM.fit`; learning stops after one returns True.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        DataError
            When X or y are not finite numbers, or lengths differ.
        OptionError
            When a hyper-parameter has an invalid value.

        Warns
        -----
        ScaleWarning
            When X has a value above 1e15, or the features of an evaluation set have another scale than X.
        OneQueryWarning, LikelyMistakeWarning
            As in `RankSVM.fit`.
        """
        eval_set = joined_sets(eval_set, eval_X, eval_y)
        self._check_options()
        patience, called = checked_patience(self.early_stopping_rounds, eval_set), checked_callbacks(callbacks)
        with all_or_nothing(self, self.verbose):
            self._check_labels(X, y)
            training = read_training_data(
                self, TrainingArguments(X, y, qid, group, query_weight=query_weight, propensity=propensity)
            )
            self._check_data(training, first=True)
            features, labels = training.X, training.y
            check_grouped(training.qid, group, features.shape[0])
            queries, preferred_weight = _weighted_queries(training)
            sets = read_evaluation_sets(
                self,
                EvalArguments(eval_set, eval_qid, eval_group, eval_names, eval_sample_weight, eval_metric, eval_at),
                features,
                queries.n_queries,
                deciding=self.eval_metric,
            )
            rounds = EvaluationRounds(self, sets, called, int(self.n_passes), patience, "pass")
            self._start(features.shape[1])
            for number in range(1, int(self.n_passes) + 1):
                self._learn_queries(features, labels, queries, preferred_weight)
                logger.info("pass %d: cumulative loss %.9g", number, self.cumulative_loss_, extra=PASSING)
                if rounds.record(self._scores, self._state):
                    break
            if rounds.best_model is not None:
                with lock_of(self):
                    self.__dict__.update(rounds.best_model)
            self.evals_result_ = rounds.evals_result
            self.best_iteration_, self.best_score_ = rounds.best_round, rounds.best_score
        return self

    def partial_fit(
        self,
        X: MatrixLike,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
        query_weight: ArrayLike | None = None,
        propensity: ArrayLike | None = None,
    ) -> Self:
        """Continue learning from queries, one after another.

        Another thread must not read the model meanwhile, except by `snapshot`. ``fit`` in one pass over some queries is
        equivalent to ``partial_fit`` on them, however they are divided into calls. An interrupted call leaves a model
        that has learned from the first few of its queries; a refused call leaves the model unchanged.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,)
            Relevance labels.
        qid : array-like of shape (n_samples,) or str, optional
            Query of each row, or the column of X that has them; None: the column named in the first call, if X has it,
            else all rows are one query.
        group : array-like of int, shape (n_queries,), optional
            Instead of ``qid``: sizes of consecutive queries.
        query_weight, propensity : array-like of shape (n_samples,), optional
            As in `fit`.

        Returns
        -------
        self
            The estimator.

        Raises
        ------
        DataError
            When X or y are not finite numbers, or lengths differ.
        OptionError
            When a hyper-parameter has an invalid value, or one that does not fit the state of the model.
        """
        with undone_if_refused(self):
            self._learn_queries(*self._next_data(X, y, qid, group, query_weight, propensity))
        return self

    def predict_then_learn(
        self,
        X: MatrixLike,
        y: ArrayLike,
        *,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
        query_weight: ArrayLike | None = None,
        propensity: ArrayLike | None = None,
    ) -> np.ndarray:
        """`predict`, then `partial_fit`, on one query after another; much faster than separate calls for each query.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,)
            Relevance labels; the labels of a query are not used before it is scored.
        qid : array-like of shape (n_samples,) or str, optional
            Query of each row, or the column of X that has them; None: the column named in the first call, if X has it,
            else all rows are one query.
        group : array-like of int, shape (n_queries,), optional
            Instead of ``qid``: sizes of consecutive queries.
        query_weight, propensity : array-like of shape (n_samples,), optional
            As in `fit`.

        Returns
        -------
        ndarray of float64, shape (n_samples,)
            The scores of the documents of each query before the model learned from it; all 0 for the first query of a
            new model.

        Raises
        ------
        DataError
            When X or y are not finite numbers, or lengths differ.
        OptionError
            When a hyper-parameter has an invalid value, or one that does not fit the state of the model.
        """
        with undone_if_refused(self):
            features, labels, queries, weight = self._next_data(X, y, qid, group, query_weight, propensity)
            scores = np.empty(len(labels))
            self._learn_queries(features, labels, queries, weight, scores)
        return queries.to_rows(scores)

    def partial_fit_pairs(self, X: MatrixLike, pairs: ArrayLike, weight: ArrayLike | None = None) -> Self:
        """Learn from preferences among the documents of one query, in the order of ``pairs``.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)
            Features of the documents.
        pairs : array-like of int, shape (n_pairs, 2)
            Row numbers (preferred, other); if there are none, nothing is learned, but the query is counted.
        weight : array-like of shape (n_pairs,), optional
            Weight of each pair, not negative; for clicks, for instance, 1 over the propensity.

        Returns
        -------
        self
            The estimator.

        Raises
        ------
        DataError
            When X has values that are not finite, a row number is out of range, or a weight is negative.
        OptionError
            When a hyper-parameter has an invalid value, or one that does not fit the state of the model.
        """
        self._check_options()
        first = self._is_new()
        with all_or_nothing(self):
            X = X if first else self._without_qid_column(X)
            library = frames.library(X)
            features = on_host(validated_features(self, X, n_threads=effective_n_jobs(self.n_jobs), reset=first))
            # no pairs are not an error: the user may have clicked on nothing, or only on the first document
            none = np.empty((2, 0), dtype=np.int64)
            preferred, other = row_numbers(pairs, Queries.from_qid(None, features.shape[0])) if np.size(pairs) else none
            checked = None if weight is None else checked_weights("weight", weight, len(preferred), "pairs")
            if first:
                self.qid_column_, self.frame_type_ = None, library
                self._start(features.shape[1])
        self._learn_pairs(features, preferred, other, checked)
        return self

    def _learn_pairs(
        self, X: Features, preferred: np.ndarray, other: np.ndarray, weight: np.ndarray | None = None
    ) -> None:
        """Learn from pairs of rows of X, all of which have been validated, after `_start` has been called."""
        with undone_if_refused(self), undone_if_not_finite(self, X, weight), lock_of(self):
            self._learn(OnlineRows(X), preferred.astype(np.int32), other.astype(np.int32), weight)

    def snapshot(self) -> Self:
        """A copy of the model as it is between two queries, for a server that ranks while another thread learns.

        It may be called from any thread at any time, and waits until the model has learned from its current query (from
        all queries of the current call if it has a number above 1e60, which may overflow). The copy does not change
        when the model continues to learn, so that any number of threads may call its ``predict`` and ``rank``.

        Returns
        -------
        self
            An independent copy with the same weights and state.

        Examples
        --------
        >>> from ranksvm import SOLARRanker
        >>> ranker = SOLARRanker().learn_one_query([[1.0, 0.0], [0.0, 1.0]], [1, 0])
        >>> serving = ranker.snapshot()
        >>> ranker = ranker.learn_one_query([[0.0, 1.0], [1.0, 0.0]], [1, 0])
        >>> serving.n_queries_, ranker.n_queries_
        (1, 2)
        """
        with lock_of(self):
            return copy.deepcopy(copy.copy(self))  # attributes that `fit` adds meanwhile do not disturb the deep copy

    def learn_one_query(self, X: MatrixLike, y: ArrayLike) -> Self:
        """`partial_fit` on the documents of one query.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_features)
            Features of its documents.
        y : array-like of shape (n_documents,)
            Their labels.

        Returns
        -------
        self
            The estimator.

        Raises
        ------
        DataError
            When X or y are not finite numbers, or lengths differ.
        OptionError
            When a hyper-parameter has an invalid value, or one that does not fit the state of the model.
        """
        return self.partial_fit(X, y)

    def rank_one_query(self, X: MatrixLike) -> np.ndarray:
        """Rank the documents of one query; a new model keeps their order.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_features)
            Features of its documents.

        Returns
        -------
        ndarray of int64, shape (n_documents,)
            Row numbers, best first; equal scores in row order.

        Raises
        ------
        DataError
            When X is not finite, or has another number of features than the model.
        """
        if not hasattr(self, "weights_"):
            return np.arange(n_rows_of(X))
        return np.argsort(-self.predict(X), kind="stable")

    # -- fitted attributes -------------------------------------------------------------------------------------------

    @property
    def coef_(self) -> np.ndarray:  # type: ignore[override]
        """The weights w, or their mean over all pairs seen; ndarray of float64, shape (n_features,)."""
        if not hasattr(self, "weights_"):
            raise AttributeError(f"this {type(self).__name__} has not learned anything yet.")
        if self.lag_ is None:
            return self.weights_
        mean: np.ndarray = self.weights_ - self.lag_ / max(self.counts_[0], 1.0)
        return mean

    @property
    def n_pairs_(self) -> int:
        """Number of pairs seen."""
        return int(self.counts_[0])

    @property
    def n_updates_(self) -> int:
        """Number of pairs that changed the model."""
        return int(self.counts_[1])

    @property
    def cumulative_loss_(self) -> float:
        """Sum over the pairs seen: the weight of the pair times its squared hinge before the update.

        The hinge is ``max(0, 1 - w'z)``, and ``max(0, -w'z)`` for the perceptrons. For PRank, which learns from
        documents, the sum is 0.
        """
        return float(self.counts_[2])

    @property
    def n_queries_(self) -> int:  # type: ignore[override]
        """Number of queries learned from, counted in every pass."""
        return int(self.counts_[3])

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        # joblib maps arrays read-only, in workers or if asked to, and learning changes them in place
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray) and not value.flags.writeable:
                vars(self)[name] = np.array(value)

    # -- for subclasses ----------------------------------------------------------------------------------------------

    def _check_loaded(self) -> None:
        """Refuse numbers of pairs, updates and queries that exceed integers of 64 bits; the loss has no limit."""
        super()._check_loaded()
        counts = getattr(self, "counts_", np.zeros(4))
        if (counts[[0, 1, 3]] >= 2.0**63).any():
            raise ModelFileError(f"counts_ is {counts.tolist()}: numbers of pairs and queries are below 2^63.")

    def _check_options(self) -> None:
        """Refuse invalid hyper-parameters."""
        checks.check_parameters(self._model_kind, hyper_parameters(self, self._model_kind), random_state=checks.seed)

    def _state_matches_params(self) -> dict[str, bool]:
        """Hyper-parameters that determine the form of the state -> whether the current state has that form."""
        return {"average": bool(self.average) == (self.lag_ is not None)}

    def _begin(self, n_features: int) -> None:
        """Initialize the state of the learner other than the weights."""

    def _learn(self, rows: "OnlineRows", preferred: np.ndarray, other: np.ndarray, weight: np.ndarray | None) -> None:
        """Learn from the pairs of one query, given as row numbers, in their order."""
        raise NotImplementedError

    def _learn_query(
        self, rows: "OnlineRows", own: np.ndarray, y: np.ndarray, preferred_weight: np.ndarray | None
    ) -> None:
        """Learn from one query.

        ``own`` has the numbers of its rows, and ``preferred_weight`` has for each of its documents the weight of the
        pairs in which that document is preferred.
        """
        preferred, other = np.empty((2, online.count_pairs(y)), dtype=np.int32)
        online.fill_pairs(y, bool(self.shuffle_pairs), self.seed_, int(self.counts_[3]), preferred, other)
        weight = None if preferred_weight is None else preferred_weight[preferred]
        self._learn(rows, own[preferred], own[other], weight)

    @property
    def _model(self) -> online.Model:
        return online.Model(self.weights_, self.lag_, self.counts_)

    # -- private methods ---------------------------------------------------------------------------------------------

    def _is_new(self) -> bool:
        """Whether nothing has been learned yet; an existing state must agree with the hyper-parameters."""
        if not hasattr(self, "weights_"):
            return True
        for name, matches in self._state_matches_params().items():
            if not matches:
                raise OptionError(
                    f"{name} is {getattr(self, name)!r}, but the model was started with another value: set it back, "
                    "or start again with fit or a clone."
                )
        return False

    def _state(self) -> dict[str, Any]:
        """A copy of the learned state, by attribute."""
        return copy.deepcopy({name: getattr(self, name) for name in schema_of(type(self)) if name in vars(self)})

    def _start(self, n_features: int) -> None:
        with lock_of(self):
            self.weights_ = np.zeros(n_features)
            self.lag_ = np.zeros(n_features) if self.average else None
            self.counts_ = np.zeros(4)
            self.seed_ = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
            self._begin(n_features)

    def _check_data(self, training: TrainingArguments, first: bool) -> None:
        """Refuse validated data that the ranker cannot learn from; ``first`` is true if no model has been started."""

    def _next_data(
        self,
        X: MatrixLike,
        y: ArrayLike | None,
        qid: ArrayLike | None,
        group: ArrayLike | None,
        query_weight: ArrayLike | None,
        propensity: ArrayLike | None,
    ) -> tuple[Features, np.ndarray, Queries, np.ndarray | None]:
        """Validated features, labels and queries, and weights of pairs by preferred row, with rows sorted by query.

        The first call starts a model.
        """
        self._check_options()
        first = self._is_new()
        with all_or_nothing(self):
            X, qid, column = frames.split_qid(X, qid)
            if not first and qid is None and group is None:
                X, qid = self._split_qid(X, None)
            library = frames.library(X)
            self._check_labels(X, y)
            if not first:
                X = self._without_qid_column(X)
            found, labels = features_and_labels(self, X, y, n_threads=effective_n_jobs(self.n_jobs), reset=first)
            features = on_host(found)
            training = TrainingArguments(features, labels, qid, group, query_weight=query_weight, propensity=propensity)
            self._check_data(training, first)
            queries, preferred_weight = _weighted_queries(training)
            if first:
                self.qid_column_, self.frame_type_ = column, library
                self._start(features.shape[1])
        return features, labels, queries, preferred_weight

    def _learn_queries(
        self,
        X: Features,
        y: np.ndarray,
        queries: Queries,
        preferred_weight: np.ndarray | None,
        scores: np.ndarray | None = None,
    ) -> None:
        """Learn from one query after another.

        If ``scores`` is given, the scores of each query are stored in it, sorted by query, before the ranker learns
        from the query.
        """
        with undone_if_not_finite(self, X, preferred_weight):
            self._learn_each_query(X, y, queries, preferred_weight, scores)

    def _learn_each_query(
        self,
        X: Features,
        y: np.ndarray,
        queries: Queries,
        preferred_weight: np.ndarray | None,
        scores: np.ndarray | None,
    ) -> None:
        rows, y_sorted, lock = OnlineRows(X), queries.to_sorted(y), lock_of(self)
        products: RowProducts | None = None
        if scores is not None:
            design: DesignMatrix = as_design_matrix(X)
            products = design.products(queries.order)
        for query in range(queries.n_queries):
            part = slice(queries.pointers[query], queries.pointers[query + 1])
            if products is not None and scores is not None:
                products.scores(part.start, part.stop, self.coef_, scores[part])
            own = np.arange(part.start, part.stop) if queries.order is None else queries.order[part]
            weight = None if preferred_weight is None else preferred_weight[part]
            with lock:
                self._learn_query(rows, own.astype(np.int32), y_sorted[part], weight)


class OnlineRows:
    """Documents in the form that the compiled updates take: a dense array, or CSR with ascending columns.

    Parameters
    ----------
    X : ndarray of float32 or float64, or CSR matrix, shape (n_rows, n_features)
        The features.
    """

    def __init__(self, X: Features):
        self.dense = not is_sparse(X)
        self.arrays: tuple[Any, ...]
        if self.dense:
            self.arrays = (X,)
            return
        matrix: Any = X  # has methods of SciPy that `CSRMatrix` does not name
        if not matrix.has_canonical_format:
            matrix = matrix.copy()
            matrix.sum_duplicates()
        self._X = matrix
        self.arrays = csr_arrays(matrix)

    def dense_part(self, preferred: np.ndarray, other: np.ndarray) -> tuple["OnlineRows", np.ndarray, np.ndarray]:
        """The documents of some pairs as a dense array, and the pairs as positions in it; dense rows are unchanged."""
        if self.dense:
            return self, preferred, other
        rows, place = np.unique(np.concatenate((preferred, other)), return_inverse=True)
        place = place.astype(np.int32)
        return OnlineRows(self._X[rows].toarray()), place[: len(preferred)], place[len(preferred) :]


def learn_checked_pairs(ranker: OnlineRanker, X: Features, pairs: np.ndarray, weight: np.ndarray | None = None) -> bool:
    """`OnlineRanker.partial_fit_pairs` without its checks, which take a third of its time.

    Parameters
    ----------
    ranker : OnlineRanker
        The ranker.
    X : ndarray or CSR matrix, shape (n_rows, n_features)
        Features, known to be valid.
    pairs : ndarray of int64, shape (n_pairs, 2)
        Rows (preferred, other) of X.
    weight : ndarray of float64, shape (n_pairs,), optional
        Weights of the pairs, known to be valid; None: 1.

    Returns
    -------
    bool
        False if nothing has been learned, because the ranker is new or has another number of features.

    Raises
    ------
    DataError
        When learning would make the model infinite or NaN; the ranker is then as before.
    OptionError
        When a hyper-parameter does not fit the state of the model.
    """
    if ranker._is_new() or X.shape[1] != ranker.n_features_in_:
        return False
    ranker._learn_pairs(X, pairs[:, 0], pairs[:, 1], weight)
    return True


def _weighted_queries(training: TrainingArguments) -> tuple[Queries, np.ndarray | None]:
    """The queries, and weights of pairs by their preferred row, with rows sorted by query."""
    queries = Queries.of(training.qid, training.group, training.X.shape[0])
    weights = PairWeights(query_weight=training.query_weight, propensity=training.propensity)
    return queries, weights.factors(queries)[0]
