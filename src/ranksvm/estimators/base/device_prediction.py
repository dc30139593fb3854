"""Predictions of linear and kernel models on a device."""

from typing import Any

import numpy as np

from ranksvm._util.threads import effective_n_jobs
from ranksvm.data import validation
from ranksvm.device import open_device
from ranksvm.exceptions import OptionError
from ranksvm.fits.device_choice import cheaper_device
from ranksvm.fits.work import scoring_work
from ranksvm.kernels.device_scores import scores_on, unable

__all__ = ["cheaper_place", "predicted_on"]


def cheaper_place(ranker: Any, X: Any) -> str | None:
    """The device on which the scores of documents of the host are estimated to take less time.

    Parameters
    ----------
    ranker : Ranker
        A fitted model.
    X : ndarray or sparse matrix of shape (n_samples, n_features)
        Features.

    Returns
    -------
    str or None
        Full name of a GPU; None for the CPU, also if a GPU cannot compute the scores.
    """
    make = getattr(ranker, "_function", None)
    function = None if make is None else make()
    if function is None or unable(function):
        return None
    found = cheaper_device(scoring_work(function, X), effective_n_jobs(ranker.n_jobs))
    return None if found is None else found.name


def predicted_on(name: str, ranker: Any, X: Any) -> np.ndarray:
    """Scores of documents of the host, computed on a device, whatever device the model was fitted on.

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
        When the model is of another kind, or its kernel is a function of Python.
    DataError
        When X is not what the model was fitted to, or a score overflows.
    """
    function = getattr(ranker, "_function", None)
    if function is None:
        raise OptionError(f"A {type(ranker).__name__} computes its scores on the processor: use device='cpu'.")
    return validation.check_scores(scores_on(open_device(name), function(), ranker._features(X)))
