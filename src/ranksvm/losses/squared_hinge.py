"""The squared hinge loss of RankSVM."""

from typing import Any

import numpy as np

from ranksvm.losses._margin_loss import MarginLoss
from ranksvm.losses.protocol import LossSums

__all__ = ["SquaredHinge"]


class SquaredHinge(MarginLoss):
    """Sum over the pairs of ``a_ij * max(0, 1 - (s_i - s_j)) ** 2``.

    The generalised Hessian with respect to the scores is ``2 L``, L the Laplacian of the graph whose edges are the
    violating pairs (margin below 1). Value, gradient and ``L v`` cost O(m log m) for a query of m documents, whatever
    the number of pairs: Lee & Lin, "Large-scale linear rankSVM", Neural Computation 2014, sections 3 and 4.

    Parameters
    ----------
    pairs : ComparablePairs or PairList
        The pairs of the data set.
    """

    margin = 1.0

    def over(self, pairs: Any) -> "SquaredHinge":
        """The same loss over other pairs.

        Parameters
        ----------
        pairs : ComparablePairs or PairList
            Those pairs.

        Returns
        -------
        SquaredHinge
            The loss.
        """
        return SquaredHinge(pairs)

    def evaluate(self, scores: np.ndarray, state: Any, first: int, last: int, gradient_range: np.ndarray) -> LossSums:
        """Value of the loss over some queries; see `PairwiseLoss.evaluate`.

        Parameters
        ----------
        scores : ndarray of float64, shape (n_rows,)
            Score of every position.
        state : object
            Of `new_state`; updated for these queries.
        first, last : int
            The queries.
        gradient_range : ndarray of float64
            Receives the gradient with respect to the scores of these queries' rows.

        Returns
        -------
        LossSums
            The value.
        """
        state.curvature = 2.0
        return self.sums.squared_hinge(scores, self.margin, state, first, last, gradient_range)
