"""DataFrames of pandas, polars, pyarrow and others, through narwhals: columns judged, taken, made into arrays."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
import sklearn
from sklearn.utils.validation import check_array, check_X_y, validate_data

from ranksvm.exceptions import DataError, MissingDependencyError

__all__ = [
    "column",
    "drop_column",
    "frame_from",
    "has_column",
    "is_frame",
    "library",
    "split_qid",
    "take_rows",
    "validated",
]

# Columns written at a time into an array of rows: of float32, a cache line.
_COLUMNS = 16
# Columns named in a complaint at most.
_NAMED = 5
_NO_LABELS = object()


def _narwhals() -> Any:
    try:
        import narwhals.stable.v2 as narwhals
    except ImportError:
        raise MissingDependencyError(
            "reading a DataFrame needs narwhals, which scikit-learn brings from 1.9 on: "
            "pip install 'ranksvm[dataframe]', or pass arrays (X.to_numpy())"
        ) from None
    return narwhals


def is_frame(X: Any) -> bool:
    """Whether X is a DataFrame: of pandas, polars, a pyarrow Table, or another that narwhals knows.

    Raises
    ------
    DataError
        When X is lazy: it holds a plan and no data.
    """
    if type(X).__name__ == "LazyFrame":
        raise DataError("X is a LazyFrame, which holds no data yet: pass X.collect().")
    if not hasattr(X, "columns") or isinstance(X, np.ndarray) or sp.issparse(X):
        return False
    return _narwhals().dependencies.is_into_dataframe(X)


def _frame(X: Any) -> Any:
    nw = _narwhals()
    try:
        frame = nw.from_native(X, eager_only=True)
        _ = frame.columns
    except nw.exceptions.DuplicateError as error:
        twice = " ".join(str(error).split())
        raise DataError(f"X has two columns of one name: rename one of them. {twice}") from None
    return frame


def has_column(X: Any, name: Any) -> bool:
    """Whether X is a DataFrame with a column of that name (which other ids than a name are not)."""
    return isinstance(name, str) and is_frame(X) and name in _frame(X).columns


def column(X: Any, name: str) -> np.ndarray:
    """A column of a DataFrame as an array; missing values are None or NaN."""
    return np.asarray(_frame(X).get_column(name).to_numpy())


def drop_column(X: Any, name: str) -> Any:
    """A DataFrame without one of its columns, of the same library."""
    return _frame(X).drop(name).to_native()


def split_qid(X: Any, qid: Any) -> tuple[Any, Any, str | None]:
    """X and the query ids, and the name of the column of X that held them if ``qid`` is one.

    Raises
    ------
    DataError
        When X has no such column.
    """
    if not isinstance(qid, str):
        return X, qid, None
    if not is_frame(X):
        raise DataError(
            f"qid={qid!r} names a column, but X has none of that name: it is no DataFrame (a step of a Pipeline before "
            "this one may have made an array of it). Give one query id per row."
        )
    if not has_column(X, qid):
        raise DataError(f"qid={qid!r} names a column, but X has none of that name: give one query id per row.")
    return drop_column(X, qid), column(X, qid), qid


def library(X: Any) -> str | None:
    """Name of the library a DataFrame is of, such as "pandas" or "polars"; None for anything else."""
    return str(_frame(X).implementation.value) if is_frame(X) else None


def frame_from(columns: Mapping[str, np.ndarray], name: str) -> Any:
    """A DataFrame of the library of that name, or None where it is not installed."""
    # not every library takes NumPy's strings
    lists = {key: values.tolist() for key, values in columns.items()}
    try:
        return _narwhals().from_dict(lists, backend=name).to_native()
    except ImportError:
        return None


def take_rows(values: Any, rows: np.ndarray) -> Any:
    """Some rows of an array, sparse matrix, DataFrame or list.

    Parameters
    ----------
    values : array-like, sparse matrix or DataFrame
        Something with rows.
    rows : ndarray of int
        Row numbers.

    Returns
    -------
    ndarray, CSR matrix, or DataFrame of the same library
        The rows.
    """
    if sp.issparse(values):
        return values.tocsr()[rows]
    return _frame(values)[rows, :].to_native() if is_frame(values) else np.asarray(values)[rows]


def validated(
    estimator: Any, X: Any, y: Any = _NO_LABELS, *, reset: bool, y_numeric: bool = False, **checks: Any
) -> Any:
    """``sklearn.utils.validation.validate_data`` for X of any kind, DataFrames of any library among them.

    Parameters
    ----------
    estimator : object
        Whose number and names of features are noted (``reset``) or compared.
    X : array-like, sparse matrix or DataFrame of shape (n_rows, n_features)
        Features.
    y : array-like of shape (n_rows,)
        Labels, if there are to be any: None is refused.
    reset : bool
        Whether the features are noted rather than compared.
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
        As `validate_data` raises it; DataError where a column holds no numbers.
    """
    if not is_frame(X):
        labels = {} if y is _NO_LABELS else {"y": y, "y_numeric": y_numeric}
        return validate_data(estimator, X, reset=reset, **labels, **checks)
    frame = _frame(X)
    validate_data(estimator, _named(X, frame), reset=reset, skip_check_array=True)
    array = _features(frame)
    if y is _NO_LABELS:
        return check_array(array, estimator=estimator, input_name="X", **checks)
    return check_X_y(array, y, estimator=estimator, y_numeric=y_numeric, **checks)


class _Names:
    """The interchange protocol, as far as scikit-learn before 1.9 reads names of features by it."""

    def __init__(self, frame: Any):
        self.shape = frame.shape
        self._names = frame.columns

    def __dataframe__(self) -> "_Names":
        return self

    def column_names(self) -> list[str]:
        return self._names


def _named(X: Any, frame: Any) -> Any:
    """What scikit-learn can read the names of X from: before 1.9 it knows pandas and the interchange protocol alone."""
    knows_narwhals = tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 9)
    return X if knows_narwhals or frame.implementation.is_pandas() else _Names(frame)


def _features(frame: Any) -> Any:
    """The columns of a narwhals DataFrame as a matrix: float32 where that loses nothing, copied only if need be.

    Raises DataError where a column holds no numbers.
    """
    if _is_pandas_sparse(frame):
        return frame.to_native().sparse.to_coo().tocsr()
    dtype = _float_type(frame)
    if frame.implementation.is_pandas_like() and all(kind == dtype for kind in frame.to_native().dtypes):
        return frame.to_native().to_numpy()
    out = np.empty(frame.shape, dtype=dtype)
    columns = list(frame.iter_columns())
    for start in range(0, len(columns), _COLUMNS):
        some = columns[start : start + _COLUMNS]
        out[:, start : start + len(some)] = np.array([_numbers(values, dtype) for values in some], dtype=dtype).T
    return out


def _is_pandas_sparse(frame: Any) -> bool:
    if not frame.implementation.is_pandas():
        return False
    dtypes = list(frame.to_native().dtypes)
    return bool(dtypes) and all(type(dtype).__name__ == "SparseDtype" for dtype in dtypes)


def _float_type(frame: Any) -> np.dtype:
    """float32 if it holds the values of all columns, else float64; DataError names the columns that are no numbers."""
    types: list[np.dtype] = []
    bad = []
    for values in frame.iter_columns():
        kind = values.dtype
        name = str(kind).lower()
        if kind == _narwhals().Boolean:
            types.append(np.dtype(bool))
        elif kind.is_integer() or kind.is_float():
            # integers of 128 bits and more have no NumPy type
            types.append(np.dtype(name) if name in np.sctypeDict else np.dtype(np.float64))
        elif kind.is_numeric() or _is_numbers(values):
            types.append(np.dtype(np.float64))
        else:
            bad.append(f"{values.name!r} ({kind})")
    if bad:
        more = f" and {len(bad) - _NAMED} more" if len(bad) > _NAMED else ""
        raise DataError(
            f"features must be numbers, but X has {'columns' if len(bad) > 1 else 'the column'} "
            f"{', '.join(bad[:_NAMED])}{more}: encode or leave out such columns. A column of query ids is named by "
            "qid='<column>'."
        )
    return np.dtype(np.float32) if types and np.result_type(*types) == np.float32 else np.dtype(np.float64)


def _is_numbers(values: Any) -> bool:
    """Whether a column of Python objects, or of a type that narwhals does not know, holds numbers."""
    nw = _narwhals()
    if values.dtype not in (nw.Object, nw.Unknown):
        return False
    try:
        np.asarray(values.to_numpy(), dtype=np.float64)
    except (TypeError, ValueError):
        return False
    return True


def _numbers(values: Any, dtype: np.dtype) -> np.ndarray:
    nw = _narwhals()
    if not values.dtype.is_float() and values.dtype not in (nw.Object, nw.Unknown):
        # a missing integer, boolean or decimal is NaN
        values = values.cast(nw.Float32 if dtype == np.float32 else nw.Float64)
    return np.asarray(values.to_numpy(), dtype=dtype)
