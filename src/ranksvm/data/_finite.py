"""Search for NaN or infinite values in a matrix."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ranksvm._checks import is_sparse

# rows of a dense matrix that are searched at once
ROWS = 4096
# columns listed in a message, those with the most such values
LISTED = 5


def where_not_finite(X: Any, names: Sequence[str] | None = None) -> str | None:
    """The values of a dense or sparse matrix that are NaN or infinite, in words; None if there are none.

    Parameters
    ----------
    X : ndarray or sparse matrix, shape (n_rows, n_columns)
        The matrix.
    names : sequence of str, optional
        Names of the columns.

    Returns
    -------
    str or None
        Kind and place of the first one, and if there are more, how many, in which columns.
    """
    nan, infinite = np.zeros(X.shape[1], dtype=np.int64), np.zeros(X.shape[1], dtype=np.int64)
    first = None
    for rows, columns, values in _not_finite(X):
        is_nan = np.isnan(values)
        np.add.at(nan, columns[is_nan], 1)
        np.add.at(infinite, columns[~is_nan], 1)
        if first is None and len(rows):
            kind = "NaN" if is_nan[0] else "infinity"
            first = f"{kind} in row {rows[0]}, column {_named(columns[0], names)}"
    counts = nan + infinite
    if first is None or counts.sum() == 1:
        return first
    columns = np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)]
    listed = ", ".join(f"{counts[column]:,} in column {_named(column, names)}" for column in columns[:LISTED])
    more = f" and others in {len(columns) - LISTED:,} more columns" if len(columns) > LISTED else ""
    totals = [f"{total:,} {what}" for total, what in ((nan.sum(), "NaN"), (infinite.sum(), "infinite")) if total]
    return f"{first} ({' and '.join(totals)} in all: {listed}{more})"


def _not_finite(X: Any) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
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


def _named(column: int, names: Sequence[str] | None) -> str:
    return f"{column}" if names is None else f"{column} ({str(names[column])!r})"
