"""The regularization path: solutions for ascending C, each of which starts from the previous ones."""

import logging
import threading
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning

from ranksvm._util import checks
from ranksvm._util.checks import overflow_refused
from ranksvm._util.text import power
from ranksvm._util.verbosity import PASSING
from ranksvm.estimators.base.arguments import LossLike, Monotone, TrainingData
from ranksvm.estimators.base.inputs import read_training_data, resolve_files
from ranksvm.estimators.base.ranker import linear_options
from ranksvm.estimators.rank_svm import RankSVM
from ranksvm.exceptions import OptionError
from ranksvm.fits.linear import linear_problem, linear_training_set
from ranksvm.fits.partitioned import PartitionedProblem
from ranksvm.fits.problem import RankSVMProblem
from ranksvm.fits.training_set import TrainingArguments
from ranksvm.solvers import SolverResult, Status

__all__ = ["RegularizationPath", "regularization_path"]

logger = logging.getLogger("ranksvm.estimators")


@dataclass(frozen=True, eq=False)
class RegularizationPath:
    """Solutions for several values of C.

    Attributes
    ----------
    Cs : ndarray of float64, shape (n_Cs,)
        The values, ascending.
    coefs : ndarray of float64, shape (n_Cs, n_features)
        The weights for each value.
    objectives, duality_gaps : ndarray of float64, shape (n_Cs,)
        Value of the objective, and an upper bound on its distance from the minimum.
    n_iter : ndarray of int, shape (n_Cs,)
        Iterations of the solver.
    converged : ndarray of bool, shape (n_Cs,)
        Whether the gap met ``tol``.
    feature_names : ndarray of str, shape (n_features,), or None
        Names of the features, if X had names.

    Examples
    --------
    >>> from ranksvm import make_ranking, regularization_path
    >>> data = make_ranking(n_queries=20, n_docs=8, n_features=4, random_state=0)
    >>> path = regularization_path(data.X, data.y, qid=data.qid, Cs=[0.1, 0.01])
    >>> path.Cs.tolist(), path.coefs.shape, path.converged.tolist()
    ([0.01, 0.1], (2, 4), [True, True])
    """

    Cs: np.ndarray
    coefs: np.ndarray
    objectives: np.ndarray
    duality_gaps: np.ndarray
    n_iter: np.ndarray
    converged: np.ndarray
    feature_names: np.ndarray | None = None


