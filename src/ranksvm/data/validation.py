"""What `fit` and `predict` are given, validated and brought into the form the objectives read."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse

import ranksvm._compiled.linear as linear
from ranksvm._checks import check_one_per_row
from ranksvm._parallel import parallel_map
from ranksvm.data import Queries, frames
from ranksvm.data._finite import where_not_finite
from ranksvm.exceptions import DataError

# NaN is looked for by ourselves, on all threads and with its place.
_FEATURE_CHECKS: dict[str, Any] = {
    "accept_sparse": "csr",
    "dtype": (np.float64, np.float32),
    "order": "C",
    "ensure_all_finite": False,
}
# Values checked for NaN by one task of a thread.
CHUNK = 1 << 20


def features(estimator: Any, X: Any, *, n_threads: int, reset: bool = False, finite: bool = True) -> Any:
    """X as scikit-learn would have it: a C-contiguous float array or CSR, copied only if it is not (or a DataFrame).

    Raises DataError where X is not that, or (unless not ``finite``) has NaN or infinite values, with their place. With
    ``reset`` the estimator takes note of the number and names of the features, without it X must agree with them.
    """
    with _as_data_error():
        X = frames.validated(estimator, X, reset=reset, **_FEATURE_CHECKS)
    if finite:
        check_finite(estimator, X, n_threads)
    return X


def features_and_labels(
    estimator: Any, X: Any, y: Any, *, n_threads: int, reset: bool = True
) -> tuple[Any, np.ndarray]:
    """X as `features` gives it, and y as float64.

    The estimator takes note of the number and names of the features (``reset``), or they must be those that it knows.
    """
    with _as_data_error():
        X, y = frames.validated(estimator, X, y, reset=reset, y_numeric=True, **_FEATURE_CHECKS)
        y = np.asarray(y, dtype=np.float64)
    check_finite(estimator, X, n_threads)
    return X, y


def labels(y: Any, n_rows: int) -> np.ndarray:
    """y as float64, one for each of ``n_rows`` rows. Raises DataError where it is not that, or not finite."""
    from sklearn.utils.validation import check_array, column_or_1d

    with _as_data_error():
        y = column_or_1d(check_array(y, ensure_2d=False, dtype=np.float64, input_name="y"))
    check_one_per_row("y", y, n_rows)
    return y


@contextmanager
def _as_data_error() -> Iterator[None]:
    """scikit-learn's complaints about data, as ours."""
    from sklearn.exceptions import NotFittedError

    try:
        yield
    except NotFittedError:
        raise
    except ValueError as error:
        raise DataError(str(error)) from error


def queries(qid: Any, group: Any, n_rows: int) -> Queries:
    """The grouping that ``qid`` or ``group`` (not both) gives; one query without either."""
    if group is None:
        return Queries.from_qid(qid, n_rows)
    if qid is not None:
        raise DataError("Give qid (one query id per row) or group (sizes of consecutive queries), not both.")
    return Queries.from_group(group, n_rows)


def check_finite(estimator: Any, X: Any, n_threads: int) -> None:
    """Raise DataError where features, validated otherwise, have NaN or infinite values; it names the first place."""
    values = X.data if scipy.sparse.issparse(X) else X.reshape(-1)
    chunks = [values[start : start + CHUNK] for start in range(0, len(values), CHUNK)]
    if not all(parallel_map(linear.all_finite, chunks, n_threads)):
        place = where_not_finite(X, getattr(estimator, "feature_names_in_", None))
        raise DataError(f"Input X contains {place}: replace or drop such values.")
