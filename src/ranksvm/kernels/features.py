"""Feature maps: they convert documents to a few features, whose inner products approximate the kernel."""

from typing import Protocol

import numpy as np

from ranksvm._util.checks import is_sparse
from ranksvm._util.types import Features, RandomState
from ranksvm.exceptions import DataError, OptionError
from ranksvm.kernels.functions import Kernel

__all__ = ["FOURIER_KERNELS", "FeatureMap", "FourierFeatures", "NystroemFeatures", "whitening"]

# Kernels for which random Fourier features are implemented.
FOURIER_KERNELS = ("rbf", "laplacian")
# An eigenvalue below minus this fraction of the largest is not due to round-off, even if the kernel is computed in
# float32.
INDEFINITE = 1e-5


class FeatureMap(Protocol):
    """Features that are fixed linear combinations of basis functions: ``phi(x) = basis(x) W``.

    A linear model w of the features is a linear model of the basis functions, with coefficients ``W w``: prediction,
    and products with features that are not stored, compute only the basis functions.
    """

    n_features: int
    n_functions: int

    def basis(self, X: Features) -> np.ndarray:
        """Values of the basis functions, float64, shape (n_rows, n_functions)."""

    def transform(self, X: Features) -> np.ndarray:
        """The features, float64, shape (n_rows, n_features)."""

    def coefficients(self, w: np.ndarray) -> np.ndarray:
        """``W w``: coefficients of the basis functions, float64, shape (n_functions,)."""

    def gathered(self, sums: np.ndarray) -> np.ndarray:
        """``W' sums``: converts sums over basis functions to sums over features, float64, shape (n_features,)."""

    def largest(self, X: Features) -> np.ndarray:
        """For each feature, a bound on the sum of its absolute terms (basis function times weight): float64."""


class NystroemFeatures:
    """Values of orthonormal functions that span the kernels of landmarks: ``phi(x) = k(x, Z) W``.

    ``<phi(x), phi(x')> = k(x, Z) Q_ZZ^+ k(Z, x')`` is the kernel if x or x' is in the span of the landmarks, and a
    linear model w is the kernel expansion ``sum_j c_j k(x, z_j)`` with ``c = W w``, which has the RKHS norm ``|w|``.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    landmarks : ndarray or CSR matrix of floats, shape (n_landmarks, n_features_in)
        Z: documents, which should be distinct.

    Attributes
    ----------
    weights : ndarray of float64, shape (n_landmarks, n_features)
        W.
    n_features : int
        Number of features: the number of eigenvalues of ``Q_ZZ`` above round-off.
    n_functions : int
        Number of landmarks.

    References
    ----------
    Williams & Seeger, NeurIPS 2000.
    """

    def __init__(self, kernel: Kernel, landmarks: Features):
        self.kernel = kernel
        self.landmarks = as_float64(landmarks)
        self.weights = whitening(kernel.block(self.landmarks, self.landmarks))
        self.n_functions, self.n_features = self.weights.shape

    def basis(self, X: Features) -> np.ndarray:
        """Kernels with the landmarks.

        Parameters
        ----------
        X : ndarray or CSR matrix of floats, shape (n_rows, n_features_in)
            Documents.

        Returns
        -------
        ndarray of float64, shape (n_rows, n_functions)
            The values.
        """
        return self.kernel.block(as_float64(X), self.landmarks)

    def transform(self, X: Features) -> np.ndarray:
        """The features.

        Parameters
        ----------
        X : ndarray or CSR matrix of floats, shape (n_rows, n_features_in)
            Documents.

        Returns
        -------
        ndarray of float64, shape (n_rows, n_features)
            Their features.
        """
        return self.basis(X) @ self.weights

    def coefficients(self, w: np.ndarray) -> np.ndarray:
        """Coefficients of the landmarks' kernels.

        Parameters
        ----------
        w : ndarray of float64, shape (n_features,)
            Weights of the features.

        Returns
        -------
        ndarray of float64, shape (n_functions,)
            ``W w``.
        """
        return self.weights @ w

    def gathered(self, sums: np.ndarray) -> np.ndarray:
        """Convert sums over the landmarks' kernels to sums over the features.

        Parameters
        ----------
        sums : ndarray of float64, shape (n_functions,)
            Sums.

        Returns
        -------
        ndarray of float64, shape (n_features,)
            ``W' sums``.
        """
        return sums @ self.weights

    def largest(self, X: Features) -> np.ndarray:
        """Bounds on the features, from ``|k(x, z)|^2 <= k(x, x) k(z, z)``.

        Parameters
        ----------
        X : ndarray or CSR matrix of floats, shape (n_rows, n_features_in)
            Documents.

        Returns
        -------
        ndarray of float64, shape (n_features,)
            For each feature, a bound on the sum of its absolute terms (kernel value times weight), for every document.
        """
        own, theirs = (self.kernel.diagonal(as_float64(Z)) for Z in (self.landmarks, X))
        return np.sqrt(np.abs(own) * np.abs(theirs).max(initial=0.0)) @ np.abs(self.weights)


