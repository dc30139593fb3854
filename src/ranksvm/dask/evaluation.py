"""Scores and metrics on a cluster: scores stay on the workers with the rows, and only sums over queries are sent."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import dask
import dask.array as da
import numpy as np
from distributed import Future
from numpy.typing import ArrayLike

from ranksvm.additive import AdditiveFunction
from ranksvm.dask.backend import ATTEMPTS
from ranksvm.dask.cluster import Cluster, LostError
from ranksvm.dask.inputs import DaskFeatures, are_files, input_parts, is_dask_frame
from ranksvm.dask.listed_pairs import Listed, pairs_in_part
from ranksvm.dask.preparation import Prepared, on_workers
from ranksvm.dask.rows import Columns, Rows, read_rows, together
from ranksvm.data.scores import linear_scores
from ranksvm.data.validation import check_scores
from ranksvm.exceptions import ClusterError
from ranksvm.metrics import Convention, Metric, evaluate, evaluate_pairs, parse_metric
from ranksvm.metrics.definitions import ACCURACY, CONCORDANCE, on_scale, only_metric
from ranksvm.terms.parts.tree_sum import tree_sum

if TYPE_CHECKING:
    import dask.dataframe as dd
    import pandas as pd

    from ranksvm.dask.rows import Block
    from ranksvm.estimators.base.ranker import Ranker

__all__ = [
    "HeldOut",
    "Scorer",
    "Sums",
    "evaluated",
    "features_of",
    "lazy_metric",
    "lazy_scores",
    "scores_of",
    "scoring_function",
    "sums_of_pairs",
]

logger = logging.getLogger("ranksvm.dask")

# Scores of `lazy_metric` are divided by query into at most this many pieces per part: each is a task for every part.
MAX_PIECES = 16

# The weights of a linear model, or the function of an additive one.
Scorer = np.ndarray | AdditiveFunction


class Sums(NamedTuple):
    """Sums over queries that determine the mean and standard error of a metric.

    Attributes
    ----------
    weight, value, weight2, value2, square2 : float
        Sums of w, w v, w^2, w^2 v and w^2 v^2 over the queries that have a value; v is the value, w the weight.
    n : int
        Number of these queries.
    """

    weight: float
    value: float
    weight2: float
    value2: float
    square2: float
    n: int

    @classmethod
    def of(cls, values: np.ndarray, weights: np.ndarray) -> "Sums":
        """The sums of some queries."""
        has_value = (weights > 0.0) & ~np.isnan(values)
        v, w = values[has_value], weights[has_value]
        squares = w * w
        value, value2, square2 = float(w @ v), float(squares @ v), float(squares @ (v * v))
        return cls(float(w.sum()), value, float(squares.sum()), value2, square2, int(has_value.sum()))

    def plus(self, more: "Sums") -> "Sums":
        """The sums over the queries of both."""
        return Sums._make(a + b for a, b in zip(self, more, strict=True))

    @property
    def mean(self) -> float:
        """The mean of the metric; NaN without a value."""
        return self.value / self.weight if self.weight > 0.0 else float("nan")

    @property
    def standard_error(self) -> float:
        """The mean's standard error: see `ranksvm.model_selection.cross_validation.standard_error_over_queries`."""
        if self.n < 2:
            return float("nan")
        mean = self.mean
        squares = max(0.0, self.square2 - 2.0 * mean * self.value2 + mean * mean * self.weight2)
        return float(np.sqrt(self.n / (self.n - 1) * squares) / self.weight)


ZERO_SUMS = Sums(0.0, 0.0, 0.0, 0.0, 0.0, 0)


@dataclass(eq=False)
class HeldOut:
    """A set to evaluate models on: see `ranksvm.fits.evaluation.EvaluationSet`.

    Parameters
    ----------
    name : str
        Its name.
    prepared : Prepared
        Its rows on the cluster, and its pairs if they are listed.
    prepare_again : callable
        Makes ``prepared`` again, if the cluster has lost it.
    timed : bool
        Whether its labels are times, some of them censored.
    """

    name: str
    prepared: Prepared
    prepare_again: Callable[[], Prepared]
    timed: bool = False

    @property
    def own_metric(self) -> Metric | None:
        """The only metric that listed pairs, or times, allow; None if this set has labels, which allow any metric."""
        if self.prepared.listed is not None:
            return ACCURACY
        return CONCORDANCE if self.timed else None

    def metric_for(self, metric: Metric) -> Metric:
        """The metric that evaluates this set if the user chose ``metric``."""
        own = self.own_metric
        return metric if own is None else only_metric("pairs" if own is ACCURACY else "censored times", own, metric)

    def evaluate(
        self,
        cluster: Cluster,
        models: Sequence[Scorer],
        metrics: Sequence[Metric],
        convention: str | Convention = "default",
    ) -> list[dict[str, "Sums"]]:
        """The metrics of several models, as in `evaluated`; rows that the cluster has lost are computed again."""
        chosen = metrics if self.own_metric is None else [self.own_metric]
        for attempt in range(ATTEMPTS):
            try:
                if attempt:
                    self.prepared = self.prepare_again()
                prepared = self.prepared
                return evaluated(cluster, prepared.rows, models, chosen, convention, listed=prepared.listed)
            except LostError as lost:
                logger.warning("the cluster has lost the evaluation set %s; it is computed again: %s", self.name, lost)
        raise ClusterError(f"the cluster has lost the evaluation set {self.name} {ATTEMPTS} times in one evaluation.")


