"""Choice of C, and of gamma for a kernel, by a ranking metric on validation data or over folds of queries."""

import logging
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from ranksvm._util import checks
from ranksvm._util.text import power
from ranksvm._util.threads import effective_n_jobs
from ranksvm._util.types import MemoryLimit, Splits
from ranksvm._util.verbosity import Steps
from ranksvm.data import Queries, TwoBlocks, validation
from ranksvm.data.censoring import strata_or_rows
from ranksvm.datasets.cache.rows import FileRows
from ranksvm.datasets.file_data import FileData
from ranksvm.estimators.base.arguments import (
    ConventionLike,
    EvalFeatures,
    EvalSets,
    ForEachSet,
    MetricsLike,
    Names,
    TrainingData,
    Validated,
)
from ranksvm.estimators.base.calibrated import CalibratedMixin
from ranksvm.estimators.base.dual_mixin import DualMixin
from ranksvm.estimators.base.evaluation_rounds import Callbacks, EvaluationRounds, checked_callbacks, checked_patience
from ranksvm.estimators.base.inputs import read_evaluation_sets, read_training_data
from ranksvm.estimators.base.ranker import all_or_nothing
from ranksvm.estimators.base.sklearn_base import BaseEstimator
from ranksvm.estimators.path import c_values, solve_along
from ranksvm.exceptions import LikelyMistakeWarning, NoComparablePairsError, OptionError
from ranksvm.fits.evaluation import EvaluationSet, EvaluationSets, PairEvaluationSet, SetEvaluations, joined_sets
from ranksvm.fits.file_folds import evaluated_in_file, file_folds
from ranksvm.fits.options import FitOptions
from ranksvm.fits.problem import RankSVMProblem, interruptible_if
from ranksvm.fits.results.records import Outcome
from ranksvm.fits.training_set import EvalArguments, ListedPairs, TrainingArguments, TrainingSet
from ranksvm.metrics import Convention, Evaluation, Metric, parse_metric
from ranksvm.metrics.conventions import convention_named
from ranksvm.metrics.definitions import ACCURACY, CONCORDANCE, on_scale, only_metric
from ranksvm.model_files.schema import Array, Number, Schema
from ranksvm.model_selection.cross_validation import (
    RULES,
    choose,
    mean_and_standard_error,
    query_splits,
    standard_error_over_queries,
)
from ranksvm.solvers import SolverResult, Status

logger = logging.getLogger("ranksvm.estimators")


# Data on which a solution is evaluated.
HeldOutData = EvaluationSet | PairEvaluationSet | FileRows
# A function without arguments that makes the training and the test part of a fold.
FoldFactory = Callable[[], tuple[Any, HeldOutData]]


@contextmanager
def naming_fold(number: int) -> Iterator[None]:
    """Name the fold (``number`` counts from 0) in the error for a training part without pairs."""
    try:
        yield
    except NoComparablePairsError as error:
        raise NoComparablePairsError(f"training part of fold {number + 1}: {error}") from None


@dataclass(frozen=True, eq=False)
class Choice:
    """The chosen hyper-parameters, and all that were tried.

    Parameters
    ----------
    setting_number, C_number : int
        Indices of the chosen setting and of the chosen C.
    best_iteration : int
        The number of the chosen solution, from 1, in the order in which solutions were tried.
    C : float
        The chosen C.
    best_score : float
        Mean score of the chosen setting and C.
    Cs : ndarray of float64, shape (n_Cs,)
        The values of C tried, ascending.
    settings : list
        The settings tried: hyper-parameters other than C, as in `ChoosingRanker`.
    scores : ndarray of float64, shape (n_settings, n_Cs, n_parts)
        The metric of each setting and C on each test part (of a fold) or on the validation set.
    means, errors : ndarray of float64, shape (n_settings, n_Cs)
        Means and standard errors of the scores over the test parts.
    """

    setting_number: int
    C_number: int
    best_iteration: int
    C: float
    best_score: float
    Cs: np.ndarray
    settings: list[Any]
    scores: np.ndarray
    means: np.ndarray
    errors: np.ndarray


