"""The optimisation problem of a linear model: a design matrix, and the choice of solver."""

from typing import Any

import numpy as np

from ranksvm.data import DesignMatrix, as_design_matrix
from ranksvm.data.linear_scores import linear_scores
from ranksvm.exceptions import DataError, OptionError
from ranksvm.objectives import LinearObjective, ThreadedTerm
from ranksvm.objectives.hessian_cost import worthwhile_fraction
from ranksvm.problems.problem import RankSVMProblem, problem_options
from ranksvm.problems.records import Linear, Record
from ranksvm.problems.solver_choice import choose_solver
from ranksvm.problems.training_set import TrainingSet, training_set


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
        term = ThreadedTerm(design, self.pairwise, self.pass_threads)
        fraction_of = worthwhile_fraction
        if self.solver == "auto":
            self.solver, fraction_of = choose_solver(term)
        self.objective = LinearObjective(term, 1.0, **self.smoothing, fraction_of=fraction_of)
        if self.solver == "newton" and self.objective.hessian_fraction == 0.0:
            raise OptionError(
                "solver='newton' builds a dense Hessian of n_features^2 numbers, too large for "
                f"{design.n_features} features{'' if design.dense else ' of sparse X'}: use solver='tron' or 'auto'."
            )

    def scores(self, w: np.ndarray, X: Any) -> np.ndarray:
        return linear_scores(X, w, self.n_threads)

    def start_from(self, estimator: Any) -> np.ndarray:
        """The weights that an estimator has, as a place to begin. Raises DataError where it has not as many."""
        n_features = self.objective.n_variables
        if estimator.coef_.shape != (n_features,):
            raise DataError(f"warm_start: the last fit had {len(estimator.coef_)} features, X has {n_features}.")
        return estimator.coef_

    def _origin(self) -> np.ndarray:
        return np.zeros(self.objective.n_variables)

    def model(self, w: np.ndarray) -> Record:
        return Linear(np.array(w))


def linear_problem(estimator: Any, X: Any, y: Any, **data: Any) -> LinearProblem:
    """The problem that a linear estimator's ``fit`` solves for the data it was given, all of it checked.

    ``data`` is the rest of them, by the names of `training_set`.
    """
    options = problem_options(estimator)
    found = training_set(estimator, X, y, **data)
    return LinearProblem(found, as_design_matrix(found.X), **options)
