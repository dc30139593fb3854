"""Specification of a loss: its name and settings, small enough to send to other processes."""

from dataclasses import dataclass

import numpy as np

from ranksvm._util.parameters import LOSSES
from ranksvm.exceptions import OptionError
from ranksvm.losses.margin_function import FunctionLoss, MarginFunction
from ranksvm.losses.margin_loss import MarginLoss
from ranksvm.losses.named_losses import SMOOTH_LOSSES, Hinge, HuberHinge, SquaredHinge
from ranksvm.losses.protocol import Pairs, PairwiseLoss

__all__ = ["LOSSES", "LossSpec"]

_CLASSES: dict[str, type[MarginLoss]] = {kind.name: kind for kind in (SquaredHinge, Hinge, HuberHinge, *SMOOTH_LOSSES)}

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
        if self.name not in _CLASSES and self.name != CUSTOM:
            raise OptionError(f"loss must be one of {', '.join(map(repr, LOSSES))}, got {self.name!r}.")
        if (self.width is not None) != (self.name == "huber"):
            raise OptionError(f"the loss {self.name!r} has {'no' if self.width is not None else 'a'} width.")
        if (self.function is not None) != (self.name == CUSTOM):
            raise OptionError(
                f"the loss {self.name!r} is {'not ' if self.name != CUSTOM else ''}a function of its own."
            )
        if self.width is not None and not self.width > 0.0:
            raise OptionError(f"the width of a loss must be positive, got {self.width!r}.")

    @property
    def smoothed(self) -> bool:
        """Whether the loss is minimized through smooth losses of decreasing width."""
        return self.function is None and _CLASSES[self.name].smoothed

    @property
    def probabilistic(self) -> bool:
        """Whether a difference of scores is the logit of a preference's probability."""
        return self.function is None and _CLASSES[self.name].probabilistic

    @property
    def first_width(self) -> float | None:
        """Width at which a solver begins; None for losses without a width."""
        if self.width is not None or self.function is not None:
            return self.width
        return _CLASSES[self.name].first_width

    @property
    def warm_width(self) -> float | None:
        """Width at which a solver begins if the solution of a similar problem is known."""
        if self.width is not None or self.function is not None:
            return self.width
        return _CLASSES[self.name].warm_width

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
        return _CLASSES[self.name](pairs) if self.function is None else FunctionLoss(pairs, self.function)

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
        return -C * _CLASSES[self.name].derivative(margins, width)
