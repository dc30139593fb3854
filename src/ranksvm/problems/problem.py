"""The optimisation problem of any RankSVM: the pairs and the loss of the data given, solutions, and what is kept."""

import threading
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ranksvm import _options
from ranksvm._parallel import one_blas_thread
from ranksvm.losses import Hinge, HuberHinge, Pairs, PairwiseLoss, SquaredHinge, Width
from ranksvm.problems.records import Outcome, Record
from ranksvm.problems.training_set import TrainingSet
from ranksvm.solvers import SolverResult, Status, interruptible, newton, tron

LOSSES = ("squared_hinge", "hinge", "huber")
SOLVERS = ("auto", "newton", "tron")
LINEAR_SOLVERS = (*SOLVERS, "dual")
PAIR_SELECTIONS = ("all", "adjacent")
PAIR_WEIGHTINGS = ("uniform", "per_query", "label_gap", "gain_gap")


# The width at which smoothing of the hinge begins, and from which a solution of a similar problem is sharpened on.
FIRST_WIDTH, WARM_WIDTH = 1.0, 0.25


def problem_options(estimator: Any, solvers: tuple[str, ...] = SOLVERS) -> dict[str, Any]:
    """The hyper-parameters of an estimator that choose loss and solver (one of ``solvers``), checked."""
    _options.check(
        loss=_options.one_of(estimator.loss, LOSSES),
        huber_width=_options.positive(estimator.huber_width),
        pair_selection=_options.one_of(estimator.pair_selection, PAIR_SELECTIONS),
        pair_weighting=_options.one_of(estimator.pair_weighting, PAIR_WEIGHTINGS),
        solver=_options.one_of(estimator.solver, solvers),
        tol=_options.positive(estimator.tol),
        max_iter=_options.count(estimator.max_iter),
    )
    names = ("loss", "huber_width", "solver", "tol", "max_iter")
    return {name: getattr(estimator, name) for name in names}


def interruptible_if(wanted: bool) -> AbstractContextManager[threading.Event | None]:
    """Context in which Ctrl-C sets an event instead of raising KeyboardInterrupt, if that is wanted."""
    return interruptible() if wanted else nullcontext()


class RankSVMProblem:
    """``1/2 |f|^2 + C * loss(scores)`` for one data set and one C after another; what f is, a subclass says.

    A subclass sets ``objective`` and ``solver`` ("newton" or "tron").

    Parameters
    ----------
    data : TrainingSet
        The data.
    pairs : ComparablePairs or PairList
        Their pairs, over the rows that the objective is one of.
    loss, solver : str
        By name.
    huber_width : float
        Width of the Huberised hinge.
    tol : float
        Relative duality gap to reach.
    max_iter : int
        Largest number of solver iterations.
    """

    objective: Any
    # put before C in the log
    label = ""
    # the form of Newton's method that suits the objective
    newton: ClassVar[Callable[..., SolverResult]] = staticmethod(newton)

    def __init__(
        self,
        data: TrainingSet,
        pairs: Pairs,
        *,
        loss: str,
        huber_width: float,
        solver: str,
        tol: float,
        max_iter: int,
    ):
        self.pairs = pairs
        self.n_rows = data.n_rows
        self.n_queries = data.n_queries
        self.n_threads = data.n_threads
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self._smoothing = Width(huber_width if loss == "huber" else FIRST_WIDTH)
        self.pairwise: PairwiseLoss
        if loss == "squared_hinge":
            self.pairwise = SquaredHinge(pairs)
        elif loss == "huber":
            self.pairwise = HuberHinge(pairs, huber_width)
        else:
            self.pairwise = Hinge(pairs, self._smoothing)
        self.loss = loss

    def solve(self, C: float, start: Any = None, interrupted: threading.Event | None = None) -> SolverResult:
        """The solution for one C, from the variables or the point of another solution if given."""
        objective = self.objective
        warm = start is not None
        if start is None:
            start = self._origin()
        if self.loss == "hinge" and isinstance(start, np.ndarray):
            self._smoothing.value = WARM_WIDTH if warm else FIRST_WIDTH
        objective.reweight(C, None if isinstance(start, np.ndarray) else start)
        options: dict[str, Any] = {"tol": self.tol, "max_iter": self.max_iter, "interrupted": interrupted}
        with one_blas_thread():
            if self.solver == "newton":
                result = self.newton(objective, start, warm_start=warm, **options)
            else:
                result = tron(objective, start, **options)
        # it narrows further with the next C
        return result if self.loss == "squared_hinge" else replace(result, width=self._smoothing.value)

    def start_from(self, estimator: Any) -> np.ndarray | None:
        """The variables of the solution that an estimator has; raises DataError where it is one of other data."""
        raise NotImplementedError

    def release(self) -> None:
        """Let go of what only further solutions would need."""

    def scores(self, w: np.ndarray, X: Any) -> np.ndarray:
        """What documents, checked, score under a solution's variables."""
        raise NotImplementedError

    def outcome(self, result: SolverResult) -> Outcome:
        """How a solution ended; a warning where it did not converge."""
        if result.status in (Status.MAX_ITERATIONS, Status.PRECISION):
            gap = f"relative duality gap {result.relative_gap:.1e}"
            warnings.warn(f"{result.status.value} ({gap})", ConvergenceWarning, stacklevel=3)
        return Outcome(
            objective=float(result.value),
            duality_gap=float(result.gap),
            converged=result.status is Status.CONVERGED,
            status=result.status.value,
            n_iter=result.n_iter,
            solver=self.solver,
            history=result.history.as_dict(),
            n_pairs=self.pairs.n_pairs,
            n_queries=self.n_queries,
            width=result.width,
            pair_alpha=result.alpha,
        )

    def model(self, w: np.ndarray) -> Record:
        """What a solution's variables score with."""
        raise NotImplementedError

    def _origin(self) -> np.ndarray:
        """The variables of f = 0."""
        raise NotImplementedError
