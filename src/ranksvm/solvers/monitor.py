"""Shared parts of all solvers: the start, the trace, the stopping tests, interruption, and the result."""

from __future__ import annotations

import logging
import math
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Generic

import numpy as np

from ranksvm._util.checks import overflow_of_certificate
from ranksvm._util.verbosity import PASSING
from ranksvm.solvers.protocol import Objective, P, SampledObjective

__all__ = ["History", "Monitor", "SolverResult", "Status", "interruptible", "relative_gap", "solve_sample"]

logger = logging.getLogger("ranksvm.solvers")
# A relative change of the objective below this is round-off.
ROUND_OFF = 1e-14
# While the bound on round-off exceeds the allowed gap, another step is worth its cost only if the bound has fallen to
# less than this fraction of its last value.
LESS_ROUND_OFF = 0.5
# After this number of steps in a row that have lowered neither the objective nor its gap, with the same smoothing, only
# round-off moves the point. (In 1,200 fits to random data, there were at most 108 such steps before convergence.)
MAX_STALLED = 200
# The problem on a sample is solved until the gradient has decreased to this fraction; beyond that the other data would
# change the solution anyway.
SAMPLE_REDUCTION = 0.03
SAMPLE_ITERATIONS = 20
# The loss of the sample is not smoothed less than this tolerance requires: in a sample, too few pairs have margins in a
# narrower smoothed interval.
SAMPLE_TOL = 1e-4


_AT_MAX_ITER = "Stopped at max_iter before the certificate met tol:"
_AT_ROUND_OFF = (
    "Stopped because float64 round-off allows no further progress: the certificate, which includes a bound on "
    "round-off, cannot become smaller."
)


class Status(Enum):
    """Why a solver stopped; the value is a sentence for the user."""

    CONVERGED = "Converged: the certificate meets tol."
    GRADIENT = (
        "Stopped by the rule asked for: |gradient| <= tol * |gradient at 0|, which says nothing about the distance "
        "from the optimum; duality_gap_ does."
    )
    MAX_ITERATIONS = f"{_AT_MAX_ITER} raise max_iter, lower C, or scale the features alike."
    PRECISION = f"{_AT_ROUND_OFF} Raise tol, lower C, or scale the features alike."
    INTERRUPTED = "Interrupted: this is the best model so far; fit again with warm_start=True to continue from it."
    INTERRUPTED_AT_STEP = "Interrupted: this is the model of the last step."

    def in_words(self, scales_matter: bool = True) -> str:
        """The sentence; it advises to scale the features only if their scales matter."""
        without_scales = {
            Status.MAX_ITERATIONS: f"{_AT_MAX_ITER} raise max_iter or lower C.",
            Status.PRECISION: f"{_AT_ROUND_OFF} Raise tol or lower C.",
        }
        sentence: str = self.value
        return sentence if scales_matter else without_scales.get(self, sentence)


@dataclass
class History:
    """Trace of a solver: one entry per iterate, the first at the starting point."""

    objective: list[float] = field(default_factory=list)
    duality_gap: list[float] = field(default_factory=list)
    evaluations: list[int] = field(default_factory=list)
    hessian_products: list[int] = field(default_factory=list)

    def after(self, earlier: History) -> History:
        """This trace appended to an earlier one, at whose last iterate it started: counts continue from there."""
        evaluations = [earlier.evaluations[-1] + count for count in self.evaluations[1:]]
        products = [earlier.hessian_products[-1] + count for count in self.hessian_products[1:]]
        return History(
            earlier.objective + self.objective[1:],
            earlier.duality_gap + self.duality_gap[1:],
            earlier.evaluations + evaluations,
            earlier.hessian_products + products,
        )

    def as_dict(self) -> dict[str, list[float]]:
        """The trace as plain lists by name."""
        return dict(vars(self))


@dataclass
class SolverResult:
    """Outcome of a solver.

    Attributes
    ----------
    w : ndarray of float64
        The last iterate: every step decreases the (smoothed) objective.
    value : float
        Objective there.
    gap : float
        Duality gap there, including a bound on round-off: the optimum is not below ``value - gap``.
    n_iter : int
        Iterations done.
    status : Status
        Why it stopped.
    history : History
        Trace.
    point : Point
        The evaluation there, from which another solve of the same objective can continue.
    width : float or None
        Width of the Huberized hinge that was minimized last, set by the caller that chose the loss, because solvers do
        not know it.
    alpha : ndarray of float64 or None
        Dual variables of the pairs, if the dual was solved.
    """

    w: np.ndarray
    value: float
    gap: float
    n_iter: int
    status: Status
    history: History
    point: Any
    width: float | None = None
    alpha: np.ndarray | None = None

    def after(self, earlier: SolverResult) -> SolverResult:
        """This result combined with the result of an earlier run, at whose end it started."""
        return replace(self, n_iter=earlier.n_iter + self.n_iter, history=self.history.after(earlier.history))

    @property
    def relative_gap(self) -> float:
        """The gap relative to the value."""
        return relative_gap(self.gap, self.value)


