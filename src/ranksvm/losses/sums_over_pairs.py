"""The two ways to sum over pairs: by levels and scores where labels imply them, or one by one from a list.

Both offer the same, as operators on vectors over rows: squared hinge and Huberised hinge with their gradients, and
products with the Laplacian of the graph whose edges are the pairs at which the loss was curved. A state keeps these
pairs in the form that suits the way.
"""

from typing import Any

import numpy as np

import ranksvm._compiled.pair_list as pair_list
import ranksvm._compiled.sweep as sweep
from ranksvm._util.cached import cached_property
from ranksvm.data.pair_list import PairList
from ranksvm.data.pairs import ComparablePairs
from ranksvm.losses.round_off import SumLengths

__all__ = ["ListState", "ListSums", "SweepState", "SweepSums", "sums_over"]


class SweepState:
    """The pairs at which the loss is curved at one score vector, never listed.

    Parameters
    ----------
    pairs : ComparablePairs
        The pairs of the data set.
    ring : bool
        Whether there is an inner window.
    near : SweepState, optional
        That of similar scores, whose order is a good beginning.
    n_threads : int
        Number of threads that share a long query.
    scores : ndarray of float64, shape (n_rows,), optional
        Memory for the scores: evaluations of scores that are there already do not copy them.

    Attributes
    ----------
    order : ndarray of int32, shape (n_rows,), or None
        Documents (numbered within their query) by ascending score, of queries that are swept; None where none is.
    outer, inner : ndarray of int32, shape (n_rows,), or None
        For each document in that order, how many documents of its query score less than its margin asks. Curved are
        the pairs in the outer window that are not in the inner one; ``inner`` is None where all of them are.
    scores : ndarray of float64, shape (n_rows,)
        The scores of queries whose pairs are visited, by position.
    degrees : ndarray of float64, shape (n_rows,)
        Diagonal of the Laplacian: the weight of the curved pairs of each document.
    curvature : float
        Second derivative of the loss of such a pair of weight 1.
    """

    def __init__(
        self,
        pairs: ComparablePairs,
        ring: bool,
        near: "SweepState | None" = None,
        n_threads: int = 1,
        scores: np.ndarray | None = None,
    ):
        self.order = self.outer = self.inner = None
        if pairs.n_swept:
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
        self.arrays = sweep.StateArrays(*swept, self.scores, self.degrees, ring, n_threads)


class SweepSums:
    """Sums over all pairs that labels imply: of queries with few pairs by visiting them, of others by sorting.

    Parameters
    ----------
    pairs : ComparablePairs
        The pairs.
    """

    def __init__(self, pairs: ComparablePairs):
        self.pairs = pairs

    @cached_property
    def lengths(self) -> SumLengths:
        """Numbers of terms of the sums."""
        pairs, sizes = self.pairs, np.diff(self.pairs.pointers)
        if not pairs.n_swept:
            most = int(pairs.pairs_per_query.max(initial=0))
            return SumLengths(int(sizes.max(initial=0)), most + pairs.n_queries)
        visited = int(np.where(pairs.visited, pairs.pairs_per_query, 0).max(initial=0))
        is_swept = (pairs.visited == 0) & (pairs.pairs_per_query > 0)
        longest, swept = (int(np.where(which, sizes, 0).max(initial=0)) for which in (~is_swept, is_swept))
        return SumLengths(longest, max(visited, swept) + pairs.n_queries, swept)

    def new_state(
        self, ring: bool, near: Any = None, n_threads: int = 1, scores: np.ndarray | None = None
    ) -> SweepState:
        return SweepState(self.pairs, ring, near, n_threads, scores)

    def squared_hinge(self, state, threshold):
        return sweep.squared_hinge(self.pairs.arrays, state.arrays, threshold)

    def huber(self, state, width, smoothing):
        return sweep.huber(self.pairs.arrays, state.arrays, width, smoothing)

    def hessian(self, state):
        return sweep.laplacian(self.pairs.arrays, state.arrays, state.curvature)


class ListState:
    """The pairs of a list at which the loss is curved at one score vector.

    Parameters
    ----------
    pairs : PairList
        The pairs.

    Attributes
    ----------
    active : ndarray of float64, shape (n_pairs,)
        Weight of each pair at which the loss is curved, 0 for the others.
    degrees, curvature
        As those of `SweepState`.
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
    """

    def __init__(self, pairs: PairList):
        self.pairs = pairs

    @cached_property
    def lengths(self) -> SumLengths:
        """Numbers of terms of the sums."""
        most = int(self.pairs.pairs_per_query.max(initial=0))
        return SumLengths(most, most + self.pairs.n_queries)

    def new_state(
        self, ring: bool, near: Any = None, n_threads: int = 1, scores: np.ndarray | None = None
    ) -> ListState:
        return ListState(self.pairs)

    def squared_hinge(self, state, threshold):
        return pair_list.squared_hinge(self.pairs.arrays, threshold, state.active, state.degrees)

    def huber(self, state, width, smoothing):
        return pair_list.huber(self.pairs.arrays, width, smoothing, state.active, state.degrees)

    def hessian(self, state):
        return pair_list.laplacian(self.pairs.arrays, state.active, state.degrees, state.curvature)


def sums_over(pairs: Any) -> SweepSums | ListSums:
    """The way that suits the form of the pairs."""
    return ListSums(pairs) if isinstance(pairs, PairList) else SweepSums(pairs)
