"""RankSVM: the linear ranking support vector machine.

`RankSVMCore` is the whole estimator except the interface of scikit-learn, whose import takes longer than most fits. The
command line and other programs that only fit, score and save models use it. `RankSVM`, which is created on first use,
adds the interface.
"""

import threading
from collections.abc import Sequence
from types import FunctionType
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from ranksvm._util.lazy import first_import
from ranksvm.estimators.base.arguments import (
    EvalFeatures,
    EvalSets,
    ForEachSet,
    LossLike,
    MetricsLike,
    Monotone,
    Names,
    TrainingData,
)
from ranksvm.estimators.base.dual_mixin import DualMixin
from ranksvm.estimators.base.inputs import read_evaluation_sets, read_training_data, resolve_files
from ranksvm.estimators.base.linear_ranker import SIGNS_SCHEMA, LinearRanker
from ranksvm.estimators.base.ranker import all_or_nothing, linear_options
from ranksvm.fits.evaluation import joined_sets
from ranksvm.fits.linear import linear_problem, linear_training_set
from ranksvm.fits.problem import interruptible_if
from ranksvm.fits.training_set import EvalArguments, TrainingArguments
from ranksvm.model_files.registry import savable, storable
from ranksvm.model_files.schema import Array, Schema

__all__ = ["RankSVM", "RankSVMCore"]


