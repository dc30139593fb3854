"""The class Queries: the rows of a data set grouped by query, in a form that is computed only once."""

import warnings
from bisect import bisect_right
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ranksvm._util.checks import check_one_per_row, level_of_caller
from ranksvm.data.numeric_column import as_array, is_missing, numeric_column
from ranksvm.exceptions import DataError, LikelyMistakeWarning, OneQueryWarning

__all__ = ["Queries", "check_grouped", "checked_ids", "descending_within_ties", "id_array", "query_ranges"]

# Advice for code that splits rows, because group cannot be split.
QID_FROM_GROUP = "give one query id per row instead, qid=np.repeat(np.arange(len(group)), group)."
# Largest number of rows that are accepted without query ids. Published query lists have up to about 1,000 documents
# (OHSUMED 320, MQ2008 121, MSLR 1,251); training data have more rows.
MAX_ROWS_WITHOUT_QID = 1000


class Queries:
    """The rows of a data set grouped by query: CSR pointers over rows sorted by query.

    *Position* ``t`` of the sorted order is row ``order[t]`` of the data; query ``q`` (a number from 0, in the
    order in which the queries first appear) has the positions ``pointers[q]`` to ``pointers[q + 1] - 1``. Within
    a query rows keep their order. Rows already sorted by query need no permutation: ``order`` is None.

    Parameters
    ----------
    pointers : ndarray of int64, shape (n_queries + 1,)
        First position of each query, then the number of rows.
    order : ndarray of int64, shape (n_rows,), or None
        Row of each position; None when position and row are the same.
    ids : ndarray, shape (n_queries,)
        The query ids, in order of first appearance.

    Examples
    --------
    >>> queries = Queries.from_qid(["b", "a", "b"])
    >>> queries.ids.tolist(), queries.pointers.tolist(), queries.order.tolist()
    (['b', 'a'], [0, 2, 3], [0, 2, 1])
    """

    def __init__(self, pointers: np.ndarray, order: np.ndarray | None, ids: np.ndarray):
        self.pointers = pointers
        self.order = order
        self.ids = ids

    @classmethod
    def from_qid(cls, qid: ArrayLike | None, n_rows: int | None = None, *, name: str = "qid") -> "Queries":
        """Group rows by their query ids.

        Parameters
        ----------
        qid : array-like of shape (n_rows,), or None
            Query id of each row: any dtype, any order, any range. None: all rows are one query.
        n_rows : int, optional
            Number of rows expected.
        name : str, default "qid"
            Name of the ids in error messages.

        Returns
        -------
        Queries
            The grouping.

        Raises
        ------
        DataError
            When ``qid`` is not one-dimensional, has another length than ``n_rows``, or contains missing values.
        """
        if qid is None:
            if n_rows is None:
                raise DataError("qid is None and the number of rows is not known.")
            return cls(np.array([0, n_rows], dtype=np.int64), None, np.zeros(1, dtype=np.int64))
        qid = checked_ids(qid, name)
        if n_rows is not None:
            check_one_per_row(name, qid, n_rows)
        if len(qid) == 0:
            return cls(np.zeros(1, dtype=np.int64), None, qid)
        # Runs of equal ids are grouped, not rows, because real data have long runs. If each row is a separate run, the
        # temporary arrays here determine the peak memory of a fit, so each is freed as soon as possible.
        starts = np.flatnonzero(qid[1:] != qid[:-1])
        ends = np.empty(len(starts) + 2, dtype=np.int64)
        ends[0], ends[-1] = 0, len(qid)
        np.add(starts, 1, out=ends[1:-1])
        del starts
        run_ids = qid[ends[:-1]]
        if qid.dtype.kind not in "OV" and (run_ids[1:] > run_ids[:-1]).all():  # rows sorted by query
            return cls(ends, None, run_ids)
        unique, first, run_query = _unique(run_ids)
        if qid.dtype.kind == "O":
            _warn_of_equal_texts(unique, name)
        by_appearance = np.argsort(first, kind="stable")
        ids = unique[by_appearance]
        if len(ids) == len(run_ids):
            return cls(ends, None, ids)
        number = np.empty(len(ids), dtype=np.int32 if len(ids) < 1 << 31 else np.int64)
        number[by_appearance] = np.arange(len(ids))
        run_query = number[run_query]
        runs = np.argsort(run_query, kind="stable")
        if len(run_ids) == len(qid):
            pointers = np.concatenate(([0], np.cumsum(np.bincount(run_query, minlength=len(ids)))))
            return cls(pointers, runs, ids)
        lengths = np.diff(ends)
        sizes = np.bincount(run_query, weights=lengths, minlength=len(ids)).astype(np.int64)
        del run_query
        run_start, lengths = ends[:-1][runs], lengths[runs]
        del runs, ends
        # Rows of run r are run_start[r], run_start[r] + 1, ...: a cumulative sum of ones with jumps between runs.
        steps = np.ones(len(qid), dtype=np.int64)
        steps[0] = run_start[0]
        jumps = np.diff(run_start)
        jumps -= lengths[:-1]
        jumps += 1
        steps[np.cumsum(lengths)[:-1]] = jumps
        del jumps, lengths, run_start
        return cls(np.concatenate(([0], np.cumsum(sizes))), np.cumsum(steps, out=steps), ids)

    @classmethod
    def from_group(cls, group: ArrayLike, n_rows: int) -> "Queries":
        """Group consecutive rows by the sizes of the queries, as in LightGBM and XGBoost.

        Parameters
        ----------
        group : array-like of int, shape (n_queries,)
            Number of rows of each query, in order.
        n_rows : int
            Number of rows the sizes must add up to.

        Returns
        -------
        Queries
            The grouping, with ids 0, 1, 2, ...

        Raises
        ------
        DataError
            When a size is not a non-negative integer or the sizes do not add up to ``n_rows``.
        """
        sizes = numeric_column("group", group, advice="give the number of rows of each query")
        if sizes.ndim != 1 or np.any(sizes != np.floor(sizes)):
            raise DataError("group must be a one-dimensional array of query sizes (whole numbers).")
        if np.any(sizes < 0):
            raise DataError(f"group has a negative size: {int(sizes[sizes < 0][0])}.")
        if len(sizes) and sizes.max() > n_rows:
            raise DataError(f"group has the size {sizes.max():.15g}, but X has {n_rows} rows: they must agree.")
        total = int(sizes.sum())
        if total != n_rows:
            raise DataError(
                f"the sizes in group add up to {total} but X has {n_rows} rows: they must agree. Searches and "
                f"cross-validation divide the rows, but cannot divide group: {QID_FROM_GROUP}"
            )
        pointers = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
        return cls(pointers, None, np.arange(len(sizes)))

    @classmethod
    def of(cls, qid: ArrayLike | None, group: ArrayLike | None, n_rows: int) -> "Queries":
        """Group rows by ``qid`` or ``group`` (not both); without either, all rows are one query.

        Parameters
        ----------
        qid, group : array-like or None
            As in `from_qid` and `from_group`.
        n_rows : int
            Number of rows.

        Returns
        -------
        Queries
            The grouping.

        Raises
        ------
        DataError
            When both are given, or one of them is invalid.
        """
        if group is None:
            return cls.from_qid(qid, n_rows)
        if qid is not None:
            raise DataError(
                "Give qid (one query id per row, or a column 'qid' of a DataFrame) or group (sizes of "
                "consecutive queries), not both."
            )
        return cls.from_group(group, n_rows)

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return len(self.pointers) - 1

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.pointers[-1])

    @property
    def sizes(self) -> np.ndarray:
        """Number of rows of each query, shape (n_queries,)."""
        return np.diff(self.pointers)

    @property
    def keys(self) -> list[Any]:
        """The query ids as Python objects, for dictionaries and messages; dates and times are NumPy scalars.

        ``ids.tolist()`` would make a plain integer of a date in nanoseconds.
        """
        return list(self.ids) if self.ids.dtype.kind in "mM" else self.ids.tolist()

    def rows(self, query: int) -> np.ndarray:
        """Row numbers of one query, in the order of the data.

        Parameters
        ----------
        query : int
            Number of the query, from 0.

        Returns
        -------
        ndarray of int64
            Its rows.
        """
        start, stop = self.pointers[query], self.pointers[query + 1]
        return np.arange(start, stop) if self.order is None else self.order[start:stop]

    def to_sorted(self, values: np.ndarray) -> np.ndarray:
        """Per-row values in sorted order; the array itself if rows are already sorted by query.

        Parameters
        ----------
        values : ndarray, shape (n_rows, ...)
            One value (or row) per row of the data.

        Returns
        -------
        ndarray
            ``values[order]``.
        """
        return values if self.order is None else values[self.order]

    def to_rows(self, values: np.ndarray) -> np.ndarray:
        """Values in sorted order put back in the order of the rows: the inverse of `to_sorted`.

        Parameters
        ----------
        values : ndarray, shape (n_rows, ...)
            One value (or row) per position.

        Returns
        -------
        ndarray
            The same values, one per row of the data.
        """
        if self.order is None:
            return values
        out = np.empty_like(values)
        out[self.order] = values
        return out

    def numbers(self) -> np.ndarray:
        """Number of the query (from 0) of each row of the data, shape (n_rows,)."""
        return self.to_rows(np.repeat(np.arange(self.n_queries), self.sizes))

    def number(self, query: object) -> int:
        """Number of a query.

        Parameters
        ----------
        query : object
            Its id.

        Returns
        -------
        int
            Its number, from 0.

        Raises
        ------
        DataError
            When there is no such query.
        """
        ids = self.keys
        if query not in ids:
            raise DataError(f"there is no query {query!r}; the first one is {ids[0]!r}.")
        return ids.index(query)

    def __iter__(self) -> Iterator[tuple[Any, np.ndarray]]:
        for query, query_id in enumerate(self.ids):
            yield query_id, self.rows(query)

    def __repr__(self) -> str:
        layout = "contiguous" if self.order is None else "interleaved"
        return f"Queries(n_queries={self.n_queries}, n_rows={self.n_rows}, {layout})"


