"""Drift: clicks begin to contradict a model, because what users find relevant has changed."""

from typing import Any

import numpy as np

from ranksvm._steps import steps_of

__all__ = ["KEPT", "KEPT_BY_ESTIMATE", "DriftDetector", "error_of", "forget"]

# The error has to be above its mean by more than this, ...
_TOLERANCE = 0.03
# ... and the sum of what is above, since the sum was lowest, has to reach ``v L / (2 t)`` for the variance v of the
# errors and the tolerance t: a random walk without drift ever gets there with a probability near exp(-L).
_LOG_CHANCE = 8.0
# Rankings before which nothing is noticed: their variance is not known well.
_FEWEST = 50
# Share of a model that stays when drift is noticed.
KEPT = 0.03
# Share that stays when propensities are estimated: what was learned before had worse ones. Without it, trust-biased
# users were learned from at .970 and .975 of what labels give, with it at .976 and .981.
KEPT_BY_ESTIMATE = 0.7


class DriftDetector:
    """A test for an increase of the mean error of a model (Page, "Continuous inspection schemes", Biometrika 1954).

    Parameters
    ----------
    state : list of float, optional
        State of an earlier detector, to continue from.
    """

    def __init__(self, state: list[float] | None = None):
        # rankings, their mean error, sum of squared deviations from it, sum of what is above, its lowest value
        self.state = [0.0] * 5 if state is None else state

    def add(self, error: float) -> bool:
        """Add the error of a ranking, between 0 and 1; True if there is drift, and the detector begins anew."""
        n, mean, squares, total, lowest = self.state
        n += 1.0
        deviation = error - mean
        mean += deviation / n
        squares += deviation * (error - mean)
        total += error - mean - _TOLERANCE
        lowest = min(lowest, total)
        drift = n > _FEWEST and total - lowest > squares / n * _LOG_CHANCE / (2.0 * _TOLERANCE)
        self.state = [0.0] * 5 if drift else [n, mean, squares, total, lowest]
        return drift


def error_of(scores: np.ndarray, pairs: np.ndarray, weight: np.ndarray | None) -> float | None:
    """Weighted share of the pairs (preferred, other) that the scores order wrongly; ties count half, None: no pairs."""
    if not len(pairs):
        return None
    difference = scores[pairs[:, 0]] - scores[pairs[:, 1]]
    return float(np.average((difference < 0) + 0.5 * (difference == 0), weights=weight))


def forget(model: Any, keep: float) -> None:
    """Have a model keep a share of what it learned, if it can forget."""
    ranker = steps_of(model)[-1]
    if hasattr(ranker, "forget") and not ranker.average:
        ranker.forget(keep)
