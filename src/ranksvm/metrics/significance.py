"""Significance tests for the differences of evaluations of the same queries, with corrections for many comparisons."""

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from ranksvm._util.checks import is_integer
from ranksvm._util.random_states import generator_of
from ranksvm._util.tables import CORRECTIONS, Table, Tabular
from ranksvm._util.text import plain
from ranksvm.exceptions import DataError, OptionError
from ranksvm.metrics.definitions import Metric, parse_metric
from ranksvm.metrics.evaluation import EQUAL, Evaluation, check_confidence, t_test

__all__ = ["Comparison", "SystemComparisons", "adjust_p_values", "compare", "compare_systems", "differences"]

# Up to this number of queries all sign patterns (8,192) are tried instead of random ones.
_EXHAUSTIVE = 13
# Number of values that are permuted at a time, which take 16 MB.
_CHUNK = 2_000_000


@dataclasses.dataclass(frozen=True)
class Comparison(Tabular):
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
        Two-sided p-value of the paired randomization test.
    t_p_value : float
        Two-sided p-value of the paired t-test.
    confidence_interval : tuple of float
        Interval of the difference, from the t distribution.
    confidence : float
        Its confidence level.
    n_queries : int
        Number of queries compared.
    wins, losses, ties : int
        Queries where b is better, worse, and the same up to round-off.
    convention : str, default "default"
        Name of the convention of both evaluations.
    system_a, system_b : str, optional
        Names of the systems (`compare_systems`).
    adjusted_p_value : float, optional
        The p-value corrected for the number of comparisons (`compare_systems`).

    Examples
    --------
    >>> from ranksvm import make_ranking, metrics
    >>> data = make_ranking(n_queries=20, n_docs=8, n_features=4, random_state=0)
    >>> a, b = (metrics.evaluate(data.y, data.X[:, column], data.qid, "ndcg@5") for column in (0, 1))
    >>> found = metrics.compare(a, b, "ndcg@5")
    >>> bool(abs(found.mean_b - found.mean_a - found.difference) < 1e-12)
    True
    >>> low, high = found.confidence_interval
    >>> bool(low <= found.difference <= high)
    True
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
    convention: str = "default"
    system_a: str | None = None
    system_b: str | None = None
    adjusted_p_value: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values, ready for JSON; an undefined value is None.

        Returns
        -------
        dict
            One entry per parameter.
        """
        return plain(dataclasses.asdict(self))

    def swapped(self) -> "Comparison":
        """The same comparison seen from the other side, ``a - b``.

        Returns
        -------
        Comparison
            The two systems exchange their places; p-values stay.
        """
        low, high = self.confidence_interval
        return dataclasses.replace(
            self,
            mean_a=self.mean_b,
            mean_b=self.mean_a,
            difference=0.0 - self.difference,  # not -0.0
            confidence_interval=(0.0 - high, 0.0 - low),
            wins=self.losses,
            losses=self.wins,
            system_a=self.system_b,
            system_b=self.system_a,
        )

    def _table(self) -> Table:
        return comparison_table([self])


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

    The p-value of the randomization test is the probability of a difference at least as large when the two values of
    each query are swapped at random (Fisher; Smucker, Allan and Carterette, CIKM 2007): all swaps are tried for up to
    13 queries that differ, else ``n_permutations`` swaps are drawn, k of them give a difference at least as large, and
    the p-value is ``(1 + k) / (1 + n_permutations)``. If the mean weights queries (pairwise accuracy: by pairs), the
    tests use the same weights and treat them as fixed.

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
        Source of the random swaps.

    Returns
    -------
    Comparison
        Difference ``b - a``, p-values and interval.

    Raises
    ------
    DataError
        When the evaluations have different queries or conventions, or the metric is undefined for all queries.
    OptionError
        When the metric was not evaluated, or an option is out of range.

    Examples
    --------
    >>> from ranksvm import make_ranking, metrics
    >>> data = make_ranking(n_queries=20, n_docs=8, n_features=4, random_state=0)
    >>> a, b = (metrics.evaluate(data.y, data.X[:, column], data.qid, "ndcg@5") for column in (0, 1))
    >>> found = metrics.compare(a, b, "ndcg@5")
    >>> bool(0.0 <= found.p_value <= 1.0), found.wins + found.losses + found.ties
    (True, 20)
    """
    name = parse_metric(metric).name
    check_confidence(confidence)
    _check_permutations(n_permutations)
    (value_a, value_b), share = _aligned([a, b], name)
    n = len(share)
    # n * share * gap: contributions whose plain mean is the difference of the weighted means
    gap = _gaps(value_a, value_b)
    contribution = n * share * gap
    difference = float(contribution.mean())
    low, high, t_p_value = t_test(contribution, confidence)
    return Comparison(
        metric=name,
        mean_a=float(share @ value_a),
        mean_b=float(share @ value_b),
        difference=difference,
        p_value=_randomization(contribution[contribution != 0], n_permutations, random_state),
        t_p_value=t_p_value,
        confidence_interval=(float(low), float(high)),
        confidence=confidence,
        n_queries=n,
        wins=int((gap > 0).sum()),
        losses=int((gap < 0).sum()),
        ties=int((gap == 0).sum()),
        convention=a.convention,
    )


