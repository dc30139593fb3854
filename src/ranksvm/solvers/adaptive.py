"""Newton's method that builds explicit Hessians only if conjugate gradients need many products or are expected to."""

import threading
from collections.abc import Callable
from functools import partial
from typing import Any, Generic, NamedTuple

import numpy as np

from ranksvm.solvers.line_search import take_step
from ranksvm.solvers.linear_systems import NewtonStep, by_diagonal, conjugate_gradient
from ranksvm.solvers.monitor import SAMPLE_ITERATIONS, SAMPLE_TOL, Monitor, SolverResult
from ranksvm.solvers.newton import by_hessians
from ranksvm.solvers.protocol import AdaptiveObjective, P
from ranksvm.solvers.tron import curvature_scale

__all__ = ["adaptive"]

# Conjugate gradients stop once the residual is the fraction FIRST_REDUCTION of the gradient or, if that is less,
# NEXT_REDUCTION times the fraction of the gradient that the last step left.
FIRST_REDUCTION = 0.3
NEXT_REDUCTION = 0.5
# If pairs cross their margins with every step, such inexact steps can alternate between the same points. From the
# FUTILE_STEPS-th step in a row without a smaller gap on, each such step multiplies the limit FIRST_REDUCTION by
# TIGHTEN, down to MIN_REDUCTION.
FUTILE_STEPS = 2
TIGHTEN = 0.3
MIN_REDUCTION = 1e-3
CG_PRODUCTS = 500
# The problem on a sample is solved until the gradient has decreased to this fraction: a sample with just enough rows
# per variable for a preconditioner does not determine the solution any better.
SAMPLE_REDUCTION = 0.05
# Hessians are built once the products have cost this fraction of the cost of a Hessian, if Hessians are expected to
# save their cost. (On 300 features with real labels 0.5 took 1.7 times as long as Newton's method, 0.25 took 1.4 and
# 0.18 takes 1.25 times.)
SPENT_SHARE = 0.18
# Hessians are built at once if the expected products cost at least this fraction of what Hessians cost. (On the grid of
# benchmarks/solver_choice.py this fraction is at least 0.88 if Hessians are faster, and at most 0.73 if they are slower
# by more than a quarter.)
EXPECTED_SHARE = 0.8
# The cost of later products cannot be predicted from fewer products than this.
MIN_PRODUCTS = 4
# If the remaining decrease of the logarithm of the gap is not known, it is assumed to be this number.
MAX_REDUCTION = 20.0

Solve = Callable[[np.ndarray], np.ndarray]


class SampleResult(NamedTuple):
    """Results of the problem on a sample.

    Attributes
    ----------
    solve : callable or None
        The preconditioner.
    reductions : tuple of float
        Decrease of the logarithm of the squared residual by each product with this preconditioner. It is much the same
        for the problem on all data.
    hessians_saved_time : bool
        Whether Hessians saved time.
    """

    solve: Solve | None = None
    reductions: tuple[float, ...] = ()
    hessians_saved_time: bool = False


