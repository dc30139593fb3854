"""DaskAdditiveRankSVM, and DaskAdditiveRankSVMCV, which chooses its hyper-parameters: on a Dask cluster."""

import threading
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ranksvm._util.checks import is_integer
from ranksvm._util.threads import effective_n_jobs
from ranksvm._util.types import Splits
from ranksvm.additive import AdditiveFunction
from ranksvm.dask.additive_rows import AdditiveRows, describing, levels_on_cluster
from ranksvm.dask.choosing_ranker import Choosing, DaskChoosingRanker, Solved
from ranksvm.dask.cluster import Cluster
from ranksvm.dask.evaluation import HeldOut
from ranksvm.dask.inputs import InputParts
from ranksvm.dask.preparation import DescribeRows, Prepared, prepared_rows
from ranksvm.dask.rows import Rows
from ranksvm.dask.single import DaskSingleRanker
from ranksvm.estimators.additive_rank_svm import AdditiveRankSVM
from ranksvm.estimators.additive_rank_svm_cv import AdditiveRankSVMCV, Setting
from ranksvm.estimators.base.arguments import Interactions, Monotone
from ranksvm.estimators.base.choosing_ranker import Choice, naming_fold, outcome_of_choice
from ranksvm.estimators.base.ranker import additive_options
from ranksvm.estimators.path import solve_along
from ranksvm.exceptions import OptionError
from ranksvm.fits.additive import additive_problem
from ranksvm.fits.additive_levels import AdditiveLevels
from ranksvm.fits.additive_options import AdditiveOptions
from ranksvm.fits.additive_partitioned import PartitionedAdditiveProblem
from ranksvm.fits.interactions import solve_with_interactions
from ranksvm.fits.options import LinearOptions
from ranksvm.fits.problem import interruptible_if
from ranksvm.losses.margin_function import MarginFunction
from ranksvm.metrics import Convention, Metric
from ranksvm.model_selection.cross_validation import mean_and_standard_error
from ranksvm.solvers import SolverResult

__all__ = ["DaskAdditiveRankSVM", "DaskAdditiveRankSVMCV"]


