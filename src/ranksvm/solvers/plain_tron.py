"""TRON as it was published for RankSVM, with its stopping rule: to obtain published models, not to be fast."""

import threading
from functools import partial
from typing import Any

import numpy as np

from ranksvm.solvers.linear_systems import NewtonStep, conjugate_gradient
from ranksvm.solvers.monitor import Monitor, SolverResult, Status
from ranksvm.solvers.protocol import Objective, P

__all__ = ["plain_tron"]

# From the published code: the tolerance of conjugate gradients, ratios of actual to predicted decrease, factors of the
# radius.
CG_TOLERANCE = 0.1
ACCEPT, POOR, GOOD = 1e-4, 0.25, 0.75
SHRINK, HALVE, GROW = 0.25, 0.5, 4.0
# The published code has no limit. This one is never reached on the data sets of its publication.
CG_PRODUCTS = 10_000
# A smaller decrease is no progress within the precision of the objective.
ROUND_OFF = 1e-12


def plain_tron(
    objective: Objective[P],
    start: np.ndarray,
    *,
    point: P | None = None,
    tol: float = 1e-3,
    max_iter: int = 1000,
    interrupted: threading.Event | None = None,
) -> SolverResult:
    """Minimize until the norm of the gradient is at most ``tol`` times its norm at 0.

    The method is from Lin, Weng & Keerthi, "Trust region Newton method for large-scale logistic regression", JMLR 9
    (2008), Algorithms 1 and 2, as Lee & Lin (2014) use it for RankSVM. It has conjugate gradients without a
    preconditioner, and a trust region in the Euclidean norm; steps that are too long are rejected. `tron` departs from
    this to save work, so its iterates, and the models at which a loose rule stops, differ.

    Parameters
    ----------
    objective : Objective
        The problem, differentiable.
    start : ndarray of float64, shape (n,)
        The starting point.
    point : Point, optional
        The evaluation at ``start``, if there is one.
    tol : float
        Norm of the gradient to reach, relative to its norm at 0.
    max_iter : int
        Largest number of accepted steps.
    interrupted : threading.Event, optional
        Stops the run at the next iterate when set.

    Returns
    -------
    SolverResult
        The last point, its certificate and the reason for stopping.
    """
    monitor = Monitor(objective, 0.0, max_iter, interrupted)
    if point is None:
        point = monitor.evaluate(start)
    at_zero = monitor.evaluate(np.zeros_like(start)) if np.any(point.w) else point
    target_norm = tol * _norm(objective, at_zero.gradient)
    radius = _norm(objective, point.gradient)
    while True:
        status = monitor.record(point)
        if _norm(objective, point.gradient) <= target_norm:
            status = Status.GRADIENT
        if status is not None:
            return monitor.result(point, status)
        before = point
        point, radius = _accepted_step(objective, point, radius, monitor)
        if point is before:
            return monitor.result(point, Status.PRECISION)
        objective.release(before)


def _accepted_step(objective: Objective[P], point: P, radius: float, monitor: Monitor[P]) -> tuple[P, float]:
    """The point after the first step that is accepted, and the next radius; the same point if round-off forbids one."""
    while True:
        newton_step = conjugate_gradient(
            partial(objective.hessian_product, point),
            point.gradient,
            np.copy,
            objective.inner,
            tolerance=CG_TOLERANCE,
            max_products=CG_PRODUCTS,
            radius=radius,
        )
        monitor.n_products += newton_step.n_products
        trial = monitor.evaluate(point.w + newton_step.step, point)
        slope = objective.inner(point.gradient, newton_step.step)
        # the decrease of the quadratic model, from the residual
        predicted = -0.5 * (slope - objective.inner(newton_step.residual, newton_step.step))
        actual = point.value - trial.value
        if monitor.n_iter == 0:
            radius = min(radius, _norm(objective, newton_step.step))
        radius = _new_radius(objective, radius, newton_step, slope, actual, predicted)
        if actual > ACCEPT * predicted:
            return trial, radius
        within_digits = max(abs(actual), abs(predicted)) <= ROUND_OFF * abs(point.value)
        if within_digits or max(actual, predicted) <= 0.0:
            return point, radius


def _new_radius(
    objective: Objective[Any], radius: float, newton_step: NewtonStep, slope: float, actual: float, predicted: float
) -> float:
    length = _norm(objective, newton_step.step)
    # the lowest point of the parabola through both values with this slope
    bend = -actual - slope
    lowest = (GROW if bend <= 0.0 else max(SHRINK, -0.5 * slope / bend)) * length
    if actual < ACCEPT * predicted:
        return min(max(lowest, SHRINK * length), HALVE * radius)
    if actual < POOR * predicted:
        return max(SHRINK * radius, min(lowest, HALVE * radius))
    if actual < GOOD * predicted:
        return max(SHRINK * radius, min(lowest, GROW * radius))
    return max(radius, min(lowest, GROW * radius))


def _norm(objective: Objective[Any], v: np.ndarray) -> float:
    return float(np.sqrt(objective.inner(v, v)))
