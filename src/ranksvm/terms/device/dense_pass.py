"""One pass over dense X on a device: scores, a function of them by the pairs, and X' times that, by whole queries."""

from collections.abc import Callable

import numpy as np

from ranksvm.data.queries import query_ranges
from ranksvm.device.launcher import LANES, Launcher
from ranksvm.device.protocol import Argument, DeviceArray
from ranksvm.terms.device.pairs import DeviceOrder
from ranksvm.terms.device.rows import DenseRows, StreamedRows, additions_of, blocks_for

__all__ = ["LOSS_COLUMNS", "QueryPass"]

# Columns of the sums of a loss: kLossColumns of losses.hpp.
LOSS_COLUMNS = 4
# Threads that add up rows together: kGroup of fused.hpp.
GROUP = 32
# A multiprocessor runs two blocks with rows in shared memory at a time (`Device.half_shared_bytes`): fewer by this
# factor than `Device.n_blocks` says of other blocks. Not yet measured.
FEWER = 4
# Minimum number of rows in a task of a block, if there are queries for it, so that all threads have some.
TASK_ROWS = 32


class QueryPass:
    """Value and gradient, or a product with the Hessian, in one pass over X.

    The rows of short queries are in shared memory meanwhile, so that they are read once. Rows of long queries are read
    twice; if rows stream through the device (`StreamedRows`), they are copied there once.

    Parameters
    ----------
    launcher : Launcher
        The device, and the variant of its kernels.
    pairs : tuple
        The arguments of kernels that stand for the pairs.
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
        target = -(-rows.n_rows // max(1, launcher.device.n_blocks // FEWER))
        longest = int(sizes[sizes <= fits].max(initial=0))
        self._most_rows = min(fits, max(longest, TASK_ROWS, target))
        self._parts = []
        for first, last in order.blocks:
            start, stop = int(order.pointers[first]), int(order.pointers[last])
            if stop == start:
                continue
            # the shortest come first
            short = first + int(np.searchsorted(sizes[first:last], fits, side="right"))
            ends = order.pointers[first : short + 1]
            tasks = [int(ends[k]) for k, _ in query_ranges(ends, self._most_rows)] if len(ends) > 1 else []
            begin = np.array([*tasks, ends[-1]], dtype=np.int32)
            self._parts.append((start, int(ends[-1]), stop, launcher.copy_in(begin), len(tasks)))

    def evaluate(self, w: DeviceArray, width: float, scores: DeviceArray, out: DeviceArray) -> None:
        """Sums of the loss at ``X w`` and the gradient, into ``out``; and the scores.

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
        """``factor X' L X v``, L the Laplacian of the pairs whose margins are in a ring, into ``out`` after its sums.

        Parameters
        ----------
        v : DeviceArray of float64, shape (n_features,)
            The vector.
        scores : DeviceArray of float64, shape (n_rows,)
            The scores of the margins.
        inner, outer : float
            The ring.
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
        """Maximum number of additions that the term of a row goes through in sums over rows."""
        run, n = self._run, self._rows.n_features
        groups, most = max(1, run.n_threads // GROUP), 0
        for _, middle, stop, _, n_tasks in self._parts:
            rounds = -(-n_tasks // self._n_blocks(n_tasks))
            fused = rounds * (-(-self._most_rows // groups) + 1) + groups + self._add_rows(self._n_blocks(n_tasks))
            left = stop - middle
            apart = additions_of(left, n, blocks_for(run, left, n), run.n_threads) if left else 0
            most = max(most, fused if n_tasks else 0, apart)
        return most + self._add_rows(2 * len(self._parts))

    def loss_additions(self) -> int:
        """Maximum number of additions that the loss of a document goes through in the sum over all."""
        run, most = self._run, 0
        for start, _, stop, _, n_tasks in self._parts:
            n_blocks = self._n_blocks(n_tasks)
            rounds = -(-n_tasks // n_blocks) * (-(-self._most_rows * LANES // run.n_threads) + 1)
            apart = -(-(stop - start) // (run.blocks_for(stop - start) * run.n_threads))
            most = max(most, rounds + apart + run.n_threads + self._add_rows(run.device.n_blocks))
        return most + self._add_rows(2 * len(self._parts))

    # -- private methods ---------------------------------------------------------------------------------------------

    def _go(
        self, kernel: str, arguments: tuple[Argument, ...], rest: Callable[..., DeviceArray], out: DeviceArray
    ) -> None:
        """The fused kernel for the short queries of each block, ``rest`` for the long ones, and the sum of all."""
        run, n = self._run, self._rows.n_features
        width = LOSS_COLUMNS + n
        n_totals = sum((n_tasks > 0) + (stop > middle) for _, middle, stop, _, n_tasks in self._parts)
        totals = out if n_totals == 1 else run.scratch("totals of blocks", n_totals * width)
        place = 0
        for start, middle, stop, begin, n_tasks in self._parts:
            rows = self._rows.resident(start, stop)
            if n_tasks:
                n_blocks = self._n_blocks(n_tasks)
                sums = run.scratch("fused sums", n_blocks * width)
                tasks = begin, n_tasks, self._most_rows
                shared = self._shared(self._most_rows)
                run(kernel, *self._pairs, *rows, *tasks, *arguments, sums, n_blocks=n_blocks, shared=shared)
                run.add_rows(sums, n_blocks, width, totals.part(place, place + width))
                place += width
            if stop > middle:
                total = totals.part(place, place + width)
                u = rest(rows, middle, stop, total)
                n_blocks = blocks_for(run, stop - middle, n)
                sums = run.scratch("row sums", n_blocks * n)
                run("accumulate_rows", *rows, middle, stop, u, sums, n_blocks=n_blocks, shared=run.n_threads)
                run.add_rows(sums, n_blocks, n, total.part(LOSS_COLUMNS, width))
                place += width
        if n_totals > 1:
            run.add_rows(totals, n_totals, width, out)

    def _n_blocks(self, n_tasks: int) -> int:
        return max(1, min(n_tasks, self._run.device.n_blocks // FEWER))

    def _add_rows(self, n_rows: int) -> int:
        return -(-n_rows * LANES // self._run.n_threads) + self._run.n_threads // LANES

    def _rows_that_fit(self) -> int:
        """Rows that fit into the shared memory of a block."""
        left = self._run.device.half_shared_bytes - 8 * self._shared(0)
        return max(0, int(left / (self._row_bytes() + 16)))

    def _shared(self, n_rows: int) -> int:
        """Numbers of float64 that `pass_over_queries` of fused.hpp keeps in shared memory, for this number of rows."""
        n, n_threads = self._rows.n_features, self._run.n_threads
        beside = LOSS_COLUMNS * n_threads + n + max(1, n_threads // GROUP) * n
        return beside + 2 * n_rows + -(-n_rows * self._row_bytes() // 8)

    def _row_bytes(self) -> int:
        return self._rows.n_features * (4 if self._run.variant.real == "float" else 8)
