"""KernelRankSVM: the ranking support vector machine with a kernel."""

from collections.abc import Callable, Sequence
from typing import Any, Self

from numpy.typing import ArrayLike

from ranksvm._util.types import RandomState
from ranksvm.estimators.base.arguments import (
    EvalFeatures,
    EvalSets,
    ForEachSet,
    LossLike,
    MetricsLike,
    Names,
    TrainingFeatures,
)
from ranksvm.estimators.base.calibrated import CalibratedMixin
from ranksvm.estimators.base.dual_mixin import DualMixin
from ranksvm.estimators.base.inputs import read_evaluation_sets, read_training_data
from ranksvm.estimators.base.kernel_ranker import KernelRanker
from ranksvm.estimators.base.ranker import all_or_nothing
from ranksvm.fits.evaluation import joined_sets
from ranksvm.fits.kernel import kernel_problem, kernel_training_set
from ranksvm.fits.kernel_options import gamma_of
from ranksvm.fits.problem import interruptible_if
from ranksvm.fits.training_set import EvalArguments, TrainingArguments
from ranksvm.model_files.registry import storable

__all__ = ["KernelRankSVM"]


@storable
class KernelRankSVM(CalibratedMixin, DualMixin, KernelRanker):
    """Kernel RankSVM: large-margin learning to rank with a nonlinear scoring function, exact and certified.

    Minimizes ``1/2 |f|^2 + C * sum of a_ij * loss(f(x_i) - f(x_j))`` over the functions f of the kernel's reproducing
    kernel Hilbert space (RKHS), where (i, j) are the pairs of documents of one query with ``y_i > y_j`` and ``a_ij``
    their weights, as in `RankSVM`. The minimizer is ``f(x) = sum_j b_j k(x, x_j)``, so with l documents that have pairs
    there are l variables b, and ``|f|^2 = b' Q b`` with the kernel matrix Q. A fit costs tens to hundreds of products
    with Q, each of l^2 multiplications, and ends with a certificate: the optimum is at most ``duality_gap_`` below
    ``objective_``. An approximation costs less; its certificate refers to the problem with the approximated kernel.

    Parameters
    ----------
    C : float, default 1.0
        Weight of a pair, positive. The sum over the pairs is not normalized, so the best C decreases as the data grow.
    kernel : {"rbf", "poly", "linear", "laplacian", "cosine", "precomputed"} or callable, default "rbf"
        "rbf": ``exp(-gamma |x - z|^2)``; "laplacian": ``exp(-gamma |x - z|_1)``; "poly": ``(gamma <x, z> +
        coef0)^degree``; "linear": ``<x, z>``; "cosine": ``<x, z> / (|x| |z|)``. With "precomputed", `fit` takes the
        kernel matrix of the documents, and `predict` takes the kernel values between other documents and the documents
        of the fit. A callable takes two arrays of documents (CSR matrices if X is one), of shapes (n, n_features) and
        (m, n_features), and returns their kernel values, of shape (n, m), as in scikit-learn's SVC; it must be positive
        semidefinite, and is called on one thread.
    gamma : {"scale", "auto"} or float, default "scale"
        Parameter of "rbf", "laplacian" and "poly". "scale" is ``1 / (n_features * X.var())``, "auto" ``1 /
        n_features``.
    degree : int, default 3
        Degree of "poly".
    coef0 : float, default 1.0
        Independent term of "poly", not negative.
    loss, huber_width, pair_selection, pair_weighting : optional
        As in `RankSVM`.
    approximation : {None, "nystroem", "fourier"}, default None
        None solves the problem exactly. "nystroem" restricts f to the span of the kernel functions of some documents,
        the landmarks; it supports every kernel except "precomputed". "fourier" replaces the kernel by the inner product
        of random features; it supports "rbf" and "laplacian". Both solve a linear problem with ``n_components``
        features, and the model has at most as many terms.
    n_components : int, default 1000
        Number of landmarks, or of random features (an odd number is rounded up); unused without approximation.
    landmarks : {"uniform", "kmeans++", "leverage"}, default "uniform"
        How landmarks are drawn from the documents that have pairs: uniformly; far from each other (k-means++); or by
        ridge leverage scores, which measure how poorly other documents approximate them. The latter two cost more and
        approximate better.
    random_state : int, numpy.random.RandomState or None, default None
        Seed of the landmarks or random features.
    memory_limit : int, str or None, default None
        Memory that a fit may use in addition to X: for the kernel matrix (or the features of an approximation), its
        computation, and the solver's vectors. Bytes, or text such as "4GB" or "500MiB"; None: half of the free memory.
        Parts that do not fit are recomputed for every product; results are the same.
    kernel_dtype : {"float32", "float64"}, default "float32"
        Type in which Q, or features, are stored. In both cases they are computed in float64, and products with them are
        summed in float64; with "float32" the certificate refers to the rounded kernel (on MQ2008 the objective moves by
        a relative 3e-7 or less at C = 1, and 2e-5 at C = 32). If rounding is estimated to change the objective by more
        than a relative ``tol``, or C is so large that the problem with a rounded Q would not be convex (on MQ2008 from
        C = 170 on), Q is stored in "float64" nevertheless.
    solver : {"auto", "newton", "direct", "tron"}, default "auto"
        "newton" takes Newton steps in the inner product of Q by conjugate gradients, with one product with Q per inner
        step; "direct" inverts the Hessian in every step, by a Cholesky factor with a row for each document that has an
        active pair (one at whose margin the loss is curved); "auto" begins as "newton" and goes on as "direct" once
        that costs less and fits into ``memory_limit`` or, on a GPU, into its memory (where direct steps need all of Q,
        and at most 2,000 such documents in each query); "tron" is the trust region method of Kuo, Lee & Lin (2014) in
        the coefficients, for comparison. With an approximation the solvers are as in `RankSVM`: "auto" may also choose
        "dual", and "direct" needs the features of all documents within ``memory_limit``.
    stopping : {"gap", "gradient"}, default "gap"
        As in `RankSVM`: "gradient" is the published rule, for solver "tron". As in the solver, the gradient is taken
        with respect to the coefficients: ``Q (b + C dloss/ds)`` at the scores ``s = Qb``, measured by its Euclidean
        norm. It is small in directions in which Q is small, so the rule may stop far above the optimum: by 11 % on
        MQ2008 (fold 1, gamma = 2^-5, C = 1) with ``tol=1e-3``.
    tol : float, default 1e-4
        Stop when ``duality_gap_ <= tol * objective_``; with ``stopping="gradient"``, when the norm of the gradient is
        at most ``tol`` times its norm at 0.
    max_iter : int, default 1000
        Largest number of solver iterations.
    warm_start : bool, default False
        Start from the last fit. An exact fit needs the same rows, to which its coefficients belong; it can also start
        from a Nyström fit. A Nyström fit starts from the projection of the previous function; a fit with random
        features needs the same features. If an approximation has so few pairs that the dual is solved, it starts at 0.
    keep_on_interrupt : bool, default False
        Whether Ctrl-C during ``fit`` stops at the next evaluation and keeps the best model so far, instead of raising
        KeyboardInterrupt.
    device : str, default "cpu"
        Where the kernel matrix, or the features of an approximation, are computed, stored and multiplied: "cpu"; "cuda"
        or "cuda:1", a GPU (``pip install "ranksvm[cuda]"``), in the memory that is free there; or "auto", as in
        `RankSVM`. Rows of the matrix that do not fit are computed again for every product. A callable kernel needs the
        CPU. docs/gpu.md says when a GPU is worth it.
    n_jobs : int or None, default None
        Number of threads; None or -1 means all processors. Results depend on it only by round-off.
    verbose : int, default 0
        1 shows every iteration: on stderr, or wherever `logging` is configured to send the logger "ranksvm".

    Attributes
    ----------
    dual_coef_ : ndarray of float64, shape (n_support,)
        The nonzero coefficients b. Absent for "fourier".
    support_ : ndarray of int64, shape (n_support,)
        The rows of X to which the coefficients belong, ascending: documents in pairs, or landmarks. Absent for
        "fourier".
    support_vectors_ : ndarray or CSR matrix, shape (n_support, n_features)
        The features of these rows. Absent for a precomputed kernel or "fourier".
    coef_ : ndarray of float64, shape (n_features,)
        For ``kernel="linear"`` the weights of the features, ``support_vectors_.T @ dual_coef_``.
    frequencies_ : ndarray of float64, shape (n_frequencies, n_features)
        For "fourier", the random frequencies: the features are the cosines, then the sines, of ``frequencies_ @ x``,
        divided by the square root of the number of frequencies, which is half of ``n_components``, rounded up.
    feature_coef_ : ndarray of float64, shape (2 * n_frequencies,)
        For "fourier", the weights of these features.
    gamma_ : float or None
        The gamma used; None for kernels without gamma.
    kernel_dtype_ : str
        Type in which Q, or features, were stored.
    n_kernel_products_ : int
        Number of products with Q; 0 if Q is approximated.
    pruned_ : dict
        After `prune`: n_dropped, distance (an upper bound on the change of the function in the RKHS) and norm (of the
        function before).
    objective_, duality_gap_, converged_, status_, n_iter_, solver_, width_, pair_alpha_, history_, n_pairs_,
    n_queries_, censored_, device_
        As in `RankSVM`. The gap holds for the kernel itself, not for its rounded matrix. The difference between the two
        is measured with columns of the matrix that are computed again in float64: all columns for up to 256 documents.
        For more documents, the difference is estimated, with a safety margin, from 64 columns drawn at random. The gap
        of an approximation (``approximation``) holds for its features as stored. A precomputed kernel is taken as it
        is: if C is large, pass it in float64, because its rounding to float32 may change the objective by more than the
        gap.
    fitted_params_ : dict
        The hyper-parameters that define the model, with their values in `fit`, including the kernel's: other
        methods read these values.
    n_features_in_, feature_names_in_, frame_type_, qid_column_, evals_result_
        As in `RankSVM`.

    See Also
    --------
    RankSVM : Linear, in time proportional to the number of documents.

    Notes
    -----
    Kuo, Lee & Lin, "Large-scale kernel RankSVM", SDM 2014, introduced the problem in this form. The gap is ``1/2
    |grad|^2`` in the norm of the RKHS, and for "hinge" as in `RankSVM`; `dual_coef` has the dual variables. Nyström:
    Williams & Seeger, NeurIPS 2000; random features: Rahimi & Recht, NeurIPS 2007.

    Examples
    --------
    >>> from ranksvm import KernelRankSVM, make_ranking
    >>> data = make_ranking(n_queries=50, n_docs=20, n_features=10, random_state=0)
    >>> ranker = KernelRankSVM(C=0.1, gamma=0.05).fit(data.X, data.y, qid=data.qid)
    >>> ranker.predict(data.X).shape
    (1000,)
    >>> bool(ranker.duality_gap_ <= 1e-4 * ranker.objective_)
    True
    """

    _model_params = (
        "C",
        "loss",
        "huber_width",
        "pair_selection",
        "pair_weighting",
        "kernel",
        "degree",
        "coef0",
        "approximation",
        "n_components",
        "landmarks",
    )

    def __init__(
        self,
        C: float = 1.0,
        *,
        kernel: str | Callable[..., Any] = "rbf",
        gamma: str | float = "scale",
        degree: int = 3,
        coef0: float = 1.0,
        loss: LossLike = "squared_hinge",
        huber_width: float = 1.0,
        pair_selection: str = "all",
        pair_weighting: str = "uniform",
        approximation: str | None = None,
        n_components: int = 1000,
        landmarks: str = "uniform",
        random_state: RandomState = None,
        memory_limit: int | str | None = None,
        kernel_dtype: str = "float32",
        solver: str = "auto",
        stopping: str = "gap",
        tol: float = 1e-4,
        max_iter: int = 1000,
        warm_start: bool = False,
        keep_on_interrupt: bool = False,
        device: str | list[str] = "cpu",
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.loss = loss
        self.huber_width = huber_width
        self.pair_selection = pair_selection
        self.pair_weighting = pair_weighting
        self.approximation = approximation
        self.n_components = n_components
        self.landmarks = landmarks
        self.random_state = random_state
        self.memory_limit = memory_limit
        self.kernel_dtype = kernel_dtype
        self.solver = solver
        self.stopping = stopping
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.keep_on_interrupt = keep_on_interrupt
        self.device = device
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(
        self,
        X: TrainingFeatures,
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
        """Learn the scoring function.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features), or Preferences
            Features, as in `RankSVM.fit`; for a precomputed kernel the symmetric kernel matrix, dense, of shape
            (n_samples, n_samples).
        y : array-like of shape (n_samples,)
            Relevance labels: any real numbers; only their order within a query matters, unless ``pair_weighting`` uses
            them. Omitted if ``pairs`` are given.
        qid, group : array-like (or for qid str), optional
            Queries, as in `RankSVM.fit`.
        sample_weight, query_weight, propensity : array-like of shape (n_samples,), optional
            Weights, as in `RankSVM.fit`.
        pairs, pair_weight : array-like, optional
            Explicit preferences instead of ``y``, as in `RankSVM.fit`.
        event : array-like of bool, shape (n_samples,), optional
            Which of the times in ``y`` are observed, as in `RankSVM.fit`: a HIGHER SCORE MEANS A LONGER TIME.
        eval_set : list or tuple of tuples (X, y), or one such tuple, optional
            Data to evaluate the model on, as in `RankSVM.fit`; for a precomputed kernel X holds the kernel values
            between its documents and the documents of the fit.
        eval_X, eval_y : array-like, or tuples of array-likes, optional
            Instead of ``eval_set``: the features and the labels of one set, or of several, as in LightGBM 4.7.
        eval_qid, eval_group : list of array-like, or one for a single set, optional
            Queries of each set, as ``qid`` or ``group``. If ``qid`` named a column, the same column of the sets is
            used.
        eval_names, eval_sample_weight, eval_metric, eval_at : optional
            As in `RankSVM.fit`.

        Returns
        -------
        KernelRankSVM
            The fitted estimator.

        Raises
        ------
        NoComparablePairsError
            When no query has two documents with different labels.
        DataError
            When X or y are not finite numbers, lengths differ, a kernel overflows, or a precomputed one is not square,
            not symmetric or indefinite.
        OptionError
            When a hyper-parameter has an invalid value, or the memory limit is too small.

        Warns
        -----
        ConvergenceWarning
            When the certificate does not meet ``tol``.
        UninformativeWarning, OneQueryWarning, ScaleWarning, LikelyMistakeWarning
            As in `RankSVM.fit`.
        """
        eval_set = joined_sets(eval_set, eval_X, eval_y)
        options = self._kernel_options()
        with all_or_nothing(self, self.verbose):
            training = read_training_data(
                self,
                TrainingArguments(
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
                ),
            )
            self.censored_ = event is not None
            data = kernel_training_set(training, options)
            sets = read_evaluation_sets(
                self,
                EvalArguments(eval_set, eval_qid, eval_group, eval_names, eval_sample_weight, eval_metric, eval_at),
                training.X,
                data.n_queries,
            )
            problem = kernel_problem(data, options, gamma_of(self.kernel, self.gamma, data.X))
            start = None
            if self.warm_start and hasattr(self, "gamma_"):
                start = problem.start_from(self._fitted_function(), self._scores)
            with interruptible_if(self.keep_on_interrupt) as interrupted:
                result = problem.solve(float(self.C), start, interrupted)
            self._assign_model(problem.model(result.w))
            self._assign_outcome(problem.outcome(result))
            self.fitted_params_ = self._params_now()
            self.evals_result_ = sets.evals_result([sets.evaluate(self._scores)])
        return self