@savable
class RankSVMCore(DualMixin, LinearRanker):
    """Linear RankSVM: large-margin learning to rank, exact and certified.

    Minimizes ``1/2 |w|^2 + C * sum of a_ij * loss(s_i - s_j)`` over the pairs of documents (i, j) of one query with
    ``y_i > y_j``, where ``s = X w`` and ``a_ij`` is the pair's weight (1 by default). The work is O(l log l) in the
    number of documents, independent of the number of pairs (except for the loss "logistic", a loss given as an object,
    and solver "dual"), and every fit ends with a certificate: the optimum is at most ``duality_gap_`` below
    ``objective_``.

    Parameters
    ----------
    C : float, default 1.0
        Weight of a pair, positive. The sum over the pairs is not normalized, so the best C decreases as the data grow;
        `RankSVMCV` chooses it.
    loss : {"squared_hinge", "hinge", "huber", "logistic"} or object, default "squared_hinge"
        Loss of a pair as a function of its margin ``m = s_i - s_j``. "squared_hinge": ``max(0, 1 - m) ** 2`` (Lee & Lin
        2014). "hinge": ``max(0, 1 - m)``, the loss of the original RankSVM (Joachims 2002), which is less sensitive to
        outliers. "huber": the Huberized hinge with ``d = huber_width``, which is 0 for ``m >= 1``, ``(1 - m) ** 2 / (2
        d)`` for m between ``1 - d`` and 1, and ``1 - m - d / 2`` below. "logistic": ``log(1 + exp(-m))``, the loss of
        the Bradley-Terry model and of the linear RankNet, which gives probabilities (`predict_proba`). The logistic
        loss is curved at every margin, so every pair is visited: the work of a fit grows with the number of pairs, but
        its memory does not. The hinge is approximated by Huberized hinges of decreasing width; the certificate holds
        for the hinge problem itself. An object with the methods ``value(margins)``, ``derivative(margins)`` and
        ``curvature(margins)`` defines another loss, which may be any nonnegative convex function of the margin; each
        method takes an array of margins and returns an array of the same shape. Every pair is then visited, on one
        thread, and the model cannot be saved to a model file (it can be pickled if the object can).
    huber_width : float, default 1.0
        The width d of "huber", positive; no effect on other losses.
    pair_selection : {"all", "adjacent"}, default "all"
        "adjacent" uses only the pairs of adjacent labels of a query (Lee & Lin 2014, section 5): cheaper if a query has
        many distinct labels, at some cost in accuracy.
    pair_weighting : {"uniform", "per_query", "label_gap", "gain_gap"}, default "uniform"
        Weight of a pair, multiplied by any weights passed to `fit`. "uniform": 1. "per_query": 1 over the number of
        pairs of its query (with sample weights v: over the sum of ``v_i * v_j``), so that every query counts equally
        (Cao et al., SIGIR 2006). "label_gap": ``y_i - y_j``. "gain_gap": ``(2^y_i - 2^y_j) / 2^max(y)``; the maximum is
        over all rows, and the division avoids overflow.
    monotone : None, {"increasing", "decreasing"}, array-like of shape (n_features,) or dict, default None
        Signs that weights must have, because the score is known to increase or decrease with the features.
        "increasing": no weight is negative; "decreasing": none is positive. An array has the sign of each feature: 1
        (increasing), -1 (decreasing) or 0 (any sign). A dict has the signs of some features, by their names or numbers
        (from 0). The minimum is then over the weights that have these signs, and the certificate holds for this problem
        (see the notes).
    solver : {"auto", "newton", "tron", "dual", "direct"}, default "auto"
        "newton" needs few iterations and an n_features x n_features Hessian; "tron" is Hessian-free, for sparse data
        or many features; "dual" has one dual variable for each pair, for fewer rows than features and few pairs per
        row; "direct" takes Newton steps in the span of the rows, for fewer rows than features; "auto" chooses by the
        size of the data, and if X is dense with no more rows than features, also by the correlation of a few rows. If
        neither "newton" nor "tron" is clearly faster, "auto" takes Newton steps by conjugate gradients without a
        Hessian, and builds a Hessian as soon as it is expected to save more than it costs ("adaptive" in ``solver_``).
        If "tron" or "dual" is slow, or round-off stops "direct", "auto" changes to another solver.
    stopping : {"gap", "gradient"}, default "gap"
        "gap": stop when the certificate meets ``tol``. "gradient", for solver "tron" and losses other than "hinge":
        when ``|gradient| <= tol * |gradient at w = 0|``. Published figures use this rule (Lee & Lin 2014, with ``tol =
        1e-3``); it reproduces the published models. TRON then takes the published steps: it uses no preconditioner, and
        rejects steps that are too long instead of shortening them. The rule does not bound the distance from the
        optimum, and stops early if C is large (on MQ2008 at C = 2^7 after 8 steps, 3e-4 above the optimum).
    tol : float, default 1e-4
        Stop when ``duality_gap_ <= tol * objective_``; with ``stopping="gradient"``, when the norm of the gradient is
        at most ``tol`` times its norm at 0.
    max_iter : int, default 1000
        Largest number of solver iterations.
    warm_start : bool, default False
        Start from the ``coef_`` of the last fit, or from its ``pair_alpha_`` if the solver is "dual". If the last fit
        has no ``pair_alpha_``, "dual" starts from 0, and "auto" chooses another solver unless ``monotone`` is given.
    keep_on_interrupt : bool, default False
        Whether Ctrl-C during ``fit`` stops at the next evaluation and keeps the best model so far, instead of raising
        KeyboardInterrupt.
    device : str or list of str, default "cpu"
        Where rows, scores and pairs are: "cpu"; "cuda" or "cuda:1", a GPU (``pip install "ranksvm[cuda]"``); a list of
        GPUs, which share the queries; or "auto", the GPU that `ranksvm.calibrate_device` has measured, if the fit is
        estimated to be faster there, and otherwise the CPU. Solvers, results and certificates are the same, with sums
        in float64 everywhere. Solver "dual" and losses given as Python functions need the CPU. docs/gpu.md
        says when a GPU is worth it.
    memory_limit : int, str or None, default None
        Memory that the process may take while it fits RankingData that `RankingData.load` has mapped from a file:
        bytes, or text such as "4GB" or "500MiB"; None: half of the free memory. If a fit in memory would take more, the
        file is read in passes, a block of whole queries at a time. The size of the blocks affects the last bits of the
        model; it is computed from ``memory_limit`` (None: from a fixed number of bytes), not from the free memory. The
        limit does not apply to other X, which is in memory already: a `LikelyMistakeWarning` says so.
    n_jobs : int or None, default None
        Number of threads; None or -1 means all processors. Results depend on it only by round-off, and not at all if a
        file is read in passes.
    verbose : int, default 0
        1 shows every iteration: on stderr, or wherever `logging` is configured to send the logger "ranksvm".

    Attributes
    ----------
    coef_ : ndarray of float64, shape (n_features,)
        The weights w.
    monotone_ : ndarray of int64, shape (n_features,), or None
        The sign that each weight had to have: 1, -1, or 0 for any; None if all were free.
    objective_ : float
        Value of the objective at ``coef_``.
    duality_gap_ : float
        An upper bound on how far ``objective_`` is above the minimum of the objective. It is ``1/2 |g|^2`` with the
        gradient g at ``coef_``. For "hinge", g is the gradient of the smoothed objective, and ``C * sum of a_ij h (1 -
        h / width_)`` is added, over the pairs whose ``h = 1 - (s_i - s_j)`` is between 0 and ``width_``. With
        ``monotone``, ``m'g - 1/2 |m|^2`` with the vector m of the notes replaces ``1/2 |g|^2``. With solver "dual", the
        bound is ``objective_`` minus the value of the dual at ``pair_alpha_``. It always includes a bound on the
        round-off in scores, margins and all sums: in exact arithmetic, the objective at ``coef_`` differs from
        ``objective_`` by at most the gap, its minimum is at least ``objective_ - duality_gap_``, and the objective at
        ``coef_`` exceeds the minimum by at most the gap.
    converged_ : bool
        Whether the gap met ``tol``. If C times the weights of the pairs at the margin is far larger than the objective,
        as for separable data, round-off alone may be more than ``tol`` allows; ``converged_`` is then False. With
        ``stopping="gradient"``, whether the gradient met ``tol``: then only ``duality_gap_`` says how far the objective
        may be from its minimum.
    status_ : str
        A sentence that says why the solver stopped, and what to try if it did not converge; it also says if round-off
        is the limit.
    n_iter_ : int
        Iterations of the solver.
    solver_ : str
        The solver used: "newton", "tron", "adaptive", "dual" or "direct".
    device_ : str or list of str
        Where the model was fitted: "cpu", "cuda:0", or a list of GPUs. It is not part of a pickle or a model file.
    width_ : float or None
        Width of the Huberized hinge whose objective ``coef_`` minimizes. For "hinge", it is the last and smallest
        width, and the dual variables are ``C * a_ij * clip((1 - m) / width_, 0, 1)``. None for losses without a width,
        and for "hinge" with solver "dual", which smooths nothing.
    pair_alpha_ : ndarray of float64, shape (n_pairs,), or None
        Dual variables of the pairs, query by query, if ``solver_`` is "dual"; `dual_coef` presents them.
    history_ : dict of list
        Trace over the iterations: objective, duality_gap, evaluations, hessian_products.
    fitted_params_ : dict
        The hyper-parameters that define the model, with their values in `fit`: `dual_coef` reads these values.
    n_pairs_ : int
        Number of pairs.
    n_queries_ : int
        Number of queries.
    censored_ : bool
        Whether ``event`` was given: then `score`, and the sets of ``eval_set``, need it too.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, if X had names (string column names; RankingData and files may have names, too);
        `coef_table` lists them with the weights.
    frame_type_ : str or None
        Library of the DataFrame X, such as "polars".
    qid_column_ : str or None
        Column of X that held the query ids: the one that ``qid`` named, or "qid".
    calibration_slope_ : float
        After `calibrate`: the factor by which `predict_proba` multiplies differences of scores.
    evals_result_ : dict
        The metrics of the model on each set of ``eval_set``, in LightGBM's form: ``{"valid_0": {"ndcg@10": [value]}}``.

    See Also
    --------
    RankSVMCV : Chooses C on validation data or query folds.

    Notes
    -----
    Herbrich, Graepel & Obermayer (2000) and Joachims (2002) introduced the model; Lee & Lin, "Large-scale linear
    rankSVM", Neural Computation 26 (2014), the squared hinge form and its computation by order statistics. The hinge is
    solved here in the primal, by Newton steps on smoothed problems (as Chapelle, Neural Computation 19, 2007, smooths
    the hinge of classification); this, too, does not visit the pairs one by one.

    With ``monotone`` the weights are in a cone K. The dual is the dual of RankSVM with ``1/2 |proj_K(z)|^2`` in place
    of ``1/2 |z|^2``, where ``z = sum of alpha_ij (x_i - x_j)``, and the solution is ``proj_K(z)``. At the alpha that w
    implies, ``z = w - g`` with the gradient g of the objective, and the duality gap is ``1/2 |w|^2 - w'z + 1/2
    |proj_K(z)|^2 = m'g - 1/2 |m|^2`` with ``m = w - proj_K(w - g)``; m is g itself if no weight is constrained. Solver
    "newton" minimizes the quadratic model over K by an explicit Hessian in every step, "tron" by products with the
    Hessian, and "dual" maximizes the dual itself; "auto" is "newton" up to 2,000 features, unless X is too sparse for
    that.

    There is no ``early_stopping_rounds`` and no callback: the objective is convex, and a fit ends with a certificate
    that no further iteration could lower it by more than ``tol``. `RankSVMCV` can stop early as C ascends.

    Examples
    --------
    >>> from ranksvm import RankSVM, make_ranking
    >>> data = make_ranking(n_queries=50, n_docs=20, n_features=10, random_state=0)
    >>> ranker = RankSVM(C=0.01).fit(data.X, data.y, qid=data.qid)
    >>> ranker.predict(data.X).shape
    (1000,)
    >>> bool(ranker.duality_gap_ <= 1e-4 * ranker.objective_)
    True
    """

    _reads_devices = True
    _model_params = ("C", "loss", "huber_width", "pair_selection", "pair_weighting")
    _fitted_schema: ClassVar[Schema] = {"coef_": Array("n_features"), **SIGNS_SCHEMA}

    def __init__(
        self,
        C: float = 1.0,
        *,
        loss: LossLike = "squared_hinge",
        huber_width: float = 1.0,
        pair_selection: str = "all",
        pair_weighting: str = "uniform",
        monotone: Monotone | None = None,
        solver: str = "auto",
        stopping: str = "gap",
        tol: float = 1e-4,
        max_iter: int = 1000,
        warm_start: bool = False,
        keep_on_interrupt: bool = False,
        device: str | list[str] = "cpu",
        memory_limit: int | str | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        self.C = C
        self.loss = loss
        self.huber_width = huber_width
        self.pair_selection = pair_selection
        self.pair_weighting = pair_weighting
        self.monotone = monotone
        self.solver = solver
        self.stopping = stopping
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.keep_on_interrupt = keep_on_interrupt
        self.device = device
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(
        self,
        X: TrainingData,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        query_weight: ArrayLike | None = None,
        propensity: ArrayLike | None = None,
        pairs: ArrayLike | None = None,
        pair_weight: ArrayLike | None = None,
        event: ArrayLike | None = None,
        eval_set: EvalSets | None = None,
        eval_qid: ForEachSet | None = None,
        eval_group: ForEachSet | None = None,
        eval_names: Names | None = None,
        eval_sample_weight: ForEachSet | None = None,
        eval_metric: MetricsLike | None = None,
        eval_at: int | Sequence[int] | None = None,
        eval_X: EvalFeatures | None = None,
        eval_y: ArrayLike | tuple[ArrayLike, ...] | None = None,
    ) -> Self:
        """Learn the weights.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features), Preferences, RankingData, or path
            Features, or `Preferences`: the features of chosen and rejected answers, which imply the pairs. C-contiguous
            float32 or float64 arrays and CSR matrices are used without a copy; sums are in float64 for any storage
            type. Dense arrays on a GPU (of torch, CuPy and others) are used without a copy. RankingData have their own
            labels and query ids. If `RankingData.load` mapped them from a file larger than ``memory_limit``, X stays in
            the file and is read in passes. A path names a file that `read_data` reads with its default options; Parquet
            or text that may take more than ``memory_limit`` is converted to a cache in ``$XDG_CACHE_HOME/ranksvm``
            (``~/.cache/ranksvm``), which later fits reuse, and is read from there in passes. DataFrames (pandas,
            polars, pyarrow and others supported by narwhals) are converted to one array: float32 if that can represent
            the values of all columns, otherwise float64.
        y : array-like of shape (n_samples,)
            Relevance labels: any real numbers; only their order within a query matters, unless ``pair_weighting`` uses
            them. Omitted if ``pairs`` are given, or if the labels of RankingData are to be used.
        qid : array-like of shape (n_samples,) or str, optional
            Query of each row: ids of any dtype, in any order; or the name of the column of a DataFrame X that has them,
            which is then not a feature, here and in `predict`. None: the column "qid" of a DataFrame, as in XGBoost; if
            there is none, all rows are one query, with a `OneQueryWarning`. In this case more than 1,000 rows are
            refused, because they probably belong to several queries, whose rows must not be compared;
            ``group=[n_samples]`` says that they are one query.
        group : array-like of int, shape (n_queries,), optional
            Instead of ``qid``: sizes of consecutive queries, as in LightGBM.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each row, equivalent to repeating it: a pair has weight ``v_i * v_j``. A row of weight 0 is
            ignored.
        query_weight : array-like of shape (n_samples,), optional
            Weight of each row's query, constant within a query; it multiplies the weight of the query's pairs.
        propensity : array-like of shape (n_samples,), optional
            Probability, in (0, 1], with which feedback on the row was observed. A pair's weight is divided by the
            propensity of its preferred document, which makes learning from clicks unbiased if preferred documents are
            clicked ones (Joachims, Swaminathan & Schnabel, WSDM 2017).
        pairs : array-like of int, shape (n_pairs, 2), optional
            Instead of ``y``: row numbers (preferred, other) of explicit preferences (Joachims, KDD 2002). Both rows
            must be of one query. The work is then proportional to the number of pairs.
        pair_weight : array-like of shape (n_pairs,), optional
            Weight of each of the ``pairs``; other weights multiply it.
        event : array-like of bool, shape (n_samples,), optional
            If given, ``y`` holds times: True (or 1) if the event was observed at that time, False (or 0) if the time is
            right-censored (the event had not happened by then). A HIGHER SCORE MEANS A LONGER TIME, not a higher risk:
            documents are ranked by their times, the longest first, as by labels. A pair is comparable, and learned
            from, if the smaller time has an observed event (of equal times, a censored one is longer). Such pairs are
            not stored one by one, unlike ``pairs``. Without ``qid`` all rows are one query; with it, only times of one
            query (stratum) are compared.
        eval_set : list or tuple of tuples (X, y), or one such tuple, optional
            Data to evaluate the model on, as in LightGBM and XGBoost. The values are stored in ``evals_result_`` and do
            not affect the fit. An item may also be ``(X, pairs)`` or `Preferences`, for the pairwise accuracy, or ``(X,
            time, event)``, for the concordance index.
        eval_X, eval_y : array-like, or tuples of array-likes, optional
            Instead of ``eval_set``: the features and the labels of one set, or of several, as in LightGBM 4.7.
        eval_qid, eval_group : list of array-like, or one for a single set, optional
            Queries of each set, as ``qid`` or ``group``. If ``qid`` named a column, the same column of the sets is
            used.
        eval_names : list of str, or one for a single set, optional
            Names of the sets in ``evals_result_``; None: ``valid_0``, ``valid_1``, ...
        eval_sample_weight : list of array-like, or one for a single set, optional
            Weight of each row of the sets: a query is weighted by the mean weight of its rows.
        eval_metric : str, Metric, or list of either, optional
            What to evaluate on the sets, as in `ranksvm.metrics.evaluate`; None: NDCG@10.
        eval_at : int or list of int, optional
            Cut-offs of the metrics that have none: "ndcg" (or None) with ``[5, 10]`` is NDCG@5 and NDCG@10.

        Returns
        -------
        RankSVM
            The fitted estimator.

        Raises
        ------
        NoComparablePairsError
            When no query has two documents with different labels.
        DataError
            When X or y are not finite numbers, or lengths differ.
        OptionError
            When a hyper-parameter has an invalid value.

        Warns
        -----
        ConvergenceWarning
            When the certificate does not meet ``tol``.
        UninformativeWarning
            When all weights are 0: nothing was learned.
        OneQueryWarning
            When neither ``qid`` nor ``group`` says which rows belong to a query.
        ScaleWarning
            When the features of an evaluation set have another scale than X.
        LikelyMistakeWarning
            When query ids contain a number and the same number as text, or ``memory_limit`` is given for data in
            memory.
        """
        eval_set = joined_sets(eval_set, eval_X, eval_y)
        options = linear_options(self)
        with all_or_nothing(self, self.verbose):
            training = TrainingArguments(
                X,
                y,
                qid=qid,
                group=group,
                pairs=pairs,
                pair_weight=pair_weight,
                sample_weight=sample_weight,
                query_weight=query_weight,
                propensity=propensity,
                event=event,
            )
            training = read_training_data(self, resolve_files(training, self.memory_limit))
            self.censored_ = event is not None
            data = linear_training_set(training, options)
            sets = read_evaluation_sets(
                self,
                EvalArguments(eval_set, eval_qid, eval_group, eval_names, eval_sample_weight, eval_metric, eval_at),
                training.X,
                data.n_queries,
            )
            problem = linear_problem(data, options, getattr(self, "feature_names_in_", None))
            start = None
            if self.warm_start and hasattr(self, "coef_"):
                start = problem.start_from(self.coef_, self.pair_alpha_)
            with interruptible_if(self.keep_on_interrupt) as interrupted:
                result = problem.solve(float(self.C), start, interrupted)
            self.coef_ = np.array(result.w)
            self.monotone_ = problem.signs
            self._assign_outcome(problem.outcome(result))
            self.fitted_params_ = self._params_now()
            self.evals_result_ = sets.evals_result([sets.evaluate(self._scores)])
        return self


# the name in messages and model files, and in TypeErrors about the arguments of methods
RankSVMCore.__name__ = "RankSVM"
for _member in vars(RankSVMCore).values():
    if isinstance(_member, FunctionType):
        _member.__qualname__ = f"RankSVM.{_member.__name__}"


if TYPE_CHECKING:
    from ranksvm.estimators.base.calibrated import CalibratedMixin
    from ranksvm.estimators.base.sklearn_base import BaseEstimator

    class RankSVM(CalibratedMixin, RankSVMCore, BaseEstimator):
        """`RankSVMCore` with the interface of scikit-learn."""
else:
    # two threads may ask for the class at once
    _CREATION = threading.Lock()

    def __getattr__(name: str) -> Any:
        if name != "RankSVM":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        with first_import():
            from sklearn.base import BaseEstimator

            from ranksvm.estimators.base.calibrated import CalibratedMixin

        with _CREATION:
            if name not in globals():
                body = {"__doc__": RankSVMCore.__doc__, "__module__": __name__}
                globals()[name] = storable(type(name, (CalibratedMixin, RankSVMCore, BaseEstimator), body))
        return globals()[name]
