"""Cholesky factors of matrices on a device."""

import numpy as np

from ranksvm.device.launcher import LANES, TILE, TILE_SHARED, Launcher
from ranksvm.device.protocol import DeviceArray

__all__ = ["CholeskyFactor", "cholesky"]


class CholeskyFactor:
    """The factor L of a matrix ``L L'`` on a device.

    Parameters
    ----------
    run : Launcher
        The device.
    factor : DeviceArray of float32 or float64, shape (n, n)
        L on and below the diagonal; the values above it are arbitrary.
    inverses : DeviceArray of float64
        The inverses of the blocks of L on the diagonal.
    """

    def __init__(self, run: Launcher, factor: DeviceArray, inverses: DeviceArray):
        self._run = run
        self._factor = factor
        self._inverses = inverses
        self._b, self._y = (run.device.empty((factor.shape[0],), np.float64) for _ in range(2))

    def solve(self, b: np.ndarray) -> np.ndarray:
        """The solution of a system of equations.

        Parameters
        ----------
        b : ndarray of float64, shape (n,)
            The right-hand side.

        Returns
        -------
        ndarray of float64, shape (n,)
            x with ``L L' x = b``.
        """
        run, n = self._run, len(b)
        run.device.copy_in(np.ascontiguousarray(b), self._b)
        for first in range(0, n, TILE):
            arguments = self._factor, n, first, _inverse(self._inverses, first), self._b, self._y
            run("solve_forward", *arguments, work=LANES * (n - first - TILE), shared=TILE)
        for first in reversed(range(0, n, TILE)):
            arguments = self._factor, n, first, _inverse(self._inverses, first), self._y, self._b
            run("solve_backward", *arguments, work=first, shared=TILE)
        return run.device.copy_out(self._b)


def cholesky(run: Launcher, matrix: DeviceArray) -> CholeskyFactor | None:
    """Overwrite the lower triangle of a symmetric matrix with its Cholesky factor.

    In each step, one block of threads factorizes the next `TILE` x `TILE` block on the diagonal and inverts its factor.
    The columns of the matrix below that block, multiplied by the transposed inverse, become columns of the factor. The
    product of these columns with their own transpose is then subtracted from the rest of the matrix.

    Parameters
    ----------
    run : Launcher
        The device, with the kernels for the type of the matrix.
    matrix : DeviceArray of float32 or float64, shape (n, n)
        The matrix; values above its diagonal are neither read nor written.

    Returns
    -------
    CholeskyFactor or None
        The factor; None if the matrix is not positive definite, in which case its contents are lost.

    Raises
    ------
    DeviceMemoryError
        When the device has no memory for the arrays that the factorization needs.
    """
    n, device = matrix.shape[0], run.device
    n_blocks = -(-n // TILE)
    inverses, positive = (device.empty((n_blocks * size,), np.float64) for size in (TILE * TILE, 1))
    panel = device.empty((TILE * n,), matrix.dtype)
    for block, first in enumerate(range(0, n, TILE)):
        inverse, pivots = _inverse(inverses, first), positive.part(block, block + 1)
        run("factorize_block", matrix, n, first, inverse, pivots, shared=TILE * (TILE + 1))
        if below := n_blocks - block - 1:
            arguments = matrix, n, first, inverse, panel
            run("divide_panel", *arguments, work=run.n_threads * below, shared=TILE_SHARED)
            work = run.n_threads * (below * (below + 1) // 2)
            run("update_rest", panel, n, first, matrix, work=work, shared=TILE_SHARED)
    return CholeskyFactor(run, matrix, inverses) if device.copy_out(positive).all() else None


def _inverse(inverses: DeviceArray, first: int) -> DeviceArray:
    """The inverse of the diagonal block that begins at row ``first``."""
    return inverses.part(TILE * first, TILE * first + TILE * TILE)
