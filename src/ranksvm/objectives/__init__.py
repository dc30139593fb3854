"""Objectives: a regulariser plus a loss of a model's scores."""

from ranksvm.objectives.design_matrix import DenseDesign, DesignMatrix, SparseDesign, as_design_matrix
from ranksvm.objectives.linear import LinearObjective, LinearPoint
from ranksvm.objectives.protocol import Objective, Point

__all__ = [
    "DenseDesign",
    "DesignMatrix",
    "LinearObjective",
    "LinearPoint",
    "Objective",
    "Point",
    "SparseDesign",
    "as_design_matrix",
]
