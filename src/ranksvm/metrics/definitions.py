"""The metrics, each a small object with a name and a definition, and their choice: by names such as ``"ndcg@10"``."""

import dataclasses
import math
import re
from collections.abc import Callable, Iterable
from typing import ClassVar, TypeVar

import numpy as np

from ranksvm._util.checks import is_integer
from ranksvm.exceptions import OptionError
from ranksvm.metrics.rankings import Rankings

__all__ = [
    "ACCURACY",
    "CONCORDANCE",
    "DEFAULT_METRIC",
    "ERR",
    "METRICS",
    "NDCG",
    "AtCutoff",
    "AveragePrecision",
    "ConcordanceIndex",
    "KendallTau",
    "MeanNDCG",
    "Metric",
    "PairwiseAccuracy",
    "Precision",
    "Recall",
    "ReciprocalRank",
    "metrics_at",
    "on_scale",
    "only_metric",
    "parse_metric",
    "parse_metrics",
]

# Name in lower case -> metric. Error messages list the metrics in this order. `_named` fills this dict.
METRICS: dict[str, type["Metric"]] = {}


@dataclasses.dataclass(frozen=True)
class Metric:
    """A measure of the quality of a ranking; higher is better.

    A subclass defines `values`; the mean over queries is weighted by `query_weights`.

    Examples
    --------
    >>> from ranksvm.metrics import parse_metric
    >>> parse_metric("mrr").name
    'mrr'
    """

    label: ClassVar[str]
    # value of a judged query for which a run has no ranking
    missing_query_value: ClassVar[float] = 0.0

    @property
    def name(self) -> str:
        """The name from which `parse_metric` gives this metric."""
        return self.label

    def __str__(self) -> str:
        return self.name

    def values(self, rankings: Rankings) -> np.ndarray:
        """Value of each query.

        Parameters
        ----------
        rankings : Rankings
            Ranked labels.

        Returns
        -------
        ndarray, shape (n_queries,)
            The values; NaN where the metric is undefined.
        """
        raise NotImplementedError

    def query_weights(self, rankings: Rankings) -> np.ndarray | None:
        """Weight of each query in the mean; None: equal weights.

        Parameters
        ----------
        rankings : Rankings
            Ranked labels.

        Returns
        -------
        ndarray of shape (n_queries,), or None
            The weights.
        """
        return None


_Kind = TypeVar("_Kind", bound=type[Metric])


def _named(*other_tools: str) -> Callable[[_Kind], _Kind]:
    """Register a metric under its label and its names in other tools, in lower case.

    These tools are trec_eval (without its prefix ``-m``), ir_measures, XGBoost and LightGBM.
    """

    def register(kind: _Kind) -> _Kind:
        METRICS.update(dict.fromkeys((kind.label, *other_tools), kind))
        return kind

    return register


@dataclasses.dataclass(frozen=True)
class AtCutoff(Metric):
    """A metric of the first k documents.

    Parameters
    ----------
    cutoff : int, optional
        k; None: the whole list.
    """

    cutoff: int | None = None
    needs_cutoff: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.cutoff is None:
            if self.needs_cutoff:
                raise OptionError(f"{self.label!r} needs a cut-off, as in '{self.label}@10'.")
            return
        # As in scikit-learn's ndcg_score(k=...), a float is refused even if it is whole: 'ndcg@5.0' would be another
        # name of the same metric.
        if not is_integer(self.cutoff):
            raise OptionError(f"the cut-off of {self.label} must be an integer, got {self.cutoff!r}.")
        if self.cutoff < 1:
            raise OptionError(f"the cut-off of {self.label} must be at least 1, got {self.cutoff!r}.")
        object.__setattr__(self, "cutoff", int(self.cutoff))

    @property
    def name(self) -> str:
        return self.label if self.cutoff is None else f"{self.label}@{self.cutoff}"


