"""Scores of documents under a linear function."""

import numpy as np

from ranksvm._util.threads import parallel_map
from ranksvm._util.types import Features
from ranksvm.data.design_matrix import RowProducts, as_design_matrix
from ranksvm.data.device_features import DeviceFeatures

__all__ = ["linear_scores", "scores_by_threads"]

# Rows scored by one task of a thread.
PREDICT_ROWS = 1 << 15


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
