"""Objectives: a regulariser plus a loss of a model's scores; and the data terms that hold the rows."""

from typing import TYPE_CHECKING

from ranksvm._lazy import lazy_names
from ranksvm.objectives.constrained import ConstrainedObjective
from ranksvm.objectives.data_term import DataTerm, Term
from ranksvm.objectives.linear import LinearObjective, LinearPoint
from ranksvm.objectives.pair_dual import DualPoint, DualSize, PairDual
from ranksvm.objectives.protocol import Objective, Point
from ranksvm.objectives.sign_cone import SignCone
from ranksvm.objectives.threaded_term import ThreadedTerm

if TYPE_CHECKING:
    from ranksvm.objectives.backend import Backend, PartInfo
    from ranksvm.objectives.factorized import FactorizedDual
    from ranksvm.objectives.file_backend import FileBackend
    from ranksvm.objectives.file_term import FileTerm
    from ranksvm.objectives.kernel import CoefficientObjective, KernelObjective, KernelPoint
    from ranksvm.objectives.landmarks import Landmarks
    from ranksvm.objectives.partitioned_term import PartitionedTerm
    from ranksvm.objectives.parts import Part
    from ranksvm.objectives.serial_backend import SerialBackend
else:
    # A linear model of rows in memory needs no parts and files, no kernels, and no SciPy, which kernels load.
    __getattr__ = lazy_names(
        __name__,
        {
            "Backend": "ranksvm.objectives.backend",
            "CoefficientObjective": "ranksvm.objectives.kernel",
            "FactorizedDual": "ranksvm.objectives.factorized",
            "FileBackend": "ranksvm.objectives.file_backend",
            "FileTerm": "ranksvm.objectives.file_term",
            "KernelObjective": "ranksvm.objectives.kernel",
            "KernelPoint": "ranksvm.objectives.kernel",
            "Landmarks": "ranksvm.objectives.landmarks",
            "Part": "ranksvm.objectives.parts",
            "PartInfo": "ranksvm.objectives.backend",
            "PartitionedTerm": "ranksvm.objectives.partitioned_term",
            "SerialBackend": "ranksvm.objectives.serial_backend",
        },
    )

__all__ = [
    "Backend",
    "CoefficientObjective",
    "ConstrainedObjective",
    "DataTerm",
    "DualPoint",
    "DualSize",
    "FactorizedDual",
    "FileBackend",
    "FileTerm",
    "KernelObjective",
    "KernelPoint",
    "Landmarks",
    "LinearObjective",
    "LinearPoint",
    "Objective",
    "PairDual",
    "Part",
    "PartInfo",
    "PartitionedTerm",
    "Point",
    "SerialBackend",
    "SignCone",
    "Term",
    "ThreadedTerm",
]
