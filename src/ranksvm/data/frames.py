"""DataFrames of pandas, polars, pyarrow and others, through narwhals: validation and conversion to arrays."""

import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeGuard, overload

import numpy as np
from numpy.typing import ArrayLike

from ranksvm._util.checks import check_unmasked, is_sparse
from ranksvm._util.lazy import first_import
from ranksvm._util.sparse_format import check_sparse_format, contiguous
from ranksvm._util.types import DataFrame, Features, MatrixLike
from ranksvm.data.device_features import DeviceFeatures, device_features
from ranksvm.data.numeric_column import is_plain_vector
from ranksvm.device.arrays import foreign, host_sparse, host_values, is_on_device
from ranksvm.exceptions import DataError, MissingDependencyError

if TYPE_CHECKING:
    import narwhals.stable.v2 as nw

__all__ = [
    "CONTENTS",
    "column",
    "column_names",
    "columns_with_missing",
    "drop_column",
    "has_column",
    "is_frame",
    "is_missing",
    "library",
    "refuse_containers",
    "refuse_reserved_columns",
    "reserved_column",
    "split_qid",
    "stacked",
    "table_from",
    "take_rows",
    "text_columns",
    "texts",
    "validated",
    "with_columns",
]

# Parameter -> contents of the column that it takes; no parameter takes an index.
CONTENTS = {"qid": "ids of queries", "docid": "ids of documents", "label": "labels", "index": "an index of pandas"}
# names that nearly always mean ids or labels -> parameter: such a column is not used as a feature
_NAMES = {
    "qid": "qid",
    "queryid": "qid",
    "groupid": "qid",
    "session": "qid",
    "sessionid": "qid",
    "docid": "docid",
    "document": "docid",
    "documentid": "docid",
    "label": "label",
    "relevance": "label",
    "grade": "label",
    "rel": "label",
}
# names of columns in CSV and Parquet files to which pandas wrote the index of a DataFrame, as other readers see them
_INDEX = re.compile(r"(Unnamed: 0(\.\d+)?|__index_level_\d+__)?")
# The column of a DataFrame that XGBoost uses as the query ids.
QID = "qid"
# Number of columns written at a time into an array of rows: a cache line of float32 values.
_COLUMNS = 16
# Lower limit on the number of values written at a time; a copy of so small a block takes little memory.
_BLOCK_VALUES = 1 << 18
# Containers of features, labels and queries in other packages for learning to rank.
_CONTAINERS = ("xgboost.DMatrix", "xgboost.QuantileDMatrix", "lightgbm.Dataset", "catboost.Pool")
# Expression that selects the features of a fit in pandas and polars.
_SELECTED = "X[model.feature_names_in_]"
# Largest number of columns named in an error message.
_NAMED = 5
# Parameter -> remedy for a column whose name suggests that it holds the values of the parameter.
_ADVICE = {
    "qid": "name it, qid={!r}; or drop it if the ids are given apart",
    "docid": "drop it",
    "label": "pass it as y and drop it from X",
    "index": "drop it",
}
_NO_LABELS = object()


def _narwhals() -> ModuleType:
    try:
        with first_import():
            import narwhals.stable.v2 as narwhals
    except ImportError:
        raise MissingDependencyError(
            "reading a DataFrame needs narwhals, which scikit-learn includes from 1.9 on: "
            'pip install "ranksvm[dataframe]", or pass arrays (X.to_numpy())'
        ) from None
    return narwhals


def is_frame(X: object) -> TypeGuard[DataFrame]:
    """Whether X is a DataFrame of pandas or polars, a pyarrow Table, or another table that narwhals supports.

    Raises
    ------
    DataError
        When X is lazy: it holds a query plan and no data.
    """
    if type(X).__name__ == "LazyFrame":
        raise DataError("X is a LazyFrame, which holds no data yet: pass X.collect().")
    if not hasattr(X, "columns") or isinstance(X, np.ndarray) or is_sparse(X):
        return False
    nw = _narwhals()
    if nw.dependencies.is_into_dataframe(X):
        return True
    if nw.dependencies.is_dask_dataframe(X):
        raise DataError("X is a dask DataFrame: pass X.compute(), or fit it with the estimators in ranksvm.dask.")
    if isinstance(nw.from_native(X, pass_through=True), nw.LazyFrame):
        kind = f"{type(X).__module__.partition('.')[0]}.{type(X).__name__}"
        raise DataError(f"X is of type {kind}, which holds no data yet: convert it to pandas, polars or pyarrow.")
    return False