@dataclasses.dataclass(frozen=True)
class SystemComparisons(Tabular):
    """The result of `compare_systems`.

    Parameters
    ----------
    metric : str
        Name of the metric.
    correction : str
        How the p-values were corrected for their number.
    means : dict of str to float
        System -> mean over its queries.
    comparisons : tuple of Comparison
        The comparisons, each with the names of its systems and its corrected p-value.

    Examples
    --------
    >>> from ranksvm import make_ranking, metrics
    >>> data = make_ranking(n_queries=20, n_docs=8, n_features=4, random_state=0)
    >>> a, b = (metrics.evaluate(data.y, data.X[:, column], data.qid, "ndcg@5") for column in (0, 1))
    >>> found = metrics.compare_systems({"first": a, "second": b}, "ndcg@5")
    >>> len(found), bool(found["first", "second"].adjusted_p_value <= 1.0)
    (1, True)
    """

    metric: str
    correction: str
    means: dict[str, float]
    comparisons: tuple[Comparison, ...]

    def __len__(self) -> int:
        return len(self.comparisons)

    def __iter__(self) -> Iterator[Comparison]:
        return iter(self.comparisons)

    def __getitem__(self, systems: tuple[str, str]) -> Comparison:
        for found in self.comparisons:
            if (found.system_a, found.system_b) == tuple(systems):
                return found
        known = ", ".join(f"({found.system_a!r}, {found.system_b!r})" for found in self.comparisons)
        raise OptionError(f"there is no comparison {systems!r}: choose from {known}.")

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values, ready for JSON; an undefined value is None.

        Returns
        -------
        dict
            One entry per parameter.
        """
        return plain(dataclasses.asdict(self))

    def _table(self) -> Table:
        return comparison_table(self.comparisons, CORRECTIONS[self.correction])

    def __str__(self) -> str:
        return self._table().to_text()


def compare_systems(
    evaluations: Mapping[str, Evaluation],
    metric: str | Metric,
    *,
    baseline: str | None = None,
    correction: Literal["holm", "bonferroni", "tukey", "none"] = "holm",
    n_permutations: int = 10_000,
    confidence: float = 0.95,
    random_state: int | np.random.Generator | None = 0,
) -> SystemComparisons:
    """Compare several systems: `compare` for every pair, with p-values corrected for the number of comparisons.

    Of 20 comparisons of equal systems one is expected to have a p-value below 0.05. If only corrected p-values below
    0.05 count as differences, the probability that *any* two equal systems are found to differ is at most 0.05. This
    holds for the comparisons of one metric.

    - ``"holm"``: the step-down procedure of Holm on the p-values of the randomization tests; valid for dependent tests.
    - ``"bonferroni"``: p-values times their number; never more powerful than Holm.
    - ``"tukey"``: the randomized version of Tukey's honestly significant difference. The values of all systems are
      permuted within each query; the p-value of a pair is the share of permutations, the given one included, in which
      the largest difference of any two means is at least the difference of the pair. The procedure accounts for the
      dependence between systems. It is designed for all pairs; with a baseline it is conservative.
    - ``"none"``: p-values as they are.

    Confidence intervals are not corrected.

    Parameters
    ----------
    evaluations : mapping of str to Evaluation
        System -> its evaluation; all of the same queries.
    metric : str or Metric
        A metric that all of them hold.
    baseline : str, optional
        The system with which each other one is compared; None: all pairs.
    correction : {"holm", "bonferroni", "tukey", "none"}, default "holm"
        How p-values are corrected.
    n_permutations : int, default 10000
        As in `compare`; also the number of permutations of Tukey's procedure.
    confidence : float, default 0.95
        As in `compare`.
    random_state : int, Generator or None, default 0
        Source of the random swaps and permutations.

    Returns
    -------
    SystemComparisons
        Means of the systems and their comparisons, ``b - a``.

    Raises
    ------
    DataError
        When the evaluations have different queries or conventions, or the metric is undefined for all queries.
    OptionError
        When there are fewer than two systems, the baseline or the metric is unknown, or an option is out of range.

    References
    ----------
    Holm, Scandinavian Journal of Statistics 1979; Carterette, ACM TOIS 2012; Sakai, Laboratory Experiments in
    Information Retrieval, 2018.

    Examples
    --------
    >>> from ranksvm.metrics import evaluate
    >>> y, qid = [1, 0, 0] * 20, np.repeat(np.arange(20), 3)
    >>> scores = {"good": [3, 2, 1] * 20, "fair": [2, 3, 1] * 20, "same": [4, 5, 3] * 20}
    >>> evaluations = {name: evaluate(y, values, qid, "mrr") for name, values in scores.items()}
    >>> found = compare_systems(evaluations, "mrr", correction="tukey")
    >>> [(test.system_a, test.system_b, test.adjusted_p_value < 0.05) for test in found]
    [('good', 'fair', True), ('good', 'same', True), ('fair', 'same', False)]
    """
    name = parse_metric(metric).name
    if not isinstance(evaluations, Mapping):
        raise OptionError(f"evaluations must be a dict from names of systems, got {type(evaluations).__name__}.")
    names = list(evaluations)
    if len(names) < 2:
        raise OptionError(f"there must be two systems or more to compare, got {len(names)}.")
    if baseline is not None and baseline not in evaluations:
        raise OptionError(f"the baseline {baseline!r} is not a system: choose from {', '.join(map(repr, names))}.")
    if correction not in CORRECTIONS:
        raise OptionError(f"correction must be one of {', '.join(CORRECTIONS)}, got {correction!r}.")
    if baseline is None:
        pairs = list(itertools.combinations(names, 2))
    else:
        pairs = [(baseline, other) for other in names if other != baseline]
    found = [
        compare(
            evaluations[a],
            evaluations[b],
            name,
            n_permutations=n_permutations,
            confidence=confidence,
            random_state=random_state,
        )
        for a, b in pairs
    ]
    if correction == "tukey":
        values, share = _aligned(list(evaluations.values()), name)
        matrix = _tukey(values * share * len(share), n_permutations, generator_of(random_state))
        adjusted = [matrix[names.index(a), names.index(b)] for a, b in pairs]
    else:
        adjusted = adjust_p_values([test.p_value for test in found], correction).tolist()
    return SystemComparisons(
        metric=name,
        correction=correction,
        means={system: evaluation.means[name] for system, evaluation in evaluations.items()},
        comparisons=tuple(
            dataclasses.replace(test, system_a=a, system_b=b, adjusted_p_value=float(p))
            for test, (a, b), p in zip(found, pairs, adjusted, strict=True)
        ),
    )


def adjust_p_values(p_values: ArrayLike, correction: Literal["holm", "bonferroni", "none"] = "holm") -> np.ndarray:
    """P-values corrected for their number, to be compared with the family-wise error rate.

    Parameters
    ----------
    p_values : array-like of shape (n,)
        P-values, in [0, 1].
    correction : {"holm", "bonferroni", "none"}, default "holm"
        Holm: the i-th smallest of n p-values is multiplied by n - i + 1, and raised to the one before it if that is
        larger. Bonferroni: each is multiplied by n. Results above 1 become 1.

    Returns
    -------
    ndarray of float64, shape (n,)
        Corrected p-values, in the given order.

    Raises
    ------
    OptionError
        When the correction is unknown, or a value is not in [0, 1].

    Examples
    --------
    >>> adjust_p_values([0.01, 0.04, 0.03, 0.005]).round(3).tolist()
    [0.03, 0.06, 0.06, 0.02]
    """
    p = np.asarray(p_values, dtype=np.float64)
    if p.ndim != 1 or not ((p >= 0) & (p <= 1)).all():
        raise OptionError("p-values must be a list of numbers from 0 to 1.")
    if correction not in ("holm", "bonferroni", "none"):
        raise OptionError(f"correction must be holm, bonferroni or none, got {correction!r}.")
    if correction == "none":
        return p.copy()
    if correction == "bonferroni":
        return np.minimum(p * len(p), 1.0)
    order = np.argsort(p, kind="stable")
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1.0)
    return adjusted


def comparison_table(comparisons: Sequence[Comparison], corrected: str = "") -> Table:
    """A row per comparison; the columns of systems and of corrected p-values are left out if there are none."""
    convention = comparisons[0].convention
    metrics = ", ".join(dict.fromkeys(test.metric for test in comparisons))
    columns: dict[str, list[Any]] = {"metric": [test.metric for test in comparisons]}
    names = ["mean_a", "mean_b", "difference"]
    for name in [*(["system_a", "system_b"] if comparisons[0].system_a is not None else []), *names]:
        columns[name] = [getattr(test, name) for test in comparisons]
    columns["low"] = [test.confidence_interval[0] for test in comparisons]
    columns["high"] = [test.confidence_interval[1] for test in comparisons]
    for name in ["p_value", *(["adjusted_p_value"] if corrected else []), "wins", "losses", "ties", "n_queries"]:
        columns[name] = [getattr(test, name) for test in comparisons]
    columns["convention"] = [convention] * len(comparisons)
    share = f"{100 * comparisons[0].confidence:g} %"
    return Table(
        columns,
        f"differences b - a of {metrics} (convention {convention}), paired over queries, with {share} intervals",
        headings={
            "metric": f"metric ({convention})",
            "system_a": "a",
            "system_b": "b",
            "mean_a": "mean of a",
            "mean_b": "mean of b",
            "p_value": "p",
            "adjusted_p_value": corrected,
            "wins": "better",
            "losses": "worse",
            "ties": "same",
            "n_queries": "queries",
        },
        hidden=("convention",),
    )


def differences(a: Evaluation, b: Evaluation, metric: str) -> np.ndarray:
    """``b - a`` in a metric, for each query that has a value in both; 0 if only round-off differs."""
    return _gaps(*_aligned([a, b], parse_metric(metric).name)[0])


def _gaps(value_a: np.ndarray, value_b: np.ndarray) -> np.ndarray:
    return np.where(np.isclose(value_a, value_b, rtol=EQUAL, atol=0.0), 0.0, value_b - value_a)


def _check_permutations(n_permutations: object) -> None:
    if not is_integer(n_permutations, 1):
        raise OptionError(f"n_permutations must be a whole number from 1, got {n_permutations!r}.")


def _aligned(evaluations: Sequence[Evaluation], name: str) -> tuple[np.ndarray, np.ndarray]:
    """Values of queries that have one in all evaluations, shape (n_systems, n_queries), and the queries' weights."""
    for evaluation in evaluations:
        if not isinstance(evaluation, Evaluation):
            advice = ": pass its pooled()" if hasattr(evaluation, "pooled") else ""
            raise OptionError(
                f"evaluations are compared, results of metrics.evaluate; got {type(evaluation).__name__}{advice}."
            )
        if name not in evaluation.per_query:
            raise OptionError(f"{name!r} was not evaluated: choose from {', '.join(evaluation.per_query)}.")
    conventions = list(dict.fromkeys(evaluation.convention for evaluation in evaluations))
    if len(conventions) > 1:
        raise DataError(f"the evaluations have different conventions: {', '.join(conventions)}.")
    places = [_matching(evaluations[0].qid, evaluation.qid) for evaluation in evaluations]
    values = np.stack([each.per_query[name][place] for each, place in zip(evaluations, places, strict=True)])
    weights = np.stack([each.weights[name][place] for each, place in zip(evaluations, places, strict=True)])
    weights[:, np.isnan(values).any(axis=0)] = 0.0
    if not np.allclose(weights, weights[0]):
        raise DataError("the evaluations weight the queries differently: they must use the same labels.")
    counted = weights[0] > 0
    if not counted.any():
        raise DataError(f"{name!r} is not defined for any query.")
    weight = weights[0, counted]
    return values[:, counted], weight / weight.sum()


