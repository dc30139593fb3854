"""Newton's method over a cone: each step minimizes a quadratic model over it."""

import threading
from functools import partial
from typing import Generic

import numpy as np

from ranksvm.solvers.cone_models import ConeModel, DiagonalModel, HessianModel
from ranksvm.solvers.line_search import take_step
from ranksvm.solvers.model_on_cone import minimize_model
from ranksvm.solvers.monitor import Monitor, SolverResult, solve_sample
from ranksvm.solvers.newton import GOOD_REDUCTION, POOR_REDUCTION, SPENT_SHARE
from ranksvm.solvers.protocol import ConstrainedObjective, P
from ranksvm.solvers.tron import curvature_scale

__all__ = ["projected_newton"]

# A model is solved until its gap, relative to the gap of the objective, is the square of FIRST_REDUCTION or, if that is
# less, the square of NEXT_REDUCTION times the fraction of the gradient that the last step left. More accuracy is
# useless because of the nonlinearity within the step.
FIRST_REDUCTION = 0.3
NEXT_REDUCTION = 0.5
CG_PRODUCTS = 500
# If a step takes this many products with the Hessian of a sample as preconditioner, a Hessian of more rows replaces it.
MANY_PRODUCTS = 20
# A step with the Hessian of a sample alone leaves about this fraction of the gradient. A step that should leave less
# takes products with the Hessian of all rows.
SAMPLE_ACCURACY = 0.3


def projected_newton(
    objective: ConstrainedObjective[P],
    start: np.ndarray,
    *,
    point: P | None = None,
    tol: float = 1e-4,
    max_iter: int = 1000,
    warm_start: bool = False,
    interrupted: threading.Event | None = None,
    label: str | None = "",
    target_gap: float = 0.0,
) -> SolverResult:
    """Minimize a strongly convex objective over a cone.

    The step from a point is an approximate minimizer of the quadratic model over the cone (`minimize_model`), so it is
    a direction of descent within the cone, and is shortened like any other. Near the solution the weights at their
    bounds stay the same, and the steps are Newton steps in the other weights (Lin & Moré, "Newton's method
    for large bound-constrained optimization problems", SIAM J. Optim. 9, 1999; Lee, Sun & Saunders, SIAM J. Optim. 24,
    2014).

    With explicit Hessians of all rows a model costs no pass over the data; Hessians of a sample precondition products
    with the Hessian of all rows. Without explicit Hessians the diagonal preconditions.

    Parameters
    ----------
    objective : ConstrainedObjective
        The problem.
    start : ndarray of float64, shape (n,)
        The starting point, which is projected.
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
        start = solve_sample(objective, start, tol, interrupted, projected_newton)
    monitor = Monitor(objective, tol, max_iter, interrupted, label, target_gap)
    point = monitor.evaluate(start) if point is None else point
    steps = (_SteppingByHessian if objective.hessian_fraction > 0.0 else _SteppingByProducts)(objective, monitor)
    reduction = 1.0
    while (status := monitor.record(point)) is None:
        point = monitor.reduce_smoothing(point)
        gap = point.gap
        if gap == 0.0:  # only less smoothing can improve it
            continue
        goal = float(np.sqrt(objective.goal(point, tol) / gap))
        step = steps.step(point, gap, max(min(FIRST_REDUCTION, NEXT_REDUCTION * reduction), 0.5 * goal), reduction)
        point, _ = take_step(objective, point, step, monitor)
        reduction = float(np.sqrt(point.gap / gap))
    return monitor.result(point, status)


class _SteppingByProducts(Generic[P]):
    """Steps by products with the Hessian, preconditioned by its diagonal at the first point."""

    def __init__(self, objective: ConstrainedObjective[P], monitor: Monitor[P]):
        self.objective = objective
        self.monitor = monitor
        self.approximate_hessian: ConeModel | None = None

    def step(self, point: P, gap: float, tolerance: float, reduction: float) -> np.ndarray:
        """A step after which the gap of the model is at most ``tolerance**2`` times the gap."""
        if self.approximate_hessian is None:
            self.approximate_hessian = DiagonalModel(self.objective.cone, curvature_scale(self.objective, point))
        return self._by_products(point, self.approximate_hessian, tolerance**2 * gap)

    def _by_products(self, point: P, approximate_hessian: ConeModel, target_gap: float) -> np.ndarray:
        found = minimize_model(
            partial(self.objective.hessian_product, point),
            point.w,
            point.gradient,
            self.objective.cone,
            approximate_hessian,
            target_gap=target_gap,
            max_products=CG_PRODUCTS,
        )
        self.monitor.n_products += found.n_products
        return found.step


class _SteppingByHessian(_SteppingByProducts[P]):
    """Steps with an explicit Hessian, which is used for several steps."""

    def __init__(self, objective: ConstrainedObjective[P], monitor: Monitor[P]):
        super().__init__(objective, monitor)
        # the Hessian of an earlier solve, such as for another C, is good enough for a first step
        earlier = objective.earlier_hessian()
        self.approximate_hessian = None if earlier is None else HessianModel(objective.cone, earlier)
        self._n_before = 0  # products before the present Hessian
        self._exact = False  # whether the last step used only a Hessian of all rows

    def step(self, point: P, gap: float, tolerance: float, reduction: float) -> np.ndarray:
        objective, monitor = self.objective, self.monitor
        if self._exact and reduction > POOR_REDUCTION:  # the Hessian may lack digits
            objective.refine()
        first = monitor.n_iter == 0 and self.approximate_hessian is not None
        enough = monitor.n_products - self._n_before >= SPENT_SHARE * objective.hessian_cost
        poor = reduction > POOR_REDUCTION or (reduction > GOOD_REDUCTION and enough)
        if fresh := self.approximate_hessian is None or objective.hessian_cost == 0.0 or (poor and not first):
            self.approximate_hessian = HessianModel(objective.cone, objective.hessian(point))
            self._n_before = monitor.n_products
        assert self.approximate_hessian is not None
        self._exact = fresh and objective.hessian_fraction >= 1.0
        if self._exact or ((fresh or first) and tolerance >= SAMPLE_ACCURACY):
            step: np.ndarray = self.approximate_hessian.minimizer(point.w, point.gradient) - point.w
            return step
        n_before = monitor.n_products
        step = self._by_products(point, self.approximate_hessian, tolerance**2 * gap)
        if fresh and monitor.n_products - n_before >= MANY_PRODUCTS and objective.refine():
            self.approximate_hessian = None  # a Hessian of so few rows hardly helps
        return step
