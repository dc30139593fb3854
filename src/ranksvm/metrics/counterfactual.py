"""Quality of a new ranker from clicks on the lists of old ones."""

import dataclasses
import re
from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy.special import ndtri

from ranksvm._options import check, one_of
from ranksvm._plain import plain
from ranksvm._tabular import Table, Tabular
from ranksvm.data import Queries
from ranksvm.data.numeric_column import numeric_column
from ranksvm.exceptions import DataError, OptionError
from ranksvm.metrics.click_weights import check_bias, propensities, relevances
from ranksvm.metrics.evaluation import check_confidence

__all__ = ["CounterfactualEstimate", "estimate"]

_ESTIMATORS = ("ips", "snips", "dr")
_NAME = re.compile(r"(dcg|mrr)(?:@([1-9][0-9]*))?\Z")
_RANK = "mean_relevant_rank"
# impressions that a document's relevance counts as before its own clicks, in the regression of "dr"
_PRIOR = 1.0


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
    rank = None if data is None else _new_ranks(_checked("scores", scores, data.n_rows, "the data"), data.queries)
    if estimator == "dr":
        totals = _DoublyRobust(log, data, rank, names, bias, relevance, unit).totals()
    else:
        totals = _Totals(names, unit)
        for block in log.blocks():
            new = rank[block.rows(data)] if rank is not None else _ranks_in_lists(block, scores)
            totals.add_block(block, new, relevances(block, bias))
    weights, support = _Weights(), None if rank is None else _Support(data, rank)
    for block in log.blocks():
        weights.add(1.0 / propensities(block, bias)[block.clicked])
        if support is not None:
            support.add(block)
    means, intervals = {}, {}
    for place, (name, (kind, _)) in enumerate(names.items()):
        ratio = kind == _RANK or estimator == "snips"
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
        elif str(name).strip() == _RANK:
            found[_RANK] = _RANK, None
        else:
            raise OptionError(
                f"unknown metric {name!r}: clicks can estimate dcg, dcg@k, mrr, mrr@k and {_RANK} (an ideal "
                "ranking, as NDCG needs, is not known)."
            )
        if match is not None and match[1] == "mrr" and estimator != "ips":
            raise OptionError(f"mrr is no sum over documents: there is no estimator={estimator!r} for it, use 'ips'.")
    if not found:
        raise OptionError(f"no metric is given: choose from dcg@k, mrr@k and {_RANK}.")
    return found


def _checked(name: str, values: Any, n_rows: int, owner: str) -> np.ndarray:
    numbers = numeric_column(name, values)
    if numbers.shape != (n_rows,):
        raise DataError(f"{name} has shape {numbers.shape}, but {owner} has {n_rows} rows: they must agree.")
    return numbers


def _new_ranks(scores: np.ndarray, queries: Queries) -> np.ndarray:
    """Rank, from 1, of each row within its query."""
    order = np.lexsort((-scores, queries.numbers()))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order)) - np.repeat(queries.pointers[:-1], queries.sizes) + 1
    return rank


def _ranks_in_lists(block: Any, scores: Any) -> np.ndarray:
    values = _checked("scores", scores, block.n_rows, "the log")
    return _new_ranks(values, Queries(block.pointers, None, np.arange(block.n_impressions)))


def _discounts(kind: str, cutoff: int | None, rank: np.ndarray) -> np.ndarray:
    """What a relevant document at a new rank adds."""
    if kind == _RANK:
        return rank.astype(np.float64)
    value = 1.0 / np.log2(1.0 + rank) if kind == "dcg" else 1.0 / rank
    return value if cutoff is None else np.where(rank <= cutoff, value, 0.0)


