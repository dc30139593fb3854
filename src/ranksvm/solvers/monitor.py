"""Bookkeeping that every solver shares: the trace, the stopping tests, interruption."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from ranksvm._util.log_records import PASSING
from ranksvm._util.overflow import check_certificate
from ranksvm.solvers.protocol import Objective, Point
from ranksvm.solvers.result import History, SolverResult, Status, relative_gap

__all__ = ["Monitor", "interruptible"]

logger = logging.getLogger("ranksvm.solvers")

# A relative change of the objective below this is round-off.
ROUND_OFF = 1e-14
# A bound on round-off that is beyond the tolerance is worth another step where it has fallen by this factor.
LESS_ROUND_OFF = 0.5


class Monitor:
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
    enough : float
        A gap that suffices for the smoothed objective, once its smoothing suffices.
    """

    def __init__(
        self,
        objective: Objective,
        tol: float,
        max_iter: int,
        interrupted: threading.Event | None = None,
        label: str | None = "",
        enough: float = 0.0,
    ):
        self.objective = objective
        self.tol = tol
        self.max_iter = max_iter
        self.interrupted = interrupted
        self.label = label
        self.enough = enough
        self.history = History()
        self.n_evaluations = 0
        self.n_products = 0
        self._best_gap = float("inf")
        self._without_progress = 0
        # the gap recorded last, if it includes round-off
        self._proven: float | None = None
        self._refreshed = False
        # the bound on round-off found last, where it was not all of a certificate
        self._round_off = float("inf")
        objective.reserve = 0.0

    @property
    def n_iter(self) -> int:
        """Iterations so far."""
        return len(self.history.objective) - 1

    def evaluate(self, w: np.ndarray, near: Point | None = None) -> Point:
        """Evaluate the objective."""
        self.n_evaluations += 1
        return self.objective.evaluate(w, near)

    def reduce_smoothing(self, point: Point) -> Point:
        """The same point or one nearby, with less smoothing if the current problem is solved accurately enough."""
        narrower, n_evaluations = self.objective.reduce_smoothing(point, self.tol)
        self.n_evaluations += n_evaluations
        return narrower

    def record(self, point: Point) -> Status | None:
        """Record an iterate; returns the reason to stop there, or None to continue."""
        value, gap = self._append(point)
        status = self._status(point, value, gap)
        if self.label is not None:
            # as `_status` compares them: with what round-off hides, as far as it is known
            tested = gap + self.objective.reserve if self._proven is None else self._proven
            line = "%siteration %d: objective %.9g, relative gap %.2e (tol %.2e)"
            logger.info(line, self.label, self.n_iter, value, relative_gap(tested, value), self.tol, extra=PASSING)
        if status not in (None, Status.CONVERGED) and self.objective.refresh(point):
            # the same w, with no more round-off than one evaluation has
            self.n_evaluations += 1
            for trace in vars(self.history).values():
                trace.pop()
            self.objective.reserve = 0.0
            if status is Status.PRECISION and not self._refreshed:
                self._refreshed, self._without_progress, self._best_gap = True, 0, float("inf")
                return self.record(point)
            (value, gap), self._proven = self._append(point), None
        if status is not None and self._proven is None:
            round_off = self._include_round_off(point, gap)
            # the reserve was for the round-off of another point: here there may be less
            if status is not Status.INTERRUPTED and gap + round_off <= self.tol * value:
                return Status.CONVERGED
        return status

    def _append(self, point: Point) -> tuple[float, float]:
        """Value and gap at a point, appended to the trace."""
        value, gap = self.objective.certificate(point)
        check_certificate(value, gap)
        self.history.objective.append(value)
        self.history.duality_gap.append(gap)
        self.history.evaluations.append(self.n_evaluations)
        self.history.hessian_products.append(self.n_products)
        return value, gap

    def _status(self, point: Point, value: float, gap: float) -> Status | None:
        """The reason to stop at the iterate recorded last, if there is one."""
        history, allowed, self._proven = self.history, self.tol * value, None
        if 0.0 < self.enough >= self.objective.gap(point) and self.objective.smoothing_suffices(point, self.tol):
            return Status.CONVERGED
        if gap + self.objective.reserve <= allowed:
            round_off = self._include_round_off(point, gap)
            if gap + round_off <= allowed:
                return Status.CONVERGED
            if not round_off < allowed and not round_off < LESS_ROUND_OFF * self._round_off:
                return Status.PRECISION
            # What is left of the tolerance may still be met; or the bound may fall along with the gradient.
            self.objective.reserve = round_off if round_off < allowed else 0.0
            self._round_off, self._proven = round_off, None
            history.duality_gap[-1] = gap
        if self.interrupted is not None and self.interrupted.is_set():
            return Status.INTERRUPTED
        if self.n_iter >= self.max_iter:
            return Status.MAX_ITERATIONS
        # The objective and the gradient no longer decrease: several such steps indicate round-off.
        still = self.n_iter > 0 and abs(history.objective[-2] - value) <= ROUND_OFF * abs(value)
        self._without_progress = self._without_progress + 1 if still and gap >= 0.5 * self._best_gap else 0
        self._best_gap = min(self._best_gap, gap)
        return Status.PRECISION if self._without_progress >= 3 else None

    def _include_round_off(self, point: Point, gap: float) -> float:
        """Add what round-off hides to the gap recorded last; it is also returned by itself."""
        round_off = self.objective.round_off(point, self.tol)
        self._proven = self.history.duality_gap[-1] = gap + round_off
        return round_off

    def result(self, point: Point, status: Status) -> SolverResult:
        """The outcome at the last iterate: its gap includes round-off."""
        if self._proven is None:  # the solver has a rule of its own to stop
            self._include_round_off(point, self.history.duality_gap[-1])
        gap = self.history.duality_gap[-1]
        value = self.history.objective[-1]
        check_certificate(value, gap)  # what round-off may hide can be beyond float64
        return SolverResult(point.w, value, gap, self.n_iter, status, self.history, point)


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
