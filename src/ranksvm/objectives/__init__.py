"""Objectives: a regulariser plus a loss of a model's scores."""

from ranksvm.objectives.linear import LinearObjective, LinearPoint
from ranksvm.objectives.protocol import Objective, Point

__all__ = [
    "LinearObjective",
    "LinearPoint",
    "Objective",
    "Point",
]
