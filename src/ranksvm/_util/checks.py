"""Checks that many modules use: of the types of values, of hyper-parameters, and of overflow in fits."""

import math
import numbers
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeGuard, overload

import numpy as np

from ranksvm._util.memory import MEMORY, memory_bytes
from ranksvm._util.parameters import (
    Constraint,
    Count,
    Flag,
    NotNegative,
    OneOf,
    Positive,
    Range,
    Verbosity,
    parameters_of,
)
from ranksvm._util.types import ArrayLike, CSRMatrix, Features, SparseMatrix
from ranksvm.exceptions import DataError, OptionError

if TYPE_CHECKING:
    from typing_extensions import TypeIs

__all__ = [
    "check_one_per_row",
    "check_top",
    "check_unmasked",
    "first_repeated",
    "is_integer",
    "is_number",
    "is_sparse",
    "level_of_caller",
    "n_rows_of",
    "numbers_of",
    "overflow_of_certificate",
    "overflow_refused",
    "quiet_overflow",
]

_ADVICE_ON_OVERFLOW = "features, weights of pairs or C are too large. Scale them down."


def is_integer(value: object, least: int | None = None) -> TypeGuard[int]:
    """Whether a value is a whole number of 64 bits, of Python or NumPy (not True or False), and at least ``least``."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool):
        return False
    return -(2**63) <= int(value) < 2**63 and (least is None or int(value) >= least)


def is_number(value: object) -> TypeGuard[float]:
    """Whether a value is a real number, of Python or NumPy (not True or False), possibly not finite."""
    # float first: isinstance is slow for an abstract class
    return isinstance(value, float) or (isinstance(value, numbers.Real) and not isinstance(value, bool))


def numbers_of(values: object) -> np.ndarray:
    """The numbers of a list as float64, with at least one dimension; TypeError if it holds anything else, as text."""
    given = np.atleast_1d(np.asarray(values, dtype=object))
    if not all(map(is_number, given.flat)):
        raise TypeError("not all values are numbers")
    return given.astype(np.float64)


def first_repeated(names: Iterable[str]) -> str:
    """The name that is the first to appear again."""
    seen: set[str] = set()
    return next(name for name in names if name in seen or seen.add(name))  # type: ignore[func-returns-value]


@overload
def is_sparse(X: Features) -> "TypeIs[CSRMatrix]": ...
@overload
def is_sparse(X: object) -> "TypeIs[SparseMatrix]": ...
def is_sparse(X: object) -> bool:
    """Whether X is a sparse matrix or array of SciPy.

    If nothing has imported scipy.sparse, X cannot be one. Importing it here would take longer than importing NumPy.
    """
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and sparse.issparse(X)


def n_rows_of(X: Any) -> int:
    """Number of rows of an array, sparse matrix, DataFrame or list."""
    return X.shape[0] if hasattr(X, "shape") else len(X)


def check_one_per_row(name: str, values: ArrayLike, n_rows: int, owner: str = "X") -> None:
    """Raise DataError unless there is one value for each of the ``n_rows`` rows of ``owner``."""
    shape = np.shape(values) if isinstance(values, np.ndarray) or not isinstance(values, Sized) else (len(values),)
    if shape == (n_rows,):
        return
    found = f"{shape[0]} entries" if len(shape) == 1 else f"shape {shape}"
    raise DataError(f"{name} has {found} but {owner} has {n_rows} rows: they must agree.")


def check_unmasked(name: str, values: object) -> None:
    """Raise DataError for a masked array with masked values: conversion to an array would uncover them."""
    if np.ma.isMaskedArray(values) and np.ma.is_masked(values):
        raise DataError(
            f"{name} is an array with masked values: pass {name}.filled(numpy.nan), in which they are missing, or "
            "fill in other values."
        )


def level_of_caller() -> int:
    """The ``stacklevel`` with which a warning in the calling function points to the first caller outside ranksvm."""
    level, frame = 1, sys._getframe(1)
    # `contextlib` calls the context managers of ranksvm
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(("ranksvm.", "contextlib")):
        level, frame = level + 1, frame.f_back
    return level


def positive(value: object) -> str | None:
    """The error message for a value that must be a positive, finite number; None if it is valid."""
    if _is_finite(value) and value > 0:
        return None
    return f"must be a positive, finite number, got {value!r}"


def not_negative(value: object) -> str | None:
    """The error message for a value that must be a finite number from 0; None if it is valid."""
    if _is_finite(value) and value >= 0:
        return None
    return f"must be a finite number from 0, got {value!r}"


def count(value: object, least: int = 1) -> str | None:
    """The error message for a value that must be a whole number from ``least``; None if it is valid."""
    if is_integer(value, least):
        return None
    return f"must be a whole number from {least}, got {value!r}"


def flag(value: object) -> str | None:
    """The error message for a value that must be True or False; None if it is valid."""
    return None if isinstance(value, bool | np.bool_) else f"must be True or False, got {value!r}"


def seed(value: object) -> str | None:
    """The error message for a value that must be a seed or generator of random numbers; None if it is valid."""
    generator = value is None or value is np.random or isinstance(value, np.random.RandomState)
    if generator or (is_integer(value, 0) and int(value) < 2**32):
        return None
    return f"must be None, a whole number from 0 to 2^32 - 1 or a numpy.random.RandomState, got {value!r}"


def memory_limit(value: object) -> str | None:
    """The error message for a value that must be a memory limit, as `memory_bytes` takes it; None if it is valid."""
    if value is None:
        return None
    if isinstance(value, str):
        if MEMORY.fullmatch(value.strip()) and memory_bytes(value) > 0:
            return None
    elif _is_finite(value) and value >= 1:
        return None
    return f"must be None, a positive number of bytes, or text such as '4GB' or '500MB', got {value!r}"


def one_of(value: object, names: Iterable[str]) -> str | None:
    """The error message for a value that must be one of some names; None if it is valid."""
    allowed = list(names)
    if isinstance(value, str) and value in allowed:
        return None
    return f"must be one of {', '.join(map(repr, allowed))}, got {value!r}"


def check(**complaints: str | None) -> None:
    """Raise OptionError for the first parameter that has an error message."""
    for name, complaint in complaints.items():
        if complaint is not None:
            raise OptionError(f"{name} {complaint}.")


def check_top(top: object) -> None:
    """Raise OptionError unless ``top``, the number of entries to show, is None or a whole number from 0."""
    if top is not None:
        check(top=count(top, 0))


def check_parameters(model: str, values: Mapping[str, Any], **others: Callable[[Any], str | None]) -> None:
    """Raise OptionError for the first invalid hyper-parameter of a model.

    ``others`` are functions for parameters whose constraint `PARAMETERS` lacks: they return the error message or None.
    """
    for parameter in parameters_of(model):
        name = parameter.name
        if name in values:
            error = others[name](values[name]) if name in others else _error(values[name], parameter.constraint)
            if error is not None:
                raise OptionError(f"{name} {error}.")


def _error(value: Any, constraint: Constraint | None) -> str | None:
    """The error message for a value; None if it meets the constraint."""
    match constraint:
        case Positive(words, maximum):
            if isinstance(value, str) and value in words:
                return None
            error = positive(value)
            if error is None:
                return None if value <= maximum else f"must be at most {maximum:g}, got {value!r}"
            return error.replace("be a", f"be {', '.join(map(repr, words))} or a", 1) if words else error
        case NotNegative(reason):
            error = not_negative(value)
            return error.replace(" from 0", f" from 0 ({reason})", 1) if error and reason else error
        case Count(minimum, none):
            return None if none and value is None else count(value, minimum)
        case Range(minimum, maximum):
            inside = is_integer(value, minimum) and value <= maximum
            return None if inside else f"must be an integer from {minimum} to {maximum}, got {value!r}"
        case Flag():
            return flag(value)
        case Verbosity():
            return None if flag(value) is None else count(value, 0)
        case OneOf(names, none, callables):
            if (none and value is None) or (callables and callable(value)):
                return None
            error = one_of(value, names)
            return error.replace("one of", "None or one of", 1) if error and none else error
    return None


def _is_finite(value: object) -> TypeGuard[float]:
    try:
        return is_number(value) and math.isfinite(value)
    except OverflowError:  # an integer that is too large for float64
        return False


def quiet_overflow() -> np.errstate:
    """Context without NumPy's warnings of overflow: values become infinity or NaN; the caller checks the results."""
    return np.errstate(over="ignore", invalid="ignore", divide="ignore")


@contextmanager
def overflow_refused() -> Iterator[None]:
    """Context of a fit: like `quiet_overflow`, and arithmetic errors that overflow causes become a DataError."""
    with quiet_overflow():
        try:
            yield
        except (OverflowError, np.linalg.LinAlgError) as error:
            raise DataError(f"The fit overflows float64 ({error}): {_ADVICE_ON_OVERFLOW}") from error


def overflow_of_certificate(value: float, gap: float) -> DataError:
    """The error to raise for an objective or a duality gap that is not finite."""
    return DataError(f"The objective and its duality gap overflow float64 ({value:g}, {gap:g}): {_ADVICE_ON_OVERFLOW}")
