"""Metrics of queries that arrive one by one (progressive, or prequential, validation): only sums are stored."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ranksvm.data import Queries
from ranksvm.exceptions import DataError, OptionError
from ranksvm.metrics.conventions import Convention, convention_named
from ranksvm.metrics.definitions import ERR, Metric, parse_metrics
from ranksvm.metrics.evaluation import column, document_ids, values_and_weights
from ranksvm.metrics.rankings import Rankings

__all__ = ["CumulativeMetrics"]

# Queries are buffered up to this number, or this number of rows, and then evaluated together: a single query costs
# about 200 microseconds of calls, a query in a batch about five.
_MAX_QUERIES = 256
_MAX_ROWS = 1 << 16


def check_scale(metrics: Iterable[Metric], max_label: float | None) -> None:
    """Refuse ERR for a stream if the highest grade of its scale is unknown."""
    if max_label is None and any(isinstance(metric, ERR) for metric in metrics):
        raise OptionError(
            "ERR needs the highest grade of the scale, which is unknown for a stream: give max_label (--max-label)."
        )


class CumulativeMetrics:
    """Means over all queries so far, which are added one at a time and not stored.

    The means equal the results of `evaluate` on the same queries up to round-off. They are summed in the order of the
    queries, so reading them in between does not change any bit of the result.

    Parameters
    ----------
    metrics : str, Metric, or iterable of either, default ("ndcg@1", "ndcg@5", "ndcg@10", "map")
        What to compute, as in `evaluate`.
    convention : str or Convention, default "default"
        Definition of the metrics.
    max_label : float, optional
        Highest grade of the scale; ERR needs it, because future labels are unknown.

    Raises
    ------
    OptionError
        When a metric or convention is unknown, or ERR is requested without ``max_label``.

    Examples
    --------
    >>> cumulative = CumulativeMetrics("ndcg@10,mrr")
    >>> cumulative.add([2, 1], [0.1, 0.7])
    >>> cumulative.add([0, 0], [0.4, 0.4])
    >>> cumulative.n_queries, cumulative.means
    (2, {'ndcg@10': 0.3983..., 'mrr': 0.5})
    """

    def __init__(
        self,
        metrics: str | Metric | Iterable[str | Metric] = ("ndcg@1", "ndcg@5", "ndcg@10", "map"),
        convention: str | Convention = "default",
        *,
        max_label: float | None = None,
    ):
        self.metrics = parse_metrics(metrics)
        self.convention = convention_named(convention)
        check_scale(self.metrics, max_label)
        self.max_label = max_label
        self._sums = np.zeros((2, len(self.metrics)))  # sums of weight times value, and of weights
        self._counts = np.zeros(2, dtype=np.int64)  # numbers of rows, and of queries without a relevant document
        self._n_queries = 0
        self._waiting: list[tuple[np.ndarray, np.ndarray, np.ndarray | None]] = []
        self._n_waiting_rows = 0
        self._marks: list[int] = []  # number of queries at each mark since the last evaluation
        self._marked: list[tuple[int, np.ndarray]] = []

    def add(self, y: ArrayLike, scores: ArrayLike, docid: ArrayLike | None = None) -> None:
        """Add one query.

        Parameters
        ----------
        y : array-like of shape (n_documents,)
            Labels of its documents.
        scores : array-like of shape (n_documents,)
            Their scores; the higher, the better.
        docid : array-like of shape (n_documents,), optional
            Document ids, for conventions that break ties by them.

        Raises
        ------
        DataError
            When the lengths differ, there is no document, labels are not finite, or a score is NaN; nothing is added.
        OptionError
            When a label is above ``max_label``.
        """
        labels = column("y", y)
        values = column("scores", scores, len(labels), finite=False)
        if len(labels) == 0:
            raise DataError("there is nothing to add: y has no rows.")
        if self.max_label is not None and labels.max() > self.max_label:
            raise OptionError(f"max_label is {self.max_label} but there is a label {labels.max():g}.")
        ids = None if docid is None else document_ids(docid, len(labels))
        # buffered data must not change with the caller's arrays
        self._waiting.append((labels.copy(), values.copy(), None if ids is None else ids.copy()))
        self._n_queries += 1
        self._n_waiting_rows += len(labels)
        if len(self._waiting) >= _MAX_QUERIES or self._n_waiting_rows >= _MAX_ROWS:
            self._measure()

    def mark(self) -> None:
        """Mark this place: `take_marked` will return the sums up to here. Buffered queries are not evaluated now."""
        self._marks.append(self._n_queries)

    def take_marked(self) -> list[tuple[int, np.ndarray]]:
        """For each `mark` since the last call: the number of queries until then, and their sums (as in `state`)."""
        self._measure()
        # no query was added after these marks: their sums are the current ones
        self._marked += [(n_queries, self._sums.copy()) for n_queries in self._marks]
        marked, self._marked, self._marks = self._marked, [], []
        return marked

    @property
    def n_queries(self) -> int:
        """Number of queries added."""
        return self._n_queries

    @property
    def n_rows(self) -> int:
        """Number of documents of all queries added."""
        return int(self._counts[0]) + self._n_waiting_rows

    @property
    def n_without_relevant(self) -> int:
        """Number of queries without a relevant document."""
        self._measure()
        return int(self._counts[1])

    @property
    def means(self) -> dict[str, float]:
        """Metric name -> mean over the queries so far; NaN if no query has a value."""
        self._measure()
        sums, weights = self._sums
        means = np.divide(sums, weights, out=np.full(len(sums), np.nan), where=weights > 0)
        return {metric.name: mean for metric, mean in zip(self.metrics, means.tolist(), strict=True)}

    @property
    def state(self) -> dict[str, Any]:
        """The state for `restore`: lists of names and numbers, and small arrays.

        ``metrics`` and ``convention`` (names), ``max_label``, ``n_queries``, ``sums`` (float64, shape (2, n_metrics):
        weight times value, and weight) and ``counts`` (int64: rows, queries without a relevant document).
        """
        self._measure()
        return {
            "metrics": [metric.name for metric in self.metrics],
            "convention": self.convention.name,
            "max_label": None if self.max_label is None else float(self.max_label),
            "n_queries": self._n_queries,
            "sums": self._sums.copy(),
            "counts": self._counts.copy(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a saved `state`.

        Parameters
        ----------
        state : dict
            The saved state.

        Raises
        ------
        OptionError
            When it has other metrics, another convention or another ``max_label``.
        """
        own = [metric.name for metric in self.metrics]
        if state["metrics"] != own:
            raise OptionError(f"the metrics so far are {', '.join(state['metrics'])}, not {', '.join(own)}.")
        if state["convention"] != self.convention.name:
            raise OptionError(f"the convention so far is {state['convention']}, not {self.convention.name}.")
        if state["max_label"] != self.max_label:
            raise OptionError(f"max_label so far is {state['max_label']}, not {self.max_label}.")
        self._sums = np.array(state["sums"], dtype=np.float64)
        self._counts = np.array(state["counts"], dtype=np.int64)
        self._n_queries = int(state["n_queries"])
        self._waiting, self._n_waiting_rows = [], 0
        self._marks, self._marked = [], []

    def _measure(self) -> None:
        """Evaluate the buffered queries, and add their values one after another."""
        if not self._waiting:
            return
        labels, scores = (np.concatenate([query[part] for query in self._waiting]) for part in (0, 1))
        ids = [np.full(len(y), "") if docid is None else docid for y, _, docid in self._waiting]
        docid = np.concatenate(ids) if any(docid is not None for *_, docid in self._waiting) else None
        sizes = [len(query[0]) for query in self._waiting]
        queries = Queries.from_group(sizes, len(labels))
        highest = max(0.0, float(labels.max())) if self.max_label is None else float(self.max_label)
        rankings = Rankings(labels, scores, queries, self.convention, highest, docid)
        running = np.empty((*self._sums.shape, len(sizes) + 1))  # before each query, and after the last
        for number, metric in enumerate(self.metrics):
            values, weights = values_and_weights(metric, rankings)
            for row, terms in enumerate((weights * np.nan_to_num(values), weights)):
                # one after another: numpy's sum would depend on the number of buffered queries
                start = self._sums[row, number : number + 1]
                running[row, number] = np.cumsum(np.concatenate((start, terms)))
        before = self._n_queries - len(sizes)
        self._marked += [(mark, running[:, :, mark - before].copy()) for mark in self._marks]
        self._marks = []
        self._sums = running[:, :, -1].copy()
        self._counts += len(labels), int((rankings.n_relevant == 0).sum())
        self._waiting, self._n_waiting_rows = [], 0
