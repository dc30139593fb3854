"""DaskRankSVMCV: RankSVM with C chosen by a metric, on a Dask cluster."""

import threading
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from distributed import Future
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning

from ranksvm._util import checks
from ranksvm._util.threads import effective_n_jobs
from ranksvm._util.types import MemoryLimit, Splits
from ranksvm._util.verbosity import verbosity
from ranksvm.dask.backend import DaskBackend
from ranksvm.dask.base import DaskRanker
from ranksvm.dask.cluster import Cluster
from ranksvm.dask.evaluation import Sums, evaluated
from ranksvm.dask.gathered import evaluation_set, fit_arguments
from ranksvm.dask.inputs import Given, given_rows
from ranksvm.dask.listed_pairs import Listed, part_of_pairs, queries_of_pairs, unpacked_preferences
from ranksvm.dask.preparation import Prepared, on_workers
from ranksvm.dask.rows import Rows, hashes_of
from ranksvm.dask.types import DaskFeatures, EvalSets, EvalValues
from ranksvm.data import Preferences, Queries
from ranksvm.estimators.base.arguments import MetricsLike, Monotone
from ranksvm.estimators.base.choosing_ranker import Choice
from ranksvm.estimators.base.evaluation_rounds import checked_patience, is_exhausted
from ranksvm.estimators.base.ranker import all_or_nothing
from ranksvm.estimators.path import c_values
from ranksvm.estimators.rank_svm_cv import RankSVMCV
from ranksvm.exceptions import NoComparablePairsError, OptionError
from ranksvm.fits.evaluation import joined_sets, metrics_of_sets
from ranksvm.fits.options import LinearOptions, loss_of
from ranksvm.fits.problem import interruptible_if
from ranksvm.fits.training_set import TrainingArguments
from ranksvm.losses.margin_function import MarginFunction
from ranksvm.metrics import Convention, Metric, parse_metric
from ranksvm.metrics.conventions import convention_named
from ranksvm.metrics.names import ACCURACY, CONCORDANCE, only_metric
from ranksvm.model_selection.choice import RULES, choose, mean_and_standard_error
from ranksvm.model_selection.cross_validation import query_splits
from ranksvm.solvers import SolverResult, Status
from ranksvm.terms.parts.part import Part
from ranksvm.terms.parts.term import PartitionedTerm

__all__ = ["DaskRankSVMCV"]


class _Tried(NamedTuple):
    """The scores of all values of C, by test part, and their means and standard errors."""

    scores: np.ndarray
    means: np.ndarray
    errors: np.ndarray