@_named("ndcg_cut")
@dataclasses.dataclass(frozen=True)
class NDCG(AtCutoff):
    """Normalized discounted cumulative gain: DCG@k over its maximum.

    ``DCG@k = sum over ranks r <= k of gain(y_r) discount(r)``; gain and discount are the convention's. If ties are
    averaged, the value is the expected value over random orders of tied documents: each document has the mean gain of
    its tie. A query without gain has the value ``no_relevant`` of the convention.

    Parameters
    ----------
    cutoff : int, optional
        k; None: the whole list.

    References
    ----------
    Järvelin and Kekäläinen, TOIS 2002; ties: McSherry and Najork, ECIR 2008.
    """

    label: ClassVar[str] = "ndcg"

    def values(self, rankings: Rankings) -> np.ndarray:
        dcg = rankings.sums(rankings.averaged(rankings.gains) * rankings.discounts, self.cutoff)
        ideal = rankings.ideal_dcg(self.cutoff)
        values = _ratio(dcg, ideal, rankings.convention.no_relevant)
        if rankings.convention.short_ndcg_is_zero and self.cutoff is not None:
            values[rankings.sizes < self.cutoff] = 0.0
        return values


@_named()
@dataclasses.dataclass(frozen=True)
class MeanNDCG(Metric):
    """Mean of NDCG@k over all cut-offs k = 1 .. length of the list.

    References
    ----------
    Eval-Score-4.0.pl of LETOR 4.0; Lee and Lin, Neural Computation 2014.
    """

    label: ClassVar[str] = "mean_ndcg"

    def values(self, rankings: Rankings) -> np.ndarray:
        dcg = rankings.running_sums(rankings.averaged(rankings.gains) * rankings.discounts)
        ideal = rankings.running_sums(rankings.ideal_gains * rankings.discounts)
        return rankings.sums(_ratio(dcg, ideal, rankings.convention.no_relevant)) / rankings.sizes


@_named("ap", "map_cut", "mean_average_precision")
@dataclasses.dataclass(frozen=True)
class AveragePrecision(AtCutoff):
    """Mean, over the relevant documents of a query, of the precision at their ranks; its mean over queries is MAP.

    If ties are averaged, the value is the expected value over random orders of tied documents. The i-th place of a tie
    of n documents, of which m are relevant, after N documents, of which M are relevant, then adds ``m/n (M + 1 +
    (i-1)(m-1)/(n-1)) / (N + i)`` to the sum of the precisions. With a cut-off k, documents beyond rank k have precision
    0. A query without a relevant document has the value ``no_relevant`` of the convention.

    Parameters
    ----------
    cutoff : int, optional
        k; None: the whole list.

    References
    ----------
    trec_eval (``map``, ``map_cut``); ties: McSherry and Najork, ECIR 2008.
    """

    label: ClassVar[str] = "map"

    def values(self, rankings: Rankings) -> np.ndarray:
        relevant, rank = rankings.relevant, rankings.rank
        found = rankings.running_sums(relevant)
        starts = rankings.tie_starts
        if starts is None:
            precision = relevant * found / rank
        else:
            n = np.diff(starts, append=len(rank))
            m = np.add.reduceat(relevant, starts)
            if rankings.convention.threshold_map:
                precision = rankings.averaged(relevant) * np.repeat((found / rank)[starts + n - 1], n)
            else:
                before = np.repeat(found[starts] - relevant[starts], n)
                i = rank - np.repeat(rank[starts], n)
                others = np.repeat((m - 1) / np.maximum(n - 1, 1), n)
                precision = np.repeat(m / n, n) * (before + 1 + i * others) / rank
        best = rankings.n_relevant
        if rankings.convention.truncated_map and self.cutoff is not None:
            best = np.minimum(best, self.cutoff)
        return _ratio(rankings.sums(precision, self.cutoff), best, rankings.convention.no_relevant)


@_named("rr", "recip_rank", "reciprocal_rank")
@dataclasses.dataclass(frozen=True)
class ReciprocalRank(AtCutoff):
    """1 / rank of the first relevant document, or 0 if there is none (up to the cut-off); its mean is MRR.

    If ties are averaged, the value is the expected value over random orders of tied documents.

    Parameters
    ----------
    cutoff : int, optional
        Last rank that counts; None: all ranks.

    References
    ----------
    trec_eval (``recip_rank``); ties: McSherry and Najork, ECIR 2008.
    """

    label: ClassVar[str] = "mrr"

    def values(self, rankings: Rankings) -> np.ndarray:
        return rankings.expected_reciprocal_rank(rankings.relevant, self.cutoff)


