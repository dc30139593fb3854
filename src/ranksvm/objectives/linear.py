"""The objective of a linear model: 1/2 |w|^2 + C * loss(X w), its smoothing and certificate; signs of weights."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import numpy as np

from ranksvm.losses.protocol import LossSums
from ranksvm.losses.round_off import UNIT, growth, margin_error_bound
from ranksvm.solvers.cone import SignCone
from ranksvm.solvers.protocol import Point
from ranksvm.terms.hessian_cost import (
    DIFFERENCES,
    SINGLE_WORK,
    Size,
    cost_with_hessian,
    expected_products,
    hessian_cost,
    part_of_rows,
    worthwhile_fraction,
)
from ranksvm.terms.protocol import DataTerm, Term

if TYPE_CHECKING:
    from ranksvm.terms.host import Scored

__all__ = ["STEP_ERRORS", "ConstrainedObjective", "LinearObjective", "LinearPoint", "SmoothedObjective"]

# Smoothing may cause the fraction SMOOTHING_SHARE of the allowed gap. If it causes more, and the gradient causes at
# most REDUCE_BELOW times as much, the width is multiplied by MAX_FACTOR or less.
SMOOTHING_SHARE = 0.5
REDUCE_BELOW = 0.1
# This replaces REDUCE_BELOW if the inverse of the Hessian predicts the solution for the next width: that needs no
# accurate solution for the current width. (MQ2008, hinge, gamma = 2^-1, C = 32: 53 steps in float32 instead of 69.)
REDUCE_BELOW_BY_INVERSE = 1.0
MAX_FACTOR = 0.5
# However much is reserved for round-off, this share of the allowed gap is left for the solver.
MIN_SHARE = 0.1

# A sample that is too small is replaced by one larger by this factor.
REFINEMENT = 5.0
# A Hessian at w = 0 takes this fraction of the time of others: 0.45, 0.6 and 0.41 with 46, 136 and 768 features.
SHARE_AT_ZERO = 0.45
# Products with the Hessian are in float32 if their round-off is at most this fraction of each diagonal entry.
SINGLE_ERROR = 1e-2
SINGLE_EPSILON = float(np.finfo(np.float32).eps)
# Every sample is drawn with this seed, so that fits are reproducible.
SEED = 0
# A bound on round-off need not be tight if it is at most this fraction of the allowed gap.
GOOD_ENOUGH = 0.01
# Relative error of scores, in units of round-off, when they are interpolated between two other points.
STEP_ERRORS = 16


class SmoothedPoint(Point, Protocol):
    """A point at which a loss was evaluated, maybe smoothed: ``gap`` is the gap of the problem with this loss."""

    sums: LossSums


# The points of an objective.
PointType = TypeVar("PointType", bound=SmoothedPoint)


class SmoothedObjective(Generic[PointType]):
    """Base of the objectives of the form ``1/2 |w|^2 + C * loss``. See `Objective` for the methods.

    The *target problem* is the problem with the unsmoothed loss. `LossSums` defines excess and slack, by which its
    value and gap differ. If the evaluated loss smooths no other loss, both are 0, and there is no smoothing to reduce.
    """

    C: float
    # width of the smoothing at which the loss is evaluated, None without smoothing; and whether the width may be
    # reduced
    width: float | None = None
    reducible = False
    # One reduction multiplies the width by at least this number, so that solutions are near enough for an accurate
    # extrapolation (a fit to sparse word pairs took 51 iterations; 150 were not enough with 1/16, or without
    # extrapolation).
    min_factor = 0.25
    # the weights at which smoothing was reduced last, and the factor of that reduction; None for a new problem
    _reduced: tuple[np.ndarray, float] | None = None
    search_slope = 0.2
    # the part of the allowed gap that is reserved for round-off, in the unit of the objective
    reserve = 0.0

    def evaluate(self, w: np.ndarray, near: PointType | None = None) -> PointType:
        """The point at w."""
        raise NotImplementedError

    def inverse_cost(self, point: PointType) -> float:
        """Cost of the inverse of the Hessian, as a number of products with it: infinite unless a subclass has one."""
        return float("inf")

    def inverse(self, point: PointType) -> Callable[[np.ndarray], np.ndarray] | None:
        """The inverse of the Hessian, up to round-off; None if there is none."""
        return None

    def solves(self, point: PointType, step: np.ndarray, tolerance: float) -> bool:
        """Whether a step is known to solve Newton's system: False unless a subclass can tell without a product."""
        return False

    def relaxed(self) -> Any:
        """A problem of the same variables that needs fewer steps, and has a solution nearby; None if there is none."""
        return None

    def products(self, point: PointType, tolerance: float) -> Callable[[np.ndarray], np.ndarray]:
        """Products with the Hessian at a point, for conjugate gradients that stop at this tolerance."""
        return partial(self.hessian_product, point)

    def hessian_product(self, point: PointType, v: np.ndarray, double: bool = True) -> np.ndarray:
        """The Hessian at a point times a vector."""
        raise NotImplementedError

    def between(self, point: PointType, trial: PointType, alpha: float) -> PointType:
        """The point at the position ``alpha`` on the segment from one point to another."""
        raise NotImplementedError

    def release(self, point: PointType) -> None:
        """Mark a point as no longer needed."""
        raise NotImplementedError

    def certificate(self, point: PointType) -> tuple[float, float]:
        """Value and duality gap of the target problem."""
        return float(point.value + self.C * point.sums.excess), point.gap + self.C * point.sums.slack

    def round_off(self, point: PointType, tol: float) -> float:
        """Bound on the error of the certificate by round-off; 0 if certificates do not include it.

        The value is off by at most the bound plus the gap, and the minimum is not below the value minus both.
        """
        return 0.0

    def refresh(self, point: PointType, visit_pairs: bool = False) -> bool:
        """Evaluate a point again, in place, if that may be more accurate: see `Objective`."""
        return False

    def goal(self, point: PointType, tol: float) -> float:
        """The gap worth reaching with the current smoothing, if the target problem is to be solved to ``tol``."""
        slack, allowed = self.C * point.sums.slack, self._allowed(point, tol)
        goal = allowed - slack if slack <= SMOOTHING_SHARE * allowed else REDUCE_BELOW * slack
        return min(goal, point.gap)

    def smoothing_suffices(self, point: PointType, tol: float) -> bool:
        """Whether the smoothing at a point is so small that the target problem can be solved to ``tol``."""
        return self.C * point.sums.slack <= SMOOTHING_SHARE * self._allowed(point, tol)

    def narrowed_solution(self, point: PointType) -> np.ndarray | None:
        """The solution for the current width, if the loss is quadratic for the same pairs there as at ``point``."""
        raise NotImplementedError

    def reduce_smoothing(self, point: PointType, tol: float, by_inverse: bool = False) -> tuple[PointType, int]:
        """A point with less smoothing, at w or at the expected solution, and the number of evaluations used.

        If smoothing should not be reduced, the same point is returned.

        Smoothing is reduced once the gap comes from the smoothing rather than from the gradient. The slack decreases
        with the square of the width if margins are dense, which determines the next width. The solution for it is
        predicted by `narrowed_solution` if ``by_inverse`` and there is memory for the inverse; if not, or if that
        prediction is worse than w, it is extrapolated from the last two solutions.
        """
        if not self.reducible or self.smoothing_suffices(point, tol):
            return point, 0
        slack, by_inverse = self.C * point.sums.slack, by_inverse and self.inverse_cost(point) < float("inf")
        if point.gap > (REDUCE_BELOW_BY_INVERSE if by_inverse else REDUCE_BELOW) * slack:
            return point, 0
        assert self.width is not None
        excess = slack / (SMOOTHING_SHARE * self._allowed(point, tol))
        factor = float(np.clip(0.9 / np.sqrt(excess), self.min_factor, MAX_FACTOR))
        self.width *= factor
        w, narrower = point.w, self.between(point, point, 0.0)
        predictions = [self.narrowed_solution(point)] if by_inverse else []
        predictions.append(self._extrapolated(w, factor))
        self.release(point)
        self._reduced, n_evaluations = (w, factor), 1
        for prediction in predictions:
            if prediction is None:
                continue
            predicted, n_evaluations = self.evaluate(prediction, narrower), n_evaluations + 1
            better = predicted.gap < narrower.gap
            if better:
                narrower, predicted = predicted, narrower
            self.release(predicted)
            if better:
                break
        return narrower, n_evaluations

    def _extrapolated(self, w: np.ndarray, factor: float) -> np.ndarray | None:
        """The solution for a width smaller by ``factor``, extrapolated from w and the solution at the last reduction.

        It is None at the first reduction. As long as the same pairs have margins in the quadratic part of the loss, the
        solution is linear in the width.
        """
        if self._reduced is None:
            return None
        w_before, factor_before = self._reduced
        extrapolated: np.ndarray = w + (1.0 - factor) / (1.0 / factor_before - 1.0) * (w - w_before)
        return extrapolated

    def _allowed(self, point: PointType, tol: float) -> float:
        """The gap that meets ``tol``, minus the share reserved for round-off."""
        allowed = tol * self.certificate(point)[0]
        return max(allowed - self.reserve, MIN_SHARE * allowed)