def _tukey(contributions: np.ndarray, n_permutations: int, generator: np.random.Generator) -> np.ndarray:
    """P-value of every pair of systems, from the largest difference of means under permutations within queries."""
    means = contributions.mean(axis=1)
    n_systems, n_queries = contributions.shape
    # a query with the same value for all systems changes no difference
    rows = np.ascontiguousarray(contributions.T[np.ptp(contributions, axis=0) > 0])
    ranges = np.empty(n_permutations)
    chunk = max(1, _CHUNK // max(rows.size, 1))
    for start in range(0, n_permutations, chunk):
        size = min(chunk, n_permutations - start)
        permuted = generator.permuted(np.broadcast_to(rows, (size, *rows.shape)), axis=2)
        ranges[start : start + size] = np.ptp(permuted.sum(axis=1), axis=1) / n_queries
    gaps = np.abs(means[:, None] - means)
    # sums in another order differ by round-off: differences that are equal up to round-off count as equal
    slack = 1e-12 * np.abs(contributions).mean() * n_systems
    as_large = n_permutations - np.searchsorted(np.sort(ranges), gaps - slack)
    return (1 + as_large) / (1 + n_permutations)


def _matching(ids_a: np.ndarray, ids_b: np.ndarray) -> np.ndarray:
    """For each query of a, its position in b."""
    if np.array_equal(ids_a, ids_b):
        return np.arange(len(ids_a))
    place = {query: number for number, query in enumerate(ids_b.tolist())}
    missing = [query for query in ids_a.tolist() if query not in place]
    if missing or len(ids_a) != len(ids_b):
        found = f"query {missing[0]!r} is in one only" if missing else f"{len(ids_a)} and {len(ids_b)} queries"
        raise DataError(f"the evaluations must have the same queries: {found}.")
    return np.array([place[query] for query in ids_a.tolist()])


def _randomization(gaps: np.ndarray, n_permutations: int, random_state: int | np.random.Generator | None) -> float:
    """Two-sided p-value of the sum of ``gaps`` under random signs."""
    n = len(gaps)
    if n == 0:
        return 1.0
    # A sum of n terms in another order differs by round-off: sums that are equal up to round-off count as equal.
    threshold = abs(gaps.sum()) - 1e-12 * np.abs(gaps).sum()
    if n <= _EXHAUSTIVE:
        flipped = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
        return float(np.mean(np.abs(gaps.sum() - 2 * flipped @ gaps) >= threshold))
    generator = generator_of(random_state)
    chunk = max(1, min(n_permutations, 4_000_000 // n))
    as_large = 0
    for start in range(0, n_permutations, chunk):
        rows = min(chunk, n_permutations - start)
        bits = np.unpackbits(generator.integers(0, 256, (rows, (n + 7) // 8), dtype=np.uint8), axis=1, count=n)
        as_large += int((np.abs(gaps.sum() - 2 * (bits.astype(np.float64) @ gaps)) >= threshold).sum())
    return (1 + as_large) / (1 + n_permutations)