def _frame(X: object) -> "nw.DataFrame":
    nw = _narwhals()
    try:
        with first_import():  # of narwhals' module for this library
            frame = nw.from_native(X, eager_only=True)
            _ = frame.columns
    except nw.exceptions.DuplicateError as error:
        twice = " ".join(str(error).split())
        raise DataError(f"X has two columns with the same name: rename one of them. {twice}") from None
    return frame


def has_column(X: object, name: object) -> bool:
    """Whether X is a DataFrame with a column of that name; False if ``name`` is not a string."""
    return isinstance(name, str) and is_frame(X) and name in _frame(X).columns


def column(X: DataFrame, name: str) -> np.ndarray:
    """A column of a DataFrame as an array; missing values are None or NaN."""
    return np.asarray(_frame(X).get_column(name).to_numpy())


def drop_column(X: DataFrame, name: str) -> DataFrame:
    """A DataFrame of the same library, without one of the columns."""
    return _frame(X).drop(name).to_native()


def text_columns(X: DataFrame, among: Collection[str] | None = None) -> list[str]:
    """Names of the columns of a DataFrame that hold strings, categories, or Python objects that are not numbers.

    Only those in ``among`` are looked at, if it is given.
    """
    nw, frame = _narwhals(), _frame(X)
    found = []
    for name, kind in frame.schema.items():
        if among is not None and name not in among:
            continue
        is_object = kind in (nw.Object, nw.Unknown) and not _is_numbers(frame.get_column(name))
        if is_object or kind in (nw.String, nw.Categorical, nw.Enum):
            found.append(name)
    return found


def is_missing(X: DataFrame, name: str) -> bool:
    """Whether a column of a DataFrame has no value in any row."""
    return bool(_missing(_frame(X).get_column(name)).all())


def columns_with_missing(X: MatrixLike) -> np.ndarray:
    """Which columns of features, of any type that ``fit`` takes, have a missing value: bool, shape (n_features,)."""
    if is_frame(X):
        frame = _frame(X)
        return np.array([_missing(frame.get_column(name)).any() for name in frame.columns], dtype=bool)
    if is_sparse(X):
        entries, found = X.tocoo(), np.zeros(X.shape[1], dtype=bool)
        found[entries.col[np.isnan(entries.data)]] = True
        return found
    values = np.asarray(X)
    return np.isnan(values if values.dtype.kind in "biuf" else values.astype(np.float64)).any(axis=0)


def _missing(values: "nw.Series") -> "nw.Series":
    """Whether each value of a column is missing."""
    return values.is_null() | (values.is_nan() if values.dtype.is_float() else values.is_null())


def texts(X: DataFrame, name: str) -> list[str | None]:
    """The values of a column of a DataFrame as text; None for a missing value."""
    values = _frame(X).get_column(name)
    pairs = zip(values.to_list(), values.is_null().to_list(), strict=True)
    return [None if missing else str(value) for value, missing in pairs]


def with_columns(X: DataFrame, columns: Mapping[str, np.ndarray]) -> DataFrame:
    """A DataFrame of the same library, with other values in some of the columns."""
    nw, frame = _narwhals(), _frame(X)
    series = [nw.new_series(name, values, backend=frame.implementation) for name, values in columns.items()]
    if frame.implementation.is_pandas_like():
        series = [nw.maybe_set_index(each, index=nw.maybe_get_index(frame)) for each in series]
    return frame.with_columns(series).to_native()


