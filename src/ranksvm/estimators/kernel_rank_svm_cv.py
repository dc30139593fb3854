"""KernelRankSVMCV: KernelRankSVM with C and gamma chosen on validation data or by query folds."""

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ranksvm._util import checks
from ranksvm._util.text import power
from ranksvm._util.types import RandomState, Splits
from ranksvm.estimators.base.arguments import ConventionLike, LossLike, Validated
from ranksvm.estimators.base.choosing_ranker import ChoosingRanker
from ranksvm.estimators.base.kernel_ranker import KernelRanker
from ranksvm.estimators.kernel_rank_svm import KernelRankSVM
from ranksvm.exceptions import OptionError
from ranksvm.fits.kernel import KernelOrFeatureProblem, kernel_problem, kernel_training_set
from ranksvm.fits.kernel_options import KernelOptions, gamma_of, is_precomputed
from ranksvm.fits.training_set import TrainingArguments, TrainingSet
from ranksvm.metrics import Metric
from ranksvm.model_files.registry import storable
from ranksvm.model_files.schema import Array, Schema

__all__ = ["KernelRankSVMCV"]

# The values of gamma tried by default: these multiples of "scale".
FACTORS = (0.0625, 0.25, 1.0, 4.0)


@storable
class KernelRankSVMCV(ChoosingRanker, KernelRanker):
    """KernelRankSVM with C and gamma chosen by a ranking metric, on validation data or by folds of queries.

    There is one kernel matrix for each training part and each gamma. C ascends, and each fit starts from the previous
    ones. With validation data (``eval_set``) the chosen solution is the model; with folds, the model is refitted on
    all data. Ties go to the smallest C, then to the smallest gamma.

    Parameters
    ----------
    Cs : array-like of float or None, default None
        Values of C to try; None: the powers of 2 from 2^-15 to 2^5.
    gammas : array-like of float, "scale" or "auto", or None, default None
        Values of gamma to try, for kernels with a gamma, as in `KernelRankSVM`; None: 1/16, 1/4, 1 and 4 times "scale",
        which is ``1 / (n_features * X.var())``.
    metric, cv, convention, rule : optional
        As in `RankSVMCV`. "one_standard_error" takes the smallest C for which some gamma has a mean score of at least
        the highest mean score minus its standard error, and the smallest such gamma.
    early_stopping_rounds : int or None, default None
        With an ``eval_set``: stop after this number of ascending values of C without a better score on its first set;
        then try the next gamma.
    kernel, degree, coef0, approximation, n_components, landmarks, random_state, memory_limit, kernel_dtype : optional
        As in `KernelRankSVM`. The memory limit applies to one kernel matrix: only one is in memory at a time.
    loss, huber_width, pair_selection, pair_weighting, solver, tol, max_iter, device, n_jobs : optional
        As in `KernelRankSVM`.
    keep_on_interrupt, verbose : optional
        As in `RankSVMCV`; ``verbose=1`` shows the score of each gamma and C on each fold.

    Attributes
    ----------
    C_, gamma_ : float
        The chosen values; ``gamma_`` is None if the kernel has no gamma.
    best_score_ : float
        The mean score of the chosen values.
    best_iteration_ : int
        The number of the chosen values, from 1, in the order of ``evals_result_``.
    Cs_ : ndarray of float64, shape (n_Cs,)
        The values of C tried, ascending.
    gammas_ : ndarray of float64, shape (n_gammas,)
        The values of gamma tried, ascending. It is empty if the kernel has no gamma; in the shapes below, ``n_gammas``
        is then 1.
    scores_ : ndarray of float64, shape (n_gammas, n_Cs, n_folds)
        The metric of each gamma and C on each test part (one column with ``eval_set``: its first set); NaN for those
        not tried because of early stopping or an interruption.
    mean_scores_, standard_errors_ : ndarray of float64, shape (n_gammas, n_Cs)
        Mean over the test parts, and its standard error, as in `RankSVMCV`.
    evals_result_ : dict
        The metrics on each set of ``eval_set`` for each gamma and each C, in LightGBM's form: ``{"valid_0": {"ndcg@10":
        [...]}}``, all C for the first gamma, then for the next.
    dual_coef_, support_, support_vectors_, coef_, frequencies_, feature_coef_, kernel_dtype_, n_kernel_products_
        As in `KernelRankSVM`, for the chosen values; the products are counted over the whole path along C.
    fitted_params_, objective_, duality_gap_, converged_, status_, n_iter_, solver_, width_, pair_alpha_, history_,
    n_pairs_, n_queries_, censored_, device_
        As in `RankSVM`, for the chosen values.
    n_features_in_, feature_names_in_, frame_type_, qid_column_
        As in `RankSVM`.

    See Also
    --------
    KernelRankSVM : For one C and gamma.
    GridDisplay : Plots the scores over C and gamma.

    Examples
    --------
    >>> from ranksvm import KernelRankSVMCV, make_ranking
    >>> data = make_ranking(n_queries=40, n_docs=10, n_features=10, random_state=0)
    >>> ranker = KernelRankSVMCV(Cs=[0.01, 0.1, 1.0], gammas=[0.01, 0.1], cv=3).fit(data.X, data.y, qid=data.qid)
    >>> ranker.scores_.shape
    (2, 3, 3)
    """

    _with_one_c = KernelRankSVM
    gammas_: np.ndarray
    _fitted_schema: ClassVar[Schema] = {
        "gammas_": Array("n_gammas_listed"),
        "scores_": Array("n_gammas", "n_Cs", "n_folds", finite=False),
        "mean_scores_": Array("n_gammas", "n_Cs", finite=False),
        "standard_errors_": Array("n_gammas", "n_Cs", finite=False),
    }
    _model_params = (
        "loss",
        "huber_width",
        "pair_selection",
        "pair_weighting",
        "rule",
        "kernel",
        "degree",
        "coef0",
        "approximation",
        "n_components",
        "landmarks",
    )

    def __init__(
        self,
        Cs: ArrayLike | None = None,
        gammas: ArrayLike | None = None,
        *,
        metric: str | Metric = "ndcg@10",
        cv: Splits = 5,
        convention: ConventionLike = "default",
        rule: str = "best",
        early_stopping_rounds: int | None = None,
        kernel: str | Callable[..., Any] = "rbf",
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
        tol: float = 1e-4,
        max_iter: int = 1000,
        keep_on_interrupt: bool = False,
        device: str | list[str] = "cpu",
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        self.Cs = Cs
        self.gammas = gammas
        self.metric = metric
        self.cv = cv
        self.convention = convention
        self.rule = rule
        self.early_stopping_rounds = early_stopping_rounds
        self.kernel = kernel
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
        self.tol = tol
        self.max_iter = max_iter
        self.keep_on_interrupt = keep_on_interrupt
        self.device = device
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _options(self) -> KernelOptions:
        return self._kernel_options()

    def _training_set(self, training: TrainingArguments, options: Any) -> TrainingSet:
        return kernel_training_set(training, options)

    def _settings(self, data: TrainingSet) -> list[Any]:
        """The values of gamma, ascending: a larger gamma allows a function to vary more."""
        if gamma_of(self.kernel, "auto", data.X) is None:
            return [None]
        if self.gammas is None:
            scale = gamma_of(self.kernel, "scale", data.X)
            assert scale is not None
            return [factor * scale for factor in FACTORS]
        try:
            given = np.atleast_1d(np.asarray(self.gammas, dtype=object))
            named = [gamma_of(self.kernel, each, data.X) if each in ("scale", "auto") else each for each in given]
            gammas = np.sort(checks.numbers_of(named))
        except (TypeError, ValueError, OverflowError):
            raise OptionError(f"gammas must be positive, finite numbers, got {self.gammas!r}.") from None
        if gammas.ndim != 1 or len(gammas) == 0:
            raise OptionError(f"gammas must be a list of numbers, got {self.gammas!r}.")
        for gamma in gammas:
            checks.check(gammas=checks.positive(float(gamma)))
        return list(map(float, gammas))

    def _problem(
        self, data: TrainingSet, options: Any, setting: float | None, n_fits: int = 1
    ) -> KernelOrFeatureProblem:
        problem = kernel_problem(data, options, setting, n_fits)
        problem.label = "" if setting is None else f"gamma = {power(setting)}, "
        return problem

    def _features_of(self, X: Validated, rows: np.ndarray, training_rows: np.ndarray) -> Validated:
        if is_precomputed(self.kernel):
            assert isinstance(X, np.ndarray)
            values: np.ndarray = X[np.ix_(rows, training_rows)]
            return values
        return X[rows]

    def _assign_solution(self, problem: Any, w: np.ndarray) -> None:
        self._assign_model(problem.model(w))

    def _assign_scores(self, settings: list[Any], scores: np.ndarray, means: np.ndarray, errors: np.ndarray) -> None:
        self.gammas_ = np.array([gamma for gamma in settings if gamma is not None], dtype=np.float64)
        self.scores_ = scores
        self.mean_scores_ = means
        self.standard_errors_ = errors
