"""Runs and judgments in rows: the DataFrames and named tuples of ir_datasets, ir_measures, PyTerrier and ranx."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from ranksvm._util.types import DataFrame
from ranksvm.data.frames import column, column_names, is_frame
from ranksvm.exceptions import DataError

__all__ = ["LABEL", "SCORE", "Rows", "columns_of_rows"]

# Names that a column or field may have in ir_datasets, ir_measures, PyTerrier, ranx or this package.
_QUERY = ("query_id", "qid", "q_id")
_DOCUMENT = ("doc_id", "docid", "docno")
LABEL = ("relevance", "label", "rel")
SCORE = ("score",)
# Rows with names: a DataFrame, or named tuples.
Rows = DataFrame | Iterable[NamedTuple]


def columns_of_rows(rows: Rows, values: tuple[str, ...], what: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The ids of queries, the ids of documents, and the values of rows.

    Parameters
    ----------
    rows : DataFrame or iterable of named tuples
        The rows; other columns and fields are ignored.
    values : tuple of str
        Possible names of the values: `LABEL` or `SCORE`.
    what : str
        Name of the argument, for messages.

    Returns
    -------
    qid, docid, values : ndarray
        One item for each row.

    Raises
    ------
    DataError
        When ``rows`` is neither a DataFrame nor named tuples, or a column is missing.
    """
    if is_frame(rows) and (names := column_names(rows)):
        return tuple(column(rows, _name(each, names, what)) for each in (_QUERY, _DOCUMENT, values))  # type: ignore[return-value]
    if not isinstance(rows, Iterable) or isinstance(rows, str | bytes):
        raise _other(rows, values, what)
    items = list(rows)
    if not items:
        return np.array([], dtype=str), np.array([], dtype=str), np.array([])
    if not hasattr(items[0], "_fields"):
        raise _other(items[0], values, what, "rows of type ")
    fields = [_name(each, items[0]._fields, what) for each in (_QUERY, _DOCUMENT, values)]
    qid, docid, found = ([getattr(item, field) for item in items] for field in fields)
    return np.array(qid).astype(str), np.array(docid).astype(str), np.array(found)


def _name(wanted: tuple[str, ...], names: Iterable[str], what: str) -> str:
    found = [name for name in wanted if name in names]
    if not found:
        raise DataError(f"{what} has no {' or '.join(map(repr, wanted))}, only {', '.join(map(repr, names))}.")
    return found[0]


def _other(given: object, values: tuple[str, ...], what: str, rows: str = "") -> DataError:
    kind = "Run" if values == SCORE else "Qrels"
    return DataError(
        f"{what} must be a {kind}, the path of a file, a dict of dicts, or a DataFrame or named tuples with query_id, "
        f"doc_id and {values[0]}; got {rows}{type(given).__name__}."
    )