def split_qid(X: MatrixLike, qid: ArrayLike | None) -> tuple[MatrixLike, ArrayLike | None, str | None]:
    """Split X into features and query ids, and return the name of the column of X that contained the ids.

    The column is the one that ``qid`` names, or, as in XGBoost, a column "qid" if ``qid`` is None.

    Raises
    ------
    DataError
        When X has no such column, or is not an array of features (`refuse_containers`).
    """
    refuse_containers(X)
    if qid is None and has_column(X, QID):
        qid = QID
    if not isinstance(qid, str):
        return X, qid, None
    if not is_frame(X):
        raise DataError(
            f"qid={qid!r} names a column, but X is not a DataFrame (an earlier step of a Pipeline may have "
            "converted it to an array). Give one query id per row."
        )
    if not has_column(X, qid):
        raise DataError(f"qid={qid!r} names a column, but X has no such column: give one query id per row.")
    return drop_column(X, qid), column(X, qid), qid


def reserved_column(names: Iterable[str]) -> tuple[str, str] | None:
    """The first name that usually means ids, labels or an index, and the parameter that takes such a column.

    Names of ids and labels may have any spelling: ``Query-ID`` counts as ``query_id``. The parameter is a key of
    `CONTENTS`. The result is None if there is no such name.
    """
    for name in names:
        if _INDEX.fullmatch(str(name)):
            return name, "index"
        if (parameter := _NAMES.get(re.sub(r"[\W_]", "", str(name)).lower())) is not None:
            return name, parameter
    return None


def refuse_reserved_columns(names: Iterable[str], y: object = None) -> None:
    """Raise DataError if a column of features is named like ids, labels or an index.

    Parameters
    ----------
    names : iterable of str
        Names of the columns of features.
    y : object, optional
        Labels. If they are a Series, its name is also refused as the name of a feature.

    Raises
    ------
    DataError
        When there is such a column.
    """
    names = list(names)
    if reserved := reserved_column(names):
        column, parameter = reserved
        raise DataError(
            f"X has a column {column!r}, which is named like {CONTENTS[parameter]}, not like a feature: "
            f"{_ADVICE[parameter].format(column)}; or rename it if it is a feature."
        )
    name = getattr(y, "name", None)
    # a number is the position of a column in a DataFrame without names
    if isinstance(name, str) and name in names:
        raise DataError(
            f"X has a column {name!r}, which is also the name of y: the model would learn the labels from themselves. "
            "Drop the column from X; or, if it is a feature and not a copy of the labels, pass y.to_numpy(), which has "
            "no name."
        )


def column_names(X: object) -> list[str]:
    """Names of the columns of a DataFrame; none for anything else."""
    return list(_frame(X).columns) if is_frame(X) else []


def refuse_containers(X: object) -> None:
    """Raise DataError, saying what to pass instead, for an object that contains features but is no plain array of them.

    Parameters
    ----------
    X : object
        The argument X.

    Raises
    ------
    DataError
        When X is RankingData, data of XGBoost, LightGBM or CatBoost, a path, or dicts, or has masked values.
    """
    if is_sparse(X):  # one sparse format is a dict
        return
    check_unmasked("X", X)
    kind = f"{type(X).__module__.partition('.')[0]}.{type(X).__name__}"
    if kind == "ranksvm.RankingData":
        np.asarray(X)  # raises the error that says what to pass instead
    if kind in _CONTAINERS:
        raise DataError(
            f"X is of type {kind}: pass the features that it was made of (an array, a sparse matrix or a DataFrame), "
            "the labels as y, and the queries as qid= or group=."
        )
    if isinstance(X, str | os.PathLike):
        raise DataError(
            f"X is {os.fspath(X)!r}: read the file first, data = ranksvm.datasets.read_data(path), and pass X=data.X, "
            "y=data.y, qid=data.qid."
        )
    if isinstance(X, Mapping) or (isinstance(X, list) and X and isinstance(X[0], Mapping)):
        raise DataError("X consists of dicts: pass a DataFrame, such as pandas.DataFrame(X), or an array.")


def library(X: object) -> str | None:
    """Name of the library of a DataFrame, such as "pandas" or "polars"; None for anything else.

    For `Preferences`, the library of the chosen answers.
    """
    from ranksvm.data.preferences import Preferences  # that module imports this one

    if isinstance(X, Preferences):
        X = X.blocks[0]
    return str(_frame(X).implementation.value) if is_frame(X) else None


