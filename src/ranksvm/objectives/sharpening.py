"""Objectives whose loss smooths another one: the certificate of the problem that is meant, and when to smooth less."""

from typing import Any

import numpy as np

from ranksvm.losses.protocol import PairwiseLoss

__all__ = ["Sharpened"]

# Smoothing may take this part of the gap allowed. What it takes more is mended, once the gradient's part is this much
# of it, by narrowing the width by at least the factor SHARPEN_LEAST.
SMOOTHING_SHARE = 0.5
SHARPEN_BELOW = 0.1
SHARPEN_LEAST = 0.5


class Sharpened:
    """What objectives of the form ``1/2 |w|^2 + C * loss`` share, whatever w is. See `Objective` for the methods.

    With a loss that stands for itself, its excess and slack are 0, and there is never anything to sharpen.
    """

    C: float
    loss: PairwiseLoss
    # The width narrows by at most this factor: solutions so near are extrapolated well from one to the next (on sparse
    # word pairs 51 iterations; 150 were not enough with 1/16, or without extrapolation).
    sharpen_most = 0.25
    # where the objective was last sharpened, and by what factor; None when the problem is a new one
    _sharpened: tuple[np.ndarray, float] | None = None

    def gap(self, point: Any) -> float:
        """Duality gap of the problem with the loss as it is evaluated."""
        raise NotImplementedError

    def evaluate(self, w: np.ndarray, near: Any = None) -> Any:
        """The point at w."""
        raise NotImplementedError

    def between(self, point: Any, trial: Any, alpha: float) -> Any:
        """The point at ``alpha`` on the segment from one point to another."""
        raise NotImplementedError

    def release(self, point: Any) -> None:
        """Say that a point is no longer needed."""
        raise NotImplementedError

    def certificate(self, point: Any) -> tuple[float, float]:
        """Value and duality gap of the problem that is meant, with the loss that the evaluated one may be smoothing."""
        return float(point.value + self.C * point.loss.excess), self.gap(point) + self.C * point.loss.slack

    def goal(self, point: Any, tol: float) -> float:
        """The `gap` worth reaching with the present smoothing, where the problem is to be solved to ``tol``."""
        slack = self.C * point.loss.slack
        return tol * self.certificate(point)[0] - slack if self.sharp(point, tol) else SHARPEN_BELOW * slack

    def sharp(self, point: Any, tol: float) -> bool:
        """Whether so little is smoothed at a point that the problem that is meant can be solved to ``tol``."""
        return self.C * point.loss.slack <= SMOOTHING_SHARE * tol * self.certificate(point)[0]

    def sharpen(self, point: Any, tol: float) -> tuple[Any, int]:
        """A point with less smoothing, for w or where the solution is expected, if it is time for that; else the same.

        Also the number of evaluations that took.

        It is time once the gap comes from the smoothing rather than from the gradient. The slack falls with the square
        of the width where margins are dense, so that this says which width is worth trying next.
        """
        slack = self.C * point.loss.slack
        if self.sharp(point, tol) or self.gap(point) > SHARPEN_BELOW * slack:
            return point, 0
        excess = slack / (SMOOTHING_SHARE * tol * self.certificate(point)[0])
        factor = float(np.clip(0.9 / np.sqrt(excess), self.sharpen_most, SHARPEN_LEAST))
        if not self.loss.sharpen(factor):
            return point, 0
        w, sharper = point.w, self.between(point, point, 0.0)
        self.release(point)
        n_evaluations = 1
        if self._sharpened is not None:
            # Where the pairs in the ring stay the same, the solution is linear in the width.
            w_before, factor_before = self._sharpened
            beyond = (1.0 - factor) / (1.0 / factor_before - 1.0)
            further = self.evaluate(w + beyond * (w - w_before), sharper)
            if self.gap(further) < self.gap(sharper):
                sharper, further = further, sharper
            self.release(further)
            n_evaluations = 2
        self._sharpened = w, factor
        return sharper, n_evaluations
