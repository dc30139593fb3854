"""Quality of models on queries that they have not learned from: means so far, and their history in bounded memory."""

import math
from typing import Any

import numpy as np

from ranksvm.clicks.interleaving import win_interval
from ranksvm.metrics import CumulativeMetrics, parse_metric

__all__ = ["ClickEstimate", "Measure", "Wins", "click_metric", "click_value"]

# Maximum number of points in a history of means; if there are more, every second point is dropped.
_MAX_POINTS = 400
# Number of queries between two points at first; it doubles when points are dropped.
_FIRST_BLOCK = 16
# Half the width of a normal 95 % interval, in standard errors.
_Z = 1.959964


class Measure:
    """The mean of a metric over the queries so far, each ranked before it was learned from.

    Parameters
    ----------
    metric : str
        The metric, such as "ndcg@10".
    state : dict, optional
        State of an earlier measure, to continue from.
    """

    def __init__(self, metric: str, state: dict[str, Any] | None = None):
        self._cumulative = CumulativeMetrics(metric)
        self._block, self._points, self._n_marks = _FIRST_BLOCK, [], 0
        if state is not None:
            self._cumulative.restore(state["cumulative"])
            self._block, self._points = state["block"], state["points"]

    def add(self, y: np.ndarray, scores: np.ndarray) -> None:
        """Add a query."""
        self._cumulative.add(y, scores)
        if self._cumulative.n_queries % self._block == 0:
            # evaluated later, in batches: one by one would take ten times longer
            self._cumulative.mark()
            self._n_marks += 1
            if len(self._points) + self._n_marks >= _MAX_POINTS:
                self._add_points()
                self._points, self._block = self._points[1::2], 2 * self._block

    def _add_points(self) -> None:
        for n_queries, sums in self._cumulative.take_marked():
            (value,), (weight,) = sums.tolist()
            self._points.append([n_queries, value, weight])
        self._n_marks = 0

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return self._cumulative.n_queries

    @property
    def mean(self) -> float | None:
        """The mean so far; None if no query has a value."""
        (mean,) = self._cumulative.means.values()
        return None if math.isnan(mean) else mean

    @property
    def state(self) -> dict[str, Any]:
        """State from which a measure can be restored, as numbers, strings, lists and dicts."""
        self._add_points()
        cumulative = self._cumulative.state
        arrays = {name: cumulative[name].tolist() for name in ("sums", "counts")}
        return {"cumulative": cumulative | arrays, "block": self._block, "points": self._points}

    def history(self) -> list[tuple[int, float, float]]:
        """Points (n, mean, h): the mean over n queries, and half the width of its 95 % interval (from block means)."""
        self._add_points()
        if not self._points:
            return []
        n_queries, totals, weights = np.array(self._points).T
        values = np.diff(totals, prepend=0.0) / np.maximum(np.diff(weights, prepend=0.0), 1e-300)
        blocks = np.arange(1, len(values) + 1)
        means = np.divide(totals, weights, out=np.zeros_like(totals), where=weights > 0)
        values = np.where(np.diff(weights, prepend=0.0) > 0, values, means)
        spread = np.cumsum(values**2) - np.cumsum(values) ** 2 / blocks
        error = np.sqrt(np.maximum(spread, 0.0) / np.maximum(blocks - 1, 1) / blocks)
        return list(zip(n_queries.astype(int).tolist(), means.tolist(), (_Z * error).tolist(), strict=True))


