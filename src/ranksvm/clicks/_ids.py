"""Ids of a log as small integers, and the rows of the data that belong to the documents of a log."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ranksvm.data import Queries
from ranksvm.data.queries import checked_ids
from ranksvm.datasets.ranking_data import RankingData
from ranksvm.exceptions import DataError

if TYPE_CHECKING:
    import pyarrow

    from ranksvm.clicks.log import ClickLog

__all__ = ["Coded", "Encoder", "Ids", "coded", "rows_of"]


@dataclass(frozen=True)
class Coded:
    """Ids of the rows of a log, stored as positions in a list of distinct ids.

    Parameters
    ----------
    codes : ndarray of int32
        Position of each row's id in ``ids``.
    ids : ndarray
        The different ids.
    """

    codes: np.ndarray
    ids: np.ndarray

    def take(self, rows: np.ndarray | slice) -> "Coded":
        """The ids of some rows."""
        return Coded(self.codes[rows], self.ids)


Ids = ArrayLike | Coded


def coded(name: str, values: Ids) -> Coded:
    """Ids of any type as codes; values that are already `Coded` are returned unchanged.

    Raises
    ------
    DataError
        When the values are not one-dimensional, or one is missing.
    """
    if isinstance(values, Coded):
        return values
    array = checked_ids(values, name, f"a {name} id")
    if array.dtype.kind in "iu" and len(array):
        low, high = int(array.min()), int(array.max())
        if high - low <= 4 * len(array):  # a lookup table over the range is faster than sorting
            # differences of 8-bit and 16-bit integers may overflow
            above = array - low if array.dtype.itemsize == 8 else array.astype(np.int64) - low
            is_used = np.zeros(high - low + 1, dtype=bool)
            is_used[above] = True
            place = np.cumsum(is_used, dtype=np.int32) - 1
            return Coded(place[above], np.flatnonzero(is_used).astype(array.dtype) + array.dtype.type(low))
    if array.dtype.kind in "OTUV":
        return Encoder().encode(array)
    ids, codes = np.unique(array, return_inverse=True)
    return Coded(codes.reshape(-1).astype(np.int32), ids)


class Encoder:
    """Encodes ids of several blocks of a file: an id has the same code in all blocks."""

    def __init__(self) -> None:
        self._number: dict[Any, int] = {}

    def encode(self, values: "np.ndarray | pyarrow.DictionaryArray") -> Coded:
        """Codes of one block of ids.

        Parameters
        ----------
        values : ndarray
            Ids; or a dictionary array of pyarrow, which has the distinct ids already.

        Returns
        -------
        Coded
            Its ids are the ids of all blocks so far.
        """
        if not isinstance(values, np.ndarray):
            different, places = values.dictionary.to_pylist(), values.indices.to_numpy()
        elif values.dtype.kind in "OTV":
            different, places = values.tolist(), slice(None)
        else:
            unique, places = np.unique(values, return_inverse=True)
            different = unique.tolist()
        number = self._number
        codes = np.fromiter((number.setdefault(value, len(number)) for value in different), np.int32, len(different))
        return Coded(codes[places].reshape(-1), self.ids)

    @property
    def ids(self) -> np.ndarray:
        """The ids so far, in the order of their codes."""
        known = list(self._number)
        if all(isinstance(value, int | np.integer) and not isinstance(value, bool) for value in known):
            low, high = min(known, default=0), max(known, default=0)
            for kind in (np.int64, np.uint64):  # hashes may not fit into int64
                if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max:
                    return np.array(known, dtype=kind)
        if any(all(isinstance(value, kind) for value in known) for kind in (str, float)):
            return np.array(known)
        ids = np.empty(len(known), dtype=object)
        ids[:] = known
        return ids


def rows_of(log: "ClickLog", data: RankingData) -> np.ndarray:
    """For each row of the log, its row in the data; see `ClickLog.rows`."""
    if not isinstance(data, RankingData):
        raise DataError(f"data must be RankingData(X, y, qid, docid), got {type(data).__name__}.")
    queries = data.queries
    # code of a query in the log -> query of the data
    query = _places(queries.ids, log.query_ids, "queries")
    if data.docid is None and log.document_ids.dtype.kind in "UST":
        return _rows_by_place(log, query if data.qid is not None else np.zeros_like(query), queries)
    if data.docid is None:
        rows = _row_numbers(log, data.n_rows)
        if data.qid is not None:
            _check_query(log, rows, query, queries.numbers())
        return rows
    if data.docid.dtype.kind == "O":  # may be of several types, which cannot be sorted
        known = Encoder().encode(data.docid)
        ids, code = known.ids, known.codes
    else:
        ids, code = np.unique(data.docid, return_inverse=True)
    n_ids = len(ids)
    key = queries.numbers() * n_ids + code.reshape(-1)
    by_key = np.argsort(key, kind="stable")
    sorted_key = key[by_key]
    twice = np.flatnonzero(sorted_key[1:] == sorted_key[:-1])
    if len(twice):
        row = int(by_key[twice[0]])
        name = queries.keys[int(sorted_key[twice[0]] // n_ids)]
        raise DataError(f"the data have document {str(data.docid[row])!r} twice in query {name!r}.")
    document = _places(ids, log.document_ids, "documents")
    if data.qid is None:
        query = np.zeros_like(query)
    wanted = query[log.query].astype(np.int64) * n_ids + document[log.document]
    missing = (query[log.query] < 0) | (document[log.document] < 0)
    place = np.minimum(np.searchsorted(sorted_key, wanted), len(sorted_key) - 1)
    missing |= sorted_key[place] != wanted
    if missing.any():
        _refuse(log, int(missing.argmax()), int(missing.sum()))
    return by_key[place]


def _places(known: np.ndarray, wanted: np.ndarray, what: str) -> np.ndarray:
    """Position of each wanted id (of the log) among the known ids (of the data); -1 if it is absent.

    If either kind is text, both are compared as text: ids that are numbers in LETOR files are text in service stores.
    """
    text = any(ids.dtype.kind in "UST" for ids in (known, wanted))
    names, wanted_names = ([str(value) for value in ids.tolist()] if text else ids.tolist() for ids in (known, wanted))
    if text:
        common = set(names).intersection(wanted_names)
        _refuse_equal_texts(known, names, common, f"the data have the {what}", "log")
        _refuse_equal_texts(wanted, wanted_names, common, f"the log has the {what}", "data")
    place = {value: number for number, value in enumerate(names)}
    return np.array([place.get(value, -1) for value in wanted_names], dtype=np.int64)


def _refuse_equal_texts(ids: np.ndarray, texts: list[str], common: set[str], found: str, other: str) -> None:
    """Raise DataError if two of the ids are the same text, such as 1 and "1", and this text is in ``common``."""
    if ids.dtype.kind != "O":
        return
    seen: dict[str, object] = {}
    for value, text in zip(ids.tolist(), texts, strict=True):
        if text in common and seen.setdefault(text, value) is not value:
            raise DataError(
                f"{found} {seen[text]!r} and {value!r}, but the ids of the {other} are text, which matches both: "
                "give all ids as text, or all as numbers."
            )


def _rows_by_place(log: "ClickLog", query: np.ndarray, queries: Queries) -> np.ndarray:
    """Rows of documents named "0", "1", ... in each query, as a service names documents without ids."""
    names = log.document_ids.tolist()
    wrong = next((name for name in names if not (name.isascii() and name.isdecimal())), None)
    if wrong is not None:
        raise DataError(
            f"the data have no document ids, so the documents of the log must be row numbers of the data, or text with "
            f"their places in their query, from 0, but one is {wrong!r}."
        )
    place, own = np.array([int(name) for name in names])[log.document], query[log.query]
    missing = (own < 0) | (place >= queries.sizes[own])
    if missing.any():
        _refuse(log, int(missing.argmax()), int(missing.sum()))
    position = queries.pointers[own] + place
    return position if queries.order is None else queries.order[position]


def _row_numbers(log: "ClickLog", n_rows: int) -> np.ndarray:
    if log.document_ids.dtype.kind not in "iu":
        example = log.document_ids[:1].tolist()[0]
        raise DataError(
            f"the data have no document ids, so the documents of the log must be row numbers of the data, but one is "
            f"{example!r}."
        )
    outside = (log.document_ids < 0) | (log.document_ids >= n_rows)
    if outside.any():
        example = int(log.document_ids[outside.argmax()])
        raise DataError(f"the log shows document {example}, but the rows of the data are 0 to {n_rows - 1}.")
    return log.document_ids[log.document].astype(np.int64)


def _check_query(log: "ClickLog", rows: np.ndarray, query: np.ndarray, numbers: np.ndarray) -> None:
    wrong = query[log.query] != numbers[rows]
    if wrong.any():
        row = int(wrong.argmax())
        name = log.query_ids[log.query[row] : log.query[row] + 1].tolist()[0]
        raise DataError(
            f"the log shows row {rows[row]} of the data for query {name!r}, but that row belongs to another query."
        )


def _refuse(log: "ClickLog", row: int, n_missing: int) -> None:
    document = log.document_ids[[log.document[row]]].tolist()[0]
    query = log.query_ids[[log.query[row]]].tolist()[0]
    more = f" (and {n_missing - 1:,} more rows of the log)" if n_missing > 1 else ""
    raise DataError(f"the data have no document {document!r} in query {query!r}, which the log shows{more}.")
