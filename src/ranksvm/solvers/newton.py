"""Newton's method for few variables: Hessians of a sample first, all of the data at the end."""

import threading
from collections.abc import Callable

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from ranksvm.objectives.protocol import Objective, Point
from ranksvm.solvers.conjugate_gradient import conjugate_gradient
from ranksvm.solvers.progress import Monitor
from ranksvm.solvers.result import SolverResult

__all__ = ["newton"]

# The sample is solved to where the rest of the data would move the solution anyway.
WARM_START_REDUCTION = 0.03
WARM_START_ITERATIONS = 12
# A step whose gradient, in the norm of the inverse Hessian, fell by less than this asks for a new Hessian.
GOOD_REDUCTION = 0.3
# Accept a step when the slope at its end is no more than this part of that at its start.
SLOPE = 0.9
LINE_SEARCH_SLOPE = 0.2
LINE_SEARCH_TRIALS = 12


def newton(
    objective: Objective,
    w: np.ndarray,
    *,
    tol: float = 1e-4,
    max_iter: int = 100,
    warm_start: bool = False,
    interrupted: threading.Event | None = None,
) -> SolverResult:
    """Minimise a strongly convex objective of few variables.

    Where the data are large, the explicit Hessian is that of a sample and preconditions conjugate gradients on the
    exact one, which then take one or two products; the sample's own problem, solved first, is the starting point.
    Where they are small, or few variables make it cheap, the Hessian is exact and each step is one factorisation.
    Steps are accepted by the slope at their end, not by the decrease of the objective, which near the optimum is less
    than its round-off.

    Parameters
    ----------
    objective : Objective
        The problem.
    w : ndarray of float64, shape (n,)
        Starting point.
    tol : float
        Relative duality gap to reach.
    max_iter : int
        Largest number of steps.
    warm_start : bool
        Whether ``w`` is near the solution already, so that the sample's problem need not be solved first.
    interrupted : threading.Event, optional
        Stops the run at the next evaluation when set.

    Returns
    -------
    SolverResult
        The best point, its certificate and why it stopped.
    """
    if not warm_start:
        w = _solve_sample(objective, w, interrupted)
    monitor = Monitor(objective, tol, max_iter, interrupted)
    point = objective.evaluate(w)
    monitor.n_evaluations += 1
    exact = objective.hessian_fraction >= 1.0
    solve: Callable[[np.ndarray], np.ndarray] | None = None
    reduction = 1.0
    while (status := monitor.record(point)) is None:
        gradient = point.gradient
        if solve is None or exact or reduction > GOOD_REDUCTION:
            solve = _factorise(objective.hessian(point))
        if exact:
            step = -solve(gradient)
        else:
            step, n_products = _inexact_step(objective, point, solve, reduction, tol)
            monitor.n_products += n_products
        size_before = float(gradient @ solve(gradient))
        point = _take(objective, point, step, monitor)
        size_after = float(point.gradient @ solve(point.gradient))
        reduction = np.sqrt(size_after / size_before) if size_before > 0 else 0.0
    return monitor.result(point, status)


def _solve_sample(objective: Objective, w: np.ndarray, interrupted: threading.Event | None) -> np.ndarray:
    """A starting point: the solution of the problem on a sample, itself found from a smaller sample."""
    sample = objective.sample()
    if sample is None:
        return w
    w = _solve_sample(sample, w, interrupted)
    start = sample.evaluate(w)
    tol = WARM_START_REDUCTION**2 * sample.gap(start) / start.value
    r= newton(sample, w, tol=tol, max_iter=WARM_START_ITERATIONS, warm_start=True, interrupted=interrupted)
    return r.w


def _factorise(hessian: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    factor = cho_factor(hessian, lower=True, overwrite_a=True, check_finite=False)
    return lambda vector: cho_solve(factor, vector, check_finite=False)


def _inexact_step(
    objective: Objective, point: Point, solve: Callable, reduction: float, tol: float
) -> tuple[np.ndarray, int]:
    """Conjugate gradients as far as is useful: no further than the last step's nonlinearity, or the goal, allows."""
    goal = np.sqrt(0.5 * tol * point.value / objective.gap(point))
    tolerance = max(0.3 * min(reduction, 1.0), 0.5 * goal)
    if tolerance >= 0.3:
        # The preconditioner alone is that accurate.
        return -solve(point.gradient), 0
    newton_step = conjugate_gradient(
        lambda v: objective.hessian_product(point, v),
        point.gradient,
        solve,
        tolerance=tolerance,
        max_products=20,
    )
    return newton_step.step, newton_step.n_products


def _take(objective: Objective, point: Point, step: np.ndarray, monitor: Monitor) -> Point:
    """The point after a step, shortened if it overshoots."""
    trial = objective.evaluate(point.w + step, point)
    monitor.n_evaluations += 1
    slope, end = float(point.gradient @ step), float(trial.gradient @ step)
    if abs(end) <= SLOPE * abs(slope) or objective.gap(trial) < objective.gap(point):
        objective.release(point)
        return trial
    along = objective.line(point, trial)
    low, low_slope, high, high_slope = 0.0, slope, 1.0, end
    alpha = 0.5
    for _ in range(LINE_SEARCH_TRIALS):
        # regula falsi on the slope, kept away from the ends
        alpha = low + (high - low) * min(max(low_slope / (low_slope - high_slope), 0.1), 0.9)
        _, at = along(alpha)
        if abs(at) <= LINE_SEARCH_SLOPE * abs(slope):
            break
        if at < 0:
            low, low_slope = alpha, at
        else:
            high, high_slope = alpha, at
    new = objective.between(point, trial, alpha)
    monitor.n_evaluations += 1
    objective.release(point)
    objective.release(trial)
    return new
