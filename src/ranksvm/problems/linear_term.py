"""The data term of a linear problem: the one place that decides where its rows are kept and who computes with them."""

from typing import Any

import numpy as np

from ranksvm.data import DesignMatrix, TwoBlockDesign, TwoBlocks, as_design_matrix
from ranksvm.losses import LossSpec
from ranksvm.objectives import DataTerm, ThreadedTerm
from ranksvm.problems.problem import threads_for
from ranksvm.problems.training_set import TrainingSet

__all__ = ["linear_term"]


def linear_term(data: TrainingSet, loss: LossSpec, solver: str) -> DataTerm:
    """The data term of a linear model.

    A backend has its branch here and nowhere else; objectives and solvers see a `DataTerm` only.

    Parameters
    ----------
    data : TrainingSet
        Features and pairs.
    loss : LossSpec
        The loss.
    solver : str
        One of `LINEAR_SOLVERS`. The dual reads single rows of one array in memory: it is for a `ThreadedTerm`.

    Returns
    -------
    DataTerm
        The term: of rows in memory, shared out among threads.
    """
    design = _linear_design(data.X, solver, data.largest)
    return ThreadedTerm(design, loss.over(data.pairs), threads_for(loss, data.n_threads))


def _linear_design(X: Any, solver: str, largest: np.ndarray | None) -> DesignMatrix:
    """The design matrix of rows in memory, for a solver.

    The dual reads one array: two blocks are stacked where it may be used, which "auto" does for no more rows than
    features.
    """
    if not isinstance(X, TwoBlocks):
        return as_design_matrix(X, largest)
    n_rows, n_features = X.shape
    return as_design_matrix(X.stacked()) if solver == "dual" or n_rows <= n_features else TwoBlockDesign(X)
