"""The hinge loss of the original RankSVM, by way of smooth ones: the Huberised hinge."""

from typing import Any

from ranksvm.losses._margin_loss import MarginLoss
from ranksvm.losses.protocol import LossSums

__all__ = ["Hinge", "HuberHinge", "Width"]


class HuberHinge(MarginLoss):
    """Huberised hinge of width d: a parabola from margin 1 down to 1 - d, straight below.

    The sum over the pairs of a_ij times 0 for ``m >= 1``, ``(1 - m)^2 / (2 d)`` for ``1 - d <= m < 1`` and
    ``1 - m - d / 2`` below, ``m = s_i - s_j`` (Chapelle, "Training a support vector machine in the primal", Neural
    Computation 2007, has it around the hinge, not below). The Hessian with respect to the scores is
    ``L / d``, L the Laplacian of the graph of the pairs in the ring ``1 - d <= m < 1``; these are summed by themselves,
    not as a difference of two sums over more pairs, so that a narrow ring loses no digits.

    Parameters
    ----------
    pairs : ComparablePairs or PairList
        The pairs of the data set.
    width : float
        The width d, positive.
    """

    ring = True

    def __init__(self, pairs: Any, width: float):
        super().__init__(pairs)
        self.width = width

    @property
    def curvature(self) -> float:
        """``1 / d``."""
        return 1.0 / self.width

    def _sums(self, scores, state, first, last, gradient_range):
        # a loss of its own, not a smoothing of another one: no excess, no slack
        return LossSums(self.sums.huber(scores, self.width, state, first, last, gradient_range).value)


class Width:
    """A width of smoothing that narrows while a problem is being solved, the same for all parts of the problem.

    Parameters
    ----------
    value : float
        The width to begin with.
    """

    def __init__(self, value: float = 1.0):
        self.value = value


class Hinge(MarginLoss):
    """Sum over the pairs of ``a_ij * max(0, 1 - (s_i - s_j))``, smoothed as `HuberHinge`, ever less.

    `evaluate` gives value and gradient of the Huberised hinge of the present width, how much more the hinge itself is
    (``excess``), and the sum over the ring of ``a h (1 - h / d)``, ``h = 1 - m`` (``slack``). The dual variables
    ``alpha_ij = C a_ij clip(h / d, 0, 1)`` are feasible for the dual of the *hinge* problem, and the duality gap there
    is ``1/2 |gradient|^2 + C * slack``, gradient that of the smoothed objective: a sum of non-negative terms.

    Parameters
    ----------
    pairs : ComparablePairs or PairList
        The pairs of the data set.
    width : Width, optional
        The width, shared with the same loss over other pairs.
    """

    ring = True

    def __init__(self, pairs: Any, width: Width | None = None):
        super().__init__(pairs)
        self.width = width or Width()

    @property
    def curvature(self) -> float:
        """``1 / d``."""
        return 1.0 / self.width.value

    def _sums(self, scores, state, first, last, gradient_range):
        return self.sums.huber(scores, self.width.value, state, first, last, gradient_range)

    def smoothed(self) -> HuberHinge:
        """The Huberised hinge of the present width.

        Returns
        -------
        HuberHinge
            A loss that stands for itself and is not sharpened.
        """
        return HuberHinge(self.pairs, self.width.value)

    def sharpen(self, factor: float) -> bool:
        """Narrow the width, for whatever part of the data the loss is over; see `PairwiseLoss.sharpen`.

        Parameters
        ----------
        factor : float
            What the width is multiplied by.

        Returns
        -------
        bool
            True.
        """
        self.width.value *= factor
        return True
