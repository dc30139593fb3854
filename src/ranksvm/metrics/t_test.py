"""The mean of a sample with its interval, and the test whether it is 0, by the t distribution."""

import math

import numpy as np

__all__ = ["t_test"]


def t_test(contribution: np.ndarray, confidence: float) -> tuple[float, float, float]:
    """Both ends of the interval, and the two-sided p-value; NaN for fewer than two values."""
    n = len(contribution)
    mean = float(contribution.mean())
    if n < 2:
        return np.nan, np.nan, np.nan
    error = float(contribution.std(ddof=1)) / math.sqrt(n)
    if error == 0:
        return mean, mean, 1.0 if mean == 0 else 0.0
    # the t distribution from scipy.special: importing scipy.stats takes longer than most programs run
    from scipy import special

    half = error * float(special.stdtrit(n - 1, 0.5 + confidence / 2))
    return mean - half, mean + half, float(2 * special.stdtr(n - 1, -abs(mean) / error))
