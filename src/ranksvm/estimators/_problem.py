"""The optimisation problem of any RankSVM: the pairs and the loss of the data given, solutions, and what is kept."""

import threading
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ranksvm._parallel import effective_n_jobs, one_blas_thread
from ranksvm.data import ComparablePairs, PairList, Queries
from ranksvm.estimators import _inputs, _options
from ranksvm.exceptions import DataError, OptionError
from ranksvm.losses import Hinge, HuberHinge, Pairs, PairwiseLoss, SquaredHinge, Width
from ranksvm.solvers import SolverResult, Status, interruptible, newton, tron

LOSSES = ("squared_hinge", "hinge", "huber")
SOLVERS = ("auto", "newton", "tron")
PAIR_SELECTIONS = ("all", "adjacent")
PAIR_WEIGHTINGS = ("uniform", "per_query", "label_gap", "gain_gap")


# The width at which smoothing of the hinge begins, and from which a solution of a similar problem is sharpened on.
FIRST_WIDTH, WARM_WIDTH = 1.0, 0.25


def problem_options(estimator: Any) -> dict[str, Any]:
    """The hyper-parameters of an estimator that choose loss and solver, checked."""
    _options.check(
        loss=_options.one_of(estimator.loss, LOSSES),
        huber_width=_options.positive(estimator.huber_width),
        pair_selection=_options.one_of(estimator.pair_selection, PAIR_SELECTIONS),
        pair_weighting=_options.one_of(estimator.pair_weighting, PAIR_WEIGHTINGS),
        solver=_options.one_of(estimator.solver, SOLVERS),
        tol=_options.positive(estimator.tol),
        max_iter=_options.count(estimator.max_iter),
    )
    names = ("loss", "huber_width", "solver", "tol", "max_iter")
    return {name: getattr(estimator, name) for name in names}


def interruptible_if(wanted: bool) -> AbstractContextManager[threading.Event | None]:
    """Context in which Ctrl-C sets an event instead of raising KeyboardInterrupt, if that is wanted."""
    return interruptible() if wanted else nullcontext()


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """What ``fit`` was given, checked.

    Parameters
    ----------
    X : ndarray or CSR matrix, shape (n_rows, n_features)
        Features.
    pairs : ComparablePairs or PairList
        Pairs of the rows.
    n_queries : int
        Number of queries, with pairs or not.
    n_threads : int
        Number of threads to work with.
    labels : ndarray of float64, shape (n_rows,), or None
        Labels of the rows; None where pairs were given.
    """

    X: Any
    pairs: Pairs
    n_queries: int
    n_threads: int
    labels: np.ndarray | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows of X."""
        return self.X.shape[0]


class RankSVMProblem:
    """``1/2 |f|^2 + C * loss(scores)`` for one data set and one C after another; what f is, a subclass says.

    A subclass sets ``objective`` and ``solver`` ("newton" or "tron").

    Parameters
    ----------
    data : TrainingSet
        The data.
    pairs : ComparablePairs or PairList
        Their pairs, over the rows that the objective is one of.
    loss, solver : str
        By name.
    huber_width : float
        Width of the Huberised hinge.
    tol : float
        Relative duality gap to reach.
    max_iter : int
        Largest number of solver iterations.
    """

    objective: Any
    # put before C in the log
    label = ""
    # the form of Newton's method that suits the objective
    newton: ClassVar[Callable[..., SolverResult]] = staticmethod(newton)

    def __init__(
        self,
        data: TrainingSet,
        pairs: Pairs,
        *,
        loss: str,
        huber_width: float,
        solver: str,
        tol: float,
        max_iter: int,
    ):
        self.pairs = pairs
        self.n_rows = data.n_rows
        self.n_queries = data.n_queries
        self.n_threads = data.n_threads
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self._smoothing = Width(huber_width if loss == "huber" else FIRST_WIDTH)
        self.pairwise: PairwiseLoss
        if loss == "squared_hinge":
            self.pairwise = SquaredHinge(pairs)
        elif loss == "huber":
            self.pairwise = HuberHinge(pairs, huber_width)
        else:
            self.pairwise = Hinge(pairs, self._smoothing)
        self.loss = loss

    def solve(self, C: float, start: Any = None, interrupted: threading.Event | None = None) -> SolverResult:
        """The solution for one C, from the variables or the point of another solution if given."""
        objective = self.objective
        warm = start is not None
        if start is None:
            start = self._origin()
        if self.loss == "hinge" and isinstance(start, np.ndarray):
            self._smoothing.value = WARM_WIDTH if warm else FIRST_WIDTH
        objective.reweight(C, None if isinstance(start, np.ndarray) else start)
        options: dict[str, Any] = {"tol": self.tol, "max_iter": self.max_iter, "interrupted": interrupted}
        with one_blas_thread():
            if self.solver == "newton":
                result = self.newton(objective, start, warm_start=warm, **options)
            else:
                result = tron(objective, start, **options)
        # it narrows further with the next C
        return result if self.loss == "squared_hinge" else replace(result, width=self._smoothing.value)

    def start_from(self, estimator: Any) -> np.ndarray:
        """The variables of the solution that an estimator has; raises DataError where it is one of other data."""
        raise NotImplementedError

    def release(self) -> None:
        """Let go of what only further solutions would need."""

    def scores(self, w: np.ndarray, X: Any) -> np.ndarray:
        """What documents, checked, score under a solution's variables."""
        raise NotImplementedError

    def keep_result(self, estimator: Any, result: SolverResult) -> None:
        """Give an estimator a solution as fitted attributes, and warn where it did not converge."""
        self._keep_model(estimator, result.w)
        estimator.objective_ = float(result.value)
        estimator.duality_gap_ = float(result.gap)
        estimator.converged_ = result.status is Status.CONVERGED
        estimator.status_ = result.status.value
        estimator.n_iter_ = result.n_iter
        estimator.solver_ = self.solver
        estimator.history_ = result.history.as_dict()
        estimator.n_pairs_ = self.pairs.n_pairs
        estimator.n_queries_ = self.n_queries
        estimator.width_ = result.width
        if result.status in (Status.MAX_ITERATIONS, Status.PRECISION):
            gap = f"relative duality gap {result.relative_gap:.1e}"
            warnings.warn(f"{result.status.value} ({gap})", ConvergenceWarning, stacklevel=3)

    def _origin(self) -> np.ndarray:
        """The variables of f = 0."""
        raise NotImplementedError

    def _keep_model(self, estimator: Any, w: np.ndarray) -> None:
        """Give an estimator what it scores with."""
        raise NotImplementedError