class _Totals:
    """Sums over units (impressions or queries) of metrics, of relevance, and of their squares and products."""

    def __init__(self, names: dict[str, tuple[str, int | None]], unit: str):
        self._names, self._by_query = names, unit == "query"
        self.n_impressions = 0
        # columns: one for each metric, relevance, number of impressions
        self._width = len(names) + 2
        self._sums = np.zeros((self._width, self._width))
        self._total = np.zeros(self._width)
        self._n_units = 0
        self._queries = np.zeros((0, self._width))

    def add_block(self, block: Any, rank: np.ndarray, relevance: np.ndarray) -> None:
        """Add the impressions of a block with new ranks and estimates of relevance."""
        starts = block.pointers[:-1]
        columns = []
        for kind, cutoff in self._names.values():
            terms = _discounts(kind, cutoff, rank) * relevance
            if kind == "mrr":
                terms = terms * _not_above(block, rank, relevance)
            columns.append(np.add.reduceat(terms, starts))
        self.add(block, np.column_stack([*columns, np.add.reduceat(relevance, starts), np.ones(len(starts))]))

    def add(self, block: Any, values: np.ndarray) -> None:
        """Add the impressions of a block, a row of values for each."""
        self.n_impressions += block.n_impressions
        if not self._by_query:
            self._add_units(values)
            return
        codes = block.query[block.pointers[:-1]]
        most = max(len(self._queries), int(codes.max()) + 1)
        sums = [np.bincount(codes, column, most) for column in values.T]
        self._queries = np.pad(self._queries, ((0, most - len(self._queries)), (0, 0))) + np.column_stack(sums)

    def _add_units(self, values: np.ndarray) -> None:
        self._sums += values.T @ values
        self._total += values.sum(axis=0)
        self._n_units += len(values)

    def result(self, place: int, ratio: bool, confidence: float) -> tuple[float, tuple[float, float]]:
        """A metric over relevance or over the number of impressions, and its interval."""
        if len(self._queries):
            self._add_units(self._queries[self._queries[:, -1] > 0])
            self._queries = self._queries[:0]
        below = -2 if ratio else -1
        total, size = self._total[place], self._total[below]
        if not size > 0 or self._n_units == 0:
            return np.nan, (np.nan, np.nan)
        value = total / size
        if self._n_units < 2:
            return float(value), (np.nan, np.nan)
        # linearised: the mean of (v - value * w) / mean(w) over the units is 0
        sums = self._sums
        square = sums[place, place] - 2 * value * sums[place, below] + value**2 * sums[below, below]
        error = np.sqrt(max(square, 0.0) * self._n_units / (self._n_units - 1)) / size
        half = float(ndtri(0.5 + confidence / 2)) * error
        return float(value), (float(value - half), float(value + half))


def _not_above(block: Any, rank: np.ndarray, relevance: np.ndarray) -> np.ndarray:
    """Product of 1 - relevance over the documents of the impression that the new ranker puts above each row."""
    impression = np.repeat(np.arange(block.n_impressions), np.diff(block.pointers))
    order = np.lexsort((rank, impression))
    place = np.arange(len(order)) - np.repeat(block.pointers[:-1], np.diff(block.pointers))
    table = np.ones((block.n_impressions, int(np.diff(block.pointers).max()) + 1))
    table[impression, place + 1] = 1.0 - relevance[order]
    out = np.empty(len(order))
    out[order] = np.cumprod(table, axis=1)[impression, place]
    return out


