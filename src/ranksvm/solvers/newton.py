"""Newton's method for few variables: Hessians of a sample first, products with the Hessian of all data at the end."""

import threading
from collections.abc import Callable
from functools import partial

import numpy as np

from ranksvm.solvers.line_search import take_step
from ranksvm.solvers.linear_systems import NewtonStep, by_cholesky, by_secant, conjugate_gradient
from ranksvm.solvers.monitor import Monitor, SolverResult, solve_sample
from ranksvm.solvers.protocol import HessianObjective, P

__all__ = ["by_hessians", "newton"]

# A new Hessian is built after a step that leaves more than GOOD_REDUCTION of the gradient, in the norm of the inverse
# Hessian, once the products since the last Hessian have cost SPENT_SHARE of the cost of a Hessian. After a step that
# leaves more than POOR_REDUCTION, a new one is built at once. (10,000 x 46: 10 products and one Hessian take 0.9 times
# as long as 6 products and two Hessians.)
GOOD_REDUCTION, POOR_REDUCTION = 0.3, 0.6
SPENT_SHARE = 0.5
# A new Hessian is also built after a first step, with the Hessian of an earlier solve, that leaves more than OUTDATED
# of the gap, once the products since that Hessian have cost as much as a new one. (Paths of 21 values of C, ms, without
# and with this rule: MQ2008 10.9 and 9.2, MQ2007 28.5 and 25.8, OHSUMED 7.6 and 7.7, with the logistic loss MQ2008 22.3
# and 14.8. With the rule, but without counting products: 10.5, 30.0 and 7.9.)
OUTDATED = 0.3
# Approximate fraction of the gradient that remains after a step with a preconditioner from a sample.
SAMPLE_ACCURACY = 0.3
# If a step with only the sample's Hessian ends with a slope above this multiple of the initial slope, the sample misses
# some of the curvature: from then on conjugate gradients are used.
TRUSTED_SLOPE = 0.5
CG_PRODUCTS = 20
# Minimum number of products per step, however good the preconditioner is.
FEW_PRODUCTS = 2
# Products in float32 suffice for conjugate gradients with at least this tolerance, unless a step was poor.
SINGLE_TOLERANCE = 0.01


def newton(
    objective: HessianObjective[P],
    start: np.ndarray,
    *,
    point: P | None = None,
    tol: float = 1e-4,
    max_iter: int = 100,
    warm_start: bool = False,
    interrupted: threading.Event | None = None,
    label: str | None = "",
    target_gap: float = 0.0,
) -> SolverResult:
    """Minimize a strongly convex objective of few variables.

    For large data, the explicit Hessian is computed from a sample and preconditions conjugate gradients on the exact
    Hessian, which then need one or two products. If they need so many that Hessians of more rows would have cost less,
    such Hessians are built from then on. The solution of the sample's problem is the starting point. For small data, or
    few variables, the Hessian is exact and each step is one factorization. Between two Hessians the preconditioner
    learns the curvature along the last step. Steps are accepted by the slope at their end, not by the decrease of the
    objective, which near the optimum is less than its round-off.

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
    label : str or None
        Put before the lines of the log; None: no log lines.
    target_gap : float
        The solver stops at this duality gap of the smoothed objective, once the smoothing is small enough for ``tol``.

    Returns
    -------
    SolverResult
        The best point, its certificate and the reason for stopping.
    """
    if point is None and not warm_start:
        start = solve_sample(objective, start, tol, interrupted, newton)
    monitor = Monitor(objective, tol, max_iter, interrupted, label, target_gap)
    point = monitor.evaluate(start) if point is None else point
    # the Hessian of an earlier solve, such as for another C, is good enough for a first step
    return by_hessians(objective, point, monitor, objective.earlier_hessian())


