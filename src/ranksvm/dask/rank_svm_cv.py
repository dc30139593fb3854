"""DaskRankSVMCV: RankSVM with C chosen by a metric, on a Dask cluster."""

import threading
import warnings
from contextlib import closing
from typing import ClassVar

import numpy as np
from distributed import Future
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning

from ranksvm._util.threads import effective_n_jobs
from ranksvm._util.types import MemoryLimit, Splits
from ranksvm.dask.backend import DaskBackend
from ranksvm.dask.choosing_ranker import Choosing, DaskChoosingRanker, Solved
from ranksvm.dask.cluster import Cluster
from ranksvm.dask.inputs import InputParts
from ranksvm.dask.listed_pairs import part_of_pairs
from ranksvm.dask.preparation import Prepared, on_workers
from ranksvm.dask.rows import Rows, hashes_of
from ranksvm.estimators.base.arguments import Monotone
from ranksvm.estimators.path import c_values
from ranksvm.estimators.rank_svm_cv import RankSVMCV
from ranksvm.exceptions import NoComparablePairsError
from ranksvm.fits.options import LinearOptions, loss_of
from ranksvm.fits.problem import interruptible_if
from ranksvm.losses.margin_function import MarginFunction
from ranksvm.metrics import Convention, Metric
from ranksvm.model_selection.choice import mean_and_standard_error
from ranksvm.solvers import SolverResult, Status
from ranksvm.terms.parts.part import Part
from ranksvm.terms.parts.term import PartitionedTerm

__all__ = ["DaskRankSVMCV"]


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
    coef_, monotone_, objective_, duality_gap_, converged_, status_, n_iter_, solver_, width_, history_, n_pairs_,
    n_queries_, n_features_in_, feature_names_in_, fitted_params_, qid_column_, censored_
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
                    if fold.weight <= 0.0:
                        raise NoComparablePairsError(f"training part of fold {number + 1}: no comparable pair.")
                    coefs = [solution.w for solution in self._solve(fold, options, Cs, None)]
                    columns.append(choosing.on_fold(coefs, test))
                scores = np.array(columns).T
                means, errors = mean_and_standard_error(scores)
            choice_scores = [each[np.newaxis] for each in (scores, means, errors)]
            choice = model._choose_by_scores([None], Cs, [len(Cs)], *choice_scores)
            if choosing.held_out:
                result = solutions[choice.C_number]
            else:
                with interruptible_if(self.keep_on_interrupt) as interrupted:
                    result = problem.solve(choice.C, interrupted=interrupted)
        model._assign_solution(problem, result.w)
        model._assign_outcome(problem.outcome(result))
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
