"""The end of a step, or a point before it where the step overshoots."""

from collections.abc import Callable

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

    The search reads no data but scores: only the point found costs a pass. Positions are asked for as many at a time as
    the objective says is worth it.

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
    alpha = _flat_position(objective.line(point, trial), point.value, slope, end, objective.positions_at_once)
    new = objective.between(point, trial, alpha)
    monitor.n_evaluations += 1
    objective.release(point)
    objective.release(trial)
    return new


def _flat_position(
    along: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
    start_value: float,
    slope: float,
    end: float,
    at_once: int,
) -> float:
    """A position in (0, 1) where a convex function is nearly flat, given its slopes at 0 and 1."""
    low, low_slope, high, high_slope = 0.0, slope, 1.0, end
    moved = 0  # which end the last round has moved: -1 the low one, 1 the high one, 0 both
    for _ in range(TRIALS):
        # regula falsi on the slope, kept away from the ends; an end that stays counts half (the Illinois rule): a slope
        # with a kink in it would keep the other one for long
        moved_before = moved
        guess = low + (high - low) * min(max(low_slope / (low_slope - high_slope), 0.1), 0.9)
        alphas = _positions(low, high, guess, at_once)
        values, slopes = along(alphas)
        # flat, and not beyond the lowest point as far up again: from there steps would go round in circles
        flat = (np.abs(slopes) <= SEARCH_SLOPE * abs(slope)) & ((slopes <= 0.0) | (values <= start_value))
        if flat.any():
            return float(alphas[flat][np.argmin(np.abs(slopes[flat]))])
        # slopes ascend along a convex function: on between the last that goes down and the first that does not
        n_down = int(np.argmin(np.append(slopes < 0.0, False)))
        if n_down > 0:
            low, low_slope = float(alphas[n_down - 1]), float(slopes[n_down - 1])
        if n_down < len(alphas):
            high, high_slope = float(alphas[n_down]), float(slopes[n_down])
        moved = -1 if n_down == len(alphas) else int(n_down == 0)
        if moved == moved_before == -1:
            high_slope *= 0.5
        elif moved == moved_before == 1:
            low_slope *= 0.5
    # never uphill: the last position known to be on the way down
    return low if low > 0.0 else float(alphas[0])


def _positions(low: float, high: float, guess: float, n: int) -> np.ndarray:
    """A guess and n - 1 positions around it, ascending, that part the interval evenly."""
    if n == 1:
        return np.array([guess])
    return np.sort(np.append(low + (high - low) * np.arange(1, n) / n, guess))
