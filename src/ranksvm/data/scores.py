"""Scores of documents: of all rows under a linear function, and of some rows under any function."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ranksvm._util.checks import n_rows_of
from ranksvm._util.threads import parallel_map
from ranksvm._util.types import Features, MatrixLike
from ranksvm.data.design_matrix import RowProducts, as_design_matrix
from ranksvm.data.device_features import DeviceFeatures
from ranksvm.data.frames import take_rows
from ranksvm.device.arrays import host_values

__all__ = ["linear_scores", "scores_by_threads", "scores_of_rows"]

# Number of rows that a thread scores in one task.
PREDICT_ROWS = 1 << 15
# Number of rows that are copied at a time: 64 MiB of 1,024 float32 features.
CHUNK_ROWS = 1 << 14


def linear_scores(X: Features | DeviceFeatures, w: np.ndarray, n_threads: int) -> np.ndarray:
    """``X @ w`` in host memory, summed in float64, for a C-contiguous float array, CSR matrix or array on a device."""
    if isinstance(X, DeviceFeatures):
        return X.device.copy_out(X.scores(w))
    return scores_by_threads(as_design_matrix(X).products(), X.shape[0], w, n_threads)


def scores_by_threads(
    products: RowProducts, n_rows: int, w: np.ndarray, n_threads: int, rows_at_once: int = PREDICT_ROWS
) -> np.ndarray:
    """Scores of the rows of `DesignMatrix.products`; each task of a thread scores ``rows_at_once`` rows."""
    scores = np.empty(n_rows)

    def score(start: int) -> None:
        stop = min(start + rows_at_once, n_rows)
        products.scores(start, stop, w, scores[start:stop])

    parallel_map(score, range(0, n_rows, rows_at_once), n_threads)
    return scores


def scores_of_rows(scores: Callable[[Any], Any], X: MatrixLike | DeviceFeatures, rows: np.ndarray) -> np.ndarray:
    """Scores of some rows; X itself is scored if all of its rows are selected.

    Parameters
    ----------
    scores : callable
        Maps rows of features to their scores, which may be on a GPU like the features.
    X : array-like, sparse matrix or DataFrame of shape (n_rows, n_features)
        Features.
    rows : ndarray of int64, shape (n_taken,)
        Row numbers, ascending, each once.

    Returns
    -------
    ndarray of float64, shape (n_taken,)
        The scores.
    """
    if len(rows) == n_rows_of(X):
        return host_values(scores(X))
    parts = [rows[start : start + CHUNK_ROWS] for start in range(0, len(rows), CHUNK_ROWS)]
    found = [host_values(scores(take_rows(X, part))) for part in parts]
    return np.concatenate(found) if found else np.zeros(0)
