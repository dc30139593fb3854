"""The optimization problem of any RankSVM: its pairs and loss, its solutions, and their outcomes."""

import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any, ClassVar

import numpy as np

from ranksvm._util.checks import level_of_caller
from ranksvm._util.threads import one_blas_thread
from ranksvm.data.validation import note_on_largest_value
from ranksvm.exceptions import DataError, OptionError, UninformativeWarning
from ranksvm.fits.options import FitOptions
from ranksvm.fits.results.records import Outcome
from ranksvm.fits.training_set import TrainingSet
from ranksvm.losses import Pairs
from ranksvm.solvers import SolverResult, Status, adaptive, interruptible, newton, plain_tron, tron
from ranksvm.solvers.linear_systems import FEW_VARIABLES, load_lapack

# A fit need not limit the threads of BLAS if it factorizes no Hessian and its vectors have at most this length: for
# their products, BLAS uses one thread by itself. (Limiting the threads takes 50 us, a tenth of the smallest fits.)
FEW_ROWS = 10_000
# The first point for another C is the polynomial in log C through this many solutions. (Products with the Hessian along
# 14 values of C, additive models, through 0, 2, 3, 4 and 5 solutions: MQ2008 361, 247, 196, 191 and 214; OHSUMED 436,
# 323, 293, 346 and 439. RBF kernels, 6 values of gamma and 11 of C, through 0, 2, 3 and 4: 2,277, 1,827, 1,780 and
# 1,835.)
N_SOLUTIONS = 3
# A solution replaces those whose log C differs by at most this: their differences are mostly error, which the
# polynomial would multiply.
NEARLY_EQUAL = 0.01
NOTHING_LEARNED = (
    "The fit found nothing to learn: all weights are 0, and every document has the same score. The two documents of "
    "every pair have the same features (were chosen and rejected the same array?), the pairs contradict each other, or "
    "no weight that monotone admits, at this C, makes the objective smaller by more than round-off."
)


def interruptible_if(wanted: bool) -> AbstractContextManager[threading.Event | None]:
    """Context in which Ctrl-C sets an event instead of raising KeyboardInterrupt, if ``wanted``."""
    return interruptible() if wanted else nullcontext()