class DaskAdditiveRankSVM(DaskSingleRanker):
    """`AdditiveRankSVM` for data on a Dask cluster.

    For the same rows, the levels (bins or categories) of the features, the objective and the duality gap that bounds
    its error are computed as in `AdditiveRankSVM`. Each part of the data stores one byte for each value. In each round,
    it sends only sums, with one number for each variable of the model. A sample of up to 200,000 rows is fetched once:
    its Hessian approximates the Hessian of all rows, so that few rounds suffice. A fit is reproducible bit by bit if
    the data have the same parts, as with `DaskRankSVM`.

    Parameters
    ----------
    C, step_weight, linear, max_bins, interactions, interaction_bins, categorical, loss, huber_width, pair_selection,
    pair_weighting, monotone, solver, tol, max_iter, keep_on_interrupt : optional
        As in `AdditiveRankSVM`, but categories must be numbers, not text. ``interactions="auto"`` chooses their number
        by the first ``eval_set``.
    warm_start : bool, default False
        Start from the last fit, if it has the same levels and no interactions.
    n_jobs : int or None, default None
        Number of threads in this process, for work on the sample. Workers use the threads that they have.
    verbose : int, default 0
        As in `AdditiveRankSVM`.
    n_partitions, timeout : optional
        As in `DaskRankSVM`.

    Attributes
    ----------
    linear_coef_, fill_, cuts_, n_cuts_, categories_, has_missing_, is_categorical_, shape_values_, interactions_,
    interaction_cuts_, n_interaction_cuts_, interaction_values_, candidate_bounds_, interaction_bounds_, monotone_,
    ranges_, level_means_, level_shares_, cell_shares_, edited_, objective_, duality_gap_, converged_, status_, n_iter_,
    solver_, width_, pair_alpha_, history_, n_pairs_, n_queries_, n_features_in_, feature_names_in_, frame_type_,
    evals_result_, fitted_params_, qid_column_, censored_, device_
        As in `AdditiveRankSVM`.
    n_rounds_ : int
        Number of rounds. A round is one task for every part, whose results are added up.

    See Also
    --------
    ranksvm.AdditiveRankSVM : The same model in one process; `to_local` converts to it, for shapes, tables and exports.
    DaskRankSVM : The linear model.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from ranksvm import make_ranking
    >>> from ranksvm.dask import DaskAdditiveRankSVM
    >>> data = make_ranking(n_queries=50, n_docs=20, n_features=10, random_state=0)
    >>> X, y, qid = (da.from_array(values, chunks=(250, *values.shape[1:])) for values in (data.X, data.y, data.qid))
    >>> with Client(processes=False, dashboard_address=":0") as client:
    ...     ranker = DaskAdditiveRankSVM(C=0.01).fit(X, y, qid=qid)
    >>> len(ranker.to_local().shapes())
    10
    """

    _local: ClassVar[type[AdditiveRankSVM]] = AdditiveRankSVM
    # attributes that every estimator on Dask has
    device = "cpu"
    memory_limit = None

    def __init__(
        self,
        C: float = 1.0,
        *,
        step_weight: float = 1.0,
        linear: bool = True,
        max_bins: int = 32,
        interactions: int | ArrayLike = 0,
        interaction_bins: int = 8,
        categorical: Sequence[str | int] | np.ndarray | None = None,
        loss: str | MarginFunction = "squared_hinge",
        huber_width: float = 1.0,
        pair_selection: str = "all",
        pair_weighting: str = "uniform",
        monotone: Monotone | None = None,
        solver: str = "auto",
        tol: float = 1e-4,
        max_iter: int = 1000,
        warm_start: bool = False,
        keep_on_interrupt: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
        n_partitions: int | None = None,
        timeout: float = 60.0,
    ):
        self.C = C
        self.step_weight = step_weight
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
        self.warm_start = warm_start
        self.keep_on_interrupt = keep_on_interrupt
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.n_partitions = n_partitions
        self.timeout = timeout

    def _options(self) -> AdditiveOptions:
        return additive_options(self)

    def _prepared(self, cluster: Cluster, inputs: InputParts, describe: DescribeRows | None = None) -> Prepared:
        return super()._prepared(cluster, inputs, describing(cluster, self._options()))

    def _fitted_to_parts(
        self,
        cluster: Cluster,
        inputs: InputParts,
        prepared: Prepared,
        options: LinearOptions,
        held_out: list[HeldOut],
        metrics: list[Metric],
    ) -> tuple[AdditiveRankSVM, int]:
        assert isinstance(options, AdditiveOptions)
        levels: AdditiveLevels = prepared.described
        if isinstance(self.interactions, str) and not held_out:
            raise OptionError("interactions='auto' chooses their number on validation data: give eval_set=[(X, y)].")
        n_queries = prepared.n_queries
        prepare_again = partial(prepared_rows, cluster, inputs, prepared.n_partitions)
        rows = AdditiveRows(cluster, prepared, levels, options, effective_n_jobs(self.n_jobs), prepare_again)
        prepared.rows.clear()  # the parts have the rows now

        def value(function: AdditiveFunction) -> float:
            (found,) = held_out[0].evaluate(cluster, [function], metrics)
            return found[metrics[0].name].mean

        candidates = bounds = None
        try:
            problem = additive_problem(rows, options)
            assert isinstance(problem, PartitionedAdditiveProblem)
            start = None
            if self.warm_start and hasattr(self, "shape_values_"):
                start = problem.start_from(self.to_local()._function())
            with interruptible_if(self.keep_on_interrupt) as interrupted:
                if is_integer(self.interactions) and self.interactions == 0:
                    result = problem.solve(float(self.C), start, interrupted)
                else:
                    found = solve_with_interactions(problem, float(self.C), start, interrupted, value)
                    problem, result = found.problem, found.result
                    candidates, bounds = found.candidate_bounds, found.bounds
            function = problem.function(result.w)
        finally:
            rows.close()
        model = self._new_local()
        model._assign_function(function)
        model.categories_ = {}  # features that hold text are refused on a cluster
        model.candidate_bounds_, model.interaction_bounds_ = candidates, bounds
        model.monotone_ = levels.signs
        model._assign_outcome(problem.outcome(result))
        model.n_queries_ = n_queries
        model.fitted_params_ = model._params_now()
        return model, sum(term.n_reductions for term in rows.made)


