"""Validation and conversion of the arguments of `fit` and `predict`; search for NaN, infinite and large values in X."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

import ranksvm._compiled.linear as linear
from ranksvm._util.checks import check_one_per_row, is_sparse
from ranksvm._util.text import feature_label, place_in_words
from ranksvm._util.threads import parallel_map
from ranksvm._util.types import Features, SparseMatrix
from ranksvm.data.design_matrix import DenseDesign, TwoBlocks, mapped_file
from ranksvm.data.device_features import DeviceFeatures
from ranksvm.data.numeric_column import label_column
from ranksvm.exceptions import DataError

# Arguments of scikit-learn's checks. We search for NaN ourselves, on all threads, and report the position.
FEATURE_CHECKS: dict[str, Any] = {
    "accept_sparse": "csr",
    "dtype": (np.float64, np.float32),
    "order": "C",
    "ensure_all_finite": False,
}
# Number of values that one task of a thread checks for NaN.
CHUNK = 1 << 20
# rows of a dense matrix that are searched for suspect values at once
ROWS = 4096
# maximum number of columns listed in a message; those with the most NaN or infinite values come first
LISTED = 5
# A larger value is named in messages: a sum that contains its square keeps few digits of values of ordinary size.
LARGE = 1e7


def checked_labels(y: ArrayLike, n_rows: int) -> np.ndarray:
    """y as float64; DataError if y does not have one finite number for each of ``n_rows`` rows."""
    from sklearn.utils.validation import column_or_1d

    column = label_column(y)
    with as_data_error():
        column = column_or_1d(column)
    check_one_per_row("y", column, n_rows)
    return column


@contextmanager
def as_data_error(X: object = None) -> Iterator[None]:
    """Convert scikit-learn's errors about data to DataError, which names the column of an array X that holds text."""
    try:
        yield
    except OverflowError as error:
        raise DataError(f"X holds a number that is too large for float64 (1.8e308): {error}.") from error
    except ValueError as error:
        from sklearn.exceptions import NotFittedError

        if isinstance(error, NotFittedError):
            raise
        raise DataError(f"{error}{_place_of_text(X)}") from error


def _place_of_text(X: object) -> str:
    """The first column of an array that cannot be converted to numbers, and the advice, as the end of a message."""
    if not isinstance(X, np.ndarray) or X.ndim != 2 or X.dtype.kind not in "OTU":
        return ""
    for column in range(X.shape[1]):
        try:
            X[:, column].astype(np.float64)
        except (TypeError, ValueError):
            return (
                f". Column {column} of X (from 0) is not numeric: encode or drop it. Text categories of an additive "
                f"model need a DataFrame, as in AdditiveRankSVM(categorical=[{column}]).fit(pandas.DataFrame(X), ...)."
            )
    return ""


def check_scores(scores: np.ndarray) -> np.ndarray:
    """Return the scores; DataError names the first row whose score has overflowed."""
    if not linear.all_finite(scores):
        row = int(np.flatnonzero(~np.isfinite(scores))[0])
        raise DataError(
            f"The score of row {row} (from 0) is {scores[row]}: its features, or the model's weights, are too "
            "large for float64. Scale the features."
        )
    return scores


def check_finite(
    X: Features | DeviceFeatures,
    n_threads: int,
    names: Sequence[str] | None = None,
    pairwise: bool = False,
    missing: bool = False,
) -> None:
    """Raise DataError, with the number of NaN and infinite values and the place of the first one, if X has any.

    Parameters
    ----------
    X : ndarray, CSR matrix or DeviceFeatures
        The features, which are otherwise valid.
    n_threads : int
        Number of threads.
    names : array-like of str, optional
        Names of the features.
    pairwise : bool
        Whether X is a kernel matrix, whose columns are documents, not features.
    missing : bool
        Whether values on the host may be NaN: then only infinite ones are refused (`check_not_infinite`).
    """
    if isinstance(X, DeviceFeatures):
        if not np.isfinite(X.largest()).all():
            raise _not_finite(X.on_host(), names, pairwise)
        return
    values = X.data if is_sparse(X) else X.ravel()  # contiguous, unlike reshape(-1) of one column of a wider X
    chunks = [values[start : start + CHUNK] for start in range(0, len(values), CHUNK)]
    if not all(parallel_map(linear.all_finite, chunks, n_threads)):
        if not missing:
            raise _not_finite(X, names, pairwise)
        check_not_infinite(X, names)


def check_not_infinite(X: Features, names: Sequence[str] | None = None, first_row: int = 0) -> None:
    """Refuse infinite values.

    Parameters
    ----------
    X : ndarray or CSR matrix, shape (n_rows, n_features)
        The features.
    names : sequence of str, optional
        Names of the features, for messages.
    first_row : int
        Number of the first row, for messages.

    Raises
    ------
    DataError
        When there is one; the message has its place.
    """
    place = first_place(X, np.isinf, names, first_row)
    if place is not None:
        raise DataError(f"Input X contains infinity at {place}: missing values are NaN.")