class LinearPoint:
    """A point at which the objective was evaluated.

    Parameters
    ----------
    w : ndarray of float64, shape (n_features,)
        The weights.
    at : Term
        The evaluation of the data term there.
    C : float
        Weight of a pair.
    largest : ndarray of float64, shape (n_features,), optional
        Upper bounds on the absolute weights from which the scores were computed; None: these weights are w. They are
        not w if the scores were interpolated between two other points.
    n_steps : int
        Number of times that scores were interpolated.
    cone : SignCone, optional
        The cone in which the weights must be.
    """

    def __init__(
        self,
        w: np.ndarray,
        at: Term,
        C: float,
        largest: np.ndarray | None = None,
        n_steps: int = 0,
        cone: SignCone | None = None,
    ):
        self.w = w
        self.at = at
        self.largest = largest
        self.n_steps = n_steps
        self.cone = cone
        self.reweight(C)

    def sizes(self) -> np.ndarray:
        """Absolute weights that bound the round-off of the scores.

        Returns
        -------
        ndarray of float64, shape (n_features,)
            The weights.
        """
        return np.abs(self.w) if self.largest is None else self.largest

    def reweight(self, C: float) -> None:
        """Update value, gradient and gap for another C.

        Parameters
        ----------
        C : float
            Weight of a pair.
        """
        self.sums = self.at.sums
        self.value = float(0.5 * (self.w @ self.w) + C * self.sums.value)
        self.gradient = gradient = C * self.at.gradient
        gradient += self.w
        if self.cone is None:
            self.gap = 0.5 * float(gradient.dot(gradient))
        else:
            self.gap = float(self.cone.gaps(self.w, gradient).sum())


