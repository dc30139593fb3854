"""Schemas of fitted attributes: each saved class declares its own, and models from files are checked against it.

A class has a class variable ``_fitted_schema``, attribute name -> field; a subclass inherits its bases' fields. Sizes
have names, and all arrays with a size of the same name must agree in it: ``Array("n_support", "n_features")``.
Conditions that a schema cannot express are checked by ``_check_loaded``, a method that raises ModelFileError.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ranksvm._util.checks import is_integer, is_number, is_sparse
from ranksvm._util.types import SparseMatrix

__all__ = [
    "SKLEARN_CLASSES",
    "SKLEARN_SCHEMAS",
    "Array",
    "Field",
    "Flag",
    "Matrix",
    "Number",
    "PlainDict",
    "Schema",
    "SchemaError",
    "Text",
    "Texts",
    "Trace",
    "checked_attributes",
    "schema_of",
]

_REQUIRED = object()
_FLOATING = ("float32", "float64")
_TIMES, _MINUS = re.compile(r"(\d+) \* (\w+)"), re.compile(r"(\w+) - (\d+)")
_BINDS = re.compile(r"\w+")
Sizes = dict[str, int]


class SchemaError(ValueError):
    """Fitted attributes differ from the declaration of their class."""


@dataclass(frozen=True, kw_only=True)
class Field:
    """The declaration of one fitted attribute.

    Parameters
    ----------
    nullable : bool, default False
        Whether it may be None.
    required : bool, default True
        Whether every fitted model has it.
    default : object, optional
        The value for models of earlier versions, which lack it; it is then not required.
    """

    nullable: bool = False
    required: bool = True
    default: object = _REQUIRED

    def sizes(self, value: object) -> Sizes:
        """The sizes that the value defines, by name."""
        return {}

    def checked(self, value: object, sizes: Sizes) -> object:
        """The value in the form that methods take; SchemaError says what is wrong with the value."""
        if value is None:
            if self.nullable:
                return None
            raise SchemaError("is None")
        return self._checked(value, sizes)

    def _checked(self, value: object, sizes: Sizes) -> object:
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class Flag(Field):
    """True or False."""

    def _checked(self, value: object, sizes: Sizes) -> object:
        if not isinstance(value, bool | np.bool_):
            raise SchemaError(f"is {value!r:.50}, not True or False")
        return value


@dataclass(frozen=True, kw_only=True)
class Number(Field):
    """A number; if it defines a size of arrays, ``size`` is the name of that size."""

    integer: bool = False
    finite: bool = True
    minimum: float = -math.inf
    maximum: float = math.inf
    size: str | None = None

    def sizes(self, value: Any) -> Sizes:
        """The size that the number defines."""
        return {self.size: int(value)} if self.size is not None and is_integer(value) else {}

    def _checked(self, value: Any, sizes: Sizes) -> object:
        kind = "a whole number" if self.integer else "a number"
        if not (is_integer(value) if self.integer else is_number(value)):
            raise SchemaError(f"is {value!r:.50}, not {kind}")
        if self.finite and not _is_finite(value):
            raise SchemaError(f"is {value}, not finite")
        if value < self.minimum or value > self.maximum:
            raise SchemaError(f"is {value}, not within {self.minimum} and {self.maximum}")
        return value


@dataclass(frozen=True, kw_only=True)
class Text(Field):
    """A string."""

    def _checked(self, value: object, sizes: Sizes) -> object:
        if not isinstance(value, str):
            raise SchemaError(f"is a {type(value).__name__}, not a string")
        return value


@dataclass(frozen=True, kw_only=True)
class PlainDict(Field):
    """A dict of strings to strings, numbers, True, False and None."""

    def _checked(self, value: object, sizes: Sizes) -> object:
        if not isinstance(value, dict):
            raise SchemaError(f"is a {type(value).__name__}, not a dict")
        for key, item in value.items():
            plain = item is None or isinstance(item, str | bool | np.bool_) or is_number(item)
            if not (isinstance(key, str) and plain):
                raise SchemaError(f"has the entry {key!r:.50} of type {type(item).__name__}")
        return value


@dataclass(frozen=True, kw_only=True)
class TextLists(Field):
    """A dict of strings to lists of strings."""

    def _checked(self, value: object, sizes: Sizes) -> object:
        if not isinstance(value, dict):
            raise SchemaError(f"is a {type(value).__name__}, not a dict")
        for key, item in value.items():
            if not (isinstance(key, str) and isinstance(item, list) and all(isinstance(text, str) for text in item)):
                raise SchemaError(f"has at {key!r:.50} no list of strings")
        return value


@dataclass(frozen=True, kw_only=True)
class Trace(Field):
    """A dict of strings to lists of numbers, or to further such dicts: the record of a fit."""

    def _checked(self, value: object, sizes: Sizes) -> object:
        if not isinstance(value, dict):
            raise SchemaError(f"is a {type(value).__name__}, not a dict")
        for key, item in value.items():
            if not isinstance(key, str):
                raise SchemaError(f"has the key {key!r:.50}, not a string")
            if isinstance(item, dict):
                self._checked(item, sizes)
            elif not isinstance(item, list) or not all(number is None or is_number(number) for number in item):
                raise SchemaError(f"has at {key!r:.50} no list of numbers")
        return value


@dataclass(frozen=True, init=False)
class _Shaped(Field):
    """A value with a shape: for each axis a size, the name of a size, or ``2 * name`` or ``name - 1``."""

    shape: tuple[str | int, ...] = ()
    kinds: ClassVar[str] = ""

    def __init__(self, *shape: str | int, **options: object):
        object.__setattr__(self, "shape", shape)
        for name in ("nullable", "required", "default", *self._options()):
            object.__setattr__(self, name, options.pop(name, getattr(type(self), name)))
        if options:
            raise TypeError(f"unknown options {', '.join(options)}")

    @classmethod
    def _options(cls) -> tuple[str, ...]:
        return ()

    def sizes(self, value: object) -> Sizes:
        """The sizes that the axes name."""
        shape = getattr(value, "shape", ())
        if len(shape) != len(self.shape):
            return {}
        named = zip(self.shape, shape, strict=True)
        return {axis: size for axis, size in named if isinstance(axis, str) and _BINDS.fullmatch(axis)}

    def _check_shape(self, value: np.ndarray | SparseMatrix, sizes: Sizes) -> None:
        wanted = tuple(_size(axis, sizes) for axis in self.shape)
        if value.shape != wanted:
            raise SchemaError(f"has shape {value.shape}, not {wanted}")


@dataclass(frozen=True, init=False)
class Array(_Shaped):
    """An array of numbers, as ``Array("n_support", "n_features", minimum=0.0)``.

    ``dtype`` is "float64", "int64", or "floating" for float32 or float64; ``finite``, ``minimum``, ``maximum`` and
    ``ascending``, each value larger than the one before, are conditions on all values. The checked array is
    C-contiguous unless the order of its axes does not matter (``any_order``).
    """

    dtype: str = "float64"
    finite: bool = True
    minimum: float = -math.inf
    maximum: float = math.inf
    ascending: bool = False
    any_order: bool = False

    @classmethod
    def _options(cls) -> tuple[str, ...]:
        return "dtype", "finite", "minimum", "maximum", "ascending", "any_order"

    def _checked(self, value: object, sizes: Sizes) -> object:
        allowed = [np.dtype(name) for name in _FLOATING] if self.dtype == "floating" else [np.dtype(self.dtype)]
        if not isinstance(value, np.ndarray) or value.dtype not in allowed or not value.dtype.isnative:
            raise SchemaError(f"is {_kind(value)}, not an array of {self.dtype}")
        self._check_shape(value, sizes)
        if self.finite and not np.isfinite(value).all():
            raise SchemaError("has values that are not finite")
        if value.size and ((value < self.minimum).any() or (value > self.maximum).any()):
            raise SchemaError(f"has values that are not within {self.minimum} and {self.maximum}")
        if self.ascending and (value[1:] <= value[:-1]).any():
            raise SchemaError("has values that do not ascend")
        # methods that continue learning change it in place, in contiguous memory
        return np.require(value, requirements=["A", "W"] if self.any_order else ["C", "A", "W"])


@dataclass(frozen=True, kw_only=True)
class RowCounts(Field):
    """A number of rows; or such a number for each feature, as scikit-learn's scalers have it if values are missing."""

    def _checked(self, value: object, sizes: Sizes) -> object:
        if not isinstance(value, np.ndarray):
            return Number(minimum=0.0).checked(value, sizes)
        return Array("n_features", dtype="int64" if value.dtype.kind == "i" else "float64", minimum=0.0).checked(
            value, sizes
        )


