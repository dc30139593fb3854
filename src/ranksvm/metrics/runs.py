"""Evaluation of runs against relevance judgments, as trec_eval does it."""

import dataclasses
from collections.abc import Iterable
from typing import Any, Literal

import numpy as np

from ranksvm._util.lazy import cached_property
from ranksvm.data import Queries
from ranksvm.datasets.runs import Qrels, Run, place_of, places_by_ids, places_of
from ranksvm.datasets.trec_files import as_qrels, as_run
from ranksvm.exceptions import DataError, OptionError
from ranksvm.metrics.conventions import Convention, convention_named
from ranksvm.metrics.definitions import Metric, parse_metrics
from ranksvm.metrics.evaluation import Evaluation, add_means, scale_of_labels, values_and_weights, with_relevance
from ranksvm.metrics.rankings import Rankings

__all__ = ["evaluate_run"]


class RunRankings(Rankings):
    """Ranked documents of queries whose best possible ranking also holds documents that were not ranked.

    Parameters
    ----------
    y, scores, queries, convention, max_label, docid
        As in `Rankings`, for the documents that were ranked; a document without a judgment has the label 0.
    judged : Rankings
        The documents with a judgment, of the same queries in the same order.
    """

    def __init__(self, *arguments: Any, judged: Rankings):
        super().__init__(*arguments)
        self._judged = judged

    @cached_property
    def top_label(self) -> np.ndarray:
        """Highest judged label, per query."""
        return self._judged.top_label

    @cached_property
    def n_relevant(self) -> np.ndarray:
        """Number of relevant documents, ranked or not, per query."""
        return self._judged.n_relevant

    @cached_property
    def ideal_gains(self) -> np.ndarray:
        """The gains of the judged documents in the best order, at each position; 0 beyond them."""
        rank = self.rank.astype(np.int64) - 1
        known = rank < self.per_position(self._judged.sizes)
        place = np.where(known, self.per_position(self._judged.pointers[:-1]) + rank, 0)
        return np.where(known, self._judged.ideal_gains[place], 0.0)

    def ideal_dcg(self, cutoff: int | None) -> np.ndarray:
        """The largest discounted gain of ``cutoff`` judged documents, per query.

        Parameters
        ----------
        cutoff : int or None
            Number of documents that count; None: all.

        Returns
        -------
        ndarray
            The sums, per query.
        """
        return self._judged.ideal_dcg(cutoff)


