"""A kernel matrix stored as one triangle, as far as memory allows; the rest is recomputed at every product."""

import itertools

import numpy as np

import ranksvm._compiled.kernel as compiled
from ranksvm._util.threads import even_ranges, parallel_map
from ranksvm.exceptions import OptionError
from ranksvm.kernels.tiles import HEIGHT, MeasuredProducts, Tiles, ValueSource

__all__ = ["PackedKernelMatrix"]

# Possible numbers of columns of the tiles in which values are computed; narrow tiles are for small matrices and small
# memory.
WIDTHS = (2048, 1024, 512, 256, 128, 64)
# Share of the memory that tiles may use before they become narrower.
TILES_SHARE = 0.25
# Number of ranges of panels (groups of consecutive rows) that threads share, each with its own sums: enough that no
# thread waits long for another. The number is the same for any small number of threads, so that the products are then
# equal bit by bit.
TASKS = 16
TASKS_PER_THREAD = 4
VALUES_PER_TASK = 1 << 17


class PackedKernelMatrix(MeasuredProducts):
    """One triangle of a symmetric kernel matrix Q, in panels of consecutive rows.

    A product reads each value once and uses it twice. Values that do not fit into memory are recomputed by every
    product, tile by tile in the CPU's cache, and rounded in the same way.

    Parameters
    ----------
    source : ValueSource
        Source of the values.
    memory : int
        Bytes that Q may use, including its construction and products.
    dtype : {"float32", "float64"}
        Type of the stored values. They are computed in float64 and rounded once; products sum in float64.
    n_threads : int
        Number of threads.

    Attributes
    ----------
    n_rows : int
        Number of rows of Q.
    n_products : int
        Number of products so far.
    product_bytes : int
        Bytes of Q that one product reads from memory.
    rounding : float
        Approximate error of Q due to rounding, in the spectral norm: ``eps * largest * sqrt(n_rows / 3)``, if errors of
        up to half a unit in the last place of the largest value are uniform and independent.
    largest : float
        Largest value of Q: it is on the diagonal.

    Raises
    ------
    OptionError
        When ``memory`` is too small for any product at all.
    DataError
        When a value of the kernel is not finite, or too large for the dtype.
    """

    def __init__(self, source: ValueSource, *, memory: int, dtype: str = "float32", n_threads: int = 1):
        max_tasks = max(TASKS, TASKS_PER_THREAD * n_threads)
        width, self._n_kept = _plan(source, memory, np.dtype(dtype), n_threads if source.parallel else 1, max_tasks)
        super().__init__(source, Tiles(source, np.dtype(dtype), width), n_threads)
        self._kept_tasks = _tasks(0, self._n_kept, max_tasks)
        self._made_tasks = _tasks(self._n_kept, -(-self.n_rows // HEIGHT), max_tasks)
        self._values = np.empty(_n_values(self._n_kept, self.n_rows), dtype=dtype)
        self.product_bytes = self._values.nbytes
        self._tiles.parallel(self._store, self._kept_tasks, n_threads)

    def product(self, b: np.ndarray) -> np.ndarray:
        """``Q b``.

        Parameters
        ----------
        b : ndarray of float64, shape (n_rows,)
            The vector.

        Returns
        -------
        ndarray of float64, shape (n_rows,)
            The product, summed in float64.
        """
        self.n_products += 1
        b = np.ascontiguousarray(b, dtype=np.float64)
        sums = np.zeros((max(len(self._made_tasks), len(self._kept_tasks)), self.n_rows))

        def multiply(task: int) -> None:
            for rows, columns, values in self._tiles.of_panels(*self._made_tasks[task]):
                if rows == columns:
                    compiled.square_product(values, rows.start, b, sums[task])
                else:
                    compiled.block_product(values, rows.start, columns.start, b, sums[task])

        def read(task: int) -> None:
            first, last = self._kept_tasks[task]
            compiled.panels_product(self._values, self.n_rows, HEIGHT, first, last, b, sums[task])

        if self._made_tasks:
            self._tiles.parallel(multiply, range(len(self._made_tasks)), self._n_threads)
        if len(self._kept_tasks) == 1:  # a small matrix, for which threads would take longer
            read(0)
        else:
            parallel_map(read, range(len(self._kept_tasks)), self._n_threads)
        return sums.sum(axis=0)

    def columns(self, positions: np.ndarray) -> np.ndarray:
        """Some columns of Q, the values that `product` uses.

        Parameters
        ----------
        positions : ndarray of int, shape (n_positions,)
            The columns.

        Returns
        -------
        ndarray of float64, shape (n_rows, n_positions)
            ``Q[:, positions]``.
        """
        positions = np.asarray(positions)
        out = np.empty((self.n_rows, len(positions)))
        kept_rows = min(self._n_kept * HEIGHT, self.n_rows)
        kept, made = np.flatnonzero(positions < kept_rows), np.flatnonzero(positions >= kept_rows)

        def read(panels: tuple[int, int]) -> None:
            for panel in range(*panels):
                values, start = self._panel(panel), panel * HEIGHT
                stop = start + len(values)
                left = kept[positions[kept] < stop]
                out[start:stop, left] = values[:, positions[left]]
                within = left[positions[left] >= start]
                out[:start, within] = values[positions[within] - start, :start].T

        parallel_map(read, self._kept_tasks, self._n_threads)
        if self._made_tasks:
            self._tiles.columns(positions, made, 0, kept_rows, out, self._n_threads)
            self._tiles.columns(positions, np.arange(len(positions)), kept_rows, self.n_rows, out, self._n_threads)
        return out

    def submatrix(self, positions: np.ndarray, dtype: type[np.floating]) -> np.ndarray:
        """The kernel values between some documents, in the lower triangle: see `MeasuredProducts.submatrix`."""
        if self._made_tasks:
            return super().submatrix(positions, dtype)
        out = np.empty((len(positions), len(positions)), dtype=dtype)

        def read(rows: tuple[int, int]) -> None:
            compiled.gather_rows(self._values, self.n_rows, HEIGHT, positions, *rows, out)

        parallel_map(read, even_ranges(0, len(positions), TASKS_PER_THREAD * self._n_threads), self._n_threads)
        return out

    def _panel(self, panel: int) -> np.ndarray:
        """The values of a stored panel: its rows, and the columns up to its last row."""
        start, stop = panel * HEIGHT, min((panel + 1) * HEIGHT, self.n_rows)
        first, last = _n_values(panel, self.n_rows), _n_values(panel + 1, self.n_rows)
        return self._values[first:last].reshape(stop - start, stop)

    def _store(self, task: tuple[int, int]) -> None:
        for rows, columns, values in self._tiles.of_panels(*task):
            self._panel(rows.start // HEIGHT)[:, columns] = values


def _plan(source: ValueSource, memory: int, dtype: np.dtype, makers: int, n_tasks: int) -> tuple[int, int]:
    """The number of columns of a tile, and the number of stored panels."""
    n_rows, n_panels = source.n_rows, -(-source.n_rows // HEIGHT)
    # the sums of the tasks, both vectors of a product, and the diagonal in both precisions
    vectors = 8 * n_rows * (n_tasks + 4)
    whole = _n_values(n_panels, n_rows) * dtype.itemsize

    def tiles(width: int) -> int:
        value_bytes = 8 + dtype.itemsize + source.value_bytes
        return makers * (HEIGHT * width * value_bytes + 2 * width * source.row_bytes)

    for width in WIDTHS:
        if vectors + tiles(width) + whole <= memory:
            return width, n_panels
    width = next((width for width in WIDTHS if tiles(width) <= TILES_SHARE * (memory - vectors)), WIDTHS[-1])
    left = memory - vectors - tiles(width)
    if left < 0:
        raise OptionError(
            f"Products with the kernel matrix of {n_rows:,} rows need at least {_megabytes(vectors + tiles(width))} of "
            f"memory even where nothing of it is kept, and {_megabytes(max(0, memory))} are left for them (all of it "
            f"takes {_megabytes(vectors + tiles(width) + whole)}): raise memory_limit."
        )
    return width, next(kept for kept in range(n_panels, -1, -1) if _n_values(kept, n_rows) * dtype.itemsize <= left)


def _n_values(n_panels: int, n_rows: int) -> int:
    """Number of values in the first panels of a matrix."""
    whole = min(n_panels, n_rows // HEIGHT)
    values = HEIGHT * HEIGHT * (whole * (whole + 1) // 2)
    return values if whole == n_panels else values + (n_rows - whole * HEIGHT) * n_rows


def _tasks(first: int, last: int, max_tasks: int) -> list[tuple[int, int]]:
    """Ranges of panels that have about equal numbers of values."""
    areas = np.cumsum(np.arange(first, last) + 1) * HEIGHT * HEIGHT
    if not len(areas):
        return []
    n_tasks = min(max_tasks, max(1, int(areas[-1]) // VALUES_PER_TASK))
    cuts = first + 1 + np.searchsorted(areas, areas[-1] * (np.arange(1, n_tasks) / n_tasks))
    bounds = np.unique([first, *cuts, last]).tolist()
    return list(itertools.pairwise(bounds))


def _megabytes(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:,.1f} MB"
