"""Values computed on a device: rows of a kernel matrix, features that approximate the kernel, scores of documents."""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import DTypeLike

from ranksvm._util.checks import is_sparse
from ranksvm._util.memory import in_words
from ranksvm._util.types import Features
from ranksvm.device import Device, DeviceArray, Variant
from ranksvm.device.launcher import LANES, TILE, TILE_SHARED, Launcher, as_int32
from ranksvm.device.protocol import Argument
from ranksvm.exceptions import DeviceMemoryError, OptionError
from ranksvm.kernels.expansions import Basis, Expansion, KernelsOf, LinearFunction, ScoringFunction
from ranksvm.kernels.features import FeatureMap, FourierFeatures, NystroemFeatures
from ranksvm.kernels.functions import Kernel, KernelValues

__all__ = ["BlockSource", "DocumentValues", "GivenValues", "basis_on", "features_on", "kernel_launcher", "scores_on"]

# Values of `Function::kind` in documents.hpp: the function that is applied to a sum over the features. For kernels that
# are not listed it is 0, the identity.
KINDS = {"rbf": 1, "laplacian": 2, "poly": 3, "cos": 4, "sin": 5}
# Number of bytes of documents, and of values of basis functions, that are on the device at once while it computes
# features.
CHUNK_BYTES = 256 << 20

# A function that computes values on the device from documents on the host, and writes them to the array document by
# document.
Make = Callable[[Features, DeviceArray], None]


def kernel_launcher(device: Device, dtype: DTypeLike) -> Launcher:
    """The device's programs (GPU kernels) that compute and multiply values of a type, such as kernel values.

    Parameters
    ----------
    device : Device
        The device.
    dtype : dtype
        float32 or float64.

    Returns
    -------
    Launcher
        The kernels.
    """
    return Launcher(device, Variant(False, False, "float" if dtype == np.float32 else "double"))


class _Function:
    """The function that is applied to a sum over the features of two documents.

    Examples are the exponential of the RBF kernel, and the cosine or sine of Fourier features.
    """

    def __init__(self, kind: str, factor: float = 1.0, constant: float = 0.0, degree: float = 1):
        self.arguments: tuple[Argument, ...] = KINDS.get(kind, 0), float(factor), float(constant), int(degree)

    @classmethod
    def of(cls, kernel: Kernel) -> "_Function":
        """The function of a kernel."""
        values = kernel.parameters
        return cls(kernel.name, values.get("gamma", 1.0), values.get("coef0", 0.0), values.get("degree", 1))


class _DeviceDocuments:
    """Documents on a device, as their kernel prepares them.

    Dense documents are stored feature by feature, and sparse documents in CSR.
    """

    def __init__(self, device: Device, rows: Any):
        self.n_rows, self.n_features = rows.shape
        self.sparse = is_sparse(rows)
        if self.sparse:
            if not rows.has_sorted_indices:
                rows = rows.sorted_indices()
            columns, begin = as_int32(rows.indices), rows.indptr.astype(np.int64, copy=False)
            parts: tuple[np.ndarray, ...] = rows.data, columns, begin
        else:
            parts = (np.ascontiguousarray(rows.T),)
        self.arrays = tuple(device.copy_in(part) for part in parts)


