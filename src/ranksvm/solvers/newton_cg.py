"""Newton's method with preconditioned conjugate gradients, in the inner product of the objective."""

import threading
from collections.abc import Callable

import numpy as np

from ranksvm.solvers.line_search import take_step
from ranksvm.solvers.linear_systems import conjugate_gradient
from ranksvm.solvers.monitor import Monitor, SolverResult, Status, solve_sample
from ranksvm.solvers.newton import newton
from ranksvm.solvers.protocol import P, PreconditionedObjective

__all__ = ["newton_cg"]

# Conjugate gradients stop once the residual is the fraction FIRST_REDUCTION of the gradient or, if that is less,
# NEXT_REDUCTION times the fraction of the gradient that the last step left: more accuracy is useless because of the
# nonlinearity within the step.
FIRST_REDUCTION = 0.3
NEXT_REDUCTION = 0.5
# If C is so large that pairs cross their margins with every step, such inexact steps can alternate between the same
# points (a polynomial kernel of 30 documents at C = 10^4: 1000 iterations without convergence, now 43). From the
# FUTILE_STEPS-th step in a row without a smaller gap on, each such step multiplies the limit FIRST_REDUCTION by
# TIGHTEN, down to MIN_REDUCTION.
FUTILE_STEPS = 2
TIGHTEN = 0.3
MIN_REDUCTION = 1e-3
CG_PRODUCTS = 1000
# If a step takes at least FEW_PRODUCTS products, and these cost INVERSE_SHARE of the cost of an inverse of the Hessian,
# every later step computes the inverse. So do later steps once the products of all steps have cost as much as INVERSES
# inverses. On MQ2008 at gamma = 2^-1, C = 32 the squared hinge takes about 100 products instead of 600.
INVERSE_SHARE, INVERSES = 0.8, 5.0
FEW_PRODUCTS = 4
# The relaxed problem is solved to this relative gap: its solution is only a starting point.
RELAXED_TOL = 0.1
# It is solved only if steps begin to use inverses within this number of steps. After more steps, the point reached is
# as good a start. (MQ2008, hinge, CPU seconds with and without a relaxed problem: gamma = 2^-1, C = 8, after 6 steps,
# 13.5 and 10.0; gamma = 2^-3, C = 32, after more, 11.8 and 9.1; gamma = 2^-1, C = 64, after 2 steps, 12.5 and 23.6.)
RELAXED_STEPS = 3


def newton_cg(
    objective: PreconditionedObjective[P],
    start: np.ndarray,
    *,
    point: P | None = None,
    tol: float = 1e-4,
    max_iter: int = 1000,
    warm_start: bool = False,
    interrupted: threading.Event | None = None,
    label: str | None = "",
    target_gap: float = 0.0,
    solve_sampled: Callable[..., SolverResult] = newton,
    direct: bool | None = None,
    too_coarse: Callable[[P], bool] | None = None,
) -> SolverResult:
    """Minimize a strongly convex objective whose Hessian is known only through products.

    Each step solves Newton's system by conjugate gradients, with the preconditioner of the objective. The accuracy
    follows the quality of the last step (Eisenstat & Walker, SIAM J. Sci. Comput. 17, 1996). Steps that overshoot are
    shortened. There is no trust region: a step that is too long costs no product with the Hessian, only values along
    it.

    If the objective can invert its Hessian, and the products of a step cost about as much as the inverse, every later
    step computes the inverse. If round-off makes it too inaccurate, it preconditions conjugate gradients, for which one
    or two products then suffice. Whenever smoothing is reduced, an inverse also predicts the next solution. If this
    begins within the first steps, and the objective has a relaxed form, steps continue from the solution of the relaxed
    problem.

    Parameters
    ----------
    objective : Objective
        The problem.
    start : ndarray of float64
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
    solve_sampled : callable
        The solver of the problem on a sample: `newton`, or another one with its arguments.
    direct : bool, optional
        True if every step uses the inverse, False if none does; None: steps use it once it is expected to cost less.
    too_coarse : callable, optional
        Whether the data are rounded too coarsely to reach ``tol`` from a point: the solver then stops there, with
        `Status.PRECISION`.

    Returns
    -------
    SolverResult
        The best point, its certificate and the reason for stopping.
    """
    monitor = Monitor(objective, tol, max_iter, interrupted, label, target_gap)
    if point is None:
        cold = not warm_start
        point = monitor.evaluate(solve_sample(objective, start, tol, interrupted, solve_sampled) if cold else start)
    reduction = loosest = FIRST_REDUCTION
    best_gap, n_futile = float("inf"), 0
    inverts, stopped, width = bool(direct), False, objective.width
    may_relax = not warm_start
    while (status := monitor.record(point)) is None:
        if too_coarse is not None and too_coarse(point):
            status = Status.PRECISION
            break
        before, point = point, monitor.reduce_smoothing(point, inverts)
        if point is not before:  # the objective is less smoothed now, so that gaps are larger
            best_gap, loosest = float("inf"), FIRST_REDUCTION
        gap = point.gap
        if gap == 0.0:  # only less smoothing can improve it
            continue
        best_gap = min(best_gap, gap)
        cost = float("inf") if direct is False else objective.inverse_cost(point)
        inverts = inverts or stopped or monitor.n_products >= INVERSES * cost
        if inverts and may_relax and cost < float("inf") and monitor.n_iter <= RELAXED_STEPS:
            may_relax = False
            relaxed = objective.relaxed() if objective.width == width else None
            if relaxed is not None:
                easier = newton_cg(
                    relaxed,
                    start,
                    tol=RELAXED_TOL,
                    max_iter=max_iter,
                    interrupted=interrupted,
                    label=None if label is None else f"{label}relaxed: ",
                    direct=direct,
                )
                monitor.n_evaluations += easier.history.evaluations[-1]
                monitor.n_products += easier.history.hessian_products[-1]
                objective.release(point)
                point, best_gap, reduction = monitor.evaluate(easier.w), float("inf"), FIRST_REDUCTION
                continue
        inverse = objective.inverse(point) if inverts and cost < float("inf") else None
        # the products of this step may cost so much that later steps should compute the inverse
        most = CG_PRODUCTS if inverts else int(np.ceil(min(max(INVERSE_SHARE * cost, FEW_PRODUCTS), CG_PRODUCTS)))
        tolerance = max(reduction, 0.5 * float(np.sqrt(objective.goal(point, tol) / gap)))
        step = None if inverse is None else -inverse(point.gradient)
        if step is None or not objective.solves(point, step, tolerance):
            newton_step = conjugate_gradient(
                objective.products(point, tolerance),
                point.gradient,
                objective.preconditioner(point) if inverse is None else inverse,
                objective.inner,
                tolerance=tolerance,
                max_products=most,
                contracts=inverse is not None,
                first=step,
            )
            step = newton_step.step
            stopped = newton_step.n_products == most < CG_PRODUCTS and newton_step.residual_fraction > tolerance**2
            monitor.n_products += newton_step.n_products
        inverse = None  # its memory is free for the next one
        point, _ = take_step(objective, point, step, monitor)
        n_futile = n_futile + 1 if point.gap > best_gap else 0
        if n_futile >= FUTILE_STEPS:
            loosest = max(MIN_REDUCTION, TIGHTEN * loosest)
        reduction = min(loosest, NEXT_REDUCTION * float(np.sqrt(point.gap / gap)))
    return monitor.result(point, status)
