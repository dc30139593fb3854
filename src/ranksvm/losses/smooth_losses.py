"""Losses that are curved at every margin."""

import numpy as np

from ranksvm.losses.margin_loss import Bounds, SmoothLoss
from ranksvm.losses.round_off import OPERATIONS, Reach, growth

__all__ = ["SMOOTH_LOSSES", "Logistic"]


class Logistic(SmoothLoss):
    """Sum over the pairs of ``a_ij log(1 + exp(-m_ij))``, ``m = s_i - s_j``: the model of Bradley and Terry.

    Document i is preferred to document j with probability ``sigma(m) = 1 / (1 + exp(-m))``, and the loss is minus the
    logarithm of the likelihood. With a linear scoring function it is the linear RankNet (Burges et al., "Learning to
    rank using gradient descent", ICML 2005).

    The conjugate of the loss is minus an entropy: ``u log(u) + (1 - u) log(1 - u)`` at the slope ``-u``, ``0 <= u <=
    1``. The dual of ``1/2 |w|^2 + C * loss(X w)`` is therefore to maximize ``C * sum of a_ij H(alpha_ij / (C a_ij)) -
    1/2 |sum of alpha_ij (x_i - x_j)|^2`` over ``0 <= alpha_ij <= C a_ij``, with ``H(u) = -u log(u) - (1 - u) log(1 -
    u)``. The dual variables ``alpha_ij = C a_ij sigma(-m_ij)`` are feasible at any weights, and as ``loss(m) = H(u) - u
    m`` for ``u = sigma(-m)``, the duality gap there is ``1/2 |w - sum of alpha_ij (x_i - x_j)|^2``, half the squared
    gradient.

    Parameters
    ----------
    pairs : ComparablePairs or PairList
        The pairs of the data set.
    """

    name = "logistic"
    function = 1
    probabilistic = True

    @staticmethod
    def derivative(margins: np.ndarray, width: float | None = None) -> np.ndarray:
        """Derivative of the loss of a pair of weight 1, ``-sigma(-m)``.

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
        from scipy.special import expit  # which most programs do without

        slopes: np.ndarray = -expit(-margins)
        return slopes

    def _round_off(self, pairs: Reach, rough: Reach, width: float | None, margin_error: float, spread: float) -> Bounds:
        lengths = self.sums.lengths
        # sigma(-m) is at most the loss, at most 1, and changes by no more than a factor exp(margin_error)
        pulls, rough_pulls = (
            min(part.active, float(np.exp(min(margin_error, 1.0))) * part.loss) for part in (pairs, rough)
        )
        if margin_error > 1.0:
            pulls, rough_pulls = pairs.active, rough.active
        pull_sums = 2.0 * growth(OPERATIONS + lengths.of_document) * rough_pulls
        # the second derivative is at most 1/4, and at most sigma(-m)
        excess = 0.5 * margin_error * margin_error * min(0.25 * pairs.active, pulls)
        return pulls, pull_sums, excess, growth(OPERATIONS + lengths.of_all) * rough.loss, 0.0


# all losses of this kind
SMOOTH_LOSSES = (Logistic,)
