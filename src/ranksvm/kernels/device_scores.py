"""Scores of documents in host memory, computed on a device; the documents are copied there block by block."""

import numpy as np

from ranksvm._util.checks import is_sparse
from ranksvm._util.types import Features
from ranksvm.device import Device, Variant
from ranksvm.device.launcher import LANES, Launcher, as_int32
from ranksvm.device.protocol import Argument
from ranksvm.exceptions import OptionError
from ranksvm.kernels.device_values import CHUNK_BYTES, basis_on, kernel_launcher
from ranksvm.kernels.expansions import Expansion, LinearFunction, ScoringFunction

__all__ = ["scores_on"]


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
        When the kernel is a function of Python.
    DeviceError
        When not even a block of documents fits into the device's memory.
    """
    if isinstance(function, LinearFunction):
        return _linear(device, function.coef, X)
    assert isinstance(function, Expansion)
    if not getattr(function.functions, "parallel", True):
        raise OptionError("A GPU cannot evaluate a kernel that is a function of Python: use device='cpu'.")
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
