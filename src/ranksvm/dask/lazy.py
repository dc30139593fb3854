"""Lazy scores and metrics."""

from typing import Any

import dask
import dask.array as da
import numpy as np

from ranksvm.dask.evaluation import Sums, scores_of, scoring_function, sums_of_pairs
from ranksvm.dask.inputs import are_files, given_rows, is_dask_frame
from ranksvm.dask.listed_pairs import Listed
from ranksvm.dask.rows import Columns, Rows, read_rows, together
from ranksvm.metrics import evaluate, parse_metric
from ranksvm.metrics.names import ACCURACY
from ranksvm.terms.parts.tree_sum import tree_sum

__all__ = ["lazy_metric", "lazy_scores"]


def lazy_scores(model: Any, X: Any) -> Any:
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
        The scores, with the parts of X.
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


def _scores(X: Any, model: Any) -> np.ndarray:
    return model.predict(X) if X.shape[0] else np.zeros(0)


def _series(X: Any, model: Any) -> Any:
    import pandas as pd

    return pd.Series(_scores(X, model), index=X.index, name="score", dtype=np.float64)


def _scores_of_file(path: str, model: Any, part: str) -> np.ndarray:
    rows = read_rows(path, "label", model.qid_column_ or "qid", part, model._takes_missing)
    return scores_of(rows, scoring_function(model))


def lazy_metric(
    model: Any, X: Any, y: Any, qid: Any, weights: dict[str, Any], metric: str, *, pairs: Any, pair_weight: Any
) -> Any:
    """A metric for any parts: scores, labels and ids are sent to the task of their query; features stay.

    Parameters
    ----------
    model : RankSVM
        The fitted model.
    X, y, qid : optional
        As in ``fit``.
    weights : dict
        ``sample_weight`` and ``event``.
    metric : str
        The metric of labels.
    pairs, pair_weight : optional
        As in ``fit``; the metric is then the accuracy of the pairs.

    Returns
    -------
    dask array of no dimension
        Its mean over the queries.
    """
    columns = Columns(model.n_features_in_, getattr(model, "feature_names_in_", None), model.qid_column_)
    listed = {"pairs": pairs, "pair_weight": pair_weight}
    others: dict[str, Any] = {"count": lambda sizes: list(dask.compute(*sizes)), "missing": model._takes_missing}
    given = given_rows(X, y, qid, weights, columns, **listed, **others)
    n = len(given.rows)
    split = dask.delayed(_scored, nout=n, pure=False)
    pieces = [split(rows, scoring_function(model), n) for rows in given.rows]
    by_query = [[piece[to] for piece in pieces] for to in range(n)]
    if given.listed is not None:
        whole = dask.delayed(given.listed, traverse=False)
        sums = [dask.delayed(_accuracy, pure=False)(each, whole) for each in by_query]
    else:
        sums = [dask.delayed(_metric, pure=False)(each, metric) for each in by_query]
    return da.from_delayed(dask.delayed(_mean, pure=False)(sums), (), np.float64)


def _scored(rows: Rows, model: Any, n: int) -> list[Rows]:
    """Rows with their score as their only feature, by the hash of their query."""
    scores = scores_of(rows, model)
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


def _mean(sums: list[Sums]) -> Any:
    return np.float64(tree_sum(sums, Sums.plus).mean)
