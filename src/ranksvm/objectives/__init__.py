"""Objectives: a regularizer plus C times the loss of a model's scores, with a certificate.

A certificate is the value and the duality gap, a bound on how far the value is above the minimum.
"""

from typing import TYPE_CHECKING

from ranksvm._util.lazy import lazy_names
from ranksvm.objectives.linear import ConstrainedObjective, LinearObjective, LinearPoint
from ranksvm.objectives.pair_dual import DualPoint, DualSize, PairDual

if TYPE_CHECKING:
    from ranksvm.objectives.kernel import CoefficientObjective, KernelObjective, KernelPoint
    from ranksvm.objectives.landmarks import Landmarks
    from ranksvm.objectives.low_rank.factorized import FactorizedDual
    from ranksvm.objectives.row_space import RowSpaceObjective
else:
    # A linear model needs no kernels, and no SciPy, which kernels load.
    __getattr__ = lazy_names(
        __name__,
        {
            "CoefficientObjective": "ranksvm.objectives.kernel",
            "FactorizedDual": "ranksvm.objectives.low_rank.factorized",
            "KernelObjective": "ranksvm.objectives.kernel",
            "KernelPoint": "ranksvm.objectives.kernel",
            "Landmarks": "ranksvm.objectives.landmarks",
            "RowSpaceObjective": "ranksvm.objectives.row_space",
        },
    )

__all__ = [
    "CoefficientObjective",
    "ConstrainedObjective",
    "DualPoint",
    "DualSize",
    "FactorizedDual",
    "KernelObjective",
    "KernelPoint",
    "Landmarks",
    "LinearObjective",
    "LinearPoint",
    "PairDual",
    "RowSpaceObjective",
]