def _frame_from(columns: Mapping[str, np.ndarray], name: str) -> DataFrame | None:
    """Create a DataFrame of the named library; None if the library is not installed."""
    # not every library accepts NumPy strings
    lists = {key: values.tolist() for key, values in columns.items()}
    try:
        return _narwhals().from_dict(lists, backend=name).to_native()
    except (ImportError, ValueError, TypeError):  # not installed, or no such library (a file may have named it)
        return None


@overload
def table_from(columns: Mapping[str, np.ndarray], name: None) -> np.ndarray: ...
@overload
def table_from(columns: Mapping[str, np.ndarray], name: str | None) -> DataFrame | np.ndarray: ...
def table_from(columns: Mapping[str, np.ndarray], name: str | None) -> DataFrame | np.ndarray:
    """A DataFrame of the named library if it is installed, else a structured array."""
    frame = None if name is None else _frame_from(columns, name)
    if frame is not None:
        return frame
    length = len(next(iter(columns.values())))
    table = np.empty(length, dtype=[(key, values.dtype) for key, values in columns.items()])
    for key, values in columns.items():
        table[key] = values
    return table


def take_rows(values: Any, rows: np.ndarray) -> Any:
    """Some rows of an array, sparse matrix, DataFrame or list.

    Parameters
    ----------
    values : array-like, sparse matrix or DataFrame
        Something with rows; a matrix may be on a GPU.
    rows : ndarray of int
        Row numbers.

    Returns
    -------
    ndarray, CSR matrix, DataFrame of the same library, or DeviceFeatures
        The rows; rows of a matrix on a GPU stay on it.
    """
    values = host_sparse(values)
    if isinstance(values, DeviceFeatures) or (is_on_device(values) and len(foreign(values).shape) == 2):
        on_device = device_features(values)
        assert on_device is not None
        return on_device[rows]
    values = host_values(values)
    if is_sparse(values):
        return values.tocsr()[rows]
    return _frame(values)[rows, :].to_native() if is_frame(values) else np.asarray(values)[rows]


def stacked(*blocks: Any) -> Any:
    """The rows of arrays, sparse matrices or DataFrames (of one kind), one after the other: a copy."""
    if any(map(is_sparse, blocks)):
        from scipy import sparse

        return sparse.vstack(blocks, format="csr")
    if all(map(is_frame, blocks)):
        return _narwhals().concat([_frame(block) for block in blocks], how="vertical").to_native()
    return np.concatenate([np.asarray(block) for block in blocks])


def validated(
    estimator: object, X: MatrixLike, y: object = _NO_LABELS, *, reset: bool, y_numeric: bool = False, **checks: Any
) -> Any:
    """``sklearn.utils.validation.validate_data`` for X of any kind, including DataFrames of any library.

    Parameters
    ----------
    estimator : object
        Estimator in which the number and names of the features are stored (``reset``), or with which they are compared.
    X : array-like, sparse matrix or DataFrame of shape (n_rows, n_features)
        Features.
    y : array-like of shape (n_rows,)
        Labels, if they are required: None is refused.
    reset : bool
        Whether the features are stored rather than compared.
    y_numeric : bool
        Whether y must hold numbers.
    **checks : dict
        Arguments of `sklearn.utils.check_array`.

    Returns
    -------
    X, or X and y
        As arrays or CSR.

    Raises
    ------
    ValueError
        As raised by `validate_data`; DataError if a column is not numeric, if the columns or their order are not as
        in the fit, or (with ``reset``) if a column is named like ids, labels or an index.
    """
    from sklearn.utils.validation import check_array, check_X_y, validate_data

    if is_on_device(X):
        name = type(estimator).__name__
        raise DataError(f"X is on a GPU, but {name} needs it in host memory: copy it with X.get() or X.cpu().")
    refuse_containers(X)
    if not is_frame(X):
        if is_sparse(X):
            check_sparse_format(X)
            X = contiguous(X.tocsr()) if X.format == "csr" else X
        if isinstance(X, np.ndarray) and X.dtype.kind in "mM":
            raise DataError(f"features must be numbers, but X has the type {X.dtype}: encode the times as numbers.")
        if y is _NO_LABELS:
            return validate_data(estimator, X, reset=reset, **checks)
        if is_plain_vector(y, X):
            # the checks of scikit-learn would take as long as all other work
            return validate_data(estimator, X, reset=reset, **checks), y
        return validate_data(estimator, X, y, reset=reset, y_numeric=y_numeric, **checks)
    _refuse_mixed_names(X)
    frame = _frame(X)
    if reset:
        refuse_reserved_columns(frame.columns)
    try:
        validate_data(estimator, _named(X, frame), reset=reset, skip_check_array=True)
    except ValueError as error:
        raise _with_advice(error, estimator, frame) from error
    array = _features(frame)
    if y is _NO_LABELS:
        return check_array(array, estimator=estimator, input_name="X", **checks)
    return check_X_y(array, y, estimator=estimator, y_numeric=y_numeric, **checks)


