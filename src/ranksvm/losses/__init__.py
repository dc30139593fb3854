"""Pairwise losses as functions of the scores: value, gradient and curvature of the sum over all pairs."""

from ranksvm.losses.margin_function import FunctionLoss, MarginFunction
from ranksvm.losses.named_losses import LOSSES, Hinge, HuberHinge, Logistic, LossSpec, SquaredHinge
from ranksvm.losses.protocol import LossSums, Pairs, PairwiseLoss
from ranksvm.losses.shifted_huber_hinge import ShiftedHuberHinge

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
