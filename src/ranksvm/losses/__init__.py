"""Pairwise losses as functions of the score vector alone: value, gradient, curvature of all pairs."""

from ranksvm.losses.coupled_hinge import CoupledHinge
from ranksvm.losses.hinge import Hinge, HuberHinge, Width
from ranksvm.losses.protocol import LossSums, Pairs, PairwiseLoss
from ranksvm.losses.squared_hinge import SquaredHinge

__all__ = ["CoupledHinge", "Hinge", "HuberHinge", "LossSums", "PairwiseLoss", "Pairs", "SquaredHinge", "Width"]
