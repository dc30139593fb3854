"""Newton's method that builds an explicit Hessian only if conjugate gradients turn out to need many products."""

import threading
from collections.abc import Callable
from functools import partial

import numpy as np

from ranksvm.objectives.approximate_inverse import by_cholesky, by_diagonal
from ranksvm.objectives.protocol import AdaptiveObjective, Point
from ranksvm.solvers.conjugate_gradient import conjugate_gradient
from ranksvm.solvers.line_search import take
from ranksvm.solvers.newton import SAMPLE_ITERATIONS, SAMPLE_TOL
from ranksvm.solvers.progress import Monitor
from ranksvm.solvers.result import SolverResult
from ranksvm.solvers.tron import curvature_scale

__all__ = ["adaptive"]

# Conjugate gradients stop once the residual is this part of the gradient, or the part of it that the last step left,
# times NEXT_REDUCTION.
FIRST_REDUCTION = 0.3
NEXT_REDUCTION = 0.5
CG_PRODUCTS = 500
# The problem on a sample is solved until the gradient is this part of what it was: of as few rows a variable as a
# preconditioner needs, it says no more of the solution.
SAMPLE_REDUCTION = 0.2
# A Hessian is built once products have cost this part of what it costs, ...
SPENT_SHARE = 0.5
# ... and if this part of its cost in products, and the number that even a new Hessian leaves, seem to lie ahead. (On
# 300 features with real labels 1 and 1 took 1.95 times as long as Newton's method, these 1.5 times. The price: on
# 1,000 x 245 isotropic features at C = 100 these take 1.57 times as long as TRON, 1 and 1 took 1.06 times.)
AHEAD_SHARE = 0.7
UNAVOIDABLE_PRODUCTS = 5
# A Hessian that was built at the point itself is replaced by one of more rows after no fewer products than this.
LEAST_PRODUCTS = 20

Solve = Callable[[np.ndarray], np.ndarray]


def adaptive(
    objective: AdaptiveObjective,
    start: np.ndarray,
    *,
    point: Point | None = None,
    tol: float = 1e-4,
    max_iter: int = 1000,
    warm_start: bool = False,
    interrupted: threading.Event | None = None,
) -> SolverResult:
    """Minimise a strongly convex objective whose Hessian may or may not be worth building.

    How many products conjugate gradients take depends on the conditioning, which is unknown beforehand. They start with
    the diagonal as their preconditioner. Once the products since then have cost half as much as an explicit Hessian,
    and about as many seem to lie ahead as it costs, it is built and takes the place of the diagonal; later a new one
    takes its place by the same rule. As for any purchase that ends a rent, the work is then at most about twice that of
    the better choice made beforehand. A problem on a sample of the data is solved first, in the same way, and passes
    its solution and its preconditioner on.

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
    solve = None
    if point is None and not warm_start:
        start, solve = _solve_sample(objective, start, tol, interrupted)
    monitor = Monitor(objective, tol, max_iter, interrupted)
    point = monitor.evaluate(start) if point is None else point
    return _minimise(objective, point, solve, monitor)[0]


def _solve_sample(
    objective: AdaptiveObjective, start: np.ndarray, tol: float, interrupted: threading.Event | None
) -> tuple[np.ndarray, Solve | None]:
    """A starting point and a preconditioner, from the problem on a sample; the given start where there is none."""
    sample = objective.sample()
    if sample is None:
        return start, None
    start, solve = _solve_sample(sample, np.zeros(sample.n_variables), tol, interrupted)
    monitor = Monitor(sample, max(tol, SAMPLE_TOL), SAMPLE_ITERATIONS, interrupted, "on a sample: ")
    point = monitor.evaluate(start)
    monitor.enough = SAMPLE_REDUCTION**2 * sample.gap(point)
    result, solve = _minimise(sample, point, solve, monitor)
    return objective.from_sample(sample, result.w), solve


def _minimise(
    objective: AdaptiveObjective, point: Point, solve: Solve | None, monitor: Monitor
) -> tuple[SolverResult, Solve]:
    """Newton steps by conjugate gradients; the result, and the preconditioner at the end."""
    if solve is None:
        # the Hessian of an earlier solve, for other weights
        earlier = objective.earlier_hessian()
        solve = by_diagonal(curvature_scale(objective, point)) if earlier is None else by_cholesky(earlier)
    steps = _Steps(objective, monitor, solve, objective.gap(point))
    reduction = FIRST_REDUCTION
    while (status := monitor.record(point)) is None:
        point = monitor.reduce_smoothing(point)
        gap = objective.gap(point)
        if gap == 0.0:  # only less smoothing can improve it
            continue
        goal = float(np.sqrt(objective.goal(point, monitor.tol) / gap))
        point, _ = take(objective, point, steps.step(point, max(reduction, 0.5 * goal)), monitor)
        # a step is worth no more than its own nonlinearity lets it reach
        reduction = min(FIRST_REDUCTION, NEXT_REDUCTION * float(np.sqrt(objective.gap(point) / gap)))
    return monitor.result(point, status), steps.solve


class _Steps:
    """Newton steps by conjugate gradients, and the decision when to build a Hessian that preconditions them.

    Parameters
    ----------
    objective : Objective
        The problem.
    monitor : Monitor
        Counts products.
    solve : callable
        The first preconditioner.
    gap : float
        Duality gap where it is first used.
    """

    def __init__(self, objective: AdaptiveObjective, monitor: Monitor, solve: Solve, gap: float):
        self.objective = objective
        self.monitor = monitor
        self.solve = solve
        # products with the present preconditioner, and the gap where it was made
        self.n_products = 0
        self.first_gap = gap

    def step(self, point: Point, tolerance: float) -> np.ndarray:
        """A Newton step: a residual of ``tolerance`` times the gradient, in the norm of the preconditioner."""
        objective, newton_step, patience = self.objective, None, 0.0
        gap = objective.gap(point)
        while True:
            newton_step = conjugate_gradient(
                partial(objective.hessian_product, point),
                point.gradient,
                self.solve,
                objective.inner,
                tolerance=tolerance,
                max_products=CG_PRODUCTS,
                begin=newton_step,
                stop=partial(self._pays, point, gap, patience),
            )
            self.monitor.n_products += newton_step.n_products
            self.n_products += newton_step.n_products
            if not newton_step.stopped:
                return newton_step.step
            # A Hessian of so few rows that it hardly helps: better one of more of them.
            if patience > 0.0 and not objective.refine():
                patience = np.inf
                continue
            self.solve = by_cholesky(objective.hessian(point))
            self.n_products, self.first_gap, patience = 0, gap, LEAST_PRODUCTS

    def _pays(self, point: Point, gap: float, patience: float, n_products: int, left: float) -> bool:
        """Whether it is time to build a Hessian, after so many products for a step, that left so much of the gap."""
        cost = self.objective.hessian_cost
        spent = self.n_products + n_products
        enough = AHEAD_SHARE * cost + UNAVOIDABLE_PRODUCTS
        return spent >= max(SPENT_SHARE * cost, patience) and self._ahead(point, gap * left, spent) >= enough

    def _ahead(self, point: Point, gap: float, spent: int) -> float:
        """How many products are still to come, if the gap continues to decrease at the same rate."""
        if gap >= self.first_gap or not self.objective.smoothing_suffices(point, self.monitor.tol):
            return np.inf
        goal = max(self.objective.goal(point, self.monitor.tol), self.monitor.enough)
        if goal >= gap:
            return 0.0
        return spent * np.log(gap / goal) / np.log(self.first_gap / gap) if goal > 0.0 else np.inf
