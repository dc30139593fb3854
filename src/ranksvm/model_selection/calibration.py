"""Platt scaling of score differences: the probability that one document is preferred to another."""

import numpy as np

__all__ = ["platt_slope"]


def platt_slope(margins: np.ndarray, weight: np.ndarray) -> float:
    """The slope of the sigmoid that converts score differences to probabilities, by maximum likelihood.

    Minimizes ``-sum of weight * (t log p + (1 - t) log(1 - p))``, ``p = 1 / (1 + exp(-slope * margin))``, over slopes
    of at least 0. Platt's target ``t = (n + 1) / (n + 2)`` for n pairs, instead of 1, keeps the slope finite if all
    margins are positive. There is no intercept: exchanging the two documents of a pair has to give ``1 - p``.

    Parameters
    ----------
    margins : ndarray of float64, shape (n_pairs,)
        Score of the preferred document minus score of the other one, by a model that has not seen the pair.
    weight : ndarray of float64, shape (n_pairs,)
        Weight of each pair.

    Returns
    -------
    float
        The slope; 0, for which all probabilities are one half, if the margins do not agree with the preferences
        (their weighted sum is not positive).

    References
    ----------
    J. C. Platt, "Probabilistic outputs for support vector machines and comparisons to regularized likelihood methods",
    Advances in Large Margin Classifiers, 1999.
    R. A. Bradley, M. E. Terry, "Rank analysis of incomplete block designs", Biometrika 39, 1952.
    """
    from scipy import optimize, special

    n_pairs = np.count_nonzero(weight)
    target = (n_pairs + 1.0) / (n_pairs + 2.0)
    scale = np.abs(margins).max(initial=0.0)
    if n_pairs == 0 or scale == 0.0 or weight @ (margins / scale) <= 0.0:
        return 0.0
    unit = margins / scale

    def derivative(slope: float) -> float:
        return float(weight @ (unit * (special.expit(slope * unit) - target)))

    above = 1.0
    while derivative(above) <= 0.0:
        above *= 2.0
    return float(optimize.brentq(derivative, 0.0, above, xtol=1e-300, rtol=1e-13)) / float(scale)
