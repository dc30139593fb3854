"""One pass over dense X on a device, in whole queries: compute the scores, a vector u from them, and X'u."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ranksvm.data.queries import query_ranges
from ranksvm.device.launcher import LANES, Launcher
from ranksvm.device.protocol import Argument, DeviceArray
from ranksvm.terms.device.pairs import DeviceOrder
from ranksvm.terms.device.rows import DenseRows, StreamedRows, additions_of, blocks_for

__all__ = ["LOSS_COLUMNS", "PER_ROW", "QueryPass"]

# Number of sums that a kernel computes of a loss (value, excess, slack, slope along a step): kLossColumns of
# losses.hpp.
LOSS_COLUMNS = 4
# GROUP: number of threads that add up rows together. PER_ROW: how many units of 8 bytes a block keeps for each row in
# addition to its features. Both are as in fused.hpp.
GROUP, PER_ROW = 32, 5
# Minimum number of rows in a task (the queries that a block handles at a time), if there are enough queries, so that
# all threads have rows.
TASK_ROWS = 32


class _Tasks(NamedTuple):
    """Tasks of a fused kernel, each of whole queries.

    ``arguments`` represent them (`Tasks` of fused.hpp). In each round, every block processes one task: ``rounds`` has
    the maximum number of rows of a task of each round.
    """

    arguments: tuple[DeviceArray, int, int]
    n_blocks: int
    shared: int
    rounds: np.ndarray


class _Part(NamedTuple):
    """Rows that are on the device at the same time.

    Attributes
    ----------
    start, stop : int
        The range of their positions.
    fused : _Tasks or None
        The queries of which each is handled by a single block of threads.
    pieces : list of (int, int)
        Ranges of the rows of the other queries: whole queries, as many as the cache holds, at least one.
    """

    start: int
    stop: int
    fused: _Tasks | None
    pieces: list[tuple[int, int]]


class QueryPass:
    """Value and gradient, or a product with the Hessian, in one pass over X.

    A block of threads takes whole queries, and keeps their rows in shared memory, so that they are read once. Rows that
    do not fit are read a second time, from the cache. If a block would need more time for one query than the average
    block needs in all, all blocks work on this query together, and on other such queries that fit into the cache with
    it. If rows stream through the device (`StreamedRows`), they are copied there once.

    Parameters
    ----------
    launcher : Launcher
        The device, and the variant of its kernels.
    pairs : tuple
        The kernel arguments that represent the pairs.
    rows : DenseRows or StreamedRows
        The rows, at least one.
    order : DeviceOrder
        The order of the documents.
    """

    def __init__(
        self, launcher: Launcher, pairs: tuple[Argument, ...], rows: DenseRows | StreamedRows, order: DeviceOrder
    ):
        self._run = launcher
        self._pairs = pairs
        self._rows = rows
        sizes = np.diff(order.pointers)
        fits = self._rows_that_fit()
        target = -(-rows.n_rows // launcher.device.n_large_blocks)
        longest = int(sizes[sizes <= fits].max(initial=0))
        self._most_rows = min(fits, max(longest, TASK_ROWS, target))
        self._parts: list[_Part] = []
        for first, last in order.blocks:
            start, stop = int(order.pointers[first]), int(order.pointers[last])
            if stop == start:
                continue
            # the shortest come first
            short = first + int(np.searchsorted(sizes[first:last], fits, side="right"))
            shared = short + self._n_shared(sizes[short:last])
            ends = order.pointers[first : short + 1].tolist()
            begin = [ends[k] for k, _ in query_ranges(ends, self._most_rows)] if short > first else []
            begin += order.pointers[short : shared + 1].tolist()
            fused = self._tasks(begin) if order.pointers[shared] > start else None
            self._parts.append(_Part(start, stop, fused, self._pieces(order.pointers[shared : last + 1])))

    def evaluate(self, w: DeviceArray, width: float, scores: DeviceArray, out: DeviceArray) -> None:
        """Write the sums of the loss at ``X w`` and the gradient to ``out``, and ``X w`` to ``scores``.

        Parameters
        ----------
        w : DeviceArray of float64, shape (n_features,)
            The weights.
        width : float
            Width of the loss; 0 for the squared hinge.
        scores : DeviceArray of float64, shape (n_rows,)
            Receives the scores, in the order of the device.
        out : DeviceArray of float64, shape (LOSS_COLUMNS + n_features,)
            Receives the results.
        """
        run = self._run

        def rest(rows: tuple[Argument, ...], start: int, stop: int, totals: DeviceArray) -> DeviceArray:
            slopes, n_blocks = run.scratch("slopes", self._rows.n_rows), run.blocks_for(stop - start)
            run("scores", *rows, start, stop, w, scores, work=LANES * (stop - start))
            sums = run.scratch("loss sums", n_blocks * LOSS_COLUMNS)
            arguments = *self._pairs, start, stop, scores, width, slopes, None, None, sums
            run("loss", *arguments, n_blocks=n_blocks, shared=LOSS_COLUMNS * run.n_threads)
            run.add_rows(sums, n_blocks, LOSS_COLUMNS, totals.part(0, LOSS_COLUMNS))
            return slopes

        self._go("fused_loss", (w, width, scores), rest, out)

    def product(
        self, v: DeviceArray, scores: DeviceArray, inner: float, outer: float, factor: float, out: DeviceArray
    ) -> None:
        """Write LOSS_COLUMNS zeros, then ``factor X' L X v``, to ``out``.

        L is the Laplacian of the pairs whose margins are in an interval, the ring.

        Parameters
        ----------
        v : DeviceArray of float64, shape (n_features,)
            The vector.
        scores : DeviceArray of float64, shape (n_rows,)
            The scores that determine the margins.
        inner, outer : float
            The bounds of the ring.
        factor : float
            The factor.
        out : DeviceArray of float64, shape (LOSS_COLUMNS + n_features,)
            Receives the results.
        """
        run = self._run

        def rest(rows: tuple[Argument, ...], start: int, stop: int, totals: DeviceArray) -> DeviceArray:
            moved, flows = (run.scratch(name, self._rows.n_rows) for name in ("probe", "slopes"))
            run("scores", *rows, start, stop, v, moved, work=LANES * (stop - start))
            arguments = *self._pairs, start, stop, scores, inner, outer, factor, moved, flows
            run("laplacian", *arguments, work=stop - start)
            run("take", None, None, LOSS_COLUMNS, totals)
            return flows

        self._go("fused_laplacian", (v, scores, inner, outer, factor), rest, out)

    def additions(self) -> int:
        """Most additions that one row's summand goes through in a sum over rows, which bounds round-off."""
        run, n = self._run, self._rows.n_features
        groups, most = max(1, run.n_threads // GROUP), 0
        for part in self._parts:
            if part.fused is not None:
                of_block = int(np.sum(-(-part.fused.rounds // groups) + 1))
                most = max(most, of_block + groups + self._add_rows(part.fused.n_blocks))
            for size in (stop - start for start, stop in part.pieces):
                most = max(most, additions_of(size, n, blocks_for(run, size, n), run.n_threads))
        return most + self._add_rows(self._n_totals)

    def loss_additions(self) -> int:
        """Most additions that one document's loss goes through in the sum over documents, which bounds round-off."""
        run, most = self._run, 0
        for part in self._parts:
            if part.fused is not None:
                most = max(most, int(np.sum(-(-part.fused.rounds * LANES // run.n_threads) + 1)))
            for size in (stop - start for start, stop in part.pieces):
                most = max(most, -(-size // (run.blocks_for(size) * run.n_threads)))
        return most + run.n_threads + self._add_rows(run.device.n_blocks) + self._add_rows(self._n_totals)

    # -- private methods ---------------------------------------------------------------------------------------------

    def _go(
        self, kernel: str, arguments: tuple[Argument, ...], rest: Callable[..., DeviceArray], out: DeviceArray
    ) -> None:
        """For each part, run the fused kernel on ``fused`` and ``rest`` on ``pieces``; add up the results."""
        run, n = self._run, self._rows.n_features
        width = LOSS_COLUMNS + n
        n_totals = self._n_totals
        totals = out if n_totals == 1 else run.scratch("totals of blocks", n_totals * width)
        place = 0
        for part in self._parts:
            rows = self._rows.resident(part.start, part.stop)
            if part.fused is not None:
                tasks, n_blocks, shared, _ = part.fused
                sums = run.scratch("fused sums", n_blocks * width)
                run(kernel, *self._pairs, *rows, *tasks, *arguments, sums, n_blocks=n_blocks, shared=shared)
                run.add_rows(sums, n_blocks, width, totals.part(place, place + width))
                place += width
            for start, stop in part.pieces:
                total = totals.part(place, place + width)
                u = rest(rows, start, stop, total)
                n_blocks = blocks_for(run, stop - start, n)
                sums = run.scratch("row sums", n_blocks * n)
                run("accumulate_rows", *rows, start, stop, u, sums, n_blocks=n_blocks, shared=run.n_threads)
                run.add_rows(sums, n_blocks, n, total.part(LOSS_COLUMNS, width))
                place += width
        if n_totals > 1:
            run.add_rows(totals, n_totals, width, out)

    @property
    def _n_totals(self) -> int:
        """Number of partial results that `_go` adds up."""
        return sum((part.fused is not None) + len(part.pieces) for part in self._parts)

    def _tasks(self, begin: list[int]) -> _Tasks:
        """Tasks from the first positions of all, and the end of the last."""
        device, sizes = self._run.device, np.diff(begin)[::-1]
        n_blocks = min(len(sizes), device.n_large_blocks)
        shared = min(device.large_block_bytes // 8, self._shared(int(sizes.max())))
        arguments = self._run.copy_in(np.array(begin, dtype=np.int32)), len(sizes), shared
        return _Tasks(arguments, n_blocks, shared, np.maximum.reduceat(sizes, np.arange(0, len(sizes), n_blocks)))

    def _n_shared(self, sizes: np.ndarray) -> int:
        """Of the queries too large for shared memory, shortest first, how many may go to one block each.

        No block then has more than its share of the work.
        """
        work = np.asarray(sizes, dtype=float) ** 2
        evenly = work * self._run.device.n_large_blocks <= np.cumsum(work)
        found = np.flatnonzero(evenly & (8 * PER_ROW * sizes <= self._bytes_for_rows()))
        return int(found[-1]) + 1 if len(found) else 0

    def _pieces(self, ends: np.ndarray) -> list[tuple[int, int]]:
        """Ranges of rows, each of as many whole queries as the cache holds; without a cache, one range of all."""
        limit = self._run.device.cached_bytes // self._row_bytes() or int(ends[-1] - ends[0])
        return [(int(ends[k]), int(ends[last])) for k, last in query_ranges(ends, limit)]

    def _add_rows(self, n_rows: int) -> int:
        return -(-n_rows * LANES // self._run.n_threads) + self._run.n_threads // LANES

    def _rows_that_fit(self) -> int:
        """Number of rows that fit into the shared memory of a block."""
        return max(0, self._bytes_for_rows() // (self._row_bytes() + 8 * PER_ROW))

    def _bytes_for_rows(self) -> int:
        """Bytes of shared memory that a block has for what it keeps for each row; 0 if its sums do not fit."""
        n_bytes = self._run.device.large_block_bytes
        return n_bytes - 8 * (self._before_rows() + 1) if n_bytes >= 8 * LOSS_COLUMNS * self._run.n_threads else 0

    def _shared(self, n_rows: int) -> int:
        """Shared memory of a block for a task whose rows are all kept, in units of 8 bytes."""
        before = self._before_rows() + PER_ROW * n_rows
        return max(LOSS_COLUMNS * self._run.n_threads, before + before % 2 + -(-n_rows * self._row_bytes() // 8))

    def _before_rows(self) -> int:
        """How much shared memory `pass_over_queries` of fused.hpp uses for weights and sums, in units of 8 bytes."""
        return (1 + max(1, self._run.n_threads // GROUP)) * self._rows.n_features

    def _row_bytes(self) -> int:
        return self._rows.n_features * (4 if self._run.variant.real == "float" else 8)
