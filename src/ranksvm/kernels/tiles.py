"""Values of a kernel matrix tile by tile: computed in float64, checked, rounded once."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np

from ranksvm._compiled.linear import all_finite
from ranksvm._util.checks import is_sparse
from ranksvm._util.threads import one_blas_thread, parallel_map
from ranksvm._util.types import Features
from ranksvm.exceptions import DataError
from ranksvm.kernels.functions import Documents, Kernel

__all__ = ["HEIGHT", "KernelValues", "Tiles", "ValueSource"]

Task = TypeVar("Task")

# Number of rows of a tile (a block of values that are computed together), and of a panel (consecutive rows of stored
# values). The squares on the diagonal are stored completely, which costs a share HEIGHT / n_rows of the memory and of
# the time of a product.
HEIGHT = 64
# Sparse documents are converted to dense ones, tile by tile, if they store a larger share of their values than this.
# Measured with 46 to 1,000 features: sparse products are faster up to shares of 0.05 to 0.1, and so are sparse
# distances |x - z|_1.
DENSE_SHARE = 0.07
DIAGONAL_ROWS = 1024
# Values count as equal if they differ by less than this, relative to the largest one: sums in float32 differ by as
# much.
ROUND_OFF = 1e-5


class ValueSource(Protocol):
    """Source of the values of a kernel matrix.

    Attributes
    ----------
    name : str
        Name of the kernel, for messages.
    n_rows : int
        Number of rows (and columns) of the matrix.
    parallel : bool
        Whether several threads may use it at a time.
    row_bytes, value_bytes : int
        Memory of a prepared row, and of the computation of one value in addition to the value.
    """

    name: str
    n_rows: int
    parallel: bool
    row_bytes: int
    value_bytes: int

    def ready(self, rows: slice | np.ndarray) -> Any:
        """Some rows prepared for `values`; the result can be sliced by rows."""

    def values(self, rows: Any, columns: Any, out: np.ndarray) -> None:
        """``out = Q[rows, columns]`` in float64, for prepared rows and columns."""

    def diagonal(self) -> np.ndarray:
        """The diagonal of Q in float64."""

    def value_error(self) -> float:
        """Bound on the round-off of a value."""


class KernelValues:
    """Values of a kernel between documents.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    X : ndarray or CSR matrix of float32 or float64, shape (n_rows, n_features)
        The documents.
    """

    def __init__(self, kernel: Kernel, X: Features):
        self.name = kernel.name
        self.n_rows = X.shape[0]
        called = kernel.name == "callable"
        # a function of the user may not be thread-safe
        self.parallel = not called
        self._dense, self.row_bytes = True, 8 * X.shape[1]
        if is_sparse(X) and (called or X.nnz <= DENSE_SHARE * X.shape[0] * X.shape[1]):
            # sparse rows and products store an index with each value, and exist twice while they are transposed or
            # added up
            self._dense, self.row_bytes = False, 32 * math.ceil(X.nnz / max(1, X.shape[0]))
        self.value_bytes = (0 if self._dense else 32) + (16 if called else 0)
        self._kernel, self._X, self._center = kernel, X, kernel.center(X)

    def ready(self, rows: slice | np.ndarray) -> Documents:
        X = self._X[rows]
        return self._kernel.documents(X.toarray() if self._dense and is_sparse(X) else X, self._center)

    def values(self, rows: Documents, columns: Documents, out: np.ndarray) -> None:
        self._kernel.values(rows, columns, out)

    def diagonal(self) -> np.ndarray:
        starts = range(0, self.n_rows, DIAGONAL_ROWS)
        parts = [self._kernel.diagonal(self._X[start : start + DIAGONAL_ROWS]) for start in starts]
        return np.concatenate(parts) if parts else np.empty(0)

    def value_error(self) -> float:
        starts = range(0, self.n_rows, DIAGONAL_ROWS)
        squares = [self.ready(slice(start, start + DIAGONAL_ROWS)).squares.max() for start in starts]
        return self._kernel.value_error(self._X.shape[1], max(squares, default=0.0), sparse=not self._dense)


class Tiles:
    """Tiles of the lower triangle of a kernel matrix Q.

    Parameters
    ----------
    source : ValueSource
        Source of the values.
    dtype : dtype
        Type to which they are rounded.
    width : int
        Number of columns of a tile, a multiple of `HEIGHT`.

    Raises
    ------
    DataError
        When a value is not finite, or too large for the dtype, or all are too small for it.
    """

    def __init__(self, source: ValueSource, dtype: np.dtype, width: int):
        self.source, self.dtype, self.width = source, dtype, width
        diagonal = source.diagonal()
        largest, limits = float(np.abs(diagonal).max(initial=0.0)), np.finfo(dtype)
        if 0.0 < largest < float(limits.tiny / limits.eps):
            finer = "" if dtype == np.float64 else ', or keep its matrix in float64 (kernel_dtype="float64")'
            raise DataError(
                f"The kernel {source.name!r} is {largest:.3g} or less for all of the documents, too small for {dtype}. "
                f"Scale the features, or change the parameters of the kernel{finer}."
            )
        self.diagonal = self._rounded(diagonal)

    def of_panels(self, first: int, last: int) -> Iterator[tuple[slice, slice, np.ndarray]]:
        """Compute the tiles of some panels.

        Parameters
        ----------
        first, last : int
            Range of panels.

        Yields
        ------
        rows, columns : slice
            Position of the tile: to the left of the square on the diagonal, or equal slices for the square itself.
        values : ndarray of dtype
            Its values, valid until the next tile is computed.
        """
        source, stop = self.source, min(last * HEIGHT, self.source.n_rows)
        exact, rounded = np.empty(HEIGHT * self.width), np.empty(HEIGHT * self.width, dtype=self.dtype)
        for left in range(0, stop, self.width):
            right = min(left + self.width, stop)
            theirs = source.ready(slice(left, right))
            # rows are prepared in groups of the same size as columns
            for top in range(max(first * HEIGHT, left), stop, self.width):
                ours = source.ready(slice(top, min(top + self.width, stop)))
                for rows, columns in _tiles(top, min(top + self.width, stop), left, right):
                    n_rows, n_columns = rows.stop - rows.start, columns.stop - columns.start
                    values = exact[: n_rows * n_columns].reshape(n_rows, n_columns)
                    tile = rounded[: n_rows * n_columns].reshape(n_rows, n_columns)
                    source.values(_part(ours, rows, top), _part(theirs, columns, left), values)
                    if rows == columns:
                        self._mirror(values, rows.start)
                    self._rounded(values, tile)
                    if rows == columns:
                        np.fill_diagonal(tile, self.diagonal[rows])
                    yield rows, columns, tile

    def columns(
        self, positions: np.ndarray, places: np.ndarray, start: int, stop: int, out: np.ndarray, n_threads: int
    ) -> None:
        """Compute some columns of Q, in a range of rows.

        Parameters
        ----------
        positions : ndarray of int, shape (n_positions,)
            The columns of Q.
        places : ndarray of int
            Indices into ``positions``: the columns that are computed.
        start, stop : int
            Range of rows that are computed.
        out : ndarray of float64, shape (n_rows, n_positions)
            ``out[start:stop, places]`` receives the values.
        n_threads : int
            Number of threads.
        """

        def make(task: tuple[int, int]) -> None:
            group, top = places[task[0] : task[0] + self.width], task[1]
            bottom = min(top + self.width, stop)
            ours, columns = self.source.ready(slice(top, bottom)), self.source.ready(positions[group])
            exact = np.empty(HEIGHT * len(group))
            for first in range(top, bottom, HEIGHT):
                rows = slice(first, min(first + HEIGHT, bottom))
                values = exact[: (rows.stop - first) * len(group)].reshape(-1, len(group))
                self.source.values(_part(ours, rows, top), columns, values)
                out[rows, group] = self._rounded(values)

        tasks = [(left, top) for left in range(0, len(places), self.width) for top in range(start, stop, self.width)]
        self.parallel(make, tasks, n_threads)
        inside = places[(start <= positions[places]) & (positions[places] < stop)]
        out[positions[inside], inside] = self.diagonal[positions[inside]]

    def parallel(self, action: Callable[[Task], None], tasks: Sequence[Task], n_threads: int) -> None:
        """Run a function that computes tiles, on as many threads as the source of the values allows.

        Parameters
        ----------
        action : callable
            Takes a task.
        tasks : sequence
            The tasks.
        n_threads : int
            Number of threads.
        """
        if self.source.parallel and tasks:
            with one_blas_thread():
                parallel_map(action, tasks, n_threads)
        else:
            parallel_map(action, tasks, 1)

    def _mirror(self, square: np.ndarray, row: int) -> None:
        """Make a square on the diagonal exactly symmetric: products use a row in place of its column."""
        unequal = np.abs(square - square.T) > ROUND_OFF * np.abs(square).max()
        for i, j in np.argwhere(unequal)[:1]:
            raise DataError(
                f"The kernel {self.source.name!r} is not symmetric: it is {square[i, j]:g} for two documents, and "
                f"{square[j, i]:g} when they change places (numbers {row + i} and {row + j} of those with pairs)."
            )
        lower = np.tril_indices(len(square), -1)
        square.T[lower] = square[lower]

    def _rounded(self, exact: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        out = np.empty(exact.shape, dtype=self.dtype) if out is None else out
        with np.errstate(over="ignore"):
            out[...] = exact
        if not all_finite(out.reshape(-1)):
            raise DataError(
                f"The kernel {self.source.name!r} has the value {np.abs(exact).max():.3g} for some of the documents, "
                "too large for float32. Scale the features, change the parameters of the kernel, or keep its matrix "
                'in float64 (kernel_dtype="float64").'
            )
        return out


def _tiles(top: int, bottom: int, left: int, right: int) -> Iterator[tuple[slice, slice]]:
    """Rows and columns of the tiles between two rows and between two columns, on and below the diagonal."""
    for start in range(top, bottom, HEIGHT):
        rows = slice(start, min(start + HEIGHT, bottom))
        if left < start:
            yield rows, slice(left, min(right, start))
        if rows.stop <= right:
            yield rows, rows


def _part(ready: Any, rows: slice, origin: int) -> Any:
    """The given rows out of prepared rows, the first of which has the number ``origin``."""
    return ready[rows.start - origin : rows.stop - origin]
