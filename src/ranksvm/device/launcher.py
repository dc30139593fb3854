"""Launch kernels for one form of the data (`Variant`), and keep scratch memory for them."""

import numpy as np

from ranksvm.device.protocol import Argument, Device, DeviceArray, Variant
from ranksvm.exceptions import DataError

__all__ = ["LANES", "TILE", "TILE_SHARED", "Launcher", "as_int32"]

# Number of threads that process a row together: kLanes of portable.hpp.
LANES = 8
# TILE: number of rows and of columns of a tile, which is a square of sums that one block computes. TILE_SHARED: number
# of values that the block keeps in shared memory for this. They follow from kTile and kDepth of tiles.hpp.
TILE = 64
TILE_SHARED = 2 * 16 * TILE


class Launcher:
    """Launches the kernels of one variant on a device, and keeps scratch arrays by name.

    A launcher belongs to one data term (the loss over one data set), because scratch arrays keep their values from one
    launch to the next.

    Parameters
    ----------
    device : Device
        The device.
    variant : Variant
        The variant.
    """

    def __init__(self, device: Device, variant: Variant):
        self.device = device
        self.variant = variant
        self.n_threads = device.n_threads
        self._scratch: dict[str, DeviceArray] = {}

    def __call__(
        self, kernel: str, *arguments: Argument, work: int = 1, n_blocks: int | None = None, shared: int = 0
    ) -> None:
        """Run a kernel on ``n_blocks`` blocks, by default as many as ``work`` threads need."""
        n_blocks = self.blocks_for(work) if n_blocks is None else n_blocks
        self.device.launch(self.variant, kernel, arguments, n_blocks=n_blocks, shared=shared)

    def again(self) -> "Launcher":
        """A launcher of the same kernels with its own scratch memory."""
        return Launcher(self.device, self.variant)

    def blocks_for(self, work: int) -> int:
        """Number of blocks for ``work`` threads; at most the number that the device runs at a time."""
        return max(1, min(self.device.n_blocks, -(-work // self.n_threads)))

    def copy_in(self, values: np.ndarray, n_threads: int = 1) -> DeviceArray:
        """A new array with these values."""
        return self.device.copy_in(np.ascontiguousarray(values), n_threads=n_threads)

    def scratch(self, name: str, size: int) -> DeviceArray:
        """An array of float64 of at least this size, whose values last until the next use of its name."""
        found = self._scratch.get(name)
        if found is None or found.size < size:
            self._scratch.pop(name, None)  # free the old array before the new one is allocated
            found = self._scratch[name] = self.device.empty((size,), np.float64)
        return found

    def add_rows(self, parts: DeviceArray, n_rows: int, n_columns: int, out: DeviceArray) -> None:
        """``out`` = the sum of the rows of a matrix."""
        work = self.n_threads * -(-n_columns // LANES)
        self("add_rows", parts, n_rows, n_columns, out, work=work, shared=self.n_threads)


def as_int32(numbers: np.ndarray) -> np.ndarray:
    """Row or column numbers in the type that kernels take.

    Parameters
    ----------
    numbers : ndarray of int
        The numbers, 0 or more.

    Returns
    -------
    ndarray of int32
        The same numbers.

    Raises
    ------
    DataError
        When a number is too large.
    """
    limit = np.iinfo(np.int32).max
    if numbers.dtype != np.int32 and numbers.max(initial=0) > limit:
        raise DataError(f"A GPU takes at most {limit:,} rows and columns, and these data have more: use device='cpu'.")
    return numbers.astype(np.int32, copy=False)
