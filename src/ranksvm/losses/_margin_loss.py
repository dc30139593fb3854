"""Base of the losses of the margin: the Hessian is a multiple of a graph Laplacian."""

import copy
from functools import reduce
from typing import Any, ClassVar, Self

import numpy as np

from ranksvm.losses.protocol import LossSums, QueryOperator
from ranksvm.losses.round_off import OPERATIONS, LossRoundOff, Reach, growth, spread_of
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

    def new_state(self, near: Any = None, n_threads: int = 1, scores: np.ndarray | None = None) -> Any:
        return self.sums.new_state(self.ring, near, n_threads, scores)

    def evaluation(self, state: Any, width: float | None) -> QueryOperator:
        # stored with the pairs it belongs to: the width may have changed when the products are computed
        state.curvature = self.curvature(width)
        return self._operator(state, width)

    def round_off(
        self, scores: np.ndarray, sums: LossSums, width: float | None, off: float, sharp: bool
    ) -> LossRoundOff:
        lengths, parts = self.sums.lengths, [self.over(part) for part in self.pairs.gain_parts]
        spread = spread_of(scores, self.pairs.pointers) if lengths.swept or parts else 0.0
        pairs = rough = self._reach(scores, sums, width, off, sharp)
        if parts:
            # weights that are differences of gains, and all sums with them, are no more accurate than sums of gains
            most, values = (1.0 + spread + off) ** 2, np.asarray(scores)
            at = [part._sums_at(values, width) if sharp else LossSums(most * part.pairs.weight) for part in parts]
            both = zip(parts, at, strict=True)
            rough = reduce(Reach.plus, (part._reach(values, own, width, off, sharp) for part, own in both))
        weights = growth(OPERATIONS + lengths.of_document + lengths.swept)
        return LossRoundOff(*self._round_off(pairs, rough, width, off, spread), weights=weights)

    def _reach(self, scores: np.ndarray, sums: LossSums, width: float | None, off: float, sharp: bool) -> Reach:
        active = ring = self.pairs.weight
        if sharp:
            active = self._weight_below(scores, 1.0 + off)
            ring = active
            if width is not None and off < width:
                # what is summed up twice differs by round-off alone
                more = growth(self.sums.lengths.of_all) * active
                ring += more - self._weight_below(scores, 1.0 - width - off)
        return Reach(active, max(ring, 0.0), sums.value + sums.excess, sums.value)

    def _sums_at(self, scores: np.ndarray, width: float | None) -> LossSums:
        evaluate = self.evaluation(self.new_state(), width)
        return LossSums(*evaluate(0, self.pairs.n_queries, scores, np.empty(self.pairs.n_rows)))

    def _round_off(
        self, pairs: Reach, rough: Reach, width: Any, off: float, spread: float
    ) -> tuple[float, float, float, float, float]:
        """The bounds, but that of weights.

        ``rough`` is what ``pairs`` is, with sums of gains in place of the weights that are differences of them.
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

    def hessian_rows(self, state: Any, first: int, last: int, X_range: np.ndarray, out: np.ndarray) -> int | None:
        return self.sums.hessian(state).rows(first, last, X_range, out)
