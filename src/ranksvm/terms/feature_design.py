"""Design matrices of features computed from the documents: stored if they fit, else recomputed at every pass."""

import threading
from collections.abc import Iterator

import numpy as np
from numpy.typing import DTypeLike

from ranksvm._util.threads import one_blas_thread, parallel_map
from ranksvm._util.types import Features
from ranksvm.data.design_matrix import Basis, DenseDesign, DesignMatrix, mapped_file
from ranksvm.exceptions import OptionError
from ranksvm.kernels.features import FeatureMap
from ranksvm.terms.hessian_cost import MAX_VARIABLES

__all__ = ["ComputedDesign", "feature_design"]

# Bytes of the basis functions' values that each thread computes at a time, fewer if memory is short. Kernels need the
# same amount again during their computation, and features the same amount a third time.
CHUNK_BYTES = 8 << 20
COPIES = 3
MIN_ROWS = 16
# Additional memory of a solver, measured as the peak of whole fits: the number of vectors with an entry for each row or
# for each feature; the number of rows of a block for the Hessian or its diagonal, of which each thread holds BLOCKS;
# and, with explicit Hessians, the number of square matrices over the features.
VECTORS = 28
HESSIAN_ROWS, BLOCKS = 1024, 3
SQUARES = 9


class ComputedDesign:
    """Features recomputed at every pass, block by block.

    Products with a vector need only the basis functions: ``phi(x)' w = basis(x)' (W w)``. Their values are kept until
    the same thread needs other rows, so that scores and gradient of a block of queries share them.

    Parameters
    ----------
    X : ndarray or CSR matrix of floats, shape (n_rows, n_features_in)
        Documents.
    features : FeatureMap
        The features of a document.
    chunk_rows : int, optional
        Number of rows whose features each thread computes at a time.
    """

    dense = True
    vector_basis: Basis | None = None
    dtype = np.dtype(np.float64)

    def __init__(self, X: Features, features: FeatureMap, chunk_rows: int | None = None):
        self.X = X
        self.file = mapped_file(X)
        self.features = features
        self.chunk_rows = _chunk_rows(features) if chunk_rows is None else chunk_rows
        self.n_features = features.n_features
        self.row_bytes = 4.0 * max(1, features.n_features)
        self._last = threading.local()

    def products(self, rows: np.ndarray | None = None, double: bool = True) -> "_ComputedProducts":
        return _ComputedProducts(self, rows)

    def accumulate_squares(
        self, rows: np.ndarray | None, start: int, stop: int, u_range: np.ndarray, out: np.ndarray
    ) -> None:
        for part in self.chunks(start, stop):
            features = self.features.transform(_rows(self.X, rows, part))
            out += u_range[part.start - start : part.stop - start] @ (features * features)

    def gather(self, rows: np.ndarray | None, start: int, stop: int, out_range: np.ndarray) -> None:
        out_range[:, self.n_features :] = 0.0
        out = out_range[:, : self.n_features]
        for part in self.chunks(start, stop):
            out[part.start - start : part.stop - start] = self.features.transform(_rows(self.X, rows, part))

    def largest(self, n_threads: int = 1) -> np.ndarray:
        return self.features.largest(self.X)

    @property
    def most_entries(self) -> int:
        # a function's weight is a sum over the features, and a score is a sum over the functions
        return self.features.n_functions + self.n_features

    def taken(self, rows: np.ndarray) -> "ComputedDesign":
        return ComputedDesign(self.X[rows], self.features, self.chunk_rows)

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        # the values that threads keep between two passes are left out
        return ComputedDesign, (self.X, self.features, self.chunk_rows)

    def chunks(self, start: int, stop: int) -> Iterator[slice]:
        """Positions whose features are computed together."""
        size = self.chunk_rows
        return (slice(at, min(at + size, stop)) for at in range(start, stop, size))

    def basis(self, rows: np.ndarray | None, part: slice) -> np.ndarray:
        """Values of the basis functions, computed again only if this thread's last call was for other rows."""
        last = getattr(self._last, "basis", None)
        values: np.ndarray
        if last is not None and last[0] is rows and last[1] == part:
            values = last[2]
            return values
        self._last.basis = last = None  # free it first, so that there are never two
        values = self.features.basis(_rows(self.X, rows, part))
        self._last.basis = rows, part, values
        return values

    def coefficients(self, w: np.ndarray) -> np.ndarray:
        """The coefficients of the basis functions for weights w, computed again only if w has changed."""
        last = getattr(self._last, "coefficients", None)
        if last is None or not np.array_equal(last[0], w):
            last = self._last.coefficients = w.copy(), self.features.coefficients(w)
        return last[1]


