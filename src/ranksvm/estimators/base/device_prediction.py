"""Predictions of linear and kernel models on a device."""

import numpy as np

from ranksvm._util.types import MatrixLike
from ranksvm.data import validation
from ranksvm.data.device_features import DeviceFeatures
from ranksvm.device import open_device
from ranksvm.estimators.base.ranker import Ranker
from ranksvm.exceptions import OptionError
from ranksvm.kernels.device_scores import scores_on

__all__ = ["predicted_on"]


def predicted_on(name: str, ranker: Ranker, X: MatrixLike) -> np.ndarray:
    """Scores of documents in host memory, computed on a device, whatever device the model was fitted on.

    Parameters
    ----------
    name : str
        Full name of the device.
    ranker : Ranker
        A fitted linear or kernel model.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Features.

    Returns
    -------
    ndarray of float64, shape (n_samples,)
        The scores, as `predict` gives them.

    Raises
    ------
    OptionError
        When the model is of another kind, or its kernel is a Python function.
    DataError
        When X is not what the model was fitted to, or a score overflows.
    """
    function = getattr(ranker, "_function", None)
    if function is None:
        raise OptionError(f"A {type(ranker).__name__} computes its scores on the processor: use device='cpu'.")
    rows = ranker._features(X)
    assert not isinstance(rows, DeviceFeatures)  # X is in host memory
    return validation.check_scores(scores_on(open_device(name), function(), rows))
