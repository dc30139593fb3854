"""All rows in this process, for the dual solver, which reads single rows and is for small data."""

import logging
from typing import Any

import numpy as np

from ranksvm._util.memory import check_fits, in_words
from ranksvm._util.types import MemoryLimit
from ranksvm.dask.cluster import Cluster
from ranksvm.dask.inputs import InputParts
from ranksvm.dask.preparation import columns_of, reports_of
from ranksvm.dask.rows import ROW, Columns, together
from ranksvm.data import Preferences, frames

__all__ = ["evaluation_set", "fit_arguments"]

logger = logging.getLogger("ranksvm.dask")


def fit_arguments(cluster: Cluster, inputs: InputParts, memory_limit: MemoryLimit) -> tuple[Columns, dict[str, Any]]:
    """The data as arguments of ``fit`` of a single-process estimator, with rows in the order of the data.

    Parameters
    ----------
    cluster : Cluster
        The cluster.
    inputs : InputParts
        The arguments of ``fit``.
    memory_limit : int, str or None
        Memory that the rows may take in this process: see `ranksvm._util.memory.memory_bytes`.

    Returns
    -------
    columns : Columns
        What is known of the features.
    arguments : dict
        ``X``, ``y`` or ``pairs`` and ``pair_weight``, ``qid`` and weights.

    Raises
    ------
    OptionError
        When the rows would take more memory.
    """
    parts = cluster.client.compute(inputs.rows)
    reports = reports_of(cluster, parts, inputs.names)
    columns = columns_of(inputs, reports)
    n_rows = sum(int(report.sizes.sum()) for report in reports)
    size = sum(float(report.sizes.sum()) * report.row_bytes for report in reports)
    # twice the size, for the parts that arrive and for the rows that are assembled from them
    check_fits(
        int(2 * size),
        memory_limit,
        f"solver='dual' needs all {n_rows:,} rows in this process",
        "Use solver='auto', which leaves them on the workers.",
    )
    logger.info("solver='dual' needs all rows in one process: %s rows (%s) are gathered", f"{n_rows:,}", in_words(size))
    assert columns.n_features is not None
    rows = together([part.with_features(columns.n_features) for part in cluster.results(parts)])
    X = rows.X
    if columns.names is not None:
        import pandas as pd

        X = pd.DataFrame(rows.X, columns=columns.names)
    by_row = {name: values for name, values in rows.weights.items() if name != ROW}
    if inputs.listed is None:
        return columns, {"X": X, "y": rows.y, "qid": rows.qid, **by_row}
    listed = inputs.listed
    qid = rows.qid if listed.groups is None else None
    return columns, {"X": X, "pairs": listed.rows, "pair_weight": listed.weight, "qid": qid, **by_row}


def evaluation_set(
    arguments: dict[str, Any],
) -> tuple[tuple[Any, ...] | Preferences, np.ndarray | None, np.ndarray | None]:
    """One item of ``eval_set``, ``eval_qid`` and ``eval_sample_weight`` of a single-process estimator.

    Parameters
    ----------
    arguments : dict
        The set as `fit_arguments` gives it.

    Returns
    -------
    tuple of (tuple or Preferences, ndarray or None, ndarray or None)
        The items.
    """
    if "pairs" not in arguments:
        labels = [arguments[name] for name in ("y", "event") if name in arguments]
        return (arguments["X"], *labels), arguments["qid"], arguments.get("sample_weight")
    X, (preferred, other) = arguments["X"], arguments["pairs"].T
    prompt = None if arguments["qid"] is None else arguments["qid"][preferred]
    chosen, rejected = frames.take_rows(X, preferred), frames.take_rows(X, other)
    return Preferences(chosen, rejected, prompt=prompt, weight=arguments["pair_weight"]), None, None
