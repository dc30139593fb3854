"""Alternating minimization: take one step of the objective after another until its certificate meets a tolerance."""

import threading
from typing import Protocol, TypeVar

import numpy as np

from ranksvm.solvers.douglas_rachford import SplitHistory, SplitResult, check_point, why_stop
from ranksvm.solvers.monitor import Status
from ranksvm.solvers.protocol import SplitPoint

__all__ = ["alternating"]

S_co = TypeVar("S_co", bound=SplitPoint, covariant=True)


class SteppedObjective(Protocol[S_co]):
    """The part of `SplitObjective` that is used here: the accuracy of a step is left to the objective."""

    def step(self) -> S_co:
        """Take the next step."""


def alternating(
    objective: SteppedObjective[S_co],
    *,
    tol: float = 1e-4,
    max_iter: int = 1000,
    interrupted: threading.Event | None = None,
) -> SplitResult[S_co]:
    """Take the steps of an objective until its certificate meets ``tol``; the last one is the solution.

    Unlike `douglas_rachford` it neither keeps nor finishes a best point: the steps and the result are exactly those of
    a published algorithm.

    Parameters
    ----------
    objective : SplitObjective
        The problem, initialized; only its steps are used.
    tol : float
        Stop when the duality gap is at most this fraction of the absolute value of the objective.
    max_iter : int
        Largest number of steps.
    interrupted : threading.Event, optional
        Stops the run after a step when set.

    Returns
    -------
    SplitResult
        The last point, its certificate and the reason for stopping.
    """
    history = SplitHistory()
    bound = -np.inf
    for _ in range(max_iter):
        point = objective.step()
        check_point(point)
        bound = max(bound, point.bound)
        gap = max(0.0, point.value + point.round_off - bound)
        history.record(point.value, gap, point.ranks)
        status = why_stop(point.value, gap, tol, interrupted)
        if status is not None:
            break
    if status is Status.INTERRUPTED:
        status = Status.INTERRUPTED_AT_STEP
    n_iter = len(history.objective)
    return SplitResult(point, gap, n_iter, Status.MAX_ITERATIONS if status is None else status, history)
