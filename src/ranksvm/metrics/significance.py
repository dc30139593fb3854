"""Significance: whether two evaluations of the same queries differ by more than chance."""

import dataclasses
from typing import Any

import numpy as np

from ranksvm._plain import plain
from ranksvm.exceptions import DataError, OptionError
from ranksvm.metrics.definitions import Metric
from ranksvm.metrics.evaluation import Evaluation
from ranksvm.metrics.names import parse_metric

__all__ = ["Comparison", "compare"]

# Up to here all sign patterns are tried (8,192 of them) instead of drawing some.
_EXHAUSTIVE = 13


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Difference of two evaluations in one metric, ``b - a``.

    Parameters
    ----------
    metric : str
        Name of the metric.
    mean_a, mean_b : float
        Means over the queries where both are defined.
    difference : float
        ``mean_b - mean_a``.
    p_value : float
        Two-sided p-value of the paired randomisation test.
    t_p_value : float
        Two-sided p-value of the paired t-test.
    confidence_interval : tuple of float
        Interval of the difference, from the t distribution.
    confidence : float
        Its confidence level.
    n_queries : int
        Number of queries compared.
    wins, losses, ties : int
        Queries where b is better, worse, and the same.
    """

    metric: str
    mean_a: float
    mean_b: float
    difference: float
    p_value: float
    t_p_value: float
    confidence_interval: tuple[float, float]
    confidence: float
    n_queries: int
    wins: int
    losses: int
    ties: int

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values, ready for JSON; a value that is not defined is None.

        Returns
        -------
        dict
            One entry per parameter.
        """
        return plain(dataclasses.asdict(self))


def compare(
    a: Evaluation,
    b: Evaluation,
    metric: str | Metric,
    *,
    n_permutations: int = 10_000,
    confidence: float = 0.95,
    random_state: int | np.random.Generator | None = 0,
) -> Comparison:
    """Paired tests, query by query, of the difference of two evaluations.

    The randomisation test asks how often a difference as large as the one found comes up when the two values of each
    query are swapped at random (Fisher; Smucker, Allan and Carterette, CIKM 2007): all swaps are tried for up to 13
    queries that differ, else ``n_permutations`` are drawn and the p-value is (1 + as large) / (1 + drawn). Where the
    mean weighs queries (pairwise accuracy: by pairs), the tests weigh them alike, taking the weights as given.

    Parameters
    ----------
    a, b : Evaluation
        Evaluations of the same queries, in any order.
    metric : str or Metric
        A metric that both hold.
    n_permutations : int, default 10000
        Number of random swaps.
    confidence : float, default 0.95
        Level of the confidence interval.
    random_state : int, Generator or None, default 0
        Where the random swaps come from.

    Returns
    -------
    Comparison
        Difference ``b - a``, p-values and interval.

    Raises
    ------
    DataError
        When the evaluations are of different queries, or the metric is defined for none.
    OptionError
        When the metric was not evaluated, or an option is out of range.
    """
    name = parse_metric(metric).name
    for evaluation in (a, b):
        if name not in evaluation.per_query:
            raise OptionError(f"{name!r} was not evaluated: there are {', '.join(evaluation.per_query)}.")
    if not 0 < confidence < 1:
        raise OptionError(f"confidence must lie between 0 and 1, got {confidence!r}.")
    if n_permutations < 1:
        raise OptionError(f"n_permutations must be at least 1, got {n_permutations!r}.")
    match = _matching(a.qid, b.qid)
    value_a, value_b = a.per_query[name], b.per_query[name][match]
    weight = np.where(np.isnan(value_b), 0.0, a.weights[name])
    if not np.allclose(weight, b.weights[name][match]):
        raise DataError("the evaluations weigh the queries differently: were they made from the same labels?")
    counted = weight > 0
    if not counted.any():
        raise DataError(f"{name!r} is not defined for any query.")
    value_a, value_b, weight = value_a[counted], value_b[counted], weight[counted]
    n = len(weight)
    share = weight / weight.sum()
    # n * share * gap: contributions whose plain mean is the difference of the weighted means
    gap = value_b - value_a
    contribution = n * share * gap
    difference = float(contribution.mean())
    low, high, t_p_value = _t_test(contribution, confidence)
    return Comparison(
        metric=name,
        mean_a=float(share @ value_a),
        mean_b=float(share @ value_b),
        difference=difference,
        p_value=_randomisation(contribution[contribution != 0], n_permutations, random_state),
        t_p_value=t_p_value,
        confidence_interval=(low, high),
        confidence=confidence,
        n_queries=n,
        wins=int((gap > 0).sum()),
        losses=int((gap < 0).sum()),
        ties=int((gap == 0).sum()),
    )


def _matching(ids_a: np.ndarray, ids_b: np.ndarray) -> np.ndarray:
    """For each query of a, its place in b."""
    if np.array_equal(ids_a, ids_b):
        return np.arange(len(ids_a))
    place = {query: number for number, query in enumerate(ids_b.tolist())}
    missing = [query for query in ids_a.tolist() if query not in place]
    if missing or len(ids_a) != len(ids_b):
        found = f"query {missing[0]!r} is in one only" if missing else f"{len(ids_a)} and {len(ids_b)} queries"
        raise DataError(f"the evaluations must be of the same queries: {found}.")
    return np.array([place[query] for query in ids_a.tolist()])


def _t_test(contribution: np.ndarray, confidence: float) -> tuple[float, float, float]:
    n = len(contribution)
    mean = float(contribution.mean())
    if n < 2:
        return np.nan, np.nan, np.nan
    error = float(contribution.std(ddof=1)) / np.sqrt(n)
    if error == 0:
        return mean, mean, 1.0 if mean == 0 else 0.0
    # the t distribution by its functions: importing scipy.stats takes longer than most programs run
    from scipy import special

    half = error * float(special.stdtrit(n - 1, 0.5 + confidence / 2))
    return mean - half, mean + half, float(2 * special.stdtr(n - 1, -abs(mean) / error))


def _randomisation(gaps: np.ndarray, n_permutations: int, random_state: Any) -> float:
    """Two-sided p-value of the sum of ``gaps`` under random signs."""
    n = len(gaps)
    if n == 0:
        return 1.0
    # A sum of n terms in another order differs by round-off: what is equal but for that counts as large.
    threshold = abs(gaps.sum()) - 1e-12 * np.abs(gaps).sum()
    if n <= _EXHAUSTIVE:
        flipped = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
        return float(np.mean(np.abs(gaps.sum() - 2 * flipped @ gaps) >= threshold))
    generator = np.random.default_rng(random_state)
    chunk = max(1, min(n_permutations, 4_000_000 // n))
    as_large = 0
    for start in range(0, n_permutations, chunk):
        rows = min(chunk, n_permutations - start)
        bits = np.unpackbits(generator.integers(0, 256, (rows, (n + 7) // 8), dtype=np.uint8), axis=1, count=n)
        as_large += int((np.abs(gaps.sum() - 2 * (bits.astype(np.float64) @ gaps)) >= threshold).sum())
    return (1 + as_large) / (1 + n_permutations)