class LinearObjective(SmoothedObjective[LinearPoint]):
    """``f(w) = 1/2 |w|^2 + C * loss(X w)``: the algebra on w, independent of the storage of the rows.

    Its Hessian is ``I + C X' H X``, where H is the Hessian of the loss with respect to the scores. The derivatives of
    the losses of pairs at w give a feasible point of the dual, ``alpha = -C * loss'``; the duality gap there is exactly
    ``1/2 |grad f(w)|^2``. If the loss smooths another loss, alpha is also feasible for the problem with that loss,
    whose gap is larger by C times the slack of the smoothed loss.

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
        Returns, for the `Size` of the data, the fraction of the rows from which explicit Hessians are computed; 0:
        explicit Hessians are not used.
    includes_round_off : bool
        Whether certificates (value and duality gap) include a bound on round-off, needed for results that users see;
        False for the problem on a sample.
    """

    cone: SignCone | None = None

    def __init__(
        self,
        term: DataTerm,
        C: float,
        width: float | None = None,
        reducible: bool = False,
        fraction_of: Callable[[Size], float] = worthwhile_fraction,
        includes_round_off: bool = True,
    ):
        self.inner: Callable[[np.ndarray, np.ndarray], float] = np.ndarray.dot  # for short vectors faster than u @ v
        self.includes_round_off = includes_round_off
        self.term = term
        self.C = C
        self.width = width
        self.reducible = reducible
        self.n_variables = term.n_variables
        self.curvature_rank = term.curvature_rank
        self.positions_at_once = term.positions_at_once
        self.fraction_of = fraction_of
        fraction = fraction_of(term)
        # whether Hessians are computed together with values, at no extra cost
        self._free_hessians = term.curvature_with_value and fraction > 0.0
        self._use_fraction(1.0 if self._free_hessians else min(fraction, term.max_fraction))
        self._sample_fraction = self.hessian_fraction
        # whether explicit Hessians have all digits of float64
        self._double = term.n_rows * term.n_variables**2 < SINGLE_WORK
        self.products_since_hessian = 0
        self._curvature: np.ndarray | None = None  # Hessian of the loss from the last call of `hessian`
        self._suffices: bool | None = None  # whether products with it may be in float32; None: not yet computed

    def slope(self, point: LinearPoint, direction: np.ndarray) -> float:
        """The slope of the objective at a point, in a direction."""
        return self.inner(point.gradient, direction)

    def _use_fraction(self, fraction: float) -> None:
        """Compute Hessians from this fraction of the rows from now on."""
        self.hessian_fraction = fraction
        self._refined_fraction = min(part_of_rows(REFINEMENT * fraction), self.term.max_fraction)
        self.hessian_cost = 0.0 if self._free_hessians else hessian_cost(self.term, fraction)
        refined = self._refined_fraction > fraction
        self.refined_cost = hessian_cost(self.term, self._refined_fraction) if refined else float("inf")

    @property
    def first_hessian_cost(self) -> float:
        """Cost of building the first Hessian: the Hessian at w = 0 if that takes fewer multiplications."""
        if self._free_hessians or not self.term.squares_at_zero:
            return self.hessian_cost
        return hessian_cost(self.term, self.hessian_fraction, SHARE_AT_ZERO)

    def cost_with_hessian(self, log_reduction: float) -> float:
        """Number of products that cost as much as reducing log(gap) by ``log_reduction`` with a new Hessian."""
        return cost_with_hessian(self.term, self.hessian_fraction, log_reduction)

    def expected_products(self, scale: np.ndarray, log_reduction: float) -> float:
        """Number of products expected to reduce log(gap) by ``log_reduction`` with this diagonal; 0 if unknown."""
        differences = self.term.differences(DIFFERENCES)
        if differences is None:
            return 0.0
        return expected_products(differences, scale, self.curvature_rank, log_reduction)

    # -- evaluation --------------------------------------------------------------------------------------------------

    def evaluate(self, w: np.ndarray, near: LinearPoint | None = None) -> LinearPoint:
        """Value and gradient at w."""
        at = self.term.evaluate(w, self.width, near.at if near else None)
        return LinearPoint(w, at, self.C, cone=self.cone)

    def between(self, point: LinearPoint, trial: LinearPoint, alpha: float) -> LinearPoint:
        """The point at the position ``alpha`` on the segment between two points."""
        at = self.term.between(point.at, trial.at, alpha, self.width)
        if trial is point:
            return LinearPoint(point.w, at, self.C, point.largest, point.n_steps, self.cone)
        steps = 1 + max(point.n_steps, trial.n_steps)
        largest = np.maximum(point.sizes(), trial.sizes())
        return LinearPoint(point.w + alpha * (trial.w - point.w), at, self.C, largest, steps, self.cone)

    def line(self, point: LinearPoint, trial: LinearPoint) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]:
        """Values and slopes at positions on the segment, without reading X."""
        step = trial.w - point.w

        def along(alphas: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            losses, slopes = self.term.along(point.at, trial.at, alphas, self.width)
            at = [point.w + alpha * step for alpha in alphas]
            norms, drifts = np.array([w @ w for w in at]), np.array([w @ step for w in at])
            return 0.5 * norms + self.C * losses, drifts + self.C * slopes

        return along

    def reweight(self, C: float, point: LinearPoint | None = None) -> None:
        """Switch to another C; the value and gradient of a point are updated without a pass over X."""
        self.C = C
        self._reduced = None
        self._suffices = None
        if point is not None:
            point.reweight(C)

    def round_off(self, point: LinearPoint, tol: float) -> float:
        """Bound on the errors of value and duality gap, from bounds on rows, weights and scores.

        The dual variables that prove the gap are C times the negative derivatives of the loss at the computed scores:
        feasible, whatever the scores are. At the true scores, which differ from the computed ones by round-off, the gap
        of w and these variables is ``1/2 |w - sum of alpha_ij (x_i - x_j)|^2`` plus the sum, over the pairs, of the
        distance of the loss from its tangent. The first part equals half the squared norm of the computed gradient up
        to the round-off of its sums; the second part is bounded for all pairs near the margin. So the gap is proven for
        exact arithmetic.

        Rows are read once per data set, for the largest value of each feature. A bound that is small relative to tol
        need not be tight; otherwise another pass over the scores finds the pairs near and below the margin, which alone
        count.

        Parameters
        ----------
        point : LinearPoint
            The point.
        tol : float
            Relative gap to be reached: a bound far below it need not be tight.

        Returns
        -------
        float
            The bound on the error of the value, of the gap, and of both together; 0 unless ``includes_round_off``.
        """
        if not self.includes_round_off:
            return 0.0
        C, w, gradient, sizes = self.C, point.w, point.gradient, self.term.sizes()
        value = self.certificate(point)[0]
        w_norm, gradient_norm = float(np.linalg.norm(w)), float(np.linalg.norm(gradient))
        # the norm of the derivative of the gap with respect to the gradient
        gap_slope = (
            gradient_norm if self.cone is None else float(np.linalg.norm(self.cone.projected_gradient(w, gradient)))
        )
        length, span = growth(len(w) + 4), sizes.longest
        margin_error = margin_error_bound(sizes.score(point.sizes()), sizes.entries, STEP_ERRORS * point.n_steps)
        bound = np.inf
        with np.errstate(over="ignore", invalid="ignore"):
            for tight in (False, True):
                loss = self.term.round_off(point.at, self.width, margin_error, tight)
                gradient_error = (
                    C * span * (loss.pull_sums + 2.0 * growth(sizes.additions + sizes.entries) * loss.pulls_bound)
                )
                gradient_error += length * (gradient_norm + 2.0 * w_norm)
                value_error = C * (loss.pulls_bound * margin_error + loss.excess_bound + loss.value)
                value_error += length * w_norm**2
                gap_error = (gap_slope + gradient_error) * gradient_error + length * gradient_norm * gap_slope
                gap_error += C * (loss.excess_bound + loss.slack)
                bound = min(bound, value_error + gap_error + 2.0 * (loss.weights + 4.0 * UNIT) * value)
                if bound <= GOOD_ENOUGH * tol * value:
                    break
        return bound

    def refresh(self, point: LinearPoint, visit_pairs: bool = False) -> bool:
        """Compute the scores from w, in place, if they were interpolated between other points.

        With ``visit_pairs``, also evaluate the point again, pair by pair, if sums were computed in another way.
        """
        if not (visit_pairs and self.term.visit_pairs()) and not point.n_steps:
            return False
        at = self.term.evaluate(point.w, self.width, point.at)
        self.term.release(point.at)
        point.at, point.largest, point.n_steps = at, None, 0
        point.reweight(self.C)
        return True

    def release(self, point: LinearPoint) -> None:
        """Mark a point as no longer needed."""
        self.term.release(point.at)

    # -- curvature ---------------------------------------------------------------------------------------------------

    def hessian_product(self, point: LinearPoint, v: np.ndarray, double: bool = True) -> np.ndarray:
        """``v + C X' H X v``; if ``double`` is False, sums are in float32, unless their round-off is too large."""
        total = self.term.curvature_product(point.at, v, double or not self._single_suffices())
        total *= self.C
        total += v
        return total

    def hessian(self, point: LinearPoint) -> np.ndarray:
        """The Hessian at a point, or its estimate from ``hessian_fraction`` of the rows."""
        return self.hessian_at(point.at)

    def hessian_at_zero(self) -> np.ndarray | None:
        """The Hessian at w = 0, or its estimate, if it takes fewer multiplications than elsewhere; else None."""
        if not self.term.squares_at_zero:
            return None
        at = self.term.evaluate(np.zeros(self.n_variables), self.width)
        hessian = self.hessian_at(at)
        self.term.release(at)
        return hessian

    def hessian_at(self, at: "Term | Scored") -> np.ndarray:
        """The Hessian, or its estimate, at an evaluation of the data term.

        Parameters
        ----------
        at : Term
            The evaluation.

        Returns
        -------
        ndarray of float64, shape (n_variables, n_variables)
            The Hessian.
        """
        self._curvature = self.term.curvature(at, self.hessian_fraction, SEED, self._double)
        if not self._double and not np.isfinite(self._curvature).all():  # beyond float32
            self._double = True
            self._curvature = self.term.curvature(at, self.hessian_fraction, SEED, True)
        self._suffices = None
        return self._weigh_hessian(self._curvature)

    def earlier_hessian(self) -> np.ndarray | None:
        """The Hessian for this C with the active pairs of the last call of `hessian`, None before the first."""
        return None if self._curvature is None else self._weigh_hessian(self._curvature)

    def refine(self) -> bool:
        """Use more of the rows, or float64, in explicit Hessians from now on; False if they already use both."""
        most = self.term.max_fraction
        if self.hessian_fraction >= most and self._double:
            return False
        self._double = self.hessian_fraction >= most
        self._use_fraction(self._refined_fraction)
        return True

    def _single_suffices(self) -> bool:
        """Whether float32 has enough digits for products with the last Hessian.

        The products use rows, whose round-off counts; the Hessian uses their differences, which may be far smaller.
        """
        # for a sample, bounds on all rows are not worth their cost
        if self._curvature is None or not self.includes_round_off:
            return False
        if self._suffices is None:
            diagonal = np.maximum(self._curvature.diagonal(), 0.0)  # round-off may make it negative
            allowed = SINGLE_ERROR * (1.0 / self.C + diagonal) / (SINGLE_EPSILON * self.term.weight)
            self._suffices = bool((self.term.sizes().largest <= np.sqrt(allowed)).all())
        return self._suffices

    def _weigh_hessian(self, curvature: np.ndarray) -> np.ndarray:
        hessian = self.C * curvature
        hessian.flat[:: len(hessian) + 1] += 1.0  # the diagonal
        return hessian

    def hessian_diagonal(self, point: LinearPoint) -> np.ndarray:
        """Diagonal of the Hessian, or for sparse data an estimate."""
        return 1.0 + self.C * self.term.curvature_diagonal(point.at)

    # -- a sample ----------------------------------------------------------------------------------------------------

    def sample(self) -> "LinearObjective | None":
        """The problem on the rows of the first sampled Hessian; None if there is no sample.

        C is raised, so that C times the total weight of the pairs stays the same. If Hessians cost no more than values,
        and so use all rows, the sample has the number of rows that the term chooses.
        """
        n_rows = int(self._sample_fraction * self.term.n_rows) + 1
        if self._free_hessians:
            n_rows = self.term.sample_rows
        elif not 0.0 < self._sample_fraction < 1.0:
            return None
        term = self.term.sample(n_rows, SEED)
        if term is None:
            return None
        return self._of_sample(term, self.C * self.term.weight / term.weight)

    def _of_sample(self, term: DataTerm, C: float) -> "LinearObjective":
        """The objective of a sample."""
        return LinearObjective(term, C, self.width, self.reducible, self.fraction_of, includes_round_off=False)

    def from_sample(self, sample: "LinearObjective", w: np.ndarray) -> np.ndarray:
        """The same weights; this problem continues with the final width of the sample's problem."""
        self.width = sample.width
        return w


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
        self.cone: SignCone = cone

    def evaluate(self, w: np.ndarray, near: LinearPoint | None = None) -> LinearPoint:
        """Value and gradient at the projection of w onto the cone."""
        return super().evaluate(self.cone.project(w), near)

    def _of_sample(self, term: DataTerm, C: float) -> "ConstrainedObjective":
        return ConstrainedObjective(
            term, C, self.width, self.reducible, self.fraction_of, includes_round_off=False, cone=self.cone
        )
