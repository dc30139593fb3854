"""A warning about evaluation sets whose features have another scale than the training data."""

import warnings
from typing import Any

import numpy as np

from ranksvm._util.checks import is_sparse, level_of_caller
from ranksvm.exceptions import ScaleWarning

__all__ = ["warn_of_other_scale"]

# Rows that are compared, evenly spaced: enough for a mean of each feature.
_ROWS = 1000
# A warning is given from this ratio of scales on. Parts of one data set differ by less: on LETOR's folds of OHSUMED,
# MQ2007 and MQ2008, and on sparse word pairs, by factors from 0.97 to 1.10.
_FACTOR = 10.0


def warn_of_other_scale(name: str, X: object, other: object) -> None:
    """Warn if the features of an evaluation set are typically 10 times as large as the training data's, or a tenth.

    The typical ratio is the median, over the features, of the ratios of mean absolute values. Only arrays and sparse
    matrices are compared.

    Parameters
    ----------
    name : str
        Name of the set.
    X, other : array-like
        Features of the training data, and of the set.
    """
    sizes, others = _sizes(X), _sizes(other)
    if sizes is None or others is None or sizes.shape != others.shape:
        return
    known = (sizes > 0.0) & (others > 0.0)
    ratio = float(np.median(others[known] / sizes[known])) if known.any() else 1.0
    if 1.0 / _FACTOR < ratio < _FACTOR:
        return
    warnings.warn(
        f"eval_set, {name}: its features are typically {ratio:.3g} times as large as the features of X. Was only "
        "one of them scaled? The steps of a Pipeline transform X, but not eval_set: fit those steps first, transform "
        "both, and fit the ranker to the results.",
        ScaleWarning,
        stacklevel=level_of_caller(),
    )


def _sizes(X: Any) -> np.ndarray | None:
    """Mean absolute value of each feature over some rows; None if X is no matrix of numbers."""
    if not (is_sparse(X) or (isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "fiu")) or 0 in X.shape:
        return None
    rows = np.unique(np.linspace(0, X.shape[0] - 1, _ROWS).astype(np.int64))
    part = abs((X.tocsr() if is_sparse(X) else X)[rows])
    return np.asarray(part.mean(axis=0, dtype=np.float64)).reshape(-1)
