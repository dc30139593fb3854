"""The signs of weights that a user asks for, as one number for each feature."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ranksvm._util.values import is_integer
from ranksvm.exceptions import OptionError

__all__ = ["check_monotone", "monotone_signs"]

_WORDS = {"increasing": 1, "decreasing": -1}
_EXPECTED = (
    "None, 'increasing', 'decreasing', an array of -1, 0 and 1 with one entry for each feature, or a dict of feature "
    "names or numbers to these"
)
# names listed in a message
_LISTED = 5


def check_monotone(monotone: Any) -> None:
    """Raise OptionError for a ``monotone`` that is invalid whatever the features are."""
    if monotone is None:
        return
    if isinstance(monotone, str):
        if monotone not in _WORDS:
            raise OptionError(f"monotone must be {_EXPECTED}, got {monotone!r}.")
    elif isinstance(monotone, Mapping):
        for feature, sign in monotone.items():
            if not isinstance(feature, str) and not is_integer(feature, 0):
                raise OptionError(f"monotone has the feature {feature!r}: give its name, or its number from 0.")
            _sign(sign, f"of feature {feature!r} ")
    else:
        for number, sign in enumerate(_values(monotone)):
            _sign(sign, f"of feature {number} ")


def monotone_signs(monotone: Any, n_features: int, names: Sequence[str] | None = None) -> np.ndarray | None:
    """The sign of each weight, as validated by `check_monotone`.

    Parameters
    ----------
    monotone : None, str, array-like or dict
        As in `RankSVM`.
    n_features : int
        Number of features.
    names : sequence of str, optional
        Their names.

    Returns
    -------
    ndarray of int64, shape (n_features,), or None
        1, -1, or 0 for a weight of any sign; None if all of them are.

    Raises
    ------
    OptionError
        When there are no such features, or another number of them.
    """
    if monotone is None:
        return None
    if isinstance(monotone, str):
        signs = np.full(n_features, _WORDS[monotone])
    elif isinstance(monotone, Mapping):
        signs = _signs_by_feature(monotone, n_features, names)
    else:
        given = _values(monotone)
        if len(given) != n_features:
            raise OptionError(f"monotone has {len(given)} entries, but X has {n_features} features.")
        signs = np.array([_sign(sign, "") for sign in given], dtype=np.int64)
    return signs.astype(np.int64) if signs.any() else None


def _signs_by_feature(monotone: Mapping, n_features: int, names: Sequence[str] | None) -> np.ndarray:
    places = {} if names is None else {str(name): number for number, name in enumerate(names)}
    signs, given = np.zeros(n_features, dtype=np.int64), set()
    for feature, sign in monotone.items():
        if isinstance(feature, str):
            number = places.get(feature)
            if number is None:
                raise OptionError(f"monotone names the feature {feature!r}, but {_described(names)}.")
        else:
            number = int(feature)
            if number >= n_features:
                raise OptionError(f"monotone has the feature {number}, but X has {n_features}, numbered from 0.")
        if number in given:
            raise OptionError(f"monotone has feature {number} twice, by its name and by its number.")
        given.add(number)
        signs[number] = _sign(sign, "")
    return signs


def _described(names: Sequence[str] | None) -> str:
    if names is None:
        return "X has no feature names: give numbers from 0"
    some = ", ".join(repr(str(name)) for name in names[:_LISTED])
    return f"X has the features {some}" + (f" and {len(names) - _LISTED} more" if len(names) > _LISTED else "")


def _values(monotone: Any) -> Any:
    values = np.asarray(monotone, dtype=object)
    if values.ndim != 1:
        raise OptionError(f"monotone must be {_EXPECTED}, got {monotone!r}.")
    return values


def _sign(sign: Any, which: str) -> int:
    """A sign as a number."""
    if isinstance(sign, str) and sign in _WORDS:
        return _WORDS[sign]
    number = not isinstance(sign, str | bool | np.bool_) and np.isscalar(sign)
    if not number or sign not in (-1, 0, 1):
        raise OptionError(
            f"monotone {which}must be 1 (its weight is not negative), -1 (not positive) or 0 (of any sign), "
            f"got {sign!r}."
        )
    return int(sign)