class _DoublyRobust:
    """The doubly robust estimate: two passes over the log."""

    def __init__(
        self,
        log: Any,
        data: Any,
        rank: Any,
        names: dict[str, tuple[str, int | None]],
        bias: Any,
        relevance: Any,
        unit: str,
    ):
        self._log, self._data, self._rank, self._names, self._bias = log, data, rank, names, bias
        self._unit = unit
        self._numbers = data.queries.numbers()
        self._given = None if relevance is None else _checked("relevance", relevance, data.n_rows, "the data")
        self._clip = 0.0 if bias is None or isinstance(bias, str) else bias.clip
        # propensities as they are: the clipping is that of rho
        self._plain = bias if bias is None or isinstance(bias, str) else bias.clipped(0.0)

    def totals(self) -> _Totals:
        """The sums over the impressions."""
        regression, weight = self._regressions()
        discounts = [_discounts(kind, cutoff, self._rank) for kind, cutoff in self._names.values()]
        discounts.append(np.ones(len(self._rank)))
        n_queries = self._data.queries.n_queries
        direct = [
            np.array([np.bincount(self._numbers, value * part, n_queries) for value in discounts])
            for part in regression
        ]
        totals, first = _Totals(self._names, self._unit), 0
        for block in self._log.blocks():
            rows, exposed = block.rows(self._data), propensities(block, self._plain)
            half = self._half(block, first)
            half_of_row = np.repeat(half, np.diff(block.pointers))
            m = np.where(half_of_row == 0, regression[0][rows], regression[1][rows])
            residual = (relevances(block, self._plain) - m) * exposed * weight[rows]
            query = self._numbers[rows[block.pointers[:-1]]]
            columns = [
                np.where(half == 0, direct[0][place][query], direct[1][place][query])
                + np.add.reduceat(value[rows] * residual, block.pointers[:-1])
                for place, value in enumerate(discounts)
            ]
            totals.add(block, np.column_stack([*columns, np.ones(block.n_impressions)]))
            first += block.n_impressions
        return totals

    @staticmethod
    def _half(block: Any, first: int) -> np.ndarray:
        return (first + np.arange(block.n_impressions)) % 2

    def _regressions(self) -> tuple[list[np.ndarray], np.ndarray]:
        """Regression for either half of the impressions, from the other; 1 / rho of each row, 0 where never shown."""
        n_rows = self._data.n_rows
        exposed, clicks = np.zeros((2, n_rows)), np.zeros((2, n_rows))
        asked, first = np.zeros(self._data.queries.n_queries), 0
        for block in self._log.blocks():
            rows, propensity = block.rows(self._data), propensities(block, self._plain)
            half = np.repeat(self._half(block, first), np.diff(block.pointers))
            gained = relevances(block, self._plain) * propensity
            for part in (0, 1):
                inside = half == part
                exposed[part] += np.bincount(rows[inside], propensity[inside], n_rows)
                clicks[part] += np.bincount(rows[inside], gained[inside], n_rows)
            asked += np.bincount(self._numbers[rows[block.pointers[:-1]]], minlength=len(asked))
            first += block.n_impressions
        rho = exposed.sum(axis=0) / np.maximum(asked, 1.0)[self._numbers]
        weight = np.divide(1.0, np.maximum(rho, self._clip), out=np.zeros(n_rows), where=rho > 0)
        if self._given is not None:
            return [self._given, self._given], weight
        found = []
        for part in (1, 0):
            mean = clicks[part].sum() / max(float(exposed[part].sum()), 1e-300)
            found.append((clicks[part] + _PRIOR * mean) / (exposed[part] + _PRIOR))
        return found, weight


class _Weights:
    """Weights of clicks, as counts of different values."""

    def __init__(self) -> None:
        self._values, self._counts = np.zeros(0), np.zeros(0)

    def add(self, weights: np.ndarray) -> None:
        """Add those of some clicks."""
        values, counts = np.unique(weights, return_counts=True)
        values, counts = np.concatenate((self._values, values)), np.concatenate((self._counts, counts))
        self._values, place = np.unique(values, return_inverse=True)
        self._counts = np.bincount(place.reshape(-1), weights=counts, minlength=len(self._values)).astype(np.float64)

    @property
    def n(self) -> int:
        """Number of clicks."""
        return int(self._counts.sum())

    @property
    def effective(self) -> float:
        """Effective number of clicks."""
        total = self._values @ self._counts
        return float(total**2 / (self._values**2 @ self._counts)) if total > 0 else 0.0

    @property
    def top_share(self) -> float:
        """Share of the weight in the top 1 % of the clicks."""
        if not self.n:
            return np.nan
        wanted, total = max(1.0, 0.01 * self.n), self._values @ self._counts
        counts, values = self._counts[::-1], self._values[::-1]
        taken = np.minimum(counts, np.maximum(0.0, wanted - np.concatenate(([0.0], np.cumsum(counts)[:-1]))))
        return float(values @ taken / total)


class _Support:
    """Which documents some list has shown, and how often each query was asked."""

    def __init__(self, data: Any, rank: np.ndarray):
        self._data, self._rank, self._numbers = data, rank, data.queries.numbers()
        self._shown = np.zeros(data.n_rows, dtype=bool)
        self._asked = np.zeros(data.queries.n_queries)

    def add(self, block: Any) -> None:
        """Add a block of the log."""
        rows = block.rows(self._data)
        self._shown[rows] = True
        self._asked += np.bincount(self._numbers[rows[block.pointers[:-1]]], minlength=len(self._asked))

    @property
    def unseen_share(self) -> float:
        """Share of the first ten new ranks, over the impressions, whose documents were never shown."""
        first = (self._rank <= 10) * self._asked[self._numbers]
        return float(1.0 - first[self._shown].sum() / first.sum())
