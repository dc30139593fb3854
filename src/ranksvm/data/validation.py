"""Validation of the arguments of `fit` and `predict`, and conversion to the form that the objectives use."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import ranksvm._compiled.linear as linear
from ranksvm._util.sparse_format import check_sparse_format
from ranksvm._util.threads import parallel_map
from ranksvm._util.values import check_one_per_row, is_sparse, level_of_caller
from ranksvm.data import Queries, frames
from ranksvm.data._finite import where_not_finite
from ranksvm.data.design_matrix import DenseDesign
from ranksvm.data.device_features import DeviceFeatures, device_features
from ranksvm.data.numeric_column import label_column
from ranksvm.data.preferences import Preferences
from ranksvm.data.two_blocks import TwoBlocks
from ranksvm.device.arrays import host_sparse
from ranksvm.exceptions import DataError, OneQueryWarning

# We search for NaN ourselves, on all threads, and report the position.
_FEATURE_CHECKS: dict[str, Any] = {
    "accept_sparse": "csr",
    "dtype": (np.float64, np.float32),
    "order": "C",
    "ensure_all_finite": False,
}
# Values checked for NaN by one task of a thread.
CHUNK = 1 << 20
# Rows that may be fitted without query ids. Published query lists have up to about 1,000 documents (OHSUMED 320, MQ2008
# 121, MSLR 1,251); training data have more rows.
MOST_ROWS_WITHOUT_QID = 1000


def features(estimator: Any, X: Any, *, n_threads: int, reset: bool = False, finite: bool = True) -> Any:
    """X as a C-contiguous float array or CSR, copied only if it is not one (or a DataFrame); two arrays of preferences.

    Raises DataError if X is invalid, or (if ``finite``) has NaN or infinite values, with their position. With ``reset``
    the estimator stores the number and names of the features; otherwise X must agree with them.
    """
    if isinstance(X, Preferences):
        return _features_of_preferences(estimator, X, n_threads, reset)
    X = host_sparse(X)
    if (found := _features_on_device(estimator, X, reset)) is not None:
        if finite:
            check_finite(estimator, found, n_threads)
        return found
    with _as_data_error():
        found = _plain_features(estimator, X, reset)
        if found is None:
            found = frames.validated(estimator, X, reset=reset, **_FEATURE_CHECKS)
    if finite:
        check_finite(estimator, found, n_threads)
    return found


def features_and_labels(
    estimator: Any, X: Any, y: Any, *, n_threads: int, reset: bool = True, finite: bool = True
) -> tuple[Any, np.ndarray]:
    """X as `features` gives it, and y as float64.

    The estimator stores the number and names of the features (``reset``), or X must agree with those stored.
    """
    shape: tuple[int, ...] = getattr(y, "shape", ())
    if len(shape) == 2 and shape[1] > 1:
        raise DataError(
            f"y must hold one label for each row of X, got shape {shape}. If X and y are chosen and rejected "
            "answers, pass both as X: fit(Preferences(chosen, rejected))."
        )
    X = host_sparse(X)
    if reset:
        frames.refuse_reserved_columns(frames.column_names(X), y)
    if y is not None:  # None is refused by scikit-learn, which names the estimator
        y = label_column(y)
        if (on_device := _features_on_device(estimator, X, reset)) is not None:
            if finite:
                check_finite(estimator, on_device, n_threads)
            return on_device, labels(y, len(on_device))
    with _as_data_error():
        found = _plain_features(estimator, X, reset) if frames.is_plain_vector(y, X) else None
        if found is None:
            found, y = frames.validated(estimator, X, y, reset=reset, y_numeric=True, **_FEATURE_CHECKS)
    if finite:
        check_finite(estimator, found, n_threads)
    return found, y


def _features_on_device(estimator: Any, X: Any, reset: bool) -> DeviceFeatures | None:
    """X where it lies, if that is a GPU; None for anything else, and for models that `frames.validated` refuses it."""
    found = device_features(X) if getattr(estimator, "_reads_devices", False) else None
    if found is None:
        return None
    n, name = found.shape[1], type(estimator).__name__
    if reset:
        vars(estimator).pop("feature_names_in_", None)
        estimator.n_features_in_ = n
    elif n != getattr(estimator, "n_features_in_", n):
        raise DataError(f"X has {n} features, but {name} is expecting {estimator.n_features_in_} features as input.")
    return found


def _features_of_preferences(estimator: Any, data: Preferences, n_threads: int, reset: bool) -> Any:
    """The rows of chosen and rejected answers; the names of the features are those of the chosen ones."""
    blocks = []
    for name, X, first in zip(("chosen", "rejected"), data.blocks, (reset, False), strict=True):
        try:
            blocks.append(features(estimator, X, n_threads=n_threads, reset=first))
        except DataError as error:
            raise DataError(f"{name}: {error}") from error
    return TwoBlocks.joined(*blocks)


def _plain_features(estimator: Any, X: Any, reset: bool) -> Any:
    """A float array or CSR as scikit-learn's checks would return it; None if they are needed to convert or refuse X.

    Importing scikit-learn takes longer than most fits, and its checks of a few rows take longer than scoring them.
    """
    dense = type(X) is np.ndarray
    if not dense and not (is_sparse(X) and X.format == "csr"):
        return None
    if X.ndim != 2 or 0 in X.shape or X.dtype not in _FEATURE_CHECKS["dtype"]:
        return None
    named = hasattr(estimator, "feature_names_in_")
    if not reset and (named or getattr(estimator, "n_features_in_", None) != X.shape[1]):
        return None
    if not dense:
        check_sparse_format(X)
    if reset:
        if named:
            del estimator.feature_names_in_
        estimator.n_features_in_ = X.shape[1]
    return np.ascontiguousarray(X) if dense else X


def labels(y: Any, n_rows: int) -> np.ndarray:
    """y as float64, one for each of ``n_rows`` rows. Raises DataError if it has another length or is not finite."""
    from sklearn.utils.validation import column_or_1d

    y = label_column(y)
    with _as_data_error():
        y = column_or_1d(y)
    check_one_per_row("y", y, n_rows)
    return y


@contextmanager
def _as_data_error() -> Iterator[None]:
    """Convert scikit-learn's errors about data to DataError."""
    try:
        yield
    except OverflowError as error:
        raise DataError(f"X holds a number that is too large for float64 (1.8e308): {error}.") from error
    except ValueError as error:
        from sklearn.exceptions import NotFittedError

        if isinstance(error, NotFittedError):
            raise
        raise DataError(str(error)) from error