@_named()
@dataclasses.dataclass(frozen=True)
class ERR(AtCutoff):
    """Expected reciprocal rank: ``sum over r of 1/r R_r prod over s < r of (1 - R_s)``.

    A document stops the user with probability ``R = (2^y - 1) / 2^max_label``. ``max_label`` is the highest grade of
    the scale: give it to compare data sets; else it is the highest label present. If ties are averaged, the value is
    the expected value over random orders of tied documents.

    Parameters
    ----------
    cutoff : int, optional
        Last rank that counts; None: all ranks.
    max_label : float, optional
        Highest grade of the scale; None: the one that `evaluate` is given or finds.

    References
    ----------
    Chapelle, Metzler, Zhang and Grinspan, CIKM 2009.
    """

    max_label: float | None = None
    label: ClassVar[str] = "err"

    def values(self, rankings: Rankings) -> np.ndarray:
        y = np.maximum(rankings.labels, 0.0)
        highest = rankings.max_label if self.max_label is None else self.max_label
        stop = np.exp2(y - highest) * -np.expm1(-np.log(2.0) * y)
        return rankings.expected_reciprocal_rank(stop, self.cutoff)


@_named("pre", "prec", "precision")
@dataclasses.dataclass(frozen=True)
class Precision(AtCutoff):
    """Relevant documents among the first k, divided by k, also for a shorter list unless the convention differs.

    If ties are averaged, the value is the expected value over random orders of tied documents.

    Parameters
    ----------
    cutoff : int
        k.

    References
    ----------
    trec_eval (``P``).
    """

    label: ClassVar[str] = "p"
    needs_cutoff: ClassVar[bool] = True

    def values(self, rankings: Rankings) -> np.ndarray:
        assert self.cutoff is not None
        places = np.full(rankings.n_queries, float(self.cutoff))
        if rankings.convention.precision_by_length:
            places = np.minimum(places, rankings.sizes)
        return rankings.sums(rankings.averaged(rankings.relevant), self.cutoff) / places


@_named("rec", "recall")
@dataclasses.dataclass(frozen=True)
class Recall(AtCutoff):
    """Relevant documents among the first k, divided by all relevant documents of the query.

    If ties are averaged, the value is the expected value over random orders of tied documents. A query without a
    relevant document has the value ``no_relevant`` of the convention.

    Parameters
    ----------
    cutoff : int
        k.

    References
    ----------
    trec_eval (``recall``).
    """

    label: ClassVar[str] = "r"
    needs_cutoff: ClassVar[bool] = True

    def values(self, rankings: Rankings) -> np.ndarray:
        found = rankings.sums(rankings.averaged(rankings.relevant), self.cutoff)
        return _ratio(found, rankings.n_relevant, rankings.convention.no_relevant)


@_named()
@dataclasses.dataclass(frozen=True)
class PairwiseAccuracy(Metric):
    """Share of the pairs with different labels that the scores order correctly; equal scores are incorrect.

    The value of a query is the share of its own pairs, NaN if it has none. The mean pools the pairs of all queries: it
    is weighted by their numbers. Of a convention, only ``float32_scores`` has an effect: it makes close scores equal.

    References
    ----------
    Lee and Lin, Neural Computation 2014.
    """

    label: ClassVar[str] = "pairwise_accuracy"
    missing_query_value: ClassVar[float] = math.nan

    def values(self, rankings: Rankings) -> np.ndarray:
        comparable, concordant = rankings.pair_counts[:2]
        return _ratio(concordant, comparable, np.nan)

    def query_weights(self, rankings: Rankings) -> np.ndarray:
        return rankings.pair_counts[0].astype(np.float64)


@_named("tau", "kendall")
@dataclasses.dataclass(frozen=True)
class KendallTau(Metric):
    """Kendall's tau-b of labels and scores.

    ``(concordant - discordant) / sqrt(pairs with different labels * pairs with different scores)``. NaN, and excluded
    from the mean, if a query has no pair with different labels; 0 if it has one but all its scores are equal. Of a
    convention, only ``float32_scores`` has an effect: it makes close scores equal.

    References
    ----------
    Kendall, Biometrika 1945; counted by Knight, JASA 1966.
    """

    label: ClassVar[str] = "kendall_tau"
    missing_query_value: ClassVar[float] = math.nan

    def values(self, rankings: Rankings) -> np.ndarray:
        comparable, concordant, discordant, different = rankings.pair_counts.astype(np.float64)
        # The root of a rounded square is exact, so a perfect order has exactly 1. The product of two rounded roots of 3
        # is less than 3.
        tau = _ratio(concordant - discordant, np.sqrt(comparable * different), 0.0)
        tau[comparable == 0] = np.nan
        return tau


