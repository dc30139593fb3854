"""The optimisation problem behind every linear estimator: data, loss, objective and the choice of solver."""

from contextlib import nullcontext
from typing import Any

import numpy as np

from ranksvm.data import ComparablePairs
from ranksvm.exceptions import OptionError
from ranksvm.losses import PairwiseLoss, SquaredHinge
from ranksvm.objectives import LinearObjective, Point, as_design_matrix
from ranksvm.solvers import SolverResult, interruptible, newton, tron

LOSSES: dict[str, type] = {"squared_hinge": SquaredHinge}
SOLVERS = ("auto", "newton", "tron")


class LinearProblem:
    """``1/2 |w|^2 + C * loss(X w)`` for one data set and one C after another.

    Parameters
    ----------
    X : ndarray or CSR matrix, shape (n_rows, n_features)
        Features.
    pairs : ComparablePairs
        Pairs of the rows.
    loss, solver : str
        By name.
    tol : float
        Relative duality gap to reach.
    max_iter : int
        Largest number of solver iterations.
    keep_on_interrupt : bool
        Whether Ctrl-C ends a solve with the best point so far.
    n_threads : int
        Number of threads.
    """

    def __init__(
        self,
        X: Any,
        pairs: ComparablePairs,
        *,
        loss: str,
        solver: str,
        tol: float,
        max_iter: int,
        keep_on_interrupt: bool,
        n_threads: int,
    ):
        self.pairs = pairs
        self.tol = tol
        self.max_iter = max_iter
        self.keep_on_interrupt = keep_on_interrupt
        pairwise: PairwiseLoss = LOSSES[loss](pairs)
        self.objective = LinearObjective(as_design_matrix(X), pairwise, 1.0, n_threads)
        self.solver = solver
        if solver == "auto":
            self.solver = "newton" if self.objective.hessian_fraction > 0.0 else "tron"
        elif solver == "newton" and self.objective.hessian_fraction == 0.0:
            raise OptionError(
                f"solver='newton' builds a Hessian of n_features^2 numbers, too large for {X.shape[1]} features: "
                "use solver='tron' or 'auto'."
            )

    def solve(self, C: float, start: np.ndarray | Point | None = None) -> SolverResult:
        """The solution for one C, from the weights or the point of another solution if given."""
        objective = self.objective
        if start is None or isinstance(start, np.ndarray):
            objective.change_C(C)
            warm = start is not None
            start = np.zeros(objective.n_variables) if start is None else start
        else:
            start = objective.change_C(C, start)
            warm = True
        with interruptible() if self.keep_on_interrupt else nullcontext() as interrupted:
            options: dict[str, Any] = {"tol": self.tol, "max_iter": self.max_iter, "interrupted": interrupted}
            if self.solver == "newton":
                return newton(objective, start, warm_start=warm, **options)
            return tron(objective, start, **options)
