"""Quality of a new ranker from clicks on the lists of old ones."""

import dataclasses
import re
from collections.abc import Iterable
from typing import Any

import numpy as np

from ranksvm._options import check, one_of
from ranksvm._plain import plain
from ranksvm._tabular import Table, Tabular
from ranksvm.data import Queries
from ranksvm.exceptions import OptionError
from ranksvm.metrics._counterfactual_sums import MEAN_RANK, Support, Totals, Weights, one_per_row
from ranksvm.metrics._doubly_robust import DoublyRobust
from ranksvm.metrics.click_weights import check_bias, check_log, propensities, relevances
from ranksvm.metrics.evaluation import check_confidence

__all__ = ["CounterfactualEstimate", "estimate"]

_ESTIMATORS = ("ips", "snips", "dr")
_NAME = re.compile(r"(dcg|mrr)(?:@([1-9][0-9]*))?\Z")


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
        ``(sum of w)^2 / (sum of w^2)`` over the weights ``w = 1 / propensity`` of the clicks: as many clicks of equal
        weight would say as much.
    top_share : float
        Share of the weight in the top 1 % of the clicks; near 0.01 if all weigh the same.
    unseen_share : float
        Share of the first ten ranks of the new ranker, over the impressions, whose documents no list of their query
        ever showed: what clicks cannot tell. NaN without ``data``.
    clip : float
        Limit of the propensities.
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
    """

    means: dict[str, float]
    intervals: dict[str, tuple[float, float]]
    estimator: str
    n_impressions: int
    n_clicks: int
    effective_clicks: float
    top_share: float
    unseen_share: float
    clip: float
    confidence: float

    def __getitem__(self, metric: str) -> float:
        if metric not in self.means:
            raise OptionError(f"{metric!r} was not estimated: choose from {', '.join(self.means)}.")
        return self.means[metric]

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
            f"{self.estimator}, {self.n_impressions:,} impressions, {self.n_clicks:,} clicks (worth "
            f"{self.effective_clicks:,.0f} of equal weight; {100 * self.top_share:.1f} % of the weight in the top 1 %)"
        )
        return Table(columns, facts)

    def __repr__(self) -> str:
        values = ", ".join(
            f"{name}={value:.4f} [{self.intervals[name][0]:.4f}, {self.intervals[name][1]:.4f}]"
            for name, value in self.means.items()
        )
        return (
            f"CounterfactualEstimate({values}; {self.estimator}, {self.n_impressions} impressions, "
            f"{self.effective_clicks:.0f} effective of {self.n_clicks} clicks)"
        )


def estimate(
    log: Any,
    scores: Any,
    metrics: str | Iterable[str] = ("dcg@10",),
    bias: Any = None,
    *,
    data: Any = None,
    estimator: str = "ips",
    clip: float | None = None,
    relevance: Any = None,
    unit: str = "impression",
    confidence: float = 0.95,
) -> CounterfactualEstimate:
    """Quality of a ranker that nobody has used, from clicks on the lists of others.

    Let ``r(d)`` be the relevance of a document: the probability that a user clicks on it once its rank is examined.
    A click c at rank k estimates it by ``(c - offset_k) / propensity_k`` without bias, if the propensities are right
    and every document of positive relevance has a positive chance of being shown. With g the rank that the new ranker
    gives to a document among all of its query:

    - ``"dcg@k"``: mean over impressions of the sum of ``r(d) / log2(1 + g)`` over ``g <= k``.
    - ``"mrr@k"``: mean of 1 / g of the first relevant document: the sum of ``r(d) / g`` times the product of
      ``1 - r(d')`` over the documents d' above. Unbiased if clicks of an impression are independent given what is
      shown; its variance grows quickly with k.
    - ``"mean_relevant_rank"``: the sum of ``r(d) g`` over the sum of ``r(d)``, a ratio with every estimator (Joachims,
      Swaminathan & Schnabel, WSDM 2017, section 4, who leave out the denominator).

    Estimators:

    - ``"ips"``: sums of these over the impressions, divided by their number.
    - ``"snips"``: self-normalised (Swaminathan & Joachims, NeurIPS 2015): ``"dcg@k"`` is divided by the estimated
      number of relevant documents, not of impressions. This is another quantity, a mean discount for each relevant
      document, and does not depend on the factor up to which propensities are identified.
    - ``"dr"``: doubly robust (Oosterhuis, "Doubly-robust estimation for correcting position-bias in click feedback for
      unbiased learning to rank", TOIS 2023): r(d) is a regression m(d), plus the mean over the impressions of the query
      of ``(c - offset_k - propensity_k m(d)) / max(rho(d), clip)``, where rho(d) is the mean propensity of the document
      in these impressions (0 where it is not shown). Needs ``data``. m is ``relevance``, or for each half of the
      impressions the click rate over the propensity in the other half, shrunk to the mean of all documents.

    Intervals are normal, for propensities that are known: the uncertainty of estimated ones comes on top.

    Parameters
    ----------
    log : ClickLog or ClickLogFile
        The log.
    scores : array-like of shape (n_rows,)
        Score that the new ranker gives to each row of ``data``, or, without it, of the log. Ties are ordered by row.
    metrics : str or iterable of str, default ("dcg@10",)
        What to estimate: ``dcg``, ``dcg@k``, ``mrr``, ``mrr@k``, ``mean_relevant_rank``.
    bias : PositionBias, "log" or None
        Propensities of the ranks; ``"log"``: those of the log's rows. None: none, the naive estimate.
    data : RankingData, optional
        All documents of the queries, which the new ranker ranks. None: it ranks what each impression showed.
    estimator : {"ips", "snips", "dr"}, default "ips"
        How to estimate.
    clip : float, optional
        Propensities below count as this: less variance, and bias (`PositionBias.clipped`). None: the limit of ``bias``.
    relevance : array-like of shape (n_rows,), optional
        Predicted relevance of each row of ``data``, for ``"dr"``.
    unit : {"impression", "query"}, default "impression"
        What is a random sample: impressions of this traffic, or its queries, for statements about other queries.
    confidence : float, default 0.95
        Level of the intervals.

    Returns
    -------
    CounterfactualEstimate
        Estimates, intervals, and how much the clicks weigh.

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
    rank = None if data is None else _new_ranks(one_per_row("scores", scores, data.n_rows, "the data"), data.queries)
    if estimator == "dr":
        totals = DoublyRobust(log, data, rank, names, bias, relevance, unit).totals()
    else:
        totals = Totals(names, unit)
        for block in log.blocks():
            new = rank[block.rows(data)] if rank is not None else _ranks_in_lists(block, scores)
            totals.add_block(block, new, relevances(block, bias))
    weights, support = Weights(), None if rank is None else Support(data, rank)
    for block in log.blocks():
        weights.add(1.0 / propensities(block, bias)[block.clicked])
        if support is not None:
            support.add(block)
    means, intervals = {}, {}
    for place, (name, (kind, _)) in enumerate(names.items()):
        ratio = kind == MEAN_RANK or estimator == "snips"
        means[name], intervals[name] = totals.result(place, ratio, confidence)
    return CounterfactualEstimate(
        means,
        intervals,
        estimator,
        totals.n_impressions,
        weights.n,
        weights.effective,
        weights.top_share,
        np.nan if support is None else support.unseen_share,
        0.0 if bias is None or isinstance(bias, str) else bias.clip,
        confidence,
    )


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
        if match is not None and match[1] == "mrr" and estimator != "ips":
            raise OptionError(f"mrr is no sum over documents: there is no estimator={estimator!r} for it, use 'ips'.")
    if not found:
        raise OptionError(f"no metric is given: choose from dcg@k, mrr@k and {MEAN_RANK}.")
    return found


def _new_ranks(scores: np.ndarray, queries: Queries) -> np.ndarray:
    """Rank, from 1, of each row within its query."""
    order = np.lexsort((-scores, queries.numbers()))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order)) - np.repeat(queries.pointers[:-1], queries.sizes) + 1
    return rank


def _ranks_in_lists(block: Any, scores: Any) -> np.ndarray:
    values = one_per_row("scores", scores, block.n_rows, "the log")
    return _new_ranks(values, Queries(block.pointers, None, np.arange(block.n_impressions)))
