"""Suspect values of X and their places, for messages: NaN, infinite values, and the largest value."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ranksvm._util.checks import is_sparse
from ranksvm._util.mapped_file import mapped_file
from ranksvm._util.text import feature_label, place_in_words
from ranksvm._util.types import Features, SparseMatrix

__all__ = ["largest_value", "note_on_largest_value", "where_not_finite"]

# rows of a dense matrix that are searched at once
ROWS = 4096
# maximum number of columns listed in a message; those with the most NaN or infinite values come first
LISTED = 5
# A sum that contains squares of larger values keeps few digits of the values of ordinary size.
LARGE = 1e7


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
    for rows, columns, values in _not_finite(X):
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
    labels = [f"column {column}" if pairwise else feature_label(int(column), names) for column in columns[:LISTED]]
    listed = ", ".join(f"{counts[column]:,} in {label}" for column, label in zip(columns[:LISTED], labels, strict=True))
    more = f" and others in {len(columns) - LISTED:,} more" if len(columns) > LISTED else ""
    totals = [f"{total:,} {what}" for total, what in ((nan.sum(), "NaN"), (infinite.sum(), "infinite")) if total]
    return f"{first} ({' and '.join(totals)} in all: {listed}{more})"


def _not_finite(X: Features | SparseMatrix) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
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
