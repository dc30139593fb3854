"""FactorizedRankSVM: a linear RankSVM whose dual variables are inner products of factors of the documents."""

import warnings
from collections.abc import Callable, Sequence
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from ranksvm._util import checks
from ranksvm._util.threads import effective_n_jobs, one_blas_thread
from ranksvm._util.types import Features, MatrixLike, RandomState
from ranksvm.data import ComparablePairs, Queries, as_design_matrix
from ranksvm.data.scores import linear_scores
from ranksvm.estimators.base.arguments import EvalFeatures, EvalSets, ForEachSet, MetricsLike, Names
from ranksvm.estimators.base.evaluation_rounds import Callbacks, EvaluationRounds, checked_callbacks, checked_patience
from ranksvm.estimators.base.inputs import read_evaluation_sets
from ranksvm.estimators.base.low_rank_ranker import DataOfFit, LowRankRanker
from ranksvm.estimators.base.ranker import all_or_nothing, hyper_parameters
from ranksvm.exceptions import DataError
from ranksvm.fits.evaluation import joined_sets
from ranksvm.fits.problem import interruptible_if
from ranksvm.fits.results.dual import AlphaOfPairs
from ranksvm.fits.training_set import EvalArguments, TrainingArguments, TrainingSet
from ranksvm.model_files.registry import storable
from ranksvm.model_files.schema import Array, Number, Schema
from ranksvm.objectives import FactorizedDual
from ranksvm.solvers import EpochStatus, minimize_in_epochs
from ranksvm.solvers.epochs import EpochResult

__all__ = ["FactorizedRankSVM"]

NOTHING_LEARNED = (
    "All factors and weights are 0, a stationary point: the fixed learning_rate was too large, or a warm start "
    "started from zeros."
)
# Objectives whose relative difference is below this are treated as objectives of the same data, perhaps in another
# precision. The difference is relative to the sum of the two terms of the objective.
SAME_OBJECTIVE_TOLERANCE = 1e-4


