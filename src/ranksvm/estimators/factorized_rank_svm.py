"""FactorizedRankSVM: a linear RankSVM whose dual variables are inner products of factors of the documents."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from ranksvm import _options
from ranksvm._parallel import effective_n_jobs, one_blas_thread
from ranksvm._registry import storable
from ranksvm.data import ComparablePairs, Queries, as_design_matrix, frames
from ranksvm.estimators.low_rank_ranker import LowRankRanker
from ranksvm.estimators.ranker import all_or_nothing
from ranksvm.exceptions import DataError
from ranksvm.objectives import FactorizedDual
from ranksvm.problems.dual import AlphaOfPairs
from ranksvm.problems.evaluation_rounds import EvaluationRounds, evaluation_rounds
from ranksvm.problems.problem import interruptible_if
from ranksvm.problems.training_set import TrainingSet
from ranksvm.solvers import EpochStatus, minimise_in_epochs
from ranksvm.solvers.epochs import EpochResult

__all__ = ["FactorizedRankSVM"]

NOTHING_LEARNT = (
    "All factors are 0, a stationary point, and so are the weights: steps of a fixed learning_rate were too long, or "
    "a warm start began there."
)
# Objectives that differ by this part of the sum of their two terms are of the same data, perhaps in other precision.
SAME = 1e-4


@storable
class FactorizedRankSVM(LowRankRanker):
    """Linear RankSVM with dual variables of low rank: alpha_ij = <v_i, v_j>, one vector of K entries a document.

    Minimises the dual of the RankSVM with the hinge loss, ``D = 1/2 |sum of alpha_ij (x_i - x_j)|^2 - sum of alpha_ij``
    over the pairs of documents (i, j) of one query with ``y_i > y_j``, among ``alpha_ij = <v_i, v_j>``, each entry of
    each v_i in ``[0, sqrt(C / K)]``; the weights are ``w = sum of alpha_ij (x_i - x_j)`` (Xu et al. 2019, equations 4
    and 9-11, Algorithm 1). Sums over the levels of labels make a query of l documents and n features cost O(l (K + n)),
    whatever the number of its pairs.

    The problem is not convex: what is found is a stationary point, which depends on ``random_state``, and there is no
    duality gap. The box is smaller than that of alpha, in which each factor of two documents may make the product C: no
    K gives back the RankSVM with the hinge loss. That one is `RankSVM` with ``loss="hinge"``, exact and certified.

    Parameters
    ----------
    C : float, default 1.0
        Upper bound of alpha, positive: the weight of a pair.
    n_components : int, default 5
        Number K of entries of each v_i. The products of a query have rank K at most; so has its block of alpha where
        labels have two levels. With L levels, where alpha is 0 between documents that are no pair, that has rank
        ``(L - 1) K`` at most.
    learning_rate : {"auto"} or float, default "auto"
        "auto": each step is as long as lowers the objective most, so that this never rises. A number: every step is a
        projected gradient step of that length, as in Algorithm 1; the objective may rise, or not converge.
    max_epochs : int, default 1000
        Largest number of passes over the queries.
    tol : float, default 1e-4
        Stop when an epoch changes the objective by at most ``tol`` times ``1/2 |w|^2``. (Where C is large, D is far
        larger than that, and a change that is small beside D may still turn w round.)
    early_stopping_rounds : int or None, default None
        Stop when so many epochs have brought no better value on the first set of ``eval_set``, and keep the model of
        the best epoch.
    eval_metric : str or Metric, default "ndcg@10"
        What is evaluated on ``eval_set`` after each epoch, as in `ranksvm.metrics.evaluate`.
    random_state : int, RandomState instance or None, default None
        Draws the factors to begin with and the order of the queries in each epoch.
    warm_start : bool, default False
        Begin from the ``factors_`` of the last fit, to the same rows with the same ``n_components``.
    keep_on_interrupt : bool, default False
        Whether Ctrl-C during ``fit`` stops within the epoch and leaves the model so far (with early stopping the best
        one), instead of raising KeyboardInterrupt.
    n_jobs : int or None, default None
        Number of threads; None or -1 for all processors. Visits to queries follow one another in one thread.
    verbose : int, default 0
        1 shows every epoch, and what it gives on ``eval_set``: on stderr, or wherever `logging` is configured to send
        the logger "ranksvm".

    Attributes
    ----------
    coef_ : ndarray of float64, shape (n_features,)
        The weights w.
    factors_ : ndarray of float64, shape (n_samples, n_components)
        The v_i in the order of the rows; 0 for documents of queries without pairs.
    objective_ : float
        The value of D there; 0 is that of no pair having learnt anything.
    converged_ : bool
        Whether an epoch changed the objective by no more than ``tol`` allows.
    status_ : str
        A sentence: why the epochs ended, and what to try where they did not converge.
    n_iter_ : int
        Epochs.
    history_ : dict of list
        Trace over the epochs: ``objective``, the value after it; ``projected_gradient``, the norm of ``P(V - G) - V``
        over all queries, each when it was visited, with the gradient G and the projection P on the box: 0 at a
        stationary point.
    best_iteration_ : int or None
        With ``early_stopping_rounds``: the epoch, from 1, whose model was kept.
    best_score_ : float or None
        With ``early_stopping_rounds``: its value on the first set of ``eval_set``.
    evals_result_ : dict
        The metric after each epoch on each set of ``eval_set``, in LightGBM's form: ``{"valid_0": {"ndcg@10":
        [...]}}``.
    fitted_params_ : dict
        C and n_components as they were in `fit`.
    n_pairs_ : int
        Number of pairs.
    n_queries_ : int
        Number of queries.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, where X had string column names; `coef_table` has them beside the weights.
    frame_type_ : str or None
        Library of the DataFrame X was, such as "polars".
    qid_column_ : str or None
        Column of X that held the query ids, where ``qid`` named one.

    See Also
    --------
    RankSVM : The exact model, by weights instead of dual variables.

    Notes
    -----
    Xu, Zeng, Lan, Guo & Cheng, "Modeling the parameter interactions in ranking SVM with low-rank approximation", IEEE
    TKDE 31 (2019), with these corrections. The dual of equation (4) is what is minimised: equations (9) to (11) print
    ``+ sum of alpha_ij`` where it has ``- sum of alpha_ij``, and ``- C`` instead of ``- 1`` in the gradient, whose rows
    are ``sum over lower-labelled j of v_j (s_i - s_j - 1) + sum over higher-labelled j of v_j (s_j - s_i - 1)``, s = X
    w. Steps go against the gradient; the paper prints ascent. V = 0 is a stationary point, so factors are drawn from
    the uniform distribution on [0, 1], times the factor that minimises the objective along it.

    With ``learning_rate="auto"`` the steps are those of Algorithm 1, a projected gradient step for one query after
    another, with spectral lengths (Barzilai & Borwein, IMA J. Numer. Anal. 8, 1988) cut by an exact line search: along
    a line the objective is a quartic polynomial. After each epoch all factors take one step together, in the direction
    in which the epoch and the last such step have led, by the same search; this saves many epochs where features are
    correlated.

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

    _model_params = ("C", "n_components")

    def __init__(
        self,
        C: float = 1.0,
        *,
        n_components: int = 5,
        learning_rate: str | float = "auto",
        max_epochs: int = 1000,
        tol: float = 1e-4,
        early_stopping_rounds: int | None = None,
        eval_metric: Any = "ndcg@10",
        random_state: Any = None,
        warm_start: bool = False,
        keep_on_interrupt: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        self.C = C
        self.n_components = n_components
        self.learning_rate = learning_rate
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
        X: Any,
        y: Any,
        *,
        qid: Any = None,
        group: Any = None,
        eval_set: Any = None,
        eval_qid: Any = None,
        eval_group: Any = None,
    ) -> "FactorizedRankSVM":
        """Learn the factors and the weights that they make.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)
            Features, as in `RankSVM.fit`.
        y : array-like of shape (n_samples,)
            Relevance labels: any real numbers; only their order within a query counts.
        qid : array-like of shape (n_samples,) or str, optional
            Query of each row: any dtype, in any order. None: all rows are one query. The name of a column of a
            DataFrame X: that column, which is then no feature, here and in `predict`.
        group : array-like of int, shape (n_queries,), optional
            Instead of ``qid``: sizes of consecutive queries, as LightGBM has them.
        eval_set : list of tuple (X, y), or one such tuple, optional
            Data to evaluate the model on after each epoch, as LightGBM and XGBoost have it.
        eval_qid, eval_group : list of array-like, or one for a single set, optional
            Queries of each set, as ``qid`` or ``group``. Where ``qid`` named a column, that column of the sets.

        Returns
        -------
        FactorizedRankSVM
            The fitted estimator.

        Raises
        ------
        NoComparablePairsError
            When no query has two documents with different labels.
        DataError
            When X or y are not finite numbers, lengths differ, or ``warm_start`` finds factors of other data.
        OptionError
            When a hyper-parameter has a value it cannot have.

        Warns
        -----
        ConvergenceWarning
            When the last epoch still changed the objective by more than ``tol`` allows, or all factors are 0.
        """
        _options.check(
            C=_options.positive(self.C),
            n_components=_options.count(self.n_components),
            learning_rate=_step_length(self.learning_rate),
            max_epochs=_options.count(self.max_epochs),
            tol=_options.positive(self.tol),
        )
        with all_or_nothing(self):
            X, qid, self.qid_column_ = frames.split_qid(X, qid)
            self.frame_type_ = frames.library(X)
            data = self._training_set(X, y, qid, group)
            rounds = evaluation_rounds(self, eval_set, eval_qid, eval_group, data.n_queries)
            with one_blas_thread():
                dual = self._dual(data)
                result = self._learn(dual, rounds)
            self.coef_, self.factors_, self.objective_ = dual.w, dual.factors, dual.value
            self.converged_ = result.status is EpochStatus.CONVERGED
            self.status_ = result.status.value
            self.n_iter_ = result.n_epochs
            self.history_ = result.history.as_dict()
            self.n_pairs_, self.n_queries_ = data.pairs.n_pairs, data.n_queries
            self._assign(rounds.trace())
            self.fitted_params_ = self._params_now()
            if result.status is EpochStatus.MAX_EPOCHS:
                warnings.warn(result.status.value, ConvergenceWarning, stacklevel=2)
            if not self.factors_.any():
                warnings.warn(NOTHING_LEARNT, ConvergenceWarning, stacklevel=2)
        return self

    def _dual(self, data: TrainingSet) -> FactorizedDual:
        """The problem, at the factors to begin with."""
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
        else:
            dual.start_along(random.uniform(size=shape))
        return dual

    def _learn(self, dual: FactorizedDual, rounds: EvaluationRounds) -> EpochResult:
        """Go through the epochs; the dual is left where they end, or at the best of them with early stopping."""
        with _options.verbosity(self.verbose), interruptible_if(self.keep_on_interrupt) as interrupted:
            result = minimise_in_epochs(
                dual,
                tol=self.tol,
                max_epochs=self.max_epochs,
                interrupted=interrupted,
                after_epoch=lambda: rounds.record(dual.w, lambda: dual.factors),
            )
        if rounds.best_model is not None:
            dual.start(rounds.best_model)
        return result

    def _data_of_fit(self, X: Any, y: Any, qid: Any, group: Any) -> tuple[Any, Queries, np.ndarray, ComparablePairs]:
        X, queries, labels, pairs = super()._data_of_fit(X, y, qid, group)
        n_rows, n_components = self.factors_.shape
        if queries.n_rows != n_rows:
            raise DataError(f"X has {queries.n_rows} rows, but the model was fitted to {n_rows}: give the data of fit.")
        # Rows in another order have as many pairs, and other factors: the objective tells, in no more time than an
        # epoch takes. C may have been set since; the factors are within this box.
        C = max(float(self.factors_.max()) ** 2 * n_components, np.finfo(np.float64).tiny)
        random, n_threads = np.random.RandomState(0), effective_n_jobs(self.n_jobs)
        dual = FactorizedDual(as_design_matrix(X), pairs, C, n_components, random, n_threads=n_threads)
        dual.start(self.factors_)
        if not abs(dual.value - self.objective_) <= SAME * (2.0 * dual.scale - dual.value):
            raise DataError(
                f"With these data the objective of the factors is {dual.value:.6g}, with those of fit it was "
                f"{self.objective_:.6g}: give the data of fit, rows in the same order."
            )
        return X, queries, labels, pairs

    def _alpha(self, X: Any, queries: Queries) -> AlphaOfPairs:
        entries = self._entries(queries)
        return lambda query, preferred, other, _: entries(query, preferred, other)

    def _entries(self, queries: Queries) -> Callable[[int, np.ndarray, np.ndarray], np.ndarray]:
        V = self.factors_

        def entries(query: int, i: np.ndarray, j: np.ndarray) -> np.ndarray:
            # one component after another: all at once would take 16 K bytes for each entry
            return sum((V[i, k] * V[j, k] for k in range(V.shape[1])), np.zeros(len(i)))

        return entries


def _step_length(value: Any) -> str | None:
    """What is wrong with a ``learning_rate``; None if nothing is."""
    if value == "auto" or _options.positive(value) is None:
        return None
    return f"must be 'auto' or a positive, finite number, got {value!r}"
