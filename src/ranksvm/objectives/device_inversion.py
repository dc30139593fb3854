"""Inverses of the Hessian of a kernel problem on a device (GPU) that stores the kernel matrix."""

from collections.abc import Callable

import numpy as np

from ranksvm.device import Device, DeviceArray, Variant
from ranksvm.device.cholesky import CholeskyFactor, cholesky
from ranksvm.device.launcher import TILE, TILE_SHARED, Launcher, as_int32
from ranksvm.device.protocol import Argument
from ranksvm.exceptions import DeviceMemoryError
from ranksvm.losses.protocol import QueryOperator
from ranksvm.objectives.active_pairs import ActivePairs, active_sizes, factor_type

__all__ = ["DeviceInversion"]

# An inverse for n documents takes ``CUBE n^3 + SQUARE n^2 + DOCUMENT n`` seconds. On an H100, the factors for 5,584 to
# 6,951 documents took 0.018 to 0.027 s, and the inverses 0.048 to 0.065 s (benchmarks/results/direct_gpu.md). The host
# takes 3 microseconds for each document's column of the Hessian. In addition, every TILE documents take 7 launches of
# 13 microseconds, for the factor and two solutions with it.
CUBE, SQUARE, DOCUMENT = 7e-14, 1e-10, 5e-6
# To factorize the block of a query with s documents in active pairs takes ``LIST_SQUARE s^2 + LIST_CUBE s^3`` seconds
# on one core of an AMD EPYC (0.9 s for 2,000 documents). If s is more than LONGEST, no inverse is computed.
LIST_SQUARE, LIST_CUBE, LONGEST = 3e-8, 1e-10, 2000
# A product with Q takes PRODUCT_BYTE seconds for each byte of Q on an H100, plus PRODUCT_ROW seconds for each row on
# the host. (PRODUCT_ROW is GPU_KERNEL_ROW of fits/work.py divided by the PRODUCTS there.)
PRODUCT_BYTE, PRODUCT_ROW = 5e-13, 4e-7


class DeviceInversion:
    """Inverses of Hessians on a device: see `Inversion` for the methods.

    The host computes the factors U of the blocks of the Hessian with respect to the scores. From these and Q, the
    device forms ``I + C U Q U'``, factorizes it, and solves systems with it.

    Parameters
    ----------
    device : Device
        The device.
    values : DeviceArray of float32 or float64, shape (n_rows, n_rows)
        The kernel matrix Q.
    largest : float
        Its largest value.
    """

    def __init__(self, device: Device, values: DeviceArray, largest: float):
        self._device = device
        self._values = values
        self._largest = largest

    def cost(self, degrees: np.ndarray, pointers: np.ndarray) -> float:
        sizes = active_sizes(np.flatnonzero(degrees > 0.0), pointers).astype(np.float64)
        n, squares = float(sizes.sum()), float(np.square(sizes).sum())
        needed = 8.0 * (2.0 * n**2 + squares + 3.0 * TILE * n)
        if sizes.max(initial=0.0) > LONGEST or needed > self._device.free_bytes:
            return float("inf")
        seconds = (
            CUBE * n**3 + SQUARE * n**2 + DOCUMENT * n + LIST_SQUARE * squares + LIST_CUBE * float((sizes**3).sum())
        )
        product = PRODUCT_BYTE * self._values.nbytes + PRODUCT_ROW * len(degrees)
        return seconds / product * self._values.nbytes

    def solver(
        self, hessian: QueryOperator, degrees: np.ndarray, pointers: np.ndarray, C: float
    ) -> Callable[[np.ndarray], np.ndarray] | None:
        if self.cost(degrees, pointers) == float("inf"):
            return None
        pairs = ActivePairs(hessian, degrees, pointers)
        try:
            factor = self._factor(pairs, factor_type(degrees, self._largest, C), C)
        except DeviceMemoryError:  # other programs have taken the free memory, or it is fragmented
            return None
        if factor is None:
            return None
        U = pairs.matrix()
        return lambda scores: C * (U.T @ factor.solve(U @ scores))

    def _factor(self, pairs: ActivePairs, dtype: type[np.floating], C: float) -> CholeskyFactor | None:
        """The factor of ``I + C U Q U'``."""
        n, rank = len(pairs.positions), int(pairs.rows[-1])
        own, run = self._launcher(self._values.dtype), self._launcher(dtype)
        places = own.copy_in(as_int32(pairs.positions))
        heights, widths = np.diff(pairs.rows), np.diff(pairs.columns)
        begin = np.append(0, np.cumsum(np.repeat(widths, heights)))
        first = as_int32(np.repeat(pairs.columns[:-1], heights))
        U: tuple[Argument, ...] = (*(own.copy_in(part) for part in (pairs.values, begin, first)), rank)
        across = -(-rank // TILE)
        products = self._device.empty((n, rank), np.float64)
        work = own.n_threads * -(-n // TILE) * across
        arguments = self._values, self._values.shape[0], places, n, *U, products
        own("multiply_chosen", *arguments, work=work, shared=TILE_SHARED)
        inner = self._device.empty((rank, rank), dtype)
        work = run.n_threads * across * (across + 1) // 2
        run("form_inner", *U, products, float(C), inner, work=work, shared=TILE_SHARED)
        del products
        return cholesky(run, inner)

    def _launcher(self, dtype: type[np.floating] | np.dtype) -> Launcher:
        return Launcher(self._device, Variant(False, False, "float" if dtype == np.float32 else "double"))