@storable
class FactorizedRankSVM(LowRankRanker):
    """Linear RankSVM with dual variables of low rank: alpha_ij = <v_i, v_j>, with K entries in each v_i.

    Minimizes the dual of the RankSVM with the hinge loss, ``D = 1/2 |sum of alpha_ij (x_i - x_j)|^2 - sum of alpha_ij``
    over the pairs of documents (i, j) of one query with ``y_i > y_j``, subject to ``alpha_ij = <v_i, v_j>``, with each
    entry of each v_i in ``[0, sqrt(C / K)]``. The weights are ``w = sum of alpha_ij (x_i - x_j)`` (Xu et al. 2019,
    equations 4 and 9-11, Algorithm 1). Sums over the levels of labels reduce the cost of a query of l documents and n
    features to O(l (K + n)), independent of the number of its pairs.

    The problem is not convex: a fit finds a stationary point, which depends on ``random_state``, and has no duality
    gap. The box on the factors allows less than the box ``[0, C]`` on alpha, so no K reproduces the RankSVM with the
    hinge loss; use `RankSVM` with ``loss="hinge"`` for that, exact and certified.

    Parameters
    ----------
    C : float, default 1.0
        Upper bound of alpha, positive: the weight of a pair.
    n_components : int, default 5
        Number K of entries of each v_i. The matrix of the products of a query has rank at most K. So has its matrix of
        alpha if labels have two levels. With L levels alpha is 0 for documents that do not form a pair, and the rank of
        the matrix of alpha is at most ``(L - 1) K``.
    learning_rate : {"auto"} or float, default "auto"
        "auto": an exact line search sets the length of each step, so the objective never rises. A number: every step is
        a projected gradient step of that length, as in Algorithm 1; the objective may rise, or fail to converge.
    init : {"scaled", "uniform"}, default "scaled"
        The initial factors are drawn from the uniform distribution. "uniform": on the box ``[0, sqrt(C / K)]``, the
        constraint of Algorithm 1. "scaled": the drawn factors are multiplied by the number that minimizes the
        objective, which is then negative and so below its value of 0 for factors of 0. With "uniform", w is about ``C /
        4`` times the sum of all differences of pairs, far too long on most data, and fixed steps of the published
        lengths jump from corner to corner of the box.
    max_epochs : int, default 1000
        Largest number of passes over the queries.
    tol : float, default 1e-4
        Stop when an epoch changes the objective by at most ``tol`` times ``1/2 |w|^2``, and an epoch with exact line
        searches would not lower it by more than that. (If C is large, D is far larger than ``1/2 |w|^2``, and a change
        that is small relative to D may still change w greatly. With a fixed ``learning_rate`` a small change alone
        proves nothing.)
    early_stopping_rounds : int or None, default None
        Stop after this number of epochs without a better value on the first set of ``eval_set``, and keep the model of
        the best epoch.
    eval_metric : str, Metric, or list of either, default "ndcg@10"
        What is evaluated on ``eval_set`` after each epoch, as in `ranksvm.metrics.evaluate`; the first metric decides
        on early stopping.
    random_state : int, RandomState instance or None, default None
        Seed of the initial factors and of the order of the queries in each epoch.
    warm_start : bool, default False
        Start from the ``factors_`` of the last fit, which must have had the same rows and ``n_components``.
    keep_on_interrupt : bool, default False
        Whether Ctrl-C during ``fit`` stops within the epoch and keeps the model so far (with early stopping the best
        one), instead of raising KeyboardInterrupt.
    n_jobs : int or None, default None
        Number of threads; None or -1 means all processors. Queries are visited one after another in one thread.
    verbose : int, default 0
        1 shows every epoch, and its metric on ``eval_set``: on stderr, or wherever `logging` is configured to send
        the logger "ranksvm".

    Attributes
    ----------
    coef_ : ndarray of float64, shape (n_features,)
        The weights w.
    factors_ : ndarray of float64, shape (n_samples, n_components)
        The v_i in the order of the rows; 0 for documents of queries without pairs.
    objective_ : float
        The value of D at the solution; it is 0 if all factors are 0.
    converged_ : bool
        Whether an epoch with exact line searches changes the objective by no more than ``tol`` allows.
    status_ : str
        A sentence that says why the epochs ended, and what to try if they did not converge.
    n_iter_ : int
        Number of epochs.
    history_ : dict of list
        Trace over the epochs: ``objective``, the value after the epoch; ``projected_gradient``, the norm of ``P(V - G)
        - V`` over all queries, where V are the factors, G is the gradient, taken for each query when it is visited, and
        P is the projection onto the box. The norm is 0 at a stationary point.
    best_iteration_ : int or None
        With ``early_stopping_rounds``: the epoch, from 1, whose model was kept.
    best_score_ : float or None
        With ``early_stopping_rounds``: the value of the first metric on the first set of ``eval_set`` after the best
        epoch.
    evals_result_ : dict
        The metric after each epoch on each set of ``eval_set``, in LightGBM's form: ``{"valid_0": {"ndcg@10":
        [...]}}``.
    fitted_params_ : dict
        C and n_components, with their values in `fit`.
    n_pairs_ : int
        Number of pairs.
    n_queries_ : int
        Number of queries.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, if X had string column names; `coef_table` lists them with the weights.
    frame_type_ : str or None
        Library of the DataFrame X, such as "polars".
    qid_column_ : str or None
        Column of X that held the query ids: the one that ``qid`` named, or "qid".

    See Also
    --------
    RankSVM : The exact model, with weights instead of dual variables.

    Notes
    -----
    Xu, Zeng, Lan, Guo & Cheng, "Modeling the parameter interactions in ranking SVM with low-rank approximation", IEEE
    TKDE 31 (2019), with these corrections. The dual of equation (4) is minimized; equations (9) to (11) print ``+ sum
    of alpha_ij`` where (4) has ``- sum of alpha_ij``. The rows of the gradient are ``sum over lower-labeled j of v_j
    (s_i - s_j - 1) + sum over higher-labeled j of v_j (s_j - s_i - 1)`` with ``s = X w``; the paper prints ``- C``
    instead of ``- 1``. Steps go against the gradient; the paper prints ascent. V = 0 is a stationary point, so the
    initial factors are random. ``init="uniform"`` with a number as ``learning_rate`` is Algorithm 1 as published except
    for the signs.

    With ``learning_rate="auto"`` the steps follow Algorithm 1: a projected gradient step for one query after another,
    with spectral lengths (Barzilai & Borwein, IMA J. Numer. Anal. 8, 1988), which an exact line search shortens. (Along
    a line, the objective is a quartic polynomial.) After each epoch, all factors take one joint step with the same line
    search. Its direction is the sum of the change in the previous joint step and the change in the epoch. This step
    saves many epochs if features are correlated.

    Examples
    --------
    >>> from ranksvm import FactorizedRankSVM, make_ranking
    >>> data = make_ranking(n_queries=50, n_docs=20, n_features=10, random_state=0)
    >>> ranker = FactorizedRankSVM(C=0.1, random_state=0).fit(data.X, data.y, qid=data.qid)
    >>> ranker.factors_.shape
    (1000, 5)
    >>> ranker.score(data.X, data.y, qid=data.qid) > 0.8
    True
    """

    factors_: np.ndarray
    best_iteration_: int | None
    best_score_: float | None

    _model_kind = "factorized"
    _model_params = ("C", "n_components")
    _fitted_schema: ClassVar[Schema] = {
        "factors_": Array("n_samples", "n_components", minimum=0.0, maximum=1e150),
        "best_iteration_": Number(integer=True, minimum=0, nullable=True, default=None),
        "best_score_": Number(finite=False, nullable=True, default=None),
    }

    def __init__(
        self,
        C: float = 1.0,
        *,
        n_components: int = 5,
        learning_rate: str | float = "auto",
        init: str = "scaled",
        max_epochs: int = 1000,
        tol: float = 1e-4,
        early_stopping_rounds: int | None = None,
        eval_metric: MetricsLike = "ndcg@10",
        random_state: RandomState = None,
        warm_start: bool = False,
        keep_on_interrupt: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        self.C = C
        self.n_components = n_components
        self.learning_rate = learning_rate
        self.init = init
        self.max_epochs = max_epochs
        self.tol = tol
        self.early_stopping_rounds = early_stopping_rounds
        self.eval_metric = eval_metric
        self.random_state = random_state
        self.warm_start = warm_start
        self.keep_on_interrupt = keep_on_interrupt
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(
        self,
        X: MatrixLike,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
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
        """Learn the factors and the weights that follow from them.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)
            Features, as in `RankSVM.fit`.
        y : array-like of shape (n_samples,)
            Relevance labels: any real numbers; only their order within a query counts.
        qid : array-like of shape (n_samples,) or str, optional
            Query of each row: ids of any dtype, in any order; or the name of the column of a DataFrame X that has them,
            which is then not a feature, here and in `predict`. None: the column "qid" of a DataFrame, as in XGBoost; if
            there is none, all rows are one query, with a `OneQueryWarning`. In this case more than 1,000 rows are
            refused, because they probably belong to several queries, whose rows must not be compared;
            ``group=[n_samples]`` says that they are one query.
        group : array-like of int, shape (n_queries,), optional
            Instead of ``qid``: sizes of consecutive queries, as in LightGBM.
        eval_set : list or tuple of tuples (X, y), or one such tuple, optional
            Data to evaluate the model on after each epoch, as in LightGBM and XGBoost.
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
            Functions called after each epoch with an object that has the fields of LightGBM's ``CallbackEnv``:
            ``iteration`` (from 0), ``end_iteration``, ``params`` and ``evaluation_result_list`` of tuples (set, metric,
            value, True). The fit stops after a function returns True.

        Returns
        -------
        FactorizedRankSVM
            The fitted estimator.

        Raises
        ------
        NoComparablePairsError
            When no query has two documents with different labels.
        DataError
            When X or y are not finite numbers, lengths differ, or the factors for ``warm_start`` belong to other data.
        OptionError
            When a hyper-parameter has an invalid value.

        Warns
        -----
        ConvergenceWarning
            When the last epoch still changed the objective by more than ``tol`` allows, or all factors are 0.
        OneQueryWarning, ScaleWarning, LikelyMistakeWarning
            As in `RankSVM.fit`.
        """
        eval_set = joined_sets(eval_set, eval_X, eval_y)
        checks.check_parameters(self._model_kind, hyper_parameters(self, self._model_kind), random_state=checks.seed)
        patience, called = checked_patience(self.early_stopping_rounds, eval_set), checked_callbacks(callbacks)
        with all_or_nothing(self, self.verbose):
            data = self._training_set(TrainingArguments(X, y, qid=qid, group=group))
            sets = read_evaluation_sets(
                self,
                EvalArguments(eval_set, eval_qid, eval_group, eval_names, eval_sample_weight, eval_metric, eval_at),
                data.X,
                data.n_queries,
                deciding=self.eval_metric,
            )
            rounds = EvaluationRounds(self, sets, called, int(self.max_epochs), patience)
            with one_blas_thread():
                dual = self._dual(data)
                result = self._learn(dual, rounds)
            self.coef_, self.factors_, self.objective_ = dual.w, dual.factors, dual.value
            self.converged_ = result.status is EpochStatus.CONVERGED
            self.status_ = result.status.value
            self.n_iter_ = result.n_epochs
            self.history_ = result.history.as_dict()
            self.n_pairs_, self.n_queries_ = data.pairs.n_pairs, data.n_queries
            self.evals_result_ = rounds.evals_result
            self.best_iteration_, self.best_score_ = rounds.best_round, rounds.best_score
            self.fitted_params_ = self._params_now()
            if result.status is EpochStatus.MAX_EPOCHS:
                warnings.warn(result.status.value, ConvergenceWarning, stacklevel=2)
            if not self.factors_.any():
                warnings.warn(NOTHING_LEARNED, ConvergenceWarning, stacklevel=2)
        return self

    def _dual(self, data: TrainingSet) -> FactorizedDual:
        """The dual problem, with the factors from which the fit starts."""
        random = check_random_state(self.random_state)
        shape = data.n_rows, int(self.n_components)
        step = None if isinstance(self.learning_rate, str) else float(self.learning_rate)
        assert isinstance(data.pairs, ComparablePairs)
        design = as_design_matrix(data.X)
        dual = FactorizedDual(design, data.pairs, float(self.C), shape[1], random, step, data.n_threads)
        if self.warm_start and hasattr(self, "factors_"):
            if self.factors_.shape != shape:
                raise DataError(
                    f"warm_start: the last fit had factors of shape {self.factors_.shape} (rows, n_components), these "
                    f"data need {shape}."
                )
            dual.start(self.factors_)
        elif self.init == "uniform":
            dual.start(dual.upper * random.uniform(size=shape))
        else:
            dual.start_along(random.uniform(size=shape))
        return dual

    def _learn(self, dual: FactorizedDual, rounds: EvaluationRounds) -> EpochResult:
        """Run the epochs; the dual ends at the last epoch, or at the best one with early stopping."""
        n_threads = effective_n_jobs(self.n_jobs)
        with interruptible_if(self.keep_on_interrupt) as interrupted:
            result = minimize_in_epochs(
                dual,
                tol=self.tol,
                max_epochs=self.max_epochs,
                interrupted=interrupted,
                after_epoch=lambda: rounds.record(lambda X: linear_scores(X, dual.w, n_threads), lambda: dual.factors),
            )
        if rounds.ended:
            result.status = EpochStatus.STOPPED_BY_CALLBACK
        if rounds.best_model is not None:
            dual.start(rounds.best_model)
        return result

    def _data_of_fit(self, X: MatrixLike, y: ArrayLike, qid: ArrayLike | None, group: ArrayLike | None) -> DataOfFit:
        features, queries, labels, pairs = super()._data_of_fit(X, y, qid, group)
        n_rows, n_components = self.factors_.shape
        if queries.n_rows != n_rows:
            raise DataError(
                f"X has {queries.n_rows} rows, but the model was fitted to {n_rows}: give the training data."
            )
        # Rows in another order give the same number of pairs, but do not belong to the factors; the objective shows
        # this, at the cost of at most one epoch. C may have changed since the fit, so it is set to the smallest
        # value whose box contains the factors.
        C = max(float(self.factors_.max()) ** 2 * n_components, np.finfo(np.float64).tiny)
        random, n_threads = np.random.RandomState(0), effective_n_jobs(self.n_jobs)
        dual = FactorizedDual(as_design_matrix(features), pairs, C, n_components, random, n_threads=n_threads)
        dual.start(self.factors_)
        if not abs(dual.value - self.objective_) <= SAME_OBJECTIVE_TOLERANCE * (2.0 * dual.scale - dual.value):
            raise DataError(
                f"With these data the objective of the factors is {dual.value:.6g}, with the training data it was "
                f"{self.objective_:.6g}: give the training data, rows in the same order."
            )
        return features, queries, labels, pairs

    def _alpha(self, X: Features, queries: Queries) -> AlphaOfPairs:
        entries = self._entries(queries)
        return lambda query, preferred, other, _: entries(query, preferred, other)

    def _entries(self, queries: Queries) -> Callable[[int, np.ndarray, np.ndarray], np.ndarray]:
        V = self.factors_

        def entries(query: int, i: np.ndarray, j: np.ndarray) -> np.ndarray:
            # one component after another: all at once would need 16 K bytes for each entry
            return sum((V[i, k] * V[j, k] for k in range(V.shape[1])), np.zeros(len(i)))

        return entries