@_named()
@dataclasses.dataclass(frozen=True)
class ConcordanceIndex(Metric):
    """Harrell's concordance index of right-censored times: a HIGHER score has to mean a LONGER time.

    A pair of documents is comparable if the smaller time has an observed event (of equal times, an observed one
    is smaller than a censored one; two observed ones are not comparable). The index is the share of the comparable
    pairs whose scores are in the order of their times; equal scores count one half. Other packages may expect risks,
    for which higher means shorter: pass ``-risk``, otherwise the value is 1 minus theirs. Without ``event`` all times
    are observed.

    The value of a query (a stratum) is the share of its own pairs, NaN if it has none. The mean pools the pairs of all
    queries: it is weighted by their numbers. Of a convention, only ``float32_scores`` has an effect: it makes close
    scores equal.

    References
    ----------
    F. E. Harrell, R. M. Califf, D. B. Pryor, K. L. Lee, R. A. Rosati, "Evaluating the yield of medical tests", JAMA
    247, 1982.
    """

    label: ClassVar[str] = "concordance_index"

    def values(self, rankings: Rankings) -> np.ndarray:
        comparable, concordant, discordant = rankings.concordance_counts
        return _ratio(concordant + 0.5 * (comparable - concordant - discordant), comparable, np.nan)

    def query_weights(self, rankings: Rankings) -> np.ndarray:
        return rankings.concordance_counts[0].astype(np.float64)


def _ratio(numerator: np.ndarray, denominator: np.ndarray, otherwise: float) -> np.ndarray:
    """``numerator / denominator``, and ``otherwise`` where the denominator is 0."""
    out = np.full(len(numerator), otherwise)
    np.divide(numerator, denominator, out=out, where=denominator > 0)
    return out


# The metric that `score`, `eval_set` and searches use by default if there are labels.
DEFAULT_METRIC = "ndcg@10"
# The metrics of data without labels: listed pairs, and right-censored times.
ACCURACY, CONCORDANCE = PairwiseAccuracy(), ConcordanceIndex()

# trec_eval prints ndcg_cut_10 and takes ndcg_cut.10, P.5,10
_TREC_CUTOFF = re.compile(r"(.*[a-z])[._]([0-9]+)\Z", re.ASCII)


def parse_metric(name: str | Metric) -> Metric:
    """The metric with a given name.

    Parameters
    ----------
    name : str or Metric
        A name such as ``"ndcg@10"``, ``"map"``, ``"p@5"``, in upper or lower case, or a name of another tool:
        ``"ndcg_cut_10"``, ``"P_5"``, ``"recall.100"``, ``"recip_rank"`` (trec_eval), ``"AP"``, ``"RR@10"``
        (ir_measures), ``"pre@5"`` (XGBoost). A `Metric` is returned unchanged. A name says nothing about gains, ties
        or queries without relevant documents: these depend on the convention.

    Returns
    -------
    Metric
        The metric.

    Raises
    ------
    OptionError
        When there is no such metric, or its cut-off is missing or not a whole number from 1; the message lists the
        known names.

    Examples
    --------
    >>> from ranksvm.metrics import parse_metric
    >>> parse_metric("nDCG_cut_10").name, parse_metric("P@5").name
    ('ndcg@10', 'p@5')
    """
    if isinstance(name, Metric):
        return name
    if not isinstance(name, str):
        raise OptionError(f"a metric is named by a string such as 'ndcg@10', got {name!r}.")
    label, at, cutoff = _TREC_CUTOFF.sub(r"\1@\2", name.strip().lower()).replace("-", "_").partition("@")
    kind = METRICS.get(label)
    if kind is None:
        raise OptionError(f"unknown metric {name!r}: choose from {_available()}.")
    if not issubclass(kind, AtCutoff):
        if at:
            raise OptionError(f"{kind.label!r} takes no cut-off, got {name!r}: choose from {_available()}.")
        return kind()
    if at and not re.fullmatch("0*[1-9][0-9]*", cutoff, re.ASCII):
        raise OptionError(f"the cut-off in {name!r} must be a whole number from 1, as in '{kind.label}@10'.")
    return kind(int(cutoff) if at else None)


