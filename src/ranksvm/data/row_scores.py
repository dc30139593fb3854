"""Scores of some rows of a large matrix, without a copy of all of them."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ranksvm._checks import n_rows_of
from ranksvm.data.frames import take_rows

__all__ = ["scores_of_rows"]

# Rows that are copied at a time: 64 MiB of 1,024 float32 features.
CHUNK_ROWS = 1 << 14


def scores_of_rows(scores: Callable[[Any], np.ndarray], X: Any, rows: np.ndarray) -> np.ndarray:
    """Scores of some rows; X itself is scored if these are all of its rows.

    Parameters
    ----------
    scores : callable
        From rows of features to their scores.
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
        return scores(X)
    parts = [rows[start : start + CHUNK_ROWS] for start in range(0, len(rows), CHUNK_ROWS)]
    return np.concatenate([scores(take_rows(X, part)) for part in parts]) if parts else np.zeros(0)
