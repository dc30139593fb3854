"""Columns of numbers and ids that metrics are given: judged, and made arrays."""

from typing import Any

import numpy as np

from ranksvm._checks import check_one_per_row
from ranksvm.exceptions import DataError

__all__ = ["column", "document_ids"]


def column(name: str, values: Any, n_rows: int | None = None, finite: bool = True) -> np.ndarray:
    """A column as float64; ``n_rows``: the length it must have, that of y; without ``finite`` it may be infinite."""
    try:
        values = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{name} must hold numbers: {error}.") from None
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise DataError(f"{name} must be one-dimensional, got shape {values.shape}.")
    if n_rows is not None:
        check_one_per_row(name, values, n_rows, "y")
    bad = ~np.isfinite(values) if finite else np.isnan(values)
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise DataError(f"{name} is {values[row]} in row {row} (from 0): it must be a {'finite ' * finite}number.")
    return values


def document_ids(docid: Any, n_rows: int) -> np.ndarray:
    """Document ids, one for each row of y."""
    ids = np.asarray(docid)
    check_one_per_row("docid", ids, n_rows, "y")
    return ids