def check_scores(scores: np.ndarray) -> np.ndarray:
    """The scores; DataError names the first row whose score has overflowed."""
    if not linear.all_finite(scores):
        row = int(np.flatnonzero(~np.isfinite(scores))[0])
        raise DataError(
            f"The score of row {row} (from 0) is {scores[row]}: its features, or the model's weights, are too "
            "large for float64. Scale the features."
        )
    return scores


def queries(qid: Any, group: Any, n_rows: int) -> Queries:
    """The grouping given by ``qid`` or ``group`` (not both); one query without either."""
    if group is None:
        return Queries.from_qid(qid, n_rows)
    if qid is not None:
        raise DataError(
            "Give qid (one query id per row; a column 'qid' of a DataFrame is that, too) or group (sizes of "
            "consecutive queries), not both."
        )
    return Queries.from_group(group, n_rows)


def check_grouped(qid: Any, group: Any, n_rows: int, caller: str = "fit", done: str = "compared") -> None:
    """Warn where rows have neither query ids nor group sizes; with many rows, refuse them.

    A few rows are plausibly one query, as in a first trial and in scikit-learn's checks of estimators; beyond
    `MOST_ROWS_WITHOUT_QID` they are plausibly several, whose rows must not be compared. The message names the function,
    ``caller``, and what is ``done`` with any two rows of a query.
    """
    if qid is not None or group is not None or n_rows < 2:
        return
    ids = "one query id per row" + ("" if caller == "evaluate" else ", or the name of a DataFrame's column")
    takes_group = caller in ("fit", "evaluate")
    cure = (
        f"Pass qid= ({ids})" + " or group= (sizes of consecutive queries)" * takes_group + ". "
        "If all rows are one query, say so: " + f"group=[{n_rows}], or " * takes_group + f"qid=np.zeros({n_rows})."
    )
    if n_rows > MOST_ROWS_WITHOUT_QID:
        raise DataError(
            f"{caller} got {n_rows:,} rows without query ids: as one query, any two of them would be {done}. {cure} "
            "Inside scikit-learn's searches and cross_val_score, sklearn.set_config(enable_metadata_routing=True) "
            "passes qid on; ranksvm.cross_validate needs no routing."
        )
    message = f"{caller} got no query ids, so all {n_rows:,} rows are one query, and any two of them are {done}. {cure}"
    warnings.warn(message, OneQueryWarning, stacklevel=level_of_caller())


def check_finite(estimator: Any, X: Any, n_threads: int) -> None:
    """Raise DataError if features, otherwise validated, have NaN or infinite values: the first, how many, and where."""
    if isinstance(X, DeviceFeatures):
        if not np.isfinite(X.largest()).all():
            raise _not_finite(estimator, X.on_host())
        return
    values = X.data if is_sparse(X) else X.reshape(-1)
    chunks = [values[start : start + CHUNK] for start in range(0, len(values), CHUNK)]
    if not all(parallel_map(linear.all_finite, chunks, n_threads)):
        raise _not_finite(estimator, X)


def largest_values(estimator: Any, X: Any, n_threads: int) -> np.ndarray | None:
    """The largest absolute value of each column, if X is an array, in the same reading as `check_finite`, else None."""
    if isinstance(X, DeviceFeatures):
        largest = X.largest()
        if not np.isfinite(largest).all():
            raise _not_finite(estimator, X.on_host())
        return largest
    if not isinstance(X, np.ndarray):
        if not isinstance(X, TwoBlocks):  # whose parts have been checked
            check_finite(estimator, X, n_threads)
        return None
    largest = DenseDesign(X).largest(n_threads)
    if not np.isfinite(largest).all():
        raise _not_finite(estimator, X)
    return largest


def _not_finite(estimator: Any, X: Any) -> DataError:
    pairwise = getattr(estimator, "kernel", None) == "precomputed"
    place = where_not_finite(X, getattr(estimator, "feature_names_in_", None), pairwise=pairwise)
    return DataError(
        f"Input X contains {place}: drop such rows, or replace the values, by sklearn.impute.SimpleImputer before "
        "the ranker in a Pipeline, for instance."
    )
