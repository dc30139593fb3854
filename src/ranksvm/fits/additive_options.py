"""Hyper-parameters of additive models."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ranksvm._util.checks import is_integer
from ranksvm.exceptions import OptionError
from ranksvm.fits.options import LinearOptions

__all__ = ["AdditiveOptions", "checked_interactions", "feature_numbers"]

_INTERACTIONS = (
    "interactions must be a number of pairs of features, 'auto', or a list of pairs of feature names or numbers"
)


@dataclass(frozen=True)
class AdditiveOptions(LinearOptions):
    """The hyper-parameters of an additive model.

    Parameters
    ----------
    step_weight : float
        Weight of the steps relative to the linear part.
    linear : bool
        Whether there is a linear part.
    max_bins : int
        Maximum number of levels of a feature.
    interactions : int, "auto" or list of pair
        Number of functions of two features to add, or the list of their pairs of features.
    interaction_bins : int
        Maximum number of levels of a feature in a function of two features.
    categorical : None or sequence of str or int
        The categorical features.
    """

    model: ClassVar[str] = "additive"
    step_weight: float = 1.0
    linear: bool = True
    max_bins: int = 32
    interactions: Any = 0
    interaction_bins: int = 8
    categorical: Sequence[int | str] | np.ndarray | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_interactions(self.interactions)
        if self.categorical is not None and (
            isinstance(self.categorical, str) or not isinstance(self.categorical, Sequence | np.ndarray)
        ):
            raise OptionError(f"categorical must be a list of feature names or numbers, got {self.categorical!r}.")
        if not self.linear and self.step_weight == 0.0:
            raise OptionError("linear=False and step_weight=0 leave nothing to learn.")


def checked_interactions(interactions: Any) -> None:
    """Raise OptionError for ``interactions`` that are invalid for every data set.

    Parameters
    ----------
    interactions : object
        The hyper-parameter.
    """
    if isinstance(interactions, str):
        if interactions != "auto":
            raise OptionError(f"{_INTERACTIONS}, got {interactions!r}.")
    elif is_integer(interactions):
        if interactions < 0:
            raise OptionError(f"{_INTERACTIONS}, got {interactions!r}.")
    elif not isinstance(interactions, Sequence | np.ndarray) or any(
        isinstance(pair, str) or not hasattr(pair, "__len__") or len(pair) != 2 for pair in interactions
    ):
        raise OptionError(f"{_INTERACTIONS}, got {interactions!r}.")


def feature_numbers(name: str, features: Iterable[Any], n_features: int, names: Sequence[str] | None) -> list[int]:
    """The numbers of features given by name or number.

    Parameters
    ----------
    name : str
        The hyper-parameter, for messages.
    features : sequence of str or int
        The features.
    n_features : int
        Number of features.
    names : sequence of str, optional
        Their names.

    Returns
    -------
    list of int
        The numbers.

    Raises
    ------
    OptionError
        When there is no such feature.
    """
    places: Mapping[str, int] = {} if names is None else {str(each): number for number, each in enumerate(names)}
    found = []
    for feature in features:
        if isinstance(feature, str):
            if feature not in places:
                known = "X has no feature names: give numbers from 0" if names is None else "X has no such feature"
                raise OptionError(f"{name} names the feature {feature!r}, but {known}.")
            found.append(places[feature])
        elif is_integer(feature, 0) and int(feature) < n_features:
            found.append(int(feature))
        else:
            raise OptionError(f"{name} has the feature {feature!r}, but X has {n_features}, numbered from 0.")
    return found
