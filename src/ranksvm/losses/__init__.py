"""Pairwise losses as functions of the scores: value, gradient and curvature of the sum over all pairs."""

from ranksvm.losses.hinge import Hinge, HuberHinge
from ranksvm.losses.margin_function import FunctionLoss, MarginFunction
from ranksvm.losses.protocol import LossSums, Pairs, PairwiseLoss
from ranksvm.losses.shifted_huber_hinge import ShiftedHuberHinge
from ranksvm.losses.smooth_losses import Logistic
from ranksvm.losses.spec import LOSSES, LossSpec
from ranksvm.losses.squared_hinge import SquaredHinge

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
