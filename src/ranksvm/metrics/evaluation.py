"""Evaluation: means and values per query of metrics, from labels and scores; and pairwise accuracy of preferences."""

import dataclasses
import math
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ranksvm._util.checks import check_one_per_row, is_number, level_of_caller
from ranksvm._util.tables import Table, Tabular, frame_of
from ranksvm._util.text import plain
from ranksvm.data import Queries
from ranksvm.data.censoring import checked_event
from ranksvm.data.numeric_column import as_array, checked_weights, label_column, numeric_column
from ranksvm.data.queries import check_grouped
from ranksvm.exceptions import DataError, LikelyMistakeWarning, OptionError
from ranksvm.metrics.conventions import Convention, convention_named
from ranksvm.metrics.definitions import ConcordanceIndex, Metric, PairwiseAccuracy, parse_metric, parse_metrics
from ranksvm.metrics.rankings import Rankings

__all__ = ["EQUAL", "Evaluation", "accuracy_interval", "column", "document_ids", "evaluate", "evaluate_pairs", "t_test"]

# Two values of a metric whose relative difference is at most this are equal: the difference is round-off.
EQUAL = 1e-12

# Published judgments have up to 5 grades.
_MAX_GRADES = 5


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Evaluation(Tabular):
    """The result of `evaluate`.

    Parameters
    ----------
    means : dict of str to float
        Metric name -> mean over queries (over all pairs for the pairwise accuracy). NaN if no query has a value, or if
        all weights are 0.
    per_query : dict of str to ndarray
        Metric name -> value of each query, in the order of ``qid``; NaN where the metric is undefined.
    weights : dict of str to ndarray
        Metric name -> weight of each query in the mean, 0 where the value is NaN.
    qid : ndarray, shape (n_queries,)
        The query ids, in order of first appearance.
    n_rows : int
        Number of documents.
    n_without_relevant : int
        Number of queries without a relevant document, as the convention defines it. Their average precision and recall
        are `Convention.no_relevant`, and so is their NDCG if all gains are 0.
    convention : str
        Name of the convention.
    n_missing : int, default 0
        Number of judged queries that the run does not rank (`evaluate_run`).

    Examples
    --------
    >>> from ranksvm import make_ranking, metrics
    >>> data = make_ranking(n_queries=20, n_docs=8, n_features=4, random_state=0)
    >>> a = metrics.evaluate(data.y, data.X[:, 0], data.qid, ["ndcg@5", "map"])
    >>> a.n_queries, a.per_query["map"].shape, list(a.means)
    (20, (20,), ['ndcg@5', 'map'])
    >>> low, high = a.interval("map")
    >>> low < a["map"] < high
    True
    """

    means: dict[str, float]
    per_query: dict[str, np.ndarray]
    weights: dict[str, np.ndarray]
    qid: np.ndarray
    n_rows: int
    n_without_relevant: int
    convention: str
    n_missing: int = 0

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return len(self.qid)

    def __getitem__(self, metric: str | Metric) -> float:
        name = parse_metric(metric).name
        if name not in self.means:
            raise OptionError(f"{name!r} was not evaluated: choose from {', '.join(self.means)}.")
        return self.means[name]

    def interval(self, metric: str | Metric, *, confidence: float = 0.95) -> tuple[float, float]:
        """Confidence interval of a mean over queries, from the t distribution.

        The queries are treated as a random sample. If the mean weights the queries (as the pairwise accuracy does, by
        their pairs), it is a ratio of sums over queries, and its variance is computed as in `accuracy_interval`. Prefer
        `accuracy_interval` if the mean is near 0 or 1.

        Parameters
        ----------
        metric : str or Metric
            A metric that was evaluated.
        confidence : float, default 0.95
            Level of confidence, between 0 and 1.

        Returns
        -------
        low, high : float
            The ends; NaN if fewer than two queries have a value.

        Raises
        ------
        OptionError
            When the metric was not evaluated, or the level is not between 0 and 1.
        """
        name = parse_metric(metric).name
        self[name]  # refuses a metric that was not evaluated
        check_confidence(confidence)
        counted = self.weights[name] > 0
        weight, values = self.weights[name][counted], self.per_query[name][counted]
        if len(weight) < 2:
            return np.nan, np.nan
        low, high, _ = t_test(self.means[name] + weight / weight.mean() * (values - self.means[name]), confidence)
        return float(low), float(high)

    def to_dict(self, per_query: bool = False) -> dict[str, Any]:
        """Plain Python values, ready for JSON; an undefined value is None.

        Parameters
        ----------
        per_query : bool, default False
            Whether the values of the queries are included.

        Returns
        -------
        dict
            ``convention``, ``n_queries``, ``n_rows``, ``n_without_relevant``, ``n_missing``, ``means`` and, on request,
            ``qid`` and ``per_query``.
        """
        out: dict[str, Any] = {
            "convention": self.convention,
            "n_queries": self.n_queries,
            "n_rows": self.n_rows,
            "n_without_relevant": self.n_without_relevant,
            "n_missing": self.n_missing,
            "means": plain(self.means),
        }
        if per_query:
            out["qid"] = plain(self.qid)
            out["per_query"] = plain(self.per_query)
        return out

    def to_frame(self, *, per_query: bool = False, library: str | None = None) -> Any:
        """The means, or the values per query, as a DataFrame.

        Parameters
        ----------
        per_query : bool, default False
            Whether to have a row per query, with columns ``qid`` and one per metric, instead of a row per metric, with
            columns ``metric``, ``mean`` and ``convention``.
        library : {"pandas", "polars", "pyarrow"}, optional
            Library of the DataFrame; None: the first of them that is installed.

        Returns
        -------
        DataFrame
            The values.

        Raises
        ------
        MissingDependencyError
            When the library is not installed, or none of the three is.
        """
        return (
            frame_of({"qid": self.qid, **self.per_query}, library) if per_query else super().to_frame(library=library)
        )

    def _table(self) -> Table:
        caption = f"{self.n_queries} queries, {self.n_without_relevant} without a relevant document"
        if self.n_missing:
            caption += f", {self.n_missing} without a ranking"
        return Table(
            {
                "metric": list(self.means),
                "mean": list(self.means.values()),
                "convention": [self.convention] * len(self.means),
            },
            f"{caption} (convention {self.convention})",
            headings={"metric": f"metric ({self.convention})"},
            hidden=("convention",),
        )

    def _repr_html_(self) -> str:
        """The means with their intervals in a notebook."""
        table = metrics_table({"": self})
        return dataclasses.replace(table, caption=self._table().caption).to_html()

    def __repr__(self) -> str:
        means = ", ".join(f"{name}={value:.4f}" for name, value in self.means.items())
        return (
            f"Evaluation({means}; {self.n_queries} queries, {self.n_without_relevant} without a relevant document, "
            f"convention {self.convention!r})"
        )


