"""Search for NaN or infinite values in a matrix."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ranksvm._checks import is_sparse
from ranksvm._features import place_in_words


def where_not_finite(X: Any, names: Sequence[str] | None = None, *, pairwise: bool = False) -> str | None:
    """The first value of a dense or sparse matrix that is NaN or infinite, in words; None if there is none.

    ``names`` are the names of the columns, if they have any; with ``pairwise`` the columns are documents, not features.
    """
    if is_sparse(X):
        entries = X.tocoo()
        bad = np.flatnonzero(~np.isfinite(entries.data))[:1]
        found: Any = zip(entries.row[bad], entries.col[bad], entries.data[bad], strict=True)
    else:
        found = (
            (row, column, values[column])
            for row, values in enumerate(X)
            for column in np.flatnonzero(~np.isfinite(values))
        )
    for row, column, value in found:
        place = f"X[{row}, {column}]" if pairwise else place_in_words(row, column, names)
        return f"{'NaN' if np.isnan(value) else 'infinity'} at {place}"
    return None
