"""Douglas-Rachford splitting minimizes a sum of two convex functions by the proximal operator of each."""

import logging
import threading
from dataclasses import dataclass, field
from typing import Generic

import numpy as np

from ranksvm._util.verbosity import PASSING
from ranksvm.exceptions import DataError
from ranksvm.solvers.monitor import Status, relative_gap
from ranksvm.solvers.protocol import S, SplitObjective, SplitPoint

__all__ = ["SplitHistory", "SplitResult", "check_point", "douglas_rachford", "why_stop"]

logger = logging.getLogger("ranksvm.solvers")

# The problem within a step is solved to a relative gap of ACCURACY times the square of tol, or of LAST_GAP times the
# last relative gap if that is larger. The square is used because the bound changes in proportion to the error of the
# solution, which is proportional to the square root of its gap.
ACCURACY, LAST_GAP = 1e-2, 0.1
# This number of steps without a better certificate indicates round-off.
PATIENCE = 100


@dataclass
class SplitHistory:
    """Trace of a run: for each step the best objective and certificate so far, and the mean rank there."""

    objective: list[float] = field(default_factory=list)
    duality_gap: list[float] = field(default_factory=list)
    mean_rank: list[float] = field(default_factory=list)

    def as_dict(self) -> dict[str, list[float]]:
        """The trace as plain lists by name."""
        return dict(vars(self))

    def record(self, value: float, gap: float, ranks: np.ndarray) -> None:
        """Add a step."""
        self.objective.append(value)
        self.duality_gap.append(gap)
        self.mean_rank.append(float(np.mean(ranks)))
        line = "step %d: objective %.9g, relative gap %.2e, mean rank %.1f"
        logger.info(line, len(self.objective), value, relative_gap(gap, value), self.mean_rank[-1], extra=PASSING)


@dataclass
class SplitResult(Generic[S]):
    """Outcome of `douglas_rachford` or `alternating`.

    Attributes
    ----------
    point : SplitPoint
        The best point after `SplitObjective.finish`, or the last point of `alternating`.
    gap : float
        Duality gap there.
    n_iter : int
        Number of steps.
    status : Status
        Reason for stopping.
    history : SplitHistory
        Trace.
    """

    point: S
    gap: float
    n_iter: int
    status: Status
    history: SplitHistory


def douglas_rachford(
    objective: SplitObjective[S],
    *,
    tol: float = 1e-4,
    max_iter: int = 1000,
    interrupted: threading.Event | None = None,
) -> SplitResult[S]:
    """Minimize a sum of two convex functions, each given by its proximal operator.

    The method is from Lions & Mercier, "Splitting algorithms for the sum of two nonlinear operators", SIAM J. Numer.
    Anal. 16 (1979). Boyd et al., Found. Trends Mach. Learn. 3 (2011), describe it as the alternating direction method
    of multipliers. It converges for any step length. The objective chooses the step length, and changes it less and
    less often.

    Parameters
    ----------
    objective : SplitObjective
        The problem, initialized.
    tol : float
        Stop when the duality gap is at most this fraction of the absolute value of the objective.
    max_iter : int
        Largest number of steps, including the last one, which finishes the best point; at least two are taken.
    interrupted : threading.Event, optional
        Stops the run when set.

    Returns
    -------
    SplitResult
        The best point, its certificate and the reason for stopping.
    """
    history = SplitHistory()
    best: S | None = None
    bound, gap, accuracy, last_progress = -np.inf, np.inf, np.inf, 0
    for n_iter in range(1, max_iter + 1):
        point = objective.step(accuracy, interrupted)
        check_point(point)
        if best is None or point.value < best.value:
            best = point
        bound = max(bound, point.bound)
        if best.value + best.round_off - bound < gap:
            gap, last_progress = max(0.0, best.value + best.round_off - bound), n_iter
        history.record(best.value, gap, best.ranks)
        status = why_stop(best.value, gap, tol, interrupted)
        if status is not None or n_iter >= max_iter - 1 or n_iter - last_progress >= PATIENCE:
            break
        scale = max(abs(best.value), gap)  # the first values may be 0
        accuracy = ACCURACY * max(tol, LAST_GAP * gap / scale) ** 2 * scale
    assert best is not None  # at least one step was taken
    final = objective.finish(best, ACCURACY * tol**2 * abs(best.value))
    check_point(final)
    gap = max(0.0, final.value + final.round_off - max(bound, final.bound))
    history.record(final.value, gap, final.ranks)
    # the finished point decides, even if an earlier point met tol
    enough = status is not None or n_iter < max_iter - 1
    status = why_stop(final.value, gap, tol, interrupted)
    if status is None:
        status = Status.PRECISION if enough else Status.MAX_ITERATIONS
    return SplitResult(final, gap, n_iter + 1, status, history)


def why_stop(value: float, gap: float, tol: float, interrupted: threading.Event | None) -> Status | None:
    """The reason to stop at a value with a certificate, None to continue."""
    if gap <= tol * abs(value):
        return Status.CONVERGED
    return Status.INTERRUPTED if interrupted is not None and interrupted.is_set() else None


def check_point(point: SplitPoint) -> None:
    """Raise DataError if the value or the bound at a point overflows."""
    if not (np.isfinite(point.value + point.round_off) and np.isfinite(point.bound)):
        raise DataError(
            f"The objective and its bound overflow float64 ({point.value:g}, {point.bound:g}): features or C are too "
            "large. Scale them down."
        )
