"""The squared hinge loss of RankSVM."""

from ranksvm.losses._margin_loss import MarginLoss

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
    curvature = 2.0

    def _sums(self, scores, state, first, last, gradient_range):
        return self.sums.squared_hinge(scores, self.margin, state, first, last, gradient_range)
