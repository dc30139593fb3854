"""The matrix of the linear kernel, Q = X X': products with it are products with X."""

import numpy as np

from ranksvm._util.threads import even_ranges, parallel_map
from ranksvm._util.types import Features
from ranksvm.data.design_matrix import as_design_matrix, stored_bytes
from ranksvm.device.protocol import StoredArray
from ranksvm.kernels.functions import KernelValues, kernel_named
from ranksvm.kernels.tiles import Tiles
from ranksvm.losses.round_off import growth

__all__ = ["LinearKernelMatrix"]

# Number of columns of the tiles in which `columns` and `submatrix` compute values of Q.
WIDTH = 512
# From this number of bytes of X on, several threads save time.
WORTH_THREADS = 1 << 20


class LinearKernelMatrix:
    """Matrix of the inner products of documents, ``Q b = X (X' b)``.

    Parameters
    ----------
    X : ndarray or CSR matrix of float32 or float64, shape (n_rows, n_features)
        The documents.
    n_threads : int
        Number of threads. Each has an array of n_features values for its part of ``X' b``.

    Attributes
    ----------
    n_rows : int
        Number of rows of Q.
    n_products : int
        Number of products so far.
    product_bytes : int
        Bytes that one product reads: it reads X twice.
    rounding : float
        0: Q is not stored, so none of its values is rounded.
    stored : None
        Q is not stored.
    """

    stored: StoredArray | None = None

    def __init__(self, X: Features, *, n_threads: int = 1):
        self.n_rows = X.shape[0]
        self.n_products = 0
        self._design = as_design_matrix(X)
        self._products = self._design.products()
        size = stored_bytes(X)
        self.product_bytes = 2 * size
        self.rounding = 0.0
        self._sizes: np.ndarray | None = None
        self._values: np.ndarray | None = None
        self._n_threads = n_threads if size >= WORTH_THREADS else 1
        self._tiles = Tiles(KernelValues(kernel_named("linear"), X), np.dtype(np.float64), WIDTH)

    def product(self, b: np.ndarray) -> np.ndarray:
        """``Q b``: see `KernelMatrix.product`."""
        self.n_products += 1
        b = np.ascontiguousarray(b, dtype=np.float64)
        ranges = even_ranges(0, self.n_rows, self._n_threads)
        sums = np.zeros((len(ranges), self._design.n_features))
        out = np.empty(self.n_rows)

        def accumulate(task: int) -> None:
            start, stop = ranges[task]
            self._products.accumulate(start, stop, b[start:stop], sums[task])

        parallel_map(accumulate, range(len(ranges)), self._n_threads)
        w = sums.sum(axis=0)
        parallel_map(lambda span: self._products.scores(*span, w, out[slice(*span)]), ranges, self._n_threads)
        return out

    def columns(self, positions: np.ndarray) -> np.ndarray:
        """Some columns of Q: see `KernelMatrix.columns`."""
        positions = np.asarray(positions)
        out = np.empty((self.n_rows, len(positions)))
        self._tiles.columns(positions, np.arange(len(positions)), 0, self.n_rows, out, self._n_threads)
        return out

    def submatrix(self, positions: np.ndarray, dtype: type[np.floating]) -> np.ndarray:
        """Kernel values between some documents: see `MeasuredProducts.submatrix`. The first call computes all of Q."""
        if self._values is None:
            self._values = self._design.gram(None)
        return self._values[np.ix_(positions, positions)].astype(dtype, copy=False)

    @property
    def largest(self) -> float:
        """Largest value of Q: it is on the diagonal."""
        return float(self._tiles.diagonal.max(initial=0.0))

    def diagonal(self) -> np.ndarray:
        """The diagonal of Q.

        Returns
        -------
        ndarray of float64, shape (n_rows,)
            Squared norms of the documents.
        """
        return self._tiles.diagonal.copy()

    def product_error(self, b: np.ndarray, product: np.ndarray) -> tuple[float, float]:
        """Bounds on the errors of ``Qb`` and of ``b'Qb``.

        The product is computed again by one thread, with bounds on the round-off of its sums. The bounds include the
        difference between the new product and ``product``.

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
        if self._sizes is None:
            self._sizes = self._design.largest(self._n_threads)
        b = np.ascontiguousarray(b, dtype=np.float64)
        w, again = np.zeros(self._design.n_features), np.empty(self.n_rows)
        self._products.accumulate(0, self.n_rows, b, w)
        self._products.scores(0, self.n_rows, w, again)
        total, length, norm = (float(np.linalg.norm(v, p)) for v, p in ((b, 1), (self._sizes, 2), (w, 2)))
        # the quadratic form b'Qb is the squared norm of X'b, a sum over documents in which large terms may cancel
        of_norm = growth(self.n_rows) * length * total
        of_form = (2.0 * norm + of_norm) * of_norm + growth(self.n_rows + len(w)) * norm**2
        of_scores = of_norm * length + growth(self._design.most_entries + 4) * length * (norm + of_norm)
        return of_scores + float(np.abs(again - product).max()), of_form + abs(float(b @ product) - norm**2)

    def form_rounding(self, b: np.ndarray) -> float:
        """Error of ``b'Qb`` due to the rounding of stored values of Q.

        Parameters
        ----------
        b : ndarray of float64, shape (n_rows,)
            The vector.

        Returns
        -------
        float
            0: Q is not stored; products read X as it is.
        """
        return 0.0
