"""Columns of numbers, such as labels and weights, of any library or a GPU, as float64; missing values are refused."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from ranksvm._util.checks import check_one_per_row
from ranksvm.device.arrays import host_values
from ranksvm.exceptions import DataError

__all__ = ["as_array", "checked_weights", "is_missing", "is_plain_vector", "label_column", "numeric_column"]

_LABEL_ADVICE = "give every row a label, or drop the rows without one (from X, qid and the weights too)"
_WEIGHT_ADVICE = "weights must be finite and not negative"


def is_missing(value: object) -> bool:
    """Whether the value is None, a NaN, pandas' NA or NaT, or a null of pyarrow."""
    if value is None or getattr(value, "is_valid", True) is False:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError, ArithmeticError):  # NA, whose comparison with itself is undefined
        return True


def is_plain_vector(y: object, X: object) -> bool:
    """Whether y is a NumPy array of finite numbers, one for each row of an array or sparse matrix X."""
    if type(y) is not np.ndarray or y.ndim != 1 or y.dtype.kind not in "biuf":
        return False
    return y.shape == getattr(X, "shape", ())[:1] and bool(np.isfinite(y).all())


def label_column(y: ArrayLike) -> np.ndarray:
    """Labels as float64: `numeric_column` with advice for labels."""
    return numeric_column("y", y, advice=_LABEL_ADVICE)


def checked_weights(name: str, values: ArrayLike | None, n: int, owner: str) -> np.ndarray:
    """One finite, non-negative weight for each of the n rows of ``owner``; all 1 if ``values`` is None."""
    if values is None:
        return np.ones(n)
    weights = numeric_column(
        name, np.full(n, values) if as_array(name, values).ndim == 0 else values, advice=_WEIGHT_ADVICE
    )
    check_one_per_row(name, weights, n, owner)
    bad = np.flatnonzero(weights < 0)
    if len(bad):
        raise DataError(f"{name} is {weights[bad[0]]} in row {bad[0]}: {_WEIGHT_ADVICE}.")
    return weights


def numeric_column(
    name: str, values: ArrayLike, *, finite: bool = True, advice: str = "it must be a number in every row"
) -> np.ndarray:
    """Values as float64, validated, in their own shape.

    Parameters
    ----------
    name : str
        What the values are, for messages.
    values : array-like
        Numbers: an array, a list, a column of a DataFrame library.
    finite : bool, default True
        Whether infinite values are refused; missing ones are refused always.
    advice : str
        What to do about missing values, for the message.

    Returns
    -------
    ndarray of float64
        The numbers, C-contiguous; the array itself if it is contiguous float64 already.

    Raises
    ------
    DataError
        When a value is missing (None, NaN, NA, NaT, a masked or null value), is not a number, is too large for float64,
        or is infinite and ``finite`` is True. The message names the first such row, and how many are missing.
    """
    array = as_array(name, values)
    if array.ndim == 0:
        raise DataError(f"{name} must hold one number for each row, got a {type(values).__name__}.")
    if array.dtype == object:
        missing = np.fromiter(map(is_missing, array.reshape(-1)), dtype=bool, count=array.size).reshape(array.shape)
        _refuse_missing(name, array, missing, advice)
    numbers = _as_floats(name, array)
    if np.isfinite(numbers).all():
        return numbers
    _refuse_missing(name, numbers, np.isnan(numbers), advice)
    if finite:
        row, count = _first_row(np.isinf(numbers))
        more = f", and {count} of {len(numbers)} rows are infinite" if count > 1 else ""
        raise DataError(f"{name} is {_value(numbers, row)} in row {row} (from 0){more}: it must be a finite number.")
    return numbers


def as_array(name: str, values: ArrayLike) -> np.ndarray:
    """Values, also from a GPU, as a NumPy array; masked ones are None. DataError if they cannot form one array."""
    if type(values) is np.ndarray:
        return values
    try:
        array = np.asarray(host_values(values))
    except Exception as error:  # lists of different lengths, or any error of a DataFrame library
        raise DataError(f"{name} must hold one value for each row: {error}") from error
    if np.ma.isMaskedArray(values):
        array = array.astype(object)
        array[np.ma.getmaskarray(values)] = None
    return array


def _as_floats(name: str, array: np.ndarray) -> np.ndarray:
    if array.dtype == np.float64:
        return np.ascontiguousarray(array)  # not a subclass
    if array.dtype.kind in "mM":
        raise DataError(f"{name} must hold numbers, got {array.dtype}.")
    if array.dtype.kind == "c":
        raise DataError(f"{name} must hold real numbers. Complex data not supported: {array.dtype}.")
    try:
        with np.errstate(over="ignore"):
            return np.ascontiguousarray(array, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        row, reason = next(_unreadable(array))
        raise DataError(f"{name} must hold numbers, but row {row} (from 0) {reason}.") from None


def _unreadable(array: np.ndarray) -> Iterator[tuple[int, str]]:
    """Rows whose values float64 cannot represent, each with the reason; at the end, row 0 with the array's type."""
    for place, value in enumerate(array.reshape(-1).tolist()):
        row = place // max(1, array.size // len(array))
        try:
            float(value)
        except OverflowError:
            yield row, "has an integer that is too large for float64 (1.8e308)"
        except (TypeError, ValueError):
            yield row, f"is {value!r:.60}"
    yield 0, f"has type {array.dtype}"


def _refuse_missing(name: str, array: np.ndarray, missing: np.ndarray, advice: str) -> None:
    if missing.any():
        row, count = _first_row(missing)
        many = f"{count} of {len(array)} rows {'has' if count == 1 else 'have'} no value"
        raise DataError(f"{name} is {_value(array, row)} in row {row} (from 0), {many}: {advice}.")


def _first_row(bad: np.ndarray) -> tuple[int, int]:
    """The first row with a bad value, and the number of such rows."""
    rows = np.flatnonzero(bad.reshape(len(bad), -1).any(axis=1))
    return int(rows[0]), len(rows)


def _value(array: np.ndarray, row: int) -> object:
    return array[row] if array.ndim == 1 else array[row].reshape(-1).tolist()