def evaluated(
    cluster: Cluster,
    rows: Sequence[Future],
    models: Sequence[Scorer],
    metrics: Sequence[Metric],
    convention: str | Convention = "default",
    held_out: np.ndarray | None = None,
    listed: Listed | None = None,
) -> list[dict[str, Sums]]:
    """The metrics of several models on rows of a cluster.

    Parameters
    ----------
    cluster : Cluster
        The cluster.
    rows : sequence of Future
        The `Rows` of each part, which has whole queries.
    models : sequence of ndarray or AdditiveFunction
        The weights of each linear model, or the function of each additive one.
    metrics : sequence of Metric
        The metrics.
    convention : str or Convention
        Which definitions of the metrics to use.
    held_out : ndarray of uint64, optional
        The hashes of the queries that count; None: all of them.
    listed : Listed, optional
        The pairs that count, if the user listed pairs; the metric is then their accuracy.

    Returns
    -------
    list of dict
        For each model, the `Sums` of each metric by its name.
    """
    if listed is not None:
        found = cluster.mapped(sums_of_pairs, rows, list(models), on_workers(cluster, listed))
    else:
        scaled = on_scale(metrics, lambda: max(cluster.results(cluster.mapped(_highest_label, rows))))
        found = cluster.mapped(_evaluated, rows, list(models), scaled, convention, held_out)
    return tree_sum(cluster.results(found), _plus)


def _highest_label(rows: Rows) -> float:
    return float(rows.y.max(initial=0.0))


def _plus(a: list[dict[str, Sums]], b: list[dict[str, Sums]]) -> list[dict[str, Sums]]:
    return [{name: x[name].plus(y[name]) for name in x} for x, y in zip(a, b, strict=True)]


def _evaluated(
    rows: Rows, models: list[Scorer], metrics: list[Metric], convention: str | Convention, held_out: np.ndarray | None
) -> list[dict[str, Sums]]:
    if held_out is not None:
        rows = rows.of_queries(held_out)
    return [sums_of(rows, model, metrics, convention) for model in models]


def sums_of_pairs(rows: Rows, models: list[Scorer], listed: Listed) -> list[dict[str, Sums]]:
    """For each model, the `Sums` of its accuracy on the pairs of one part of the data."""
    pairs = pairs_in_part(rows, listed)
    if not len(pairs.numbers):
        return [{ACCURACY.name: ZERO_SUMS} for _ in models]
    groups = rows.queries.numbers()[pairs.places[:, 0]] if listed.groups is None else listed.groups[pairs.numbers]
    used, places = np.unique(pairs.places, return_inverse=True)
    some = rows.taken(used)
    found = []
    for model in models:
        preferred, other = scores_of(some, model)[places.reshape(-1, 2)].T
        each = evaluate_pairs(preferred, other, groups, pair_weight=listed.weight[pairs.numbers])
        found.append({name: Sums.of(each.per_query[name], each.weights[name]) for name in each.means})
    return found


def scores_of(rows: Rows, model: Scorer) -> np.ndarray:
    """The scores of rows under the weights of a linear model, or the function of an additive one."""
    if isinstance(model, np.ndarray):
        return check_scores(linear_scores(rows.with_features(len(model)).X, model, 1))
    return check_scores(model.scores(rows.with_features(model.n_features).X))


def scoring_function(model: Any) -> Scorer:
    """The weights or the function of a fitted model, for `scores_of`."""
    return model._function() if hasattr(model, "shape_values_") else model.coef_


def features_of(model: Any) -> Columns:
    """The features of a fitted model, and its column of query ids."""
    return Columns(model.n_features_in_, getattr(model, "feature_names_in_", None), model.qid_column_)


def sums_of(
    rows: Rows, model: Scorer, metrics: list[Metric], convention: str | Convention = "default"
) -> dict[str, Sums]:
    """The `Sums` of each metric, by its name, for one model on one part of the data."""
    if not len(rows.y):
        return dict.fromkeys((metric.name for metric in metrics), ZERO_SUMS)
    scores = scores_of(rows, model)
    sample_weight, event = rows.weights.get("sample_weight"), rows.weights.get("event")
    options: dict[str, Any] = {"convention": convention, "sample_weight": sample_weight, "event": event}
    found = evaluate(rows.y, scores, rows.queries.numbers(), metrics, **options)
    return {name: Sums.of(found.per_query[name], found.weights[name]) for name in found.means}


