"""Base of the losses of the margin: the Hessian is a multiple of a graph Laplacian."""

import copy
from typing import Any, ClassVar, Self

import numpy as np

from ranksvm.losses.protocol import LossSums, QueryOperator
from ranksvm.losses.round_off import OPERATIONS, LossRoundOff, growth, spread_of
from ranksvm.losses.sums_over_pairs import sums_over


class MarginLoss:
    """Base of losses whose Hessian with respect to the scores is ``curvature * L``, L a Laplacian over active pairs.

    See `PairwiseLoss` for the methods. A subclass defines its ``curvature``, ``derivative`` and ``_operator``.

    Parameters
    ----------
    pairs : ComparablePairs or PairList
        The pairs of the data set.
    """

    # whether the loss is linear beyond an inner window
    ring: ClassVar[bool] = False
    # Whether its width is a smoothing, to be reduced until the target problem is solved, and the initial widths:
    # without knowledge of the solution, and with the solution of a similar problem.
    smoothed: ClassVar[bool] = False
    first_width: ClassVar[float | None] = None
    warm_width: ClassVar[float | None] = None

    def __init__(self, pairs: Any):
        self.pairs = pairs
        self.sums = sums_over(pairs)

    @staticmethod
    def derivative(margins: np.ndarray, width: float | None) -> np.ndarray:
        """Derivative of the loss of a pair of weight 1 with respect to its margin."""
        raise NotImplementedError

    def curvature(self, width: float | None) -> float:
        """Second derivative of the loss of a pair of weight 1 where it is active."""
        raise NotImplementedError

    def _operator(self, state: Any, width: Any) -> QueryOperator:
        raise NotImplementedError

    def over(self, pairs: Any) -> Self:
        other = copy.copy(self)
        other.pairs, other.sums = pairs, sums_over(pairs)
        return other

    def new_state(self, near: Any = None, n_threads: int = 1) -> Any:
        return self.sums.new_state(self.ring, near, n_threads)

    def evaluation(self, state: Any, width: float | None) -> QueryOperator:
        # stored with the pairs it belongs to: the width may have changed when the products are computed
        state.curvature = self.curvature(width)
        return self._operator(state, width)

    def round_off(
        self, scores: np.ndarray, sums: LossSums, width: float | None, off: float, sharp: bool
    ) -> LossRoundOff:
        lengths = self.sums.lengths
        active = ring = self.pairs.weight
        if sharp:
            active = self._weight_below(scores, 1.0 + off)
            ring = active
            if width is not None and off < width:
                # what is summed up twice differs by round-off alone
                ring += growth(lengths.of_all) * active - self._weight_below(scores, 1.0 - width - off)
        gains = lengths.cancellation > 1.0
        spread = spread_of(scores, self.pairs.pointers) if lengths.swept or gains else 0.0
        weights = growth(OPERATIONS + lengths.of_document + lengths.swept)
        found = LossRoundOff(*self._round_off(sums, width, off, active, max(ring, 0.0), spread), weights=weights)
        if not gains:
            return found
        # The gains are rounded, and weights are their differences: what that adds to the loss, here and at the minimum,
        # where a pair's loss is hardly larger than the largest one here.
        largest = (1.0 + spread + off) ** 2
        rounded = 4.0 * growth(2.0) * min(lengths.cancellation * (sums.value + sums.excess), lengths.gains * largest)
        return found._replace(beyond=found.beyond + rounded)

    def _round_off(
        self, sums: LossSums, width: Any, off: float, active: float, ring: float, spread: float
    ) -> tuple[float, float, float, float, float]:
        """The bounds, but that of weights.

        ``active`` is the weight of the pairs of margins below 1 or no more than ``off`` above, ``ring`` that of those
        no more than ``off`` beyond the ring.
        """
        raise NotImplementedError

    def _weight_below(self, scores: np.ndarray, threshold: float) -> float:
        """Weight of the pairs of margins below a threshold."""
        state = self.sums.new_state(False)
        below = self.sums.squared_hinge(state, threshold)
        below(0, self.pairs.n_queries, scores, np.empty(self.pairs.n_rows))
        return 0.5 * float(state.degrees.sum())

    def hessian(self, state: Any) -> QueryOperator:
        return self.sums.hessian(state)

    def curvature_diagonal(self, state: Any, start: int, stop: int) -> np.ndarray:
        return state.curvature * state.degrees[start:stop]

    def curvature_rows(self, state: Any, first: int, last: int, X_range: np.ndarray, Z_range: np.ndarray) -> None:
        self.sums.hessian_rows(state, first, last, X_range, Z_range)

    def curvature_square(
        self, state: Any, first: int, last: int, X_range: np.ndarray, memory: np.ndarray
    ) -> np.ndarray | None:
        return self.sums.square(state, first, last, X_range, memory)