def training_set(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    qid: Any,
    group: Any,
    pairs: Any = None,
    pair_weight: Any = None,
    **weights: Any,
) -> TrainingSet:
    """The data that an estimator's ``fit`` was given, all of it checked; it takes note of the features.

    ``weights`` are ``sample_weight``, ``query_weight`` and ``propensity``.
    """
    n_threads = effective_n_jobs(estimator.n_jobs)
    check_source_of_pairs(estimator, y, pairs, pair_weight)
    if y is None and pairs is None:
        name = type(estimator).__name__
        raise DataError(f"{name} requires y to be passed, but the target y is None (or give pairs of rows instead).")
    if pairs is None:
        X, y = _inputs.features_and_labels(estimator, X, y, n_threads=n_threads)
    else:
        X = _inputs.features(estimator, X, n_threads=n_threads, reset=True)
    grouping = _inputs.queries(qid, group, X.shape[0])
    found = training_pairs(estimator, grouping, y, pairs, pair_weight, n_threads, **weights)
    return TrainingSet(X, found, grouping.n_queries, n_threads, y)


def training_pairs(
    estimator: Any, grouping: Queries, y: Any, pairs: Any, pair_weight: Any, n_threads: int, **weights: Any
) -> Pairs:
    """The pairs that an estimator's ``fit`` learns from: those that labels imply, or those listed in ``pairs``."""
    selection, weighting = estimator.pair_selection, estimator.pair_weighting
    if pairs is None:
        return ComparablePairs.from_labels(
            grouping, y, selection=selection, weighting=weighting, n_threads=n_threads, **weights
        )
    return PairList.from_pairs(grouping, pairs, pair_weight=pair_weight, weighting=weighting, **weights)


def check_source_of_pairs(estimator: Any, y: Any, pairs: Any, pair_weight: Any) -> None:
    """Refuse what labels, or explicit pairs, cannot be combined with."""
    if pairs is None:
        if pair_weight is not None:
            raise DataError("pair_weight is given without pairs.")
        return
    selection, weighting = estimator.pair_selection, estimator.pair_weighting
    if y is not None:
        raise DataError("Give y (labels, which imply the pairs) or pairs, not both.")
    if selection != "all":
        raise OptionError(f"pair_selection={selection!r} chooses among the pairs that labels imply: leave it at 'all'.")
    if weighting not in ("uniform", "per_query"):
        raise OptionError(f"pair_weighting={weighting!r} is computed from labels: with pairs, give pair_weight.")