def _refuse_mixed_names(X: object) -> None:
    """Raise DataError if some names of columns are strings and others are not."""
    names = list(X.columns) if hasattr(X, "columns") else []
    others = [name for name in names if not isinstance(name, str)]
    if others and len(others) < len(names):
        raise DataError(
            f"X has {len(names) - len(others)} columns whose names are strings and {len(others)} whose names are not, "
            f"such as {others[0]!r}: rename them all to strings, X.columns = X.columns.astype(str)."
        )


def _with_advice(error: ValueError, estimator: object, frame: "nw.DataFrame") -> ValueError:
    """Scikit-learn's error about feature names, plus the expression that selects the fit's features if X has them."""
    names = getattr(estimator, "feature_names_in_", None)
    if names is None or list(names) == list(frame.columns):
        return error
    if set(names) <= set(frame.columns):
        selected = "X.select(model.feature_names_in_)" if frame.implementation.is_pyarrow() else _SELECTED
        too = "" if getattr(estimator, "qid_column_", None) is None else ", and keep the column of query ids,"
        advice = f"X has every feature of the fit: select these{too} with {selected} of the fitted model."
    else:
        advice = "X must have the columns of the fit, which are in feature_names_in_, by the same names."
    return DataError(f"{str(error).rstrip()}\n{advice}")


class _Names:
    """Implements as much of the interchange protocol as scikit-learn before 1.9 uses to read names of features."""

    def __init__(self, frame: "nw.DataFrame"):
        self.shape = frame.shape
        self._names = frame.columns

    def __dataframe__(self) -> "_Names":
        return self

    def column_names(self) -> list[str]:
        return self._names


def _named(X: DataFrame, frame: "nw.DataFrame") -> object:
    """An object whose column names scikit-learn can read: before 1.9, only pandas or the interchange protocol."""
    import sklearn

    knows_narwhals = tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 9)
    return X if knows_narwhals or frame.implementation.is_pandas() else _Names(frame)


