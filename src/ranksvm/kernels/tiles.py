"""Values of a kernel matrix tile by tile: computed in float64, checked, rounded once; errors of products with them."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np

from ranksvm._compiled.linear import all_finite
from ranksvm._util.threads import one_blas_thread, parallel_map
from ranksvm.device.protocol import StoredArray
from ranksvm.exceptions import DataError
from ranksvm.losses.round_off import growth

__all__ = ["HEIGHT", "MeasuredProducts", "Tiles", "ValueSource"]

Task = TypeVar("Task")

# Number of rows of a tile (a block of values that are computed together), and of a panel (consecutive rows of stored
# values). The squares on the diagonal are stored completely, which costs a share HEIGHT / n_rows of the memory and of
# the time of a product.
HEIGHT = 64
# The places above the diagonal of a square.
ABOVE = ~np.tri(HEIGHT, dtype=bool)
# Values count as equal if they differ by less than this, relative to the largest one: sums in float32 differ by as
# much.
ROUND_OFF = 1e-5
# Number of columns from which the effect of rounding on a quadratic form is estimated, to a few per cent.
SAMPLED_COLUMNS = 32
# If there are at most MEASURED_ROWS rows, the error of a product is measured in all of its entries, otherwise in
# DRAWN_COLUMNS random ones. Each entry takes one column of Q, recomputed in float64 (for 8,000 rows, the columns have
# 1/62 as many values as a triangle of Q). If the entries are random, the largest error is multiplied by MARGIN, and
# DEVIATIONS standard errors are added to the mean error.
MEASURED_ROWS, DRAWN_COLUMNS, MARGIN, DEVIATIONS = 256, 64, 3.0, 4.0
# A thread recomputes these columns for this number of rows at a time, if the tiles of the matrix are as wide.
MEASURED_HEIGHT = 512
# Number of additions that a term goes through in NumPy's pairwise summation, which starts from blocks of 128.
EXACT_TERMS = 60


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
        """Some rows prepared for `values`."""

    def values(self, ours: Any, rows: slice, theirs: Any, columns: slice, out: np.ndarray) -> None:
        """``out = Q[ours, theirs][rows, columns]`` in float64, for prepared rows and columns of Q."""

    def diagonal(self) -> np.ndarray:
        """The diagonal of Q in float64."""

    def value_error(self) -> float:
        """Bound on the round-off of a value."""


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
                    source.values(ours, _within(rows, top), theirs, _within(columns, left), values)
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
            # as many values at a time as a tile has
            height = min(HEIGHT * (self.width // len(group)), bottom - top)
            exact, every = np.empty(height * len(group)), slice(len(group))
            for first in range(top, bottom, height):
                rows = slice(first, min(first + height, bottom))
                values = exact[: (rows.stop - first) * len(group)].reshape(-1, len(group))
                self.source.values(ours, _within(rows, top), columns, every, values)
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
        np.copyto(square, square.T, where=ABOVE[: len(square), : len(square)])

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


class MeasuredProducts:
    """Base class of stored kernel matrices: it computes the diagonal, and errors of rounding and of products.

    A subclass implements `columns`, which returns the values that its products use.

    Parameters
    ----------
    source : ValueSource
        Source of the values, in float64.
    tiles : Tiles
        The same values, rounded as the matrix is.
    n_threads : int
        Number of threads.

    Attributes
    ----------
    n_rows : int
        Number of rows of Q.
    n_products : int
        Number of products so far.
    largest : float
        Largest value of Q: it is on the diagonal.
    rounding : float
        Approximate error of Q due to rounding, in the spectral norm: ``eps * largest * sqrt(n_rows / 3)``, if errors of
        up to half a unit in the last place of the largest value are uniform and independent.
    stored : StoredArray or None
        All rows of Q in full, if they are stored on a device.
    """

    stored: StoredArray | None = None

    def __init__(self, source: ValueSource, tiles: Tiles, n_threads: int):
        self.source = source
        self.n_rows = source.n_rows
        self.n_products = 0
        self.largest = float(np.abs(tiles.diagonal).max(initial=0.0))
        self.rounding = float(np.finfo(tiles.dtype).eps) * self.largest * float(np.sqrt(self.n_rows / 3.0))
        self._tiles = tiles
        self._n_threads = n_threads
        self._value_error: float | None = None
        self._unrounded: Tiles | None = None

    def columns(self, positions: np.ndarray) -> np.ndarray:
        """Some columns of Q, the values that products use."""
        raise NotImplementedError

    def submatrix(self, positions: np.ndarray, dtype: type[np.floating]) -> np.ndarray:
        """The kernel values between some documents.

        Parameters
        ----------
        positions : ndarray of int64, shape (n_positions,)
            The documents, ascending.
        dtype : type
            float32, or float64.

        Returns
        -------
        ndarray of dtype, shape (n_positions, n_positions)
            ``Q[positions][:, positions]``, of which only the lower triangle need be filled in.
        """
        return self.columns(positions)[positions].astype(dtype, copy=False)

    def diagonal(self) -> np.ndarray:
        """The diagonal of Q.

        Returns
        -------
        ndarray of float64, shape (n_rows,)
            The values that `product` uses.
        """
        return self._tiles.diagonal.astype(np.float64)

    def form_rounding(self, b: np.ndarray) -> float:
        """Approximate error of ``b'Qb`` due to the rounding of the stored values of Q.

        The error of a value is at most half a unit in its last place; the root mean square of the relative error is
        about ``eps / sqrt(24)``. If these errors are independent, the form has the standard deviation ``eps * (sum of
        b_i^2 b_j^2 q_ij^2 / 12)^1/2``. The sum is taken over columns drawn with probability proportional to ``b_j^2``.

        Parameters
        ----------
        b : ndarray of float64, shape (n_rows,)
            The vector.

        Returns
        -------
        float
            The standard deviation.
        """
        squares = b * b
        total = float(squares.sum())
        if total == 0.0:
            return 0.0
        drawn = np.random.default_rng(0).choice(self.n_rows, size=SAMPLED_COLUMNS, p=squares / total)
        values = self.columns(drawn)
        values *= values
        eps = float(np.finfo(self._tiles.dtype).eps)
        return eps * float(np.sqrt(total * float((squares @ values).mean()) / 12.0))

    def product_error(self, b: np.ndarray, product: np.ndarray) -> tuple[float, float]:
        """Bounds on the errors of a product ``Qb``, and of ``b'Qb``, compared with the unrounded kernel.

        The differences are measured with columns of Q that are recomputed in float64: all columns if there are at most
        `MEASURED_ROWS` rows, otherwise columns drawn with probability proportional to ``|b_j|``. For random columns,
        multiply each difference by the sign of b_j: the mean of these products times the sum of ``|b_j|`` is an
        unbiased estimate of the error of ``b'Qb``. `DEVIATIONS` standard errors are added to the absolute mean, and the
        largest difference is multiplied by `MARGIN`.

        Parameters
        ----------
        b : ndarray of float64, shape (n_rows,)
            The vector.
        product : ndarray of float64, shape (n_rows,)
            The computed product ``Q b``.

        Returns
        -------
        of_product, of_form : float
            Bounds on the largest error of an entry of the product, and on the error of its product with b.
        """
        total = float(np.abs(b).sum())
        if total == 0.0:
            return float(np.abs(product).max(initial=0.0)), 0.0
        if self._value_error is None:
            self._value_error = self.source.value_error() + growth(EXACT_TERMS) * self.largest
        unknown = self._value_error * total
        if self.n_rows <= MEASURED_ROWS:
            errors = np.abs(self._differences(np.arange(self.n_rows), b, product))
            return unknown + float(errors.max()), unknown * total + float(np.abs(b) @ errors)
        drawn = np.random.default_rng(0).choice(self.n_rows, size=DRAWN_COLUMNS, p=np.abs(b) / total)
        errors = self._differences(drawn, b, product)
        signed = errors * np.sign(b[drawn])
        of_form = abs(float(signed.mean())) + DEVIATIONS * float(signed.std() / np.sqrt(DRAWN_COLUMNS))
        return unknown + MARGIN * float(np.abs(errors).max()), unknown * total + of_form * total

    def _differences(self, positions: np.ndarray, b: np.ndarray, product: np.ndarray) -> np.ndarray:
        """Entries of ``Qb``, with Q in float64, minus the entries of a product."""
        if self._unrounded is None:
            width = min(self._tiles.width, MEASURED_HEIGHT)
            self._unrounded = Tiles(self.source, np.dtype(np.float64), width)
        found = []
        for part in np.array_split(positions, -(-len(positions) // DRAWN_COLUMNS)):
            terms = np.empty((len(part), self.n_rows))
            self._unrounded.columns(part, np.arange(len(part)), 0, self.n_rows, terms.T, self._n_threads)
            terms *= b
            # NumPy's summation is pairwise along contiguous rows
            found.append(terms.sum(axis=1) - product[part])
        return np.concatenate(found)


def _tiles(top: int, bottom: int, left: int, right: int) -> Iterator[tuple[slice, slice]]:
    """Rows and columns of the tiles between two rows and between two columns, on and below the diagonal."""
    for start in range(top, bottom, HEIGHT):
        rows = slice(start, min(start + HEIGHT, bottom))
        if left < start:
            yield rows, slice(left, min(right, start))
        if rows.stop <= right:
            yield rows, rows


def _within(rows: slice, origin: int) -> slice:
    """The positions of rows among the rows from ``origin`` on."""
    return slice(rows.start - origin, rows.stop - origin)