class _ComputedProducts:
    """Products with features that are computed again for each product."""

    def __init__(self, design: ComputedDesign, rows: np.ndarray | None):
        self.design = design
        self.rows = rows

    def scores(self, start: int, stop: int, w: np.ndarray, v_range: np.ndarray) -> None:
        coefficients = self.design.coefficients(w)
        for part in self.design.chunks(start, stop):
            v_range[part.start - start : part.stop - start] = self.design.basis(self.rows, part) @ coefficients

    def accumulate(self, start: int, stop: int, u_range: np.ndarray, total: np.ndarray) -> None:
        sums = np.zeros(self.design.features.n_functions)
        for part in self.design.chunks(start, stop):
            u = u_range[part.start - start : part.stop - start]
            if u.any():
                sums += u @ self.design.basis(self.rows, part)
        total += self.design.features.gathered(sums)


def feature_design(
    X: Features,
    features: FeatureMap,
    *,
    memory: float = np.inf,
    dtype: DTypeLike = np.float32,
    n_threads: int = 1,
    hessian: bool = True,
) -> DesignMatrix:
    """The design matrix whose rows are features of the rows of X.

    All features are kept if they fit, otherwise they are computed at every pass. They are computed in float64; features
    that are kept are rounded to ``dtype``.

    Parameters
    ----------
    X : ndarray or CSR matrix of floats, shape (n_rows, n_features_in)
        Documents.
    features : FeatureMap
        The features of a document.
    memory : float
        Bytes that may be allocated, here and by solvers.
    dtype : {numpy.float32, numpy.float64}
        Type in which they are kept.
    n_threads : int
        Number of threads.
    hessian : bool
        Whether the solver may build explicit Hessians, if there are not too many features for one.

    Returns
    -------
    DenseDesign or ComputedDesign
        The design matrix, with stored or with recomputed features.

    Raises
    ------
    OptionError
        When ``memory`` is too small even if no features are stored.
    """
    n_rows, n_features = X.shape[0], features.n_features
    others = _other_bytes(n_rows, n_features, n_threads, hessian and n_features <= MAX_VARIABLES)
    # chunks are freed before a solver begins, if all features are kept
    kept_bytes = n_rows * n_features * np.dtype(dtype).itemsize + max(others, n_threads * COPIES * CHUNK_BYTES)
    if kept_bytes > memory:
        chunk_row = n_threads * COPIES * 8 * max(1, features.n_functions)
        needed = others + MIN_ROWS * chunk_row
        if needed > memory:
            raise OptionError(
                f"A model of {n_features:,} features of {n_rows:,} rows needs at least {needed / 1e6:,.1f} MB of "
                f"memory even where none of them is kept, and {memory / 1e6:,.1f} MB are left for it (all of them take "
                f"{kept_bytes / 1e6:,.1f} MB): raise memory_limit, or take a smaller n_components."
            )
        return ComputedDesign(X, features, min(_chunk_rows(features), int((memory - others) / chunk_row)))
    kept = np.empty((n_rows, features.n_features), dtype=dtype)
    size = _chunk_rows(features)

    def fill(start: int) -> None:
        kept[start : start + size] = features.transform(X[start : start + size])

    with one_blas_thread():
        parallel_map(fill, range(0, n_rows, size), n_threads)
    return DenseDesign(kept)


def _other_bytes(n_rows: int, n_features: int, n_threads: int, hessian: bool) -> int:
    """Memory of a solver, maybe with its Hessian, in addition to features."""
    blocks = BLOCKS * n_threads * min(HESSIAN_ROWS, n_rows) * n_features
    squares = SQUARES * n_features**2 if hessian else 0
    return 8 * (VECTORS * (n_rows + n_features) + blocks + squares)


def _chunk_rows(features: FeatureMap) -> int:
    return max(1, CHUNK_BYTES // (8 * max(1, features.n_functions)))


def _rows(X: Features, rows: np.ndarray | None, part: slice) -> Features:
    found: Features = X[part] if rows is None else X[rows[part]]
    return found
