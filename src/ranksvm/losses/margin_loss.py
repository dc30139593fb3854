"""Base class of losses whose Hessian with respect to the scores is a multiple of a graph Laplacian."""

import copy
from functools import reduce
from typing import Any, ClassVar, Protocol, Self, TypeVar

import numpy as np

import ranksvm._compiled.pair_list as pair_list
import ranksvm._compiled.sweep as sweep
from ranksvm._compiled.passes import QueryOperator as CompiledOperator
from ranksvm._util.lazy import cached_property
from ranksvm.data.pair_list import PairList
from ranksvm.data.pairs import ComparablePairs
from ranksvm.losses.protocol import LossSums, Pairs
from ranksvm.losses.round_off import OPERATIONS, LossRoundOff, Reach, SumLengths, growth, spread_of

__all__ = [
    "Bounds",
    "ListState",
    "ListSums",
    "MarginLoss",
    "PairState",
    "PairSums",
    "SmoothLoss",
    "SweepState",
    "SweepSums",
    "sums_over",
]

# the fields of `LossRoundOff`, except weights
Bounds = tuple[float, float, float, float, float]


class PairState(Protocol):
    """The curved pairs (whose loss has a second derivative above 0) at some scores: `SweepState` or `ListState`."""

    degrees: np.ndarray
    curvature: float


State = TypeVar("State", bound=PairState)


class PairSums(Protocol[State]):
    """Sums over all pairs, computed by operators that read the scores and update a state: `SweepSums` or `ListSums`."""

    @property
    def lengths(self) -> SumLengths:
        """How many terms the sums have, for bounds on their round-off."""

    def new_state(
        self, ring: bool, near: State | None = None, n_threads: int = 1, scores: np.ndarray | None = None
    ) -> State: ...
    def squared_hinge(self, state: State, threshold: float) -> CompiledOperator: ...
    def huber(self, state: State, width: float | None, smoothing: bool, ring: float = 0.0) -> CompiledOperator: ...
    def smooth(self, state: State) -> CompiledOperator: ...
    def hessian(self, state: State) -> CompiledOperator: ...


class SweepState:
    """The pairs at which the loss is curved at one score vector, stored without a list of pairs.

    Parameters
    ----------
    pairs : ComparablePairs
        The pairs of the data set.
    ring : bool
        Whether there is an inner window of margins, in which the loss is linear (see ``inner``).
    near : SweepState, optional
        The state of an evaluation at similar scores; sorting begins from its order.
    n_threads : int
        Number of threads that share a long query.
    scores : ndarray of float64, shape (n_rows,), optional
        Memory for the scores. An evaluation of scores that are already in this array does not copy them.
    function : int
        Number, in ``_compiled/margin_functions.hpp``, of a loss that is curved at all pairs, all of which are then
        visited; 0 for losses with a threshold.

    Attributes
    ----------
    order : ndarray of int32, shape (n_rows,), or None
        Documents (numbered within their query) by ascending score, for queries that are swept (sorted, and not visited
        pair by pair); None if no query is swept.
    outer, inner : ndarray of int32, shape (n_rows,), or None
        For each document in this order, the number of documents of its query that score below the upper limit of a
        window. The loss is curved at the pairs in the outer window but not in the inner one; ``inner`` is None if there
        is no inner window.
    scores : ndarray of float64, shape (n_rows,)
        The scores of queries whose pairs are visited, by position.
    degrees : ndarray of float64, shape (n_rows,)
        Diagonal of the Laplacian: the weight of the curved pairs of each document.
    curvature : float
        Second derivative of the loss of a curved pair of weight 1.
    """

    def __init__(
        self,
        pairs: ComparablePairs,
        ring: bool,
        near: "SweepState | None" = None,
        n_threads: int = 1,
        scores: np.ndarray | None = None,
        function: int = 0,
    ):
        self.order = self.outer = self.inner = None
        if pairs.n_swept and not function:
            if near is None or near.order is None:
                self.order = np.arange(pairs.n_rows, dtype=np.int32)
                self.order -= np.repeat(pairs.pointers[:-1].astype(np.int32), np.diff(pairs.pointers))
            else:
                self.order = near.order.copy()
            self.outer = np.empty(pairs.n_rows, dtype=np.int32)
            self.inner = np.empty(pairs.n_rows, dtype=np.int32) if ring else None
        self.scores = np.empty(pairs.n_rows) if scores is None else scores
        self.degrees = np.empty(pairs.n_rows)
        self.curvature = 0.0
        swept = self.order, self.outer, self.inner
        self.arrays = sweep.StateArrays(*swept, self.scores, self.degrees, ring, n_threads, function)


