"""Pairwise losses as functions of the score vector alone: value, gradient, curvature of all pairs."""

from ranksvm.losses.protocol import PairwiseLoss, SweepState
from ranksvm.losses.squared_hinge import SquaredHinge

__all__ = ["PairwiseLoss", "SquaredHinge", "SweepState"]
