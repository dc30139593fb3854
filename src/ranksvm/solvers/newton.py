"""Newton's method for few variables: Hessians of a sample first, products with that of all data at the end."""

import threading
from collections.abc import Callable

import numpy as np

from ranksvm.objectives.approximate_inverse import by_cholesky
from ranksvm.objectives.protocol import HessianObjective, Point, SampledObjective
from ranksvm.solvers.conjugate_gradient import NewtonStep, conjugate_gradient
from ranksvm.solvers.line_search import take
from ranksvm.solvers.progress import Monitor
from ranksvm.solvers.result import SolverResult

__all__ = ["newton", "solve_sample"]

# The problem on a sample is solved until the gradient is this part of what it was: about where the other data would
# move the solution anyway.
SAMPLE_REDUCTION = 0.03
SAMPLE_ITERATIONS = 20
# Its smoothing is not reduced beyond what this tolerance asks for: a narrower ring has too few pairs of a sample.
SAMPLE_TOL = 1e-4
# A step that reduced the gradient, in the norm of the inverse Hessian, by less than this asks for a new Hessian.
GOOD_REDUCTION = 0.3
# Part of the gradient that a preconditioner from a sample leaves over, roughly.
SAMPLE_ACCURACY = 0.3
# A step by the sample's Hessian alone that ends with a slope above this part of its first shows that the sample misses
# some of the curvature: from then on conjugate gradients see to it.
TRUSTED_SLOPE = 0.5
CG_PRODUCTS = 20


def newton(
    objective: HessianObjective,
    start: np.ndarray,
    *,
    point: Point | None = None,
    tol: float = 1e-4,
    max_iter: int = 100,
    warm_start: bool = False,
    interrupted: threading.Event | None = None,
    label: str | None = "",
    enough: float = 0.0,
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
    start : ndarray of float64, shape (n,)
        Where to begin.
    point : Point, optional
        The evaluation at ``start``, where there is one.
    tol : float
        Relative duality gap to reach.
    max_iter : int
        Largest number of steps.
    warm_start : bool
        Whether ``start`` is near the solution already, so that the sample's problem need not be solved first.
    interrupted : threading.Event, optional
        Stops the run at the next evaluation when set.
    label : str or None
        Put before the lines of the log; None: there are none.
    enough : float
        A gap small enough for the objective as it is smoothed, once its smoothing suffices.

    Returns
    -------
    SolverResult
        The best point, its certificate and why it stopped.
    """
    if point is None and not warm_start:
        start = solve_sample(objective, start, tol, interrupted)
    monitor = Monitor(objective, tol, max_iter, interrupted, label, enough)
    point = monitor.evaluate(start) if point is None else point
    # The Hessian of an earlier solve, for other weights, is good for a first step.
    earlier = objective.earlier_hessian()
    solve = None if earlier is None else by_cholesky(earlier)
    # How far the last step reduced the gradient, in the norm of the inverse Hessian: small where the model is good.
    reduction, trusted, misled = 1.0, True, False
    while (status := monitor.record(point)) is None:
        point = monitor.reduce_smoothing(point)
        if objective.gap(point) == 0.0:  # nothing to do but to smooth it less
            continue
        gradient = point.gradient
        first = monitor.n_iter == 0 and solve is not None
        if fresh := solve is None or misled or (reduction > GOOD_REDUCTION and not first):
            solve = by_cholesky(objective.hessian(point))
            misled = False
        assert solve is not None
        # Conjugate gradients go no further than the last step's nonlinearity, or the goal, makes useful.
        goal = float(np.sqrt(objective.goal(point, tol) / objective.gap(point)))
        tolerance = max(SAMPLE_ACCURACY * min(reduction, 1.0), 0.5 * goal)
        exact = fresh and objective.hessian_fraction >= 1.0
        if exact or ((fresh or first) and trusted and tolerance >= SAMPLE_ACCURACY):
            step = -solve(gradient)
        else:
            inexact = _inexact_step(objective, point, solve, min(tolerance, 0.5 * SAMPLE_ACCURACY), monitor)
            step = inexact.step
            # a Hessian of so few rows that it hardly helps: better one of more of them
            misled = inexact.n_products == CG_PRODUCTS and objective.refine()
        before = objective.inner(gradient, solve(gradient))
        point, end = take(objective, point, step, monitor)
        trusted = trusted and abs(end) <= TRUSTED_SLOPE * abs(objective.inner(gradient, step))
        after = objective.inner(point.gradient, solve(point.gradient))
        reduction = float(np.sqrt(after / before)) if before > 0.0 else 0.0
    return monitor.result(point, status)


def solve_sample(
    objective: SampledObjective, start: np.ndarray, tol: float, interrupted: threading.Event | None
) -> np.ndarray:
    """A starting point: the solution of the problem on a sample, itself found from a smaller sample.

    Parameters
    ----------
    objective : Objective
        The problem.
    start : ndarray of float64
        What to return where there is no sample.
    tol : float
        Relative duality gap to reach, if it is not too small for a sample.
    interrupted : threading.Event or None
        Stops the run at the next evaluation when set.

    Returns
    -------
    ndarray of float64
        A vector of the whole problem.
    """
    sample = objective.sample()
    if sample is None:
        return start
    point = sample.evaluate(solve_sample(sample, np.zeros(sample.n_variables), tol, interrupted))
    result = newton(
        sample,
        point.w,
        point=point,
        tol=max(tol, SAMPLE_TOL),
        enough=SAMPLE_REDUCTION**2 * sample.gap(point),
        max_iter=SAMPLE_ITERATIONS,
        interrupted=interrupted,
        label="on a sample: ",
    )
    return objective.from_sample(sample, result.w)


def _inexact_step(
    objective: HessianObjective,
    point: Point,
    solve: Callable[[np.ndarray], np.ndarray],
    tolerance: float,
    monitor: Monitor,
) -> NewtonStep:
    """Conjugate gradients on the exact Hessian, preconditioned by an approximate one."""
    newton_step = conjugate_gradient(
        lambda v: objective.hessian_product(point, v),
        point.gradient,
        solve,
        objective.inner,
        tolerance=tolerance,
        max_products=CG_PRODUCTS,
    )
    monitor.n_products += newton_step.n_products
    return newton_step
