"""Progressive (prequential) validation: each query is ranked first, then learned from."""

import contextlib
import dataclasses
import time
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from ranksvm._util.checks import check_one_per_row, is_integer, is_sparse
from ranksvm._util.random_states import random_numbers
from ranksvm._util.text import plain
from ranksvm._util.threads import effective_n_jobs, parallel_map
from ranksvm._util.types import MatrixLike, RandomState
from ranksvm.data import Queries
from ranksvm.data.frames import column_names, refuse_reserved_columns, split_qid, take_rows
from ranksvm.data.numeric_column import label_column
from ranksvm.data.queries import id_array
from ranksvm.datasets.ranking_data import RankingData
from ranksvm.exceptions import DataError, OptionError
from ranksvm.metrics import Convention, Metric, evaluate, parse_metric, parse_metrics
from ranksvm.metrics.conventions import convention_named
from ranksvm.metrics.cumulative import check_scale

__all__ = ["ProgressiveValidation", "progressive_validation"]

# Number of queries that are passed to a model in one call, and number of rows whose scores are evaluated in one call:
# large enough that the overhead of calls is small.
_QUERIES, _ROWS = 256, 1 << 16

# Features, labels and query ids of the rows of some queries.
Batch = tuple[MatrixLike, np.ndarray, ArrayLike | None]
# Data, or an iterable of queries, of batches or of `RankingData`.
Stream = RankingData | MatrixLike | Iterable[Any]


class OnlineModel(Protocol):
    """A model that learns query by query."""

    def predict(self, X: MatrixLike, /) -> np.ndarray: ...
    def partial_fit(self, X: MatrixLike, y: np.ndarray, /) -> object: ...


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class ProgressiveValidation:
    """The result of `progressive_validation`; queries are in the order in which they arrived.

    Parameters
    ----------
    per_query : dict of str to ndarray of float64, shape (n_orders, n_queries)
        Metric name -> value of each query, ranked before it was learned from; NaN where the metric is undefined.
    weights : dict of str to ndarray of float64, shape (n_orders, n_queries)
        Metric name -> weight of each query in the means, 0 where the value is NaN.
    qid : ndarray, shape (n_orders, n_queries)
        Ids of the queries; for a stream of queries without ids, their numbers from 0.
    models : list
        The final model of each order.
    convention : str
        Name of the convention.
    rank_seconds, learn_seconds : ndarray of float64, shape (n_orders, n_queries), or None
        Wall-clock time of ranking each query and of learning from it, on request.

    Examples
    --------
    >>> from ranksvm import SOLARRanker, make_ranking, progressive_validation
    >>> data = make_ranking(n_queries=20, n_docs=8, n_features=4, random_state=0)
    >>> found = progressive_validation(SOLARRanker(random_state=0), data, n_orders=3, random_state=0)
    >>> found.n_orders, found.n_queries, found.cumulative["ndcg@10"].shape
    (3, 20, (3, 20))
    """

    per_query: dict[str, np.ndarray]
    weights: dict[str, np.ndarray]
    qid: np.ndarray
    models: list[Any]
    convention: str
    rank_seconds: np.ndarray | None = None
    learn_seconds: np.ndarray | None = None

    @property
    def n_orders(self) -> int:
        """Number of orders of the queries."""
        return self.qid.shape[0]

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return self.qid.shape[1]

    @property
    def cumulative(self) -> dict[str, np.ndarray]:
        """Metric name -> after each query, the mean over the queries so far; shape (n_orders, n_queries)."""
        return {name: self.curve(name) for name in self.per_query}

    @property
    def means(self) -> dict[str, float]:
        """Metric name -> mean over the orders of the mean over all queries."""
        return {name: float(self._ends(name).mean()) for name in self.per_query}

    @property
    def stds(self) -> dict[str, float]:
        """Metric name -> standard deviation over the orders (with n_orders - 1; 0 for one)."""
        return {name: float(self._ends(name).std(ddof=1)) if self.n_orders > 1 else 0.0 for name in self.per_query}

    def __getitem__(self, metric: str | Metric) -> float:
        return float(self._ends(self._name(metric)).mean())

    def curve(self, metric: str | Metric, window: int | None = None) -> np.ndarray:
        """After each query, the mean of a metric over all queries so far, or over the latest of them.

        Parameters
        ----------
        metric : str or Metric
            One of the evaluated metrics.
        window : int, optional
            Number of the latest queries in a moving mean, which shows the current quality of a model under drift; None:
            all so far.

        Returns
        -------
        ndarray of float64, shape (n_orders, n_queries)
            The means; NaN if no query among them has a value.

        Raises
        ------
        OptionError
            When the metric was not evaluated, or the window is not a positive integer.
        """
        name = self._name(metric)
        if window is not None and not (is_integer(window) and window >= 1):
            raise OptionError(f"window must be None or a positive integer, got {window!r}.")
        weights = self.weights[name]
        sums = np.cumsum([weights * np.nan_to_num(self.per_query[name]), weights], axis=2)
        if window is not None:
            sums[:, :, window:] -= sums[:, :, :-window].copy()
        total, weight = sums
        return np.divide(total, weight, out=np.full(total.shape, np.nan), where=weight > 0)

    def to_dict(self, per_query: bool = False) -> dict[str, Any]:
        """Plain Python values, ready for JSON; an undefined value is None.

        Parameters
        ----------
        per_query : bool, default False
            Whether the values of the queries are included.

        Returns
        -------
        dict
            ``convention``, ``n_orders``, ``n_queries``, ``means``, ``stds``, and on request ``qid``, ``per_query``.
        """
        out: dict[str, Any] = {
            "convention": self.convention,
            "n_orders": self.n_orders,
            "n_queries": self.n_queries,
            "means": plain(self.means),
            "stds": plain(self.stds),
        }
        if per_query:
            out["qid"] = self.qid.tolist()
            out["per_query"] = plain(self.per_query)
        return out

    def __repr__(self) -> str:
        stds = self.stds
        values = ", ".join(
            f"{name}={value:.4f}" + f"±{stds[name]:.4f}" * (self.n_orders > 1) for name, value in self.means.items()
        )
        orders = f"{self.n_orders} order{'s' * (self.n_orders > 1)} of {self.n_queries} queries"
        if self.n_orders > 1:
            orders = f"mean ± standard deviation of {orders}"
        return f"ProgressiveValidation({values}; {orders}, convention {self.convention!r})"

    def _name(self, metric: str | Metric) -> str:
        name = parse_metric(metric).name
        if name not in self.per_query:
            raise OptionError(f"{name!r} was not evaluated: choose from {', '.join(self.per_query)}.")
        return name

    def _ends(self, name: str) -> np.ndarray:
        return self.curve(name)[:, -1]


