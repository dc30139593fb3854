"""The built-in losses: squared hinge, hinge, Huberized hinge and logistic loss; and the choice of one by name."""

from dataclasses import dataclass

import numpy as np

from ranksvm._compiled.passes import QueryOperator as CompiledOperator
from ranksvm._util.parameters import LOSSES
from ranksvm.exceptions import OptionError
from ranksvm.losses.margin_function import FunctionLoss, MarginFunction
from ranksvm.losses.margin_loss import Bounds, MarginLoss, PairState, SmoothLoss
from ranksvm.losses.protocol import Pairs, PairwiseLoss
from ranksvm.losses.round_off import OPERATIONS, Reach, growth

__all__ = ["CLASSES", "LOSSES", "Hinge", "HuberHinge", "Logistic", "LossSpec", "SquaredHinge"]


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


class HuberHinge(MarginLoss):
    """Huberized hinge of width d: a parabola from margin 1 down to 1 - d, linear below.

    The loss is the sum over the pairs of ``a_ij`` times a function of the margin ``m = s_i - s_j``: 0 for ``m >= 1``,
    ``(1 - m)^2 / (2 d)`` for ``1 - d <= m < 1``, and ``1 - m - d / 2`` below. (Chapelle, "Training a support vector
    machine in the primal", Neural Computation 2007, smooths the kink on both sides, not only below.)

    A pair with ``1 - d <= m < 1`` is in the ring. The Hessian with respect to the scores is ``L / d``, where L is the
    Laplacian of the graph whose edges are the pairs in the ring. Sums over the ring are computed directly: as a
    difference of two sums over more pairs, they would lose digits if the ring is narrow.

    Parameters
    ----------
    pairs : ComparablePairs or PairList
        The pairs of the data set.
    """

    name = "huber"
    ring = True

    @staticmethod
    def derivative(margins: np.ndarray, width: float | None) -> np.ndarray:
        """Derivative of the loss of a pair of weight 1, ``-clip((1 - m) / d, 0, 1)``.

        Parameters
        ----------
        margins : ndarray of float64
            Margins m.
        width : float
            The width d.

        Returns
        -------
        ndarray of float64
            The derivatives.
        """
        assert width is not None
        return -np.clip(np.maximum(0.0, 1.0 - margins) / width, 0.0, 1.0)

    def curvature(self, width: float | None) -> float:
        """``1 / d``.

        Parameters
        ----------
        width : float
            The width d.

        Returns
        -------
        float
            The second derivative of the loss of a pair in the ring.
        """
        assert width is not None
        return 1.0 / width

    def _round_off(self, pairs: Reach, rough: Reach, width: float | None, margin_error: float, spread: float) -> Bounds:
        assert width is not None
        lengths = self.sums.lengths
        value = slack = 4.0 * growth(OPERATIONS + lengths.of_all) * rough.loss
        if lengths.swept:
            # A hinge in the ring is a difference of terms as large as the spread of the scores, and is divided by the
            # width.
            sweep, size = growth(OPERATIONS + 2.0 * lengths.swept), 1.0 + 2.0 * spread
            value += sweep * (size * (size / width + 1.0) * rough.ring + (size + width) * rough.active)
            slack += sweep * size * (size / width + 1.0) * rough.ring
        # round-off may make the sum of a loss near 0 negative
        pulls, rough_pulls = (
            min(part.active, float(np.sqrt(2.0 * part.active * (max(part.smooth, 0.0) + value) / width)))
            for part in (pairs, rough)
        )
        pull_sums = 2.0 * growth(OPERATIONS + lengths.of_document) * rough_pulls
        if lengths.swept:
            pull_sums += 2.0 * sweep * (rough.active + size * rough.ring / width)
        # Let the computed margin of a pair be wrong by at most e. From the computed to the true margin, the excess of
        # the loss over its tangent (see `LossRoundOff.excess_bound`) grows by at most e for the hinge. For the
        # Huberized hinge, it grows by at most `e^2 / (2 d)`, or e if that is smaller.
        parabola = min(margin_error * margin_error / (2.0 * width), margin_error)
        excess = pairs.ring * margin_error if self.smoothed else pairs.active * parabola
        return pulls, pull_sums, excess, value, slack

    def narrowed(self, scores: np.ndarray, width: float | None, narrower: float | None) -> tuple[PairState, np.ndarray]:
        """Compute how the loss changes if the pairs that are now in the ring get another width.

        The pairs in the ring stay the same, and so do those beyond it. The results define a quadratic function. Near
        the minimum for the narrower width, the loss of that width equals this function up to a constant, if the ring of
        the narrower width has the same pairs at that minimum, and the same pairs are beyond it.

        Parameters
        ----------
        scores : ndarray of float64, shape (n_rows,)
            The scores.
        width, narrower : float
            The width of the ring, and the new width of the loss in the ring.

        Returns
        -------
        state : PairState
            The pairs in the ring, with the curvature of the narrower width.
        change : ndarray of float64, shape (n_rows,)
            Derivative of the changed loss with respect to the scores, minus the derivative of the loss of ``width``.
        """
        assert width is not None
        assert narrower is not None
        state, pulls = self.new_state(), np.empty((2, len(scores)))
        # Doubling the width halves the derivatives of the pairs in the ring. The difference of the two results is
        # therefore half of these derivatives; all other pairs cancel.
        for out, multiple in zip(pulls, (1.0, 2.0), strict=True):
            self.sums.huber(state, multiple * width, False, width)(0, self.pairs.n_queries, scores, out)
        state.curvature = self.curvature(narrower)
        return state, 2.0 * (width / narrower - 1.0) * (pulls[0] - pulls[1])

    def evaluation(self, state: PairState, width: float | None) -> CompiledOperator:
        # The state stores the curvature, because the width may have changed when Hessian products are computed.
        state.curvature = self.curvature(width)
        return self.sums.huber(state, width, self.smoothed)