@dataclass(frozen=True, init=False)
class Texts(_Shaped):
    """An array of strings."""

    def _checked(self, value: object, sizes: Sizes) -> object:
        if not isinstance(value, np.ndarray) or value.dtype.kind not in "OU":
            raise SchemaError(f"is {_kind(value)}, not an array of strings")
        self._check_shape(value, sizes)
        if not all(isinstance(word, str) for word in value.reshape(-1).tolist()):
            raise SchemaError("has values that are not strings")
        return value


@dataclass(frozen=True, init=False)
class Matrix(_Shaped):
    """An array of float32 or float64 in two dimensions, or a CSR matrix; all its values are finite."""

    def _checked(self, value: Any, sizes: Sizes) -> object:
        if not is_sparse(value):
            return Array(*self.shape, dtype="floating", any_order=True)._checked(value, sizes)
        if value.dtype not in map(np.dtype, _FLOATING):
            raise SchemaError(f"holds {value.dtype}, not float32 or float64")
        self._check_shape(value, sizes)
        if not np.isfinite(value.data).all():
            raise SchemaError("has values that are not finite")
        return value


Schema = Mapping[str, Field]


def schema_of(cls: type) -> Schema:
    """The fields that a class and its bases declare."""
    found: dict[str, Field] = {}
    for base in reversed(cls.__mro__):
        found |= vars(base).get("_fitted_schema", {})
    return found


