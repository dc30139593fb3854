"""Objectives whose loss may smooth the target loss: certificate of the target problem, reduction of smoothing."""

from typing import Any

import numpy as np

from ranksvm.losses.protocol import LossSums

__all__ = ["SmoothedObjective"]

# Smoothing may cause this fraction of the allowed gap. If it causes more, and the gradient's share is down to this
# fraction, the width is narrowed by at least the factor LEAST_REDUCTION.
SMOOTHING_SHARE = 0.5
REDUCE_BELOW = 0.1
LEAST_REDUCTION = 0.5
# Round-off takes the rest of the allowed gap at most.
LEAST_SHARE = 0.1


class SmoothedObjective:
    """Base of the objectives of the form ``1/2 |w|^2 + C * loss``. See `Objective` for the methods.

    The *target problem* is the one with the loss that the evaluated one smooths. With a loss that smooths no other,
    excess and slack are 0, and there is no smoothing to reduce.
    """

    C: float
    # width of the smoothing at which the loss is evaluated, None without one; and whether it may be reduced
    width: float | None = None
    reducible = False
    # The width narrows by at most this factor: solutions so near are extrapolated well from one to the next (on sparse
    # word pairs 51 iterations; 150 were not enough with 1/16, or without extrapolation).
    most_reduction = 0.25
    # where the smoothing was last reduced, and by what factor; None when the problem is a new one
    _reduced: tuple[np.ndarray, float] | None = None
    # the part of the allowed gap that round-off takes
    reserve = 0.0

    def sums(self, point: Any) -> LossSums:
        """Value, excess and slack of the loss at a point."""
        raise NotImplementedError

    def gap(self, point: Any) -> float:
        """Duality gap of the problem with the loss at its current width."""
        raise NotImplementedError

    def evaluate(self, w: np.ndarray, near: Any = None) -> Any:
        """The point at w."""
        raise NotImplementedError

    def between(self, point: Any, trial: Any, alpha: float) -> Any:
        """The point at ``alpha`` on the segment from one point to another."""
        raise NotImplementedError

    def release(self, point: Any) -> None:
        """Mark a point as no longer needed."""
        raise NotImplementedError

    def certificate(self, point: Any) -> tuple[float, float]:
        """Value and duality gap of the target problem."""
        sums = self.sums(point)
        return float(point.value + self.C * sums.excess), self.gap(point) + self.C * sums.slack

    def round_off(self, point: Any, tol: float) -> float:
        """Bound on what round-off hides from the certificate; 0 where nobody is shown it.

        The value is off by no more than the bound plus the gap, and the minimum is not below their difference.
        """
        return 0.0

    def refresh(self, point: Any) -> bool:
        """Evaluate a point again, in place, if it was found from others: False if that would not be more accurate."""
        return False

    def goal(self, point: Any, tol: float) -> float:
        """The `gap` worth reaching with the current smoothing, if the target problem is to be solved to ``tol``."""
        slack = self.C * self.sums(point).slack
        if self.smoothing_suffices(point, tol):
            return self._allowed(point, tol) - slack
        return REDUCE_BELOW * slack

    def smoothing_suffices(self, point: Any, tol: float) -> bool:
        """Whether so little is smoothed at a point that the target problem can be solved to ``tol``."""
        return self.C * self.sums(point).slack <= SMOOTHING_SHARE * self._allowed(point, tol)

    def reduce_smoothing(self, point: Any, tol: float) -> tuple[Any, int]:
        """A point with less smoothing, at w or where the solution is expected, and the number of evaluations used.

        If smoothing should not be reduced, it is the same point.

        Smoothing is reduced once the gap comes from the smoothing rather than from the gradient. The slack decreases
        with the square of the width if margins are dense, which determines the next width.
        """
        if not self.reducible or self.smoothing_suffices(point, tol):
            return point, 0
        slack = self.C * self.sums(point).slack
        if self.gap(point) > REDUCE_BELOW * slack:
            return point, 0
        assert self.width is not None
        excess = slack / (SMOOTHING_SHARE * self._allowed(point, tol))
        factor = float(np.clip(0.9 / np.sqrt(excess), self.most_reduction, LEAST_REDUCTION))
        self.width *= factor
        w, narrower = point.w, self.between(point, point, 0.0)
        self.release(point)
        n_evaluations = 1
        if self._reduced is not None:
            # If the pairs in the ring stay the same, the solution is linear in the width.
            w_before, factor_before = self._reduced
            beyond = (1.0 - factor) / (1.0 / factor_before - 1.0)
            further = self.evaluate(w + beyond * (w - w_before), narrower)
            if self.gap(further) < self.gap(narrower):
                narrower, further = further, narrower
            self.release(further)
            n_evaluations = 2
        self._reduced = w, factor
        return narrower, n_evaluations

    def _allowed(self, point: Any, tol: float) -> float:
        """The gap that meets ``tol``, less what round-off takes of it."""
        allowed = tol * self.certificate(point)[0]
        return max(allowed - self.reserve, LEAST_SHARE * allowed)
