"""Landmarks whose functions are evaluated, multiplied and fitted on a device (GPU)."""

from typing import TYPE_CHECKING

import numpy as np

from ranksvm.device import Device, Variant
from ranksvm.device.launcher import Launcher
from ranksvm.kernels import KernelMatrix
from ranksvm.losses import PairwiseLoss
from ranksvm.objectives.landmarks import Landmarks
from ranksvm.objectives.linear import LinearObjective
from ranksvm.terms.device.pairs import order_on_device
from ranksvm.terms.device.rows import DenseRows
from ranksvm.terms.device.term import DeviceTerm

if TYPE_CHECKING:
    from ranksvm.objectives.kernel import KernelPoint

__all__ = ["DeviceLandmarks"]


class DeviceLandmarks(Landmarks):
    """`Landmarks` with Phi on a device; a preconditioner multiplies twice there, and copies n_rows numbers each way.

    Parameters
    ----------
    matrix : KernelMatrix
        The kernel matrix Q.
    positions : ndarray of int64, shape (n_landmarks,)
        The landmarks.
    device : Device
        The device.
    """

    def __init__(self, matrix: KernelMatrix, positions: np.ndarray, device: Device):
        super().__init__(matrix, positions)
        values = self.design.X
        n_rows, n_functions = values.shape
        self._device = device
        run = Launcher(device, Variant(False, False, "double"))
        self._there = run.copy_in(values)
        self._largest = np.abs(values).max(axis=0, initial=0.0)
        self._rows = DenseRows(run, self._there, np.arange(n_rows), self._largest)
        self._long, self._short = (device.empty((max(1, size),), np.float64) for size in (n_rows, n_functions))

    def term(self, loss: PairwiseLoss, n_threads: int) -> DeviceTerm:
        """The data term of the problem over these functions: see `Landmarks.term`."""
        pairs = loss.pairs
        order = order_on_device(pairs)
        run = Launcher(self._device, Variant(hasattr(pairs, "pair_pointers"), False, "double"))
        rows = DenseRows(run, self._there, order.rows_of(pairs), self._largest)
        return DeviceTerm(self._device, self.design, loss, n_threads, rows, order)

    def hessian(self, within: LinearObjective, point: "KernelPoint") -> np.ndarray:
        """The Hessian of the problem over these functions: see `Landmarks.hessian`."""
        term = within.term
        assert isinstance(term, DeviceTerm)
        at = term.point_at(point.scores, point.width)
        found = within.hessian_at(at)
        term.release(at)
        return found

    def _multiply(self, w: np.ndarray) -> np.ndarray:
        weights = self._device.copy_in(np.ascontiguousarray(w), self._short)
        self._rows.multiply(weights, self._long)
        return self._device.copy_out(self._long)

    def _project(self, r: np.ndarray) -> np.ndarray:
        slopes = self._device.copy_in(np.ascontiguousarray(r), self._long)
        self._rows.accumulate(slopes, self._short)
        return self._device.copy_out(self._short)