def progressive_validation(
    model: Any,
    stream: Stream,
    y: ArrayLike | None = None,
    *,
    qid: ArrayLike | None = None,
    metrics: str | Metric | Iterable[str | Metric] = ("ndcg@1", "ndcg@5", "ndcg@10", "map"),
    convention: str | Convention = "default",
    n_orders: int | None = None,
    max_label: float | None = None,
    timing: bool = False,
    random_state: RandomState = None,
    n_jobs: int | None = None,
) -> ProgressiveValidation:
    """Progressive (prequential) validation: evaluate a model on each query before it learns from the query.

    Every ranked query is new to the model, so no data need to be held out. Before the model has learned anything all
    scores are equal: the documents of the first query keep their order, or are evaluated by the mean over their orders,
    depending on the convention.

    Parameters
    ----------
    model : object
        Has ``predict(X)`` and ``partial_fit(X, y)`` for one query, and can be cloned: an online ranker, or a model in a
        `Refit`. It is not changed; an unfitted clone learns from each order.
    stream : RankingData, array-like, sparse matrix or DataFrame of shape (n_rows, n_features), or iterable
        Data, whose queries are used in the order in which they first appear, or in random orders. Or, without ``y``, an
        iterable, which is used in its own order: of queries ``(X, y)``, of batches of whole queries ``(X, y, qid)``, or
        of `RankingData`. It may be larger than memory, because only a few numbers per query are stored.
    y : array-like of shape (n_rows,), optional
        Labels, if ``stream`` holds features.
    qid : array-like of shape (n_rows,) or str, optional
        Query of each of these rows, in any order, or the column that has them.
    metrics : str, Metric, or iterable of either, default ("ndcg@1", "ndcg@5", "ndcg@10", "map")
        As in `ranksvm.metrics.evaluate`.
    convention : str or Convention, default "default"
        As in `ranksvm.metrics.evaluate`.
    n_orders : int, optional
        Number of random orders of the queries of data; None: one run, in their own order.
    max_label : float, optional
        Highest grade of the scale, for ERR; None: the highest label of the data. Required for ERR of an iterable.
    timing : bool, default False
        Whether to time each query; queries are then passed to the model one by one, which takes longer. With several
        threads, orders slow each other down.
    random_state : int, numpy.random.RandomState or None, default None
        Seed of the orders. The model has its own seed.
    n_jobs : int or None, default None
        Number of threads, one order each; None: all processors.

    Returns
    -------
    ProgressiveValidation
        Values per order and query, cumulative means, and the models.

    Raises
    ------
    DataError
        When lengths differ, or there are no queries.
    OptionError
        When the model has no ``partial_fit``, an option, a metric or the convention is unknown, or several orders, or
        ERR without ``max_label``, are requested for an iterable.

    See Also
    --------
    cross_validate : For models that learn from all queries at once.

    Examples
    --------
    >>> from ranksvm import SOLARRanker, make_ranking, progressive_validation
    >>> data = make_ranking(n_queries=300, n_docs=20, n_features=10, random_state=0)
    >>> model = SOLARRanker(order=2, random_state=0)
    >>> result = progressive_validation(model, data, n_orders=5, random_state=0)
    >>> result.cumulative["ndcg@10"].shape
    (5, 300)
    """
    if not hasattr(model, "partial_fit"):
        raise OptionError(
            f"{type(model).__name__} does not learn query by query: give an online ranker, or Refit(model, every=...), "
            "which fits a model again to all queries so far."
        )
    parsed = parse_metrics(metrics)
    rules = convention_named(convention)
    n_threads = effective_n_jobs(n_jobs)
    if n_orders is not None and not (is_integer(n_orders) and n_orders >= 1):
        raise OptionError(f"n_orders must be None or a positive integer, got {n_orders!r}.")
    data = _data(stream, y, qid)
    if data is None:
        if n_orders is not None:
            raise OptionError("an iterable has only one order: n_orders needs data in memory.")
        check_scale(parsed, max_label)
        assert isinstance(stream, Iterable)
        runs = [_run(clone(model), _batches(stream), parsed, rules, max_label, timing)]
    else:
        X, labels, ids = data
        queries = Queries.from_qid(ids, len(labels))
        highest = max(0.0, float(labels.max(initial=0.0))) if max_label is None else max_label
        random = random_numbers(random_state)
        orders = [np.arange(queries.n_queries)]
        if n_orders is not None:
            orders = [random.permutation(queries.n_queries) for _ in range(n_orders)]

        def run(order: np.ndarray) -> "_Run":
            return _run(clone(model), _in_order(X, labels, queries, order), parsed, rules, highest, timing)

        runs = parallel_map(run, orders, n_threads)
    names = [metric.name for metric in parsed]
    return ProgressiveValidation(
        per_query={name: np.array([one.values[name] for one in runs]) for name in names},
        weights={name: np.array([one.weights[name] for one in runs]) for name in names},
        qid=np.array([one.qid for one in runs]),
        models=[one.model for one in runs],
        convention=rules.name,
        rank_seconds=np.array([one.seconds[:, 0] for one in runs]) if timing else None,
        learn_seconds=np.array([one.seconds[:, 1] for one in runs]) if timing else None,
    )


