"""The objective of a kernel model: 1/2 |f|^2 + C * loss(f(x_1), ..., f(x_l)), f in the space of the kernel."""

import itertools
from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from ranksvm._util.lazy import cached_property
from ranksvm._util.threads import parallel_map
from ranksvm.data.queries import query_ranges
from ranksvm.kernels import KernelMatrix
from ranksvm.losses import HuberHinge, LossSums, PairwiseLoss, SquaredHinge
from ranksvm.losses.protocol import QueryOperator
from ranksvm.losses.round_off import OPERATIONS, UNIT, growth
from ranksvm.objectives.active_pairs import (
    ActivePairs,
    HostInversion,
    Inversion,
    avoids_difference,
    correction_by_active_pairs,
    potentials_of,
)
from ranksvm.objectives.device_inversion import DeviceInversion
from ranksvm.objectives.landmarks import Landmarks
from ranksvm.objectives.linear import LinearObjective, SmoothedObjective

__all__ = ["CoefficientObjective", "KernelObjective", "KernelPoint"]

# A thread computes the loss for whole queries with about this many rows at a time.
TASK_ROWS = 1 << 12
# C of the relaxed problem, relative to C. (CPU seconds on MQ2008, gamma = 2^-1, C = 32 and 1,024, for 1 and 1/16: 9.3
# and 16, 11 and 17; without the relaxed problem 18 and 62. On data without noise, C = 1,000, it costs more than it
# saves: 1,500 x 5 12, 6 and 3.9, and 1,800 x 10 26, 14 and 15.)
RELAXED_SHARE = 1 / 16
# A step solves Newton's system if the coefficients of what it leaves of the gradient are at most this share of the
# tolerance. (In the norm of the kernel's space, the remainder of inverses was up to 8 times larger relative to the
# gradient than in the norm of the coefficients.)
SOLVED_SHARE = 0.1


class KernelPoint:
    """A point at which a kernel objective was evaluated, with the data for products with the Hessian.

    The gradient and the gap cost a product with Q, and are computed on first use.

    Parameters
    ----------
    w : ndarray of float64
        The vector.
    coefficients, scores : ndarray of float64, shape (n_rows,)
        The coefficients b of the function, and its values ``Q b``.
    state : object
        The active pairs, at whose margins the loss has a positive second derivative.
    width : float or None
        Width of the loss.
    product : callable
        Multiplies a vector by Q.
    """

    def __init__(
        self,
        w: np.ndarray,
        coefficients: np.ndarray,
        scores: np.ndarray,
        state: Any,
        width: float | None,
        product: Callable[[np.ndarray], np.ndarray],
    ):
        self.w = w
        self.coefficients = coefficients
        self.scores = scores
        self.state = state
        self.width = width
        self.value = np.inf
        self.sums = LossSums(np.inf)
        # coefficients g of the gradient in the kernel's space
        self.slopes = coefficients
        # the operator of the loss's Hessian, created for the first product
        self.hessian: QueryOperator | None = None
        self._product = product

    @cached_property
    def slope_values(self) -> np.ndarray:
        """Qg."""
        values = self._product(self.slopes)
        del self._product  # as long as there is a solution, this would keep Q in memory
        return values

    @property
    def gradient(self) -> np.ndarray:
        """g and Qg."""
        return np.stack([self.slopes, self.slope_values])

    @property
    def gap(self) -> float:
        """The duality gap."""
        # the form may be negative by round-off; a value that is not finite must not become 0
        return 0.5 * abs(float(self.slopes @ self.slope_values))


