"""Steps of a feature that a user has edited."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from ranksvm._util.checks import is_integer
from ranksvm.additive.bins import FeatureBins
from ranksvm.additive.columns import increments
from ranksvm.exceptions import OptionError

__all__ = ["edited_steps"]


def edited_steps(
    bins: FeatureBins, steps: np.ndarray, values: ArrayLike | Mapping[int, float], scales: np.ndarray, sign: int
) -> np.ndarray:
    """The new steps of a feature, validated.

    Parameters
    ----------
    bins : FeatureBins
        Its levels.
    steps : ndarray of float64, shape (n_levels,)
        Its steps so far.
    values : array-like of shape (n_levels,), or mapping of int to float
        The new steps, of all levels or of some by number.
    scales : ndarray of float64, shape (n_levels - 1,)
        The scale of each variable of the feature.
    sign : {-1, 0, 1}
        -1 or 1 if the score must decrease or increase in the feature, otherwise 0.

    Returns
    -------
    ndarray of float64, shape (n_levels,)
        The steps; 0 at level 0.

    Raises
    ------
    OptionError
        When there are no such levels, a value is not finite, or the model cannot have these steps.
    """
    n = bins.n_levels
    if isinstance(values, Mapping):
        new = steps.copy()
        for level, value in values.items():
            if not is_integer(level, 0) or level >= n:
                raise OptionError(f"edit_shape: there is no level {level!r}: the feature has levels 0 to {n - 1}.")
            new[level] = value
    else:
        new = np.array(values, dtype=np.float64)
        if new.shape != (n,):
            raise OptionError(f"edit_shape: values has shape {new.shape}, but the feature has {n} levels.")
    if not np.isfinite(new).all():
        raise OptionError("edit_shape: values has values that are not finite.")
    new -= new[0]
    added = increments(new, bins)
    if (lost := np.flatnonzero((added != 0.0) & (scales == 0.0))).size:
        raise OptionError(
            f"edit_shape: the model cannot have a step at level {lost[0] + 1}: step_weight is 0, or no training row is "
            "there."
        )
    if sign and (wrong := np.flatnonzero(sign * added[: bins.n_steps] < 0.0)).size:
        raise OptionError(f"edit_shape: monotone does not admit the step at level {wrong[0] + 1}.")
    return new
