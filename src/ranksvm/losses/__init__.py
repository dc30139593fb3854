"""Pairwise losses as functions of the scores: value, gradient and curvature of the sum over all pairs."""

from ranksvm.losses.margin_function import FunctionLoss, MarginFunction
from ranksvm.losses.named_losses import Hinge, HuberHinge, Logistic, SquaredHinge
from ranksvm.losses.protocol import LossSums, Pairs, PairwiseLoss
from ranksvm.losses.shifted_huber_hinge import ShiftedHuberHinge
from ranksvm.losses.spec import LOSSES, LossSpec

__all__ = [
    "LOSSES",
    "FunctionLoss",
    "Hinge",
    "HuberHinge",
    "Logistic",
    "LossSpec",
    "LossSums",
    "MarginFunction",
    "PairwiseLoss",
    "Pairs",
    "ShiftedHuberHinge",
    "SquaredHinge",
]