class SweepSums:
    """Sums over all pairs that labels imply: queries with few pairs are visited pair by pair, and others are sorted.

    Parameters
    ----------
    pairs : ComparablePairs
        The pairs.
    function : int
        Number, in ``_compiled/margin_functions.hpp``, of a loss that is curved at all pairs, all of which are then
        visited; 0 for losses with a threshold.
    """

    def __init__(self, pairs: ComparablePairs, function: int = 0):
        self.pairs = pairs
        self.function = function

    @cached_property
    def lengths(self) -> SumLengths:
        """How many terms the sums have, for bounds on their round-off."""
        pairs, sizes = self.pairs, np.diff(self.pairs.pointers)
        if self.function or not pairs.n_swept:
            most = int(pairs.pairs_per_query.max(initial=0))
            return SumLengths(int(sizes.max(initial=0)), most + pairs.n_queries)
        visited = int(np.where(pairs.visited, pairs.pairs_per_query, 0).max(initial=0))
        is_swept = (pairs.visited == 0) & (pairs.pairs_per_query > 0)
        longest, swept = (int(np.where(which, sizes, 0).max(initial=0)) for which in (~is_swept, is_swept))
        return SumLengths(longest, max(visited, swept) + pairs.n_queries, swept)

    def new_state(
        self, ring: bool, near: SweepState | None = None, n_threads: int = 1, scores: np.ndarray | None = None
    ) -> SweepState:
        return SweepState(self.pairs, ring, near, n_threads, scores, self.function)

    def squared_hinge(self, state: SweepState, threshold: float) -> CompiledOperator:
        return sweep.squared_hinge(self.pairs.arrays, state.arrays, threshold)

    def huber(self, state: SweepState, width: float | None, smoothing: bool, ring: float = 0.0) -> CompiledOperator:
        return sweep.huber(self.pairs.arrays, state.arrays, width, smoothing, ring)

    def smooth(self, state: SweepState) -> CompiledOperator:
        return sweep.smooth(self.pairs.arrays, state.arrays)

    def hessian(self, state: SweepState) -> CompiledOperator:
        return sweep.laplacian(self.pairs.arrays, state.arrays, state.curvature)


class ListState:
    """For a list of pairs: at which of them the loss is curved at one score vector.

    Parameters
    ----------
    pairs : PairList
        The pairs.

    Attributes
    ----------
    active : ndarray of float64, shape (n_pairs,)
        Weight of each pair at which the loss is curved, 0 for the others.
    degrees, curvature
        As in `SweepState`.
    """

    def __init__(self, pairs: PairList):
        self.active = np.empty(pairs.n_pairs)
        self.degrees = np.empty(pairs.n_rows)
        self.curvature = 0.0


class ListSums:
    """Sums over the pairs of a list, in O(pairs).

    Parameters
    ----------
    pairs : PairList
        The pairs.
    function : int
        As in `SweepSums`.
    """

    def __init__(self, pairs: PairList, function: int = 0):
        self.pairs = pairs
        self.function = function

    @cached_property
    def lengths(self) -> SumLengths:
        """How many terms the sums have, for bounds on their round-off."""
        most = int(self.pairs.pairs_per_query.max(initial=0))
        return SumLengths(most, most + self.pairs.n_queries)

    def new_state(
        self, ring: bool, near: ListState | None = None, n_threads: int = 1, scores: np.ndarray | None = None
    ) -> ListState:
        return ListState(self.pairs)

    def squared_hinge(self, state: ListState, threshold: float) -> CompiledOperator:
        return pair_list.squared_hinge(self.pairs.arrays, threshold, state.active, state.degrees)

    def huber(self, state: ListState, width: float | None, smoothing: bool, ring: float = 0.0) -> CompiledOperator:
        return pair_list.huber(self.pairs.arrays, width, smoothing, state.active, state.degrees, ring)

    def smooth(self, state: ListState) -> CompiledOperator:
        return pair_list.smooth(self.pairs.arrays, self.function, state.active, state.degrees)

    def hessian(self, state: ListState) -> CompiledOperator:
        return pair_list.laplacian(self.pairs.arrays, state.active, state.degrees, state.curvature)


def sums_over(pairs: Pairs, function: int = 0) -> PairSums[Any]:
    """Return `ListSums` for listed pairs, and `SweepSums` for pairs that labels imply."""
    if isinstance(pairs, PairList):
        return ListSums(pairs, function)
    assert isinstance(pairs, ComparablePairs)
    return SweepSums(pairs, function)