class FourierFeatures:
    """Random Fourier features: ``cos`` and ``sin`` of random projections, whose inner products estimate the kernel.

    ``phi(x) = m^-1/2 [cos(Omega x), sin(Omega x)]`` with m frequencies from the kernel's spectral density, so that
    ``<phi(x), phi(z)>`` is the mean of ``cos(omega'(x - z))`` and ``<phi(x), phi(x)> = 1``.

    Parameters
    ----------
    frequencies : ndarray of float64, shape (n_features / 2, n_features_in)
        Omega, as `drawn` draws it.

    Attributes
    ----------
    n_features, n_functions : int
        Number of features.

    References
    ----------
    Rahimi & Recht, NeurIPS 2007; orthogonal frequencies: Yu, Suresh, Choromanski, Holtmann-Rice & Kumar, NeurIPS 2016.
    """

    def __init__(self, frequencies: np.ndarray):
        self.frequencies = frequencies
        self.n_features = self.n_functions = 2 * len(frequencies)

    @classmethod
    def drawn(
        cls, kernel: Kernel, n_features_in: int, n_features: int, random_state: RandomState = None
    ) -> "FourierFeatures":
        """Features with random frequencies.

        The frequencies of ``rbf`` are normal with variance ``2 gamma``. They are drawn in groups of up to
        ``n_features_in``, orthogonal within a group, which lowers the variance of the estimate. The frequencies of
        ``laplacian`` are independent Cauchy variables of scale gamma.

        Parameters
        ----------
        kernel : Kernel
            The kernel.
        n_features_in : int
            Number of features of a document.
        n_features : int
            Requested number of features; one more if it is odd.
        random_state : int, numpy.random.RandomState or None
            Seed of the frequencies.

        Returns
        -------
        FourierFeatures
            The features.

        Raises
        ------
        OptionError
            When the kernel has no such features.
        """
        if kernel.name not in FOURIER_KERNELS:
            known = " and ".join(map(repr, FOURIER_KERNELS))
            raise OptionError(
                f"approximation='fourier' is for the kernels {known}, got {kernel.name!r}: use "
                "approximation='nystroem'."
            )
        from sklearn.utils import check_random_state

        random, shape = check_random_state(random_state), (-(-n_features // 2), n_features_in)
        gamma = kernel.parameters["gamma"]
        if kernel.name == "rbf":
            return cls(np.sqrt(2.0 * gamma) * _orthogonal_normal(shape, random))
        return cls(gamma * random.standard_cauchy(shape))

    def basis(self, X: Features) -> np.ndarray:
        """The features.

        Parameters
        ----------
        X : ndarray or CSR matrix of floats, shape (n_rows, n_features_in)
            Documents.

        Returns
        -------
        ndarray of float64, shape (n_rows, n_features)
            Their features.
        """
        phases = as_float64(X) @ self.frequencies.T
        features = np.empty((len(phases), self.n_features))
        half = len(self.frequencies)
        np.cos(phases, out=features[:, :half])
        np.sin(phases, out=features[:, half:])
        features *= 1.0 / np.sqrt(half)
        return features

    transform = basis

    def coefficients(self, w: np.ndarray) -> np.ndarray:
        """The weights themselves.

        Parameters
        ----------
        w : ndarray of float64, shape (n_features,)
            Weights of the features.

        Returns
        -------
        ndarray of float64, shape (n_features,)
            The same.
        """
        return w

    def gathered(self, sums: np.ndarray) -> np.ndarray:
        """The sums themselves.

        Parameters
        ----------
        sums : ndarray of float64, shape (n_features,)
            Sums.

        Returns
        -------
        ndarray of float64, shape (n_features,)
            The same.
        """
        return sums

    def largest(self, X: Features) -> np.ndarray:
        """Bounds on the features: cosines and sines, divided by the square root of the number of frequencies.

        Parameters
        ----------
        X : ndarray or CSR matrix of floats, shape (n_rows, n_features_in)
            Documents.

        Returns
        -------
        ndarray of float64, shape (n_features,)
            The same bound for every feature.
        """
        return np.full(self.n_features, 1.0 / np.sqrt(len(self.frequencies)))


def whitening(Q: np.ndarray, cut: float | None = None) -> np.ndarray:
    """W with ``W' Q W = I`` for a kernel matrix Q: ``W = U S^-1/2`` of ``Q = U S U'``, without the null space of Q.

    Eigenvalues up to ``n eps`` times the largest, where eps is the machine epsilon of Q's type, are dropped as
    round-off. The kernel values that W is multiplied by have a relative error of about eps, which ``S^-1/2`` amplifies
    to at most ``(eps / n)^1/2``. For float64 this is less than the error of rounding features to float32.

    Parameters
    ----------
    Q : ndarray of float32 or float64, shape (n, n)
        Kernel matrix of n documents.
    cut : float, optional
        Eigenvalues up to this multiple of the largest are dropped; by default ``n eps``.

    Returns
    -------
    ndarray of float64, shape (n, rank)
        W, largest eigenvalue last; one column of zeros if no eigenvalue is positive.

    Raises
    ------
    DataError
        When an eigenvalue is clearly negative: the kernel is not positive semidefinite.
    """
    values, vectors = np.linalg.eigh(Q.astype(np.float64, copy=False))
    largest = np.abs(values).max()
    if values[0] < -INDEFINITE * largest:
        raise DataError(
            f"The kernel is indefinite: the matrix of {len(Q)} documents has the eigenvalue {values[0]:.3g} (the "
            f"largest is {values[-1]:.3g}). Use a positive semidefinite kernel."
        )
    kept = values > (len(Q) * np.finfo(Q.dtype).eps if cut is None else cut) * largest
    if not kept.any():
        return np.zeros((len(Q), 1))
    return vectors[:, kept] / np.sqrt(values[kept])


def as_float64(X: Features) -> Features:
    """The rows in float64, dense or CSR; not copied if they are in float64 already.

    Parameters
    ----------
    X : ndarray or CSR matrix of floats
        Rows.

    Returns
    -------
    ndarray or CSR matrix of float64
        The same rows.
    """
    if is_sparse(X):
        return X.astype(np.float64, copy=False)
    return np.asarray(X, dtype=np.float64)


def _orthogonal_normal(shape: tuple[int, int], random: np.random.RandomState) -> np.ndarray:
    """Normal vectors, orthogonal to each other in groups of at most their dimension."""
    n_vectors, dimension = shape
    groups = []
    for start in range(0, n_vectors, dimension):
        size = min(dimension, n_vectors - start)
        directions, triangle = np.linalg.qr(random.standard_normal((dimension, size)))
        # QR fixes the signs; with the signs of the triangle, directions are uniform
        directions = (directions * np.sign(np.diagonal(triangle))).T
        lengths = np.sqrt(random.chisquare(dimension, size))
        groups.append(lengths[:, np.newaxis] * directions)
    return np.concatenate(groups)