def _make(
    run: Launcher,
    X: _DeviceDocuments,
    rows: DeviceArray | None,
    start: int,
    stop: int,
    Z: _DeviceDocuments,
    function: _Function,
    out: DeviceArray,
    strides: tuple[int, int],
) -> None:
    """Compute the function for each document ``rows[start:stop]`` of X with each document of Z."""
    span = rows, start, stop
    if X.sparse:
        arguments: tuple[Argument, ...] = *X.arrays, *span, *Z.arrays, Z.n_rows, *function.arguments, *strides, out
        run("sparse_pair_values", *arguments, work=(stop - start) * Z.n_rows)
        return
    arguments = *X.arrays, X.n_rows, *span, *Z.arrays, Z.n_rows, X.n_features, *function.arguments, *strides, out
    work = run.n_threads * -(-(stop - start) // TILE) * -(-Z.n_rows // TILE)
    run("pair_values", *arguments, work=work, shared=TILE_SHARED)


class BlockSource(Protocol):
    """Source of rows of a kernel matrix on a device."""

    def fill(self, start: int, stop: int, out: DeviceArray) -> None:
        """Write the rows ``start`` to ``stop - 1`` to ``out``, row by row."""

    def rows(self, positions: np.ndarray, out: DeviceArray) -> None:
        """Write the rows of these positions to ``out``."""


class DocumentValues:
    """Rows of a kernel matrix, computed on the device from documents that it stores: see `BlockSource` for the methods.

    Parameters
    ----------
    run : Launcher
        The device.
    kernel : Kernel
        The kernel.
    source : KernelValues
        The documents on the host.
    """

    def __init__(self, run: Launcher, kernel: Kernel, source: KernelValues):
        self._run = run
        self._function = _Function.of(kernel)
        self._documents = _DeviceDocuments(run.device, source.ready(slice(None)).rows)

    def fill(self, start: int, stop: int, out: DeviceArray) -> None:
        documents = self._documents
        _make(self._run, documents, None, start, stop, documents, self._function, out, (documents.n_rows, 1))

    def rows(self, positions: np.ndarray, out: DeviceArray) -> None:
        documents, chosen = self._documents, self._run.copy_in(positions.astype(np.int32))
        _make(self._run, documents, chosen, 0, len(positions), documents, self._function, out, (documents.n_rows, 1))


class GivenValues:
    """Rows of a matrix that the user has computed, copied to the device: see `BlockSource` for the methods.

    Parameters
    ----------
    run : Launcher
        The device.
    K : ndarray, shape (n_samples, n_samples)
        The matrix, on the host.
    rows : ndarray of int64, shape (n_rows,)
        The selected documents.
    dtype : dtype
        Type of the copy.
    """

    def __init__(self, run: Launcher, K: np.ndarray, rows: np.ndarray, dtype: np.dtype):
        self._run, self._K, self._rows, self._dtype = run, K, rows, dtype

    def fill(self, start: int, stop: int, out: DeviceArray) -> None:
        self.rows(np.arange(start, stop), out)

    def rows(self, positions: np.ndarray, out: DeviceArray) -> None:
        n = len(self._rows)
        step = max(1, CHUNK_BYTES // (self._K.itemsize * max(1, n)))
        for first in range(0, len(positions), step):
            part = positions[first : first + step]
            values = self._K[self._rows[part][:, np.newaxis], self._rows].astype(self._dtype, copy=False)
            self._run.device.copy_in(values.ravel(), out.part(first * n, (first + len(part)) * n))


def features_on(run: Launcher, features: FeatureMap, X: Features) -> DeviceArray:
    """Compute features of documents on a device, and store the features there.

    Parameters
    ----------
    run : Launcher
        The device, and the type of the features.
    features : NystroemFeatures or FourierFeatures
        The features.
    X : ndarray or CSR matrix of floats, shape (n_rows, n_features_in)
        The documents, on the host.

    Returns
    -------
    DeviceArray, shape (n_rows, features.n_features)
        The features.

    Raises
    ------
    DeviceMemoryError
        When they do not fit.
    """
    n_rows, n_features = X.shape[0], features.n_features
    dtype = np.dtype(np.float32 if run.variant.real == "float" else np.float64)
    size, free = n_rows * n_features * dtype.itemsize, run.device.free_bytes
    if size > free:
        raise DeviceMemoryError(
            f"The {n_features:,} features of {n_rows:,} rows take {in_words(size)}, and {in_words(free)} are free on "
            f"{run.device.name}. Use fewer n_components, or device='cpu', which computes them again if memory is "
            "short."
        )
    out = run.device.empty((n_rows, n_features), dtype)
    make = _nystroem(run, features) if isinstance(features, NystroemFeatures) else _fourier(run, features)
    step = max(1, CHUNK_BYTES // (8 * (X.shape[1] + features.n_functions)))
    for start in range(0, n_rows, step):
        stop = min(start + step, n_rows)
        make(X[start:stop], out.part(start * n_features, stop * n_features))
    return out


def basis_on(run: Launcher, functions: Basis) -> Make:
    """A function that computes the values of basis functions of documents on a device.

    Parameters
    ----------
    run : Launcher
        The device, with kernels for float64.
    functions : KernelsOf or FourierFeatures
        The functions.

    Returns
    -------
    callable
        Called with documents and a DeviceArray, which takes the values document by document.
    """
    if isinstance(functions, FourierFeatures):
        return _fourier(run, functions)
    assert isinstance(functions, KernelsOf)
    function, centers = _Function.of(functions.kernel), _DeviceDocuments(run.device, functions.documents.rows)

    def make(X: Features, out: DeviceArray) -> None:
        documents = _DeviceDocuments(run.device, functions.prepared(X).rows)
        _make(run, documents, None, 0, documents.n_rows, centers, function, out, (functions.n_functions, 1))

    return make


def _nystroem(run: Launcher, features: NystroemFeatures) -> Make:
    """A function that computes Nystroem features: kernel values with the landmarks, in float64, times the weights."""
    kernel, Z = features.kernel, features.landmarks
    center, function, exact = kernel.center(Z), _Function.of(kernel), kernel_launcher(run.device, np.float64)
    landmarks = _DeviceDocuments(run.device, kernel.documents(Z, center).rows)
    # dense documents are stored transposed, so W' is passed to store W
    weights = _DeviceDocuments(run.device, features.weights.T)

    def make(X: Features, out: DeviceArray) -> None:
        n = X.shape[0]
        documents = _DeviceDocuments(run.device, kernel.documents(X, center).rows)
        basis = exact.scratch("basis", n * features.n_functions)
        _make(exact, documents, None, 0, n, landmarks, function, basis, (1, n))
        by_features = _DeviceValues(n, features.n_functions, (basis,))
        _make(run, by_features, None, 0, n, weights, _Function("sum"), out, (features.n_features, 1))

    return make


def _fourier(run: Launcher, features: FeatureMap) -> Make:
    """A function that computes Fourier features: cosines and sines of the products with the frequencies."""
    assert isinstance(features, FourierFeatures)
    n_frequencies = len(features.frequencies)
    factor = 1.0 / np.sqrt(n_frequencies)
    known: dict[bool, _DeviceDocuments] = {}

    def make(X: Features, out: DeviceArray) -> None:
        documents = _DeviceDocuments(run.device, _plain_rows(X))
        if documents.sparse not in known:
            known[documents.sparse] = _DeviceDocuments(run.device, _like(X, features.frequencies))
        for place, kind in enumerate(("cos", "sin")):
            target = out.part(place * n_frequencies, out.size)
            strides = features.n_features, 1
            function = _Function(kind, factor)
            _make(run, documents, None, 0, documents.n_rows, known[documents.sparse], function, target, strides)

    return make


class _DeviceValues(_DeviceDocuments):
    """Values, feature by feature, that are already on a device."""

    def __init__(self, n_rows: int, n_features: int, arrays: tuple[DeviceArray, ...]):
        self.n_rows, self.n_features, self.arrays, self.sparse = n_rows, n_features, arrays, False


def _plain_rows(X: Features) -> Features:
    """Documents in float64, without duplicate entries if they are sparse."""
    if not is_sparse(X):
        return np.asarray(X, dtype=np.float64)
    from ranksvm._util.sparse_format import without_duplicates

    return without_duplicates(X.astype(np.float64, copy=False))


def _like(X: Features, values: np.ndarray) -> Features:
    """Values in the format of X: dense, or a CSR matrix that stores all of them."""
    if not is_sparse(X):
        return values
    from scipy import sparse

    n_rows, n_columns = values.shape
    places = np.tile(np.arange(n_columns, dtype=np.int32), n_rows)
    return sparse.csr_array((values.ravel(), places, n_columns * np.arange(n_rows + 1)), shape=values.shape)


def scores_on(device: Device, function: ScoringFunction, X: Features) -> np.ndarray:
    """Scores of documents under a linear function or an expansion in kernels.

    Parameters
    ----------
    device : Device
        The device.
    function : LinearFunction or Expansion
        The function.
    X : ndarray or CSR matrix of floats, shape (n_rows, n_features)
        The documents, on the host.

    Returns
    -------
    ndarray of float64, shape (n_rows,)
        The scores, summed in float64, on the host.

    Raises
    ------
    OptionError
        When the kernel is a Python function.
    DeviceError
        When not even a block of documents fits into the device's memory.
    """
    if isinstance(function, LinearFunction):
        return _linear(device, function.coef, X)
    assert isinstance(function, Expansion)
    if not getattr(function.functions, "parallel", True):
        raise OptionError("A GPU cannot evaluate a kernel that is a Python function: use device='cpu'.")
    return _expanded(device, function, X)


def _linear(device: Device, w: np.ndarray, X: Features) -> np.ndarray:
    """``X w``."""
    run = Launcher(device, Variant(False, is_sparse(X), "float" if X.dtype == np.float32 else "double"))
    scores, weights = np.empty(X.shape[0]), run.copy_in(w)
    n_bytes = X.data.nbytes + X.indices.nbytes if is_sparse(X) else X.nbytes
    for start, stop in _blocks(X.shape[0], n_bytes // max(1, X.shape[0])):
        part, n = X[start:stop], stop - start
        if is_sparse(part):
            columns, begin = as_int32(part.indices), part.indptr.astype(np.int64, copy=False)
            rows: tuple[Argument, ...] = *(run.copy_in(values) for values in (part.data, columns, begin)), None, len(w)
        else:
            rows = run.copy_in(part), None, len(w), 0
        out = run.scratch("scores", n)
        run("scores", *rows, 0, n, weights, out, work=LANES * n)
        scores[start:stop] = device.copy_out(out.part(0, n))
    return scores


def _expanded(device: Device, function: Expansion, X: Features) -> np.ndarray:
    """Scores under an expansion: for each document, the values of its functions times their coefficients."""
    n_functions = function.functions.n_functions
    scores = np.zeros(X.shape[0])
    if n_functions == 0:
        return scores
    run = kernel_launcher(device, np.float64)
    make, coef = basis_on(run, function.functions), run.copy_in(function.coef)
    for start, stop in _blocks(X.shape[0], 8 * n_functions):
        n = stop - start
        values, out = run.scratch("values", n * n_functions), run.scratch("scores", n)
        make(X[start:stop], values)
        run("scores", values, None, n_functions, 0, 0, n, coef, out, work=LANES * n)
        scores[start:stop] = device.copy_out(out.part(0, n))
    return scores


def _blocks(n_rows: int, row_bytes: int) -> list[tuple[int, int]]:
    """Ranges of rows; the rows of one range are on the device at the same time."""
    step = max(1, CHUNK_BYTES // max(1, row_bytes))
    return [(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]
