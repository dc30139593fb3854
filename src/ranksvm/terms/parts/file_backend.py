"""The backend of a file: every round is one reading of it, a block of whole queries at a time."""

import copy
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from ranksvm._util import types
from ranksvm._util.memory import in_words
from ranksvm._util.threads import one_blas_thread
from ranksvm.datasets.cache.rows import READERS, FileRows, Summary, all_finite
from ranksvm.exceptions import OptionError
from ranksvm.terms.parts.answers import add, answer
from ranksvm.terms.parts.backend import Job, PartInfo
from ranksvm.terms.parts.part import Features, Part
from ranksvm.terms.parts.tree_sum import TreeSum

__all__ = ["FileBackend"]

Result = TypeVar("Result")

# A thread reads or computes with one block of the file at a time. A block is large enough that the fixed work for each
# block takes little of the time. Other sizes have not been measured.
BLOCK_BYTES = 16 << 20
# The buffers take this share of the memory. The results computed from the buffers take about as much again.
BUFFER_SHARE = 0.3


class FileBackend:
    """Parts of a file, none of which stays in memory: see `Backend` for the methods.

    Parameters
    ----------
    rows : FileRows
        The file.
    memory : int
        Bytes that buffers and the results computed from them may take.
    n_threads : int
        Number of threads, each with a part of its own at a time.
    block_bytes : int
        Largest size of a block. Sums depend on the blocks, but neither on the memory nor on the threads.

    Attributes
    ----------
    n_reads : int
        Number of readings of X so far.

    Raises
    ------
    OptionError
        When a query is too large for the memory.
    """

    def __init__(self, rows: FileRows, memory: int, n_threads: int, block_bytes: int):
        self.rows = rows
        self.n_threads = n_threads
        self.n_reads = 0
        self._thread: ThreadPoolExecutor | None = None
        self._features: Features | None = None
        self._n_buffers = n_threads + READERS
        self._blocks = rows.blocks(max(1, min(BLOCK_BYTES, block_bytes)))
        self._fit_buffers(int(BUFFER_SHARE * memory))
        self._summaries: list[Summary] | None = None

    def computing(self, features: Features) -> "FileBackend":
        """The same rows for a model that computes features from them; each reading computes them again.

        Parameters
        ----------
        features : Features
            The features, which also decide whether values may be missing.

        Returns
        -------
        FileBackend
            The backend.
        """
        other = copy.copy(self)
        other._features = features
        return other

    def put(self, parts: Sequence[Any]) -> None:
        """Do nothing: the parts are in the file already."""

    def round(self, jobs: Sequence[Job]) -> list[list[Any]]:
        """Sums over all parts, in one reading of the file."""
        total = TreeSum(len(self._blocks), add)

        def work(number: int, X: types.Features) -> None:
            if self.n_reads == 1 and self._features is None:
                self._check_finite(number, X)
            block = self._blocks[number]
            weight = None if self._features is None else self.rows.sample_weight_of(*block)
            part = Part(X, self.rows.pairs(*block), self._features, weight)
            answers = []
            for job in jobs:
                answers += answer(part, [job])
                # evaluations that the part keeps for every job (one for each C) would take far more memory than the
                # part
                part.forget_points()
            total.add(number, answers)

        self.n_reads += 1
        with one_blas_thread():
            self._in_one_thread(lambda: self.rows.each(self._blocks, self.n_threads, self._n_buffers, work))
        return total.result

    def each(self, work: Callable[[int, int, types.Features], Result]) -> list[Result]:
        """The results of a function for every block, in one reading of the file.

        Parameters
        ----------
        work : callable
            Called with the first query of a block, the one after its last, and its rows of X.

        Returns
        -------
        list
            Its results, in the order of the blocks.
        """
        found: dict[int, Result] = {}

        def of_block(number: int, X: types.Features) -> None:
            found[number] = work(*self._blocks[number], X)

        self.rows.each(self._blocks, self.n_threads, self._n_buffers, of_block)
        return [found[number] for number in range(len(self._blocks))]

    def sample(self, n_rows: int, seed: int) -> list[Part]:
        """Random queries of the whole file."""
        X, pairs = self.rows.sample(n_rows, seed)
        if self._features is None and not all_finite(X):
            # the error names the first value of the file that is not finite
            self.rows.each(self._blocks, self.n_threads, self._n_buffers, self._check_finite)
        return [Part(X, pairs, self._features)]

    def info(self) -> list[PartInfo]:
        """The sizes of the parts, from their labels."""
        if self._summaries is None:
            self._summaries = self.rows.summarize(self._blocks)
        return [self._info_of(part) for part in self._summaries]

    def close(self, fit: str | None = None) -> None:
        """Do nothing: no part is kept in memory."""

    def _info_of(self, part: Summary) -> PartInfo:
        rank = min(part.n_pairs, part.n_rows)
        n_variables, row_bytes, dense = self.rows.shape[1], self.rows.row_bytes, not self.rows.sparse
        if self._features is not None:
            n_variables, row_bytes, dense = self._features.n_variables, self._features.row_bytes(row_bytes), True
        return PartInfo(n_variables, part.n_rows, part.n_queries, part.n_pairs, rank, row_bytes, dense, part.weight)

    def _in_one_thread(self, reading: Callable[[], None]) -> None:
        """Run a reading in the main thread if that is the caller; otherwise always in the same helper thread.

        The C library keeps freed memory for the thread that allocated it: new threads would need more memory each time.
        """
        if threading.current_thread() is threading.main_thread():
            reading()
            return
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1)
        self._thread.submit(reading).result()

    def _check_finite(self, number: int, X: types.Features) -> None:
        self.rows.check_finite(self._blocks[number], X)

    def _fit_buffers(self, share: int) -> None:
        """Use fewer buffers if there is not enough memory for all of them."""
        largest = max(self._blocks, key=self.rows.bytes_of)
        size = self.rows.bytes_of(largest)
        fitting = share // size
        if fitting < 1:
            first, last = largest
            what = f"query {self.rows.runs.ids[first]!s} has" if last == first + 1 else f"{last - first} queries have"
            raise OptionError(
                f"{what} {in_words(size)} of features, more than memory_limit leaves for a block of the file "
                f"({in_words(share)}): raise memory_limit."
            )
        self._n_buffers = min(self._n_buffers, max(1, fitting))
