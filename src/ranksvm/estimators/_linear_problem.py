"""The optimisation problem behind every linear estimator: X as a design matrix, and the choice of solver."""

from typing import Any

import numpy as np

from ranksvm.estimators._linear_ranker import linear_scores
from ranksvm.estimators._problem import RankSVMProblem, TrainingSet, problem_options, training_set
from ranksvm.exceptions import OptionError
from ranksvm.objectives import LinearObjective, as_design_matrix


class LinearProblem(RankSVMProblem):
    """``1/2 |w|^2 + C * loss(X w)`` for one data set and one C after another.

    Parameters
    ----------
    data : TrainingSet
        Features and pairs.
    **options : optional
        Those of `RankSVMProblem`; of solver "auto" the cheaper one is taken.
    """

    def __init__(self, data: TrainingSet, **options: Any):
        super().__init__(data, data.pairs, **options)
        self.objective = LinearObjective(as_design_matrix(data.X), self.pairwise, 1.0, data.n_threads)
        if self.solver == "auto":
            self.solver = "newton" if self.objective.hessian_fraction > 0.0 else "tron"
        elif self.solver == "newton" and self.objective.hessian_fraction == 0.0:
            raise OptionError(
                "solver='newton' builds a dense Hessian of n_features^2 numbers, too large for "
                f"{data.X.shape[1]} features{'' if self.objective.design.dense else ' of sparse X'}: use solver='tron' "
                "or 'auto'."
            )

    def scores(self, w: np.ndarray, X: Any) -> np.ndarray:
        return linear_scores(X, w, self.n_threads)

    def _origin(self) -> np.ndarray:
        return np.zeros(self.objective.n_variables)

    def _keep_model(self, estimator: Any, w: np.ndarray) -> None:
        estimator.coef_ = np.array(w)


def linear_problem(estimator: Any, X: Any, y: Any, **data: Any) -> LinearProblem:
    """The problem that a linear estimator's ``fit`` solves for the data it was given, all of it checked.

    ``data`` is the rest of them, by the names of `training_set`.
    """
    options = problem_options(estimator)
    return LinearProblem(training_set(estimator, X, y, **data), **options)
