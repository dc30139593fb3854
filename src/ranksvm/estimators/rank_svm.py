"""RankSVM: the linear ranking support vector machine."""

from typing import Any, ClassVar

from ranksvm import _options
from ranksvm._registry import storable
from ranksvm._schema import Array, Schema
from ranksvm.data import frames
from ranksvm.estimators.dual_mixin import DualMixin
from ranksvm.estimators.linear_ranker import LinearRanker
from ranksvm.estimators.ranker import SCORE_METRIC, all_or_nothing
from ranksvm.problems.evaluation import evals_result, evaluation_sets
from ranksvm.problems.linear import linear_problem
from ranksvm.problems.problem import interruptible_if

__all__ = ["RankSVM"]


@storable
class RankSVM(DualMixin, LinearRanker):
    """Linear RankSVM: large-margin learning to rank, exact and certified.

    Minimises ``1/2 |w|^2 + C * sum of a_ij * loss(s_i - s_j)`` over the pairs of documents (i, j) of one query with
    ``y_i > y_j``, where ``s = X w`` and ``a_ij`` is the pair's weight (1 by default). The work is O(l log l) in the
    number of documents, independent of the number of pairs, and every fit ends with a certificate: the optimum is at
    most ``duality_gap_`` below ``objective_``.

    Parameters
    ----------
    C : float, default 1.0
        Weight of a pair, positive. The sum over the pairs is not normalised, so the best C decreases as the data grow;
        `RankSVMCV` chooses it.
    loss : {"squared_hinge", "hinge", "huber"} or object, default "squared_hinge"
        Loss of a pair as a function of its margin ``m = s_i - s_j``: ``max(0, 1 - m) ** 2`` (Lee & Lin 2014);
        ``max(0, 1 - m)``, the loss of the original RankSVM (Joachims 2002), which is less sensitive to outliers; or the
        Huberised hinge, 0 from ``m = 1`` up, ``(1 - m) ** 2 / (2 d)`` down to ``1 - d`` and ``1 - m - d / 2`` below, d
        the ``huber_width``. The hinge is approached by Huberised hinges of decreasing width; the certificate is that of
        the hinge problem itself. An object with the methods ``value(margins)``, ``derivative(margins)`` and
        ``curvature(margins)``, each from an array of margins to an array of the same shape, defines any nonnegative
        convex function of the margin: every pair is then visited, on one thread, and the model cannot be saved to a
        model file (it can be pickled if the object can).
    huber_width : float, default 1.0
        The width d of "huber", positive; no effect on other losses.
    pair_selection : {"all", "adjacent"}, default "all"
        "adjacent" uses only the pairs of adjacent labels of a query (Lee & Lin 2014, section 5): cheaper if a query has
        many distinct labels, at some cost in accuracy.
    pair_weighting : {"uniform", "per_query", "label_gap", "gain_gap"}, default "uniform"
        Weight of a pair, which weights passed to `fit` multiply: 1; 1 over the number of pairs of its query (with
        sample weights: over the sum of ``v_i * v_j``), so that every query counts equally (Cao et al., SIGIR 2006);
        ``y_i - y_j``; or ``(2^y_i - 2^y_j) / 2^max(y)``, with the maximum over all rows, to avoid overflow.
    solver : {"auto", "newton", "tron", "dual"}, default "auto"
        "newton" needs few iterations and an n_features x n_features Hessian; "tron" is Hessian-free, for sparse data
        or many features; "dual" has one dual variable for each pair, for fewer rows than features and few pairs per
        row; "auto" chooses by the size of the data. If neither "newton" nor "tron" is clearly faster, "auto" uses
        conjugate gradients that build a Hessian when this pays off ("adaptive" in ``solver_``). If "dual" converges
        slowly, "auto" continues with "tron".
    tol : float, default 1e-4
        Stop when ``duality_gap_ <= tol * objective_``.
    max_iter : int, default 1000
        Largest number of solver iterations.
    warm_start : bool, default False
        Start from the ``coef_`` of the last fit, or from its ``pair_alpha_`` if the solver is "dual".
    keep_on_interrupt : bool, default False
        Whether Ctrl-C during ``fit`` stops at the next evaluation and keeps the best model so far, instead of raising
        KeyboardInterrupt.
    n_jobs : int or None, default None
        Number of threads; None or -1 means all processors. Results depend on it only by round-off.
    verbose : int, default 0
        1 shows every iteration: on stderr, or wherever `logging` is configured to send the logger "ranksvm".

    Attributes
    ----------
    coef_ : ndarray of float64, shape (n_features,)
        The weights w.
    objective_ : float
        Value of the objective at ``coef_``.
    duality_gap_ : float
        An upper bound on ``objective_`` minus its minimum: ``1/2 |gradient|^2``, and for "hinge" (with the gradient of
        the smoothed objective) additionally ``C * sum of a_ij h (1 - h / width_)`` over the pairs whose ``h = 1 - m``
        is between 0 and ``width_``. With solver "dual", ``objective_`` minus the value of the dual at ``pair_alpha_``.
    converged_ : bool
        Whether the gap met ``tol``.
    status_ : str
        A sentence that says why the solver stopped, and what to try if it did not converge.
    n_iter_ : int
        Iterations of the solver.
    solver_ : str
        The solver used: "newton", "tron", "adaptive" or "dual".
    width_ : float or None
        Width of the Huberised hinge that ``coef_`` minimises: for "hinge" the last and smallest, with which the dual
        variables are ``C * a_ij * clip((1 - m) / width_, 0, 1)``; None for "squared_hinge" and
        for "hinge" solved by the dual, which smooths nothing.
    pair_alpha_ : ndarray of float64, shape (n_pairs,), or None
        Dual variables of the pairs, query by query, where ``solver_`` is "dual"; `dual_coef` presents them.
    history_ : dict of list
        Trace over the iterations: objective, duality_gap, evaluations, hessian_products.
    fitted_params_ : dict
        The hyper-parameters that define the model, with their values in `fit`: `dual_coef` reads these values.
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
        Column of X that held the query ids, if ``qid`` named one.
    evals_result_ : dict
        The metrics of the model on each set of ``eval_set``, in LightGBM's form: ``{"valid_0": {"ndcg@10": [value]}}``.

    See Also
    --------
    RankSVMCV : Chooses C on validation data or query folds.

    Notes
    -----
    Herbrich, Graepel & Obermayer (2000) and Joachims (2002) introduced the model; Lee & Lin, "Large-scale linear
    rankSVM", Neural Computation 26 (2014), the squared hinge form and its computation by order statistics. The hinge
    is solved here in the primal, by Newton steps on smoothed problems (as Chapelle, Neural Computation 19, 2007,
    smooths the hinge of classification); the pairs are not listed there either.

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

    _model_params = ("C", "loss", "huber_width", "pair_selection", "pair_weighting")
    _fitted_schema: ClassVar[Schema] = {"coef_": Array("n_features")}

    def __init__(
        self,
        C: float = 1.0,
        *,
        loss: Any = "squared_hinge",
        huber_width: float = 1.0,
        pair_selection: str = "all",
        pair_weighting: str = "uniform",
        solver: str = "auto",
        tol: float = 1e-4,
        max_iter: int = 1000,
        warm_start: bool = False,
        keep_on_interrupt: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        self.C = C
        self.loss = loss
        self.huber_width = huber_width
        self.pair_selection = pair_selection
        self.pair_weighting = pair_weighting
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.keep_on_interrupt = keep_on_interrupt
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        qid: Any = None,
        group: Any = None,
        sample_weight: Any = None,
        query_weight: Any = None,
        propensity: Any = None,
        pairs: Any = None,
        pair_weight: Any = None,
        eval_set: Any = None,
        eval_qid: Any = None,
        eval_group: Any = None,
    ) -> "RankSVM":
        """Learn the weights.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)
            Features. C-contiguous float32 or float64 arrays and CSR matrices are used without a copy; sums are in
            float64 for any storage type. DataFrames (pandas, polars, pyarrow and others supported by narwhals) are
            converted to one such array: float32 if that holds all their columns.
        y : array-like of shape (n_samples,)
            Relevance labels: any real numbers; only their order within a query matters, unless ``pair_weighting`` uses
            them. Omitted if ``pairs`` are given.
        qid : array-like of shape (n_samples,) or str, optional
            Query of each row: any dtype, in any order. None: all rows are one query. The name of a column of a
            DataFrame X: that column, which is then not a feature, here and in `predict`.
        group : array-like of int, shape (n_queries,), optional
            Instead of ``qid``: sizes of consecutive queries, as in LightGBM.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each row, equivalent to repeating it: a pair has weight ``v_i * v_j``. A row of weight 0 is
            ignored.
        query_weight : array-like of shape (n_samples,), optional
            Weight of each row's query, constant within a query; it multiplies the weight of the query's pairs.
        propensity : array-like of shape (n_samples,), optional
            Probability, in (0, 1], with which feedback on the row was observed. A pair's weight is divided by that of
            its preferred document, which makes learning from clicks unbiased where preferred documents are clicked
            ones (Joachims, Swaminathan & Schnabel, WSDM 2017).
        pairs : array-like of int, shape (n_pairs, 2), optional
            Instead of ``y``: row numbers (preferred, other) of explicit preferences (Joachims, KDD 2002). Both rows
            must be of one query. Only in this case is the work proportional to the number of pairs.
        pair_weight : array-like of shape (n_pairs,), optional
            Weight of each of the ``pairs``; other weights multiply it.
        eval_set : list of tuple (X, y), or one such tuple, optional
            Data to evaluate the model on, as in LightGBM and XGBoost. The values are stored in ``evals_result_`` and do
            not affect the fit.
        eval_qid, eval_group : list of array-like, or one for a single set, optional
            Queries of each set, as ``qid`` or ``group``. If ``qid`` named a column, the same column of the sets.

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
        """
        _options.check(C=_options.positive(self.C))
        with all_or_nothing(self):
            X, qid, self.qid_column_ = frames.split_qid(X, qid)
            self.frame_type_ = frames.library(X)
            weights = {"sample_weight": sample_weight, "query_weight": query_weight, "propensity": propensity}
            problem = linear_problem(self, X, y, qid=qid, group=group, pairs=pairs, pair_weight=pair_weight, **weights)
            sets = evaluation_sets(self, eval_set, eval_qid, eval_group, problem.n_queries)
            start = problem.start_from(self) if self.warm_start and hasattr(self, "coef_") else None
            with _options.verbosity(self.verbose), interruptible_if(self.keep_on_interrupt) as interrupted:
                result = problem.solve(self.C, start, interrupted)
            self._assign(problem.model(result.w), problem.outcome(result))
            self.fitted_params_ = self._params_now()
            self.evals_result_ = evals_result([[each.evaluate(self._scores, SCORE_METRIC) for each in sets]])
        return self