def relative_gap(gap: float, value: float) -> float:
    """A duality gap divided by the absolute value of an objective; for value 0, it is 0 if the gap is 0, else infinite.

    Parameters
    ----------
    gap : float
        The gap, not negative.
    value : float
        The objective.

    Returns
    -------
    float
        ``gap / |value|``.
    """
    if value == 0.0:
        return 0.0 if gap == 0.0 else float("inf")
    return gap / abs(value)


class Monitor(Generic[P]):
    """Keeps the trace of a run and decides when to stop.

    Parameters
    ----------
    objective : Objective
        The problem.
    tol : float
        Relative duality gap to reach.
    max_iter : int
        Largest number of iterations.
    interrupted : threading.Event
        Set when the user wants to stop.
    label : str or None
        Put before the lines of the log; None: no log lines.
    target_gap : float
        The solver stops at this duality gap of the smoothed objective, once the smoothing is small enough for ``tol``.
    descends : bool
        Whether each step should lower the objective, as those of the dual need not.
    """

    def __init__(
        self,
        objective: Objective[P],
        tol: float,
        max_iter: int,
        interrupted: threading.Event | None = None,
        label: str | None = "",
        target_gap: float = 0.0,
        descends: bool = True,
    ):
        self.objective = objective
        self.tol = tol
        self.max_iter = max_iter
        self.interrupted = interrupted
        self.label = label
        self.target_gap = target_gap
        self.history = History()
        self.n_evaluations = 0
        self.n_products = 0
        self._best_gap = float("inf")
        self._n_unchanged = 0
        self._descends = descends
        self._max_stalled = MAX_STALLED if descends else max_iter
        # the smallest objective and gap with the present smoothing, and the steps since
        self._lowest, self._n_stalled = (float("inf"), float("inf")), 0
        # the gap recorded last, if it includes round-off
        self._gap_with_round_off: float | None = None
        self._refreshed = False
        # the last bound on round-off that kept the certificate from meeting tol
        self._round_off = float("inf")
        objective.reserve = 0.0

    @property
    def n_iter(self) -> int:
        """Iterations so far."""
        return len(self.history.objective) - 1

    def evaluate(self, w: np.ndarray, near: P | None = None) -> P:
        """Evaluate the objective."""
        self.n_evaluations += 1
        return self.objective.evaluate(w, near)

    def reduce_smoothing(self, point: P, by_inverse: bool = False) -> P:
        """The same point or one nearby, with less smoothing if the current problem is solved accurately enough."""
        narrower, n_evaluations = self.objective.reduce_smoothing(point, self.tol, by_inverse)
        self.n_evaluations += n_evaluations
        if narrower is not point:
            self._lowest = float("inf"), float("inf")
        return narrower

    def record(self, point: P) -> Status | None:
        """Record an iterate; return the reason to stop there, or None to continue."""
        value, gap = self._append(point)
        status = self._status(point, value, gap)
        if self.label is not None:
            # the gap that `_status` compares with tol: it includes the bound on round-off, if that is known
            tested = gap + self.objective.reserve if self._gap_with_round_off is None else self._gap_with_round_off
            line = "%siteration %d: objective %.9g, relative gap %.2e (tol %.2e)"
            logger.info(line, self.label, self.n_iter, value, relative_gap(tested, value), self.tol, extra=PASSING)
        stops = status not in (None, Status.CONVERGED)
        if stops and self.objective.refresh(point, visit_pairs=status is Status.PRECISION):
            # the same w or alpha, with no more round-off than one evaluation has
            self.n_evaluations += 1
            for trace in vars(self.history).values():
                trace.pop()
            self.objective.reserve = 0.0
            if status is Status.PRECISION and not self._refreshed:
                self._refreshed, self._n_unchanged, self._best_gap = True, 0, float("inf")
                self._lowest = float("inf"), float("inf")
                return self.record(point)
            (value, gap), self._gap_with_round_off = self._append(point), None
        if status is not None and self._gap_with_round_off is None:
            round_off = self._include_round_off(point, gap)
            # the reserve was for the round-off of another point: it may be smaller here
            if status is not Status.INTERRUPTED and gap + round_off <= self.tol * value:
                return Status.CONVERGED
        return status

    def _append(self, point: P) -> tuple[float, float]:
        """Value and gap at a point, appended to the trace."""
        value, gap = self.objective.certificate(point)
        if not (math.isfinite(value) and math.isfinite(gap)):
            raise overflow_of_certificate(value, gap)
        self.history.objective.append(value)
        self.history.duality_gap.append(gap)
        self.history.evaluations.append(self.n_evaluations)
        self.history.hessian_products.append(self.n_products)
        return value, gap

    def _status(self, point: P, value: float, gap: float) -> Status | None:
        """The reason to stop at the last recorded iterate, or None."""
        history, allowed, self._gap_with_round_off = self.history, self.tol * value, None
        if 0.0 < self.target_gap >= point.gap and self.objective.smoothing_suffices(point, self.tol):
            return Status.CONVERGED
        if gap + self.objective.reserve <= allowed:
            round_off = self._include_round_off(point, gap)
            # Weights of 0 rank nothing, even if tol allows them: one step follows if more than round-off moves them.
            ranks_nothing = self.n_iter == 0 and gap > round_off and not point.w.any()
            if gap + round_off <= allowed and not ranks_nothing:
                return Status.CONVERGED
            if not round_off < allowed and not round_off < LESS_ROUND_OFF * self._round_off:
                return Status.PRECISION
            # The gap may still fall to the tolerance minus the bound; or the bound may fall with the gradient.
            self.objective.reserve = round_off if round_off < allowed else 0.0
            self._round_off, self._gap_with_round_off = round_off, None
            history.duality_gap[-1] = gap
        if self.interrupted is not None and self.interrupted.is_set():
            return Status.INTERRUPTED
        if self.n_iter >= self.max_iter:
            return Status.MAX_ITERATIONS
        # The objective and the gap no longer decrease: several such steps indicate round-off. (Steps of the dual may
        # lower the gap slowly, although w and the objective do not change.)
        round_off = ROUND_OFF * abs(value)
        unchanged = self.n_iter > 0 and abs(history.objective[-2] - value) <= round_off
        if unchanged:
            unchanged = gap >= (0.5 * self._best_gap if self._descends else history.duality_gap[-2] - round_off)
        self._n_unchanged = self._n_unchanged + 1 if unchanged else 0
        self._best_gap = min(self._best_gap, gap)
        now, self._n_stalled = (point.value, point.gap), self._n_stalled + 1
        if now[0] < self._lowest[0] or now[1] < self._lowest[1]:
            self._n_stalled = 0
        self._lowest = min(now[0], self._lowest[0]), min(now[1], self._lowest[1])
        return Status.PRECISION if self._n_unchanged >= 3 or self._n_stalled >= self._max_stalled else None

    def _include_round_off(self, point: P, gap: float) -> float:
        """Add the bound on round-off to the last recorded gap; return the bound."""
        round_off = self.objective.round_off(point, self.tol)
        self._gap_with_round_off = self.history.duality_gap[-1] = gap + round_off
        return round_off

    def result(self, point: P, status: Status) -> SolverResult:
        """The outcome at the last iterate: its gap includes round-off."""
        if self._gap_with_round_off is None:  # the solver has a rule of its own to stop
            self._include_round_off(point, self.history.duality_gap[-1])
        gap = self.history.duality_gap[-1]
        value = self.history.objective[-1]
        if not (math.isfinite(value) and math.isfinite(gap)):  # including round-off
            raise overflow_of_certificate(value, gap)
        return SolverResult(point.w, value, gap, self.n_iter, status, self.history, point)


