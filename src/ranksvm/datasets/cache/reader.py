"""A cache that several threads read part by part into the caller's memory."""

import os
import weakref
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from ranksvm._util.mapped_file import BytesOfFile
from ranksvm._util.sparse_format import check_sparse_format
from ranksvm._util.types import Features, PathLike
from ranksvm.data.queries import Queries
from ranksvm.datasets.cache.layout import open_cache, words_of
from ranksvm.exceptions import DataError

if TYPE_CHECKING:
    from scipy import sparse

__all__ = ["CacheFile", "QueryRuns", "state_of"]

# Number of entries of a one-dimensional array that are read at a time.
_ROWS = 1 << 18


class CacheFile:
    """The rows of a cache, without reading X as a whole or mapping it.

    Parameters
    ----------
    path : path-like
        The file.

    Attributes
    ----------
    n_rows, n_features : int
        Shape of X.
    sparse : bool
        Whether X is CSR.
    dtype : numpy.dtype
        Type of the values of X.
    value_bytes : int
        Bytes of a stored value of X, with its column number if X is CSR.
    feature_names : tuple of str, or None
        Names of the features.
    categories : dict of str to list of str
        The texts of each feature that held text: see `RankingData`.
    """

    def __init__(self, path: PathLike):
        self.path = os.fspath(path)
        self._file = open(path, "rb", buffering=0)  # noqa: SIM115 (closed by `close`, or when this object ends)
        weakref.finalize(self, self._file.close)
        try:
            header, entries = open_cache(self.path, self._file)
        except BaseException:
            self._file.close()
            raise
        self._entries = {entry.name: entry for entry in entries}
        self.n_rows, self.n_features = header["shape"]
        self.feature_names = None if header["feature_names"] is None else tuple(header["feature_names"])
        self.categories: dict[str, list[str]] = header["categories"]
        self.sparse = "X" not in self._entries
        self.dtype = self._entries["X.data" if self.sparse else "X"].dtype
        self.value_bytes = self.dtype.itemsize + (self._entries["X.indices"].dtype.itemsize if self.sparse else 0)
        self.n_values = self._entries["X.data"].shape[0] if self.sparse else self.n_rows * self.n_features
        self._bytes = BytesOfFile(self._file)
        self._state = state_of(self._file.fileno())

    @property
    def row_bytes(self) -> float:
        """Mean number of bytes of X per row."""
        return max(1.0, self.n_values * self.value_bytes / max(1, self.n_rows))

    @property
    def has_qid(self) -> bool:
        """Whether rows have query ids."""
        return "qid" in self._entries or "qid.ends" in self._entries

    def check_unchanged(self) -> None:
        """Refuse a file that has been written to since it was opened.

        Raises
        ------
        DataError
            When its size or time of modification has changed.
        """
        now = state_of(self._file.fileno())
        if now[2] < self._state[2]:
            raise DataError(f"{self.path} was truncated while it was read.")
        if now != self._state:
            raise DataError(f"{self.path} was changed while it was read: leave it alone during a fit, and fit again.")

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def column(self, name: str, start: int, stop: int) -> np.ndarray:
        """A copy of a range of entries of a one-dimensional array of the file.

        Parameters
        ----------
        name : str
            "y", "qid", "X.indptr", ...
        start, stop : int
            Position of the first entry, and the position after the last one.

        Returns
        -------
        ndarray
            The entries.
        """
        entry = self._entries[name]
        out = np.empty(stop - start, dtype=entry.dtype)
        self._read_into(out, entry.start + start * entry.dtype.itemsize)
        return out

    def query_ids(self) -> Iterator[np.ndarray]:
        """The query ids of the rows, in blocks."""
        for start in range(0, self.n_rows, _ROWS):
            stop = min(start + _ROWS, self.n_rows)
            if "qid" in self._entries:
                yield self.column("qid", start, stop)
            else:
                ends = self._pointers("qid.ends", start - 1, stop, self._entries["qid.text"].shape[0])
                try:
                    words = words_of(self.column("qid.text", int(ends[0]), int(ends[-1])), ends[1:] - ends[0])
                except ValueError as error:
                    raise DataError(f"{self.path} is damaged: its query ids are not text ({error}).") from None
                yield words

    def rows(self, segments: np.ndarray, memory: np.ndarray) -> Features:
        """X of some rows, in the caller's memory.

        Parameters
        ----------
        segments : ndarray of int64, shape (n_segments, 2)
            First row and end of each range of rows.
        memory : ndarray of uint8
            At least as many bytes as their values take; its address is a multiple of 8.

        Returns
        -------
        ndarray or CSR matrix
            The rows of all segments, one after another.

        Raises
        ------
        DataError
            When the file has been truncated, or column numbers are beyond the number of features.
        """
        if self.sparse:
            return self._sparse_rows(segments, memory)
        n_rows = int((segments[:, 1] - segments[:, 0]).sum())
        count = n_rows * self.n_features
        X = memory[: count * self.dtype.itemsize].view(self.dtype).reshape(n_rows, self.n_features)
        entry, place = self._entries["X"], 0
        row_bytes = self.n_features * self.dtype.itemsize
        for start, stop in segments.tolist():
            self._read_into(X[place : place + stop - start], entry.start + start * row_bytes)
            place += stop - start
        return X

    def _sparse_rows(self, segments: np.ndarray, memory: np.ndarray) -> "sparse.csr_matrix":
        from scipy import sparse

        ends = [self._pointers("X.indptr", start, stop + 1, self.n_values) for start, stop in segments.tolist()]
        sizes = [int(each[-1] - each[0]) for each in ends]
        count, itemsize = sum(sizes), self.dtype.itemsize
        values = memory[: count * itemsize].view(self.dtype)
        numbers = self._entries["X.indices"].dtype
        begin = -(-count * itemsize // 8) * 8
        indices = memory[begin : begin + count * numbers.itemsize].view(numbers)
        pointers, place = [np.zeros(1, dtype=np.int64)], 0
        for each, size in zip(ends, sizes, strict=True):
            for name, part in (("X.data", values), ("X.indices", indices)):
                entry = self._entries[name]
                self._read_into(part[place : place + size], entry.start + int(each[0]) * entry.dtype.itemsize)
            pointers.append(each[1:] - each[0] + place)
            place += size
        indptr = np.concatenate(pointers).astype(numbers, copy=False)
        X = sparse.csr_matrix((len(indptr) - 1, self.n_features), dtype=self.dtype)
        X.data, X.indices, X.indptr = values, indices, indptr
        try:
            check_sparse_format(X)
        except DataError:
            raise DataError(f"{self.path} is damaged: its column numbers do not belong to features.") from None
        return X

    def _pointers(self, name: str, start: int, stop: int, maximum: int) -> np.ndarray:
        """Some entries of an array of positions, which must ascend; if ``start`` is -1, a 0 precedes the entries."""
        found = self.column(name, max(0, start), stop).astype(np.int64)
        if start < 0:
            found = np.concatenate(([0], found))
        if found[0] < 0 or found[-1] > maximum or (found[1:] < found[:-1]).any():
            raise DataError(f"{self.path} is damaged: {name} has positions that do not ascend from 0 to {maximum}.")
        return found

    def _read_into(self, out: np.ndarray, offset: int) -> None:
        view = out.reshape(-1).view(np.uint8).data if out.size else memoryview(b"")
        if not self._bytes.fill(view, offset):
            raise DataError(f"{self.path} was truncated while it was read.")


def state_of(file: PathLike | int) -> tuple[int, ...]:
    """Identity of a file's content: it differs for another file, and after the file has been written to.

    Parameters
    ----------
    file : path-like or int
        A path, or a descriptor.

    Returns
    -------
    tuple of int
        Device and inode number of the file, size and time of modification.
    """
    state = os.stat(file)
    return state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns


class QueryRuns:
    """The queries of a file: each consists of runs, which are consecutive rows with its id.

    Parameters
    ----------
    starts : ndarray of int64, shape (n_runs + 1,)
        First row of each run, then the number of rows.
    runs : ndarray of int64
        The numbers of the runs of these queries, query after query.
    first_runs : ndarray of int64, shape (n_queries + 1,)
        Position in ``runs`` of the first run of each query, then the number of runs.
    ids : ndarray, shape (n_queries,)
        The id of each query.
    """

    def __init__(self, starts: np.ndarray, runs: np.ndarray, first_runs: np.ndarray, ids: np.ndarray):
        self._starts = starts
        self._runs = runs
        self._first_runs = first_runs
        ends = np.concatenate(([0], np.cumsum(np.diff(starts)[runs])))
        # first position of each query, then the number of rows: positions count rows in the order of the queries
        self.pointers = ends[first_runs].astype(np.int64)
        self.ids = ids

    @classmethod
    def of(cls, file: CacheFile) -> "QueryRuns":
        """The queries of a file; one query of all rows if it has no ids.

        Parameters
        ----------
        file : CacheFile
            The file.

        Returns
        -------
        QueryRuns
            The queries.
        """
        if not file.n_rows:
            raise DataError(f"{file.path} has no row of data.")
        if not file.has_qid:
            return cls.of_ids([np.zeros(file.n_rows, dtype=np.int8)])
        return cls.of_ids(file.query_ids())

    @classmethod
    def of_ids(cls, blocks: Iterable[np.ndarray]) -> "QueryRuns":
        """The queries, from the query id of each row.

        Parameters
        ----------
        blocks : iterable of ndarray
            The ids of all rows, in blocks.

        Returns
        -------
        QueryRuns
            The queries.
        """
        starts, ids, row = [], [], 0
        last: object = None
        for qid in blocks:
            new = np.concatenate(([last is None or qid[0] != last], qid[1:] != qid[:-1]))
            found = np.flatnonzero(new)
            starts.append(found + row)
            ids.append(qid[found])
            last, row = qid[-1], row + len(qid)
        # in the order in which queries first appear
        grouping = Queries.from_qid(np.concatenate(ids))
        runs = grouping.to_sorted(np.arange(grouping.n_rows))
        return cls(np.append(np.concatenate(starts), row).astype(np.int64), runs, grouping.pointers, grouping.ids)

    def taken(self, queries: np.ndarray) -> "QueryRuns":
        """Some of the queries.

        Parameters
        ----------
        queries : ndarray of int64
            Their numbers, ascending.

        Returns
        -------
        QueryRuns
            These queries, of the same file.
        """
        n_runs = np.diff(self._first_runs)
        chosen = np.zeros(self.n_queries, dtype=bool)
        chosen[queries] = True
        first_runs = np.concatenate(([0], np.cumsum(n_runs[queries]))).astype(np.int64)
        return QueryRuns(self._starts, self._runs[np.repeat(chosen, n_runs)], first_runs, self.ids[queries])

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return len(self.pointers) - 1

    def segments(self, first: int, last: int) -> np.ndarray:
        """The rows of the queries ``first`` to ``last - 1``, in the order of the queries.

        Parameters
        ----------
        first, last : int
            Numbers of the queries.

        Returns
        -------
        ndarray of int64, shape (n_segments, 2)
            First row and end of each range of rows; there are as few ranges as possible.
        """
        runs = self._runs[self._first_runs[first] : self._first_runs[last]]
        begin, end = self._starts[runs], self._starts[runs + 1]
        new = np.concatenate(([True], begin[1:] != end[:-1])) if len(runs) else np.zeros(0, dtype=bool)
        place = np.flatnonzero(new)
        return np.column_stack([begin[place], end[np.append(place[1:], len(runs)) - 1]])

    def values_before(self, file: CacheFile) -> np.ndarray:
        """Number of stored values of X before each query, then in all queries: int64, shape (n_queries + 1,).

        Parameters
        ----------
        file : CacheFile
            The file.

        Returns
        -------
        ndarray
            The numbers.
        """
        if not file.sparse:
            return self.pointers * file.n_features
        at_run = np.empty(len(self._starts), dtype=np.int64)
        for start in range(0, file.n_rows + 1, _ROWS):
            stop = min(start + _ROWS, file.n_rows + 1)
            first, last = np.searchsorted(self._starts, [start, stop])
            at_run[first:last] = file.column("X.indptr", start, stop)[self._starts[first:last] - start]
        if at_run[0] < 0 or at_run[-1] > file.n_values or (at_run[1:] < at_run[:-1]).any():
            raise DataError(
                f"{file.path} is damaged: X.indptr has positions that do not ascend from 0 to {file.n_values}."
            )
        sizes = np.diff(at_run)[self._runs]
        return np.concatenate(([0], np.cumsum(sizes)))[self._first_runs].astype(np.int64)
