"""Comparisons by clicks that may be inspected and stopped at any time: confidence sequences.

Both functions use mixtures of likelihood ratios, which are martingales for the true parameter: `win_interval` for wins
and losses, of which a service stores only the counts, and `compare_credits` for credits between -1 and 1.
"""

import dataclasses
import math

import numpy as np
from numpy.typing import ArrayLike

from ranksvm._util.tables import Table, Tabular
from ranksvm.data.numeric_column import numeric_column
from ranksvm.exceptions import DataError
from ranksvm.metrics.evaluation import check_confidence, t_test

__all__ = ["InterleavingTest", "compare_credits", "win_interval"]

# Sum of squared credits at which the sequential test is strongest: the sum of about a hundred decisive impressions.
_SCALE = 100.0


@dataclasses.dataclass(frozen=True)
class InterleavingTest(Tabular):
    """The result of `compare_credits`.

    Parameters
    ----------
    mean : float
        Mean credit: above 0 if users prefer A.
    interval : tuple of float
        Its confidence interval, valid if the number of impressions was fixed beforehand.
    p_value : float
        Two-sided p-value of "neither is preferred" (t-test), valid if the number of impressions was fixed beforehand.
    sequence : tuple of float
        Confidence interval of the mean credit that is valid at any time, after any number of inspections: an element of
        a confidence sequence.
    anytime_p_value : float
        p-value that is valid at any time.
    decided_at : int or None
        Number of impressions after which the sequential test decided; None: it has not decided yet.
    n_impressions : int
        Number of impressions.
    wins_a, wins_b : int
        Impressions with positive and negative credit.

    Examples
    --------
    >>> from ranksvm.clicks import compare_credits
    >>> test = compare_credits([1, -1, 0, 1] * 25)
    >>> test.wins_a, test.wins_b, test.mean
    (50, 25, 0.25)
    """

    mean: float
    interval: tuple[float, float]
    p_value: float
    sequence: tuple[float, float]
    anytime_p_value: float
    decided_at: int | None
    n_impressions: int
    wins_a: int
    wins_b: int

    def _table(self) -> Table:
        columns = {name: [value] for name, value in dataclasses.asdict(self).items() if not isinstance(value, tuple)}
        return Table(columns, "credit of A against B")


def compare_credits(credits: ArrayLike, *, confidence: float = 0.95) -> InterleavingTest:
    """Whether users prefer A to B, by a test that may be inspected and stopped at any time.

    Let S be the sum of the credits so far, and V the sum of their squares. If A and B are equally good, the
    distribution of credits is symmetric about 0, and ``exp(x S - x^2 V / 2)`` is a supermartingale for every effect
    size x (de la Peña, Annals of Probability 1999). The test uses their mixture over all x, ``E = sqrt(h / (h + V))
    exp(S^2 / (2 (h + V)))`` with h = 100 (Robbins, Annals of Mathematical Statistics 1970): the probability that E ever
    exceeds ``1 / level`` is at most ``level`` (Ville's inequality). The sequence of intervals of the mean needs no
    symmetry, only credits between -1 and 1: it uses the same mixture with V = n (Hoeffding's lemma).

    Parameters
    ----------
    credits : array-like of shape (n_impressions,)
        Credits between -1 and 1, in the order of time.
    confidence : float, default 0.95
        1 minus the level of the test.

    Returns
    -------
    InterleavingTest
        Mean, intervals and p-values, and when the test decided.

    Raises
    ------
    DataError
        When there are no credits, or one is not between -1 and 1.

    Examples
    --------
    >>> test = compare_credits([1, 0, 1, -1, 1, 1, 0, 1] * 10)
    >>> test.mean, test.decided_at
    (0.5, 62)
    """
    check_confidence(confidence)
    values = numeric_column("credits", credits)
    if values.ndim != 1 or len(values) == 0:
        raise DataError("credits must hold one number for each impression, and at least one.")
    if np.abs(values).max() > 1.0:
        row = int(np.abs(values).argmax())
        raise DataError(f"credits is {values[row]} in row {row}: a credit is between -1 (B wins) and 1 (A wins).")
    n, level = len(values), 1.0 - confidence
    total, square = np.cumsum(values), np.cumsum(values**2)
    log_e = total**2 / (2.0 * (_SCALE + square)) - 0.5 * np.log1p(square / _SCALE)
    over = np.flatnonzero(log_e >= -np.log(level))
    low, high, p_value = t_test(values, confidence) if n > 1 else (np.nan, np.nan, np.nan)
    mean = float(values.mean())
    half = float(np.sqrt((n + _SCALE) * (np.log1p(n / _SCALE) - 2.0 * np.log(level)))) / n
    return InterleavingTest(
        mean,
        (float(low), float(high)),
        float(p_value),
        (max(-1.0, mean - half), min(1.0, mean + half)),
        float(np.exp(-max(0.0, float(log_e.max())))),
        int(over[0]) + 1 if len(over) else None,
        n,
        int((values > 0).sum()),
        int((values < 0).sum()),
    )


def win_interval(won: int, lost: int, confidence: float = 0.95) -> tuple[float, float]:
    """Confidence interval of a probability, which may be inspected after every trial.

    With the given confidence, all intervals contain the probability p, however often they are inspected (Robbins 1970;
    Howard et al. 2021). The interval is the set of p at which a mixture likelihood ratio, which is a martingale for the
    true p, is below ``1 / (1 - confidence)`` (Ville's inequality):
    ``B(won + 1/2, lost + 1/2) / B(1/2, 1/2) / (p^won (1 - p)^lost)``.

    Parameters
    ----------
    won, lost : int
        Trials won and lost.
    confidence : float, default 0.95
        Level.

    Returns
    -------
    tuple of float
        Both ends.
    """
    total = won + lost
    if total == 0:
        return 0.0, 1.0
    mixture = math.lgamma(won + 0.5) + math.lgamma(lost + 0.5) - math.lgamma(total + 1) - math.log(math.pi)

    def excluded(p: float) -> bool:
        likelihood = (won * math.log(p) if won else 0.0) + (lost * math.log1p(-p) if lost else 0.0)
        return mixture - likelihood >= -math.log1p(-confidence)

    def end(outside: float, inside: float) -> float:
        for _ in range(60):
            middle = (outside + inside) / 2
            outside, inside = (middle, inside) if excluded(middle) else (outside, middle)
        return inside

    share = won / total
    return (0.0 if won == 0 else end(1e-300, share), 1.0 if lost == 0 else end(1.0 - 1e-16, share))
