"""The hyper-parameters of a fit, validated once and before any work."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from ranksvm._util import checks
from ranksvm._util.checks import is_integer
from ranksvm._util.threads import effective_n_jobs
from ranksvm._util.types import MemoryLimit
from ranksvm.device.names import device_complaint
from ranksvm.exceptions import OptionError
from ranksvm.losses import LOSSES, LossSpec
from ranksvm.losses.margin_function import MarginFunction, complaint_about

__all__ = [
    "FitOptions",
    "LinearOptions",
    "check_monotone",
    "loss_of",
    "monotone_signs",
    "threads_for",
]

_WORDS = {"increasing": 1, "decreasing": -1}
_EXPECTED = (
    "None, 'increasing', 'decreasing', an array of -1, 0 and 1 with one entry for each feature, or a dict of feature "
    "names or numbers to these"
)
# maximum number of names listed in a message
_LISTED = 5
# Signs that weights must have: one word for all features, a sign for each, or signs of some, by name or number.
Monotone = ArrayLike | Mapping[str, int | str] | Mapping[int, int | str]


@dataclass(frozen=True)
class FitOptions:
    """The hyper-parameters of every estimator fitted to pairs; C is an argument of the problem's ``solve``.

    Parameters
    ----------
    loss : LossSpec
        The loss.
    pair_selection, pair_weighting : str
        Which pairs labels imply, and their weights.
    solver : str
        The solver, or "auto".
    tol : float
        Relative duality gap to reach.
    max_iter : int
        Maximum number of solver iterations.
    device : str or list of str
        "cpu", the name of a GPU or of several, or "auto".
    memory_limit : int, str or None
        The memory limit of the fit.
    n_threads : int
        Number of threads.
    """

    model: ClassVar[str]
    loss: LossSpec
    pair_selection: str
    pair_weighting: str
    solver: str
    tol: float
    max_iter: int
    device: str | Sequence[str]
    memory_limit: MemoryLimit
    n_threads: int

    @classmethod
    def validated(cls, values: Mapping[str, Any], **others: Callable[[Any], str | None]) -> Self:
        """The options for the hyper-parameters of an estimator.

        Parameters
        ----------
        values : mapping
            The hyper-parameters, by name, as the user gave them.
        **others : callable
            Checks of hyper-parameters whose constraints are not in the table of parameters.

        Returns
        -------
        FitOptions
            The options.

        Raises
        ------
        OptionError
            When a hyper-parameter is invalid.
        """
        checks.check_parameters(
            cls.model, values, loss=_loss_error, device=device_complaint, memory_limit=checks.memory_limit, **others
        )
        loss, n_threads = loss_of(values["loss"], values["huber_width"]), effective_n_jobs(values["n_jobs"])
        given = {field.name: values[field.name] for field in fields(cls) if field.name in values}
        return cls(**given | {"loss": loss, "n_threads": n_threads})


@dataclass(frozen=True)
class LinearOptions(FitOptions):
    """The hyper-parameters of a linear model.

    Parameters
    ----------
    monotone : None, str, array-like or dict
        Signs that the weights must have.
    stopping : {"gap", "gradient"}
        Stopping rule.
    """

    model: ClassVar[str] = "linear"
    monotone: Monotone | None = None
    stopping: str = "gap"

    def __post_init__(self) -> None:
        if self.stopping == "gradient" and self.monotone is not None:
            raise OptionError(
                "stopping='gradient' is the published rule for weights of any sign: with monotone, leave it at 'gap'."
            )
        check_monotone(self.monotone)


def loss_of(loss: str | MarginFunction, huber_width: float) -> LossSpec:
    """The loss chosen by the hyper-parameters of an estimator."""
    if not isinstance(loss, str):
        return LossSpec("custom", function=loss)
    return LossSpec(loss, float(huber_width) if loss == "huber" else None)


def threads_for(loss: LossSpec, n_threads: int) -> int:
    """The number of threads that may evaluate a loss: a function of the user may not be thread-safe."""
    return n_threads if loss.function is None else 1


def _loss_error(loss: object) -> str | None:
    """The error message for a loss (a name, or a function of the margin); None if it is valid."""
    if isinstance(loss, str) or not any(hasattr(loss, name) for name in ("value", "derivative", "curvature")):
        error = checks.one_of(loss, LOSSES)
        return None if error is None else f"{error} (or give an object with value, derivative and curvature)"
    return complaint_about(loss)


def check_monotone(monotone: Monotone | None) -> None:
    """Raise OptionError for a ``monotone`` that is invalid for every data set."""
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


def monotone_signs(monotone: Monotone | None, n_features: int, names: Sequence[str] | None = None) -> np.ndarray | None:
    """The sign that each weight must have, from a ``monotone`` that `check_monotone` has accepted.

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
        1, -1, or 0 for a weight of any sign; None if all weights may have any sign.

    Raises
    ------
    OptionError
        When a named feature does not exist, or there is not one sign for each feature.
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


def _signs_by_feature(monotone: Mapping[Any, Any], n_features: int, names: Sequence[str] | None) -> np.ndarray:
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


def _values(monotone: ArrayLike) -> np.ndarray:
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