class MarginLoss:
    """Base of losses whose Hessian by the scores is ``curvature`` times the graph Laplacian of the active pairs.

    See `PairwiseLoss` for the methods. A subclass defines its ``curvature``, ``derivative`` and
    ``evaluation``.

    Parameters
    ----------
    pairs : ComparablePairs or PairList
        The pairs of the data set.
    """

    # name in ranksvm._util.parameters
    name: ClassVar[str]
    # number of the function of _compiled/margin_functions.hpp; 0 for a loss that is curved in a window of margins only
    function: ClassVar[int] = 0
    # whether there is an inner window of margins, in which the loss is linear
    ring: ClassVar[bool] = False
    # whether the width only smooths the loss, and is reduced until the problem without smoothing is solved
    smoothed: ClassVar[bool] = False
    # whether minus its derivative is the probability of the opposite order, so that scores need no calibration
    probabilistic: ClassVar[bool] = False
    # initial widths, if no solution of a similar problem is known and if one is
    first_width: ClassVar[float | None] = None
    warm_width: ClassVar[float | None] = None

    def __init__(self, pairs: Pairs):
        self.pairs = pairs
        self.sums = sums_over(pairs, self.function)

    @staticmethod
    def derivative(margins: np.ndarray, width: float | None) -> np.ndarray:
        """Derivative of the loss of a pair of weight 1 with respect to its margin."""
        raise NotImplementedError

    def curvature(self, width: float | None) -> float:
        """Second derivative of the loss of an active pair of weight 1."""
        raise NotImplementedError

    def with_pairs(self, pairs: Pairs) -> Self:
        other = copy.copy(self)
        other.pairs, other.sums = pairs, sums_over(pairs, self.function)
        return other

    def new_state(
        self, near: PairState | None = None, n_threads: int = 1, scores: np.ndarray | None = None
    ) -> PairState:
        state: PairState = self.sums.new_state(self.ring, near, n_threads, scores)
        return state

    def evaluation(self, state: PairState, width: float | None) -> CompiledOperator:
        raise NotImplementedError

    def round_off(
        self, scores: np.ndarray, sums: LossSums, width: float | None, margin_error: float, tight: bool
    ) -> LossRoundOff:
        lengths, parts = self.sums.lengths, [self.with_pairs(part) for part in self.pairs.gain_parts]
        spread = spread_of(scores, self.pairs.pointers) if lengths.swept or parts else 0.0
        pairs = rough = self._reach(scores, sums, width, margin_error, tight)
        if parts:
            # weights that are differences of gains, and all sums with them, are only as accurate as sums of gains
            most, values = (1.0 + spread + margin_error) ** 2, np.asarray(scores)
            at = [part._sums_at(values, width) if tight else LossSums(most * part.pairs.weight) for part in parts]
            both = zip(parts, at, strict=True)
            rough = reduce(Reach.plus, (part._reach(values, own, width, margin_error, tight) for part, own in both))
        weights = growth(OPERATIONS + lengths.of_document + lengths.swept)
        return LossRoundOff(*self._round_off(pairs, rough, width, margin_error, spread), weights=weights)

    def _reach(
        self, scores: np.ndarray, sums: LossSums, width: float | None, margin_error: float, tight: bool
    ) -> Reach:
        active = ring = self.pairs.weight
        if tight:
            active = self._weight_below(scores, 1.0 + margin_error)
            ring = active
            if width is not None and margin_error < width:
                # pairs that are counted in both sums cancel only up to round-off
                more = growth(self.sums.lengths.of_all) * active
                ring += more - self._weight_below(scores, 1.0 - width - margin_error)
        return Reach(active, max(ring, 0.0), sums.value + sums.excess, sums.value)

    def _sums_at(self, scores: np.ndarray, width: float | None) -> LossSums:
        evaluate = self.evaluation(self.new_state(), width)
        return LossSums(*evaluate(0, self.pairs.n_queries, scores, np.empty(self.pairs.n_rows)))

    def _round_off(self, pairs: Reach, rough: Reach, width: float | None, margin_error: float, spread: float) -> Bounds:
        """The fields of `LossRoundOff`, except ``weights``.

        If the weights are differences of gains, ``rough`` has the sums with the gains as weights; otherwise it is
        ``pairs``.
        """
        raise NotImplementedError

    def _weight_below(self, scores: np.ndarray, threshold: float) -> float:
        """Weight of the pairs whose margins are below a threshold."""
        state = self.sums.new_state(False)
        below = self.sums.squared_hinge(state, threshold)
        below(0, self.pairs.n_queries, scores, np.empty(self.pairs.n_rows))
        return 0.5 * float(state.degrees.sum())

    def hessian(self, state: PairState) -> CompiledOperator:
        return self.sums.hessian(state)

    def curvature_diagonal(self, state: PairState, start: int, stop: int) -> np.ndarray:
        return state.curvature * state.degrees[start:stop]

    def hessian_rows(self, state: PairState, first: int, last: int, X_range: np.ndarray, out: np.ndarray) -> int | None:
        n_squares: int | None = self.sums.hessian(state).rows(first, last, X_range, out)
        return n_squares


class SmoothLoss(MarginLoss):
    """Base of losses that are curved at every margin: all pairs are visited, in O(pairs) and without listing them.

    See `PairwiseLoss` for the methods. A subclass defines the number of its ``function``, ``derivative`` and
    ``_round_off``. The weight of a pair in the Laplacian is its own weight times the second derivative.

    Parameters
    ----------
    pairs : ComparablePairs or PairList
        The pairs of the data set.
    """

    def curvature(self, width: float | None = None) -> float:
        """Return 1, because the second derivatives are in the weights of the Laplacian."""
        return 1.0

    def _reach(
        self, scores: np.ndarray, sums: LossSums, width: float | None, margin_error: float, tight: bool
    ) -> Reach:
        return Reach(self.pairs.weight, self.pairs.weight, sums.value, sums.value)

    def evaluation(self, state: PairState, width: float | None) -> CompiledOperator:
        state.curvature = self.curvature()
        return self.sums.smooth(state)