def by_hessians(
    objective: HessianObjective[P],
    point: P,
    monitor: Monitor[P],
    earlier: np.ndarray | None = None,
    trusted: bool = True,
) -> SolverResult:
    """The steps of `newton` from some point.

    Parameters
    ----------
    objective : Objective
        The problem.
    point : Point
        The starting point, not recorded yet.
    monitor : Monitor
        The trace so far.
    earlier : ndarray of float64, shape (n_variables, n_variables), optional
        A Hessian for the first step, with the curvature at another point.
    trusted : bool
        Whether steps may use an approximate Hessian alone; otherwise it preconditions conjugate gradients.

    Returns
    -------
    SolverResult
        As `newton` returns it.
    """
    solve = None if earlier is None else by_cholesky(earlier)
    precondition = solve
    solved: np.ndarray | None = None  # the inverse of the last Hessian times the gradient, if known
    # Reduction of the gradient by the last step, in the norm of the inverse Hessian: small if the model is good.
    reduction, rebuild_hessian = 1.0, False
    n_avoidable = 0  # products that Hessians of more rows might have saved
    trusts_single = True  # whether products in float32 may suffice
    first = earlier is not None  # whether the next step is the first, with an earlier Hessian
    while (status := monitor.record(point)) is None:
        before, point = point, monitor.reduce_smoothing(point)
        if point is not before:  # the objective is less smoothed now, so that its curvature differs
            precondition, solved = solve, None
        gap = point.gap
        if gap == 0.0:  # only less smoothing can improve it
            continue
        gradient = point.gradient
        spent, cost = objective.products_since_hessian, objective.hessian_cost
        enough = spent >= SPENT_SHARE * cost or reduction > POOR_REDUCTION
        outdated = reduction > GOOD_REDUCTION and enough and not first
        if fresh := solve is None or rebuild_hessian or cost == 0.0 or outdated:
            solve = precondition = by_cholesky(objective.hessian(point))
            rebuild_hessian, objective.products_since_hessian, solved = False, 0, None
        assert solve is not None
        assert precondition is not None
        solved = solve(gradient) if solved is None else solved
        # Conjugate gradients stop when more accuracy would not help, given the last step's nonlinearity or the goal.
        goal = float(np.sqrt(objective.goal(point, monitor.tol) / gap))
        tolerance = max(SAMPLE_ACCURACY * min(reduction, 1.0), 0.5 * goal)
        exact, single = fresh and objective.hessian_fraction >= 1.0, False
        if exact or ((fresh or first) and trusted and tolerance >= SAMPLE_ACCURACY):
            step = -solved
        else:
            tolerance = min(tolerance, 0.5 * SAMPLE_ACCURACY)
            single = trusts_single and tolerance >= SINGLE_TOLERANCE
            inexact = _inexact_step(objective, point, precondition, tolerance, not single, monitor)
            step = inexact.step
            objective.products_since_hessian += inexact.n_products
            n_avoidable += max(0, inexact.n_products - FEW_PRODUCTS)
            # this Hessian has too few rows or digits to help, or one with more would have saved as much as it costs
            worth_refining = n_avoidable >= objective.refined_cost
            if rebuild_hessian := (worth_refining or inexact.n_products == CG_PRODUCTS) and objective.refine():
                n_avoidable = 0
        w, slope_before = point.w, objective.inner(gradient, solved)
        point, end_slope = take_step(objective, point, step, monitor)
        rebuild_hessian = rebuild_hessian or (first and spent >= cost and point.gap > OUTDATED * gap)
        first = False
        precondition = by_secant(solve, point.w - w, point.gradient - gradient, objective.inner)
        trusted = trusted and abs(end_slope) <= TRUSTED_SLOPE * abs(objective.inner(gradient, step))
        solved = solve(point.gradient)
        slope_after = objective.inner(point.gradient, solved)
        reduction = float(np.sqrt(slope_after / slope_before)) if slope_before > 0.0 else 0.0
        if reduction > POOR_REDUCTION:  # products in float32 may lack the digits that this step needs
            trusts_single = trusts_single and not single
            rebuild_hessian = objective.refine() if exact else rebuild_hessian
    return monitor.result(point, status)


def _inexact_step(
    objective: HessianObjective[P],
    point: P,
    precondition: Callable[[np.ndarray], np.ndarray],
    tolerance: float,
    double: bool,
    monitor: Monitor[P],
) -> NewtonStep:
    """Conjugate gradients on the exact Hessian, preconditioned by an approximate one."""
    newton_step = conjugate_gradient(
        partial(objective.hessian_product, point, double=double),
        point.gradient,
        precondition,
        objective.inner,
        tolerance=tolerance,
        max_products=CG_PRODUCTS,
    )
    monitor.n_products += newton_step.n_products
    return newton_step
