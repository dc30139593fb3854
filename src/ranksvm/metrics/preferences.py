"""Pairwise accuracy of listed preferences, and its confidence interval."""

import numpy as np
from numpy.typing import ArrayLike

from ranksvm._util.checks import check_one_per_row
from ranksvm.data import Queries
from ranksvm.data.numeric_column import checked_weights, numeric_column
from ranksvm.exceptions import DataError, OptionError
from ranksvm.metrics.definitions import PairwiseAccuracy
from ranksvm.metrics.evaluation import Evaluation

__all__ = ["accuracy_interval", "evaluate_pairs"]


def evaluate_pairs(
    preferred: ArrayLike, other: ArrayLike, qid: ArrayLike | None = None, *, pair_weight: ArrayLike | None = None
) -> Evaluation:
    """Pairwise accuracy of preferences: the share of the pairs whose preferred document has the higher score.

    Equal scores are incorrect, as in the pairwise accuracy of labels (`evaluate`).

    Parameters
    ----------
    preferred, other : array-like of shape (n_pairs,)
        Score of the preferred and of the other document of each pair.
    qid : array-like of shape (n_pairs,), optional
        Query (for reward models: prompt) of each pair, in any order. None: each pair is a query of its own.
    pair_weight : array-like of shape (n_pairs,), optional
        Weight of each pair, finite and not negative; 1 by default.

    Returns
    -------
    Evaluation
        Its one metric is ``pairwise_accuracy``: the weighted share of all pairs, and of the pairs of each query. NaN
        if all weights are 0. ``n_rows`` is the number of pairs.

    Raises
    ------
    DataError
        When lengths differ, there is no pair, a score is NaN, or a weight is negative or not finite.

    Examples
    --------
    >>> found = evaluate_pairs([0.9, 0.4, 0.7], [0.1, 0.6, 0.2], ["a", "a", "b"])
    >>> found.means, found.per_query["pairwise_accuracy"].tolist()
    ({'pairwise_accuracy': 0.6666...}, [0.5, 1.0])
    """
    first = numeric_column("preferred", preferred, finite=False)
    second = numeric_column("other", other, finite=False)
    if first.ndim != 1 or first.shape != second.shape:
        raise DataError(
            f"preferred has shape {first.shape} and other {second.shape}: each must hold one score for each pair."
        )
    if len(first) == 0:
        raise DataError("there is nothing to evaluate: no pairs are given.")
    if qid is None:
        qid = np.arange(len(first))
    else:
        check_one_per_row("qid", qid, len(first), "preferred")
    queries = Queries.from_qid(qid, len(first))
    weight = queries.to_sorted(checked_weights("pair_weight", pair_weight, len(first), "preferred"))
    correct = queries.to_sorted(first > second)
    of_query = np.add.reduceat(weight, queries.pointers[:-1])
    right = np.add.reduceat(weight * correct, queries.pointers[:-1])
    values = np.full(queries.n_queries, np.nan)
    np.divide(right, of_query, out=values, where=of_query > 0)
    total = of_query.sum()
    name = PairwiseAccuracy().name
    return Evaluation(
        means={name: float(right.sum() / total) if total > 0 else np.nan},
        per_query={name: values},
        weights={name: of_query},
        qid=queries.ids,
        n_rows=len(first),
        n_without_relevant=0,
        convention="default",
    )


def accuracy_interval(evaluation: Evaluation, confidence: float = 0.95) -> tuple[float, float]:
    """Confidence interval of the pairwise accuracy; pairs of one query may depend on each other.

    Wilson's score interval with an effective number of pairs: ``p (1 - p) / v``, where v is the variance of the
    accuracy p as a ratio of sums over queries, ``Q / (Q - 1) * sum over queries of (w_q (p_q - p))^2 / (sum of w_q)^2``
    (w_q: weight of the query's pairs). If each query has one pair, it is Wilson's interval for ``Q - 1`` pairs. If all
    pairs are right, or all are wrong, v is 0; then the effective number is ``(sum of w_q)^2 / (sum of w_q^2)``, the
    number of queries if they have equal weights.

    Parameters
    ----------
    evaluation : Evaluation
        Result of `evaluate_pairs`, or of `evaluate` or `CrossValidation.pooled` with the metric
        ``pairwise_accuracy``.
    confidence : float, default 0.95
        Confidence level, between 0 and 1.

    Returns
    -------
    low, high : float
        The interval, within [0, 1]; NaN if fewer than two queries have pairs.

    Raises
    ------
    OptionError
        When the pairwise accuracy was not evaluated, the level is not between 0 and 1, or ``evaluation`` is not an
        `Evaluation`.

    References
    ----------
    E. B. Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22, 1927.
    E. L. Korn, B. I. Graubard, "Confidence intervals for proportions with small expected number of positive counts
    estimated from survey data", Survey Methodology 24, 1998: the effective number.

    Examples
    --------
    >>> found = evaluate_pairs([1.0] * 90 + [0.0] * 10, [0.5] * 100)
    >>> low, high = accuracy_interval(found)
    >>> round(low, 3), round(high, 3)
    (0.825, 0.945)
    """
    if not isinstance(evaluation, Evaluation):
        raise OptionError(
            "the interval needs the values of each query: give the result of evaluate_pairs, evaluate or "
            f"CrossValidation.pooled(), not a {type(evaluation).__name__}."
        )
    if not 0 < confidence < 1:
        raise OptionError(f"confidence must lie between 0 and 1, got {confidence!r}.")
    share = evaluation[PairwiseAccuracy()]
    name = PairwiseAccuracy().name
    weight = evaluation.weights[name]
    values, weight = evaluation.per_query[name][weight > 0], weight[weight > 0]
    n_queries = len(weight)
    if n_queries < 2:
        return np.nan, np.nan
    total = weight.sum()
    variance = n_queries / (n_queries - 1) * np.square(weight / total * (values - share)).sum()
    effective = share * (1.0 - share) / variance if variance > 0 else 1.0 / np.square(weight / total).sum()
    # the normal distribution from scipy.special: importing scipy.stats takes longer than most programs run
    from scipy import special

    z2 = float(special.ndtri(0.5 + confidence / 2)) ** 2 / effective
    center = (share + z2 / 2) / (1 + z2)
    half = np.sqrt(z2 * (share * (1.0 - share) + z2 / 4)) / (1 + z2)
    return max(0.0, float(center - half)), min(1.0, float(center + half))