def outcome_of_choice(problem: Any, result: SolverResult, interrupted: threading.Event | None) -> Outcome:
    """The outcome of the chosen solution; its status tells whether the user has interrupted the comparison."""
    outcome: Outcome = problem.outcome(result)
    if interrupted is not None and interrupted.is_set():
        outcome = replace(outcome, status=Status.INTERRUPTED.value)
    return outcome


class ChosenSolution(NamedTuple):
    """A choice, and the solution for it."""

    choice: Choice
    problem: RankSVMProblem
    w: np.ndarray
    outcome: Outcome
    evals_result: dict[str, Any]


class ChoosingRanker(CalibratedMixin, DualMixin, BaseEstimator):
    """Base of the estimators that choose C, and other hyper-parameters of their problem, by a metric.

    A setting holds these other hyper-parameters: one value of gamma for a kernel, None for a linear model. Each setting
    has one problem, which is solved for ascending values of C.
    """

    _fitted_schema: ClassVar[Schema] = {
        "C_": Number(minimum=0.0),
        "best_score_": Number(finite=False),
        "best_iteration_": Number(integer=True, minimum=1, nullable=True, default=None),
        "Cs_": Array("n_Cs"),
    }
    # the class of the same estimator with a single C, given as a hyper-parameter
    _with_one_c: ClassVar[Callable[..., Any]]

    C_: float
    best_score_: float
    best_iteration_: int
    Cs_: np.ndarray
    scores_: np.ndarray
    mean_scores_: np.ndarray
    standard_errors_: np.ndarray
    Cs: ArrayLike | None
    metric: str | Metric
    cv: Splits
    convention: ConventionLike
    rule: str
    pair_selection: str
    pair_weighting: str
    tol: float
    early_stopping_rounds: int | None
    memory_limit: MemoryLimit
    keep_on_interrupt: bool
    verbose: int

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
        callbacks: Callbacks | None = None,
    ) -> Self:
        """Choose C, and gamma if the kernel has one, and learn the scoring function.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features), or Preferences
            Features, or a precomputed kernel matrix; for `RankSVMCV` also RankingData or a path, as in
            `RankSVM.fit`.
        y : array-like of shape (n_samples,)
            Labels.
        qid, group : array-like (or for qid str), optional
            Queries, as in `RankSVM.fit`.
        sample_weight, query_weight, propensity : array-like of shape (n_samples,), optional
            Weights, as in `RankSVM.fit`. In the score of a fold a query is weighted by the mean sample weight of its
            rows.
        pairs, pair_weight : array-like, optional
            Explicit preferences instead of ``y``, as in `RankSVM.fit`. Folds divide the pairs: the pairs of one query
            (of one prompt, with `Preferences`) stay together; if all rows belong to one query, pairs that share rows,
            directly or through other pairs, stay together. A splitter is given the pairs as its rows. The score of a
            fold is the pairwise accuracy, weighted by ``pair_weight``, instead of the default ``metric``. The features
            are not copied.
        event : array-like of bool, shape (n_samples,), optional
            Which of the times in ``y`` are observed, as in `RankSVM.fit`: a HIGHER SCORE MEANS A LONGER TIME. The score
            is the concordance index; folds divide the queries (strata), or, if there is only one, the rows.
        eval_set : list or tuple of tuples (X, y), or one such tuple, optional
            Validation data, as in LightGBM and XGBoost. The choice is made on the first set; on others the metric
            is only recorded (``evals_result_``). An item may also be ``(X, pairs)`` or `Preferences`, for the pairwise
            accuracy, or ``(X, time, event)``, for the concordance index.
        eval_X, eval_y : array-like, or tuples of array-likes, optional
            Instead of ``eval_set``: the features and the labels of one set, or of several, as in LightGBM 4.7.
        eval_qid, eval_group : list of array-like, or one for a single set, optional
            Queries of each set, as ``qid`` or ``group``. If ``qid`` named a column, the same column of the sets is
            used.
        eval_names, eval_sample_weight, eval_at : optional
            As in `RankSVM.fit`.
        eval_metric : str, Metric, or list of either, optional
            What to evaluate on the sets besides ``metric``, which comes first and decides.
        callbacks : list of callable, optional
            Functions called after each solution evaluated on an ``eval_set``, as in `FactorizedRankSVM.fit`. No further
            solutions are computed after a function returns True.

        Returns
        -------
        estimator
            The fitted estimator.

        Raises
        ------
        NoComparablePairsError
            When no query (of a training part) has two documents with different labels.
        DataError
            When the data are not finite numbers, or lengths differ.
        OptionError
            When a hyper-parameter has an invalid value.

        Warns
        -----
        ConvergenceWarning
            When the relative duality gap of a solution does not meet ``tol``.
        UninformativeWarning, OneQueryWarning, ScaleWarning, LikelyMistakeWarning
            As in `RankSVM.fit`; LikelyMistakeWarning also when every model tried has the score 0.
        """
        eval_set = joined_sets(eval_set, eval_X, eval_y)
        metric, convention = parse_metric(self.metric), convention_named(self.convention)
        checks.check(rule=checks.one_of(self.rule, RULES))
        patience, called = checked_patience(self.early_stopping_rounds, eval_set), checked_callbacks(callbacks)
        if called and eval_set is None:
            raise OptionError("callbacks follow the solutions along C on validation data: give eval_set=[(X, y)].")
        options = self._options()
        with all_or_nothing(self, self.verbose, iterations_from=2):
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
            training = read_training_data(self, self._resolved(training))
            self.censored_ = event is not None
            Cs = self._tried_cs()
            data = self._training_set(training, options)
            settings = self._settings(data)
            sets = read_evaluation_sets(
                self,
                EvalArguments(eval_set, eval_qid, eval_group, eval_names, eval_sample_weight, eval_metric, eval_at),
                training.X,
                data.n_queries,
                deciding=metric,
                convention=convention,
            )
            if sets:
                metric = sets.metrics[0]
                rounds = EvaluationRounds(self, sets, called, len(settings) * len(Cs), patience)
                chosen = self._choose_on_validation(data, options, settings, Cs, metric, rounds)
            else:
                if training.pairs is not None:
                    metric = only_metric("pairs", ACCURACY, metric)
                elif event is not None:
                    metric = only_metric("censored times", CONCORDANCE, metric)
                (metric,) = on_scale([metric], partial(_highest_label, data))
                folds = self._folds(data, training, options)
                chosen = self._choose_by_folds(data, options, settings, Cs, metric, convention, folds)
            self._assign_outcome(chosen.outcome)
            self._assign_choice(chosen.choice)
            self._assign_solution(chosen.problem, chosen.w)
            self.evals_result_ = chosen.evals_result
            self.fitted_params_ = self._params_now() | {"metric": metric.name}
        return self

    def _assign_choice(self, choice: Choice) -> None:
        """Set the attributes that describe what was tried and chosen."""
        self.C_, self.Cs_ = choice.C, choice.Cs
        self.best_score_, self.best_iteration_ = choice.best_score, choice.best_iteration
        self._assign_scores(choice.settings, choice.scores, choice.means, choice.errors)

    def _tried_cs(self) -> np.ndarray:
        """The values of C to try, ascending."""
        return np.sort(c_values(self._default_cs() if self.Cs is None else self.Cs))

    # ---- implemented by subclasses

    def _default_cs(self) -> ArrayLike | None:
        """The values of C to try if the user gives none; None: the default values of `c_values`."""
        return None

    def _resolved(self, training: TrainingArguments) -> TrainingArguments:
        """The arguments of ``fit``, with a path or RankingData replaced by its data, if the estimator accepts these."""
        return training

    def _options(self) -> FitOptions:
        """The validated hyper-parameters."""
        raise NotImplementedError

    def _training_set(self, training: TrainingArguments, options: FitOptions) -> TrainingSet:
        """The training set made from the arrays of all data."""
        raise NotImplementedError

    def _training_part(self, data: Any, training: TrainingArguments, options: FitOptions) -> TrainingSet:
        """The training set made from the arrays of a fold of ``data``."""
        return self._training_set(training, options)

    def _part_of_file(self, data: Any, part: Any, options: FitOptions) -> Any:
        """The training set made from some queries of a file; ``data`` is the training set of the whole file."""
        return part

    def _settings(self, data: TrainingSet) -> list[Any]:
        """The settings to try, the most regularized first."""
        raise NotImplementedError

    def _problem(self, data: TrainingSet, options: FitOptions, setting: Any, n_fits: int = 1) -> RankSVMProblem:
        """The problem of a setting, for ``n_fits`` values of C."""
        raise NotImplementedError

    def _features_of(self, X: Validated, rows: np.ndarray, training_rows: np.ndarray) -> Validated:
        """Rows of X in the form expected by a model fitted to ``training_rows``."""
        return X[rows]

    def _assign_solution(self, problem: Any, w: np.ndarray) -> None:
        """Set the attributes of the scoring function, from the variables of a solution."""
        raise NotImplementedError

    def _assign_scores(self, settings: list[Any], scores: np.ndarray, means: np.ndarray, errors: np.ndarray) -> None:
        """Set the attributes with the settings tried and their scores: see `Choice`."""
        raise NotImplementedError

    # ---- the choice

    def _choose_on_validation(
        self,
        data: TrainingSet,
        options: FitOptions,
        settings: list[Any],
        Cs: np.ndarray,
        metric: Metric,
        rounds: EvaluationRounds,
    ) -> "ChosenSolution":
        tried: list[tuple[RankSVMProblem, list[SolverResult]]] = []
        found: list[list[SetEvaluations]] = []
        steps = Steps(len(settings) * len(Cs))
        with interruptible_if(self.keep_on_interrupt) as interrupted:
            for setting in settings:
                problem = self._problem(data, options, setting, len(Cs))
                where = "validation data"
                results, evaluations = self._solve_and_evaluate_path(
                    problem, Cs, rounds.sets, where, steps, rounds, interrupted
                )
                problem.release()
                tried.append((problem, results))
                found.append(evaluations)
                if rounds.ended or (interrupted is not None and interrupted.is_set()):
                    break
        if interrupted is not None and interrupted.is_set():
            _leave_out_interrupted(tried, found)
        first_sets = [[parts[:1] for parts in evaluations] for evaluations in found]
        choice = self._choose(settings[: len(found)], Cs, metric, first_sets)
        problem, results = tried[choice.setting_number]
        result = results[choice.C_number]
        outcome = outcome_of_choice(problem, result, interrupted)
        of_sets = rounds.sets.evals_result([parts for evaluations in found for parts in evaluations])
        return ChosenSolution(choice, problem, result.w, outcome, of_sets)

    def _choose_by_folds(
        self,
        data: TrainingSet,
        options: FitOptions,
        settings: list[Any],
        Cs: np.ndarray,
        metric: Metric,
        convention: Convention,
        folds: list[FoldFactory],
    ) -> "ChosenSolution":
        found: list[list[list[Evaluation]]] = [[[] for _ in Cs] for _ in settings]
        steps = Steps(len(settings) * len(Cs) * len(folds))
        for number, make_fold in enumerate(folds):
            with naming_fold(number):
                fold, held_out = make_fold()
            name = f"fold {number + 1}"
            for place, setting in enumerate(settings):
                with naming_fold(number):  # for data in a file, the pairs are found only here
                    problem = self._problem(fold, options, setting, len(Cs))
                where = f"{name} of {len(folds)}"
                if isinstance(held_out, FileRows):
                    evaluations = self._solve_and_evaluate_path_in_file(
                        problem, Cs, held_out, metric, convention, where, steps
                    )
                else:
                    test_set = EvaluationSets([name], [held_out], [metric], convention)
                    _, evaluations = self._solve_and_evaluate_path(problem, Cs, test_set, where, steps)
                    del test_set
                problem.release()
                del problem
                for parts, each in zip(found[place], evaluations, strict=True):
                    parts.extend(each)
            del fold, held_out  # before the rows of the next fold are copied
        choice = self._choose(settings, Cs, metric, found)
        problem = self._problem(data, options, settings[choice.setting_number])
        line = "chosen: %sC = %s, %s %.4f; fitting it to all data"
        logger.info(line, problem.label, power(choice.C), metric.name, choice.best_score)
        with interruptible_if(self.keep_on_interrupt) as interrupted:
            result = problem.solve(choice.C, interrupted=interrupted)
        return ChosenSolution(choice, problem, result.w, problem.outcome(result), {})

    def _folds(self, data: Any, training: TrainingArguments, options: FitOptions) -> list[FoldFactory]:
        """For each fold, a function that makes its training and test part."""
        if isinstance(training.X, FileData):
            return self._folds_of_file(data, options)
        if data.listed is not None:
            return self._folds_of_pairs(data, data.listed)
        return self._folds_of_queries(data, training, options)

    def _folds_of_file(self, data: Any, options: FitOptions) -> list[FoldFactory]:
        """As `_folds`, for data in a file; the rows stay there."""

        def parts(train: Any, test: HeldOutData) -> tuple[Any, HeldOutData]:
            return self._part_of_file(data, train, options), test

        return [partial(parts, *fold) for fold in file_folds(getattr(data, "file", data), self.cv)]

    def _folds_of_queries(
        self, data: TrainingSet, training: TrainingArguments, options: FitOptions
    ) -> list[FoldFactory]:
        """As `_folds`, with training and test parts that have copies of their rows."""
        X, y = data.X, data.labels
        assert y is not None
        grouping = Queries.of(training.qid, training.group, data.n_rows)
        numbers, weights = grouping.numbers(), training.weights()

        def divided(rows: np.ndarray) -> dict[str, Any]:
            known = {name: np.asarray(value) for name, value in weights.items() if value is not None}
            return weights | {name: np.broadcast_to(value, len(y))[rows] for name, value in known.items()}

        def parts(train: np.ndarray, test: np.ndarray) -> tuple[TrainingSet, HeldOutData]:
            part = self._features_of(X, train, train)
            largest = None if self._takes_missing else validation.largest_values(part, options.n_threads)
            arguments = TrainingArguments(part, y[train], qid=numbers[train], largest=largest, **divided(train))
            X_test, test_weights = self._features_of(X, test, train), divided(test)
            held_out = EvaluationSet(
                X_test, y[test], numbers[test], test_weights["sample_weight"], test_weights["event"]
            )
            return self._training_part(data, arguments, options), held_out

        divided_by = grouping if weights["event"] is None else strata_or_rows(grouping)
        return [partial(parts, *split) for split in query_splits(self.cv, X, y, divided_by)]

    def _folds_of_pairs(self, data: TrainingSet, listed: ListedPairs) -> list[FoldFactory]:
        """As `_folds`, for listed pairs; training and test parts do not copy their rows."""
        blocks = [data.X.first, data.X.second] if isinstance(data.X, TwoBlocks) else [data.X]
        groups = listed.groups()

        def parts(train: np.ndarray, test: np.ndarray) -> tuple[TrainingSet, HeldOutData]:
            held_out = PairEvaluationSet(blocks, listed.rows[test], groups[test], listed.weight[test])
            return replace(data, pairs=listed.taken(train)), held_out

        splits = query_splits(self.cv, listed.rows, None, Queries.from_qid(groups))
        return [partial(parts, *split) for split in splits]

    def _solve_and_evaluate_path(
        self,
        problem: RankSVMProblem,
        Cs: np.ndarray,
        sets: EvaluationSets,
        where: str,
        steps: Steps,
        rounds: EvaluationRounds | None = None,
        interrupted: threading.Event | None = None,
    ) -> tuple[list[SolverResult], list[SetEvaluations]]:
        """Solve a problem for ascending C, until ``rounds`` says to stop, and evaluate each solution on every set."""
        name = sets.metrics[0].name
        results: list[SolverResult] = []
        evaluations: list[SetEvaluations] = []
        for C, result in solve_along(problem, Cs, interrupted):
            results.append(result)
            evaluations.append(sets.evaluate(partial(problem.scores, result.w)))
            values = [parts[0].means[name] for parts in evaluations]
            line = "%sC = %s: %s %.4f on %s"
            logger.info(line, problem.label, power(C), name, values[-1], where, extra=steps.next())
            if rounds is not None and (rounds.called_back(evaluations[-1]) or rounds.exhausted(values)):
                break
        return results, evaluations

    def _solve_and_evaluate_path_in_file(
        self,
        problem: RankSVMProblem,
        Cs: np.ndarray,
        held_out: FileRows,
        metric: Metric,
        convention: Convention,
        where: str,
        steps: Steps,
    ) -> list[SetEvaluations]:
        """Solve a problem for ascending C, and evaluate all solutions on rows of a file, in one pass over the file."""
        models = [partial(problem.scores, result.w) for _, result in solve_along(problem, Cs)]
        evaluations = evaluated_in_file(
            held_out, models, metric, convention, self.memory_limit, effective_n_jobs(self.n_jobs)
        )
        for C, evaluation in zip(Cs, evaluations, strict=True):
            value = evaluation.means[metric.name]
            line = "%sC = %s: %s %.4f on %s"
            logger.info(line, problem.label, power(C), metric.name, value, where, extra=steps.next())
        return [[evaluation] for evaluation in evaluations]

    def _choose(
        self, settings: list[Any], Cs: np.ndarray, metric: Metric, found: Sequence[Sequence[SetEvaluations]]
    ) -> Choice:
        """Choose a setting and a value of C by the scores of all combinations on the test parts."""
        name = metric.name
        Cs = Cs[: max(map(len, found))]
        n_parts = len(found[0][0])
        scores = np.full((len(found), len(Cs), n_parts), np.nan)
        for row, evaluations in zip(scores, found, strict=True):
            row[: len(evaluations)] = [[part.means[name] for part in parts] for parts in evaluations]
        means, errors = (
            each.reshape(scores.shape[:2]) for each in mean_and_standard_error(scores.reshape(-1, n_parts))
        )
        if n_parts == 1:
            for row, evaluations in zip(errors, found, strict=True):
                row[: len(evaluations)] = [
                    standard_error_over_queries(part.per_query[name], part.weights[name]) for (part,) in evaluations
                ]
        return self._choose_by_scores(settings, Cs, metric, [len(each) for each in found], scores, means, errors)

    def _choose_by_scores(
        self,
        settings: list[Any],
        Cs: np.ndarray,
        metric: Metric,
        n_tried: list[int],
        scores: np.ndarray,
        means: np.ndarray,
        errors: np.ndarray,
    ) -> Choice:
        """Choose by the scores of each setting and C; scores after the first ``n_tried`` values of C are NaN."""
        if np.isnan(means).all():
            raise OptionError(f"{self.metric!r} is not defined for any query of the validation data.")
        if metric not in (ACCURACY, CONCORDANCE) and not np.nan_to_num(means).any():
            warnings.warn(
                "every model tried has the score 0, so the scores decide nothing: are all labels 0 or negative? Most "
                "metrics count only labels above 0 as relevant. Add a number to the labels such that the lowest is 0, "
                "or choose by metric='pairwise_accuracy' (--metric at the command line).",
                LikelyMistakeWarning,
                stacklevel=checks.level_of_caller(),
            )
        # the scores are ordered by C, then by setting, so that the most regularized models come first
        C_number, setting_number = divmod(choose(means.T.ravel(), errors.T.ravel(), self.rule), len(means))
        return Choice(
            setting_number,
            C_number,
            best_iteration=sum(n_tried[:setting_number]) + C_number + 1,
            C=float(Cs[C_number]),
            best_score=float(means[setting_number, C_number]),
            Cs=Cs,
            settings=settings,
            scores=scores,
            means=means,
            errors=errors,
        )

    def _params_now(self) -> dict[str, Any]:
        return super()._params_now() | {"C": self.C_, "metric": parse_metric(self.metric).name}


def _highest_label(data: Any) -> float:
    """The highest label of a training set in memory or in a file."""
    if isinstance(data, TrainingSet):
        assert data.labels is not None
        return float(data.labels.max())
    rows: FileRows = getattr(data, "file", data).rows
    return rows.highest_label()


def _leave_out_interrupted(
    tried: list[tuple[RankSVMProblem, list[SolverResult]]], found: list[list[SetEvaluations]]
) -> None:
    """Remove the solutions that an interrupt has cut short, and their scores, unless there are no others."""
    results, evaluations = tried[-1][1], found[-1]
    cut_short = (place for place, result in enumerate(results) if result.status is Status.INTERRUPTED)
    n_finished = next(cut_short, len(results))
    if not n_finished and len(tried) == 1:
        return
    del results[n_finished:], evaluations[n_finished:]
    if not n_finished:
        del tried[-1], found[-1]
