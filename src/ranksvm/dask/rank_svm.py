"""DaskRankSVM and DaskRankSVMCV: RankSVM on a Dask cluster, with a given C or one chosen by a metric."""

import threading
import warnings
from contextlib import closing
from typing import ClassVar

import numpy as np
from distributed import Future
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning

from ranksvm._util.threads import effective_n_jobs
from ranksvm._util.types import MemoryLimit, PathLike, Splits
from ranksvm.dask.backend import DaskBackend
from ranksvm.dask.checkpoint import CheckpointedTerm, read_checkpoint
from ranksvm.dask.choosing_ranker import Choosing, DaskChoosingRanker, Solved
from ranksvm.dask.cluster import Cluster
from ranksvm.dask.evaluation import HeldOut
from ranksvm.dask.inputs import InputParts
from ranksvm.dask.listed_pairs import part_of_pairs
from ranksvm.dask.preparation import Prepared, on_workers, refuse_no_pairs
from ranksvm.dask.rows import Rows, hashes_of
from ranksvm.dask.single import DaskSingleRanker
from ranksvm.estimators.base.arguments import Monotone
from ranksvm.estimators.base.choosing_ranker import naming_fold, outcome_of_choice
from ranksvm.estimators.path import c_values
from ranksvm.estimators.rank_svm import RankSVM
from ranksvm.estimators.rank_svm_cv import RankSVMCV
from ranksvm.fits.options import LinearOptions, loss_of
from ranksvm.fits.partitioned import PartitionedProblem
from ranksvm.fits.problem import interruptible_if
from ranksvm.losses.margin_function import MarginFunction
from ranksvm.metrics import Convention, Metric
from ranksvm.model_selection.cross_validation import mean_and_standard_error
from ranksvm.solvers import SolverResult, Status
from ranksvm.terms.parts.part import Part
from ranksvm.terms.parts.term import PartitionedTerm

__all__ = ["DaskRankSVM", "DaskRankSVMCV"]


