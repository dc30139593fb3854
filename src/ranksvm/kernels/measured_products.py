"""Bounds on the difference between products with a stored kernel matrix and products with the kernel itself."""

import numpy as np

from ranksvm.device.protocol import StoredArray
from ranksvm.kernels.tiles import HEIGHT, Tiles, ValueSource
from ranksvm.losses.round_off import growth

__all__ = ["MeasuredProducts"]

# Number of columns from which the effect of rounding on a quadratic form is estimated, to a few per cent.
SAMPLED_COLUMNS = 32
# If there are at most MEASURED_ROWS rows, the error of a product is measured in all of its entries, otherwise in
# DRAWN_COLUMNS random ones. Each entry takes one column of Q, recomputed in float64 (for 8,000 rows, the columns have
# 1/62 as many values as a triangle of Q). If the entries are random, the largest error is multiplied by MARGIN, and
# DEVIATIONS standard errors are added to the mean error.
MEASURED_ROWS, DRAWN_COLUMNS, MARGIN, DEVIATIONS = 256, 64, 3.0, 4.0
# Number of additions that a term goes through in NumPy's pairwise summation, which starts from blocks of 128.
EXACT_TERMS = 60


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
            self._unrounded = Tiles(self.source, np.dtype(np.float64), HEIGHT)
        found = []
        for part in np.array_split(positions, -(-len(positions) // SAMPLED_COLUMNS)):
            columns = np.empty((self.n_rows, len(part)))
            self._unrounded.columns(part, np.arange(len(part)), 0, self.n_rows, columns, self._n_threads)
            # NumPy's summation is pairwise along contiguous rows
            found.append((np.ascontiguousarray(columns.T) * b).sum(axis=1) - product[part])
        return np.concatenate(found)