def regularization_path(
    X: TrainingData,
    y: ArrayLike | None = None,
    *,
    qid: ArrayLike | None = None,
    group: ArrayLike | None = None,
    Cs: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    query_weight: ArrayLike | None = None,
    propensity: ArrayLike | None = None,
    pairs: ArrayLike | None = None,
    pair_weight: ArrayLike | None = None,
    event: ArrayLike | None = None,
    loss: LossLike = "squared_hinge",
    huber_width: float = 1.0,
    pair_selection: str = "all",
    pair_weighting: str = "uniform",
    monotone: Monotone | None = None,
    solver: str = "auto",
    tol: float = 1e-4,
    max_iter: int = 1000,
    device: str | list[str] = "cpu",
    memory_limit: int | str | None = None,
    n_jobs: int | None = None,
) -> RegularizationPath:
    """Fit `RankSVM` for several values of C in ascending order, each starting from the previous solution.

    For data that stay in a file (``memory_limit``), the problems for all values of C are solved at the same time and
    share each pass over it.

    Parameters
    ----------
    X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features), Preferences, or RankingData
        Features, or all data, as in `RankSVM.fit`.
    y : array-like of shape (n_samples,)
        Labels.
    qid, group : array-like, optional
        Queries, as in `RankSVM.fit`.
    Cs : array-like of float, optional
        The values of C, positive, in any order; by default the powers of 2 from 2^-15 to 2^5.
    sample_weight, query_weight, propensity : array-like of shape (n_samples,), optional
        Weights, as in `RankSVM.fit`.
    pairs, pair_weight : array-like, optional
        Explicit preferences instead of ``y``, as in `RankSVM.fit`.
    event : array-like of bool, shape (n_samples,), optional
        Which of the times in ``y`` are observed, as in `RankSVM.fit`.
    loss, huber_width, pair_selection, pair_weighting, monotone, solver, tol, max_iter : optional
        As in `RankSVM`.
    device, memory_limit, n_jobs : optional
        As in `RankSVM`.

    Returns
    -------
    RegularizationPath
        The solutions, by ascending C.

    Raises
    ------
    OptionError
        When a C is not positive.

    Warns
    -----
    ConvergenceWarning
        When the relative duality gap of a solution does not meet ``tol``.

    Examples
    --------
    >>> from ranksvm import make_ranking, regularization_path
    >>> data = make_ranking(n_queries=50, n_docs=20, n_features=10, random_state=0)
    >>> path = regularization_path(data.X, data.y, qid=data.qid, Cs=[0.001, 0.01, 0.1])
    >>> path.coefs.shape
    (3, 10)
    """
    estimator = RankSVM(
        loss=loss,
        huber_width=huber_width,
        pair_selection=pair_selection,
        pair_weighting=pair_weighting,
        monotone=monotone,
        solver=solver,
        tol=tol,
        max_iter=max_iter,
        device=device,
        memory_limit=memory_limit,
        n_jobs=n_jobs,
    )
    options = linear_options(estimator)
    values = np.sort(c_values(Cs))
    training = TrainingArguments(
        X,
        y,
        qid=qid,
        group=group,
        pairs=pairs,
        pair_weight=pair_weight,
        sample_weight=sample_weight,
        query_weight=query_weight,
        propensity=propensity,
        event=event,
    )
    with overflow_refused():
        training = read_training_data(estimator, resolve_files(training, memory_limit))
        names = getattr(estimator, "feature_names_in_", None)
        problem = linear_problem(linear_training_set(training, options), options, names, n_fits=len(values))
        solutions = [result for _, result in solve_along(problem, values)]
    return RegularizationPath(
        Cs=values,
        coefs=np.array([result.w for result in solutions]),
        objectives=np.array([result.value for result in solutions]),
        duality_gaps=np.array([result.gap for result in solutions]),
        n_iter=np.array([result.n_iter for result in solutions]),
        converged=np.array([result.status is Status.CONVERGED for result in solutions]),
        feature_names=names,
    )


def c_values(Cs: ArrayLike | None) -> np.ndarray:
    """The validated values of C to try; by default 2^-15, 2^-14, ..., 2^5."""
    if Cs is None:
        return 2.0 ** np.arange(-15, 6)
    try:
        values = checks.numbers_of(Cs)
    except (TypeError, ValueError, OverflowError):  # no numbers; an integer that is too large for float64
        raise OptionError(f"Cs must be positive, finite numbers, got {Cs!r}.") from None
    if values.ndim != 1 or len(values) == 0:
        raise OptionError(f"Cs must be a list of numbers, got {Cs!r}.")
    for value in values:
        checks.check(Cs=checks.positive(float(value)))
    return values


def solve_along(
    problem: RankSVMProblem, Cs: np.ndarray, interrupted: threading.Event | None = None
) -> Iterator[tuple[float, SolverResult]]:
    """Yield a solution for each C, ascending.

    When the user interrupts, it stops; but solutions that are computed at the same time are all yielded.
    `RankSVMProblem.solve` decides where each fit starts.
    """
    for C, result in _solutions(problem, Cs, interrupted):
        # the point (what was computed at the solution) has arrays with one entry per row, which would waste memory
        result = replace(result, point=None)
        line = "%sC = %s: objective %.9g, relative gap %.2e"
        logger.info(line, problem.label, power(C), result.value, result.relative_gap, extra=PASSING)
        if result.status in (Status.MAX_ITERATIONS, Status.PRECISION):
            why = result.status.in_words(problem.scales_matter)
            warnings.warn(f"{problem.label}C = {power(C)}: {why}", ConvergenceWarning, stacklevel=3)
        yield float(C), result


def _solutions(
    problem: RankSVMProblem, Cs: np.ndarray, interrupted: threading.Event | None
) -> Iterator[tuple[float, SolverResult]]:
    """Yield the solution of each C; they are computed one by one or, for data read in passes, at the same time."""
    if isinstance(problem, PartitionedProblem):
        yield from zip(Cs.tolist(), problem.solve_path(Cs, interrupted), strict=True)
        return
    problem.largest_C = float(Cs.max())
    point = None
    for C in Cs.tolist():
        result = problem.solve(C, interrupted=interrupted, point=point)
        point = result.point
        yield C, result
        if interrupted is not None and interrupted.is_set():
            return
