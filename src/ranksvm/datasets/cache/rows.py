"""The rows of a cache, for a fit that reads their features and pairs in passes, a block of whole queries at a time."""

from collections.abc import Callable, Sequence
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

import ranksvm._compiled.linear as linear
from ranksvm._util.checks import is_sparse
from ranksvm._util.text import place_in_words
from ranksvm._util.threads import parallel_map
from ranksvm._util.types import Features
from ranksvm.data.numeric_column import checked_weights
from ranksvm.data.pairs import ComparablePairs, PairWeights, check_total, choose_queries
from ranksvm.data.queries import Queries, query_ranges
from ranksvm.datasets.cache.reader import CacheFile, QueryRuns
from ranksvm.exceptions import DataError, NoComparablePairsError

__all__ = ["FileRows", "Summary", "all_finite"]

# Number of threads that read ahead of the threads that compute. A file of 6 GB that was not in memory was read at 756,
# 1,099 and 1,346 MB/s by 1, 2 and 4 threads.
READERS = 4

# A block of queries: its first query, and its end, which is the query after its last one.
Block = tuple[int, int]
# Called with the number of a block, and its rows of X.
Work = Callable[[int, Features], None]


class FileRows:
    """The rows of a cache and the pairs that their labels imply, without X, scores or pairs in memory.

    Memory holds about 16 bytes for each query, and the caller's weights of each row.

    Parameters
    ----------
    file : CacheFile
        The file.
    runs : QueryRuns
        Its queries.
    y : ndarray of float64, shape (n_rows,), optional
        Labels that replace the file's labels.
    selection, weighting : str
        As in `ComparablePairs.from_labels`.
    n_threads : int
        Number of threads.
    **weights : array-like of shape (n_rows,), optional
        ``sample_weight``, ``query_weight``, ``propensity`` and ``event``, as in `ComparablePairs.from_labels`.

    Attributes
    ----------
    shape : tuple of int
        Shape of X.
    dtype : numpy.dtype
        Type of its values.
    n_queries, n_rows : int
        Numbers of queries, and of rows that are in them.
    weight_per_query : ndarray of float64, shape (n_queries,)
        Sum of the weights of each query's pairs.
    n_pairs : int
        Number of pairs.
    weight : float
        Sum of the weights of all pairs.
    """

    def __init__(
        self,
        file: CacheFile,
        runs: QueryRuns,
        y: np.ndarray | None = None,
        *,
        selection: str = "all",
        weighting: str = "uniform",
        n_threads: int = 1,
        **weights: ArrayLike | None,
    ):
        self.file, self.runs = file, runs
        self.shape = file.n_rows, file.n_features
        self.dtype, self.sparse, self.row_bytes = file.dtype, file.sparse, file.row_bytes
        self.n_queries, self.n_rows = runs.n_queries, int(runs.pointers[-1])
        self._y = y
        self._how: dict[str, Any] = {"selection": selection, "weighting": weighting, "n_threads": n_threads}
        self._weights = _checked(weights, file.n_rows)
        self._bytes_before = runs.values_before(file) * file.value_bytes
        self._largest = self.highest_label(counted=True) if weighting == "gain_gap" else None
        self.weight_per_query = np.zeros(self.n_queries)
        self.n_pairs = 0

    @property
    def sample_weight(self) -> np.ndarray | None:
        """How often each row of the file counts, in the order of the file; None if each counts once."""
        return self._weights.get("sample_weight")

    def taken(self, queries: np.ndarray) -> "FileRows":
        """Some of the queries, with their labels and weights.

        Parameters
        ----------
        queries : ndarray of int64
            Their numbers, ascending.

        Returns
        -------
        FileRows
            Their rows.
        """
        options: dict[str, Any] = {**self._how, **self._weights}
        return FileRows(self.file, self.runs.taken(queries), self._y, **options)

    # ---- pairs

    def summarize(self, blocks: Sequence[Block]) -> list["Summary"]:
        """Summarize each block without its features; the labels are read once.

        Parameters
        ----------
        blocks : sequence of (int, int)
            First query and end of each block.

        Returns
        -------
        list of Summary
            Their sizes.

        Raises
        ------
        NoComparablePairsError
            When there is no pair.
        DataError
            When a label is not finite.
        """
        found = []
        self.n_pairs = 0
        for first, last in blocks:
            pairs = self.pairs(first, last)
            self.weight_per_query[first:last] = pairs.weight_per_query
            self.n_pairs += pairs.n_pairs
            found.append(Summary(pairs.n_rows, last - first, pairs.n_pairs, pairs.weight))
        self.weight = float(self.weight_per_query.sum())
        check_total(self.weight)
        if self.weight <= 0.0:
            where = "the only query" if self.n_queries == 1 else f"each of the {self.n_queries} queries"
            raise NoComparablePairsError(
                f"No comparable pair: in {where} of {self.file.path} all labels are the same, or all pairs have zero "
                "weight. Ranking needs two documents of one query with different labels."
            )
        return found

    def pairs(self, first: int, last: int) -> ComparablePairs:
        """The pairs of some queries; there may be none.

        Parameters
        ----------
        first, last : int
            The first query, and the end: the query after the last one.

        Returns
        -------
        ComparablePairs
            Their pairs; row 0 is the first of these queries' rows.
        """
        queries, labels, weights = self.columns(first, last)
        options: dict[str, Any] = {**self._how, "largest_label": self._largest, "may_be_empty": True}
        return ComparablePairs.from_labels(queries, labels, **options, **weights)

    def columns(self, first: int, last: int) -> tuple[Queries, np.ndarray, dict[str, Any]]:
        """The grouping, labels and weights of the rows of some queries.

        Parameters
        ----------
        first, last : int
            The first query, and the end: the query after the last one.

        Returns
        -------
        queries : Queries
            Row 0 is the first of these queries' rows.
        labels : ndarray of float64
            Their labels.
        weights : dict of str to ndarray
            The caller's weights.
        """
        pointers = self.runs.pointers[first : last + 1]
        queries = Queries(pointers - pointers[0], None, self.runs.ids[first:last])
        segments = self.runs.segments(first, last)
        weights = {name: _taken(values, segments) for name, values in self._weights.items()}
        return queries, self._labels(segments), weights

    def sample_weight_of(self, first: int, last: int) -> np.ndarray | None:
        """How often each row of some queries counts; None if each counts once.

        Parameters
        ----------
        first, last : int
            The first query, and the end: the query after the last one.

        Returns
        -------
        ndarray of float64, or None
            The weights.
        """
        weight = self.sample_weight
        return None if weight is None else _taken(weight, self.runs.segments(first, last))

    # ---- features

    def blocks(self, n_bytes: int) -> list[Block]:
        """Divide the queries into blocks with at most ``n_bytes`` bytes of X; a larger query is a block of its own.

        Parameters
        ----------
        n_bytes : int
            The bytes.

        Returns
        -------
        list of (int, int)
            First query and end of each block, in the order of the queries.
        """
        return list(query_ranges(self._bytes_before, n_bytes))

    def bytes_of(self, block: Block) -> int:
        """Bytes of X in a block.

        Parameters
        ----------
        block : tuple of int
            The block.

        Returns
        -------
        int
            Its bytes, and a few for alignment.
        """
        return int(self._bytes_before[block[1]] - self._bytes_before[block[0]]) + 16

    def each(
        self, blocks: Sequence[Block], n_threads: int, n_buffers: int, work: Callable[[int, Features], None]
    ) -> None:
        """Read every block and process it, on several threads; other threads read ahead.

        Parameters
        ----------
        blocks : sequence of (int, int)
            The blocks.
        n_threads : int
            Number of threads that work.
        n_buffers : int
            Number of blocks in memory at a time.
        work : callable
            Called with the number of each block and its rows of X, in any order. The rows are overwritten afterwards.
        """
        self.file.check_unchanged()
        _Reading(self, blocks, n_buffers, work).run(n_threads)
        self.file.check_unchanged()

    def check_finite(self, block: Block, X: Features, missing: bool = False) -> None:
        """Refuse values that are NaN or infinite.

        Parameters
        ----------
        block : tuple of int
            The block.
        X : ndarray or CSR matrix
            Its rows.
        missing : bool
            Whether values may be NaN.

        Raises
        ------
        DataError
            When there is such a value; the message gives its place in the file.
        """
        values = X.data if is_sparse(X) else X.reshape(-1)
        if all_finite(X):
            return
        all_bad = np.flatnonzero(np.isinf(values) if missing else ~np.isfinite(values))
        if not len(all_bad):
            return
        bad = all_bad[0]
        if is_sparse(X):
            row, column = int(np.searchsorted(X.indptr, bad, side="right")) - 1, int(X.indices[bad])
        else:
            row, column = divmod(int(bad), self.shape[1])
        rows = np.concatenate([np.arange(start, stop) for start, stop in self.runs.segments(*block).tolist()])
        kind = "NaN" if np.isnan(values[bad]) else "infinity"
        place = place_in_words(int(rows[row]), column, self.file.feature_names)
        raise DataError(f"{self.file.path} contains {kind} at {place}: drop such rows, or replace the values.")

    def sample(self, n_rows: int, seed: int) -> tuple[Features, ComparablePairs]:
        """Copy about ``n_rows`` rows into memory: the rows of random queries, or a random part of a long query.

        Parameters
        ----------
        n_rows : int
            Number of rows.
        seed : int
            Seed of the choice.

        Returns
        -------
        X : ndarray or CSR matrix
            The rows.
        pairs : ComparablePairs
            Their pairs; rows are numbered by their positions in X. The sum of the pairs' weights is the sum of the
            weights of all pairs of the chosen queries.
        """
        from ranksvm.data.partition import joined

        random = np.random.default_rng(seed)
        sizes = np.diff(self.runs.pointers)
        if n_rows >= self.n_rows:
            chosen, limit = np.flatnonzero(self.weight_per_query > 0.0), self.n_rows
        else:
            chosen, limit = choose_queries(sizes, self.weight_per_query, n_rows, random)
        segments, pairs = [], []
        for query in chosen.tolist():
            own, rows = self.pairs(query, query + 1), self.runs.segments(query, query + 1)
            if own.n_rows > limit:
                own, _ = own.sample(limit, seed)
            taken = np.arange(sizes[query]) if own.rows is None else own.rows
            numbers = np.concatenate([np.arange(start, stop) for start, stop in rows.tolist()])[taken]
            breaks = np.flatnonzero(np.diff(numbers) != 1) + 1
            begin, end = np.append(0, breaks), np.append(breaks, len(numbers)) - 1
            segments.append(np.column_stack([numbers[begin], numbers[end] + 1]))
            pairs.append(own.renumbered())
        places = np.concatenate(segments)
        return self.file.rows(places, np.empty(self._bytes_in(places) + 16, dtype=np.uint8)), joined(pairs)

    # ---- private methods

    def _bytes_in(self, segments: np.ndarray) -> int:
        if not self.sparse:
            return int((segments[:, 1] - segments[:, 0]).sum()) * self.shape[1] * self.file.value_bytes
        ends = [self.file.column("X.indptr", row, row + 1)[0] for row in segments.ravel().tolist()]
        return int(np.diff(np.array(ends, dtype=np.int64).reshape(-1, 2)).sum()) * self.file.value_bytes

    def _labels(self, segments: np.ndarray) -> np.ndarray:
        parts = [
            self.file.column("y", start, stop) if self._y is None else self._y[start:stop]
            for start, stop in segments.tolist()
        ]
        labels = np.concatenate([np.zeros(0), *parts]).astype(np.float64, copy=False)
        bad = np.flatnonzero(~np.isfinite(labels))
        if len(bad):
            rows = np.concatenate([np.arange(start, stop) for start, stop in segments.tolist()])
            raise DataError(f"y is {labels[bad[0]]} in row {rows[bad[0]]} (from 0): labels must be finite numbers.")
        return labels

    def highest_label(self, counted: bool = False) -> float:
        """The highest label.

        Parameters
        ----------
        counted : bool, default False
            Whether rows with a sample weight of 0 are left out.

        Returns
        -------
        float
            The label; minus infinity without rows.
        """
        largest = -np.inf
        for block in self.blocks(1 << 26):
            _, labels, weights = self.columns(*block)
            if counted and "sample_weight" in weights:
                labels = labels[weights["sample_weight"] > 0.0]
            largest = max(largest, float(labels.max(initial=-np.inf)))
        return largest


