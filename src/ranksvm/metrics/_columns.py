"""Validation of columns of numbers and ids for metrics, and conversion to arrays."""

from typing import Any

import numpy as np

from ranksvm._util.checks import check_one_per_row
from ranksvm.data.numeric_column import label_column, numeric_column
from ranksvm.exceptions import DataError

__all__ = ["column", "document_ids"]


def column(name: str, values: Any, n_rows: int | None = None, finite: bool = True) -> np.ndarray:
    """A column as float64; ``n_rows``: the length it must have, that of y; without ``finite`` it may be infinite."""
    values = label_column(values) if name == "y" else numeric_column(name, values, finite=finite)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise DataError(f"{name} must be one-dimensional, got shape {values.shape}.")
    if n_rows is not None:
        check_one_per_row(name, values, n_rows, "y")
    return values


def document_ids(docid: Any, n_rows: int) -> np.ndarray:
    """Document ids, one for each row of y."""
    ids = np.asarray(docid)
    check_one_per_row("docid", ids, n_rows, "y")
    return ids
