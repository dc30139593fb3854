"""A fit with functions of two features: the choice of the pairs of features, and of their number."""

import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from ranksvm._util.checks import is_integer
from ranksvm.additive import AdditiveFunction
from ranksvm.solvers import SolverResult

if TYPE_CHECKING:
    from ranksvm.fits.additive import AdditiveProblem
    from ranksvm.fits.additive_partitioned import PartitionedAdditiveProblem

    AnyProblem: TypeAlias = "AdditiveProblem | PartitionedAdditiveProblem"

__all__ = ["AUTO_COUNTS", "WithInteractions", "solve_with_interactions"]

logger = logging.getLogger("ranksvm.fits")

# The numbers of interactions that "auto" tries.
AUTO_COUNTS = (4, 8, 16, 32, 64)


class WithInteractions(NamedTuple):
    """A solution with functions of two features.

    Attributes
    ----------
    problem : AnyAdditiveProblem
        The problem with these functions.
    result : SolverResult
        Its solution.
    candidate_bounds : ndarray of float64, shape (n_features * (n_features - 1) / 2,)
        Bounds on how far a function of each pair of features could lower the objective, before any function was
        added.
    bounds : ndarray of float64, of the same shape
        The same bounds at the solution, with all its functions.
    """

    problem: Any  # of the class of the problem without interactions
    result: SolverResult
    candidate_bounds: np.ndarray
    bounds: np.ndarray


def solve_with_interactions(
    problem: "AnyProblem",
    C: float,
    start: np.ndarray | None,
    interrupted: threading.Event | None,
    value: Callable[[AdditiveFunction], float] | None = None,
) -> WithInteractions:
    """The solution of a problem, with the interactions that its hyper-parameters ask for.

    Parameters
    ----------
    problem : AnyAdditiveProblem
        The problem without interactions.
    C : float
        Weight of a pair.
    start : ndarray of float64, optional
        Variables of the problem to start from.
    interrupted : threading.Event, optional
        Set by Ctrl-C.
    value : callable, optional
        Returns the metric of a function on validation data, by which "auto" chooses the number of interactions.

    Returns
    -------
    WithInteractions
        The solution.
    """
    wanted = problem.options.interactions
    listed = None if is_integer(wanted) or isinstance(wanted, str) else problem.listed_pairs()
    result = problem.solve(C, start, interrupted)
    candidates = problem.interaction_bounds(result.w, result.width)
    if listed is not None:
        problem, result = _extended(problem, result, listed, C, interrupted)
    elif is_integer(wanted):
        problem, result = _extended(problem, result, problem.chosen_pairs(candidates, int(wanted)), C, interrupted)
    else:
        assert value is not None
        problem, result = _best_number(problem, result, candidates, C, interrupted, value)
    bounds = problem.interaction_bounds(result.w, result.width) if problem.terms.pairs else candidates
    return WithInteractions(problem, result, candidates, bounds)


def _extended(
    problem: "AnyProblem", result: SolverResult, pairs: np.ndarray, C: float, interrupted: threading.Event | None
) -> "tuple[AnyProblem, SolverResult]":
    """The problem with functions of ``pairs`` of features added, and its solution, which starts from ``result``."""
    if not len(pairs):
        return problem, result
    extended = problem.with_pairs(pairs)
    return extended, extended.solve(C, extended.padded(result.w), interrupted)


def _best_number(
    problem: "AnyProblem",
    result: SolverResult,
    candidates: np.ndarray,
    C: float,
    interrupted: threading.Event | None,
    value: Callable[[AdditiveFunction], float],
) -> "tuple[AnyProblem, SolverResult]":
    """The solution with the best value among several numbers of interactions; among equals, the one with the fewest."""

    def valued(problem: "AnyProblem", result: SolverResult) -> float:
        found = value(problem.function(result.w))
        logger.info("%d interactions: %.4f on validation data", len(problem.terms.pairs), found)
        return found

    best, best_value = (problem, result), valued(problem, result)
    n_positive = int(np.count_nonzero(candidates > 0.0))
    for count in (each for each in AUTO_COUNTS if each <= max(n_positive, AUTO_COUNTS[0])):
        if interrupted is not None and interrupted.is_set():
            break
        problem, result = _extended(problem, result, problem.chosen_pairs(candidates, count), C, interrupted)
        if (found := valued(problem, result)) > best_value:
            best, best_value = (problem, result), found
    return best
