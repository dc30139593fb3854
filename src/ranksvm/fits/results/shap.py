"""Conversion of contributions to ``shap.Explanation``, for the plots of SHAP."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ranksvm._util.lazy import first_import
from ranksvm._util.text import feature_labels
from ranksvm.exceptions import MissingDependencyError

if TYPE_CHECKING:
    import shap

__all__ = ["shap_explanation"]


def shap_explanation(
    values: np.ndarray, base_values: np.ndarray, data: np.ndarray, names: Sequence[str] | None
) -> "shap.Explanation":
    """A ``shap.Explanation``.

    Parameters
    ----------
    values : ndarray of float64, shape (n_samples, n_terms)
        The contributions to each score.
    base_values : ndarray of float64, shape (n_samples,)
        The scores without the contributions.
    data : ndarray of float64, shape (n_samples, n_terms)
        The values of the features.
    names : sequence of str or None
        Names of the terms; None: ``f1``, ``f2``, ...

    Returns
    -------
    shap.Explanation
        The explanation.

    Raises
    ------
    MissingDependencyError
        When SHAP is not installed.
    """
    try:
        with first_import():
            import shap
    except ImportError as error:
        raise MissingDependencyError("to_shap needs SHAP: pip install shap") from error
    named = feature_labels(values.shape[1], names)
    return shap.Explanation(values=values, base_values=base_values, data=data, feature_names=named)
