"""The squared hinge loss of RankSVM, by the margin sweep."""

import numpy as np

import ranksvm._compiled.sweep as sweep
from ranksvm.data.pairs import ComparablePairs
from ranksvm.losses.protocol import SweepState

__all__ = ["SquaredHinge"]


class SquaredHinge:
    """Sum over the pairs of ``a_ij * max(0, 1 - (s_i - s_j)) ** 2``.

    The generalised Hessian with respect to the scores is ``2 L``, L the Laplacian of the graph whose edges are the
    violating pairs (margin below 1). Value, gradient and ``L v`` cost O(m log m) for a query of m documents, whatever
    the number of pairs: Lee & Lin, "Large-scale linear rankSVM", Neural Computation 2014, sections 3 and 4.

    Parameters
    ----------
    pairs : ComparablePairs
        The pairs of the data set.
    """

    margin = 1.0

    def __init__(self, pairs: ComparablePairs):
        self.pairs = pairs

    def over(self, pairs: ComparablePairs) -> "SquaredHinge":
        """The same loss over other pairs.

        Parameters
        ----------
        pairs : ComparablePairs
            Those pairs.

        Returns
        -------
        SquaredHinge
            The loss.
        """
        return SquaredHinge(pairs)

    def evaluate(
        self, scores: np.ndarray, state: SweepState, first: int, last: int, gradient_range: np.ndarray
    ) -> float:
        """Value of the loss over some queries; see `PairwiseLoss.evaluate`.

        Parameters
        ----------
        scores : ndarray of float32 or float64, shape (n_rows,)
            Score of every position.
        state : SweepState
            Updated for these queries.
        first, last : int
            The queries.
        gradient_range : ndarray of float64
            Receives the gradient with respect to the scores of these queries' rows.

        Returns
        -------
        float
            The value.
        """
        return sweep.squared_hinge(
            self.pairs.arrays,
            first,
            last,
            scores,
            self.margin,
            state.order,
            state.window,
            state.counts,
            gradient_range,
        )

    def curvature_product(
        self, state: SweepState, first: int, last: int, v_range: np.ndarray, out_range: np.ndarray
    ) -> None:
        """Write ``2 L v``; see `PairwiseLoss.curvature_product`.

        Parameters
        ----------
        state : SweepState
            Left by `evaluate`.
        first, last : int
            The queries.
        v_range, out_range : ndarray of float64
            A value for each of their rows, and where the product goes.
        """
        sweep.laplacian(self.pairs.arrays, first, last, state.order, state.window, state.counts, v_range, out_range)
        out_range *= 2.0

    def curvature_diagonal(self, state: SweepState, start: int, stop: int) -> np.ndarray:
        """Diagonal of ``2 L``; see `PairwiseLoss.curvature_diagonal`.

        Parameters
        ----------
        state : SweepState
            Left by `evaluate`.
        start, stop : int
            The positions.

        Returns
        -------
        ndarray of float64
            Twice the weight of each document's violating pairs.
        """
        return 2.0 * state.counts[start:stop]

    def curvature_rows(
        self, state: SweepState, first: int, last: int, X_range: np.ndarray, Z_range: np.ndarray
    ) -> None:
        """Write Z with ``X'Z + Z'X = 4 X' L X``; see `PairwiseLoss.curvature_rows`.

        Parameters
        ----------
        state : SweepState
            Left by `evaluate`.
        first, last : int
            The queries.
        X_range, Z_range : ndarray of float64, shape (rows, n_features)
            Their rows, centred by query, and where Z goes.
        """
        sweep.laplacian_rows(self.pairs.arrays, first, last, state.order, state.window, state.counts, X_range, Z_range)
        Z_range *= 2.0