def adaptive(
    objective: AdaptiveObjective[P],
    start: np.ndarray,
    *,
    point: P | None = None,
    tol: float = 1e-4,
    max_iter: int = 1000,
    warm_start: bool = False,
    interrupted: threading.Event | None = None,
) -> SolverResult:
    """Minimize a strongly convex objective whose Hessian may or may not be worth building.

    The number of products of conjugate gradients depends on the conditioning, which is unknown beforehand. If the
    differences of a few rows show that it will be large, Newton's method is used from the start (`newton`). Otherwise
    conjugate gradients begin, with the diagonal as their preconditioner. Once the products have cost a fifth as much as
    an explicit Hessian, and it is expected to save more products than it costs, Newton's method goes on from there.
    The remaining cost without a Hessian is estimated from the reduction of the residual by the last products. The
    cost with a Hessian is estimated from the number of its rows. As in the ski-rental problem, the work is then at most
    about twice the work of the better choice. A problem on a sample of the data is solved first, in the same way, and
    passes on its solution, its preconditioner, and whether Hessians saved time.

    Parameters
    ----------
    objective : Objective
        The problem.
    start : ndarray of float64, shape (n,)
        The starting point.
    point : Point, optional
        The evaluation at ``start``, if there is one.
    tol : float
        Relative duality gap to reach.
    max_iter : int
        Largest number of steps.
    warm_start : bool
        Whether ``start`` is already near the solution, so that the sample's problem need not be solved first.
    interrupted : threading.Event, optional
        Stops the run at the next evaluation when set.

    Returns
    -------
    SolverResult
        The best point, its certificate and the reason for stopping.
    """
    sample_result = SampleResult()
    if point is None and not warm_start:
        start, sample_result = _solve_sample(objective, start, tol, interrupted)
    monitor = Monitor(objective, tol, max_iter, interrupted)
    point = monitor.evaluate(start) if point is None else point
    return _minimize(objective, point, sample_result, monitor)[0]


def _solve_sample(
    objective: AdaptiveObjective[Any], start: np.ndarray, tol: float, interrupted: threading.Event | None
) -> tuple[np.ndarray, SampleResult]:
    """A starting point, and a preconditioner, from the problem on a sample; `start` if there is no sample."""
    sample = objective.sample()
    if sample is None:
        return start, SampleResult()
    start, sample_result = _solve_sample(sample, np.zeros(sample.n_variables), tol, interrupted)
    monitor = Monitor(sample, max(tol, SAMPLE_TOL), SAMPLE_ITERATIONS, interrupted, "on a sample: ")
    point = monitor.evaluate(start)
    monitor.target_gap = SAMPLE_REDUCTION**2 * point.gap
    result, sample_result = _minimize(sample, point, sample_result, monitor)
    return objective.from_sample(sample, result.w), sample_result


def _minimize(
    objective: AdaptiveObjective[P], point: P, sample_result: SampleResult, monitor: Monitor[P]
) -> tuple[SolverResult, SampleResult]:
    """Take Newton steps by conjugate gradients, then by Hessians if they save time; also return what was learned."""
    earlier = objective.earlier_hessian()  # from an earlier solve, in which Hessians saved time
    if sample_result.hessians_saved_time or earlier is not None:
        return by_hessians(objective, point, monitor, earlier), SampleResult(hessians_saved_time=True)
    if sample_result.solve is None:
        scale = curvature_scale(objective, point)
        steps = _Steps(objective, monitor, by_diagonal(scale), ())
        if steps.build_at_once(point, scale):
            return by_hessians(objective, point, monitor), SampleResult(hessians_saved_time=True)
    else:
        steps = _Steps(objective, monitor, sample_result.solve, sample_result.reductions)
    reduction = loosest = FIRST_REDUCTION
    best_gap, n_futile = float("inf"), 0
    while (status := monitor.record(point)) is None:
        before, point = point, monitor.reduce_smoothing(point)
        if point is not before:  # the objective is less smoothed now, so that gaps are larger
            best_gap, loosest = float("inf"), FIRST_REDUCTION
        gap = point.gap
        if gap == 0.0:  # only less smoothing can improve it
            continue
        best_gap = min(best_gap, gap)
        goal = float(np.sqrt(objective.goal(point, monitor.tol) / gap))
        newton_step = steps.step(point, max(reduction, 0.5 * goal))
        point, _ = take_step(objective, point, newton_step.step, monitor)
        if newton_step.stopped:
            at_zero = objective.hessian_at_zero()
            monitor.n_evaluations += at_zero is not None
            result = by_hessians(objective, point, monitor, at_zero, trusted=False)
            return result, SampleResult(hessians_saved_time=True)
        n_futile = n_futile + 1 if point.gap > best_gap else 0
        if n_futile >= FUTILE_STEPS:
            loosest = max(MIN_REDUCTION, TIGHTEN * loosest)
        # solving for a step more accurately than the quadratic model approximates the objective gains nothing
        reduction = min(loosest, NEXT_REDUCTION * float(np.sqrt(point.gap / gap)))
    return monitor.result(point, status), SampleResult(steps.solve, tuple(steps.reductions))


