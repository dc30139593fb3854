"""A priori bounds on the round-off in scores and in the sums of a loss, from the number and the size of their terms."""

from typing import NamedTuple

import numpy as np

__all__ = [
    "OPERATIONS",
    "UNIT",
    "LossRoundOff",
    "Reach",
    "Sizes",
    "SumLengths",
    "growth",
    "margin_error_bound",
    "spread_of",
]

# Half a unit in the last place of 1: the relative error of one operation.
UNIT = 0.5 * float(np.finfo(np.float64).eps)
# Number of operations on one term of any sum.
OPERATIONS = 20


def growth(n_terms: float) -> float:
    """Bound on the relative error of a sum of ``n_terms`` products of equal sign: ``n u / (1 - n u)``.

    Higham, "Accuracy and Stability of Numerical Algorithms", 2nd ed., SIAM 2002, lemma 3.1; it holds for any order.

    Parameters
    ----------
    n_terms : float
        Number of terms.

    Returns
    -------
    float
        The bound; infinite if there are too many terms for it.
    """
    part = n_terms * UNIT
    return part / (1.0 - part) if part < 0.5 else np.inf


def margin_error_bound(score: float, n_entries: int, more: float = 0.0) -> float:
    """Bound on the error of a margin, and of its hinge.

    Parameters
    ----------
    score : float
        The bound of `Sizes.score`.
    n_entries : int
        Number of products that are added up for a score.
    more : float
        Additional relative error of the scores, in units of round-off.

    Returns
    -------
    float
        The bound, for the errors of both scores, of their difference, and of 1 minus the difference.
    """
    return 2.0 * (growth(n_entries + 4) + more * UNIT) * score + UNIT * (2.0 + 5.0 * score)


class Sizes(NamedTuple):
    """Magnitudes that bound the round-off of products with the rows.

    Attributes
    ----------
    largest : ndarray of float64, shape (n_variables,)
        A bound on the absolute values of each column.
    entries : int
        Maximum number of products that are added up for a score.
    additions : int
        Maximum number of additions that the summand of one row goes through in a gradient.
    """

    largest: np.ndarray
    entries: int
    additions: int

    @property
    def longest(self) -> float:
        """Bound on the norm of a row: the norm of the largest values, as many as a row has entries."""
        return float(np.sqrt(_sum_of_largest(self.largest**2, self.entries)))

    def score(self, weights: np.ndarray) -> float:
        """Bound on the sum of the absolute values of the products that add up to a row's score.

        Parameters
        ----------
        weights : ndarray of float64, shape (n_variables,)
            Absolute weights.

        Returns
        -------
        float
            The bound for every row.
        """
        return _sum_of_largest(self.largest * weights, self.entries)

    def plus(self, more: "Sizes") -> "Sizes":
        """The sizes of both sets of rows together."""
        largest = np.maximum(self.largest, more.largest)
        return Sizes(largest, max(self.entries, more.entries), self.additions + more.additions)


def _sum_of_largest(values: np.ndarray, count: int) -> float:
    """Sum of the ``count`` largest of some nonnegative values."""
    if count < len(values):
        # if there are few rows, most of many columns are empty: the partition below skips their zeros
        values = values[values != 0.0]  # NaN stays
    if count < len(values):
        values = np.partition(values, len(values) - count)[len(values) - count :]
    return float(values.sum())


class SumLengths(NamedTuple):
    """How many terms the sums over pairs have.

    Attributes
    ----------
    of_document : int
        Maximum number of terms of a sum over the pairs of one document, in queries whose pairs are visited one by one.
    of_all : int
        Maximum number of terms of a sum over all pairs: the terms of one query, plus the number of queries.
    swept : int
        Number of documents of the longest query whose sums are differences of running sums; 0 if there is none.
    """

    of_document: int
    of_all: int
    swept: int = 0


class Reach(NamedTuple):
    """Sums over the pairs whose contribution to a loss may change by round-off.

    Attributes
    ----------
    active : float
        Weight of the pairs whose margins are below 1, or above 1 by at most the error of a margin.
    ring : float
        Weight of the pairs whose margins are in the ring, or outside it by at most that error.
    loss : float
        Sum of the target losses (without smoothing) of these pairs.
    smooth : float
        Sum of the evaluated losses of these pairs, which may be smoothed.
    """

    active: float
    ring: float
    loss: float
    smooth: float

    def plus(self, more: "Reach") -> "Reach":
        """The sum of both."""
        return Reach(*(a + b for a, b in zip(self, more, strict=True)))


class LossRoundOff(NamedTuple):
    """Bounds on the effect of round-off on a loss whose margins have errors of at most a given size.

    The pull of a pair is minus the derivative of its loss at the computed scores, times its weight: its dual variable
    divided by C.

    Attributes
    ----------
    pulls_bound : float
        Bound on the sum of the pulls.
    pull_sums : float
        Bound on the sum, over the documents, of the error of the sum of a document's pulls.
    excess_bound : float
        The excess of a pair is its target loss minus the tangent of this loss whose slope is minus the pull. The sum of
        the excesses is the duality gap minus half the squared gradient. This field bounds how much larger the sum is at
        the true margins than at the computed ones.
    value, slack : float
        Bounds on the errors of the sums `LossSums.value` plus `LossSums.excess`, and `LossSums.slack`.
    weights : float
        Relative error of the pairs' weights.
    """

    pulls_bound: float
    pull_sums: float
    excess_bound: float
    value: float
    slack: float
    weights: float

    def plus(self, more: "LossRoundOff") -> "LossRoundOff":
        """The bounds for two sets of queries together."""
        total = LossRoundOff(*(a + b for a, b in zip(self, more, strict=True)))
        return total._replace(weights=max(self.weights, more.weights))


def spread_of(scores: np.ndarray, pointers: np.ndarray) -> float:
    """Largest difference of two scores of a query.

    Parameters
    ----------
    scores : ndarray of float64, shape (n_rows,)
        The scores by position.
    pointers : ndarray of int64, shape (n_queries + 1,)
        First position of each query.

    Returns
    -------
    float
        The difference; 0 without queries.
    """
    begin = pointers[:-1][np.diff(pointers) > 0]
    if not len(begin):
        return 0.0
    return float((np.maximum.reduceat(scores, begin) - np.minimum.reduceat(scores, begin)).max())
