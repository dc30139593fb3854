"""The end of a step, or a point before it where the step overshoots."""

import numpy as np

from ranksvm.objectives.protocol import Objective, Point
from ranksvm.solvers.progress import Monitor

__all__ = ["shorten", "take"]

# A step is short enough when it ends no steeper uphill than this part of the slope it began with ...
SLOPE = 0.9
# ... and a search ends where the slope is this part of it.
SEARCH_SLOPE = 0.2
TRIALS = 40
# A rise of the objective by this part of itself is round-off.
ROUND_OFF = 1e-12


def take(objective: Objective, point: Point, step: np.ndarray, monitor: Monitor) -> tuple[Point, float]:
    """The point after a step, shortened if it overshoots, and the slope that the full step ends with."""
    trial = monitor.evaluate(point.w + step, point)
    slope, end = objective.inner(point.gradient, step), objective.inner(trial.gradient, step)
    # A step that ends no steeper uphill than it began downhill was none too long, nor one that reduced the gradient;
    # one that does not begin downhill is round-off. None may end higher but by round-off, or steps could go in circles.
    short = end <= SLOPE * abs(slope) or objective.gap(trial) < objective.gap(point)
    if slope >= 0.0 or end <= 0.0 or (short and trial.value <= point.value + ROUND_OFF * abs(point.value)):
        objective.release(point)
        return trial, end
    return shorten(objective, point, trial, slope, end, monitor), end


def shorten(objective: Objective, point: Point, trial: Point, slope: float, end: float, monitor: Monitor) -> Point:
    """A point near the lowest between two, where the way goes down at the first and up at the second.

    The search reads no data but scores: only the point found costs a pass.

    Parameters
    ----------
    objective : Objective
        The problem.
    point, trial : Point
        The ends; both are released.
    slope, end : float
        The slopes there, of different signs.
    monitor : Monitor
        Counts the evaluation.

    Returns
    -------
    Point
        The point found.
    """
    along = objective.line(point, trial)
    low, low_slope, high, high_slope = 0.0, slope, 1.0, end
    alpha, at = 0.5, 0.0
    for _ in range(TRIALS):
        # regula falsi on the slope, kept away from the ends; an end that stays counts half (the Illinois rule): a slope
        # with a kink in it would keep the other one for long
        at_before = at
        alpha = low + (high - low) * min(max(low_slope / (low_slope - high_slope), 0.1), 0.9)
        value, at = along(alpha)
        # flat, and not beyond the lowest point as far up again: from there steps would go round in circles
        if abs(at) <= SEARCH_SLOPE * abs(slope) and (at <= 0.0 or value <= point.value):
            break
        if at < 0.0:
            low, low_slope = alpha, at
            high_slope *= 0.5 if at_before < 0.0 else 1.0
        else:
            high, high_slope = alpha, at
            low_slope *= 0.5 if at_before > 0.0 else 1.0
    else:
        # never uphill: the last place known to be on the way down
        alpha = low if low > 0.0 else alpha
    new = objective.between(point, trial, alpha)
    monitor.n_evaluations += 1
    objective.release(point)
    objective.release(trial)
    return new