class KernelObjective(SmoothedObjective[KernelPoint]):
    """``f(b) = 1/2 b'Qb + C * loss(Qb)`` over functions ``sum of b_j k(., x_j)``, in the inner product ``u'Qv``.

    A vector is an array of two rows, coefficients b and scores ``s = Qb``: the inner product of two vectors is
    ``b_1's_2`` and needs no product with Q. Both rows are updated in every step by recurrence. The gradient is ``g = b
    + C dloss/ds``. The Hessian is ``I + C H Q``, where H is the Hessian of the loss with respect to the scores; it is
    self-adjoint in this inner product. A gradient costs one product with Q, and so does a product with the Hessian.
    If the variables are only the coefficients, each value costs a product, too, and a product with the Hessian costs
    two (`CoefficientObjective`). The duality gap is ``1/2 g'Qg``, the gap of `LinearObjective` in the norm of the
    kernel's space.

    Kuo, Lee & Lin, "Large-scale kernel rankSVM", SDM 2014, section 3, define this problem.

    Parameters
    ----------
    matrix : KernelMatrix
        Q, with a row for each position of the pairs.
    loss : PairwiseLoss
        The loss over the pairs.
    C : float
        Weight of a pair.
    n_threads : int
        Number of threads.
    landmarks : Landmarks, optional
        Kernel functions of a few documents. The preconditioner inverts the Hessian exactly on their span, and a solver
        starts at the best function of this span.
    inverse_memory : int
        Bytes of the host that an inverse of the whole Hessian may take. If all of Q is stored on a device, the inverse
        is computed there, in the memory that is free.
    width : float, optional
        Width at which the loss is evaluated.
    reducible : bool
        Whether the loss at this width only approximates the loss to be minimized, so that solvers reduce the width.
    """

    # One reduction multiplies the width by at least this number. (On MQ2008 at gamma = 2^-1, C = 1 a solution takes
    # 1416 products with 0.25, 987 with 0.4, 1243 with 0.5; at gamma = 2^-5, it takes 48, 53 and 56.)
    min_factor = 0.4
    # `line` is called for one position at a time, because each additional position costs as much as the first
    positions_at_once = 1
    # `line` needs no product with Q. (MQ2008, gamma = 2^-1, hinge, C = 32: 52 steps with 0.2, 36 with 0.05, 33 with
    # 0.01, 32 with 0.001.)
    search_slope = 0.01
    _Point = KernelPoint

    def __init__(
        self,
        matrix: KernelMatrix,
        loss: PairwiseLoss,
        C: float,
        n_threads: int = 1,
        landmarks: Landmarks | None = None,
        inverse_memory: int = 0,
        width: float | None = None,
        reducible: bool = False,
    ):
        self.matrix = matrix
        self.loss = loss
        self.C = C
        self.pairs = loss.pairs
        self.n_variables = self.pairs.n_rows
        self.curvature_rank = min(self.pairs.n_pairs, self.pairs.n_rows)
        self.n_threads = n_threads
        self.landmarks = landmarks
        self._inverse_memory = inverse_memory
        stored = matrix.stored
        self._inversion: Inversion = (
            HostInversion(matrix, inverse_memory, n_threads)
            if stored is None
            else DeviceInversion(*stored, matrix.largest)
        )
        self.width = width
        self.reducible = reducible
        self._tasks = list(query_ranges(self.pairs.pointers, TASK_ROWS))
        self._spare: list[Any] = []
        # the problem over the functions of the landmarks, for its Hessians
        self._landmark_problem: LinearObjective | None = None
        if landmarks:
            self._landmark_problem = LinearObjective(landmarks.term(loss, n_threads), C, includes_round_off=False)

    # -- vectors -----------------------------------------------------------------------------------------------------

    def vector(self, coefficients: np.ndarray | None = None) -> np.ndarray:
        """The function with these coefficients, at the cost of a product with Q; None: the function 0.

        Parameters
        ----------
        coefficients : ndarray of float64, shape (n_rows,), or None
            The coefficients b.

        Returns
        -------
        ndarray of float64, shape (2, n_rows)
            b and Qb.
        """
        if coefficients is None:
            return np.zeros((2, self.n_variables))
        return np.stack([coefficients, self.matrix.product(coefficients)])

    def coefficients(self, w: np.ndarray) -> np.ndarray:
        """The coefficients b of a vector.

        Parameters
        ----------
        w : ndarray of float64
            The vector.

        Returns
        -------
        ndarray of float64, shape (n_rows,)
            b.
        """
        b: np.ndarray = w[0]
        return b

    def inner(self, u: np.ndarray, v: np.ndarray) -> float:
        """``b_u' Q b_v``."""
        return float(u[0] @ v[1])

    def slope(self, point: KernelPoint, direction: np.ndarray) -> float:
        """``g'Q b`` for the direction with the coefficients b."""
        return float(point.slopes @ direction[1])

    # -- evaluation --------------------------------------------------------------------------------------------------

    def evaluate(self, w: np.ndarray, near: KernelPoint | None = None) -> KernelPoint:
        """Value and gradient at w; sorting starts from the order of documents at ``near``."""
        return self._losses(w, *self._parts(w), near)

    def between(self, point: KernelPoint, trial: KernelPoint, alpha: float) -> KernelPoint:
        """The point at the position ``alpha`` on the segment between two points."""
        return self._losses(*self._interpolate(point, trial, alpha), point)

    def line(self, point: KernelPoint, trial: KernelPoint) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]:
        """Values and slopes at positions on the segment, from the scores alone: without a product with Q."""
        step = trial.scores - point.scores

        def along(alphas: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            found = np.empty((2, len(alphas)))
            for place, alpha in enumerate(alphas):
                probe = self._losses(*self._interpolate(point, trial, alpha), point)
                self.release(probe)
                found[:, place] = probe.value, probe.slopes @ step
            return found[0], found[1]

        return along

    def reweight(self, C: float, point: KernelPoint | None = None) -> None:
        """Switch to another C; the value and gradient of a point are updated without a product with Q."""
        factor = C / self.C
        if self._landmark_problem is not None:
            self._landmark_problem.reweight(C)
        self.C = C
        self._reduced = None
        if point is not None:
            point.value = self._value(point)
            slope_values = point.scores + factor * (point.slope_values - point.scores)
            point.slopes = point.coefficients + factor * (point.slopes - point.coefficients)
            point.slope_values = slope_values

    def rounding(self, C: float, point: KernelPoint | None = None) -> float:
        """Bound on the effect of the rounding of Q on the Hessian, relative to its identity term.

        As long as this bound is below 1, the problem is convex, and the gap is a bound. A rounded Q may have negative
        eigenvalues as large as its rounding error; H multiplies them by up to twice its own largest diagonal entry.

        Parameters
        ----------
        C : float
            Weight of a pair.
        point : KernelPoint, optional
            The point; None: all scores are 0.

        Returns
        -------
        float
            The bound.
        """
        if point is None:
            zero = np.zeros(self.n_variables)
            point = self._losses(zero, zero, zero, None)
        degrees = self._degrees(point)
        return C * 2.0 * float(degrees.max()) * self.matrix.rounding

    def round_off(self, point: KernelPoint, tol: float) -> float:
        """Bound on the errors of value and gap due to Q and its products, the recurrence of scores, and all sums.

        It follows the argument of `LinearObjective.round_off`, in the norm of the kernel's space. To first
        order, an error of the scores changes the value by half as much as it changes ``b'Qb``, because the gradient is
        small.

        Parameters
        ----------
        point : KernelPoint
            The point. Some entries of its products with Q are computed again and compared.
        tol : float
            Ignored: the bound is always tight.

        Returns
        -------
        float
            The bound, for the problem with the exact kernel.
        """
        C, b, g, value = self.C, point.coefficients, point.slopes, self.certificate(point)[0]
        length, size_g, size_u = growth(self.n_variables + OPERATIONS), *(float(np.abs(v).sum()) for v in (g, g - b))
        largest_slope, largest_score = float(np.abs(point.slope_values).max()), float(np.abs(point.scores).max())
        score_error, form_error = self.matrix.product_error(b, point.scores)
        slope_error, square_error = self.matrix.product_error(g, point.slope_values)
        margin_error = 2.0 * score_error + UNIT * (2.0 + 5.0 * largest_score)
        with np.errstate(over="ignore", invalid="ignore"):
            loss = self.loss.round_off(point.scores, point.sums, self.width, margin_error, True)
            g_error = C * loss.pull_sums + 3.0 * UNIT * (float(np.abs(b).sum()) + size_g)
            # the slopes of the loss are g - b; the error of the value is at most the sum of |g|, or of |g - b|, times
            # the error of a score, plus half the error of the form b'Qb
            value_error = (min(size_g, size_u) + g_error) * score_error + 0.5 * form_error
            value_error += C * (loss.excess_bound + loss.value)
            value_error += length * float(np.abs(b) @ np.abs(point.scores))
            gap_error = 0.5 * (square_error + self.matrix.largest * g_error**2)
            gap_error += g_error * (largest_slope + slope_error)
            gap_error += length * float(np.abs(g) @ np.abs(point.slope_values)) + C * (loss.excess_bound + loss.slack)
            return value_error + gap_error + 2.0 * (loss.weights + 4.0 * UNIT) * value

    def value_rounding(self, point: KernelPoint) -> float:
        """Approximate difference, near the optimum, between the values at a point with Q rounded and unrounded.

        To first order, the two differ by half of the rounding error of ``b'Qb``: if the gradient is 0, a change of Q
        changes C times the loss by minus twice as much as ``1/2 b'Qb``.

        Parameters
        ----------
        point : KernelPoint
            The point.

        Returns
        -------
        float
            The difference.
        """
        return 0.5 * self.matrix.form_rounding(point.coefficients)

    def release(self, point: KernelPoint) -> None:
        """Mark a point as no longer needed: the memory of its pairs is reused for the next point."""
        self._spare.append(point.state)

    # -- curvature ---------------------------------------------------------------------------------------------------

    def hessian_product(self, point: KernelPoint, v: np.ndarray, double: bool = True) -> np.ndarray:
        """``v + C H Q v``."""
        return self.vector(v[0] + self.C * self._curvature_product(point, v[1]))

    def preconditioner(self, point: KernelPoint) -> Callable[[np.ndarray], np.ndarray]:
        """An approximate inverse of the Hessian, self-adjoint in the same inner product, without products with Q."""
        if self.landmarks is None or self._landmark_problem is None:
            return np.copy
        degrees = self._degrees(point)
        return self.landmarks.preconditioner(self.landmarks.hessian(self._landmark_problem, point), self.C * degrees)

    def inverse_cost(self, point: KernelPoint) -> float:
        """Cost of `inverse`, as a number of products with Q; infinite if there is too little memory for it."""
        return self._inversion.cost(self._degrees(point), self.pairs.pointers) / max(1, self.matrix.product_bytes)

    def inverse(self, point: KernelPoint) -> Callable[[np.ndarray], np.ndarray] | None:
        """The inverse of the Hessian, up to round-off; each application costs a product with Q."""
        return self._inverse(point.state)

    def solves(self, point: KernelPoint, step: np.ndarray, tolerance: float) -> bool:
        """Whether the coefficients that a step leaves of the gradient are few enough, whatever their product with Q."""
        # the Hessian is at least the identity; if Q is too inaccurate for that, the objective could increase
        if not 0.0 <= self.inner(step, step) <= -(1.0 + SOLVED_SHARE) * self.slope(point, step):
            return False
        left = point.slopes + step[0] + self.C * self._curvature_product(point, step[1])
        return float(np.linalg.norm(left)) <= SOLVED_SHARE * tolerance * float(np.linalg.norm(point.slopes))

    def narrowed_solution(self, point: KernelPoint) -> np.ndarray | None:
        """The solution for the current width, if the loss is quadratic there for the same pairs as at ``point``."""
        assert isinstance(self.loss, HuberHinge)
        state, change = self.loss.narrowed(point.scores, point.width, self.width)
        inverse = self._inverse(state)
        return None if inverse is None else point.w - inverse(self.vector(point.slopes + self.C * change))

    def _inverse(self, state: object) -> Callable[[np.ndarray], np.ndarray] | None:
        degrees = self.loss.curvature_diagonal(state, 0, self.n_variables)
        hessian = self.loss.hessian(state)
        pointers = self.pairs.pointers
        correct = correction_by_active_pairs(hessian, degrees, pointers, self.C, self._inversion)
        if correct is None:
            return None
        # `vector` multiplies a difference by Q; it is no difference of products: the scores of a step then have the
        # round-off of the step, not the round-off of a gradient that may be many orders of magnitude larger
        if not avoids_difference(degrees, pointers, self.matrix.largest, self.C):
            return lambda r: self.vector(r[0] - correct(r[1]))
        potentials = potentials_of(ActivePairs(hessian, degrees, pointers), self.n_variables)

        def solve(r: np.ndarray) -> np.ndarray:
            # (I + C H Q)^-1 H y is M y / C, without a difference; only r - H y still needs one
            y = potentials(r[0])
            rest = r[0] - self._applied(hessian, y)[1]
            return self.vector(rest + correct(y / self.C - self.matrix.product(rest)))

        return solve

    def relaxed(self) -> "KernelObjective | None":
        """The problem with the squared hinge and a smaller C, for a hinge; None for other losses.

        The hinge has no curvature at pairs far beyond the margin. Far from the solution, steps are therefore too long
        and have to be shortened.
        """
        if not self.reducible:
            return None
        C, loss = RELAXED_SHARE * self.C, SquaredHinge(self.pairs)
        return KernelObjective(self.matrix, loss, C, self.n_threads, self.landmarks, self._inverse_memory)

    def sample(self) -> LinearObjective | None:
        """The problem over only the functions of the landmarks, or None without landmarks.

        Its loss keeps the current smoothing. With less smoothing, its solution could be far from the solution of the
        whole problem, which would then take many steps.
        """
        if self.landmarks is None:
            return None
        loss = HuberHinge(self.pairs) if self.reducible else self.loss
        return LinearObjective(self.landmarks.term(loss, self.n_threads), self.C, self.width, includes_round_off=False)

    def from_sample(self, sample: LinearObjective, w: np.ndarray) -> np.ndarray:
        """The vector of a function of the landmarks."""
        assert self.landmarks is not None
        return self.landmarks.vector(w)

    # -- private methods ---------------------------------------------------------------------------------------------

    def _parts(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return w[0], w[1]

    def _interpolate(
        self, point: KernelPoint, trial: KernelPoint, alpha: float
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        w = point.w + alpha * (trial.w - point.w)
        return w, *self._parts(w)

    def _losses(self, w: np.ndarray, b: np.ndarray, scores: np.ndarray, near: KernelPoint | None) -> KernelPoint:
        """A point with its value and the coefficients of its gradient, ``b + C dloss/ds``."""
        state = self._spare.pop() if self._spare else self.loss.new_state(near.state if near else None, self.n_threads)
        point = self._Point(w, b, np.ascontiguousarray(scores), state, self.width, self.matrix.product)
        parts, slopes = self._applied(self.loss.evaluation(state, self.width), point.scores)
        point.sums = reduce(LossSums.plus, itertools.starmap(LossSums, parts))
        slopes *= self.C
        slopes += b
        point.slopes = slopes
        point.value = self._value(point)
        return point

    def _value(self, point: KernelPoint) -> float:
        return 0.5 * float(point.coefficients @ point.scores) + self.C * point.sums.value

    def _degrees(self, point: KernelPoint) -> np.ndarray:
        """The diagonal of H."""
        return self.loss.curvature_diagonal(point.state, 0, self.n_variables)

    def _curvature_product(self, point: KernelPoint, v: np.ndarray) -> np.ndarray:
        """H v."""
        if point.hessian is None:
            point.hessian = self.loss.hessian(point.state)
        return self._applied(point.hessian, v)[1]

    def _applied(self, operator: QueryOperator, v: np.ndarray) -> tuple[list[tuple[float, float, float]], np.ndarray]:
        """What an operator returns for ranges of queries, and its vector, with an entry for each row."""
        out, pointers = np.empty(self.n_variables), self.pairs.pointers
        if len(self._tasks) == 1:  # few rows, for which threads would take longer
            return [operator(0, self.pairs.n_queries, v, out)], out

        def part(queries: tuple[int, int]) -> tuple[float, float, float]:
            first, last = queries
            rows = slice(pointers[first], pointers[last])
            return operator(first, last, v[rows], out[rows])

        return parallel_map(part, self._tasks, self.n_threads), out


class _CoefficientPoint(KernelPoint):
    """A point of a `CoefficientObjective`."""

    @property
    def gradient(self) -> np.ndarray:
        """Qg."""
        return self.slope_values


class CoefficientObjective(KernelObjective):
    """`KernelObjective` as a function of only the coefficients b, in their Euclidean inner product, as published.

    Gradient ``Qg`` and Hessian ``Q (I + C H Q)``: value and gradient cost a product with Q each, a product with the
    Hessian costs two (Kuo, Lee & Lin 2014, section 3). The minimum and the certificate ``1/2 g'Qg`` are the same.
    """

    _Point = _CoefficientPoint

    def vector(self, coefficients: np.ndarray | None = None) -> np.ndarray:
        """The coefficients themselves; None: the coefficients of the function 0."""
        return np.zeros(self.n_variables) if coefficients is None else np.array(coefficients)

    def coefficients(self, w: np.ndarray) -> np.ndarray:
        """w itself."""
        return w

    def inner(self, u: np.ndarray, v: np.ndarray) -> float:
        """``u'v``."""
        return float(u @ v)

    def slope(self, point: KernelPoint, direction: np.ndarray) -> float:
        """``(Qg)'b`` for the direction b."""
        return self.inner(point.gradient, direction)

    def hessian_product(self, point: KernelPoint, v: np.ndarray, double: bool = True) -> np.ndarray:
        """``Q (v + C H Q v)``."""
        Qv = self.matrix.product(v)
        return self.matrix.product(v + self.C * self._curvature_product(point, Qv))

    def hessian_diagonal(self, point: KernelPoint) -> np.ndarray:
        """Return 1: the trust region uses the Euclidean norm, as in the publication."""
        return np.ones(1)

    def _parts(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return w, self.matrix.product(w)

    def _interpolate(
        self, point: KernelPoint, trial: KernelPoint, alpha: float
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        b = point.coefficients + alpha * (trial.coefficients - point.coefficients)
        return b, b, point.scores + alpha * (trial.scores - point.scores)