class DaskRankSVM(DaskSingleRanker):
    """`RankSVM` for data on a Dask cluster, similar to ``xgboost.dask.DaskXGBRanker``.

    The objective, the solvers and the certificate (the duality gap, which bounds the error) are those of `RankSVM`. In
    each round, a part of the data sends only sums, which have ``n_features`` numbers; a sample of the rows is fetched
    once. A fit is reproducible bit by bit if the data have the same parts, even if a worker is killed, leaves, restarts
    or is added.

    Parameters
    ----------
    C, loss, huber_width, pair_selection, pair_weighting, monotone, stopping, tol, max_iter,
    keep_on_interrupt : optional
        As in `RankSVM`.
    solver : {"auto", "newton", "tron", "dual"}, default "auto"
        As in `RankSVM`. "dual" needs all rows in one process: this process gathers them, within ``memory_limit``, and
        logs this. "auto" leaves them on the workers.
    warm_start : bool, default False
        Start from the ``coef_`` of the last fit.
    device : str, default "cpu"
        Where workers compute: "cpu"; "cuda" or "cuda:1", a GPU of each worker (``pip install "ranksvm[cuda]"`` on it);
        or "auto", which chooses for each part as in `RankSVM`, and needs `ranksvm.calibrate_device` on the workers.
        For several GPUs start a worker for each, with its own ``CUDA_VISIBLE_DEVICES``, instead of giving a list. If
        only some workers have the GPU, the others use their CPU, after a warning; if none has it, `fit` raises
        DeviceError. Work on the sample stays on the CPU of this process. GPUs of workers have never been tested.
    memory_limit : int, str or None, default None
        Memory that rows gathered for ``solver="dual"`` may take in this process: bytes, or text such as "4GB"; None:
        half of the free memory. Not allowed with other solvers: workers have their own limits, beyond which Dask
        writes parts to disk.
    n_jobs : int or None, default None
        Number of threads in this process, for work on the sample. Workers use the threads that they have.
    verbose : int, default 0
        As in `RankSVM`.
    n_partitions : int or None, default None
        The parts of the data are merged into at most this many; None: the number of threads of the workers when the fit
        begins, because each part is a task in every round. Give a number to get the same bits on clusters of different
        sizes.
    checkpoint : path-like or None, default None
        A file that this process writes during a fit, with the best weights so far. If the file exists, a fit begins
        with its weights.
    timeout : float, default 60.0
        Seconds after which a fit ends with `ClusterError` if the scheduler does not answer, or there is no worker.

    Attributes
    ----------
    coef_, monotone_, objective_, duality_gap_, converged_, status_, n_iter_, solver_, width_, pair_alpha_, history_,
    n_pairs_, n_queries_, n_features_in_, feature_names_in_, frame_type_, evals_result_, fitted_params_, qid_column_,
    censored_, device_
        As in `RankSVM`.
    n_rounds_ : int
        Number of rounds, 0 for solver "dual". A round is one task for every part, whose results are added up.

    See Also
    --------
    ranksvm.RankSVM : The same model in one process; `to_local` converts to it.
    DaskRankSVMCV : Chooses C.

    Notes
    -----
    Rows of one query may be in several parts: they move to the part that has most of them. If more than a quarter of
    all rows would move, all rows are shuffled by query instead.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from ranksvm import make_ranking
    >>> from ranksvm.dask import DaskRankSVM
    >>> data = make_ranking(n_queries=50, n_docs=20, n_features=10, random_state=0)
    >>> X, y, qid = (da.from_array(values, chunks=(250, *values.shape[1:])) for values in (data.X, data.y, data.qid))
    >>> with Client(processes=False, dashboard_address=":0") as client:
    ...     ranker = DaskRankSVM(C=0.01).fit(X, y, qid=qid)
    ...     scores = ranker.predict(X).compute()
    >>> scores.shape
    (1000,)
    """

    _local: ClassVar[type[RankSVM]] = RankSVM

    def __init__(
        self,
        C: float = 1.0,
        *,
        loss: str | MarginFunction = "squared_hinge",
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
        device: str = "cpu",
        memory_limit: MemoryLimit = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        n_partitions: int | None = None,
        checkpoint: PathLike | None = None,
        timeout: float = 60.0,
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
        self.n_partitions = n_partitions
        self.checkpoint = checkpoint
        self.timeout = timeout

    def _fitted_to_parts(
        self,
        cluster: Cluster,
        inputs: InputParts,
        prepared: Prepared,
        options: LinearOptions,
        held_out: list[HeldOut],
        metrics: list[Metric],
    ) -> tuple[RankSVM, int]:
        term = self._term(cluster, inputs, prepared, self.checkpoint)
        n_queries = prepared.n_queries
        prepared.rows.clear()  # the parts have the rows now
        try:
            problem = self._problem(term, options)
            with interruptible_if(self.keep_on_interrupt) as interrupted:
                result = self._solve(problem, interrupted)
        finally:
            term.close()
        model = self._new_local()
        model.coef_, model.monotone_ = np.array(result.w), problem.signs
        model._assign_outcome(problem.outcome(result))
        model.n_queries_ = n_queries
        model.fitted_params_ = model._params_now()
        return model, term.n_reductions

    def _solve(self, problem: PartitionedProblem, interrupted: threading.Event | None) -> SolverResult:
        """The solution, starting from the checkpoint of an earlier fit if there is one."""
        term = problem.objective.term
        if isinstance(term, CheckpointedTerm):
            assert self.checkpoint is not None
            term.checkpoint, term.C = self.checkpoint, self.C
            at = read_checkpoint(self.checkpoint, term.n_variables)
            if at is not None:
                problem.objective.reweight(self.C)
                problem.objective.width = problem.loss.warm_width if at.width is None else at.width
                point = problem.objective.evaluate(at.w)
                return problem.solve(self.C, interrupted=interrupted, point=point)
        start = problem.start_from(self.coef_, None) if self.warm_start and hasattr(self, "coef_") else None
        return problem.solve(self.C, start, interrupted)


class DaskRankSVMCV(DaskChoosingRanker):
    """`DaskRankSVM` with C chosen on validation data or by query folds, as `RankSVMCV` chooses it.

    The fits for all values of C run at the same time and share every round, which is one task for each part of the
    data. So all fits together take about as many rounds as the longest one.

    Parameters
    ----------
    Cs, metric, cv, convention, rule, loss, huber_width, pair_selection, pair_weighting, monotone, tol, max_iter,
    keep_on_interrupt : optional
        As in `RankSVMCV`. A splitter ``cv`` receives one row for each query, in the order in which queries first
        appear; with listed pairs, one row for each pair.
    early_stopping_rounds : int or None, default None
        As in `RankSVMCV`: larger values of C are not considered after this many without a better score. It saves no
        time here, because all values are solved together.
    solver, device, memory_limit, n_jobs, verbose, n_partitions, timeout : optional
        As in `DaskRankSVM`; for ``solver="dual"`` sets of ``eval_set`` are also gathered.

    Attributes
    ----------
    C_, best_score_, best_iteration_, mean_scores_, standard_errors_, Cs_, scores_, evals_result_
        As in `RankSVMCV`.
    coef_, monotone_, objective_, duality_gap_, converged_, status_, n_iter_, solver_, width_, pair_alpha_, history_,
    n_pairs_, n_queries_, n_features_in_, feature_names_in_, frame_type_, fitted_params_, qid_column_, censored_,
    device_
        As in `RankSVM`, for the chosen C.

    See Also
    --------
    ranksvm.RankSVMCV : The same model in one process; `to_local` converts to it.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from ranksvm import make_ranking
    >>> from ranksvm.dask import DaskRankSVMCV
    >>> data = make_ranking(n_queries=60, n_docs=20, n_features=10, random_state=0)
    >>> X, y, qid = (da.from_array(values, chunks=(300, *values.shape[1:])) for values in (data.X, data.y, data.qid))
    >>> with Client(processes=False, dashboard_address=":0") as client:
    ...     ranker = DaskRankSVMCV(Cs=[1e-4, 1e-2, 1.0], metric="ndcg@5", cv=3).fit(X, y, qid=qid)
    >>> ranker.scores_.shape
    (3, 3)
    """

    _local: ClassVar[type[RankSVMCV]] = RankSVMCV

    def __init__(
        self,
        Cs: ArrayLike | None = None,
        *,
        metric: str | Metric = "ndcg@10",
        cv: Splits = 5,
        convention: str | Convention = "default",
        rule: str = "best",
        early_stopping_rounds: int | None = None,
        loss: str | MarginFunction = "squared_hinge",
        huber_width: float = 1.0,
        pair_selection: str = "all",
        pair_weighting: str = "uniform",
        monotone: Monotone | None = None,
        solver: str = "auto",
        tol: float = 1e-4,
        max_iter: int = 1000,
        keep_on_interrupt: bool = False,
        device: str = "cpu",
        memory_limit: MemoryLimit = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        n_partitions: int | None = None,
        timeout: float = 60.0,
    ):
        self.Cs = Cs
        self.metric = metric
        self.cv = cv
        self.convention = convention
        self.rule = rule
        self.early_stopping_rounds = early_stopping_rounds
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
        self.n_partitions = n_partitions
        self.timeout = timeout

    def _chosen(self, choosing: Choosing, inputs: InputParts, options: LinearOptions) -> tuple[RankSVMCV, list[Solved]]:
        Cs = np.sort(c_values(self.Cs))
        model: RankSVMCV = self._new_local()
        term = self._term(choosing.cluster, inputs, choosing.prepared)
        problem, solved = self._problem(term, options), []
        with closing(term):
            if choosing.held_out:
                with interruptible_if(self.keep_on_interrupt) as interrupted:
                    solutions = self._solve(term, options, Cs, interrupted)
                solved.append(choosing.on_sets([solution.w for solution in solutions]))
                means, errors, _ = solved[0]
                scores, Cs = means[:, np.newaxis], Cs[: len(means)]
            else:
                columns = []
                for number, (train, test) in enumerate(self._splits(choosing)):
                    fold = self._fold_term(choosing.cluster, choosing.prepared, term, train)
                    with naming_fold(number):
                        refuse_no_pairs(fold)
                    coefs = [solution.w for solution in self._solve(fold, options, Cs, None)]
                    columns.append(choosing.on_fold(coefs, test))
                scores = np.array(columns).T
                means, errors = mean_and_standard_error(scores)
            choice_scores = [each[np.newaxis] for each in (scores, means, errors)]
            choice = model._choose_by_scores([None], Cs, choosing.metrics[0], [len(Cs)], *choice_scores)
            if choosing.held_out:
                result = solutions[choice.C_number]
            else:
                with interruptible_if(self.keep_on_interrupt) as interrupted:
                    result = problem.solve(choice.C, interrupted=interrupted)
        model._assign_solution(problem, result.w)
        model._assign_outcome(outcome_of_choice(problem, result, interrupted))
        model._assign_choice(choice)
        return model, solved

    def _solve(
        self, term: PartitionedTerm, linear: LinearOptions, Cs: np.ndarray, interrupted: threading.Event | None
    ) -> list[SolverResult]:
        """The solutions for all C, in shared rounds."""
        solutions = self._problem(term, linear).solve_path(Cs, interrupted)
        for C, solution in zip(Cs, solutions, strict=True):
            if solution.status in (Status.MAX_ITERATIONS, Status.PRECISION):
                warnings.warn(f"C = {C:g}: {solution.status.value}", ConvergenceWarning, stacklevel=3)
        return solutions

    def _fold_term(
        self, cluster: Cluster, prepared: Prepared, term: PartitionedTerm, train: np.ndarray
    ) -> PartitionedTerm:
        """The loss of a fold, whose queries or pairs are ``train``; it shares X with ``term``, the loss of all rows."""
        backend = DaskBackend(cluster, device=self.device)
        backend.put(self._fold_parts(cluster, prepared, term, train))
        return PartitionedTerm(backend, loss_of(self.loss, self.huber_width), effective_n_jobs(self.n_jobs))

    def _fold_parts(
        self, cluster: Cluster, prepared: Prepared, term: PartitionedTerm, train: np.ndarray
    ) -> list[Future]:
        """The parts of a fold."""
        parts = term.backend.parts  # type: ignore[attr-defined]
        if prepared.listed is not None:
            arguments = on_workers(cluster, prepared.listed.taken(train)), self.pair_weighting, self.n_features_in_
            return cluster.mapped(part_of_pairs, prepared.rows, *arguments, True)
        scale = 1.0
        if self.pair_weighting == "gain_gap":  # gains are relative to the largest label of the training part
            largest = cluster.results(cluster.mapped(_largest, prepared.rows, train))
            scale = 2.0 ** (prepared.largest_label - max(largest))
        return cluster.mapped(_fold_part, parts, train, scale, second_arguments=prepared.rows)


def _largest(rows: Rows, train: np.ndarray) -> float:
    return rows.of_queries(train).report().largest_label


def _fold_part(part: Part, rows: Rows, train: np.ndarray, scale: float) -> Part:
    """A new part with only the pairs of the queries in ``train``; it shares X with ``part``."""
    chosen = np.isin(hashes_of(rows.queries.ids), train)
    pairs = part.pairs.of_queries(np.flatnonzero(chosen))
    if scale != 1.0 and pairs.gain is not None:
        arrays = pairs.pointers, pairs.rows, pairs.levels, pairs.n_levels, pairs.preferred, pairs.other
        pairs = type(pairs)(*arrays, pairs.gain * scale, pairs.adjacent, pairs.direct_limit)
    return Part(part.X, pairs)
