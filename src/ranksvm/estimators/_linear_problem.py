"""The optimisation problem behind every linear estimator: data, loss, objective and the choice of solver."""

import threading
import warnings
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ranksvm._parallel import effective_n_jobs, one_blas_thread
from ranksvm.data import ComparablePairs, PairList, Queries, as_design_matrix
from ranksvm.estimators import _inputs, _options
from ranksvm.exceptions import DataError, OptionError
from ranksvm.losses import Hinge, HuberHinge, Pairs, PairwiseLoss, SquaredHinge, Width
from ranksvm.objectives import LinearObjective, LinearPoint
from ranksvm.solvers import SolverResult, Status, interruptible, newton, tron

LOSSES = ("squared_hinge", "hinge", "huber")
SOLVERS = ("auto", "newton", "tron")
PAIR_SELECTIONS = ("all", "adjacent")
PAIR_WEIGHTINGS = ("uniform", "per_query", "label_gap", "gain_gap")


# The width at which smoothing of the hinge begins, and from which a solution of a similar problem is sharpened on.
FIRST_WIDTH, WARM_WIDTH = 1.0, 0.25


def linear_options(estimator: Any) -> dict[str, Any]:
    """The hyper-parameters of an estimator that choose loss and solver, checked."""
    _options.check(
        loss=_options.one_of(estimator.loss, LOSSES),
        huber_width=_options.positive(estimator.huber_width),
        pair_selection=_options.one_of(estimator.pair_selection, PAIR_SELECTIONS),
        pair_weighting=_options.one_of(estimator.pair_weighting, PAIR_WEIGHTINGS),
        solver=_options.one_of(estimator.solver, SOLVERS),
        tol=_options.positive(estimator.tol),
        max_iter=_options.count(estimator.max_iter),
    )
    names = ("loss", "huber_width", "solver", "tol", "max_iter", "keep_on_interrupt")
    return {name: getattr(estimator, name) for name in names}


class LinearProblem:
    """``1/2 |w|^2 + C * loss(X w)`` for one data set and one C after another.

    Parameters
    ----------
    X : ndarray or CSR matrix, shape (n_rows, n_features)
        Features.
    pairs : ComparablePairs or PairList
        Pairs of the rows.
    n_queries : int
        Number of queries of the data.
    loss, solver : str
        By name.
    huber_width : float
        Width of the Huberised hinge.
    tol : float
        Relative duality gap to reach.
    max_iter : int
        Largest number of solver iterations.
    keep_on_interrupt : bool
        Whether Ctrl-C ends a solve with the best point so far.
    n_threads : int
        Number of threads.
    """

    def __init__(
        self,
        X: Any,
        pairs: Pairs,
        n_queries: int,
        *,
        loss: str,
        huber_width: float,
        solver: str,
        tol: float,
        max_iter: int,
        keep_on_interrupt: bool,
        n_threads: int,
    ):
        self.pairs = pairs
        self.n_rows = X.shape[0]
        self.n_queries = n_queries
        self.tol = tol
        self.max_iter = max_iter
        self.keep_on_interrupt = keep_on_interrupt
        self._smoothing = Width(huber_width if loss == "huber" else FIRST_WIDTH)
        pairwise: PairwiseLoss
        if loss == "squared_hinge":
            pairwise = SquaredHinge(pairs)
        elif loss == "huber":
            pairwise = HuberHinge(pairs, huber_width)
        else:
            pairwise = Hinge(pairs, self._smoothing)
        self.loss = loss
        self.objective = LinearObjective(as_design_matrix(X), pairwise, 1.0, n_threads)
        self.solver = solver
        if solver == "auto":
            self.solver = "newton" if self.objective.hessian_fraction > 0.0 else "tron"
        elif solver == "newton" and self.objective.hessian_fraction == 0.0:
            raise OptionError(
                "solver='newton' builds a dense Hessian of n_features^2 numbers, too large for "
                f"{X.shape[1]} features{'' if self.objective.design.dense else ' of sparse X'}: use solver='tron' or "
                "'auto'."
            )

    def interruptible(self) -> AbstractContextManager[threading.Event | None]:
        """Context in which Ctrl-C sets an event instead of raising KeyboardInterrupt, if that is wanted."""
        return interruptible() if self.keep_on_interrupt else nullcontext()

    @property
    def width(self) -> float | None:
        """Width of the Huberised hinge that the last solution is one of; None where the loss is another one."""
        return None if self.loss == "squared_hinge" else self._smoothing.value

    def solve(
        self, C: float, start: np.ndarray | LinearPoint | None = None, interrupted: threading.Event | None = None
    ) -> SolverResult:
        """The solution for one C, from the weights or the point of another solution if given."""
        objective = self.objective
        warm = start is not None
        if start is None:
            start = np.zeros(objective.n_variables)
        if self.loss == "hinge" and isinstance(start, np.ndarray):
            self._smoothing.value = WARM_WIDTH if warm else FIRST_WIDTH
        objective.reweight(C, None if isinstance(start, np.ndarray) else start)
        options: dict[str, Any] = {"tol": self.tol, "max_iter": self.max_iter, "interrupted": interrupted}
        with one_blas_thread():
            if self.solver == "newton":
                return newton(objective, start, warm_start=warm, **options)
            return tron(objective, start, **options)


