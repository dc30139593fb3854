"""What a loss offers: everything that linear, kernel, device and distributed objectives need of one."""

from typing import Protocol

import numpy as np

from ranksvm.data.pairs import ComparablePairs

__all__ = ["PairwiseLoss", "SweepState"]


class SweepState:
    """The violating pairs of one score vector, as `PairwiseLoss.evaluate` leaves them, for the products that follow.

    Parameters
    ----------
    pairs : ComparablePairs
        The pairs of the data set.
    near : SweepState, optional
        That of similar scores, whose order is a good beginning.

    Attributes
    ----------
    order : ndarray of int32, shape (n_rows,)
        Documents (numbered within their query) by ascending score.
    window : ndarray of int32, shape (n_rows,)
        For each document in that order, how many documents of its query score less than its margin asks.
    counts : ndarray of float64, shape (n_rows,)
        Diagonal of the Laplacian: the weight of the violating pairs of each document.
    """

    def __init__(self, pairs: ComparablePairs, near: "SweepState | None" = None):
        if near is None:
            self.order = np.arange(pairs.n_rows, dtype=np.int32)
            self.order -= np.repeat(pairs.pointers[:-1].astype(np.int32), np.diff(pairs.pointers))
        else:
            self.order = near.order.copy()
        self.window = np.empty(pairs.n_rows, dtype=np.int32)
        self.counts = np.empty(pairs.n_rows)


class PairwiseLoss(Protocol):
    """A sum over the pairs of a function of the margin ``s_i - s_j``.

    Every method works on the queries ``first .. last``; arrays named ``*_range`` hold the rows of those queries only,
    so that callers can go through the data in blocks and on several threads.
    """

    pairs: ComparablePairs

    def over(self, pairs: ComparablePairs) -> "PairwiseLoss":
        """The same loss over other pairs."""

    def evaluate(
        self, scores: np.ndarray, state: SweepState, first: int, last: int, gradient_range: np.ndarray
    ) -> float:
        """Value of the loss; writes its gradient with respect to the scores and updates ``state``."""

    def curvature_product(
        self, state: SweepState, first: int, last: int, v_range: np.ndarray, out_range: np.ndarray
    ) -> None:
        """Write the (generalised) Hessian with respect to the scores, times ``v``."""

    def curvature_diagonal(self, state: SweepState, start: int, stop: int) -> np.ndarray:
        """Diagonal of the Hessian with respect to the scores, for the positions ``start .. stop``."""

    def curvature_rows(
        self, state: SweepState, first: int, last: int, X_range: np.ndarray, Z_range: np.ndarray
    ) -> None:
        """Write Z with ``X'Z + Z'X = 2 X' H X`` for the Hessian H with respect to the scores; X centred by query."""
