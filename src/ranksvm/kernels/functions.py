"""Mercer kernels: similarities of documents, computed block by block in float64."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import ranksvm._compiled.kernel as compiled
from ranksvm._compiled.linear import all_finite
from ranksvm._util.checks import is_sparse
from ranksvm._util.sparse_format import without_duplicates
from ranksvm._util.types import Features
from ranksvm.exceptions import DataError

__all__ = ["KERNELS", "Documents", "Kernel", "KernelValues", "kernel_named", "refuse_infinite"]

# Sparse documents are converted to dense ones, tile by tile, if they store a larger share of their values than this.
# Measured with 46 to 1,000 features: sparse products are faster up to shares of 0.05 to 0.1, and so are sparse
# distances |x - z|_1.
DENSE_SHARE = 0.07
# Number of rows whose diagonal values are computed at a time.
DIAGONAL_ROWS = 1024
# Number of rows whose diagonal values are computed by one call of a callable.
CALLABLE_ROWS = 64
# Number of rows of values that are raised to a power at a time: the copy of their bases then stays in cache.
POWER_ROWS = 8
# A squared distance that is computed from products has an error of up to about DISTANCE_ROUND_OFF times the squared
# norms. If this error changes an exponent of rbf by more than EXPONENT_ROUND_OFF, the distance is recomputed from
# differences of rows, unless the exponent is above EXPONENT: then the value is negligible.
DISTANCE_ROUND_OFF = 1e-15
EXPONENT_ROUND_OFF = 1e-11
EXPONENT = 40.0
# Number of differences that are in memory at a time.
DIFFERENCES = 1 << 16


@dataclass(frozen=True)
class Documents:
    """Documents in the form from which kernel values are computed.

    Parameters
    ----------
    rows : ndarray or CSR matrix of float64, shape (n_rows, n_features)
        The features as the kernel needs them: centered, or scaled to unit norm.
    squares : ndarray of float64, shape (n_rows,)
        Squared norms of these rows.
    """

    rows: Any  # `Features`; the rows of both arguments of a kernel are dense, or both are sparse
    squares: np.ndarray

    def __getitem__(self, part: slice) -> "Documents":
        return Documents(self.rows[part], self.squares[part])

    def __len__(self) -> int:
        return len(self.squares)


def _products(X: Documents, Z: Documents, out: np.ndarray) -> None:
    """``out = <x, z>``."""
    if isinstance(X.rows, np.ndarray):
        np.dot(X.rows, Z.rows.T, out=out)
    else:
        (X.rows @ Z.rows.T).toarray(out=out)


def _rbf(X: Documents, Z: Documents, out: np.ndarray, gamma: float) -> None:
    _products(X, Z, out)
    out *= -2.0
    out += X.squares[:, np.newaxis]
    out += Z.squares
    np.abs(out, out=out)  # round-off may make it negative; np.maximum takes four times as long and is no more accurate
    _mend_near(X, Z, out, gamma)
    out *= -gamma
    np.exp(out, out=out)


def _mend_near(X: Documents, Z: Documents, distances: np.ndarray, gamma: float) -> None:
    """Recompute the squared distances of close documents, which products give inaccurately; equal documents get 0."""
    round_off = DISTANCE_ROUND_OFF * gamma
    largest = X.squares.max(initial=0.0) + Z.squares.max(initial=0.0)
    if round_off * largest <= EXPONENT_ROUND_OFF:
        return
    off = round_off * (X.squares[:, np.newaxis] + Z.squares)
    near = (off > EXPONENT_ROUND_OFF) & (gamma * distances < EXPONENT + off)
    first, second = np.nonzero(near)
    entries = X.rows.shape[1] if isinstance(X.rows, np.ndarray) else X.rows.nnz // max(1, len(X))
    size = max(1, DIFFERENCES // max(1, entries))
    for start in range(0, len(first), size):
        i, j = first[start : start + size], second[start : start + size]
        distances[i, j] = _squared_norms(X.rows[i] - Z.rows[j])


def _laplacian(X: Documents, Z: Documents, out: np.ndarray, gamma: float) -> None:
    if not isinstance(X.rows, np.ndarray):
        # the indices of both matrices must have the same type
        places = np.result_type(*(part for rows in (X.rows, Z.rows) for part in (rows.indices, rows.indptr)))
        parts = (
            (rows.data, rows.indices.astype(places, copy=False), rows.indptr.astype(places, copy=False))
            for rows in (X.rows, Z.rows)
        )
        compiled.sparse_distances(*(part for three in parts for part in three), X.rows.shape[1], out)
    else:
        compiled.dense_distances(X.rows, Z.rows, out)
    out *= -gamma
    np.exp(out, out=out)


def _poly(X: Documents, Z: Documents, out: np.ndarray, gamma: float, degree: float, coef0: float) -> None:
    _products(X, Z, out)
    out *= gamma
    out += coef0
    if degree < 1 or degree != int(degree):
        np.power(out, degree, out=out)
        return
    # by repeated squaring, because NumPy's power of a negative number takes thirty times as long
    for start in range(0, len(out), POWER_ROWS):
        values = out[start : start + POWER_ROWS]
        base = values.copy()
        for bit in f"{int(degree):b}"[1:]:
            values *= values
            if bit == "1":
                values *= base


# Name -> (function that computes it, its parameters).
_FUNCTIONS: dict[str, tuple[Callable[..., None], tuple[str, ...]]] = {
    "rbf": (_rbf, ("gamma",)),
    "poly": (_poly, ("gamma", "degree", "coef0")),
    "linear": (_products, ()),
    "laplacian": (_laplacian, ("gamma",)),
    "cosine": (_products, ()),
}
KERNELS = tuple(_FUNCTIONS)
# Kernels that depend only on the difference of two documents.
_TRANSLATION_INVARIANT = ("rbf", "laplacian")


@dataclass(frozen=True)
class Kernel:
    """A kernel ``k(x, z)``, with its parameters.

    ``rbf``: ``exp(-gamma |x - z|^2)``; ``laplacian``: ``exp(-gamma |x - z|_1)``; ``poly``: ``(gamma <x, z> +
    coef0)^degree``; ``linear``: ``<x, z>``; ``cosine``: ``<x, z> / (|x| |z|)``; or the values of a callable.

    Parameters
    ----------
    name : str
        One of `KERNELS`, or "callable".
    function : callable
        The callable, ``(X, Z)`` -> array of shape (n_X, n_Z); for the kernels of `KERNELS`, the function that computes
        a block of `Documents`.
    parameters : dict
        Parameters of the function.
    """

    name: str
    function: Callable[..., Any]
    parameters: dict[str, float] = field(default_factory=dict)

    @property
    def may_be_indefinite(self) -> bool:
        """Whether the kernel is not known to be positive semi-definite.

        True for a callable, and for a polynomial kernel with a negative parameter or a degree that is not an integer.
        """
        if self.name != "poly":
            return self.name == "callable"
        degree = self.parameters["degree"]
        return min(self.parameters.values()) < 0.0 or degree != int(degree)

    def center(self, X: Features) -> np.ndarray | None:
        """The mean of the documents, to be subtracted for accuracy: products then give distances with more digits.

        Parameters
        ----------
        X : ndarray or CSR matrix, shape (n_rows, n_features)
            Documents.

        Returns
        -------
        ndarray of float64, shape (n_features,), or None
            Their mean; None for sparse documents, and for the other kernels. (The distances of ``laplacian`` are sums
            of differences, to which the subtraction would add its own round-off.)
        """
        if self.name != "rbf" or not isinstance(X, np.ndarray) or not len(X):
            return None
        return np.asarray(np.mean(X, axis=0, dtype=np.float64))

    def documents(self, X: Features, center: np.ndarray | None = None) -> Documents:
        """Documents prepared for `values`.

        Parameters
        ----------
        X : ndarray or CSR matrix of float32 or float64, shape (n_rows, n_features)
            Documents.
        center : ndarray of float64, shape (n_features,), optional
            The `center` of the documents with which they are compared.

        Returns
        -------
        Documents
            The same, in float64.
        """
        rows = _in_float64(X if center is None else X - center)
        if self.name == "cosine":
            rows = _with_unit_norm(rows)
        return Documents(rows, _squared_norms(rows))

    def values(self, X: Documents, Z: Documents, out: np.ndarray) -> None:
        """Write the values of the kernel for every document of X with every document of Z to an array.

        Parameters
        ----------
        X, Z : Documents
            Results of `documents`, with the same center.
        out : C-contiguous ndarray of float64, shape (n_X, n_Z)
            Receives the values.

        Raises
        ------
        DataError
            When a callable does not return such an array, or values are not finite.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            if self.name == "callable":
                out[...] = self._called(X, Z)
            else:
                self.function(X, Z, out, **self.parameters)
        refuse_infinite(self.name, out)

    def block(self, X: Features, Z: Features) -> np.ndarray:
        """Values for every row of X with every row of Z.

        Distances are computed in float64, from differences or from centered rows, so that an offset costs no digits.

        Parameters
        ----------
        X, Z : ndarray or CSR matrix of float32 or float64, shapes (n_X, n_features) and (n_Z, n_features)
            Documents.

        Returns
        -------
        ndarray of float64, shape (n_X, n_Z)
            The values.

        Raises
        ------
        DataError
            When a callable does not return such an array, or values are not finite.
        """
        center = self.center(Z)
        out = np.empty((X.shape[0], Z.shape[0]))
        self.values(self.documents(X, center), self.documents(Z, center), out)
        return out

    def value_error(self, n_features: int, largest_square: float, sparse: bool) -> float:
        """Bound on the round-off of a value; 0 for a callable, whose values define the kernel.

        Parameters
        ----------
        n_features : int
            Number of features of a document.
        largest_square : float
            Largest squared norm of a document, in the form of `documents`.
        sparse : bool
            Whether the values are computed from sparse rows.

        Returns
        -------
        float
            The bound.
        """
        unit = 0.5 * (n_features + 10) * float(np.finfo(np.float64).eps)
        if self.name == "callable":
            return 0.0
        if self.name == "cosine":
            return 4.0 * unit
        if self.name == "poly":
            gamma, degree, coef0 = (self.parameters[name] for name in ("gamma", "degree", "coef0"))
            return 2.0 * (abs(degree) + 1.0) * unit * (gamma * largest_square + abs(coef0)) ** degree
        if self.name == "linear":
            return 2.0 * unit * largest_square
        gamma = self.parameters["gamma"]
        if self.name == "laplacian":
            # A sum of differences of dense rows has an error relative to itself, and t exp(-t) < 1. From sparse rows it
            # is |x|_1 plus a change for each entry of z, and |x|_1 <= (n |x|^2)^1/2.
            return unit * (1.0 + (4.0 * gamma * float(np.sqrt(n_features * largest_square)) if sparse else 0.0))
        # where products would lose more than this, distances are recomputed from differences of rows
        products = 4.0 * max(DISTANCE_ROUND_OFF, unit) * gamma * largest_square
        differences = 2.0 * EXPONENT_ROUND_OFF + 4.0 * unit * float(np.sqrt(EXPONENT * gamma * largest_square))
        # t exp(-t) < 1
        return min(products, differences) + 2.0 * unit

    def diagonal(self, X: Features) -> np.ndarray:
        """Value for every row of X with itself.

        Parameters
        ----------
        X : ndarray or CSR matrix of float32 or float64, shape (n_rows, n_features)
            Documents.

        Returns
        -------
        ndarray of float64, shape (n_rows,)
            The values.

        Raises
        ------
        DataError
            When a callable does not return an array of the right shape, or values are not finite.
        """
        if self.name in _TRANSLATION_INVARIANT:
            return np.ones(X.shape[0])
        if self.name == "callable":
            starts = range(0, X.shape[0], CALLABLE_ROWS)
            blocks = [X[start : start + CALLABLE_ROWS] for start in starts]
            return np.concatenate([np.diagonal(self.block(block, block)) for block in blocks])
        if self.name == "cosine":
            return (_largest(_in_float64(X)) > 0.0).astype(np.float64)
        values = _squared_norms(_in_float64(X))
        if self.name == "poly":
            parameters = self.parameters
            with np.errstate(over="ignore", invalid="ignore"):
                values = (parameters["gamma"] * values + parameters["coef0"]) ** parameters["degree"]
        refuse_infinite(self.name, values)
        return values

    def _called(self, X: Documents, Z: Documents) -> np.ndarray:
        values = self.function(X.rows, Z.rows, **self.parameters)
        shape = len(X), len(Z)
        try:
            # the callable may return a sparse matrix, such as a product of sparse documents
            values = np.asarray(values.toarray() if is_sparse(values) else values, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise DataError(
                f"The kernel of {shape[0]} by {shape[1]} rows must return an array of numbers, got "
                f"{type(values).__name__}: {error}"
            ) from error
        if values.shape != shape:
            raise DataError(f"The kernel of {shape[0]} by {shape[1]} rows must have shape {shape}, got {values.shape}.")
        return values


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
        if not isinstance(X, np.ndarray) and (called or X.nnz <= DENSE_SHARE * X.shape[0] * X.shape[1]):
            # sparse rows and products store an index with each value, and exist twice while they are transposed or
            # added up
            self._dense, self.row_bytes = False, 32 * math.ceil(X.nnz / max(1, X.shape[0]))
        self.value_bytes = (0 if self._dense else 32) + (16 if called else 0)
        self._kernel, self._X, self._center = kernel, X, kernel.center(X)

    def ready(self, rows: slice | np.ndarray) -> Documents:
        X = self._X[rows]
        if self._dense and not isinstance(X, np.ndarray):
            X = X.toarray()
        return self._kernel.documents(X, self._center)

    def values(self, ours: Documents, rows: slice, theirs: Documents, columns: slice, out: np.ndarray) -> None:
        self._kernel.values(ours[rows], theirs[columns], out)

    def diagonal(self) -> np.ndarray:
        starts = range(0, self.n_rows, DIAGONAL_ROWS)
        parts = [self._kernel.diagonal(self._X[start : start + DIAGONAL_ROWS]) for start in starts]
        return np.concatenate(parts) if parts else np.empty(0)

    def value_error(self) -> float:
        starts = range(0, self.n_rows, DIAGONAL_ROWS)
        squares = [self.ready(slice(start, start + DIAGONAL_ROWS)).squares.max() for start in starts]
        return self._kernel.value_error(self._X.shape[1], max(squares, default=0.0), sparse=not self._dense)


def refuse_infinite(name: str, values: np.ndarray) -> None:
    """Raise a DataError when not every value of a kernel is finite.

    Parameters
    ----------
    name : str
        Name of the kernel.
    values : C-contiguous ndarray of float64
        The values.
    """
    if not all_finite(values.reshape(-1)):
        bad = values[~np.isfinite(values)][0]
        raise DataError(
            f"The kernel {name!r} is {'NaN' if np.isnan(bad) else 'infinite'} for some of the documents, and its "
            "values must be finite. Scale the features, or change the parameters of the kernel."
        )


def _in_float64(X: Features) -> Features:
    if isinstance(X, np.ndarray):
        return np.ascontiguousarray(X, dtype=np.float64)
    return without_duplicates(X.astype(np.float64, copy=False))


def _squared_norms(X: Any) -> np.ndarray:
    if isinstance(X, np.ndarray):
        return np.einsum("ij,ij->i", X, X)
    return np.asarray(X.power(2).sum(axis=1)).ravel()


def _largest(X: Any) -> np.ndarray:
    """The largest absolute value of each row; 0 for a row without values."""
    if isinstance(X, np.ndarray):
        return np.abs(X).max(axis=1, initial=0.0)
    return np.maximum.reduceat(np.append(np.abs(X.data), 0.0), X.indptr[:-1]) * (np.diff(X.indptr) > 0)


def _with_unit_norm(X: Any) -> Any:
    """Rows divided by their norms; rows of zeros stay."""
    # powers of two keep squares from overflow and underflow
    powers = np.ldexp(1.0, np.clip(-np.frexp(_largest(X))[1], -1000, 1000))
    if isinstance(X, np.ndarray):
        rows = X * powers[:, np.newaxis]
        return rows / _norms(rows)[:, np.newaxis]
    rows, counts = X.copy(), np.diff(X.indptr)
    rows.data *= np.repeat(powers, counts)
    rows.data /= np.repeat(_norms(rows), counts)
    return rows


def _norms(X: Any) -> np.ndarray:
    """Norms of the rows; 1 for a row of zeros."""
    norms = np.sqrt(_squared_norms(X))
    return np.where(norms > 0.0, norms, 1.0)


def kernel_named(
    kernel: str | Callable[..., Any], *, gamma: float = 1.0, degree: float = 3, coef0: float = 1.0
) -> Kernel:
    """The kernel with this name, or the kernel that a callable computes.

    Parameters
    ----------
    kernel : str or callable
        One of `KERNELS`, or a function of two arrays of documents, of shapes (n_X, n_features) and (n_Z, n_features),
        that returns the values, of shape (n_X, n_Z), as in scikit-learn's SVC.
    gamma, degree, coef0 : float
        Parameters, used by the kernels that have them.

    Returns
    -------
    Kernel
        The kernel.
    """
    if callable(kernel):
        return Kernel("callable", kernel)
    function, names = _FUNCTIONS[kernel]
    values = {"gamma": gamma, "degree": degree, "coef0": coef0}
    return Kernel(kernel, function, {name: values[name] for name in names})
