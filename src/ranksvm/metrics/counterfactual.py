"""Quality of a new ranker from clicks on the lists of old ones."""

import dataclasses
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ranksvm._util.checks import check, one_of
from ranksvm._util.tables import Table, Tabular
from ranksvm._util.text import plain
from ranksvm.data.numeric_column import numeric_column
from ranksvm.exceptions import DataError, OptionError
from ranksvm.metrics.click_sums import (
    Bias,
    Deviation,
    Exposures,
    Log,
    Residuals,
    Support,
    check_bias,
    check_log,
    doubly_robust,
    exposures,
    inverse_exposure,
    list_exposures,
    weight_facts,
)
from ranksvm.metrics.evaluation import check_confidence

if TYPE_CHECKING:
    from ranksvm.datasets import RankingData

__all__ = ["CounterfactualEstimate", "estimate"]

MEAN_RANK = "mean_relevant_rank"
_ESTIMATORS = ("ips", "snips", "dr")
_NAME = re.compile(r"(dcg|mrr)(?:@([1-9][0-9]*))?\Z")
# an estimate has a note if its unseen share is at least half a percent
_MATERIAL = 0.005


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class CounterfactualEstimate(Tabular):
    """The result of `estimate`.

    Parameters
    ----------
    means : dict of str to float
        Metric name -> estimate.
    intervals : dict of str to tuple of float
        Metric name -> ends of its confidence interval, for given propensities.
    estimator : str
        "ips", "snips" or "dr".
    n_impressions, n_clicks : int
        Size of the log.
    effective_clicks : float
        ``(sum of w)^2 / (sum of w^2)``; the weight w of a click is 1 over the mean exposure of its document. This
        number of clicks of equal weight would give as precise an estimate.
    top_share : float
        Share of the weight in the top 1 % of the clicks; near 0.01 if all weigh the same.
    unseen_share : float
        Share of the new ranker's first ten ranks that hold documents without clicks, because no list of the query ever
        showed them. Ranks are weighted by their DCG discount, queries by their number of impressions. NaN
        without ``data``.
    unseen_by_ranker : dict of str to float
        Ranker of the log -> the share of these ranks whose documents its lists never showed. Empty without ``data``, or
        if the log does not name its rankers.
    clip : float
        Lower limit of the mean exposures: smaller ones are raised to it.
    confidence : float
        Level of the intervals.

    Examples
    --------
    >>> from ranksvm import make_ranking, metrics
    >>> from ranksvm.clicks import PositionBias, simulate_clicks
    >>> data = make_ranking(n_queries=50, n_docs=10, n_features=3, random_state=0)
    >>> log = simulate_clicks(data, data.X[:, 0], 5_000, random_state=0)
    >>> found = metrics.estimate(log, data.X[:, 1], "dcg@5", PositionBias.power(10), data=data)
    >>> low, high = found.intervals["dcg@5"]
    >>> low < found["dcg@5"] < high, found.effective_clicks < found.n_clicks, found.unseen_share
    (True, True, 0.0)

    Lists of five documents leave others unseen:

    >>> short = simulate_clicks(data, data.X[:, 0], 5_000, n_ranks=5, random_state=0)
    >>> print(metrics.estimate(short, data.X[:, 1], "dcg@5", PositionBias.power(10), data=data).note)
    No list showed the documents at 50.7 % of the first ten ranks (by DCG discount): DCG and MRR are lower bounds.
    """

    means: dict[str, float]
    intervals: dict[str, tuple[float, float]]
    estimator: str
    n_impressions: int
    n_clicks: int
    effective_clicks: float
    top_share: float
    unseen_share: float
    unseen_by_ranker: dict[str, float]
    clip: float
    confidence: float

    def __getitem__(self, metric: str) -> float:
        if metric not in self.means:
            raise OptionError(f"{metric!r} was not estimated: choose from {', '.join(self.means)}.")
        return self.means[metric]

    @property
    def note(self) -> str:
        """One sentence about how documents that were never shown affect the estimate; empty if there are too few to
        matter."""
        if not self.unseen_share >= _MATERIAL:
            return ""
        meaning = {
            "ips": "DCG and MRR are lower bounds",
            "snips": "they are ignored",
            "dr": "there the estimate rests on predicted relevance alone",
        }
        share = f"{100 * self.unseen_share:.1f} %"
        return (
            f"No list showed the documents at {share} of the first ten ranks (by DCG discount): "
            f"{meaning[self.estimator]}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values, ready for JSON; an undefined value is None.

        Returns
        -------
        dict
            One entry per parameter.
        """
        return plain(dataclasses.asdict(self))

    def _table(self) -> Table:
        columns = {
            "metric": list(self.means),
            "estimate": list(self.means.values()),
            "low": [low for low, _ in self.intervals.values()],
            "high": [high for _, high in self.intervals.values()],
        }
        facts = (
            f"{self.estimator}, {self.n_impressions:,} impressions, {self.n_clicks:,} clicks (as "
            f"informative as {self.effective_clicks:,.0f} of equal weight; {100 * self.top_share:.1f} % of the weight "
            "in the top 1 %)"
        )
        return Table(columns, ". ".join([facts, *filter(None, [self.note.rstrip(".")])]))

    def __repr__(self) -> str:
        values = ", ".join(
            f"{name}={value:.4f} [{self.intervals[name][0]:.4f}, {self.intervals[name][1]:.4f}]"
            for name, value in self.means.items()
        )
        unseen = "" if np.isnan(self.unseen_share) else f", {100 * self.unseen_share:.1f} % unseen"
        return (
            f"CounterfactualEstimate({values}; {self.estimator}, {self.n_impressions} impressions, "
            f"{self.effective_clicks:.0f} effective of {self.n_clicks} clicks{unseen})"
        ) + (f"\n  {self.note}" if self.note else "")


def estimate(
    log: Log,
    scores: ArrayLike,
    metrics: str | Iterable[str] = ("dcg@10",),
    bias: Bias = None,
    *,
    data: "RankingData | None" = None,
    estimator: str = "ips",
    clip: float | None = None,
    relevance: ArrayLike | None = None,
    unit: str = "impression",
    confidence: float = 0.95,
) -> CounterfactualEstimate:
    """Quality of a ranker that nobody has used, from clicks on the lists of others.

    Let ``r(d)`` be the relevance of a document d of a query: the probability that a user clicks on it once its rank is
    examined. Let the exposure ``rho(d)`` be the mean, over the impressions of the query by all rankers, of the
    propensity of the rank at which d was shown, or 0 if it was not shown. For one impression, let the gain of d be
    ``click - offset``, or 0 if d was not shown; the offset of a rank is the constant part of its click probability
    (`PositionBias.offset`, 0 without trust bias). Then ``r(d)`` is estimated by the mean gain over the same
    impressions, divided by ``rho(d)``: the policy-aware estimator (Oosterhuis & de Rijke, "Policy-aware unbiased
    learning to rank for top-k rankings", SIGIR 2020). It is unbiased if the propensities are right and ``rho(d) > 0``.
    Let g be the rank that the new ranker gives to a document among all documents of its query. The metrics are:

    - ``"dcg@k"``: mean over impressions of the sum of ``r(d) / log2(1 + g)`` over ``g <= k``.
    - ``"mrr@k"``: mean of 1 / g of the first relevant document: the sum of ``r(d) / g`` times the product of ``1 -
      r(d')`` over the documents d' above. The estimate is unbiased if the clicks of an impression are independent given
      the documents shown.
    - ``"mean_relevant_rank"``: the sum of ``r(d) g`` divided by the sum of ``r(d)``, with every estimator (Joachims,
      Swaminathan & Schnabel, WSDM 2017, section 4, who leave out the denominator).

    Documents that no list of their query showed have no clicks, and count as 0; ``unseen_share`` says how much is
    missing.

    Estimators:

    - ``"ips"``: the means above.
    - ``"snips"``: self-normalized (Swaminathan & Joachims, NeurIPS 2015): ``"dcg@k"`` is divided by the estimated
      number of relevant documents, not of impressions. This is another quantity: the mean discount of a relevant
      document. Propensities are identified only up to a common factor, and this quantity does not depend on the factor.
      ``"mrr@k"`` has no such form, and is refused.
    - ``"dr"``: doubly robust (Oosterhuis, "Doubly-robust estimation for correcting position-bias in click feedback for
      unbiased learning to rank", TOIS 2023): r(d) is a regression m(d), plus the mean over the impressions of the query
      of ``(click - offset - propensity m(d)) / max(rho(d), clip)``. Needs ``data``. m is ``relevance`` if given.
      Otherwise it is the sum of ``click - offset`` divided by the sum of the propensities, shrunk toward the mean of
      all documents. The estimate of r(d) differs from ``"ips"`` only for documents that were never shown, or whose
      exposure is clipped.

    Intervals are based on the normal distribution. They treat propensities as known, and do not include the uncertainty
    of estimated ones. Conditional on the lists shown, the exposures are known numbers. The variance has two parts: the
    variance of clicks around the relevance of the documents shown, and the variance between the queries of the traffic.

    Parameters
    ----------
    log : ClickLog or ClickLogFile
        The log; a file is read twice.
    scores : array-like of shape (n_rows,)
        Score that the new ranker gives to each row of ``data``, or, without it, of the log. Ties are ordered by row.
        A log sorts its rows: if the scores are in the order of the arrays that it was made from, and ``log.order`` is
        not None, pass ``scores[log.order]``.
    metrics : str or iterable of str, default ("dcg@10",)
        What to estimate: ``dcg``, ``dcg@k``, ``mrr``, ``mrr@k``, ``mean_relevant_rank``.
    bias : PositionBias, "log" or None
        Propensities of the ranks; ``"log"``: the propensities in the log's rows. None: every rank counts as examined,
        the naive estimate.
    data : RankingData, optional
        All documents of the queries, which the new ranker ranks. None: it ranks what each impression showed, and each
        click is divided by the propensity of its own rank.
    estimator : {"ips", "snips", "dr"}, default "ips"
        How to estimate.
    clip : float, optional
        Smaller mean exposures are raised to this: less variance, but more bias. None: the limit of ``bias``
        (`PositionBias.clipped`).
    relevance : array-like of shape (n_rows,), optional
        Predicted relevance of each row of ``data``, for ``"dr"``.
    unit : {"impression", "query"}, default "impression"
        What intervals take as a random sample: the impressions of this traffic, or its queries. The latter is for
        statements about other queries.
    confidence : float, default 0.95
        Level of the intervals.

    Returns
    -------
    CounterfactualEstimate
        Estimates, intervals, and facts about the weights of the clicks.

    Raises
    ------
    DataError
        When scores do not match the rows, or the log does not match the data or the propensities.
    OptionError
        When an option is unknown or out of range.

    Examples
    --------
    >>> from ranksvm import make_ranking, metrics
    >>> from ranksvm.clicks import PositionBias, simulate_clicks
    >>> data = make_ranking(n_queries=50, n_docs=10, n_features=3, random_state=0)
    >>> log = simulate_clicks(data, data.X[:, 0], 20_000, random_state=0)
    >>> metrics.estimate(log, data.X[:, 1], "dcg@5", PositionBias.power(10), data=data)
    CounterfactualEstimate(dcg@5=...)
    """
    check(estimator=one_of(estimator, _ESTIMATORS), unit=one_of(unit, ("impression", "query")))
    check_confidence(confidence)
    check_log(log)
    check_bias(bias)
    names = _parsed(metrics, estimator)
    if clip is not None:
        if bias is None or isinstance(bias, str):
            raise OptionError("clip is a limit of the propensities of a PositionBias, which is not given.")
        bias = bias.clipped(clip)
    if estimator == "dr" and data is None:
        raise OptionError("estimator='dr' predicts the relevance of all documents of a query: give data=.")
    if relevance is not None and estimator != "dr":
        raise OptionError(f"relevance is the regression of estimator='dr'; {estimator!r} does not use it.")
    if data is None:
        sums, group = list_exposures(log, bias)
        rank = _new_ranks(_one_per_row("scores", scores, len(sums.query), "the log"), sums)
    else:
        sums = exposures(log, data, bias)
        group = np.arange(len(sums.impressions))
        rank = _new_ranks(_one_per_row("scores", scores, len(sums.query), "the data"), sums)
    if estimator == "dr":
        given = None if relevance is None else _one_per_row("relevance", relevance, len(sums.query), "the data")
        documents = doubly_robust(sums, given)
    else:
        documents = inverse_exposure(sums)
    deviations = [
        _deviation(kind, cutoff, rank, documents.relevance, sums, ratio=kind == MEAN_RANK or estimator == "snips")
        for kind, cutoff in names.values()
    ]
    residuals = Residuals(sums, bias, [one.row * documents.slope for one in deviations])
    support = None
    if data is not None:
        support = Support(sums, rank)
        for block in log.blocks():
            rows = block.rows(data)
            support.add(block, rows)
            if unit == "impression":
                residuals.add(block, rows)
    if unit == "impression":
        n_units = int(sums.impressions.sum())
        squares = residuals.squares + [one.query**2 @ sums.impressions for one in deviations]
    else:
        n_units = int(np.count_nonzero(np.bincount(group, sums.impressions)))
        squares = np.array([(np.bincount(group, sums.impressions * one.query) ** 2).sum() for one in deviations])
    intervals = [
        one.interval(float(square), n_units, confidence) for one, square in zip(deviations, squares, strict=True)
    ]
    n_clicks, effective, top_share = weight_facts(sums)
    return CounterfactualEstimate(
        dict(zip(names, [one.value for one in deviations], strict=True)),
        dict(zip(names, intervals, strict=True)),
        estimator,
        int(sums.impressions.sum()),
        n_clicks,
        effective,
        top_share,
        np.nan if support is None else support.unseen_share,
        {} if support is None else support.unseen_by_ranker,
        sums.clip,
        confidence,
    )


def _deviation(
    kind: str, cutoff: int | None, rank: np.ndarray, relevance: np.ndarray, sums: Exposures, *, ratio: bool
) -> Deviation:
    """A metric, divided by the number of impressions or by the number of relevant documents."""
    value, slope = ranking_value(kind, cutoff, rank, relevance, sums.query, len(sums.impressions))
    divisor = np.bincount(sums.query, relevance, len(value)) if ratio else np.ones(len(value))
    size = float(sums.impressions @ divisor)
    mean = float(sums.impressions @ value) / size if size > 0 else np.nan
    return Deviation(mean, size, value - mean * divisor, slope - mean if ratio else slope)


def _parsed(metrics: str | Iterable[str], estimator: str) -> dict[str, tuple[str, int | None]]:
    names = metrics.split(",") if isinstance(metrics, str) else list(metrics)
    found: dict[str, tuple[str, int | None]] = {}
    for name in names:
        match = _NAME.match(str(name).strip().lower().replace("-", "_"))
        if match is not None:
            found[match[0]] = match[1], None if match[2] is None else int(match[2])
        elif str(name).strip() == MEAN_RANK:
            found[MEAN_RANK] = MEAN_RANK, None
        else:
            raise OptionError(
                f"unknown metric {name!r}: clicks can estimate dcg, dcg@k, mrr, mrr@k and {MEAN_RANK} (an ideal "
                "ranking, as NDCG needs, is not known)."
            )
        if match is not None and match[1] == "mrr" and estimator == "snips":
            raise OptionError("mrr is not a sum over documents: it has no estimator='snips', use 'ips' or 'dr'.")
    if not found:
        raise OptionError(f"no metric is given: choose from dcg@k, mrr@k and {MEAN_RANK}.")
    return found


def _one_per_row(name: str, values: ArrayLike, n_rows: int, owner: str) -> np.ndarray:
    numbers = numeric_column(name, values)
    if numbers.shape != (n_rows,):
        raise DataError(f"{name} has shape {numbers.shape}, but {owner} has {n_rows} rows: they must agree.")
    return numbers


def _new_ranks(scores: np.ndarray, sums: Exposures) -> np.ndarray:
    """Rank, from 1, of each row within its query."""
    order = np.lexsort((-scores, sums.query))
    query = sums.query[order]
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order)) - np.searchsorted(query, query) + 1
    return rank


class RankingValue(NamedTuple):
    """A metric of each query, and its derivative with respect to the relevance of each row."""

    value: np.ndarray
    slope: np.ndarray


def _discounts(kind: str, cutoff: int | None, rank: np.ndarray) -> np.ndarray:
    """What a relevant document at a rank adds to a metric that is a sum over documents."""
    if kind == MEAN_RANK:
        return rank.astype(np.float64)
    value = 1.0 / np.log2(1.0 + rank)
    return value if cutoff is None else np.where(rank <= cutoff, value, 0.0)


def ranking_value(
    kind: str, cutoff: int | None, rank: np.ndarray, relevance: np.ndarray, query: np.ndarray, n_queries: int
) -> RankingValue:
    """Value of the ranking of each query: DCG, the sum of the ranks of relevant documents, or MRR."""
    if kind == "mrr":
        return _reciprocal_rank(cutoff, rank, relevance, query, n_queries)
    slope = _discounts(kind, cutoff, rank)
    return RankingValue(np.bincount(query, slope * relevance, n_queries), slope)


def _reciprocal_rank(
    cutoff: int | None, rank: np.ndarray, relevance: np.ndarray, query: np.ndarray, n_queries: int
) -> RankingValue:
    """Expected 1 / rank of the first relevant document, if documents are relevant independently of each other.

    Let V_g be the expected value for a user who reaches rank g: ``V_g = r_g / g + (1 - r_g) V_(g + 1)``. The metric is
    V_1, and its derivative with respect to r_g is ``(1 / g - V_(g + 1))`` times the probability of reaching g.
    """
    order = np.argsort(rank, kind="stable")
    borders = np.searchsorted(rank[order], np.arange(1, int(rank.max(initial=0)) + 2))
    depth = len(borders) - 1 if cutoff is None else min(cutoff, len(borders) - 1)
    value, reached = np.zeros(n_queries), np.ones(n_queries)
    below, slope = np.zeros(len(rank)), np.zeros(len(rank))
    ranks = [(g, order[borders[g - 1] : borders[g]]) for g in range(1, depth + 1)]
    for g, rows in reversed(ranks):
        below[rows] = value[query[rows]]
        value[query[rows]] = relevance[rows] / g + (1.0 - relevance[rows]) * below[rows]
    for g, rows in ranks:
        slope[rows] = reached[query[rows]] * (1.0 / g - below[rows])
        reached[query[rows]] *= 1.0 - relevance[rows]
    return RankingValue(value, slope)
