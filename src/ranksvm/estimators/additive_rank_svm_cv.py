"""AdditiveRankSVMCV: AdditiveRankSVM with C, the step weight and the number of interactions chosen by a metric."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ranksvm._util import checks
from ranksvm._util.checks import is_integer
from ranksvm._util.text import power
from ranksvm._util.types import Splits
from ranksvm.estimators.additive_rank_svm import DEFAULT_CS, AdditiveRankSVM
from ranksvm.estimators.base.additive_ranker import AdditiveRanker
from ranksvm.estimators.base.arguments import ConventionLike, Interactions, LossLike, Monotone
from ranksvm.estimators.base.choosing_ranker import ChoosingRanker, FoldFactory, HeldOutData
from ranksvm.estimators.base.inputs import resolve_files
from ranksvm.estimators.base.ranker import additive_options
from ranksvm.exceptions import OptionError
from ranksvm.fits.additive import AdditiveTrainingSet, additive_problem, additive_training_set
from ranksvm.fits.additive_options import AdditiveOptions
from ranksvm.fits.problem import interruptible_if
from ranksvm.fits.training_set import ListedPairs, TrainingArguments, TrainingSet
from ranksvm.metrics import Metric
from ranksvm.model_files.registry import storable
from ranksvm.model_files.schema import Array, Number, Schema

__all__ = ["AdditiveRankSVMCV"]

# The step weights and the numbers of interactions that are tried by default.
STEP_WEIGHTS = (0.0, 0.5, 2.0)
AUTO_COUNTS = (0, 8, 32)


class Setting(NamedTuple):
    """The hyper-parameters other than C that are compared.

    Attributes
    ----------
    step_weight : float
        Weight of the steps.
    n_interactions : int or None
        Number of interactions; None for listed ones.
    """

    step_weight: float
    n_interactions: int | None


@storable
class AdditiveRankSVMCV(ChoosingRanker, AdditiveRanker):
    """AdditiveRankSVM with C, the step weight and the number of interactions chosen by a ranking metric.

    The choice is made on validation data (``eval_set``) or by cross-validation over queries, as in `RankSVMCV`: for
    each step weight and number of interactions, models are fitted for ascending C, and each fit starts from the
    previous ones. A step weight of 0 gives the linear model, so that the result is a linear model if steps do not
    help.

    The levels of each fold are computed from its training part; for listed pairs, as in every fit to pairs, from all
    rows of X. A feature has a level for missing values if it has any in all of the data, not only in this training
    part. So it is no error if a feature has missing values in the test part of a fold but none in its training part.
    The model of this fold then uses the mean of the feature in the linear part and adds nothing else, as for a category
    that does not occur in the training part.

    Parameters
    ----------
    Cs : array-like of float or None, default None
        Values of C to try; None: the powers of 4 from 4^-7 to 4^2.
    step_weights : array-like of float or None, default None
        Step weights to try; None: 0, 1/2 and 2, or 1/2 and 2 with ``linear=False``, for which 0 is refused.
    metric, cv, convention, rule, early_stopping_rounds : optional
        As in `RankSVMCV`. Ties go to the smallest C, then to the smallest step weight, then to the fewest interactions.
        Early stopping ends the values of C of one setting; then the next setting is tried. "one_standard_error" takes
        the smallest C for which some setting has a mean score of at least the highest mean score minus its standard
        error.
    linear, max_bins, interaction_bins, categorical : optional
        As in `AdditiveRankSVM`.
    interactions : int, "auto", list of int or list of pair, default 0
        As in `AdditiveRankSVM`, or several numbers to try; "auto" tries 0, 8 and 32. For each step weight, the model
        without interactions is fitted for the middle value of ``Cs``. A number n then means the n pairs of features
        with the largest bounds at this solution, for every C. Of several numbers that mean all pairs,
        the smallest is tried.
    loss, huber_width, pair_selection, pair_weighting, monotone, solver, tol, max_iter, keep_on_interrupt : optional
        As in `AdditiveRankSVM`.
    device : str, default "cpu"
        As in `AdditiveRankSVM`.
    memory_limit : int, str or None, default None
        As in `RankSVM`: data in a larger file are read in passes.
    n_jobs : int or None, default None
        Number of threads; None or -1 means all processors.
    verbose : int, default 0
        As in `RankSVMCV`.

    Attributes
    ----------
    C_, step_weight_ : float
        The chosen C and step weight.
    n_interactions_ : int
        The number of functions of two features.
    step_weights_ : ndarray of float64, shape (n_settings,)
        The step weight of each setting that was compared.
    interaction_counts_ : ndarray of int64, shape (n_settings,)
        The number of interactions of each setting; -1 for listed pairs.
    scores_ : ndarray of float64, shape (n_settings, n_Cs, n_folds)
        The metric of each setting and C on each test part (one column with ``eval_set``: its first set); NaN for those
        not tried because of early stopping or an interruption.
    mean_scores_, standard_errors_ : ndarray of float64, shape (n_settings, n_Cs)
        Means of the scores over the test parts, and their standard errors, as in `RankSVMCV`.
    best_score_ : float
        The mean score of the chosen setting and C.
    best_iteration_ : int
        The number of the chosen setting and C, from 1, in the order of ``evals_result_``.
    Cs_ : ndarray of float64, shape (n_Cs,)
        The values of C tried, ascending.
    evals_result_ : dict
        The metrics on each set of ``eval_set``, in LightGBM's form, as in `RankSVMCV`: all C for the first setting,
        then for the next.
    linear_coef_, fill_, cuts_, n_cuts_, categories_, has_missing_, is_categorical_, shape_values_, interactions_,
    interaction_cuts_, n_interaction_cuts_, interaction_values_, candidate_bounds_, interaction_bounds_, monotone_,
    ranges_, level_means_, level_shares_, cell_shares_, edited_
        As in `AdditiveRankSVM`, for the chosen model.
    objective_, duality_gap_, converged_, status_, n_iter_, solver_, width_, pair_alpha_, history_, fitted_params_,
    n_pairs_, n_queries_, censored_, device_
        As in `RankSVM`, for the chosen model.
    n_features_in_, feature_names_in_, frame_type_, qid_column_
        As in `RankSVM`.

    See Also
    --------
    AdditiveRankSVM : For one C.

    Examples
    --------
    >>> from ranksvm import AdditiveRankSVMCV, make_ranking
    >>> data = make_ranking(n_queries=60, n_docs=20, n_features=10, random_state=0)
    >>> ranker = AdditiveRankSVMCV(Cs=[1e-3, 1e-2], cv=3).fit(data.X, data.y, qid=data.qid)
    >>> ranker.scores_.shape
    (3, 2, 3)
    """

    _with_one_c = AdditiveRankSVM
    _fitted_schema: ClassVar[Schema] = {
        "step_weight_": Number(minimum=0.0),
        "n_interactions_": Number(integer=True, minimum=0),
        "step_weights_": Array("n_settings"),
        "interaction_counts_": Array("n_settings", dtype="int64", minimum=-1),
        "scores_": Array("n_settings", "n_Cs", "n_folds", finite=False),
        "mean_scores_": Array("n_settings", "n_Cs", finite=False),
        "standard_errors_": Array("n_settings", "n_Cs", finite=False),
    }
    _model_params = (
        "linear",
        "loss",
        "huber_width",
        "pair_selection",
        "pair_weighting",
        "max_bins",
        "interaction_bins",
        "rule",
    )

    step_weight_: float
    n_interactions_: int
    step_weights_: np.ndarray
    interaction_counts_: np.ndarray

    def __init__(
        self,
        Cs: ArrayLike | None = None,
        *,
        step_weights: Sequence[float] | None = None,
        metric: str | Metric = "ndcg@10",
        cv: Splits = 5,
        convention: ConventionLike = "default",
        rule: str = "best",
        early_stopping_rounds: int | None = None,
        linear: bool = True,
        max_bins: int = 32,
        interactions: Interactions = 0,
        interaction_bins: int = 8,
        categorical: Sequence[str | int] | None = None,
        loss: LossLike = "squared_hinge",
        huber_width: float = 1.0,
        pair_selection: str = "all",
        pair_weighting: str = "uniform",
        monotone: Monotone | None = None,
        solver: str = "auto",
        tol: float = 1e-4,
        max_iter: int = 1000,
        keep_on_interrupt: bool = False,
        device: str = "cpu",
        memory_limit: int | str | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        self.Cs = Cs
        self.step_weights = step_weights
        self.metric = metric
        self.cv = cv
        self.convention = convention
        self.rule = rule
        self.early_stopping_rounds = early_stopping_rounds
        self.linear = linear
        self.max_bins = max_bins
        self.interactions = interactions
        self.interaction_bins = interaction_bins
        self.categorical = categorical
        self.loss = loss
        self.huber_width = huber_width
        self.pair_selection = pair_selection
        self.pair_weighting = pair_weighting
        self.monotone = monotone
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.keep_on_interrupt = keep_on_interrupt
        self.device = device
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _default_cs(self) -> np.ndarray:
        return DEFAULT_CS

    def _resolved(self, training: TrainingArguments) -> TrainingArguments:
        return resolve_files(training, self.memory_limit, missing=True, categorical=self.categorical)

    def _options(self) -> AdditiveOptions:
        counts = self._counts()
        listed = 0 if counts is not None else self.interactions
        return additive_options(self, interactions=listed, step_weight=max(self._step_weights()))

    def _training_set(self, training: TrainingArguments, options: Any) -> Any:
        names = getattr(self, "feature_names_in_", None)
        return additive_training_set(training, options, names, self._features_with_missing())

    def _training_part(self, data: Any, training: TrainingArguments, options: Any) -> Any:
        names = getattr(self, "feature_names_in_", None)
        return additive_training_set(training, options, names, data.levels.missing)

    def _folds_of_pairs(self, data: TrainingSet, listed: ListedPairs) -> list[FoldFactory]:
        return [partial(_with_own_bounds, fold) for fold in super()._folds_of_pairs(data, listed)]

    def _part_of_file(self, data: Any, part: Any, options: Any) -> Any:
        from ranksvm.fits.additive_file import file_additive_training_set

        names = getattr(self, "feature_names_in_", None)
        return file_additive_training_set(part, options, names, data.levels.missing)

    def _settings(self, data: Any) -> list[Setting]:
        counts = self._counts()
        if counts is not None:  # all pairs of features once
            n_features = len(data.levels.ranges)
            most = n_features * (n_features - 1) // 2
            counts = [count for place, count in enumerate(counts) if place == 0 or counts[place - 1] < most]
        weights = self._step_weights()
        return [Setting(weight, count) for weight in weights for count in ([None] if counts is None else counts)]

    def _problem(self, data: Any, options: Any, setting: Setting, n_fits: int = 1) -> Any:
        problem = additive_problem(data, options, setting.step_weight)
        if setting.n_interactions is None:
            problem = problem.with_pairs(problem.listed_pairs())
        elif setting.n_interactions > 0:
            bounds = data.levels.bounds.get(setting.step_weight)
            if bounds is None:
                Cs = self._tried_cs()
                result = problem.solve(float(Cs[len(Cs) // 2]))
                bounds = data.levels.bounds[setting.step_weight] = problem.interaction_bounds(result.w, result.width)
            problem = problem.with_pairs(problem.chosen_pairs(bounds, setting.n_interactions))
        problem.label = f"step weight = {power(setting.step_weight)}, "
        if problem.terms.pairs:
            problem.label += f"{len(problem.terms.pairs)} interactions, "
        return problem

    def _assign_solution(self, problem: Any, w: np.ndarray) -> None:
        self._assign_function(problem.function(w))
        self.monotone_ = problem.levels.signs
        self.step_weight_ = float(problem.terms.step_weight)
        self.n_interactions_ = len(problem.terms.pairs)
        self.candidate_bounds_ = self.interaction_bounds_ = None
        if is_integer(self.interactions) and self.interactions == 0:
            return
        problem.objective.reweight(self.C_)
        self.candidate_bounds_ = self.interaction_bounds_ = problem.interaction_bounds(w, self.width_)
        if self.n_interactions_:
            without = problem.with_pairs(np.empty((0, 2), dtype=np.int64))
            with interruptible_if(self.keep_on_interrupt) as interrupted:
                result = without.solve(self.C_, w[: without.terms.n_variables], interrupted)
            self.candidate_bounds_ = without.interaction_bounds(result.w, result.width)

    def _assign_scores(self, settings: list[Any], scores: np.ndarray, means: np.ndarray, errors: np.ndarray) -> None:
        self.step_weights_ = np.array([each.step_weight for each in settings], dtype=np.float64)
        counts = [-1 if each.n_interactions is None else each.n_interactions for each in settings]
        self.interaction_counts_ = np.array(counts, dtype=np.int64)
        self.scores_ = scores
        self.mean_scores_ = means
        self.standard_errors_ = errors

    def _params_now(self) -> dict[str, Any]:
        return super()._params_now() | {"step_weight": self.step_weight_}

    def _step_weights(self) -> list[float]:
        """The step weights to try, ascending."""
        given = STEP_WEIGHTS if self.step_weights is None else self.step_weights
        try:
            weights = np.unique(checks.numbers_of(given))
        except (TypeError, ValueError, OverflowError):
            raise OptionError(f"step_weights must be numbers from 0, got {self.step_weights!r}.") from None
        if weights.ndim != 1 or len(weights) == 0:
            raise OptionError(f"step_weights must be a list of numbers, got {self.step_weights!r}.")
        for weight in weights.tolist():
            checks.check(step_weights=checks.not_negative(weight))
        if not self.linear and self.step_weights is None:
            weights = weights[weights > 0.0]
        if not self.linear and weights[0] == 0.0:
            raise OptionError(
                "linear=False and a step weight of 0 leave nothing to learn: step_weights must be above 0."
            )
        return [float(weight) for weight in weights]

    def _counts(self) -> list[int] | None:
        """The numbers of interactions to try, ascending; None for listed pairs."""
        given = self.interactions
        if isinstance(given, str):
            if given != "auto":
                raise OptionError(f"interactions must be a number, numbers, pairs or 'auto', got {given!r}.")
            return list(AUTO_COUNTS)
        if is_integer(given, 0):
            return [int(given)]
        if isinstance(given, list | tuple | np.ndarray) and len(given) and all(is_integer(each, 0) for each in given):
            return sorted({int(each) for each in given})
        return None


def _with_own_bounds(make_fold: FoldFactory) -> tuple[AdditiveTrainingSet, HeldOutData]:
    """A fold whose interactions are ordered by its own training part, not by that of another fold."""
    fold, held_out = make_fold()
    return replace(fold, levels=replace(fold.levels, bounds={})), held_out