class ClickEstimate:
    """Mean DCG@k of a model over the rankings so far, estimated from clicks with inverse propensities.

    A ranking adds ``1 / (p log2(1 + g))`` for each clicked document: p is the propensity of the rank at which it was
    shown, and g <= k is the rank that the model gives it. With the right propensities the mean is
    unbiased for any model, whatever order was shown (Joachims, Swaminathan & Schnabel, WSDM 2017). Every ranking is
    measured before the model learns from it, so that differences from the mean are martingale differences, and the
    normal interval is valid.

    Parameters
    ----------
    cutoff : int or None
        The largest rank that counts; None: all do.
    state : dict, optional
        State of an earlier estimate, to continue from.
    """

    def __init__(self, cutoff: int | None, state: dict[str, Any] | None = None):
        self._cutoff = cutoff
        self._sums = [0.0, 0.0, 0.0, 0.0]  # of rankings, clicks, values, and squares of values
        self._block, self._points = _FIRST_BLOCK, []
        if state is not None:
            self._sums, self._block, self._points = state["sums"], state["block"], state["points"]

    def add(self, scores: np.ndarray, clicked: np.ndarray, propensity: np.ndarray) -> None:
        """Add a ranking: the model's scores, the clicks, and the propensities of the ranks that were shown."""
        value = click_value(self._cutoff, scores, clicked, propensity)
        added = 1.0, float(clicked.sum()), value, value * value
        self._sums = [total + one for total, one in zip(self._sums, added, strict=True)]
        if self._sums[0] % self._block == 0:
            self._points.append([self._sums[0], *self._sums[2:]])
            if len(self._points) >= _MAX_POINTS:
                self._points, self._block = self._points[1::2], 2 * self._block

    @property
    def rankings(self) -> int:
        """Number of rankings."""
        return int(self._sums[0])

    @property
    def clicks(self) -> int:
        """Number of clicks."""
        return int(self._sums[1])

    @property
    def state(self) -> dict[str, Any]:
        """State from which an estimate can be restored, as numbers, lists and dicts."""
        return {"sums": self._sums, "block": self._block, "points": self._points}

    def summary(self) -> dict[str, Any]:
        """Mean and 95 % interval, and the history: number of rankings, mean, and half the width of the interval."""
        rankings, clicks, *values = self._sums
        mean, half = _normal(rankings, *values)
        return {
            "rankings": int(rankings),
            "clicks": int(clicks),
            "mean": mean,
            "low": mean - half,
            "high": mean + half,
            "history": [(int(n), *_normal(n, total, square)) for n, total, square in self._points],
        }


def click_metric(metric: str) -> tuple[str, int | None]:
    """Name and cutoff of the metric estimated from clicks: DCG with the cutoff of the metric computed from labels."""
    cutoff = getattr(parse_metric(metric), "cutoff", None)
    return "dcg" if cutoff is None else f"dcg@{cutoff}", cutoff


def click_value(cutoff: int | None, scores: np.ndarray, clicked: np.ndarray, propensity: np.ndarray) -> float:
    """DCG of the ranking by ``scores``, estimated from clicks: see `ClickEstimate`. Ties keep the row order."""
    (rows,) = np.nonzero(clicked)
    own = scores[rows, np.newaxis]
    earlier = np.arange(len(scores)) < rows[:, np.newaxis]
    rank = 1.0 + ((scores > own) | ((scores == own) & earlier)).sum(axis=1)
    gain = 1.0 / (propensity[rows] * np.log2(1.0 + rank))
    return float(gain.sum() if cutoff is None else gain[rank <= cutoff].sum())


def _normal(n: float, total: float, square: float) -> tuple[float, float]:
    """Mean, and half the width of its 95 % interval; 0 for a single value."""
    mean = total / n
    variance = max(square / n - mean * mean, 0.0) / max(n - 1.0, 1.0)
    return mean, _Z * math.sqrt(variance)


class Wins:
    """Counts of interleaved rankings by winner: the model with more clicked documents wins.

    Parameters
    ----------
    counts : dict of str to int, optional
        Wins by model, and "ties".
    """

    def __init__(self, counts: dict[str, int] | None = None):
        self.counts = {"champion": 0, "challenger": 0, "ties": 0} if counts is None else counts

    def add(self, teams: list[str], clicked: np.ndarray) -> None:
        """Add a ranking: the model of the document at each rank, and whether it was clicked on."""
        own = sum(1 for team, click in zip(teams, clicked, strict=True) if click and team == "champion")
        other = int(clicked.sum()) - own
        winner = "ties" if own == other else "champion" if own > other else "challenger"
        self.counts[winner] += 1

    def verdict(self, confidence: float = 0.95) -> dict[str, Any]:
        """The share of the challenger's wins, its interval, and which model is better so far."""
        won, lost = self.counts["challenger"], self.counts["champion"]
        low, high = win_interval(won, lost, confidence)
        better = "challenger" if low > 0.5 else "champion" if high < 0.5 else None
        share = won / (won + lost) if won + lost else None
        return {**self.counts, "share": share, "interval": [low, high], "confidence": confidence, "better": better}