class RankSVMProblem:
    """Minimize ``1/2 |f|^2 + C * loss(scores)`` on one data set, for successive values of C; a subclass defines f.

    A subclass sets ``objective`` and ``solver`` ("newton", "adaptive" or "tron").

    Parameters
    ----------
    data : TrainingSet
        The data.
    pairs : ComparablePairs or PairList
        The pairs of the data, with the row numbers of the objective, which may omit queries without pairs.
    options : FitOptions
        The hyper-parameters.
    """

    objective: Any
    # the device that computes the objective
    device: str | list[str] = "cpu"
    # prefix of C in the log
    label = ""
    # whether TRON may begin with smaller C
    continuation = False
    # whether the solution depends on the scales of the features relative to each other
    scales_matter = True
    # stop when the duality gap meets tol ("gap"), or when the gradient does, as in published TRON ("gradient")
    stopping = "gap"
    # the form of Newton's method that suits the objective: `newton` (explicit Hessians) or `newton_cg` (conjugate
    # gradients with a good preconditioner)
    newton: ClassVar[Callable[..., SolverResult]] = staticmethod(newton)

    def __init__(
        self,
        data: TrainingSet,
        pairs: Pairs,
        options: FitOptions,
    ):
        self.pairs = pairs
        # of the data: `pairs` may lack pairs of weight 0
        self.n_pairs = data.pairs.n_pairs
        self._features = data.X
        self.n_rows = data.n_rows
        self.n_queries = data.n_queries
        self.n_threads = data.n_threads
        self.solver = options.solver
        self.tol = options.tol
        self.max_iter = options.max_iter
        self.loss = options.loss
        # the largest C to be solved for, if there are several values
        self.largest_C = 0.0
        # the initial smoothing of the objective
        self.smoothing: dict[str, Any] = {"width": self.loss.first_width, "reducible": self.loss.smoothed}
        # the last solutions, each of which began at the point of the one before: log C (all different) and variables
        self._solutions: list[tuple[float, np.ndarray]] = []

    def solve(
        self,
        C: float,
        start: np.ndarray | None = None,
        interrupted: threading.Event | None = None,
        *,
        point: Any = None,
    ) -> SolverResult:
        """The solution for one C.

        The solver starts at f = 0, at the variables ``start``, or at a ``point`` that the objective has evaluated. If
        this is the point of the last solution, for another C, the solver may start at a point that is extrapolated from
        the last solutions.
        """
        if point is None:
            self._solutions = []
        elif len(self._solutions) > 1:
            point = self._extrapolated(C, point)
        result = self._solve(C, start, interrupted, point)
        if result.n_iter > 0 and self._extrapolates:
            log_C = float(np.log(C))
            others = [solution for solution in self._solutions if abs(log_C - solution[0]) > NEARLY_EQUAL]
            self._solutions = [*others, (log_C, result.w)][-N_SOLUTIONS:]
        return result

    def _solve(
        self, C: float, start: np.ndarray | None, interrupted: threading.Event | None, point: Any
    ) -> SolverResult:
        """The solution for one C, from just this start."""
        with self._solver_from(C, start, interrupted, point) as solver:
            result = solver()
        result.width = self.objective.width
        return result

    @property
    def _extrapolates(self) -> bool:
        """Whether extrapolated starts save time, as they do for conjugate gradients with a good preconditioner.

        Without one they may cost time. (Linear models, squared hinge, 15 values of C, ms without and with them: TRON,
        text of 2,000 x 20,000, 77 and 100; direct steps, 300 x 800, 19 and 30; MQ2008 by explicit Hessians, 10.9 and
        11.6.) A hinge, whose smoothing is increased for another C, takes as many products as without. (RBF kernels,
        MQ2008, 66 solutions: 4,163 without, 4,247 with them.)
        """
        return self.newton is not newton and self.solver != "tron" and not self.objective.reducible

    def _extrapolated(self, C: float, point: Any) -> Any:
        """A point extrapolated from the last solutions; or ``point``, the last solution, if that is the better start.

        The extrapolated point is used if it has a smaller value than ``point``, and its gap is at most its value.
        After a large step of C, many pairs may have crossed their margin at the extrapolated point, so that its gap is
        large, and steps from there are poor although its value is smaller. (Additive models, squared hinge, products
        with the Hessian by the value alone, by both conditions, and without extrapolated points: 200 rows, C = 1, 16,
        ..., 65,536, 277, 82 and 82; MQ2008, 12 values from 2^-8 to 2^3, 509, 509 and 950.)
        """
        objective = self.objective
        objective.reweight(C, point)
        value, gap = objective.certificate(point)
        if gap <= self.tol * value:
            return point
        logs, solutions = zip(*self._solutions, strict=True)
        weights = []  # of Lagrange's polynomial
        for place, log_C in enumerate(logs):
            others = np.delete(logs, place)
            weights.append(np.prod((np.log(C) - others) / (log_C - others)))
        found = objective.evaluate(np.tensordot(weights, solutions, 1), point)
        if not (found.value < point.value and found.gap <= found.value):
            found, point = point, found
        objective.release(point)
        return found

    @contextmanager
    def _solver_from(
        self, C: float, start: np.ndarray | None, interrupted: threading.Event | None, point: Any
    ) -> Iterator[Callable[..., SolverResult]]:
        """Prepare the objective for C, and yield its solver; arguments passed to the solver replace its settings."""
        objective = self.objective
        if point is None:
            objective.width = self.smoothing["width"] if start is None else self.loss.warm_width
        objective.reweight(C, point)
        warm = start is not None or point is not None
        begin = point.w if point is not None else self._origin() if start is None else start
        load_lapack(objective.n_variables)
        few = objective.n_variables <= FEW_VARIABLES and self.n_rows <= FEW_ROWS
        with nullcontext() if few else one_blas_thread():
            try:
                yield partial(
                    self._method(warm),
                    objective,
                    begin,
                    point=point,
                    tol=self.tol,
                    max_iter=self.max_iter,
                    interrupted=interrupted,
                )
            except DataError as error:  # overflow
                raise DataError(f"{error}{note_on_largest_value(self._features)}") from error

    def _method(self, warm: bool) -> Callable[..., SolverResult]:
        """The function of the solver, with its settings; ``warm``: it will start at another solution."""
        if self.solver == "newton":
            return partial(self.newton, warm_start=warm)
        if self.solver == "adaptive":
            return partial(adaptive, warm_start=warm)
        if self.stopping == "gradient":
            return plain_tron
        return partial(tron, continuation=not warm and self.continuation)

    def _stop_by(self, stopping: str) -> None:
        """Set the stopping rule; OptionError if the solver or the loss does not support it."""
        if stopping == "gradient":
            if self.solver != "tron":
                raise OptionError(
                    f"stopping='gradient' is the published rule of solver='tron', not of solver={self.solver!r}: set "
                    "solver='tron' (--solver tron at the command line)."
                )
            if self.loss.smoothed:
                raise OptionError("stopping='gradient' is for losses with a gradient everywhere: the hinge has none.")
        self.stopping = stopping

    def release(self) -> None:
        """Free memory that only later solves would use."""

    def scores(self, w: np.ndarray, X: Any) -> np.ndarray:
        """Scores of validated documents under a solution's variables."""
        raise NotImplementedError

    def outcome(self, result: SolverResult) -> Outcome:
        """The outcome of a solution; warn if it did not converge, or learned nothing."""
        if result.status in (Status.MAX_ITERATIONS, Status.PRECISION):
            from sklearn.exceptions import ConvergenceWarning

            gap = f"relative duality gap {result.relative_gap:.1e}"
            note = note_on_largest_value(self._features) if result.status is Status.PRECISION else ""
            warnings.warn(
                f"{result.status.in_words(self.scales_matter)}{note} ({gap})", ConvergenceWarning, stacklevel=3
            )
        elif result.status in (Status.CONVERGED, Status.GRADIENT) and not np.any(result.w):
            warnings.warn(NOTHING_LEARNED, UninformativeWarning, stacklevel=level_of_caller())
        return Outcome(
            objective=float(result.value),
            duality_gap=float(result.gap),
            converged=result.status in (Status.CONVERGED, Status.GRADIENT),
            status=result.status.in_words(self.scales_matter),
            n_iter=result.n_iter,
            solver=self.solver,
            history=result.history.as_dict(),
            n_pairs=self.n_pairs,
            n_queries=self.n_queries,
            width=result.width,
            device=self.device,
            pair_alpha=result.alpha,
        )

    def _origin(self) -> np.ndarray:
        """The variables of f = 0."""
        raise NotImplementedError
