"""The optimisation problem of a linear model: a design matrix, and the choice of solver."""

import logging
import threading
from dataclasses import replace
from typing import Any

import numpy as np

from ranksvm.data import DenseDesign, DesignMatrix, SparseDesign, as_design_matrix
from ranksvm.data.linear_scores import linear_scores
from ranksvm.exceptions import DataError, OptionError
from ranksvm.losses import Pairs
from ranksvm.objectives import DualPoint, LinearObjective, PairDual, dual_sizes
from ranksvm.problems.problem import LINEAR_SOLVERS, RankSVMProblem, problem_options
from ranksvm.problems.records import Linear, Record
from ranksvm.problems.training_set import TrainingSet, training_set
from ranksvm.solvers import SolverResult, Status, dual_ascent

logger = logging.getLogger("ranksvm.problems")

# The dual is taken by solver "auto" where queries with pairs have at most this many rows for each feature, ...
DUAL_ROWS = 1.0
# ... what it holds is at most this many times the stored values of these rows (it is to be a small part of the fit's
# memory), and a cycle over its pairs at most this many multiplications for each of them (most alpha do not change).
DUAL_NUMBERS = 4.0
DUAL_WORK = 64.0
# Of smooth losses only where documents have at most this many pairs each. With 34 pairs a document (1,000 x 47,000 made
# text, 100 documents a query) it took 1.0 s at C = 1 where TRON took 0.06, and did not end at C = 128; with 6.6, 0.06
# and 0.44 s where TRON took 0.05 and 0.73. The hinge took 0.3 and 0.4 s with 34 (processor time, one thread).
DUAL_PAIRS = 8.0
# Iterations after which "auto" leaves the rest to TRON: about 600 epochs. Made text takes 100, WikiQA 300 at the most.
DUAL_ITERATIONS = 60


class LinearProblem(RankSVMProblem):
    """``1/2 |w|^2 + C * loss(X w)`` for one data set and one C after another.

    Parameters
    ----------
    data : TrainingSet
        Pairs and what else was given.
    design : DesignMatrix
        Features of its rows.
    **options : optional
        Those of `RankSVMProblem`; of solver "auto" the cheaper one is taken.
    """

    def __init__(self, data: TrainingSet, design: DesignMatrix, **options: Any):
        super().__init__(data, data.pairs, **options)
        self.objective = LinearObjective(design, self.pairwise, 1.0, data.n_threads)
        self._dual: PairDual | None = None
        self._may_leave_dual = self.solver == "auto"
        if self.solver == "auto":
            if self.objective.hessian_fraction > 0.0:
                self.solver = "newton"
            else:
                self.solver = "dual" if worth_the_dual(design, data.pairs, self.loss) else "tron"
        elif self.solver == "newton" and self.objective.hessian_fraction == 0.0:
            raise OptionError(
                "solver='newton' builds a dense Hessian of n_features^2 numbers, too large for "
                f"{design.n_features} features{'' if design.dense else ' of sparse X'}: use solver='tron' or 'auto'."
            )

    def solve(self, C: float, start: Any = None, interrupted: threading.Event | None = None) -> SolverResult:
        """The solution for one C, from the variables or the point of another solution if given.

        Where "auto" has chosen the dual and it has not met ``tol`` after `DUAL_ITERATIONS`, TRON goes on from there.
        """
        if self.solver != "dual":
            return super().solve(C, start, interrupted)
        result = self._solve_dual(C, start, interrupted)
        left = self.max_iter - result.n_iter
        if not self._may_leave_dual or result.status in (Status.CONVERGED, Status.INTERRUPTED) or left <= 0:
            return result
        logger.info("the dual converges slowly: TRON goes on from relative gap %.2e", result.relative_gap)
        self.solver, self._dual = "tron", None
        return super().solve(C, result.w, interrupted).after(result)

    def _solve_dual(self, C: float, start: Any, interrupted: threading.Event | None) -> SolverResult:
        if self._dual is None:
            design = self.objective.design
            self._dual = PairDual(design, self.pairs, self.loss, self._smoothing.value, C)
        dual = self._dual
        dual.reweight(C)
        point = dual.evaluate(start.alpha if isinstance(start, DualPoint) else start)
        max_iter = min(self.max_iter, DUAL_ITERATIONS) if self._may_leave_dual else self.max_iter
        result = dual_ascent(dual, point, tol=self.tol, max_iter=max_iter, interrupted=interrupted)
        width = self._smoothing.value if self.loss == "huber" else None
        # copied: the next solution goes on from the same point
        return replace(result, w=result.w.copy(), alpha=point.alpha.copy(), width=width)

    def scores(self, w: np.ndarray, X: Any) -> np.ndarray:
        return linear_scores(X, w, self.n_threads)

    def start_from(self, estimator: Any) -> np.ndarray | None:
        """The weights or alpha that an estimator has, as a place to begin, None where there are none.

        Raises DataError where it has not as many weights as X has features.
        """
        n_features = self.objective.n_variables
        if estimator.coef_.shape != (n_features,):
            raise DataError(f"warm_start: the last fit had {len(estimator.coef_)} features, X has {n_features}.")
        if self.solver != "dual":
            return estimator.coef_
        # Without alpha of the same number of pairs the dual begins at 0.
        alpha = getattr(estimator, "pair_alpha_", None)
        return alpha if alpha is not None and len(alpha) == self.pairs.n_pairs else None

    def _origin(self) -> np.ndarray:
        return np.zeros(self.objective.n_variables)

    def model(self, w: np.ndarray) -> Record:
        return Linear(np.array(w))


def worth_the_dual(design: DesignMatrix, pairs: Pairs, loss: str) -> bool:
    """Whether there are so few rows and pairs that the dual is the cheaper problem.

    Parameters
    ----------
    design : DesignMatrix
        The features.
    pairs : ComparablePairs or PairList
        The pairs.
    loss : str
        Name of the loss.

    Returns
    -------
    bool
        Whether they are.
    """
    if not isinstance(design, DenseDesign | SparseDesign):  # rows that are computed when they are read
        return False
    n_rows, n_numbers, work = dual_sizes(pairs)
    # a stored value takes 8 bytes, or somewhat more or less
    stored = n_rows * design.row_bytes / 8.0
    few = n_rows <= DUAL_ROWS * design.n_features and (loss == "hinge" or pairs.n_pairs <= DUAL_PAIRS * n_rows)
    return few and n_numbers <= DUAL_NUMBERS * stored and work <= DUAL_WORK * stored


def linear_problem(estimator: Any, X: Any, y: Any, **data: Any) -> LinearProblem:
    """The problem that a linear estimator's ``fit`` solves for the data it was given, all of it checked.

    ``data`` is the rest of them, by the names of `training_set`.
    """
    options = problem_options(estimator, LINEAR_SOLVERS)
    found = training_set(estimator, X, y, **data)
    return LinearProblem(found, as_design_matrix(found.X), **options)
