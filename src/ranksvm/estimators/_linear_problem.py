"""The optimisation problem behind every linear estimator: data, loss, objective and the choice of solver."""

import threading
import warnings
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ranksvm._parallel import effective_n_jobs, one_blas_thread
from ranksvm.data import ComparablePairs
from ranksvm.estimators import _inputs, _options
from ranksvm.exceptions import OptionError
from ranksvm.losses import PairwiseLoss, SquaredHinge
from ranksvm.objectives import LinearObjective, LinearPoint, as_design_matrix
from ranksvm.solvers import SolverResult, Status, interruptible, newton, tron

LOSSES: dict[str, type] = {"squared_hinge": SquaredHinge}
SOLVERS = ("auto", "newton", "tron")


def linear_options(estimator: Any) -> dict[str, Any]:
    """The hyper-parameters of an estimator that choose loss and solver, checked."""
    _options.check(
        loss=_options.one_of(estimator.loss, LOSSES),
        solver=_options.one_of(estimator.solver, SOLVERS),
        tol=_options.positive(estimator.tol),
        max_iter=_options.count(estimator.max_iter),
    )
    names = ("loss", "solver", "tol", "max_iter", "keep_on_interrupt")
    return {name: getattr(estimator, name) for name in names}


class LinearProblem:
    """``1/2 |w|^2 + C * loss(X w)`` for one data set and one C after another.

    Parameters
    ----------
    X : ndarray or CSR matrix, shape (n_rows, n_features)
        Features.
    pairs : ComparablePairs
        Pairs of the rows.
    loss, solver : str
        By name.
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
        pairs: ComparablePairs,
        *,
        loss: str,
        solver: str,
        tol: float,
        max_iter: int,
        keep_on_interrupt: bool,
        n_threads: int,
    ):
        self.pairs = pairs
        self.tol = tol
        self.max_iter = max_iter
        self.keep_on_interrupt = keep_on_interrupt
        pairwise: PairwiseLoss = LOSSES[loss](pairs)
        self.objective = LinearObjective(as_design_matrix(X), pairwise, 1.0, n_threads)
        self.solver = solver
        if solver == "auto":
            self.solver = "newton" if self.objective.hessian_fraction > 0.0 else "tron"
        elif solver == "newton" and self.objective.hessian_fraction == 0.0:
            raise OptionError(
                f"solver='newton' builds a Hessian of n_features^2 numbers, too large for {X.shape[1]} features: "
                "use solver='tron' or 'auto'."
            )

    def interruptible(self) -> AbstractContextManager[threading.Event | None]:
        """Context in which Ctrl-C sets an event instead of raising KeyboardInterrupt, if that is wanted."""
        return interruptible() if self.keep_on_interrupt else nullcontext()

    def solve(
        self, C: float, start: np.ndarray | LinearPoint | None = None, interrupted: threading.Event | None = None
    ) -> SolverResult:
        """The solution for one C, from the weights or the point of another solution if given."""
        objective = self.objective
        warm = start is not None
        if start is None:
            start = np.zeros(objective.n_variables)
        objective.reweight(C, None if isinstance(start, np.ndarray) else start)
        options: dict[str, Any] = {"tol": self.tol, "max_iter": self.max_iter, "interrupted": interrupted}
        with one_blas_thread():
            if self.solver == "newton":
                return newton(objective, start, warm_start=warm, **options)
            return tron(objective, start, **options)


def linear_problem(
    estimator: Any, X: Any, y: Any, *, qid: Any, group: Any, sample_weight: Any, query_weight: Any
) -> LinearProblem:
    """The problem that an estimator's ``fit`` solves for the data it was given, all of it checked."""
    options = linear_options(estimator)
    n_threads = effective_n_jobs(estimator.n_jobs)
    X, y = _inputs.features_and_labels(estimator, X, y, n_threads=n_threads)
    grouping = _inputs.queries(qid, group, X.shape[0])
    pairs = ComparablePairs.from_labels(
        grouping, y, sample_weight=sample_weight, query_weight=query_weight, n_threads=n_threads
    )
    return LinearProblem(X, pairs, n_threads=n_threads, **options)


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
    estimator.n_queries_ = problem.pairs.n_queries
    if result.status in (Status.MAX_ITERATIONS, Status.PRECISION):
        relative = result.gap / result.value if result.value > 0 else 0.0
        warnings.warn(f"{result.status.value} (relative duality gap {relative:.1e})", ConvergenceWarning, stacklevel=3)