def _features(frame: "nw.DataFrame") -> Features:
    """The columns of a narwhals DataFrame as a matrix: float32 if that is lossless, copied only if necessary.

    Raises DataError if a column is not numeric.
    """
    native = frame.to_native()
    pandas_types = set(native.dtypes.tolist()) if frame.implementation.is_pandas_like() else set()
    if _all_sparse(pandas_types):
        return native.sparse.to_coo().tocsr()
    # Each type is checked once: a check of every column would take longer than scoring a hundred rows.
    plain = bool(pandas_types) and all(isinstance(kind, np.dtype) and kind.kind in "biuf" for kind in pandas_types)
    dtype = _float_type(list(pandas_types)) if plain else _float_type(_column_types(frame))
    if pandas_types == {dtype}:
        return native.to_numpy()
    out = np.empty(frame.shape, dtype=dtype)
    read = _numpy_columns if plain or _is_plain_polars(frame) else _any_columns
    n_columns = max(_COLUMNS, _BLOCK_VALUES // max(1, len(out)))
    for start in range(0, out.shape[1], n_columns):
        stop = min(start + n_columns, out.shape[1])
        out[:, start:stop] = read(frame, start, stop, dtype)
    return out


def _all_sparse(types: Collection[Any]) -> bool:
    return bool(types) and all(type(kind).__name__ == "SparseDtype" for kind in types)


def _is_plain_polars(frame: "nw.DataFrame") -> bool:
    """Whether this is a polars DataFrame whose columns all have a NumPy type, so that a missing value becomes NaN."""
    if not frame.implementation.is_polars():
        return False
    return all((kind.is_integer() or kind.is_float()) and _numpy_name(kind) for kind in set(frame.schema.values()))


def _numpy_columns(frame: "nw.DataFrame", start: int, stop: int, dtype: np.dtype) -> np.ndarray:
    """Convert several columns at once; all have NumPy types."""
    native = frame.to_native()
    if stop - start < frame.shape[1]:
        native = native.iloc[:, start:stop] if frame.implementation.is_pandas_like() else native[:, start:stop]
    return native.to_numpy().astype(dtype, copy=False)


def _any_columns(frame: "nw.DataFrame", start: int, stop: int, dtype: np.dtype) -> np.ndarray:
    """Convert columns of any types one after another."""
    return np.array([_numbers(frame[:, place], dtype) for place in range(start, stop)], dtype=dtype).T


def _numpy_name(kind: object) -> str | None:
    """Name of the NumPy type of a narwhals type; None if there is none, as for 128-bit integers."""
    name = str(kind).lower()
    return name if name in np.sctypeDict else None


def _float_type(types: Sequence[np.dtype]) -> np.dtype:
    """float32 if it holds the values of all types, else float64."""
    return np.dtype(np.float32) if types and np.result_type(*types) == np.float32 else np.dtype(np.float64)


def _column_types(frame: "nw.DataFrame") -> list[np.dtype]:
    """Distinct NumPy types that can hold the columns' values; DataError names the columns that are not numeric."""
    nw = _narwhals()
    schema = frame.schema
    types: dict[Any, np.dtype | None] = {}
    for kind in set(schema.values()):
        if kind == nw.Boolean:
            types[kind] = np.dtype(bool)
        elif kind.is_integer() or kind.is_float():
            types[kind] = np.dtype(_numpy_name(kind) or np.float64)
        else:
            types[kind] = np.dtype(np.float64) if kind.is_numeric() else None
    unknown = [(place, name) for place, (name, kind) in enumerate(schema.items()) if types[kind] is None]
    bad = [name for place, name in unknown if not _is_numbers(frame[:, place])]
    if bad:
        named = ", ".join(f"{name!r} ({schema[name]})" for name in bad[:_NAMED])
        more = f" and {len(bad) - _NAMED} more" if len(bad) > _NAMED else ""
        raise DataError(
            f"features must be numbers, but X has {'columns' if len(bad) > 1 else 'the column'} "
            f"{named}{more}: encode or drop such columns. A column of query ids is named by "
            "qid='<column>'."
        )
    return [np.dtype(np.float64) if kind is None else kind for kind in types.values()]


def _is_numbers(values: "nw.Series") -> bool:
    """Whether a column of Python objects, or of a type that narwhals does not know, holds numbers."""
    nw = _narwhals()
    if values.dtype not in (nw.Object, nw.Unknown):
        return False
    array = np.asarray(values.to_numpy())
    if array.dtype.kind == "c":  # NumPy would drop the imaginary parts
        return False
    try:
        array.astype(np.float64)
    except (TypeError, ValueError):
        return False
    return True


def _numbers(values: "nw.Series", dtype: np.dtype) -> np.ndarray:
    nw = _narwhals()
    if values.dtype.is_integer():
        # not cast: pyarrow refuses to round integers beyond 2^53
        missing = values.is_null().to_numpy()
        numbers = values.fill_null(0).to_numpy().astype(dtype)
        numbers[missing] = np.nan
        return numbers
    if not values.dtype.is_float() and values.dtype not in (nw.Object, nw.Unknown):
        # a missing boolean or decimal becomes NaN
        values = values.cast(nw.Float32 if dtype == np.float32 else nw.Float64)
    return np.asarray(values.to_numpy(), dtype=dtype)
