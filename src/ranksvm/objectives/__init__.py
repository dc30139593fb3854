"""Objectives: a regulariser plus a loss of a model's scores."""

from ranksvm.objectives.factorized import FactorizedDual
from ranksvm.objectives.kernel import CoefficientObjective, KernelObjective, KernelPoint
from ranksvm.objectives.landmarks import Landmarks
from ranksvm.objectives.linear import LinearObjective, LinearPoint
from ranksvm.objectives.pair_dual import DualPoint, PairDual, dual_sizes
from ranksvm.objectives.protocol import Objective, Point

__all__ = [
    "CoefficientObjective",
    "DualPoint",
    "FactorizedDual",
    "KernelObjective",
    "KernelPoint",
    "Landmarks",
    "LinearObjective",
    "LinearPoint",
    "Objective",
    "PairDual",
    "Point",
    "dual_sizes",
]
