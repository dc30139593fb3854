"""Bounds on what round-off does to the sums of a loss: a priori, from the numbers of terms and their sizes."""

from typing import NamedTuple

import numpy as np

__all__ = ["OPERATIONS", "UNIT", "LossRoundOff", "Reach", "SumLengths", "growth", "margin_error", "spread_of"]

# Half a unit in the last place of 1: the relative error of one operation.
UNIT = 0.5 * float(np.finfo(np.float64).eps)
# Operations on one term, of whatever sum.
OPERATIONS = 20


def growth(n_terms: float) -> float:
    """Relative error of a sum of ``n_terms`` products, terms of one sign: ``n u / (1 - n u)``.

    Higham, "Accuracy and Stability of Numerical Algorithms", 2nd ed., SIAM 2002, lemma 3.1; whatever the order.

    Parameters
    ----------
    n_terms : float
        Number of terms.

    Returns
    -------
    float
        The error; infinite for more terms than it holds for.
    """
    part = n_terms * UNIT
    return part / (1.0 - part) if part < 0.5 else np.inf


def margin_error(score: float, n_entries: int, more: float = 0.0) -> float:
    """Bound on the error of a margin, and of the hinge that it makes.

    Parameters
    ----------
    score : float
        That of `Sizes.score`.
    n_entries : int
        Products that are added up for a score.
    more : float
        Further relative errors of the scores, in units of round-off.

    Returns
    -------
    float
        The bound: of two scores, their difference, and 1 minus that.
    """
    return 2.0 * (growth(n_entries + 4) + more * UNIT) * score + UNIT * (2.0 + 5.0 * score)


class SumLengths(NamedTuple):
    """How many terms the sums over pairs have.

    Attributes
    ----------
    of_document : int
        Terms of a sum over the pairs of one document, at most; of queries that are not swept.
    of_all : int
        Terms of a sum over all pairs, at most: those of one query, and the queries.
    swept : int
        Documents of the longest query whose sums are differences of running sums; 0 if there is none.
    """

    of_document: int
    of_all: int
    swept: int = 0


class Reach(NamedTuple):
    """The pairs of which round-off may change what they add to a loss.

    Attributes
    ----------
    active : float
        Weight of the pairs of margins below 1 or no more than the error of a margin above.
    ring : float
        Weight of those no more than that error beyond the ring.
    loss : float
        Sum of their target losses.
    smooth : float
        Sum of their losses, which may smooth these.
    """

    active: float
    ring: float
    loss: float
    smooth: float

    def plus(self, more: "Reach") -> "Reach":
        """The sum of both."""
        return Reach(*(a + b for a, b in zip(self, more, strict=True)))


class LossRoundOff(NamedTuple):
    """What round-off may do to a loss whose margins are off by no more than a given distance.

    The pulls are minus the derivatives of the pairs' losses at the computed scores, times their weights: the dual
    variables over C.

    Attributes
    ----------
    pulls : float
        Bound on the sum of the pulls.
    pull_sums : float
        Bound on the error of the sums of the pulls of each document, added up over the documents.
    beyond : float
        Bound on how much more, at the true margins than at the computed ones, the target loss is above its tangents
        with the slopes of the pulls: what the gap has beyond half the squared gradient.
    value, slack : float
        Bounds on the errors of the sums `LossSums.value` plus `LossSums.excess`, and `LossSums.slack`.
    weights : float
        Relative error of the pairs' weights.
    """

    pulls: float
    pull_sums: float
    beyond: float
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
