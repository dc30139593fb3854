"""The interface of objectives for solvers: methods that all solvers need, and extensions for some."""

import threading
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import numpy as np

__all__ = [
    "AdaptiveObjective",
    "Cone",
    "ConstrainedObjective",
    "DiagonalObjective",
    "DualObjective",
    "HessianObjective",
    "Objective",
    "P",
    "Point",
    "PreconditionedObjective",
    "S",
    "SampledObjective",
    "SplitObjective",
    "SplitPoint",
]


class Point(Protocol):
    """A point at which an objective was evaluated.

    Attributes
    ----------
    w : ndarray of float64
        The vector.
    value : float
        The objective there.
    gradient : ndarray of float64
        Its gradient.
    gap : float
        Duality gap: a bound on how far the value is above the optimum.
    """

    w: np.ndarray
    value: float

    @property
    def gradient(self) -> np.ndarray: ...

    @property
    def gap(self) -> float: ...


# The points of an objective: only the objective that made a point knows what else it has.
P = TypeVar("P", bound=Point)


class Objective(Protocol[P]):
    """A strongly convex function: ``1/2 |w|^2`` plus a convex, piecewise quadratic loss.

    w, gradients and steps are arrays of any shape that can be added and scaled, vectors of a space with the inner
    product `inner`. Gradients are taken with respect to this inner product, and the Hessian is self-adjoint in it.

    Attributes
    ----------
    positions_at_once : int
        Number of positions to pass to `line` at a time: 1 if each costs as much as the first.
    search_slope : float
        A search along a step ends at a position whose slope is at most this multiple of the slope at the beginning.
    reserve : float
        The part of the allowed gap that a solver keeps for round-off: `goal` and `smoothing_suffices` use the rest.
    """

    positions_at_once: int
    search_slope: float
    reserve: float

    def evaluate(self, w: np.ndarray, near: P | None = None) -> P:
        """Value and gradient at w; ``near`` is a point evaluated nearby, if there is one."""

    def inner(self, u: np.ndarray, v: np.ndarray) -> float:
        """Inner product of two vectors."""

    def slope(self, point: P, direction: np.ndarray) -> float:
        """The gradient's inner product with a direction, which may be known before the gradient is."""

    def certificate(self, point: P) -> tuple[float, float]:
        """Value and duality gap at a point, for the target problem, which the objective may smooth."""

    def round_off(self, point: P, tol: float) -> float:
        """Bound on the error of the certificate by round-off, which need not be tight if it is far below ``tol``."""

    def refresh(self, point: P, visit_pairs: bool = False) -> bool:
        """Evaluate a point again, in place, if that may be more accurate; return whether it was.

        With ``visit_pairs``, sums over pairs that have too much round-off are computed pair by pair from then on.
        """

    def goal(self, point: P, tol: float) -> float:
        """The gap to reach with the current smoothing; at most the gap of this point.

        If the smoothing suffices, the certificate meets ``tol`` at this gap; otherwise the smoothing is reduced there.
        """

    def smoothing_suffices(self, point: P, tol: float) -> bool:
        """Whether the smoothing at a point is so small that the target problem can be solved to ``tol``."""

    def reduce_smoothing(self, point: P, tol: float, by_inverse: bool = False) -> tuple[P, int]:
        """Reduce the smoothing if it is time; return a point at or near w, and the number of evaluations used.

        With ``by_inverse``, the solution with less smoothing is predicted by an inverse of the Hessian.
        """

    def line(self, point: P, trial: P) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]:
        """Values and slopes on the segment from one point to another, as functions of positions in [0, 1]."""

    def between(self, point: P, trial: P, alpha: float) -> P:
        """The point at the position ``alpha`` on the segment between two points."""

    def hessian_product(self, point: P, v: np.ndarray, double: bool = True) -> np.ndarray:
        """Hessian at a point times a vector; unless ``double``, float32 may be used if it is accurate enough."""

    def release(self, point: P) -> None:
        """Mark a point as no longer needed."""


class SampledObjective(Objective[P], Protocol[P]):
    """An objective that a smaller one may approximate."""

    def sample(self) -> "HessianObjective[Any] | None":
        """The problem on a small part of the data, or of the space; None if there is no smaller problem."""

    def from_sample(self, sample: Any, w: np.ndarray) -> np.ndarray:
        """Convert a vector of the sample's problem; the objective takes over the sample's smoothing."""


class HessianObjective(SampledObjective[P], Protocol[P]):
    """An objective of few variables, with an explicit Hessian, as required by `newton`.

    Attributes
    ----------
    n_variables : int
        Number of variables.
    hessian_fraction : float
        Fraction of the data worth putting into an explicit Hessian: 1 for all data; 0 for none, if building a Hessian
        costs more than it saves.
    hessian_cost : float
        Cost of building a Hessian, as a number of products with it; infinite if none is built, 0 if every
        evaluation computes one.
    refined_cost : float
        Cost of a Hessian of more data, after `refine`; infinite if Hessians already use all data.
    products_since_hessian : int
        Number of products since the last Hessian was built, maybe in earlier solves; `by_hessians` counts them.
    """

    n_variables: int
    hessian_fraction: float
    hessian_cost: float
    refined_cost: float
    products_since_hessian: int

    def hessian(self, point: P) -> np.ndarray:
        """Hessian at a point, from ``hessian_fraction`` of the data, shape (n_variables, n_variables)."""

    def refine(self) -> bool:
        """Use more data, or more digits, in explicit Hessians from now on; False if they already use all."""

    def earlier_hessian(self) -> np.ndarray | None:
        """The Hessian for the current C, with the curvature from an earlier call of `hessian`, if there was one."""


