"""Lazy scores and metrics."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import dask
import dask.array as da
import numpy as np
from numpy.typing import ArrayLike

from ranksvm.dask.evaluation import Scorer, Sums, scores_of, scoring_function, sums_of_pairs
from ranksvm.dask.inputs import are_files, input_parts, is_dask_frame
from ranksvm.dask.listed_pairs import Listed
from ranksvm.dask.rows import Columns, Rows, read_rows, together
from ranksvm.dask.types import DaskFeatures
from ranksvm.metrics import evaluate, parse_metric
from ranksvm.metrics.names import ACCURACY
from ranksvm.terms.parts.tree_sum import tree_sum

if TYPE_CHECKING:
    import dask.dataframe as dd
    import pandas as pd

    from ranksvm.dask.rows import Block
    from ranksvm.estimators.base.ranker import Ranker

__all__ = ["lazy_metric", "lazy_scores"]


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


def _scores(X: "Block", model: "Ranker") -> np.ndarray:
    return model.predict(X) if X.shape[0] else np.zeros(0)


def _series(X: "pd.DataFrame", model: "Ranker") -> "pd.Series":
    import pandas as pd

    return pd.Series(_scores(X, model), index=X.index, name="score", dtype=np.float64)


def _scores_of_file(path: str, model: "Ranker", part: str) -> np.ndarray:
    rows = read_rows(path, "label", model.qid_column_ or "qid", part, model._takes_missing)
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
    """A metric of queries that may be divided among parts: scores, labels and ids are sent to the task of their query.

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
    columns = Columns(model.n_features_in_, getattr(model, "feature_names_in_", None), model.qid_column_)
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
    n = len(inputs.rows)
    split = dask.delayed(_scored, nout=n, pure=False)
    pieces = [split(rows, scoring_function(model), n) for rows in inputs.rows]
    by_query = [[piece[to] for piece in pieces] for to in range(n)]
    if inputs.listed is not None:
        whole = dask.delayed(inputs.listed, traverse=False)
        sums = [dask.delayed(_accuracy, pure=False)(each, whole) for each in by_query]
    else:
        sums = [dask.delayed(_metric, pure=False)(each, metric) for each in by_query]
    return da.from_delayed(dask.delayed(_mean, pure=False)(sums), (), np.float64)


def _scored(rows: Rows, model: Scorer, n: int) -> list[Rows]:
    """Divide rows by the hash of their query; their only feature is their score."""
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


def _mean(sums: list[Sums]) -> np.float64:
    return np.float64(tree_sum(sums, Sums.plus).mean)