def linear_problem(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    qid: Any,
    group: Any,
    pairs: Any = None,
    pair_weight: Any = None,
    **weights: Any,
) -> LinearProblem:
    """The problem that an estimator's ``fit`` solves for the data it was given, all of it checked.

    ``weights`` are ``sample_weight``, ``query_weight`` and ``propensity``.
    """
    options = linear_options(estimator)
    n_threads = effective_n_jobs(estimator.n_jobs)
    check_source_of_pairs(estimator, y, pairs, pair_weight)
    if y is None and pairs is None:
        name = type(estimator).__name__
        raise DataError(f"{name} requires y to be passed, but the target y is None (or give pairs of rows instead).")
    if pairs is None:
        X, y = _inputs.features_and_labels(estimator, X, y, n_threads=n_threads)
    else:
        X = _inputs.features(estimator, X, n_threads=n_threads, reset=True)
    grouping = _inputs.queries(qid, group, X.shape[0])
    found = training_pairs(estimator, grouping, y, pairs, pair_weight, n_threads, **weights)
    return LinearProblem(X, found, grouping.n_queries, n_threads=n_threads, **options)


def training_pairs(
    estimator: Any, grouping: Queries, y: Any, pairs: Any, pair_weight: Any, n_threads: int, **weights: Any
) -> Pairs:
    """The pairs that an estimator's ``fit`` learns from: those that labels imply, or those listed in ``pairs``."""
    selection, weighting = estimator.pair_selection, estimator.pair_weighting
    if pairs is None:
        return ComparablePairs.from_labels(
            grouping, y, selection=selection, weighting=weighting, n_threads=n_threads, **weights
        )
    return PairList.from_pairs(grouping, pairs, pair_weight=pair_weight, weighting=weighting, **weights)


def check_source_of_pairs(estimator: Any, y: Any, pairs: Any, pair_weight: Any) -> None:
    """Refuse what labels, or explicit pairs, cannot be combined with."""
    if pairs is None:
        if pair_weight is not None:
            raise DataError("pair_weight is given without pairs.")
        return
    selection, weighting = estimator.pair_selection, estimator.pair_weighting
    if y is not None:
        raise DataError("Give y (labels, which imply the pairs) or pairs, not both.")
    if selection != "all":
        raise OptionError(f"pair_selection={selection!r} chooses among the pairs that labels imply: leave it at 'all'.")
    if weighting not in ("uniform", "per_query"):
        raise OptionError(f"pair_weighting={weighting!r} is computed from labels: with pairs, give pair_weight.")


def keep_result(estimator: Any, result: SolverResult, problem: LinearProblem) -> None:
    """Give an estimator a solver's result as fitted attributes, and warn where it did not converge."""
    estimator.coef_ = np.array(result.w)
    estimator.objective_ = float(result.value)
    estimator.duality_gap_ = float(result.gap)
    estimator.converged_ = result.status is Status.CONVERGED
    estimator.status_ = result.status.value
    estimator.n_iter_ = result.n_iter
    estimator.solver_ = problem.solver
    estimator.history_ = result.history.as_dict()
    estimator.n_pairs_ = problem.pairs.n_pairs
    estimator.n_queries_ = problem.n_queries
    estimator.width_ = problem.width
    if result.status in (Status.MAX_ITERATIONS, Status.PRECISION):
        gap = f"relative duality gap {result.relative_gap:.1e}"
        warnings.warn(f"{result.status.value} ({gap})", ConvergenceWarning, stacklevel=3)