def checked_attributes(owner: str, schema: Schema, fitted: Mapping[str, Any]) -> dict[str, Any]:
    """The fitted attributes of an object, in the form that its methods take; an empty dict if it is not fitted.

    Parameters
    ----------
    owner : str
        Name of the class, for messages.
    schema : mapping of str to Field
        Its attributes.
    fitted : mapping of str to object
        The values.

    Returns
    -------
    dict of str to object
        The values; attributes that earlier versions did not write have their defaults.

    Raises
    ------
    SchemaError
        When an attribute is unknown, missing, of another type or shape, or does not agree with the others.
    """
    if not fitted:
        return {}
    for name in fitted:
        if name not in schema:
            raise SchemaError(f"{owner} has no fitted attribute {name!r}")
    missing = [n for n, field in schema.items() if n not in fitted and field.required and field.default is _REQUIRED]
    if missing:
        raise SchemaError(f"the fitted attribute {missing[0]!r} of {owner} is missing")
    fitted = dict(fitted)
    for name, field in schema.items():
        if field.default is not _REQUIRED:
            fitted.setdefault(name, field.default)
    sizes: Sizes = {}
    # numbers that define a size come before arrays of that size
    for name in sorted(fitted, key=lambda name: not isinstance(schema[name], Number)):
        for size, value in schema[name].sizes(fitted[name]).items():
            sizes.setdefault(size, value)
    checked = {}
    for name, value in fitted.items():
        try:
            checked[name] = schema[name].checked(value, sizes)
        except SchemaError as error:
            raise SchemaError(f"{name!r} of {owner} {error}") from None
    return checked


def _size(axis: str | int, sizes: Sizes) -> int | None:
    if isinstance(axis, int):
        return axis
    if (found := _TIMES.fullmatch(axis)) is not None:
        size = sizes.get(found[2])
        return None if size is None else int(found[1]) * size
    if (found := _MINUS.fullmatch(axis)) is not None:
        size = sizes.get(found[1])
        return None if size is None else size - int(found[2])
    return sizes.get(axis)


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond float64
        return False


def _kind(value: object) -> str:
    return f"an array of {value.dtype}" if isinstance(value, np.ndarray) else f"a {type(value).__name__}"


# Classes of scikit-learn that a model file may contain, and the schemas of their fitted attributes.
_FEATURES: Schema = {
    "n_features_in_": Number(integer=True, minimum=1, size="n_features"),
    "feature_names_in_": Texts("n_features", required=False),
}


def _columns(*names: str, nullable: bool = False) -> dict[str, Field]:
    return {name: Array("n_features", dtype="floating", nullable=nullable) for name in names}


# Public name of each class -> the module from which it is imported.
SKLEARN_CLASSES = {
    "StandardScaler": "sklearn.preprocessing",
    "MinMaxScaler": "sklearn.preprocessing",
    "MaxAbsScaler": "sklearn.preprocessing",
    "RobustScaler": "sklearn.preprocessing",
    "Pipeline": "sklearn.pipeline",
}
SKLEARN_SCHEMAS: dict[str, Schema] = {
    "StandardScaler": {
        **_FEATURES,
        **_columns("mean_", "var_", "scale_", nullable=True),
        "n_samples_seen_": RowCounts(),
    },
    "MinMaxScaler": {
        **_FEATURES,
        **_columns("min_", "scale_", "data_min_", "data_max_", "data_range_"),
        "n_samples_seen_": Number(minimum=0.0),
    },
    "MaxAbsScaler": {**_FEATURES, **_columns("max_abs_", "scale_"), "n_samples_seen_": Number(minimum=0.0)},
    "RobustScaler": {**_FEATURES, **_columns("center_", "scale_", nullable=True)},
    "Pipeline": {},
}
