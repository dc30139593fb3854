"""The squared hinge loss of RankSVM."""

import numpy as np

from ranksvm._compiled.passes import QueryOperator as CompiledOperator
from ranksvm.losses.margin_loss import Bounds, MarginLoss, PairState
from ranksvm.losses.round_off import OPERATIONS, Reach, growth

__all__ = ["SquaredHinge"]


class SquaredHinge(MarginLoss):
    """Sum over the pairs of ``a_ij * max(0, 1 - (s_i - s_j)) ** 2``.

    The generalized Hessian with respect to the scores is ``2 L``, where L is the Laplacian of the graph whose edges are
    the violating pairs (margin below 1). Value, gradient and ``L v`` cost O(m log m) for a query of m documents, for
    any number of pairs: Lee & Lin, "Large-scale linear rankSVM", Neural Computation 2014, sections 3 and 4.

    Parameters
    ----------
    pairs : ComparablePairs or PairList
        The pairs of the data set.
    """

    name = "squared_hinge"
    margin = 1.0

    @staticmethod
    def derivative(margins: np.ndarray, width: float | None = None) -> np.ndarray:
        """Derivative of the loss of a pair of weight 1, ``-2 max(0, 1 - m)``.

        Parameters
        ----------
        margins : ndarray of float64
            Margins m.
        width : None
            The loss has no width.

        Returns
        -------
        ndarray of float64
            The derivatives.
        """
        return -2.0 * np.maximum(0.0, 1.0 - margins)

    def curvature(self, width: float | None = None) -> float:
        """Second derivative of the loss of an active pair of weight 1: 2."""
        return 2.0

    def _round_off(self, pairs: Reach, rough: Reach, width: float | None, margin_error: float, spread: float) -> Bounds:
        lengths = self.sums.lengths
        value = growth(OPERATIONS + lengths.of_all) * rough.loss
        if lengths.swept:
            # Sums are differences of running sums over a query, whose terms are as large as the spread of the scores.
            value += growth(OPERATIONS + 2.0 * lengths.swept) * rough.active * (1.0 + 2.0 * spread) ** 2
        # round-off may make the sum of a loss near 0 negative
        pulls, rough_pulls = (
            2.0 * float(np.sqrt(part.active * (max(part.loss, 0.0) + value))) for part in (pairs, rough)
        )
        pull_sums = 2.0 * growth(OPERATIONS + lengths.of_document) * rough_pulls
        if lengths.swept:
            pull_sums += 4.0 * growth(OPERATIONS + lengths.swept) * rough.active * (1.0 + spread)
        return pulls, pull_sums, pairs.active * margin_error * margin_error, value, 0.0

    def evaluation(self, state: PairState, width: float | None) -> CompiledOperator:
        state.curvature = self.curvature()
        return self.sums.squared_hinge(state, self.margin)