class Hinge(HuberHinge):
    """Sum over the pairs of ``a_ij * max(0, 1 - (s_i - s_j))``, smoothed as `HuberHinge` with a decreasing width.

    An evaluation gives the value and the gradient of the Huberized hinge of the given width, the difference between the
    hinge itself and the Huberized hinge (``excess``), and the sum over the ring of ``a h (1 - h / d)``, ``h = 1 - m``
    (``slack``). The dual variables ``alpha_ij = C a_ij clip(h / d, 0, 1)`` are feasible for the dual of the *hinge*
    problem. The duality gap for these variables is ``1/2 |gradient|^2 + C * slack``, where the gradient is that of the
    smoothed objective. Both terms are non-negative.

    Parameters
    ----------
    pairs : ComparablePairs or PairList
        The pairs of the data set.
    """

    name = "hinge"
    smoothed = True
    first_width = 1.0
    warm_width = 0.25


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
        from scipy.special import expit  # here, because most programs do not need it

        slopes: np.ndarray = -expit(-margins)
        return slopes

    def _round_off(self, pairs: Reach, rough: Reach, width: float | None, margin_error: float, spread: float) -> Bounds:
        lengths = self.sums.lengths
        # sigma(-m) is at most the loss and at most 1, and round-off changes it by at most a factor of exp(margin_error)
        pulls, rough_pulls = (
            min(part.active, float(np.exp(min(margin_error, 1.0))) * part.loss) for part in (pairs, rough)
        )
        if margin_error > 1.0:
            pulls, rough_pulls = pairs.active, rough.active
        pull_sums = 2.0 * growth(OPERATIONS + lengths.of_document) * rough_pulls
        # the second derivative is at most 1/4, and at most sigma(-m)
        excess = 0.5 * margin_error * margin_error * min(0.25 * pairs.active, pulls)
        return pulls, pull_sums, excess, growth(OPERATIONS + lengths.of_all) * rough.loss, 0.0


CLASSES: dict[str, type[MarginLoss]] = {kind.name: kind for kind in (SquaredHinge, Hinge, HuberHinge, Logistic)}

# the name of a loss that is defined by the user's function
CUSTOM = FunctionLoss.name


@dataclass(frozen=True)
class LossSpec:
    """A loss by name, with its settings.

    Parameters
    ----------
    name : str
        One of ``LOSSES``, or "custom".
    width : float, optional
        Width of the Huberized hinge, for "huber".
    function : MarginFunction, optional
        A convex function of the margin, for "custom".

    Raises
    ------
    OptionError
        When there is no such loss, the width is not positive, or a width or function is missing or not needed.

    Examples
    --------
    >>> LossSpec("huber", 0.5).alpha(np.array([2.0, 0.75, -3.0]), 1.0, 0.5).tolist()
    [0.0, 0.5, 1.0]
    """

    name: str
    width: float | None = None
    function: MarginFunction | None = None

    def __post_init__(self) -> None:
        if self.name not in CLASSES and self.name != CUSTOM:
            raise OptionError(f"loss must be one of {', '.join(map(repr, LOSSES))}, got {self.name!r}.")
        if (self.width is not None) != (self.name == "huber"):
            raise OptionError(f"the loss {self.name!r} {'needs a' if self.width is None else 'has no'} width.")
        if (self.function is not None) != (self.name == CUSTOM):
            raise OptionError(f"the loss {self.name!r} {'needs a' if self.function is None else 'takes no'} function.")
        if self.width is not None and not self.width > 0.0:
            raise OptionError(f"the width of a loss must be positive, got {self.width!r}.")

    @property
    def smoothed(self) -> bool:
        """Whether the loss is minimized through smooth losses of decreasing width."""
        return self.function is None and CLASSES[self.name].smoothed

    @property
    def probabilistic(self) -> bool:
        """Whether a difference of scores is the logit of a preference's probability."""
        return self.function is None and CLASSES[self.name].probabilistic

    @property
    def first_width(self) -> float | None:
        """Width at which a solver begins; None for losses without a width."""
        if self.width is not None or self.function is not None:
            return self.width
        return CLASSES[self.name].first_width

    @property
    def warm_width(self) -> float | None:
        """Width at which a solver begins if the solution of a similar problem is known."""
        if self.width is not None or self.function is not None:
            return self.width
        return CLASSES[self.name].warm_width

    def with_pairs(self, pairs: Pairs) -> PairwiseLoss:
        """The loss over some pairs.

        Parameters
        ----------
        pairs : ComparablePairs or PairList
            The pairs.

        Returns
        -------
        PairwiseLoss
            The loss.
        """
        return CLASSES[self.name](pairs) if self.function is None else FunctionLoss(pairs, self.function)

    def alpha(self, margins: np.ndarray, C: float, width: float | None = None) -> np.ndarray:
        """Dual variables of pairs of weight 1: ``-C`` times the derivative of the loss.

        Parameters
        ----------
        margins : ndarray of float64
            Margins of the pairs.
        C : float
            Weight of a pair.
        width : float, optional
            Width of the Huberized hinge that was minimized last.

        Returns
        -------
        ndarray of float64
            The dual variables. For a pair of another weight, multiply by that weight.
        """
        if self.function is not None:
            return -C * np.asarray(self.function.derivative(margins))
        return -C * CLASSES[self.name].derivative(margins, width)