def lazy_scores(model: "Ranker", X: Any) -> "da.Array | dd.Series":
    """The score of each row.

    Parameters
    ----------
    model : RankSVM
        The fitted model.
    X : dask array, dask DataFrame or list of paths
        The features.

    Returns
    -------
    dask array or dask Series
        The scores, divided into parts as X is.
    """
    if are_files(X):
        paths = X if isinstance(X, list | tuple) else [X]
        read = dask.delayed(_scores_of_file, pure=False)
        blocks = [read(str(path), model, f"part {number} ({path})") for number, path in enumerate(paths)]
        return da.concatenate([da.from_delayed(block, (np.nan,), np.float64) for block in blocks])
    if is_dask_frame(X):
        import pandas as pd

        return X.map_partitions(_series, model, meta=pd.Series([], dtype=np.float64, name="score"))
    X = X if X.numblocks[1] == 1 else X.rechunk({1: -1})
    return X.map_blocks(_scores, model, dtype=np.float64, drop_axis=1, chunks=(X.chunks[0],), meta=np.empty(0))


def _scores(X: "Block", model: "Ranker") -> np.ndarray:
    return model.predict(X) if X.shape[0] else np.zeros(0)


def _series(X: "pd.DataFrame", model: "Ranker") -> "pd.Series":
    import pandas as pd

    return pd.Series(_scores(X, model), index=X.index, name="score", dtype=np.float64)


def _scores_of_file(path: str, model: "Ranker", part: str) -> np.ndarray:
    qid, missing = model.qid_column_ or "qid", model._takes_missing
    rows = read_rows(path, "label", qid, part, features_of(model), missing, only_features=True)
    return scores_of(rows, scoring_function(model))


def lazy_metric(
    model: "Ranker",
    X: DaskFeatures,
    y: ArrayLike | None,
    qid: ArrayLike | None,
    weights: Mapping[str, ArrayLike | None],
    metric: str,
    *,
    pairs: ArrayLike | None,
    pair_weight: ArrayLike | None,
) -> da.Array:
    """The mean of a metric, computed lazily: one task gets all rows of a query, which may be in several parts.

    Parameters
    ----------
    model : RankSVM
        The fitted model.
    X, y, qid : optional
        As in ``fit``.
    weights : dict
        ``sample_weight`` and ``event``.
    metric : str
        The metric, if there are labels.
    pairs, pair_weight : optional
        As in ``fit``; the metric is then the accuracy of the pairs.

    Returns
    -------
    dask array without dimensions
        Its mean over the queries.
    """
    columns = features_of(model)
    inputs = input_parts(
        X,
        y,
        qid,
        weights,
        columns,
        pairs=pairs,
        pair_weight=pair_weight,
        count=lambda sizes: list(dask.compute(*sizes)),
        missing=model._takes_missing,
    )
    n = min(len(inputs.rows), MAX_PIECES)
    split = dask.delayed(_scored, nout=n, pure=False)
    pieces = [split(rows, scoring_function(model), n, inputs.files) for rows in inputs.rows]
    by_query = [[piece[to] for piece in pieces] for to in range(n)]
    if inputs.listed is not None:
        whole = dask.delayed(inputs.listed, traverse=False)
        sums = [dask.delayed(_accuracy, pure=False)(each, whole) for each in by_query]
    else:
        sums = [dask.delayed(_metric, pure=False)(each, metric) for each in by_query]
    return da.from_delayed(dask.delayed(_mean, pure=False)(sums), (), np.float64)


def _scored(rows: Rows, model: Scorer, n: int, text_ids: bool) -> list[Rows]:
    """Divide the rows of a part into ``n`` pieces by the hash of the query; the only feature of a row is its score."""
    scores = scores_of(rows, model)
    rows = rows.with_text_ids() if text_ids else rows  # ids may be numbers in one file and text in another
    scored = Rows(scores[:, np.newaxis], rows.y, rows.qid, rows.weights)
    to = (rows.report().queries % np.uint64(n)).astype(np.int64)[rows.queries.numbers()]
    return [scored.taken(np.flatnonzero(to == target)) for target in range(n)]


def _metric(pieces: list[Rows], metric: str) -> Sums:
    rows = together(pieces)
    if not len(rows.y):
        return Sums(0.0, 0.0, 0.0, 0.0, 0.0, 0)
    scores = np.ascontiguousarray(rows.X[:, 0])
    sample_weight, event = rows.weights.get("sample_weight"), rows.weights.get("event")
    found = evaluate(rows.y, scores, rows.queries.numbers(), metric, sample_weight=sample_weight, event=event)
    name = parse_metric(metric).name
    return Sums.of(found.per_query[name], found.weights[name])


def _accuracy(pieces: list[Rows], listed: Listed) -> Sums:
    (found,) = sums_of_pairs(together(pieces), [np.ones(1)], listed)
    return found[ACCURACY.name]


def _mean(sums: list[Sums]) -> np.float64:
    return np.float64(tree_sum(sums, Sums.plus).mean)