def metrics_table(evaluations: Mapping[str, Evaluation], confidence: float = 0.95) -> Table:
    """A row per metric and system, with the system's mean over the queries and its confidence interval.

    With one system only, the column of names is left out.
    """
    first = next(iter(evaluations.values()))
    columns: dict[str, list[Any]] = {"metric": [], "system": [], "mean": [], "interval": []}
    for metric in first.means:
        for name, evaluation in evaluations.items():
            low, high = evaluation.interval(metric, confidence=confidence)
            interval = "-" if np.isnan(low) else f"{low:.4f} to {high:.4f}"
            row = (metric, name, evaluation[metric], interval)
            for values, value in zip(columns.values(), row, strict=True):
                values.append(value)
    return Table(
        columns,
        f"means over {first.n_queries} queries",
        headings={"metric": f"metric ({first.convention})", "interval": f"{100 * confidence:g} % interval"},
        hidden=("system",) if len(evaluations) == 1 else (),
        numbers=("interval",),
    )


def evaluate(
    y: ArrayLike,
    scores: ArrayLike,
    qid: ArrayLike | None = None,
    metrics: str | Metric | Iterable[str | Metric] = ("ndcg@10", "map"),
    *,
    convention: str | Convention = "default",
    relevance: float | None = None,
    max_label: float | None = None,
    docid: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    group: ArrayLike | None = None,
    event: ArrayLike | None = None,
) -> Evaluation:
    """Quality of the rankings given by scores.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        Labels: any real numbers; higher is better. Labels below 0 have gain 0.
    scores : array-like of shape (n_rows,)
        Scores: the documents of a query are ranked by them, the highest first.
    qid : array-like of shape (n_rows,), optional
        Query of each row, in any order. None: all rows are one query, with a `OneQueryWarning`; more than 1,000 rows
        are then refused. If they are one query, pass ``group=[n_rows]``.
    metrics : str, Metric, or iterable of either, default ("ndcg@10", "map")
        What to compute: ``ndcg``, ``ndcg@k``, ``mean_ndcg``, ``map``, ``map@k``, ``mrr``, ``mrr@k``, ``err``,
        ``err@k``, ``p@k``, ``r@k``, ``pairwise_accuracy``, ``kendall_tau``, ``concordance_index``.
    convention : str or Convention, default "default"
        ``"default"`` (gain 2^y - 1, discount 1/log2(1 + rank), ties averaged, a query without a relevant document
        counts as 0), or another tool's: ``"letor"``, ``"mslr"``, ``"trec"``, ``"lightgbm"``, ``"xgboost"`` or
        ``"sklearn"``.
    relevance : float, optional
        Labels of at least this value are relevant for MAP, MRR, P@k and R@k; None: the threshold of the convention (by
        default any label above 0).
    max_label : float, optional
        Highest grade of the scale, for ERR; None: the highest label in ``y``, or 0.
    docid : array-like of shape (n_rows,), optional
        Document ids: under the ``trec`` convention tied documents are in descending order of their ids (as text).
        Without ids, and under other conventions, ties are in the order of the rows or averaged.
    sample_weight : array-like of shape (n_rows,), optional
        In the means a query is weighted by the mean weight of its rows. If all weights are 0, the means are NaN.
    group : array-like of int, shape (n_queries,), optional
        Number of rows of each query, in order, instead of ``qid``; a query without rows is left out.
    event : array-like of bool, shape (n_rows,), optional
        If given, ``y`` holds times: True for the time of an observed event, False for a right-censored time. Only for
        ``concordance_index``, for which a HIGHER score has to mean a LONGER time.

    Returns
    -------
    Evaluation
        Means, values per query, and the number of queries without a relevant document.

    Raises
    ------
    DataError
        When the lengths differ, there is no row, labels or weights are not finite, a score is NaN, a weight is
        negative, or more than 1,000 rows have neither ``qid`` nor ``group``.
    OptionError
        When a metric or convention is unknown, ``max_label`` is below a label, or a metric of labels is requested
        for censored times.

    Warns
    -----
    LikelyMistakeWarning
        When the scores look like labels, and the labels like scores.

    Examples
    --------
    >>> result = evaluate([2, 1, 0, 0], [0.1, 0.7, 0.4, 0.4], ["a", "a", "b", "b"], ["ndcg@10", "mrr"])
    >>> result.means
    {'ndcg@10': 0.3983..., 'mrr': 0.5}
    >>> result.n_without_relevant
    1
    """
    parsed = parse_metrics(metrics)
    rules = with_relevance(convention_named(convention), relevance)
    labels = column("y", y)
    values = column("scores", scores, len(labels), finite=False)
    if len(labels) == 0:
        raise DataError("there is nothing to evaluate: y has no rows.")
    if event is not None and qid is None and group is None:
        group = [len(labels)]  # times of one study are one query
    queries = _queries(qid, group, len(labels))
    observed = None
    if event is None:
        _warn_if_swapped(labels, values)
    else:
        observed = checked_event(event, len(labels))
        if others := [metric.name for metric in parsed if not isinstance(metric, ConcordanceIndex)]:
            raise OptionError(f"{others[0]!r} is a metric of labels: for censored times ask 'concordance_index'.")
    ids = None if docid is None else document_ids(docid, len(labels))
    query_weight = _query_weight(sample_weight, queries)
    highest = scale_of_labels(labels, max_label)
    rankings = Rankings(labels, values, queries, rules, highest, ids, observed)
    result = Evaluation({}, {}, {}, queries.ids, len(labels), int((rankings.n_relevant == 0).sum()), rules.name)
    for metric in parsed:
        per_query, weights = values_and_weights(metric, rankings)
        add_means(result, metric.name, per_query, weights if query_weight is None else weights * query_weight)
    return result