# -- queries in order --------------------------------------------------------------------------------------------------


def _data(stream: Stream, y: ArrayLike | None, qid: ArrayLike | None) -> Batch | None:
    """Features, labels and query ids of data in memory; None for an iterable."""
    if isinstance(stream, RankingData):
        if y is not None or qid is not None:
            raise OptionError("a RankingData has its own labels and queries: give neither y nor qid.")
        return _checked(stream.X, stream.y, stream.qid)
    if y is not None:
        return _checked(stream, y, qid)
    if hasattr(stream, "shape") or not isinstance(stream, Iterable):
        raise DataError(
            "labels are missing: give progressive_validation(model, X, y, qid=...), a RankingData, or an iterable of "
            f"queries (X, y), got a {type(stream).__name__}."
        )
    if qid is not None:
        raise OptionError("the batches of an iterable have their own queries: give no qid.")
    return None


def _checked(X: Any, y: ArrayLike, qid: ArrayLike | None) -> Batch:
    X, qid, _ = split_qid(X, qid)
    refuse_reserved_columns(column_names(X), y)
    X = X.tocsr() if is_sparse(X) else X if hasattr(X, "shape") else np.asarray(X)
    labels = label_column(y)
    check_one_per_row("y", labels, X.shape[0])
    return X, labels, qid