def first_place(
    X: Features,
    is_wrong: Callable[[np.ndarray], np.ndarray],
    names: Sequence[str] | None,
    first_row: int,
    columns: np.ndarray | None = None,
) -> str | None:
    """The place of the first wrong value, in words.

    Parameters
    ----------
    X : ndarray or CSR matrix, shape (n_rows, n_features)
        The features.
    is_wrong : callable
        Whether each value of an array is wrong.
    names : sequence of str or None
        Names of the features.
    first_row : int
        Number of the first row.
    columns : ndarray of bool, shape (n_features,), optional
        The features whose values are checked; by default all.

    Returns
    -------
    str or None
        The place; None if no value is wrong.
    """
    if is_sparse(X):
        entries = X.tocoo()
        wrong = is_wrong(entries.data)
        wrong = wrong if columns is None else wrong & columns[entries.col]
        rows, places = entries.row[wrong], entries.col[wrong]
    else:
        wrong = is_wrong(X)
        rows, places = np.nonzero(wrong if columns is None else wrong & columns)
    return place_in_words(first_row + int(rows[0]), int(places[0]), names) if len(rows) else None


def largest_values(
    X: Features | DeviceFeatures | TwoBlocks, n_threads: int, names: Sequence[str] | None = None, pairwise: bool = False
) -> np.ndarray | None:
    """Check as `check_finite` does; return the largest absolute value of each column of a dense array, else None."""
    if isinstance(X, DeviceFeatures):
        largest = X.largest()
        if not np.isfinite(largest).all():
            raise _not_finite(X.on_host(), names, pairwise)
        return largest
    if not isinstance(X, np.ndarray):
        if not isinstance(X, TwoBlocks):  # its parts have been checked
            check_finite(X, n_threads, names, pairwise)
        return None
    largest = DenseDesign(X).largest(n_threads)
    if not np.isfinite(largest).all():
        raise _not_finite(X, names, pairwise)
    return largest


def _not_finite(X: Features, names: Sequence[str] | None, pairwise: bool) -> DataError:
    place = where_not_finite(X, names, pairwise=pairwise)
    replaced = "the values, for example by sklearn.impute.SimpleImputer before the ranker in a Pipeline"
    if any(np.isinf(values).any() for _, _, values in _entries_not_finite(X)):  # which SimpleImputer refuses
        replaced = "infinite values by finite numbers"
    return DataError(f"Input X contains {place}: drop such rows, or replace {replaced}.")


def where_not_finite(
    X: Features | SparseMatrix, names: Sequence[str] | None = None, *, pairwise: bool = False
) -> str | None:
    """Describe the values of a dense or sparse matrix that are NaN or infinite; None if there are none.

    Parameters
    ----------
    X : ndarray or sparse matrix, shape (n_rows, n_columns)
        The matrix.
    names : sequence of str, optional
        Names of the columns.
    pairwise : bool
        Whether the columns are documents, not features.

    Returns
    -------
    str or None
        Kind and place of the first such value; if there are more, their number and their columns.
    """
    nan, infinite = np.zeros(X.shape[1], dtype=np.int64), np.zeros(X.shape[1], dtype=np.int64)
    first = None
    for rows, columns, values in _entries_not_finite(X):
        is_nan = np.isnan(values)
        np.add.at(nan, columns[is_nan], 1)
        np.add.at(infinite, columns[~is_nan], 1)
        if first is None and len(rows):
            kind = "NaN" if is_nan[0] else "infinity"
            row, column = int(rows[0]), int(columns[0])
            first = f"{kind} at {f'X[{row}, {column}]' if pairwise else place_in_words(row, column, names)}"
    counts = nan + infinite
    if first is None or counts.sum() == 1:
        return first
    columns = np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)]
    named = [f"column {column}" if pairwise else feature_label(int(column), names) for column in columns[:LISTED]]
    listed = ", ".join(f"{counts[column]:,} in {label}" for column, label in zip(columns[:LISTED], named, strict=True))
    more = f" and others in {len(columns) - LISTED:,} more" if len(columns) > LISTED else ""
    totals = [f"{total:,} {what}" for total, what in ((nan.sum(), "NaN"), (infinite.sum(), "infinite")) if total]
    return f"{first} ({' and '.join(totals)} in all: {listed}{more})"


def _entries_not_finite(X: Features | SparseMatrix) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Rows, columns and values of the entries that are not finite, part by part, row by row."""
    if is_sparse(X):
        entries = X.tocoo()
        bad = np.flatnonzero(~np.isfinite(entries.data))
        yield entries.row[bad], entries.col[bad], entries.data[bad]
        return
    for start in range(0, X.shape[0], ROWS):
        part = X[start : start + ROWS]
        rows, columns = np.nonzero(~np.isfinite(part))
        yield rows + start, columns, part[rows, columns]


def largest_value(X: Features) -> tuple[float, int, int]:
    """The largest absolute value of an array or CSR matrix, and its row and column; (0, 0, 0) without any value."""
    values = X.data if is_sparse(X) else X.reshape(-1)
    if not values.size:
        return 0.0, 0, 0
    highest, lowest = int(np.argmax(values)), int(np.argmin(values))
    place = highest if values[highest] >= -values[lowest] else lowest
    value = abs(float(values[place]))
    if is_sparse(X):
        return value, int(np.searchsorted(X.indptr, place, side="right")) - 1, int(X.indices[place])
    return value, *divmod(place, X.shape[1])


def note_on_largest_value(X: Any) -> str:
    """A sentence, after a space, with the largest value and its place if it is above 1e7; otherwise an empty string.

    The string is also empty for features in a file, on a GPU, or in another form than an array or sparse matrix.
    """
    if not (isinstance(X, np.ndarray) or is_sparse(X)) or mapped_file(X) is not None:
        return ""
    value, row, column = largest_value(X)
    return f" The largest value is {value:.6g}, at X[{row}, {column}]." if value > LARGE else ""