def parse_metrics(names: str | Metric | Iterable[str | Metric]) -> list[Metric]:
    """The metrics with given names, without duplicates, in their order.

    Parameters
    ----------
    names : str, Metric, or iterable of either
        Names; a string may hold several, separated by commas.

    Returns
    -------
    list of Metric
        The metrics.

    Raises
    ------
    OptionError
        When a name is unknown or there is none.

    Examples
    --------
    >>> from ranksvm.metrics import parse_metrics
    >>> [metric.name for metric in parse_metrics("ndcg@10, map, AP")]
    ['ndcg@10', 'map']
    """
    if isinstance(names, str):
        names = [name for name in names.split(",") if name.strip()]
    elif isinstance(names, Metric) or not isinstance(names, Iterable):
        names = [names]
    metrics = list(dict.fromkeys(parse_metric(name) for name in names))
    if not metrics:
        raise OptionError(f"no metric is given: choose from {_available()}.")
    return metrics


def metrics_at(metrics: Iterable[Metric], cutoffs: int | Iterable[int] | None) -> list[Metric]:
    """Metrics, with each one that lacks a cut-off replaced by the same metric at the given cut-offs.

    Parameters
    ----------
    metrics : iterable of Metric
        Metrics; those that have a cut-off, or take none, stay as they are.
    cutoffs : int, iterable of int, or None
        The cut-offs, from 1; None: the metrics stay as they are.

    Returns
    -------
    list of Metric
        The metrics, in their order, without duplicates.

    Raises
    ------
    OptionError
        When there is no cut-off, or one is not a whole number from 1.
    """
    if cutoffs is None:
        return list(dict.fromkeys(metrics))
    numbers = [cutoffs] if is_integer(cutoffs) or not isinstance(cutoffs, Iterable) else list(cutoffs)
    if not numbers:
        raise OptionError("eval_at has no cut-off: give numbers such as [5, 10], or omit eval_at.")
    found: list[Metric] = []
    for metric in metrics:
        if isinstance(metric, AtCutoff) and metric.cutoff is None:
            found += [dataclasses.replace(metric, cutoff=number) for number in numbers]
        else:
            found.append(metric)
    return list(dict.fromkeys(found))


def on_scale(metrics: Iterable[Metric], highest: Callable[[], float]) -> list[Metric]:
    """Metrics with the scale of all labels, for values on parts of the data, which may lack the highest grade.

    Parameters
    ----------
    metrics : iterable of Metric
        Metrics; only ERR depends on the scale.
    highest : callable
        Returns the highest label of all data; called only for ERR without a scale.

    Returns
    -------
    list of Metric
        The metrics, in their order.
    """
    return [
        dataclasses.replace(metric, max_label=max(0.0, highest()))
        if isinstance(metric, ERR) and metric.max_label is None
        else metric
        for metric in metrics
    ]


def only_metric(what: str, own: Metric, requested: Metric) -> Metric:
    """The one metric of data without labels.

    Parameters
    ----------
    what : str
        What the data are, for the message.
    own : Metric
        Their metric.
    requested : Metric
        The requested metric: ``own``, or the default metric, which ``own`` replaces.

    Returns
    -------
    Metric
        ``own``.

    Raises
    ------
    OptionError
        When another metric was asked for.
    """
    if requested.name not in (own.name, DEFAULT_METRIC):
        raise OptionError(f"metric={requested.name!r} needs labels: {what} are evaluated by {own.name!r} only.")
    return own


def _available() -> str:
    return ", ".join(form for kind in dict.fromkeys(METRICS.values()) for form in _forms(kind))


def _forms(kind: type[Metric]) -> list[str]:
    if not issubclass(kind, AtCutoff):
        return [kind.label]
    at = f"{kind.label}@k"
    return [at] if kind.needs_cutoff else [kind.label, at]
