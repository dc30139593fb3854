"""RankSVM: the linear ranking support vector machine."""

from sklearn.base import BaseEstimator

from ranksvm.estimators import plain
from ranksvm.estimators.base.calibrated import CalibratedMixin
from ranksvm.model_files.registry import storable

__all__ = ["RankSVM"]


@storable
class RankSVM(CalibratedMixin, plain.RankSVM, BaseEstimator):  # numpydoc ignore=PR02
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
    monotone : None, {"increasing", "decreasing"}, array-like of shape (n_features,) or dict, default None
        Signs that weights must have, because the score is known to increase or decrease with the features. For all
        features "increasing" (no weight is negative) or "decreasing" (none is positive); or for each 1 (increasing), -1
        (decreasing) or 0 (any sign), as an array or as a dict from the names or numbers (from 0) of some features. The
        minimum is then over these weights, and the certificate is that of this problem (see the notes).
    solver : {"auto", "newton", "tron", "dual"}, default "auto"
        "newton" needs few iterations and an n_features x n_features Hessian; "tron" is Hessian-free, for sparse data
        or many features; "dual" has one dual variable for each pair, for fewer rows than features and few pairs per
        row; "auto" chooses by the size of the data. If neither "newton" nor "tron" is clearly faster, "auto" uses
        conjugate gradients that build a Hessian when this pays off ("adaptive" in ``solver_``). If "dual" converges
        slowly, "auto" continues with "tron".
    stopping : {"gap", "gradient"}, default "gap"
        "gap": stop when the certificate meets ``tol``. "gradient", for solver "tron" and losses other than "hinge":
        when ``|gradient| <= tol * |gradient at w = 0|``, the rule of published figures (Lee & Lin 2014, with ``tol =
        1e-3``), to obtain the published models. TRON then takes the published steps: without a preconditioner, and
        rejecting what is too long. The rule bounds no distance from the optimum, and stops early if C is large (on
        MQ2008 at C = 2^7 after 8 steps, 3e-4 above the optimum).
    tol : float, default 1e-4
        Stop when ``duality_gap_ <= tol * objective_``; with ``stopping="gradient"`` the part of the gradient at 0 that
        may be left.
    max_iter : int, default 1000
        Largest number of solver iterations.
    warm_start : bool, default False
        Start from the ``coef_`` of the last fit, or from its ``pair_alpha_`` if the solver is "dual".
    keep_on_interrupt : bool, default False
        Whether Ctrl-C during ``fit`` stops at the next evaluation and keeps the best model so far, instead of raising
        KeyboardInterrupt.
    device : str or list of str, default "cpu"
        Where rows, scores and pairs are: "cpu"; "cuda" or "cuda:1", a GPU (``pip install 'ranksvm[cuda]'``); a list of
        GPUs, which share the queries; or "auto", the first GPU if there is one and it is expected to be faster.
        Solvers, results and certificates are the same, with sums in float64 everywhere; solver "dual" and losses given
        as Python functions need the processor. Not yet measured: see docs/gpu.md.
    memory_limit : int, str or None, default None
        Memory that the process may take while it fits RankingData that `RankingData.load` has mapped from a file:
        bytes, or text such as "4GB" or "500MiB"; None: half of the free memory. If a fit in memory would take more, the
        file is read in passes, a block of whole queries at a time: the bits of the model then depend on the limit, but
        not on the free memory. The limit does not apply to other X, which is in memory already:
        a `LikelyMistakeWarning` says so.
    n_jobs : int or None, default None
        Number of threads; None or -1 means all processors. Results depend on it only by round-off, and not at all where
        a file is read in passes.
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
        An upper bound on ``objective_`` minus its minimum: ``1/2 |gradient|^2``, and for "hinge" (with the gradient of
        the smoothed objective) additionally ``C * sum of a_ij h (1 - h / width_)`` over the pairs whose ``h = 1 - m``
        is between 0 and ``width_``; with ``monotone``, ``m'g - 1/2 |m|^2`` instead of ``1/2 |g|^2`` for the gradient g
        (see the notes). With solver "dual", ``objective_`` minus the value of the dual at ``pair_alpha_``.
        It includes a bound on what round-off can hide, of scores, margins and all sums: in exact arithmetic the
        objective at ``coef_`` differs from ``objective_`` by no more than the gap, and its minimum is neither below
        ``objective_ - duality_gap_`` nor further than the gap below the objective at ``coef_``.
    converged_ : bool
        Whether the gap met ``tol``. Where C times the weights of the pairs at the margin exceeds the objective by far,
        as for separable data, round-off alone may be more than ``tol`` allows: then False. With
        ``stopping="gradient"``, whether the gradient met ``tol``: then only ``duality_gap_`` says how far the objective
        may be from its minimum.
    status_ : str
        A sentence that says why the solver stopped, and what to try if it did not converge; it says so where round-off
        is the limit.
    n_iter_ : int
        Iterations of the solver.
    solver_ : str
        The solver used: "newton", "tron", "adaptive" or "dual".
    device_ : str or list of str
        Where the model was fitted: "cpu", "cuda:0", or a list of GPUs. It is not part of a pickle or a model file.
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
    censored_ : bool
        Whether ``event`` was given: then `score`, and the sets of ``eval_set``, need it too.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, if X had string column names; `coef_table` lists them with the weights.
    frame_type_ : str or None
        Library of the DataFrame X, such as "polars".
    qid_column_ : str or None
        Column of X that held the query ids: the one that ``qid`` named, or "qid".
    calibration_slope_ : float
        After `calibrate`: what `predict_proba` multiplies differences of scores by.
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

    With ``monotone`` the weights are in a cone K. The dual is that of RankSVM with ``1/2 |proj_K(z)|^2`` for ``1/2
    |z|^2``, ``z = sum of alpha_ij (x_i - x_j)``, and the solution is ``proj_K(z)``. At the alpha that w implies ``z = w
    - g``, with the gradient g of the objective, and the duality gap is ``1/2 |w|^2 - w'z + 1/2 |proj_K(z)|^2 = m'g -
    1/2 |m|^2`` with ``m = w - proj_K(w - g)``, which is g itself where nothing is constrained. Solver "newton"
    minimises the quadratic model over K by an explicit Hessian in every step, "tron" by products with the Hessian, and
    "dual" maximises the dual itself; "auto" is "newton" up to 2,000 features, unless X is too sparse for that.

    There is no ``early_stopping_rounds`` and no callback: the objective is convex, and a fit ends with a certificate
    that no further iteration could lower it by more than ``tol``. `RankSVMCV` stops early along C.

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