def _in_order(X: MatrixLike, y: np.ndarray, queries: Queries, order: np.ndarray) -> Iterator[Batch]:
    """The queries of data in a given order, in batches."""
    ids = queries.ids[queries.numbers()] if queries.n_queries else queries.ids
    for first in range(0, len(order), _QUERIES):
        rows = np.concatenate([queries.rows(query) for query in order[first : first + _QUERIES]])
        yield take_rows(X, rows), y[rows], ids[rows]


def _batches(stream: Iterable[Any]) -> Iterator[Batch]:
    """The validated batches of an iterable; the id of a query without one is its number."""
    n_queries = 0
    for place, item in enumerate(stream):
        if isinstance(item, RankingData):
            item = item.X, item.y, item.qid
        if not isinstance(item, tuple | list) or len(item) not in (2, 3):
            raise DataError(
                f"item {place} of the stream (from 0) is a {type(item).__name__}: queries (X, y), batches (X, y, qid) "
                "or RankingData are needed."
            )
        X, y, qid = _checked(*item, *[None] * (3 - len(item)))
        if len(y) == 0:
            continue
        qid = np.full(len(y), n_queries) if qid is None else id_array(qid)
        n_queries += Queries.from_qid(qid, len(y)).n_queries
        yield X, y, qid


# -- one run -----------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(eq=False)
class _Run:
    """Result for one order: values and weights by metric, ids, the model, and seconds (rank, learn) of each query."""

    values: dict[str, np.ndarray]
    weights: dict[str, np.ndarray]
    qid: np.ndarray
    model: OnlineModel
    seconds: np.ndarray


def _run(
    model: OnlineModel,
    batches: Iterable[Batch],
    metrics: list[Metric],
    rules: Convention,
    max_label: float | None,
    timing: bool,
) -> _Run:
    seconds: list[tuple[float, float]] = []
    waiting: list[
        tuple[np.ndarray, np.ndarray, np.ndarray]
    ] = []  # labels, scores and sizes of queries not yet evaluated
    measured, ids, n_waiting = [], [], 0

    def measure() -> None:
        labels, scores, sizes = (np.concatenate(parts) for parts in zip(*waiting, strict=True))
        number = np.repeat(np.arange(len(sizes)), sizes)
        measured.append(evaluate(labels, scores, number, metrics, convention=rules, max_label=max_label))
        waiting.clear()

    for X, y, qid in batches:
        queries = Queries.from_qid(qid, len(y))
        if timing or not hasattr(model, "predict_then_learn"):
            scores = _one_by_one(model, X, y, queries, seconds)
        else:
            scores = model.predict_then_learn(X, y, qid=qid)
        waiting.append((queries.to_sorted(y), queries.to_sorted(scores), queries.sizes))
        ids.append(queries.ids)
        n_waiting += len(y)
        if n_waiting >= _ROWS:
            measure()
            n_waiting = 0
    if waiting:
        measure()
    if not measured:
        raise DataError("there is nothing to rank: there are no queries.")
    values, weights = (
        {metric.name: np.concatenate([getattr(part, what)[metric.name] for part in measured]) for metric in metrics}
        for what in ("per_query", "weights")
    )
    return _Run(values, weights, np.concatenate(ids), model, np.array(seconds))


def _one_by_one(
    model: OnlineModel, X: MatrixLike, y: np.ndarray, queries: Queries, seconds: list[tuple[float, float]]
) -> np.ndarray:
    """Scores of queries before the model learned from them, one call each; appends the times to ``seconds``."""
    scores = np.zeros(len(y))
    for _, rows in queries:
        own = take_rows(X, rows)
        started = time.perf_counter()
        with contextlib.suppress(NotFittedError):  # a new model: all scores are equal
            scores[rows] = model.predict(own)
        middle = time.perf_counter()
        model.partial_fit(own, y[rows])
        seconds.append((middle - started, time.perf_counter() - middle))
    return scores
