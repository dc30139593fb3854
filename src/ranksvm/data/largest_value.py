"""The largest value of X and its place, for messages."""

from typing import Any

import numpy as np

from ranksvm._util.checks import is_sparse
from ranksvm._util.mapped_file import mapped_file
from ranksvm._util.types import Features

__all__ = ["largest_value", "note_on_largest_value"]

# A sum that contains squares of larger values keeps few digits of the values of ordinary size.
LARGE = 1e7


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