def check_grouped(
    qid: ArrayLike | None, group: ArrayLike | None, n_rows: int, caller: str = "fit", done: str = "compared"
) -> None:
    """Warn if rows have neither query ids nor group sizes; refuse them if they are many.

    A few rows are probably one query, as in a first trial and in scikit-learn's checks of estimators. More than
    `MAX_ROWS_WITHOUT_QID` rows probably belong to several queries, and rows of different queries must not be compared.
    The message names the function, ``caller``, and the operation ``done`` on any two rows of a query.
    """
    if qid is not None or group is not None or n_rows < 2:
        return
    ids = "one query id per row" + ("" if caller == "evaluate" else ", or the name of a DataFrame's column")
    takes_group = caller in ("fit", "evaluate")
    advice = (
        f"Pass qid= ({ids})" + " or group= (sizes of consecutive queries)" * takes_group + ". "
        "If all rows are one query, say so: " + f"group=[{n_rows}], or " * takes_group + f"qid=np.zeros({n_rows})."
    )
    if n_rows > MAX_ROWS_WITHOUT_QID:
        raise DataError(
            f"{caller} got {n_rows:,} rows without query ids: as one query, any two of them would be {done}. {advice} "
            "Inside scikit-learn's searches and cross_val_score, sklearn.set_config(enable_metadata_routing=True) "
            "passes qid on; ranksvm.cross_validate needs no routing."
        )
    message = (
        f"{caller} got no query ids, so all {n_rows:,} rows are one query, and any two of them are {done}. {advice}"
    )
    warnings.warn(message, OneQueryWarning, stacklevel=level_of_caller())


