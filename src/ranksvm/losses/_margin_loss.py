"""What the losses of the margin share: the curvature is a multiple of a graph Laplacian."""

from typing import Any

import numpy as np

from ranksvm.losses.sums_over_pairs import sums_over


class MarginLoss:
    """Base of losses whose Hessian with respect to the scores is ``curvature * L``, L a Laplacian over the pairs.

    Parameters
    ----------
    pairs : ComparablePairs or PairList
        The pairs of the data set.
    """

    # whether the loss is linear beyond an inner window
    ring = False

    def __init__(self, pairs: Any):
        self.pairs = pairs
        self.sums = sums_over(pairs)

    def new_state(self, near: Any = None) -> Any:
        return self.sums.new_state(self.ring, near)

    def sharpen(self, factor: float) -> bool:
        return False

    def curvature_product(self, state: Any, first: int, last: int, v_range: np.ndarray, out_range: np.ndarray) -> None:
        self.sums.laplacian(state, first, last, v_range, out_range)
        out_range *= state.curvature

    def curvature_diagonal(self, state: Any, start: int, stop: int) -> np.ndarray:
        return state.curvature * state.counts[start:stop]

    def curvature_rows(self, state: Any, first: int, last: int, X_range: np.ndarray, Z_range: np.ndarray) -> None:
        self.sums.laplacian_rows(state, first, last, X_range, Z_range)
        Z_range *= state.curvature