class PreconditionedObjective(SampledObjective[P], Protocol[P]):
    """An objective with an approximate inverse of its Hessian, as required by `newton_cg`.

    Attributes
    ----------
    width : float or None
        Width of the smoothing, None without one.
    """

    width: float | None

    def products(self, point: P, tolerance: float) -> Callable[[np.ndarray], np.ndarray]:
        """Products with the Hessian at a point, accurate enough for conjugate gradients that stop at a tolerance."""

    def preconditioner(self, point: P) -> Callable[[np.ndarray], np.ndarray]:
        """An approximate inverse of the Hessian at a point, self-adjoint in the same inner product."""

    def inverse_cost(self, point: P) -> float:
        """Cost of `inverse`, as a number of products with the Hessian; infinite if there is no inverse."""

    def inverse(self, point: P) -> Callable[[np.ndarray], np.ndarray] | None:
        """The inverse of the Hessian, up to round-off: self-adjoint, at most the identity. None if there is none."""

    def solves(self, point: P, step: np.ndarray, tolerance: float) -> bool:
        """Whether a step certainly leaves at most ``tolerance`` of the gradient, if that is known without a product."""

    def relaxed(self) -> "PreconditionedObjective[Any] | None":
        """A problem of the same variables that needs fewer steps, and has a solution nearby; None if there is none."""


class DiagonalObjective(Objective[P], Protocol[P]):
    """An objective of any number of variables, with the diagonal of its Hessian, as required by `tron`.

    Attributes
    ----------
    C : float
        Weight of the loss.
    n_variables : int
        Number of variables.
    curvature_rank : int
        Upper bound on the number of directions in which the Hessian is not the identity.
    """

    C: float
    n_variables: int
    curvature_rank: int

    def reweight(self, C: float, point: P | None = None) -> None:
        """Switch to another C, and update a point for it."""

    def hessian_diagonal(self, point: P) -> np.ndarray:
        """An estimate of the diagonal of the Hessian, at least 1, shape (n_variables,); one number is used for all."""


class AdaptiveObjective(HessianObjective[P], DiagonalObjective[P], Protocol[P]):
    """An objective for which an explicit Hessian may or may not be worth its cost, as required by `adaptive`.

    Attributes
    ----------
    first_hessian_cost : float
        Cost of building the first Hessian, as a number of products with it.
    """

    @property
    def first_hessian_cost(self) -> float: ...

    def hessian_at_zero(self) -> np.ndarray | None:
        """The Hessian at 0, if it costs less than others."""

    def cost_with_hessian(self, log_reduction: float) -> float:
        """Number of products that cost as much as reducing log(gap) by ``log_reduction`` with a new Hessian."""

    def expected_products(self, scale: np.ndarray, log_reduction: float) -> float:
        """Number of products expected to reduce log(gap) by ``log_reduction`` with this diagonal; 0 if unknown."""

    def sample(self) -> "AdaptiveObjective[Any] | None": ...


class Cone(Protocol):
    """The vectors whose entries have prescribed signs.

    Attributes
    ----------
    signs : ndarray of int, shape (n,)
        1 for an entry that is not negative, -1 for an entry that is not positive, 0 for any entry.
    """

    signs: np.ndarray

    def project(self, v: np.ndarray) -> np.ndarray:
        """The nearest vector of the cone."""

    def gaps(self, w: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """Shares of the entries in the duality gap at w of a function ``1/2 |w|^2 + convex`` with this gradient."""


class ConstrainedObjective(HessianObjective[P], DiagonalObjective[P], Protocol[P]):
    """An objective over a cone, as required by `projected_newton`: it is evaluated at vectors of the cone only."""

    cone: Cone

    def sample(self) -> "ConstrainedObjective[Any] | None": ...


# the points of a dual, as P above
D_contra = TypeVar("D_contra", contravariant=True)


class DualObjective(Protocol[D_contra]):
    """A concave dual whose variables form blocks, with a primal point for each of its points."""

    def ascend(self, point: D_contra, epochs: int) -> None:
        """Visit every block ``epochs`` times, and maximize over it; the point is changed in place."""

    def certificate(self, point: D_contra) -> tuple[float, float]:
        """Value of the primal problem, and the duality gap."""

    def round_off(self, point: D_contra, tol: float) -> float:
        """Bound on the error of the certificate by round-off."""

    def refresh(self, point: D_contra, visit_pairs: bool = False) -> bool:
        """Evaluate a point again, in place, if that may be more accurate: see `Objective.refresh`."""


class SplitPoint(Protocol):
    """The result of a step of a splitting method.

    Attributes
    ----------
    value, round_off : float
        The objective there, and a bound on its error.
    bound : float
        A lower bound of its minimum, minus the error of the bound.
    ranks : ndarray of int
        Rank of each matrix among the variables.
    """

    @property
    def value(self) -> float: ...
    @property
    def round_off(self) -> float: ...
    @property
    def bound(self) -> float: ...
    @property
    def ranks(self) -> np.ndarray: ...


# the points of a splitting method, as P above
S = TypeVar("S", bound=SplitPoint)


class SplitObjective(Protocol[S]):
    """A sum of two convex functions with a proximal operator each, and the variables of a splitting method for it."""

    def step(self, accuracy: float, interrupted: threading.Event | None = None) -> S:
        """Take the next step; a subproblem may keep a gap of ``accuracy``."""

    def finish(self, point: S, accuracy: float) -> S:
        """A point to store, no worse than ``point``: half of its variables are optimal, given the other half."""
