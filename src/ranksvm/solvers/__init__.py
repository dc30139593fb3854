"""Solvers: a file for each method, and what they share; they know an objective only by its protocol."""

from ranksvm.solvers.adaptive import adaptive
from ranksvm.solvers.alternating import alternating
from ranksvm.solvers.douglas_rachford import douglas_rachford
from ranksvm.solvers.dual_ascent import dual_ascent
from ranksvm.solvers.epochs import EpochStatus, minimize_in_epochs
from ranksvm.solvers.monitor import SolverResult, Status, interruptible, relative_gap
from ranksvm.solvers.newton import newton
from ranksvm.solvers.newton_cg import newton_cg
from ranksvm.solvers.plain_tron import plain_tron
from ranksvm.solvers.projected_newton import projected_newton
from ranksvm.solvers.tron import tron

__all__ = [
    "EpochStatus",
    "SolverResult",
    "Status",
    "adaptive",
    "alternating",
    "douglas_rachford",
    "dual_ascent",
    "interruptible",
    "minimize_in_epochs",
    "newton",
    "newton_cg",
    "plain_tron",
    "projected_newton",
    "relative_gap",
    "tron",
]
