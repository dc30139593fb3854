"""Scores of some rows of a large matrix, without a copy of all of them."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ranksvm._util.checks import n_rows_of
from ranksvm._util.types import MatrixLike
from ranksvm.data.device_features import DeviceFeatures
from ranksvm.data.frames import take_rows
from ranksvm.device.arrays import host_values

__all__ = ["scores_of_rows"]

# Rows that are copied at a time: 64 MiB of 1,024 float32 features.
CHUNK_ROWS = 1 << 14


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
