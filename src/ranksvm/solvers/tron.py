"""TRON: trust-region Newton without a Hessian, for many variables or sparse data."""

import threading
from functools import partial

import numpy as np

from ranksvm.solvers.line_search import shorten
from ranksvm.solvers.linear_systems import NewtonStep, by_diagonal, conjugate_gradient
from ranksvm.solvers.monitor import History, Monitor, SolverResult, Status, relative_gap
from ranksvm.solvers.protocol import DiagonalObjective, P, Point

__all__ = ["curvature_scale", "tron"]

# Ratios of actual to predicted decrease, and factors of the radius, as in Lin & Moré.
ACCEPT, POOR, GOOD = 1e-4, 0.25, 0.75
SHRINK, HALVE, GROW = 0.25, 0.5, 4.0
CG_TOLERANCE = 0.1
CG_PRODUCTS = 500
# The variables are "many" if their number is at least this multiple of the number of directions of curvature.
MANY_VARIABLES = 4
# Continuation: the problem is solved for a smaller C until the gap is STAGE_TOL times the objective; the next C is
# STAGE_FACTOR times as large. With the first C, the gap at the start is about as large as the objective. There is no
# continuation if the gap at the start is less than STAGES_FROM times the objective. (Synthetic text,
# C = 128, 39 pairs a document: 1,000 x 47,000 took 64 products instead of 618, 5,000 x 50,000 took 222 instead of
# 1,796; word pairs of 20,360 x 279,643, 853 instead of 1,998. At C = 1, where the gap at the start is 100 to 1,000
# times the objective, it takes as many as a cold start, or somewhat more.)
STAGE_TOL, STAGE_FACTOR, STAGES_FROM = 0.1, 4.0, 1e3
# The number of products still needed cannot be predicted from fewer products than this.
MIN_PRODUCTS = 8
# The method is also too slow if this part of the allowed number of products has not reduced the gap. (Text of 1,000 x
# 47,000, one list of two levels, C = 128: the relative gap is 0.02 after 20 products, and larger during the next 300.)
STALLED_SHARE = 1 / 3
# If the relative change of the objective is below this, its decrease is computed from the slopes.
SMALL_CHANGE = 1e-6


def tron(
    objective: DiagonalObjective[P],
    start: np.ndarray,
    *,
    point: P | None = None,
    tol: float = 1e-4,
    max_iter: int = 1000,
    continuation: bool = False,
    interrupted: threading.Event | None = None,
    label: str | None = "",
    most_products: float = float("inf"),
) -> SolverResult:
    """Minimize a strongly convex objective of any number of variables.

    The method is from Lin, Weng & Keerthi, "Trust region Newton method for large-scale logistic regression", JMLR 9
    (2008), as Lee & Lin (2014) use it for RankSVM. The diagonal of the Hessian preconditions its conjugate gradients
    (Steihaug), and the norm of this preconditioner also measures the trust region (Hsia, Chiang & Lin, 2018). The
    method here departs from these publications in three points:

    1. If there are many more variables than pairs, the norm is Euclidean: the Hessian is the identity except in
       few directions, which conjugate gradients find one by one. With the diagonal, the preconditioned Hessian would
       have many more distinct eigenvalues (on word pairs, with the hinge loss, 18 products against 1283).
       Otherwise features of very different size require the diagonal.
    2. The diagonal is computed at the start, for the whole run. If it were computed again for every step, it
       would change with the violating pairs, and so would the length of the same step: on nearly separable data the
       trust region then shrank to nothing.
    3. A step that is too long is not rejected but shortened to about the lowest point on its way, which is computed
       from the scores alone, so that no conjugate gradients are wasted.

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
    continuation : bool
        Whether to begin with smaller C if that saves time; meant for a start at 0.
    interrupted : threading.Event, optional
        Stops the run at the next evaluation when set.
    label : str or None
        Put before the lines of the log; None: no log lines.
    most_products : float
        The method stops, with `Status.MAX_ITERATIONS`, once it is expected to need more than this number of further
        products with the Hessian.

    Returns
    -------
    SolverResult
        The best point, its certificate and the reason for stopping.
    """
    monitor = Monitor(objective, tol, max_iter, interrupted, label)
    point = monitor.evaluate(start) if point is None else point
    C, radius = objective.C, None
    stages = _continuation_stages(objective, point) if continuation else []
    # the trace records the problem itself, also during a stage
    while (status := monitor.record(point)) is None:
        if _too_slow(monitor.history, tol, most_products):
            status = Status.MAX_ITERATIONS
            break
        while stages and _nearly_solved(objective, point, stages[0]):
            stages, radius = stages[1:], None
            objective.reweight(C, point)
        if not stages:
            point = monitor.reduce_smoothing(point)
            if point.gap == 0.0:  # only less smoothing can improve it
                continue
        if radius is None:
            # One norm for the whole stage: if it changed with the violating pairs, so would the meaning of the radius.
            precondition = by_diagonal(curvature_scale(objective, point))
            radius = float(np.sqrt(objective.inner(point.gradient, precondition(point.gradient))))
        newton_step = conjugate_gradient(
            partial(objective.hessian_product, point),
            point.gradient,
            precondition,
            objective.inner,
            tolerance=CG_TOLERANCE,
            max_products=CG_PRODUCTS,
            radius=radius,
        )
        monitor.n_products += newton_step.n_products
        point, radius = _take(objective, point, newton_step, radius, monitor)
        if stages:
            objective.reweight(C, point)
    return monitor.result(point, status)