class DaskAdditiveRankSVMCV(DaskChoosingRanker):
    """`DaskAdditiveRankSVM` with its hyper-parameters chosen as by `AdditiveRankSVMCV`.

    For each step weight and number of interactions, the fits for all values of C run at the same time and share every
    round. As in one process, the levels (bins) of the features are computed from the training part of each fold, but
    all data decide whether missing values have a level. If a training part has more than 65,536 rows, its quantiles
    come from a sample, which may differ from the sample in one process.

    Parameters
    ----------
    Cs, step_weights, metric, cv, convention, rule, linear, max_bins, interactions, interaction_bins, categorical, loss,
    huber_width, pair_selection, pair_weighting, monotone, solver, tol, max_iter, keep_on_interrupt : optional
        As in `AdditiveRankSVMCV`. A splitter ``cv`` receives one row for each query, as in `DaskRankSVMCV`.
    early_stopping_rounds : int or None, default None
        As in `AdditiveRankSVMCV`. It saves no time here, because all values of C are solved together.
    n_jobs, verbose, n_partitions, timeout : optional
        As in `DaskAdditiveRankSVM`.

    Attributes
    ----------
    C_, step_weight_, n_interactions_, step_weights_, interaction_counts_, scores_, mean_scores_, standard_errors_,
    best_score_, best_iteration_, Cs_, evals_result_
        As in `AdditiveRankSVMCV`.
    linear_coef_, fill_, cuts_, n_cuts_, categories_, has_missing_, is_categorical_, shape_values_, interactions_,
    interaction_cuts_, n_interaction_cuts_, interaction_values_, candidate_bounds_, interaction_bounds_, monotone_,
    ranges_, level_means_, level_shares_, cell_shares_, edited_, objective_, duality_gap_, converged_, status_, n_iter_,
    solver_, width_, pair_alpha_, history_, n_pairs_, n_queries_, n_features_in_, feature_names_in_, frame_type_,
    fitted_params_, qid_column_, censored_, device_
        As in `AdditiveRankSVM`, for the chosen model.

    See Also
    --------
    ranksvm.AdditiveRankSVMCV : The same model in one process; `to_local` converts to it.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from ranksvm import make_ranking
    >>> from ranksvm.dask import DaskAdditiveRankSVMCV
    >>> data = make_ranking(n_queries=60, n_docs=20, n_features=10, random_state=0)
    >>> X, y, qid = (da.from_array(values, chunks=(300, *values.shape[1:])) for values in (data.X, data.y, data.qid))
    >>> with Client(processes=False, dashboard_address=":0") as client:
    ...     ranker = DaskAdditiveRankSVMCV(Cs=[1e-3, 1e-2], cv=3).fit(X, y, qid=qid)
    >>> ranker.scores_.shape
    (3, 2, 3)
    """

    _local: ClassVar[type[AdditiveRankSVMCV]] = AdditiveRankSVMCV
    # attributes that every estimator on Dask has
    device = "cpu"
    memory_limit = None

    def __init__(
        self,
        Cs: ArrayLike | None = None,
        *,
        step_weights: Sequence[float] | None = None,
        metric: str | Metric = "ndcg@10",
        cv: Splits = 5,
        convention: str | Convention = "default",
        rule: str = "best",
        early_stopping_rounds: int | None = None,
        linear: bool = True,
        max_bins: int = 32,
        interactions: Interactions = 0,
        interaction_bins: int = 8,
        categorical: Sequence[str | int] | None = None,
        loss: str | MarginFunction = "squared_hinge",
        huber_width: float = 1.0,
        pair_selection: str = "all",
        pair_weighting: str = "uniform",
        monotone: Monotone | None = None,
        solver: str = "auto",
        tol: float = 1e-4,
        max_iter: int = 1000,
        keep_on_interrupt: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
        n_partitions: int | None = None,
        timeout: float = 60.0,
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
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.n_partitions = n_partitions
        self.timeout = timeout

    def _options(self) -> AdditiveOptions:
        options: AdditiveOptions = self._new_local()._options()
        return options

    def _prepared(self, cluster: Cluster, inputs: InputParts, describe: DescribeRows | None = None) -> Prepared:
        return super()._prepared(cluster, inputs, describing(cluster, self._options()))

    def _chosen(
        self, choosing: Choosing, inputs: InputParts, options: LinearOptions
    ) -> tuple[AdditiveRankSVMCV, list[Solved]]:
        assert isinstance(options, AdditiveOptions)
        model: AdditiveRankSVMCV = self._new_local()
        model.categories_ = {}  # features that hold text are refused on a cluster
        cluster, prepared = choosing.cluster, choosing.prepared
        prepare_again = partial(prepared_rows, cluster, inputs, prepared.n_partitions)
        rows = AdditiveRows(
            cluster, prepared, prepared.described, options, effective_n_jobs(self.n_jobs), prepare_again
        )
        settings, Cs = model._settings(rows), model._tried_cs()
        try:
            if choosing.held_out:
                prepared.rows.clear()  # the parts have the rows now
                with interruptible_if(self.keep_on_interrupt) as interrupted:
                    choice, problem, result, solved = self._on_sets(
                        choosing, model, rows, options, settings, interrupted
                    )
            else:
                choice = self._by_folds(choosing, model, options, settings, Cs)
                problem, solved = model._problem(rows, options, settings[choice.setting_number]), []
                with interruptible_if(self.keep_on_interrupt) as interrupted:
                    result = problem.solve(choice.C, interrupted=interrupted)
            model._assign_outcome(outcome_of_choice(problem, result, interrupted))
            model._assign_choice(choice)
            model._assign_solution(problem, result.w)
        finally:
            rows.close()
        return model, solved

    def _on_sets(
        self,
        choosing: Choosing,
        model: AdditiveRankSVMCV,
        rows: AdditiveRows,
        options: AdditiveOptions,
        settings: list[Setting],
        interrupted: threading.Event | None,
    ) -> tuple[Choice, Any, SolverResult, list[Solved]]:
        """Choose on the evaluation sets; return the choice, its problem and solution, and the scores of all of them."""
        Cs, solved = model._tried_cs(), []
        tried: list[tuple[Any, list[SolverResult]]] = []
        for setting in settings:
            problem = model._problem(rows, options, setting)
            results = [result for _, result in solve_along(problem, Cs, interrupted)]
            if interrupted is not None and interrupted.is_set() and tried:
                settings = settings[: len(tried)]  # the interrupted setting has no solutions to compare
                break
            tried.append((problem, results))
            solved.append(choosing.on_sets([problem.function(result.w) for result in results]))
        n_tried = [len(each.means) for each in solved]
        means, errors = np.full((2, len(solved), max(n_tried)), np.nan)
        for place, each in enumerate(solved):
            means[place, : n_tried[place]], errors[place, : n_tried[place]] = each.means, each.errors
        Cs = Cs[: max(n_tried)]
        metric = choosing.metrics[0]
        choice = model._choose_by_scores(settings, Cs, metric, n_tried, means[:, :, np.newaxis], means, errors)
        problem, results = tried[choice.setting_number]
        return choice, problem, results[choice.C_number], solved

    def _by_folds(
        self,
        choosing: Choosing,
        model: AdditiveRankSVMCV,
        options: AdditiveOptions,
        settings: list[Setting],
        Cs: np.ndarray,
    ) -> Choice:
        """Choose the hyper-parameters by cross-validation, with folds of the queries or of listed pairs."""
        columns = []
        for number, (train, test) in enumerate(self._splits(choosing)):
            with naming_fold(number):
                fold = self._fold(choosing, options, train)
            try:
                found = []
                for setting in settings:
                    with naming_fold(number):
                        problem = model._problem(fold, options, setting)
                    functions = [problem.function(result.w) for _, result in solve_along(problem, Cs)]
                    found.append(choosing.on_fold(functions, test))
            finally:
                fold.close()
            columns.append(found)
        scores = np.moveaxis(np.array(columns), 0, -1)
        means, errors = (
            each.reshape(scores.shape[:2]) for each in mean_and_standard_error(scores.reshape(-1, len(columns)))
        )
        n_tried = [len(Cs)] * len(settings)
        return model._choose_by_scores(settings, Cs, choosing.metrics[0], n_tried, scores, means, errors)

    def _fold(self, choosing: Choosing, options: AdditiveOptions, train: np.ndarray) -> AdditiveRows:
        """The training set of a fold: the queries or listed pairs in ``train``, with levels from their rows."""
        cluster, prepared = choosing.cluster, choosing.prepared
        if prepared.listed is not None:
            levels = replace(prepared.described, bounds={})
            part = replace(prepared, listed=prepared.listed.taken(train))
        else:
            rows, names = cluster.mapped(Rows.of_queries, prepared.rows, train), prepared.columns.names
            named = None if names is None else names.tolist()
            missing = prepared.described.missing
            levels = levels_on_cluster(cluster, rows, self.n_features_in_, options, named, missing)
            largest = max(cluster.results(cluster.mapped(_largest_label, rows)))
            part = replace(prepared, rows=rows, queries=train, largest_label=largest)
        return AdditiveRows(cluster, part, levels, options, effective_n_jobs(self.n_jobs))


def _largest_label(rows: Rows) -> float:
    return rows.report().largest_label
