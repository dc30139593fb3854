"""Features in the memory of a GPU, used there without a copy to the host."""

from typing import Any

import numpy as np

from ranksvm.device.arrays import Foreign, array_like, as_rows, foreign, is_on_device
from ranksvm.device.launcher import LANES, Launcher
from ranksvm.device.protocol import Device, DeviceArray, Variant
from ranksvm.exceptions import DataError

__all__ = ["DeviceFeatures", "device_features"]


class DeviceFeatures:
    """Rows of float32 or float64 on a device.

    Parameters
    ----------
    device : Device
        The device.
    array : DeviceArray, shape (n_rows, n_features)
        The rows, C-contiguous.
    original : object
        The array of another library that the rows come from.
    """

    ndim = 2

    def __init__(self, device: Device, array: DeviceArray, original: object):
        self.device = device
        self.array = array
        self.original = original
        self.shape = array.shape
        self.dtype = array.dtype
        real = "float" if array.dtype == np.float32 else "double"
        self._run = Launcher(device, Variant(False, False, real))

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: np.ndarray) -> "DeviceFeatures":
        rows = np.flatnonzero(rows) if rows.dtype == bool else rows
        array = self.array
        strides = self.shape[1] * self.dtype.itemsize, self.dtype.itemsize
        taken = as_rows(Foreign(self.device.name, array.pointer, self.shape, strides, self.dtype, array), rows)
        return DeviceFeatures(*taken, self.original)

    def largest(self) -> np.ndarray:
        """The largest absolute value of each column; NaN if a value of the column is not finite.

        Returns
        -------
        ndarray of float64, shape (n_features,)
            The values.
        """
        n_rows, n = self.shape
        run = self._run
        n_blocks = run.blocks_for(run.n_threads * n_rows)
        found = self.device.empty((n_blocks, n), np.float64)
        run("largest_values", self.array, n_rows, n, found, n_blocks=n_blocks)
        return self.device.copy_out(found).max(axis=0)

    def scores(self, w: np.ndarray) -> DeviceArray:
        """``X w``, summed in float64, on the device.

        Parameters
        ----------
        w : ndarray of float64, shape (n_features,)
            The weights.

        Returns
        -------
        DeviceArray of float64, shape (n_rows,)
            The scores.
        """
        n_rows, n = self.shape
        run = self._run
        out, weights = self.device.empty((n_rows,), np.float64), run.copy_in(w)
        run("scores", self.array, None, n, 0, 0, n_rows, weights, out, work=LANES * n_rows)
        return out

    def like(self, values: DeviceArray) -> Any:
        """Convert an array on the device to an array of the library that the features come from.

        Parameters
        ----------
        values : DeviceArray
            The array.

        Returns
        -------
        object
            An array over the same memory, such as a tensor of torch.
        """
        self.device.synchronise()
        return array_like(values, self.device, self.original)

    def on_host(self) -> np.ndarray:
        """A copy of the rows on the host.

        Returns
        -------
        ndarray of float32 or float64, shape (n_rows, n_features)
            The rows.
        """
        return self.device.copy_out(self.array)


def device_features(X: object) -> DeviceFeatures | None:
    """Features in the memory of a GPU; None for anything else.

    Parameters
    ----------
    X : object
        The features passed by the user.

    Returns
    -------
    DeviceFeatures or None
        The rows on their GPU: converted there if they are not C-contiguous, or not float32 or float64.

    Raises
    ------
    DataError
        When X does not have two dimensions, has no rows or no columns, or does not hold real numbers.
    """
    if isinstance(X, DeviceFeatures):
        return X
    if not is_on_device(X):
        return None
    found = foreign(X)
    if len(found.shape) != 2:
        raise DataError(f"X on a GPU has shape {found.shape}: it must have a row for each sample.")
    if 0 in found.shape:
        raise DataError(f"X on a GPU has shape {found.shape}: there must be at least one sample and one feature.")
    return DeviceFeatures(*as_rows(found), X)