class Summary:
    """The size of a block, computed from its labels.

    Parameters
    ----------
    n_rows, n_queries, n_pairs : int
        Numbers of rows, queries and pairs.
    weight : float
        Sum of the weights of the pairs.
    """

    def __init__(self, n_rows: int, n_queries: int, n_pairs: int, weight: float):
        self.n_rows, self.n_queries, self.n_pairs, self.weight = n_rows, n_queries, n_pairs, weight


class _Reading:
    """One pass over the blocks: some threads read them, others process them."""

    def __init__(self, rows: FileRows, blocks: Sequence[Block], n_buffers: int, work: Work):
        self._rows, self._blocks, self._work = rows, blocks, work
        self._n_buffers = min(n_buffers, len(blocks))
        self._next, self._left = iter(range(len(blocks))), len(blocks)
        self._lock = Lock()
        self._stopped, self._n_threads = False, 0
        self._free: SimpleQueue[np.ndarray | None] = SimpleQueue()
        self._ready: SimpleQueue[tuple[int, np.ndarray, Features] | BaseException | None] = SimpleQueue()

    def run(self, n_threads: int) -> None:
        """Do all the work."""
        self._n_threads = n_threads
        size = max(map(self._rows.bytes_of, self._blocks), default=0)
        for _ in range(self._n_buffers):
            self._free.put(np.empty(size, dtype=np.uint8))
        readers = [Thread(target=self._read, daemon=True) for _ in range(min(READERS, self._n_buffers))]
        for reader in readers:
            reader.start()
        try:
            parallel_map(self._compute, range(n_threads), n_threads)
        finally:
            self._stop()
            for reader in readers:
                reader.join()

    def _read(self) -> None:
        try:
            while (memory := self._free.get()) is not None:
                with self._lock:
                    number = next(self._next, None)
                if number is None:
                    return
                segments = self._rows.runs.segments(*self._blocks[number])
                self._ready.put((number, memory, self._rows.file.rows(segments, memory)))
        except BaseException as error:
            self._ready.put(error)

    def _compute(self, _: int) -> None:
        try:
            while True:
                with self._lock:
                    if self._stopped or self._left == 0:
                        return
                    self._left -= 1
                found = self._ready.get()
                if found is None:
                    return
                if isinstance(found, BaseException):
                    raise found
                number, memory, X = found
                self._work(number, X)
                del found, X
                self._free.put(memory)
        except BaseException:
            self._stop()
            raise

    def _stop(self) -> None:
        """Let every waiting thread end."""
        self._stopped = True
        for _ in range(READERS):
            self._free.put(None)
        for _ in range(self._n_threads):
            self._ready.put(None)