def _too_slow(history: History, tol: float, most_products: float) -> bool:
    """Whether the gap falls too slowly to meet ``tol`` with ``most_products`` further products."""
    done = history.hessian_products[-1]
    if done < MIN_PRODUCTS or most_products == np.inf:
        return False
    pairs = zip(history.duality_gap, history.objective, strict=True)
    gaps = np.array([relative_gap(gap, value) for gap, value in pairs])
    if gaps[-1] <= tol:  # only round-off is in the way
        return False
    if gaps[-1] >= gaps[0] or done - history.hessian_products[int(np.argmin(gaps))] > STALLED_SHARE * most_products:
        return True
    return bool(done * np.log(gaps[-1] / tol) > most_products * np.log(gaps[0] / gaps[-1]))


def _continuation_stages(objective: DiagonalObjective[P], point: P) -> list[float]:
    """The values of C to solve for before the objective's own, ascending; none if a cold start is as good."""
    value, gap = objective.certificate(point)
    if objective.n_variables <= objective.curvature_rank or not np.inf > gap >= STAGES_FROM * value > 0.0:
        return []
    n_stages = int(np.log(gap / value) / np.log(STAGE_FACTOR))
    return [objective.C / STAGE_FACTOR**n for n in range(n_stages, 0, -1)]


def _nearly_solved(objective: DiagonalObjective[P], point: P, C: float) -> bool:
    """Switch the objective to a smaller C; return whether a point is good enough for it."""
    objective.reweight(C, point)
    return point.gap <= STAGE_TOL * point.value


def _take(
    objective: DiagonalObjective[P], point: P, newton_step: NewtonStep, radius: float, monitor: Monitor[P]
) -> tuple[P, float]:
    """The point after a step, shortened if it is too long, and the next radius."""
    step = newton_step.step
    trial = monitor.evaluate(point.w + step, point)
    slope, end_slope = objective.inner(point.gradient, step), objective.inner(trial.gradient, step)
    # the decrease of the quadratic model, -(g'd + 1/2 d'Hd), from the residual
    promised = -0.5 * (slope - objective.inner(newton_step.residual, step))
    # a predicted decrease that is round-off is not worth a step
    ratio = _decrease(point, trial, slope, end_slope) / promised if promised > 0.0 else 0.0
    if ratio > ACCEPT or slope >= 0.0 or end_slope <= 0.0:
        objective.release(point)
        return trial, _new_radius(radius, newton_step.length, ratio, newton_step.on_boundary)
    # Too long: going back to the lowest point reads only the scores; rejecting the step would waste its products.
    return shorten(objective, point, trial, slope, end_slope, monitor), radius


def curvature_scale(objective: DiagonalObjective[P], point: P) -> np.ndarray:
    """Diagonal preconditioner at the starting point.

    Parameters
    ----------
    objective : Objective
        The problem.
    point : Point
        The point.

    Returns
    -------
    ndarray of float64, shape (n_variables,) or (1,)
        The diagonal of the Hessian; 1 if the Hessian is the identity except in few directions.
    """
    if objective.n_variables > MANY_VARIABLES * objective.curvature_rank:
        return np.ones(1)
    return objective.hessian_diagonal(point)


def _decrease(point: Point, trial: Point, slope: float, end_slope: float) -> float:
    decrease = point.value - trial.value
    if abs(decrease) > SMALL_CHANGE * abs(point.value):
        return decrease
    # The trapezium rule on the slope: exact if no pair crosses its margin, and free of cancellation.
    return -0.5 * (slope + end_slope)


def _new_radius(radius: float, length: float, ratio: float, on_boundary: bool) -> float:
    if ratio < POOR:
        return max(SHRINK * radius, min(HALVE * length, radius))
    if ratio > GOOD and on_boundary:
        return GROW * radius
    return radius