class _Steps(Generic[P]):
    """Newton steps by conjugate gradients, and the decision when Hessians are worth their cost.

    Parameters
    ----------
    objective : Objective
        The problem.
    monitor : Monitor
        Counts products.
    solve : callable
        The preconditioner.
    reductions : tuple of float
        Decrease of the logarithm of the squared residual by each product with this preconditioner, as far as known.
    """

    def __init__(
        self, objective: AdaptiveObjective[P], monitor: Monitor[P], solve: Solve, reductions: tuple[float, ...]
    ):
        self.objective = objective
        self.monitor = monitor
        self.solve = solve
        # decrease of the logarithm of the squared residual by each product, and the fraction left before the last
        # product
        self.reductions = list(reductions)
        self._residual_fraction = 1.0

    def build_at_once(self, point: P, scale: np.ndarray) -> bool:
        """Whether Hessians are expected to save time from the first step on, given the diagonal of the Hessian."""
        log_reduction = self._log_reduction(point, point.gap)
        cost = self.objective.first_hessian_cost + self.objective.cost_with_hessian(log_reduction)
        return cost < np.inf and self.objective.expected_products(scale, log_reduction) >= EXPECTED_SHARE * cost

    def step(self, point: P, tolerance: float) -> NewtonStep:
        """A Newton step with a residual of at most ``tolerance`` times the gradient, in the norm of the preconditioner.

        The step is left unfinished if Hessians become worth their cost.
        """
        objective = self.objective
        newton_step = conjugate_gradient(
            partial(objective.hessian_product, point),
            point.gradient,
            self.solve,
            objective.inner,
            tolerance=tolerance,
            max_products=CG_PRODUCTS,
            stop=partial(self._build_now, point, point.gap),
        )
        self.monitor.n_products += newton_step.n_products
        if newton_step.n_products > 0 and not newton_step.stopped:
            self._note(newton_step.residual_fraction)
        return newton_step

    def _build_now(self, point: P, gap: float, n_products: int, residual_fraction: float) -> bool:
        """Whether to build Hessians now, after ``n_products`` products that left this fraction of the gap."""
        if n_products == 0:  # a step takes at least one
            self._residual_fraction = residual_fraction
            return False
        self._note(residual_fraction)
        self._residual_fraction = residual_fraction
        cost = self.objective.first_hessian_cost
        if len(self.reductions) < max(SPENT_SHARE * cost, MIN_PRODUCTS):
            return False
        log_reduction = self._log_reduction(point, gap * residual_fraction)
        # later products reduce the residual less than the first ones
        last = self.reductions[len(self.reductions) // 2 :]
        rate = sum(last) / max(1, len(last))
        ahead = log_reduction / rate if rate > 0.0 else np.inf
        return ahead >= cost + self.objective.cost_with_hessian(log_reduction)

    def _note(self, fraction: float) -> None:
        """Record the fraction of the squared residual that is left after a product."""
        self.reductions.append(float(np.log(self._residual_fraction / fraction)) if fraction > 0.0 else np.inf)

    def _log_reduction(self, point: P, gap: float) -> float:
        """The remaining reduction of the logarithm of the gap."""
        objective, tol = self.objective, self.monitor.tol
        suffices = objective.smoothing_suffices(point, tol)
        goal = max(objective.goal(point, tol), self.monitor.target_gap) if suffices else 0.0
        return max(0.0, float(np.log(gap / goal))) if goal > 0.0 and gap > 0.0 else MAX_REDUCTION