def all_finite(X: Features) -> bool:
    """Whether all values of a dense array or CSR matrix are finite.

    Parameters
    ----------
    X : ndarray or CSR matrix
        The values.

    Returns
    -------
    bool
        Whether they are.
    """
    values = X.data if is_sparse(X) else X.reshape(-1)
    if values.dtype in (np.float32, np.float64):
        return bool(linear.all_finite(values))
    return values.dtype.kind != "f" or bool(np.isfinite(values).all())


def _taken(values: np.ndarray, segments: np.ndarray) -> np.ndarray:
    """The values of the rows of some segments, one segment after another."""
    return np.concatenate([values[start:stop] for start, stop in segments.tolist()] or [values[:0]])


def _checked(weights: dict[str, ArrayLike | None], n_rows: int) -> dict[str, np.ndarray]:
    """The caller's weights, validated: one for each row."""
    from ranksvm.data.censoring import checked_event

    found = {name: values for name, values in weights.items() if values is not None}
    event = found.pop("event", None)
    checked = {name: checked_weights(name, values, n_rows, "X") for name, values in found.items()}
    if "propensity" in checked:
        whole = Queries(np.array([0, n_rows], dtype=np.int64), None, np.zeros(1, dtype=np.int64))
        PairWeights(propensity=checked["propensity"]).factors(whole)
    return checked if event is None else checked | {"event": checked_event(event, n_rows)}
