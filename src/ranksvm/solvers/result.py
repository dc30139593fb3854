"""The result of a solver: the final point, the reason for stopping, and the certificate."""

from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

import numpy as np

__all__ = ["History", "Status", "SolverResult", "relative_gap"]


class Status(Enum):
    """Why a solver stopped; the value is a sentence for the user."""

    CONVERGED = "Converged: the certificate meets tol."
    GRADIENT = (
        "Stopped by the rule asked for: |gradient| <= tol * |gradient at 0|, which says nothing about the distance "
        "from the optimum; duality_gap_ does."
    )
    MAX_ITERATIONS = (
        "Stopped at max_iter before the certificate met tol: raise max_iter, lower C, or scale the features alike."
    )
    PRECISION = (
        "Stopped because float64 round-off allows no further progress: the certificate, which includes what round-off "
        "may hide, is as small as it gets. "
        "A larger tol, a smaller C or features scaled alike would let it be met."
    )
    INTERRUPTED = "Interrupted: this is the best model so far; fit again with warm_start=True to continue from it."


@dataclass
class History:
    """Trace of a solver: one entry per iterate, the first at the starting point."""

    objective: list[float] = field(default_factory=list)
    duality_gap: list[float] = field(default_factory=list)
    evaluations: list[int] = field(default_factory=list)
    hessian_products: list[int] = field(default_factory=list)

    def after(self, earlier: "History") -> "History":
        """This trace appended to an earlier one, from whose last iterate it started: counts continue from there."""
        evaluations = [earlier.evaluations[-1] + count for count in self.evaluations[1:]]
        products = [earlier.hessian_products[-1] + count for count in self.hessian_products[1:]]
        return History(
            earlier.objective + self.objective[1:],
            earlier.duality_gap + self.duality_gap[1:],
            earlier.evaluations + evaluations,
            earlier.hessian_products + products,
        )

    def as_dict(self) -> dict[str, list]:
        """The trace as plain lists by name."""
        return dict(vars(self))


@dataclass
class SolverResult:
    """Outcome of a solver.

    Attributes
    ----------
    w : ndarray of float64
        The last iterate: every step decreases the (smoothed) objective.
    value : float
        Objective there.
    gap : float
        Duality gap there, with what round-off may hide: the optimum is not below ``value - gap``.
    n_iter : int
        Iterations done.
    status : Status
        Why it stopped.
    history : History
        Trace.
    point : Point
        The evaluation there, from which another solve of the same objective can continue.
    width : float or None
        Width of the Huberised hinge that was minimised last, set by the caller that chose the loss, because solvers do
        not know it.
    alpha : ndarray of float64 or None
        Dual variables of the pairs, if the dual was solved.
    """

    w: np.ndarray
    value: float
    gap: float
    n_iter: int
    status: Status
    history: History
    point: Any
    width: float | None = None
    alpha: np.ndarray | None = None

    def after(self, earlier: "SolverResult") -> "SolverResult":
        """This result combined with that of an earlier run, from whose end it started."""
        return replace(self, n_iter=earlier.n_iter + self.n_iter, history=self.history.after(earlier.history))

    @property
    def relative_gap(self) -> float:
        """The gap relative to the value."""
        return relative_gap(self.gap, self.value)


def relative_gap(gap: float, value: float) -> float:
    """A duality gap relative to the absolute value of an objective; for value 0 it is 0 without a gap, else infinite.

    Parameters
    ----------
    gap : float
        The gap, not negative.
    value : float
        The objective.

    Returns
    -------
    float
        ``gap / |value|``.
    """
    if value == 0.0:
        return 0.0 if gap == 0.0 else float("inf")
    return gap / abs(value)
