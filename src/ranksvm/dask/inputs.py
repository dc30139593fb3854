"""The arguments of estimators on Dask: their types, and the division of the arguments of ``fit`` into parts.

dask arrays and dask Series are array-likes, as is the name of a column: `numpy.typing.ArrayLike` includes all of them.
Data are dask arrays, dask DataFrames, lists of files, or ordinary arrays.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import dask
import dask.array as da
import numpy as np
from dask.delayed import Delayed
from numpy.typing import ArrayLike

from ranksvm._util.checks import is_sparse
from ranksvm._util.types import MatrixLike, PathLike
from ranksvm.dask.listed_pairs import Listed, groups_of_rows, listed_pairs
from ranksvm.dask.rows import ROW, Columns, read_rows, rows_of
from ranksvm.data import Preferences, Queries, frames
from ranksvm.exceptions import DataError

if TYPE_CHECKING:
    from typing_extensions import TypeIs

    from ranksvm.dask.rows import Block

__all__ = [
    "DaskFeatures",
    "DaskFrame",
    "EvalSets",
    "EvalValues",
    "InputParts",
    "are_files",
    "blocks_of",
    "input_parts",
    "is_dask_frame",
]


class DaskFrame(Protocol):
    """A dask DataFrame."""

    @property
    def npartitions(self) -> int: ...
    # Any, because the value is an index of pandas
    @property
    def columns(self) -> Any: ...
    # Any, because the arguments of this method depend on the function that it calls
    @property
    def map_partitions(self) -> Any: ...


# Features as users pass them: in this process, on the cluster, or in files.
DaskFeatures = MatrixLike | DaskFrame | PathLike | Sequence[PathLike]
# One evaluation set: features and labels; features, times and events; or pairs of answers.
EvalSet = tuple[DaskFeatures, ArrayLike] | tuple[DaskFeatures, ArrayLike, ArrayLike | None] | Preferences
EvalSets = EvalSet | Sequence[EvalSet] | None
# Values for the rows of evaluation sets: for each set, or for the only one.
EvalValues = ArrayLike | Sequence[ArrayLike | None] | None

# An array of this process with more bytes than this is divided into parts of the size in dask's configuration.
CUT_BYTES = 64 << 20

# A file, or several.
Files = PathLike | list[PathLike] | tuple[PathLike, ...]
# Function that computes the row counts of parts, which are delayed values.
Count = Callable[[list[Delayed]], list[int]]


class InputParts(NamedTuple):
    """The parts of a data set, not yet computed.

    Attributes
    ----------
    rows : list of Delayed
        The `Rows` of each part.
    names : list of str
        Name of each part in error messages.
    columns : Columns
        Properties that all parts must have.
    frame_type : str or None
        Library of the DataFrames.
    listed : Listed or None
        The pairs, if the user listed them.
    files : bool
        Whether each part is a file.
    """

    rows: list[Delayed]
    names: list[str]
    columns: Columns
    frame_type: str | None = None
    listed: Listed | None = None
    files: bool = False


def input_parts(
    X: DaskFeatures,
    y: ArrayLike | None,
    qid: ArrayLike | None,
    weights: Mapping[str, ArrayLike | None],
    columns: Columns | None = None,
    *,
    group: ArrayLike | None = None,
    pairs: ArrayLike | None = None,
    pair_weight: ArrayLike | None = None,
    count: Count | None = None,
    missing: bool = False,
) -> InputParts:
    """Divide the arguments of ``fit`` into parts.

    Parameters
    ----------
    X : dask array, dask DataFrame, list of paths, or array-like
        The features, or the files.
    y, qid : dask array, dask Series, array-like or str
        Labels and query ids; for files the names of their columns.
    weights : dict
        Weights by name, as ``y``; None for those that were not given.
    columns : Columns, optional
        Properties that the parts must have, if they are known from the training data.
    group : array-like or dask array, optional
        Sizes of the queries, whose rows follow one another, instead of ids.
    pairs, pair_weight : array-like or dask array, optional
        Row numbers (preferred, other) of pairs, instead of labels, and the weight of each.
    count : callable, optional
        Computes the row counts of parts: needed for group and pairs if the sizes of the parts are unknown.
    missing : bool
        Whether values of X may be missing (NaN).

    Returns
    -------
    InputParts
        The parts.

    Raises
    ------
    DataError
        When the parts of the arguments do not match.
    """
    if are_files(X):
        refused = {**weights, "group": group, "pairs": pairs, "pair_weight": pair_weight}
        return _of_files(X, y, qid, refused, columns, missing)
    if y is None and pairs is None:
        raise DataError("y is missing: give one label for each row.")
    frame_type = None
    if is_dask_frame(X):
        qid_column = _qid_column(X, qid, columns)
        names = np.array([str(name) for name in X.columns if name != qid_column], dtype=object)
        if columns is None:
            frames.refuse_reserved_columns(names.tolist(), y)
        data: da.Array | DaskFrame = X
        frame_type, found = "pandas", Columns(len(names), names, qid_column)
        if qid_column is not None:
            qid = None
    else:
        data = _as_dask_array(X)
        found = Columns(data.shape[1])
    if group is not None and (qid is not None or found.qid is not None):
        raise DataError("give qid or group, not both.")
    if qid is None and found.qid is None and group is None and pairs is None:
        raise DataError(
            "qid is missing: give one query id for each row (or a column 'qid' of a dask DataFrame). Rows without ids "
            "would be one query, and one query needs no cluster."
        )
    blocks = blocks_of(data, "X")
    listed = None
    by_row: dict[str, ArrayLike | _Cut | None] = {"y": y, "qid": qid, **weights}
    if group is not None or pairs is not None:
        sizes = _sizes(data, blocks, count)
        n_rows = sum(sizes)
        if group is not None:
            of_group = Queries.from_group(np.asarray(group), n_rows).sizes
            by_row["qid"] = _Cut(np.repeat(np.arange(len(of_group)), of_group), sizes)
        if pairs is not None:
            listed = listed_pairs(pairs, pair_weight, n_rows)
            by_row |= {"y": _Cut(np.zeros(n_rows), sizes), ROW: _Cut(np.arange(n_rows), sizes)}
            if by_row["qid"] is None and found.qid is None:
                listed = listed.connected()
                by_row["qid"] = _Cut(groups_of_rows(listed, n_rows), sizes)
    columns = (found if columns is None else columns._replace(qid=found.qid))._replace(missing=missing)
    parts = [f"part {number}" for number in range(len(blocks))]
    others = {name: _aligned_parts(data, values, name, len(blocks)) for name, values in by_row.items()}
    rows = []
    for number, part in enumerate(parts):
        own = {name: None if values is None else values[number] for name, values in others.items()}
        arguments = blocks[number], own.pop("y"), own.pop("qid")
        rows.append(dask.delayed(rows_of, pure=False)(*arguments, own, columns, part))
    return InputParts(rows, parts, columns, frame_type, listed)


class _Cut:
    """An array of this process with a value for each row; it is divided into parts as X is."""

    def __init__(self, values: np.ndarray, sizes: Sequence[int]):
        self.blocks = np.split(values, np.cumsum(sizes)[:-1])


def _sizes(X: da.Array | DaskFrame, blocks: list[Delayed], count: Count | None) -> list[int]:
    """The number of rows of each part."""
    if isinstance(X, da.Array) and not np.isnan(X.chunks[0]).any():
        return [int(size) for size in X.chunks[0]]
    assert count is not None
    return count([dask.delayed(_n_rows, pure=False)(block) for block in blocks])


def _n_rows(block: "Block") -> int:
    return int(block.shape[0])


def are_files(X: object) -> "TypeIs[Files]":
    """Whether X is a path or a list of paths."""
    one = str | os.PathLike
    return isinstance(X, one) or (isinstance(X, list | tuple) and len(X) > 0 and all(isinstance(p, one) for p in X))


def is_dask_frame(X: object) -> "TypeIs[DaskFrame]":
    """Whether X is a dask DataFrame."""
    return dask.is_dask_collection(X) and hasattr(X, "columns") and hasattr(X, "npartitions")


def blocks_of(values: object, name: str) -> list[Delayed]:
    """The parts of a dask array or DataFrame, as delayed values.

    Parameters
    ----------
    values : dask array, DataFrame or Series
        The collection.
    name : str
        Its name in error messages.

    Returns
    -------
    list of Delayed
        Its parts, in order.
    """
    if isinstance(values, da.Array):
        if values.ndim == 2:
            values = values if values.numblocks[1] == 1 else values.rechunk({1: -1})
            return list(values.to_delayed()[:, 0])
        if values.ndim != 1:
            raise DataError(f"{name} has {values.ndim} dimensions.")
        return list(values.to_delayed())
    if hasattr(values, "to_delayed"):
        # when it is tuned, dask joins Parquet files of which few columns are read: fewer parts for y than for X
        with dask.config.set({"optimization.tune.active": False}):
            return list(values.to_delayed())
    raise DataError(f"{name} is a {type(values).__name__}, which has no parts: give a dask array or DataFrame.")


def _qid_column(X: DaskFrame, qid: ArrayLike | None, columns: Columns | None) -> str | None:
    """The column of a dask DataFrame with the query ids."""
    if qid is None:
        known = frames.QID if columns is None or columns.qid is None else columns.qid
        return known if known in X.columns else None
    if isinstance(qid, str):
        if qid not in X.columns:
            raise DataError(f"qid={qid!r} names a column, but X has no such column.")
        return qid
    return None


def _as_dask_array(X: object) -> da.Array:
    if isinstance(X, da.Array):
        if X.ndim != 2:
            raise DataError(f"X must have two dimensions, got {X.ndim}.")
        return X
    if is_sparse(X):
        raise DataError("X is a sparse matrix of this process: give a dask array whose blocks are CSR matrices.")
    if frames.is_frame(X):
        raise DataError("X is a DataFrame of this process: give dask.dataframe.from_pandas(X, npartitions=...).")
    X = np.asarray(X)
    if X.ndim != 2:
        raise DataError(f"X must have two dimensions, got {X.ndim}.")
    return da.from_array(X, chunks=("auto", -1), name=False) if X.nbytes > CUT_BYTES else da.from_array(X, chunks=-1)


def _aligned_parts(
    X: da.Array | DaskFrame, values: ArrayLike | _Cut | None, name: str, n_parts: int
) -> Sequence[Delayed | np.ndarray] | None:
    """The parts of a column that correspond to the parts of X."""
    if values is None:
        return None
    if isinstance(values, _Cut):
        return values.blocks
    if isinstance(values, str):
        if is_dask_frame(X):
            raise DataError(f"{name}={values!r}: only qid may name a column of X. Give {name}=X[{values!r}] instead.")
        raise DataError(f"{name}={values!r} names a column, but X is not a dask DataFrame.")
    sized_X = X if isinstance(X, da.Array) and not np.isnan(X.chunks[0]).any() else None
    if not dask.is_dask_collection(values):
        values = np.asarray(values)
        if sized_X is None or values.ndim == 0:
            raise DataError(f"{name} is no dask collection: give one with the same parts as X.")
    elif isinstance(values, da.Array) and values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if sized_X is not None and isinstance(values, np.ndarray | da.Array) and not np.isnan(values.shape[0]):
        if values.shape[0] != sized_X.shape[0]:
            raise DataError(f"X has {sized_X.shape[0]} rows, but {name} has {values.shape[0]}.")
        chunks = (sized_X.chunks[0],)
        if isinstance(values, np.ndarray):
            values = da.from_array(values, chunks=chunks)
        elif values.chunks[0] != chunks[0]:
            values = values.rechunk(chunks)
    blocks = blocks_of(values, name)
    if len(blocks) != n_parts:
        raise DataError(f"X has {n_parts} parts, but {name} has {len(blocks)}: give them the same parts.")
    return blocks


def _of_files(
    X: Files,
    y: ArrayLike | None,
    qid: ArrayLike | None,
    weights: Mapping[str, ArrayLike | None],
    columns: Columns | None,
    missing: bool,
) -> InputParts:
    paths: Sequence[PathLike] = X if isinstance(X, list | tuple) else [X]
    unread = [
        name for name, values in {"y": y, "qid": qid}.items() if values is not None and not isinstance(values, str)
    ]
    unread += [name for name, values in weights.items() if values is not None]
    if unread:
        raise DataError(
            f"X is a list of files, which hold labels and query ids, but {unread[0]} was also given. For weights or "
            "pairs, read the files into a dask DataFrame."
        )
    names = [f"part {number} ({path})" for number, path in enumerate(map(str, paths))]
    read = dask.delayed(read_rows, pure=False)
    known = columns or Columns(None, qid=qid if isinstance(qid, str) else None)
    named = y or "label", qid or known.qid or "qid"
    rows = [read(str(path), *named, name, columns, missing) for path, name in zip(paths, names, strict=True)]
    return InputParts(rows, names, known, files=True)