def check_confidence(confidence: object) -> None:
    """Refuse a level of confidence that is not a number between 0 and 1."""
    if not is_number(confidence) or not 0 < confidence < 1:
        raise OptionError(f"confidence must lie between 0 and 1, got {confidence!r}.")


def with_relevance(rules: Convention, relevance: float | None) -> Convention:
    """A convention with another threshold for relevance, if one is given."""
    return rules if relevance is None else dataclasses.replace(rules, relevance=_number("relevance", relevance))


def scale_of_labels(labels: np.ndarray, max_label: float | None) -> float:
    """Highest grade of the scale: the one given, or the highest label, at least 0."""
    highest = max(0.0, float(labels.max()))
    if max_label is None:
        return highest
    if _number("max_label", max_label) < highest:
        raise OptionError(f"max_label is {max_label} but there is a label {highest:g}.")
    return float(max_label)


def add_means(result: Evaluation, name: str, per_query: np.ndarray, weights: np.ndarray) -> None:
    """Add a metric to an evaluation: its values, their weights, and their mean."""
    result.per_query[name] = per_query
    result.weights[name] = weights
    total = weights.sum()
    mean = np.dot(weights, np.nan_to_num(per_query)) / total if total > 0 else np.nan
    result.means[name] = float(mean)


def values_and_weights(metric: Metric, rankings: Rankings) -> tuple[np.ndarray, np.ndarray]:
    """A metric of each query, and its weight in the mean: 0 where it has no value."""
    values, weights = metric.values(rankings), metric.query_weights(rankings)
    return values, np.where(np.isnan(values), 0.0, np.ones(len(values)) if weights is None else weights)


