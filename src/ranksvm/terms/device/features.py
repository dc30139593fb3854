"""The data term (the loss of a model) for features that approximate a kernel; a device computes and keeps them."""

import numpy as np

from ranksvm._util.types import Features
from ranksvm.device import Device, Variant
from ranksvm.device.launcher import Launcher
from ranksvm.kernels.device_values import features_on, kernel_launcher
from ranksvm.kernels.features import FeatureMap
from ranksvm.losses import PairwiseLoss
from ranksvm.terms.device.pairs import order_on_device
from ranksvm.terms.device.rows import DenseRows
from ranksvm.terms.device.term import DeviceTerm
from ranksvm.terms.feature_design import ComputedDesign

__all__ = ["feature_term"]


class _StoredDesign(ComputedDesign):
    """A design matrix of features that are on the device: it describes them to the term, but does not hold them."""

    def __init__(self, X: Features, features: FeatureMap, dtype: np.dtype):
        super().__init__(X, features)
        self.dtype = dtype
        self.row_bytes = float(dtype.itemsize * max(1, features.n_features))


def feature_term(
    device: Device, X: Features, features: FeatureMap, loss: PairwiseLoss, dtype: np.dtype, n_threads: int = 1
) -> DeviceTerm:
    """The loss as a function of the weights of features, which are computed from documents on a device.

    Parameters
    ----------
    device : Device
        The device.
    X : ndarray or CSR matrix of floats, shape (n_rows, n_features_in)
        The documents.
    features : FeatureMap
        The features of a document.
    loss : SquaredHinge, HuberHinge or Hinge
        The loss over pairs of the documents.
    dtype : dtype
        Type in which features are stored.
    n_threads : int
        Number of threads for work on the host.

    Returns
    -------
    DeviceTerm
        The term.

    Raises
    ------
    DeviceMemoryError
        When the features do not fit into the device's memory.
    """
    run, pairs = kernel_launcher(device, dtype), loss.pairs
    listed = hasattr(pairs, "pair_pointers")
    order = order_on_device(pairs)
    design = _StoredDesign(X, features, dtype)
    X_there, of_rows = features_on(run, features, X), Launcher(device, Variant(listed, False, run.variant.real))
    rows = DenseRows(of_rows, X_there, order.rows_of(pairs), design.largest())
    return DeviceTerm(device, design, loss, n_threads, rows, order)