def solve_sample(
    objective: SampledObjective[Any],
    start: np.ndarray,
    tol: float,
    interrupted: threading.Event | None,
    solve: Callable[..., SolverResult],
) -> np.ndarray:
    """A starting point: the solution of the problem on a sample, which itself starts from a smaller sample.

    Parameters
    ----------
    objective : Objective
        The problem.
    start : ndarray of float64
        Returned if there is no sample.
    tol : float
        Relative duality gap to reach, if it is not too small for a sample.
    interrupted : threading.Event or None
        Stops the run at the next evaluation when set.
    solve : callable
        The solver of the problem on a sample, with the arguments of `newton`.

    Returns
    -------
    ndarray of float64
        A vector of the whole problem.
    """
    sample = objective.sample()
    if sample is None:
        return start
    point = sample.evaluate(solve_sample(sample, np.zeros(sample.n_variables), tol, interrupted, solve))
    result = solve(
        sample,
        point.w,
        point=point,
        tol=max(tol, SAMPLE_TOL),
        target_gap=SAMPLE_REDUCTION**2 * point.gap,
        max_iter=SAMPLE_ITERATIONS,
        interrupted=interrupted,
        label="on a sample: ",
    )
    return objective.from_sample(sample, result.w)


@contextmanager
def interruptible() -> Iterator[threading.Event]:
    """Turn Ctrl-C into an event that solvers check between evaluations (only in the main thread, which receives it)."""
    event = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield event
        return
    previous = signal.getsignal(signal.SIGINT)
    if previous is None:  # installed from outside Python: it cannot be restored
        yield event
        return
    signal.signal(signal.SIGINT, lambda *_: event.set())
    try:
        yield event
    finally:
        signal.signal(signal.SIGINT, previous)