def t_test(contribution: np.ndarray, confidence: float) -> tuple[float, float, float]:
    """Both ends of the t interval of a mean, and the two-sided p-value of a t-test; NaN for fewer than two values."""
    n = len(contribution)
    mean = float(contribution.mean())
    if n < 2:
        return np.nan, np.nan, np.nan
    error = float(contribution.std(ddof=1)) / math.sqrt(n)
    if error == 0:
        return mean, mean, 1.0 if mean == 0 else 0.0
    # the t distribution is from scipy.special, because importing scipy.stats takes longer than most programs run
    from scipy import special

    half = error * float(special.stdtrit(n - 1, 0.5 + confidence / 2))
    return mean - half, mean + half, float(2 * special.stdtr(n - 1, -abs(mean) / error))


def column(name: str, values: ArrayLike, n_rows: int | None = None, finite: bool = True) -> np.ndarray:
    """A column as float64, validated: with ``n_rows`` values if that is given, all of them finite if ``finite``."""
    found = label_column(values) if name == "y" else numeric_column(name, values, finite=finite)
    if found.ndim == 2 and found.shape[1] == 1:
        found = found[:, 0]
    if found.ndim != 1:
        raise DataError(f"{name} must be one-dimensional, got shape {found.shape}.")
    if n_rows is not None:
        check_one_per_row(name, found, n_rows, "y")
    return found


def document_ids(docid: ArrayLike, n_rows: int) -> np.ndarray:
    """Document ids, one for each row of y."""
    ids = np.asarray(docid)
    check_one_per_row("docid", ids, n_rows, "y")
    return ids


def _queries(qid: ArrayLike | None, group: ArrayLike | None, n_rows: int) -> Queries:
    """The queries that have rows."""
    if qid is not None and as_array("qid", qid).ndim == 1:
        check_one_per_row("qid", qid, n_rows, "y")
    check_grouped(qid, group, n_rows, "evaluate", "ranked against each other")
    queries = Queries.of(qid, group, n_rows)
    filled = np.flatnonzero(queries.sizes)
    return Queries(np.append(queries.pointers[filled], n_rows), queries.order, queries.ids[filled])


def _warn_if_swapped(labels: np.ndarray, scores: np.ndarray) -> None:
    """Warn if scores look like grades (few integers from 0), but labels do not: the arguments are probably swapped."""
    if (scores < 0.0).any() or (scores != np.floor(scores)).any() or (labels == np.floor(labels)).all():
        return
    grades = len(np.unique(scores))
    if 1 < grades <= _MAX_GRADES and len(np.unique(labels)) > 2 * grades:
        warnings.warn(
            f"evaluate(y, scores) got scores that are {grades} grades, and labels y that are not whole numbers: they "
            "look swapped. The labels come first.",
            LikelyMistakeWarning,
            stacklevel=level_of_caller(),
        )


def _query_weight(sample_weight: ArrayLike | None, queries: Queries) -> np.ndarray | None:
    if sample_weight is None:
        return None
    weight = column("sample_weight", sample_weight, queries.n_rows)
    if (weight < 0).any():
        row = int(np.flatnonzero(weight < 0)[0])
        raise DataError(f"sample_weight is {weight[row]} in row {row} (from 0): it must not be negative.")
    return np.add.reduceat(queries.to_sorted(weight), queries.pointers[:-1]) / queries.sizes


def _number(name: str, value: float) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = np.nan
    if not np.isfinite(number):
        raise OptionError(f"{name} must be a finite number, got {value!r}.")
    return number


def evaluate_pairs(
    preferred: ArrayLike, other: ArrayLike, qid: ArrayLike | None = None, *, pair_weight: ArrayLike | None = None
) -> Evaluation:
    """Pairwise accuracy of preferences: the share of the pairs whose preferred document has the higher score.

    A pair with equal scores counts as wrong, as in the pairwise accuracy of labels (`evaluate`).

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
    queries have the same accuracy, as when all pairs are right, v is 0; then the effective number is ``(sum of w_q)^2 /
    (sum of w_q^2)``, the number of queries if they have equal weights.

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
    deviations = np.where(np.isclose(values, share, rtol=EQUAL, atol=0.0), 0.0, values - share)
    variance = n_queries / (n_queries - 1) * np.square(weight / total * deviations).sum()
    effective = share * (1.0 - share) / variance if variance > 0 else 1.0 / np.square(weight / total).sum()
    # the normal distribution is from scipy.special, because importing scipy.stats takes longer than most programs run
    from scipy import special

    z2 = float(special.ndtri(0.5 + confidence / 2)) ** 2 / effective
    center = (share + z2 / 2) / (1 + z2)
    half = np.sqrt(z2 * (share * (1.0 - share) + z2 / 4)) / (1 + z2)
    return max(0.0, float(center - half)), min(1.0, float(center + half))
