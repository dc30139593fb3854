"""Choose the next point on a step: its end, or an earlier point if the step overshoots the minimum."""

from collections.abc import Callable

import numpy as np

from ranksvm.solvers.monitor import Monitor
from ranksvm.solvers.protocol import Objective, P

__all__ = ["shorten", "take_step"]

# A step is short enough if its final uphill slope is at most this multiple of its initial slope.
SLOPE = 0.9
TRIALS = 40
# A relative increase of the objective below this is round-off.
ROUND_OFF = 1e-12


def take_step(objective: Objective[P], point: P, step: np.ndarray, monitor: Monitor[P]) -> tuple[P, float]:
    """The point after a step, shortened if it overshoots, and the slope at the end of the full step."""
    trial = monitor.evaluate(point.w + step, point)
    slope, end_slope = objective.slope(point, step), objective.slope(trial, step)
    # A step is not too long if its final uphill slope is at most SLOPE times its initial downhill slope, or if it
    # reduced the gradient; a step without initial descent is round-off. The objective may increase only by round-off,
    # otherwise steps could cycle. The gap comes last: it may cost a product.
    rises = not trial.value <= point.value + ROUND_OFF * abs(point.value)  # a value that overflowed to NaN rises
    short = not rises and (end_slope <= SLOPE * abs(slope) or trial.gap < point.gap)
    if slope >= 0.0 or end_slope <= 0.0 or short:
        objective.release(point)
        return trial, end_slope
    return shorten(objective, point, trial, slope, end_slope, monitor), end_slope


def shorten(objective: Objective[P], point: P, trial: P, slope: float, end_slope: float, monitor: Monitor[P]) -> P:
    """A point near the minimum between two points, with descent at the first and ascent at the second.

    The search reads only scores; only the final point costs a pass. The objective determines how many positions are
    evaluated at a time.

    Parameters
    ----------
    objective : Objective
        The problem.
    point, trial : Point
        The ends; both are released.
    slope, end_slope : float
        The slopes there, of different signs.
    monitor : Monitor
        Counts the evaluation.

    Returns
    -------
    Point
        The new point.
    """
    along = objective.line(point, trial)
    alpha = _flat_position(along, point.value, slope, end_slope, objective.positions_at_once, objective.search_slope)
    new = objective.between(point, trial, alpha)
    monitor.n_evaluations += 1
    objective.release(point)
    objective.release(trial)
    return new


def _flat_position(
    along: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
    start_value: float,
    slope: float,
    end_slope: float,
    at_once: int,
    search_slope: float,
) -> float:
    """A position in (0, 1) where a convex function is nearly flat, given its slopes at 0 and 1."""
    low, low_slope, high, high_slope = 0.0, slope, 1.0, end_slope
    moved = 0  # the end that the last round moved: -1 the low one, 1 the high one, 0 both
    for _ in range(TRIALS):
        # regula falsi on the slope, kept away from the ends; the slope at an end that has stayed twice is halved (the
        # Illinois rule), because otherwise this end would stay for many rounds if the slope has a kink
        moved_before = moved
        guess = low + (high - low) * min(max(low_slope / (low_slope - high_slope), 0.1), 0.9)
        alphas = _positions(low, high, guess, at_once)
        values, slopes = along(alphas)
        # flat, and beyond the minimum only if the value is no larger than at the start: otherwise steps could cycle
        flat = (np.abs(slopes) <= search_slope * abs(slope)) & ((slopes <= 0.0) | (values <= start_value))
        if flat.any():
            return float(alphas[flat][np.argmin(np.abs(slopes[flat]))])
        # slopes increase along a convex function: continue between the last negative slope and the first other one
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
    # never uphill: the last position with a negative slope
    return low if low > 0.0 else float(alphas[0])


def _positions(low: float, high: float, guess: float, n: int) -> np.ndarray:
    """A guess and n - 1 positions around it, ascending, that divide the interval evenly."""
    if n == 1:
        return np.array([guess])
    return np.sort(np.append(low + (high - low) * np.arange(1, n) / n, guess))