class DaskRankSVMCV(DaskRanker):
    """`DaskRankSVM` with C chosen on validation data or by query folds, as `RankSVMCV` chooses it.

    All values of C are solved at the same time and share every round, so that a path takes about as many rounds as its
    longest fit.

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
    ranksvm.RankSVMCV : The same in one process: `to_local` gives one.

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

    def fit(
        self,
        X: DaskFeatures | Preferences,
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
        eval_set: EvalSets = None,
        eval_qid: EvalValues = None,
        eval_group: EvalValues = None,
        eval_names: str | Sequence[str] | None = None,
        eval_sample_weight: EvalValues = None,
        eval_metric: MetricsLike | None = None,
        eval_at: int | Iterable[int] | None = None,
        eval_X: DaskFeatures | tuple[DaskFeatures, ...] | None = None,
        eval_y: ArrayLike | tuple[ArrayLike, ...] | None = None,
    ) -> Self:
        """Choose C and learn the weights.

        Parameters
        ----------
        X, y, qid, group, sample_weight, query_weight, propensity, pairs, pair_weight, event : optional
            As in `DaskRankSVM.fit`. Folds divide listed pairs as in `RankSVMCV.fit`.
        eval_set : list of tuple (X, y), or one such tuple, optional
            Validation data: C is chosen on the first set. Without it, C is chosen by folds of the queries.
        eval_X, eval_y : array-like, or tuples of array-likes, optional
            Instead of ``eval_set``: the features and the labels of one set, or of several, as in LightGBM 4.7.
        eval_qid, eval_group, eval_names, eval_sample_weight, eval_metric, eval_at : optional
            As in `RankSVMCV.fit`.

        Returns
        -------
        DaskRankSVMCV
            The fitted estimator.

        Raises
        ------
        DataError, NoComparablePairsError, ClusterError, OptionError
            As in `DaskRankSVM.fit`.

        Warns
        -----
        ConvergenceWarning
            When a certificate does not meet ``tol``.
        """
        eval_set = joined_sets(eval_set, eval_X, eval_y)
        linear = self._options()
        self._check_options()
        checks.check(rule=checks.one_of(self.rule, RULES))
        metric, convention = parse_metric(self.metric), convention_named(self.convention)
        X, qid, pairs, pair_weight = unpacked_preferences(X, y, qid, group, pairs, pair_weight)
        TrainingArguments(X, y, pairs=pairs, pair_weight=pair_weight, event=event).check_pairs(
            self.pair_selection, self.pair_weighting
        )
        patience = checked_patience(self.early_stopping_rounds, eval_set)
        metrics = metrics_of_sets(eval_metric, eval_at, metric)
        Cs = np.sort(c_values(self.Cs))
        weights = {
            "sample_weight": sample_weight,
            "query_weight": query_weight,
            "propensity": propensity,
            "event": event,
        }
        with all_or_nothing(self), verbosity(self.verbose, iterations_from=2):
            cluster = self._cluster()
            count = cluster.computed
            given = given_rows(X, y, qid, weights, group=group, pairs=pairs, pair_weight=pair_weight, count=count)
            self.censored_ = event is not None
            sets = eval_set, eval_qid, eval_group, eval_names, eval_sample_weight
            if self.solver == "dual":
                return self._chosen_here(cluster, given, sets, eval_metric=eval_metric, eval_at=eval_at)
            prepared = self._prepared(cluster, given)
            held_out, metrics = self._evaluation_sets(cluster, metrics, *sets)
            metric = metrics[0]
            term = self._term(cluster, given, prepared)
            problem = self._problem(term, linear)
            evals_result: dict[str, Any] = {}
            with closing(term), interruptible_if(self.keep_on_interrupt) as interrupted:
                if held_out:
                    solutions = self._solve(term, linear, Cs, interrupted)
                    coefs = [solution.w for solution in solutions]
                    of_sets = {each.name: each.evaluate(cluster, coefs, metrics, convention) for each in held_out}
                    tried = _on_validation(of_sets[held_out[0].name], metric.name, patience)
                    Cs = Cs[: len(tried.means)]
                    evals_result = {
                        name: {each: [sums[each].mean for sums in found[: len(Cs)]] for each in found[0]}
                        for name, found in of_sets.items()
                    }
                    choice = self._choice(Cs, tried)
                    result = solutions[choice.C_number]
                else:
                    if prepared.listed is not None:
                        metric = only_metric("pairs", ACCURACY, metric)
                    elif event is not None:
                        metric = only_metric("censored times", CONCORDANCE, metric)
                    tried = self._by_folds(cluster, prepared, term, linear, Cs, metric, convention, interrupted)
                    choice = self._choice(Cs, tried)
                    result = problem.solve(choice.C, interrupted=interrupted)
            model = self._new_local()
            model._assign_solution(problem, result.w)
            model._assign_outcome(problem.outcome(result))
            model._assign_choice(choice)
            model.n_queries_ = prepared.n_queries
            model.evals_result_ = evals_result
            model.fitted_params_ = model._params_now() | {"metric": metric.name}
            self.__dict__.update({name: value for name, value in vars(model).items() if name.endswith("_")})
        return self

    def _chosen_here(self, cluster: Cluster, given: Given, sets: tuple[Any, ...], **metrics: Any) -> Self:
        """Gather the rows of all sets in this process, and let `RankSVMCV` choose."""
        arguments = self._gathered(cluster, given)
        there = dict(zip(("eval_set", "eval_qid", "eval_group", "eval_names", "eval_sample_weight"), sets, strict=True))
        held_out = self._given_sets(cluster, *sets)
        if held_out:
            gathered = [fit_arguments(cluster, each, self.memory_limit)[1] for _, each, _ in held_out]
            items, qids, weights = zip(*map(evaluation_set, gathered), strict=True)
            names = [name for name, _, _ in held_out]
            there = {"eval_set": list(items), "eval_qid": list(qids), "eval_names": names}
            there["eval_sample_weight"] = list(weights)
        model = self._new_local().set_params(memory_limit=None).fit(**arguments, **there, **metrics)
        known = {"qid_column_": self.qid_column_, "frame_type_": self.frame_type_}
        self.__dict__.update({name: value for name, value in vars(model).items() if name.endswith("_")} | known)
        return self

    def _solve(
        self, term: PartitionedTerm, linear: LinearOptions, Cs: np.ndarray, interrupted: threading.Event | None
    ) -> list[SolverResult]:
        """The solutions for all C, in shared rounds."""
        solutions = self._problem(term, linear).solve_path(Cs, interrupted)
        for C, solution in zip(Cs, solutions, strict=True):
            if solution.status in (Status.MAX_ITERATIONS, Status.PRECISION):
                warnings.warn(f"C = {C:g}: {solution.status.value}", ConvergenceWarning, stacklevel=3)
        return solutions

    def _by_folds(
        self,
        cluster: Cluster,
        prepared: Prepared,
        term: PartitionedTerm,
        linear: LinearOptions,
        Cs: np.ndarray,
        metric: Metric,
        convention: Convention,
        interrupted: threading.Event | None,
    ) -> _Tried:
        """The scores of all values of C on the folds of the queries."""
        columns = []
        listed = prepared.listed
        splits = self._splits(prepared.queries) if listed is None else self._splits_of_pairs(cluster, prepared, listed)
        for number, (train, test) in enumerate(splits):
            fold = self._fold_term(cluster, prepared, term, train)
            if fold.weight <= 0.0:
                raise NoComparablePairsError(f"training part of fold {number + 1}: no comparable pair.")
            coefs = [solution.w for solution in self._solve(fold, linear, Cs, interrupted)]
            if listed is None:
                found = evaluated(cluster, prepared.rows, coefs, [metric], convention, test)
            else:
                found = evaluated(cluster, prepared.rows, coefs, [metric], listed=listed.taken(test))
            columns.append([sums[metric.name].mean for sums in found])
        scores = np.array(columns).T
        return _Tried(scores, *mean_and_standard_error(scores))

    def _splits(self, queries: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """The hashes of the queries of each training and test part."""
        n = len(queries)
        each = Queries(np.arange(n + 1), None, np.arange(n))
        for train, test in query_splits(self.cv, np.zeros((n, 1)), np.zeros(n), each):
            yield queries[train], queries[test]

    def _splits_of_pairs(
        self, cluster: Cluster, prepared: Prepared, listed: Listed
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """The numbers of the pairs of each training and test part."""
        if (groups := listed.groups) is None:
            groups = np.zeros(len(listed.weight), dtype=np.uint64)
            asked = cluster.mapped(queries_of_pairs, prepared.rows, on_workers(cluster, listed))
            for numbers, queries in cluster.results(asked):
                groups[numbers] = queries
        return query_splits(self.cv, listed.rows, None, Queries.from_qid(groups))

    def _fold_term(
        self, cluster: Cluster, prepared: Prepared, term: PartitionedTerm, train: np.ndarray
    ) -> PartitionedTerm:
        """The loss over the pairs of some queries, or over some listed pairs; X is shared with the full parts."""
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
        return cluster.mapped(_fold_part, parts, train, scale, beside=prepared.rows)

    def _choice(self, Cs: np.ndarray, tried: _Tried) -> Choice:
        if np.isnan(tried.means).all():
            raise OptionError(f"{self.metric!r} is not defined for any query of the validation data.")
        chosen = choose(tried.means, tried.errors, self.rule)
        scores = [np.asarray(each)[np.newaxis] for each in (tried.scores, tried.means, tried.errors)]
        return Choice(0, chosen, chosen + 1, float(Cs[chosen]), float(tried.means[chosen]), Cs, [None], *scores)


def _on_validation(found: list[dict[str, Sums]], name: str, patience: int | None) -> _Tried:
    """The scores on the set that chooses C, up to the C at which early stopping stops."""
    means = np.array([sums[name].mean for sums in found])
    errors = np.array([sums[name].standard_error for sums in found])
    values = means.tolist()
    n = next((tried for tried in range(1, len(values)) if is_exhausted(values[:tried], patience)), len(values))
    return _Tried(means[:n, np.newaxis], means[:n], errors[:n])


def _largest(rows: Rows, train: np.ndarray) -> float:
    return rows.of_queries(train).report().largest_label


def _fold_part(part: Part, rows: Rows, train: np.ndarray, scale: float) -> Part:
    """A part with the pairs of some of the queries, which shares X."""
    chosen = np.isin(hashes_of(rows.queries.ids), train)
    pairs = part.pairs.of_queries(np.flatnonzero(chosen))
    if scale != 1.0 and pairs.gain is not None:
        arrays = pairs.pointers, pairs.rows, pairs.levels, pairs.n_levels, pairs.preferred, pairs.other
        pairs = type(pairs)(*arrays, pairs.gain * scale, pairs.adjacent, pairs.direct_limit)
    return Part(part.X, pairs)