def query_ranges(ends: np.ndarray | list[int], limit: int) -> Iterator[tuple[int, int]]:
    """Divide queries into ranges with at most ``limit`` values each; a larger query is a range of its own.

    Query q has ``ends[q + 1] - ends[q]`` values. For many ranges, a list of Python's integers takes less time than an
    array.
    """
    first, n_queries = 0, len(ends) - 1
    while first < n_queries:
        last = max(first + 1, bisect_right(ends, ends[first] + limit, lo=first) - 1)
        yield first, min(last, n_queries)
        first = last


def descending_within_ties(order: np.ndarray, again: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """Reorder the rows of each tie in descending order of their ids, compared as text.

    Parameters
    ----------
    order : ndarray of int, shape (n_rows,)
        Rows.
    again : ndarray of bool, shape (n_rows,)
        Whether a place in the order is tied with the place before it.
    ids : ndarray, shape (n_rows,)
        Id of each row. Only the ids of tied rows are sorted, because sorting them is slow.
    """
    tied = again.copy()
    tied[:-1] |= again[1:]
    rows, tie = order[tied], np.cumsum(~again)[tied]
    place = np.unique(ids[rows].astype(str), return_inverse=True)[1].reshape(-1)
    found = order.copy()
    found[tied] = rows[np.lexsort((-place, tie))]
    return found


def id_array(qid: ArrayLike) -> np.ndarray:
    """Ids as an array in which different ids stay different.

    NumPy would convert both 1 and "1" to the same text, and two large integers to the same float.
    """
    ids = as_array("qid", qid)
    if isinstance(qid, list | tuple) and ids.ndim == 1 and ids.dtype.kind in "USf":
        types = set(map(type, qid))
        if len(types) > 1 or types & {int, bool}:
            ids = np.empty(len(qid), dtype=object)
            ids[:] = qid
    return ids


def checked_ids(qid: ArrayLike, name: str, wanted: str = "a query id") -> np.ndarray:
    """Ids as a one-dimensional array without missing values; DataError says that every row needs ``wanted``."""
    ids = id_array(qid)
    if ids.ndim == 2 and ids.shape[1] == 1:
        ids = ids[:, 0]
    if ids.ndim != 1:
        raise DataError(f"{name} must be one-dimensional, got shape {ids.shape}.")
    missing = _missing(ids)
    if missing.any():
        row = int(missing.argmax())
        value = "NaT" if ids.dtype.kind in "mM" else "NaN" if ids.dtype.kind in "fc" else "missing"
        raise DataError(f"{name} is {value} in row {row}: every row needs {wanted}.")
    return ids


def _missing(ids: np.ndarray) -> np.ndarray:
    """Mask of the missing ids."""
    if ids.dtype.kind in "OT":
        return np.fromiter(map(is_missing, ids), dtype=bool, count=len(ids))
    if ids.dtype.kind in "mM":
        return np.isnat(ids)
    return np.isnan(ids) if ids.dtype.kind in "fc" else np.zeros(1, dtype=bool)


def _unique(ids: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """``np.unique`` with first indices and inverse; ids of mixed types, which cannot be sorted, are hashed."""
    try:
        unique, first, inverse = np.unique(ids, return_index=True, return_inverse=True)
        return unique, first, inverse.reshape(-1)
    except (TypeError, ValueError, ArithmeticError):
        seen: dict[Any, int] = {}
        try:
            inverse = np.array([seen.setdefault(value, len(seen)) for value in ids])
        except TypeError as error:
            raise DataError(f"query ids must be numbers, strings or other hashable values: {error}.") from None
        first = np.full(len(seen), -1)
        first[inverse[::-1]] = np.arange(len(ids))[::-1]
        return ids[first], first, inverse


def _warn_of_equal_texts(ids: np.ndarray, name: str) -> None:
    """Warn if a number and its text are both ids: the rows of one query probably have both."""
    texts = {value for value in ids if isinstance(value, str)}
    for value in ids if texts else ():
        if isinstance(value, int | float | np.number) and (text := f"{value:.15g}") in texts:
            warnings.warn(
                f"{name} has both the number {value!r} and the text {text!r}, which are two queries. If they are one, "
                "give all ids as text, or all as numbers.",
                LikelyMistakeWarning,
                stacklevel=level_of_caller(),
            )
            return
