"""The objective of a linear model with sign constraints on its weights."""

from collections.abc import Callable

import numpy as np

from ranksvm.objectives.linear import LinearObjective, LinearPoint
from ranksvm.solvers.cone import SignCone
from ranksvm.terms.hessian_cost import Size, worthwhile_fraction
from ranksvm.terms.protocol import DataTerm

__all__ = ["ConstrainedObjective"]


class ConstrainedObjective(LinearObjective):
    """`LinearObjective` over a cone: ``1/2 |w|^2 + C * loss(X w)`` with ``signs_j * w_j >= 0``.

    It is evaluated only at vectors of the cone: any other vector is projected first, such as a warm start or an
    extrapolated solution. `SignCone` defines the duality gap.

    Parameters
    ----------
    term : DataTerm
        The loss as a function of w.
    C : float
        Weight of a pair.
    width : float, optional
        Width at which the loss is evaluated.
    reducible : bool
        Whether the loss at this width only approximates the loss to be minimized, so that solvers reduce the width.
    fraction_of : callable, optional
        Returns, for the `Size` of the data, the fraction of the rows from which explicit Hessians are computed.
    includes_round_off : bool
        Whether certificates (value and duality gap) include a bound on round-off, needed for results that users see.
    cone : SignCone
        The signs.
    """

    def __init__(
        self,
        term: DataTerm,
        C: float,
        width: float | None = None,
        reducible: bool = False,
        fraction_of: Callable[[Size], float] = worthwhile_fraction,
        includes_round_off: bool = True,
        *,
        cone: SignCone,
    ):
        super().__init__(term, C, width, reducible, fraction_of, includes_round_off)
        self.cone = cone

    def evaluate(self, w: np.ndarray, near: LinearPoint | None = None) -> LinearPoint:
        """Value and gradient at the projection of w onto the cone."""
        return super().evaluate(self.cone.project(w), near)

    def gap(self, point: LinearPoint) -> float:
        """Duality gap of the problem with the loss at its current width."""
        return float(self.cone.gaps(point.w, point.gradient).sum())

    def gap_slope(self, point: LinearPoint) -> float:
        """The norm of the derivative of the gap with respect to the gradient."""
        return float(np.linalg.norm(self.cone.projected_gradient(point.w, point.gradient)))

    def _over(self, term: DataTerm, C: float) -> "ConstrainedObjective":
        return ConstrainedObjective(
            term, C, self.width, self.reducible, self.fraction_of, includes_round_off=False, cone=self.cone
        )