def evaluate_run(
    run: Run | str | Any,
    qrels: Qrels | str | Any,
    metrics: str | Metric | Iterable[str | Metric] = ("ndcg@10", "map"),
    *,
    convention: str | Convention = "trec",
    missing: Literal["zero", "skip"] = "zero",
    relevance: float | None = None,
    max_label: float | None = None,
) -> Evaluation:
    """Quality of a run, judged by qrels; under the convention ``trec`` the values equal trec_eval's.

    - Documents are ranked by their scores; equal ones (in single precision, as trec_eval stores them) are in descending
      order of their ids. Other conventions average over ties or keep the order of the rows.
    - A document of the run without a judgment is not relevant: its label is 0. The best possible ranking, and the
      number of relevant documents, include judged documents that the run lacks.
    - A query of the qrels that the run lacks counts as 0 (``trec_eval -c``, ir_measures) or is left out (trec_eval
      without -c); a query of the run that the qrels lack is left out.
    - Pairwise accuracy and Kendall's tau compare the documents of the run only, and leave out a query that it lacks.

    Parameters
    ----------
    run : Run, path-like, dict of dict, DataFrame, or iterable of named tuples
        The run: a path, which is read by `ranksvm.datasets.read_run`; a dict query -> document -> score; or rows as in
        `ranksvm.datasets.Run.from_rows`, with the names of ir_datasets, ir_measures, PyTerrier or ranx.
    qrels : Qrels, path-like, dict of dict, DataFrame, or iterable of named tuples
        The judgments: a path, which is read by `ranksvm.datasets.read_qrels`; a dict query -> document -> label; or
        rows as in `ranksvm.datasets.Qrels.from_rows`.
    metrics : str, Metric, or iterable of either, default ("ndcg@10", "map")
        As in `evaluate`.
    convention : str or Convention, default "trec"
        As in `evaluate`.
    missing : {"zero", "skip"}, default "zero"
        Whether a query that the run lacks counts as 0 or is left out.
    relevance : float, optional
        As in `evaluate`: the option ``-l`` of trec_eval.
    max_label : float, optional
        Highest grade of the scale, for ERR; None: the highest label in the qrels, or 0.

    Returns
    -------
    Evaluation
        Means and values per query, in the order of the qrels.

    Raises
    ------
    ParseError
        When a line of a file is malformed.
    DataError
        When run and qrels have no query in common.
    OptionError
        When an option, a metric or the convention is unknown, or ``max_label`` is below a label.

    Examples
    --------
    >>> qrels = {"q1": {"d1": 1, "d2": 0, "d3": 1}, "q2": {"d1": 1}}
    >>> run = {"q1": {"d2": 0.5, "d1": 0.5, "unknown": 0.2}}
    >>> evaluate_run(run, qrels, "map,recip_rank").means
    {'map': 0.125, 'mrr': 0.25}
    >>> evaluate_run(run, qrels, "map,recip_rank", missing="skip").means
    {'map': 0.25, 'mrr': 0.5}
    """
    parsed = parse_metrics(metrics)
    rules = with_relevance(convention_named(convention), relevance)
    if missing not in ("zero", "skip"):
        raise OptionError(f"missing must be 'zero' or 'skip', got {missing!r}.")
    run, qrels = as_run(run), as_qrels(qrels)
    highest = scale_of_labels(qrels.label, max_label)
    judged = qrels.queries
    number = _numbers(run, judged.ids)
    rows = np.flatnonzero(number >= 0)
    if not len(rows):
        raise DataError(
            f"run and qrels have no query in common: the first one of the run is {_first(run.qid)}, of the qrels "
            f"{_first(qrels.qid)}."
        )
    rows = rows[np.argsort(number[rows], kind="stable")]
    ranked = np.unique(number[rows])
    place = place_of(qrels, run.qid[rows], run.docid[rows])
    label = np.where(place >= 0, qrels.label[place], 0.0)

    ideal = _ideal(qrels, judged, np.arange(judged.n_queries), rules, highest)
    of_ranked = ideal if len(ranked) == judged.n_queries else _ideal(qrels, judged, ranked, rules, highest)
    queries = Queries.from_qid(number[rows])
    rankings = RunRankings(label, run.score[rows], queries, rules, highest, run.docid[rows], judged=of_ranked)

    counted = np.arange(judged.n_queries) if missing == "zero" else ranked
    at = np.searchsorted(counted, ranked)
    result = Evaluation(
        means={},
        per_query={},
        weights={},
        qid=judged.ids[counted],
        n_rows=len(rows),
        n_without_relevant=int((ideal.n_relevant[counted] == 0).sum()),
        convention=rules.name,
        n_missing=judged.n_queries - len(ranked),
    )
    for metric in parsed:
        values, weights = np.full(len(counted), metric.missing_query_value), np.zeros(len(counted))
        weights[:] = ~np.isnan(values)
        values[at], weights[at] = values_and_weights(metric, rankings)
        add_means(result, metric.name, values, weights)
    return result


def _ideal(qrels: Qrels, judged: Queries, wanted: np.ndarray, rules: Convention, highest: float) -> Rankings:
    """The judged documents of some queries; their own order does not matter."""
    number = judged.numbers()
    rows = np.flatnonzero(np.isin(number, wanted))
    rows = rows[np.argsort(number[rows], kind="stable")]
    rules = dataclasses.replace(rules, float32_scores=False, ties="order")
    return Rankings(qrels.label[rows], np.zeros(len(rows)), Queries.from_qid(number[rows]), rules, highest)


def _numbers(run: Run, ids: np.ndarray) -> np.ndarray:
    """Position in ``ids`` of the query of each row of a run, -1 if it is absent."""
    queries = run.queries
    places = places_by_ids((query,) for query in ids.tolist())
    return places_of(places, ((query,) for query in queries.ids.tolist()), queries.n_queries)[queries.numbers()]


def _first(ids: np.ndarray) -> str:
    return repr(str(ids[0])) if len(ids) else "absent"
