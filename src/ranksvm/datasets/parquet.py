"""Reads and writes RankingData as Parquet, one block of rows at a time."""

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import replace
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike

from ranksvm._util.atomic_files import atomic_write
from ranksvm._util.checks import is_integer, is_sparse
from ranksvm._util.text import feature_label, feature_labels
from ranksvm._util.types import PathLike
from ranksvm.data.text_categories import are_texts, texts_at
from ranksvm.datasets.table import Columns, Table, pyarrow_with, table
from ranksvm.exceptions import DataError, RankSVMError

if TYPE_CHECKING:
    import pyarrow as pa
    from scipy import sparse

    from ranksvm.datasets.ranking_data import RankingData

__all__ = ["number_of_rows", "read_blocks", "read_parquet", "write_parquet"]

_ROWS = 1 << 16
_STREAM_ROWS = 1 << 12
_METADATA = b"ranksvm"
# Exceptions that a damaged file can cause, besides errors of pyarrow, most of which are subclasses of these.
_MALFORMED = ArithmeticError, AttributeError, LookupError, OSError, RuntimeError, TypeError, ValueError


def _pyarrow() -> ModuleType:
    return pyarrow_with("parquet", "reading and writing Parquet")


def write_parquet(path: PathLike, data: "RankingData", compression: str) -> None:
    """Write the fields of a RankingData; see `RankingData.to_parquet`."""
    pa = _pyarrow()
    sparse = is_sparse(data.X)
    info: dict[str, Any] = {
        "version": 1,
        "n_features": data.n_features,
        "feature_names": data.feature_names,
        "sparse": sparse,
    }
    if data.categories:
        info["categories"] = data.categories
    schema = _table(pa, data, data.feature_names, slice(0, 0)).schema.with_metadata({_METADATA: json.dumps(info)})
    if len(set(schema.names)) != len(schema.names):
        twice = next(name for name in schema.names if schema.names.count(name) > 1)
        raise DataError(f"two columns would be named {twice!r}: rename the feature.")
    with (
        atomic_write(path) as file,
        pa.parquet.ParquetWriter(file, schema, compression=compression) as writer,
    ):
        for start in range(0, max(1, data.n_rows), _ROWS):
            table = _table(pa, data, data.feature_names, slice(start, start + _ROWS))
            writer.write_table(table.replace_schema_metadata(schema.metadata))


def _table(pa: ModuleType, data: "RankingData", names: tuple[str, ...] | None, rows: slice) -> "pa.Table":
    features = []
    columns = {"label": pa.array(data.y[rows])}
    for name in ("qid", "docid"):
        if (values := getattr(data, name)) is not None:
            kind = pa.string() if values.dtype.kind in "UOT" else None
            columns[name] = pa.array(values[rows].tolist() if kind else values[rows], type=kind)
    if is_sparse(data.X):
        block = data.X[rows]
        offsets = pa.array(block.indptr.astype(np.int64))
        columns["feature_indices"] = pa.LargeListArray.from_arrays(offsets, pa.array(block.indices))
        columns["feature_values"] = pa.LargeListArray.from_arrays(offsets, pa.array(block.data))
        return pa.table(columns)
    titles = names or _made_up_names(data.n_features)
    for name, column in zip(titles, np.ascontiguousarray(data.X[rows].T), strict=True):
        texts = data.categories.get(name)
        features.append(pa.array(column) if texts is None else pa.array(texts_at(column, texts), pa.string()))
    return pa.table([*columns.values(), *features], names=[*columns, *titles])


def _made_up_names(n_features: int) -> list[str]:
    return feature_labels(n_features)


def read_parquet(path: PathLike, columns: Columns, dtype: DTypeLike | None) -> dict[str, Any]:
    """Fields of a RankingData; see `RankingData.from_parquet`."""
    pa = _pyarrow()
    name = os.fspath(path)
    # Our own handle, because pyarrow would keep its handle open for the life of the reader.
    with open(path, "rb") as handle, _reading(pa, name), pa.parquet.ParquetFile(handle) as file:
        return _read_columns(pa, file, name, columns, dtype)


def read_blocks(path: PathLike, columns: Columns, dtype: DTypeLike | None) -> Iterator[dict[str, Any]]:
    """Yield the fields of a RankingData for each block of rows; memory does not depend on the file size."""
    pa = _pyarrow()
    name = os.fspath(path)
    # without pre_buffer, and with a buffer, pages are read when they are needed, not whole row groups
    how: dict[str, Any] = {"buffer_size": 1 << 16, "pre_buffer": False}
    with open(path, "rb") as handle, _reading(pa, name), pa.parquet.ParquetFile(handle, **how) as file:
        info, known = _contents(pa, file, name, columns)
        known = _with_categories(pa, file, known)
        dtype = dtype if info.get("sparse") else _dense_type(pa, file, known, columns, dtype)
        row = 0
        for batch in file.iter_batches(batch_size=_STREAM_ROWS):
            fields: dict[str, Any] = {"y": known.labels(pa, batch, row), **known.ids(pa, batch, row)}
            if info.get("sparse"):
                fields["X"] = _cast(_csr(batch, info["n_features"]), dtype, name, row)
            else:
                fields["X"] = np.empty((len(batch), len(known.features)), dtype=dtype)
                known.fill(pa, fields["X"], batch, row)
            fields["feature_names"], fields["categories"] = _names(info, known), known.categories
            yield fields
            row += len(batch)
        _check_rows(row, file)


def number_of_rows(path: PathLike) -> int:
    """Number of rows of a file, from its metadata."""
    pa = _pyarrow()
    with open(path, "rb") as handle, _reading(pa, os.fspath(path)):
        return int(pa.parquet.read_metadata(handle).num_rows)


@contextlib.contextmanager
def _reading(pa: ModuleType, name: str) -> Iterator[None]:
    """Convert any error in reading an open file to a DataError with the name of the file."""
    try:
        yield
    except RankSVMError:
        raise
    except MemoryError as error:  # a damaged file can claim any size
        raise DataError(f"{name} does not fit into the free memory, or is damaged: {error}") from error
    except (pa.ArrowException, *_MALFORMED) as error:
        what = str(error) or type(error).__name__
        raise DataError(f"{name} is not a Parquet file, or is damaged: {what}") from error


def _read_columns(
    pa: ModuleType, file: "pa.parquet.ParquetFile", name: str, columns: Columns, dtype: DTypeLike | None
) -> dict[str, Any]:
    info, known = _contents(pa, file, name, columns)
    known = _with_categories(pa, file, known)
    others = file.read([column for column in (known.label, known.qid, known.docid) if column is not None])
    labels = np.zeros(file.metadata.num_rows) if known.label is None else known.labels(pa, others, 0)
    fields: dict[str, Any] = {"y": labels, **known.ids(pa, others, 0)}
    sparse = info.get("sparse")
    if sparse:
        fields["X"] = _cast(_read_csr(file, info["n_features"], dtype), dtype, name, 0)
    else:
        fields["X"] = _read_dense(pa, file, known, columns, dtype)
    for rows in (labels, fields["X"]):
        _check_rows(rows.shape[0], file)
    fields["feature_names"], fields["categories"] = _names(info, known), known.categories
    return fields


def _contents(
    pa: ModuleType, file: "pa.parquet.ParquetFile", name: str, columns: Columns
) -> tuple[dict[str, Any], Table]:
    """The metadata of `write_parquet`, empty if it did not write the file, and the roles of the columns."""
    schema = file.schema_arrow
    info = json.loads((schema.metadata or {}).get(_METADATA, b"{}"))
    names = info.get("feature_names")
    named = names is None or (isinstance(names, list) and all(isinstance(each, str) for each in names))
    if not named or (info.get("sparse") and not _is_shape(info.get("n_features"), names)):
        raise ValueError("its metadata do not describe features")
    known = table(name, schema.names, columns, known_features=bool(info))
    noted = info.get("categories", {})
    if not isinstance(noted, dict) or not all(map(are_texts, noted.values())):
        raise ValueError("its metadata do not describe categories")
    if not info.get("sparse"):
        _refuse_lists(pa, schema, known)
    noted = {column: texts for column, texts in noted.items() if column in known.features}
    # a column of numbers stays numeric, even if it is listed as categorical
    wanted = [*noted, *known.texts]
    texts = [name for name in known.features if name in wanted and not _is_numeric(pa, schema.field(name).type)]
    categories = {name: listed for name, listed in (noted | known.categories).items() if name in texts}
    return info, replace(known, texts=texts, categories=categories)


def _with_categories(pa: ModuleType, file: "pa.parquet.ParquetFile", known: Table) -> Table:
    """A copy of ``known`` with the categories of the file."""
    texts = [name for name in known.texts if _is_text(pa, file.schema_arrow.field(name).type)]
    return known.with_categories(pa, file.iter_batches(batch_size=_ROWS, columns=known.texts), texts)


def _refuse_lists(pa: ModuleType, schema: "pa.Schema", known: Table) -> None:
    """Raise DataError if a feature has several values in a row."""
    for column in known.features:
        kind = schema.field(column).type
        if pa.types.is_nested(kind):
            raise DataError(
                f"column {column!r} of {known.name} has type {kind}, but a feature is one number, or one text, in each "
                "row: write a column for each of its values, or ignore it (ignore, --ignore)."
            )


def _is_numeric(pa: ModuleType, kind: "pa.DataType") -> bool:
    kinds = pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal, pa.types.is_null
    return any(is_kind(kind) for is_kind in kinds)


def _is_text(pa: ModuleType, kind: "pa.DataType") -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _check_rows(n_rows: int, file: "pa.parquet.ParquetFile") -> None:
    """Refuse a file if the number of rows read differs from the number in its metadata."""
    if n_rows != file.metadata.num_rows:
        raise ValueError(f"{n_rows} rows were read, its metadata say {file.metadata.num_rows}")


def _is_shape(n_features: object, names: list[str] | None) -> bool:
    return is_integer(n_features, 0) and (names is None or len(names) == n_features)


def _names(info: dict[str, Any], known: Table) -> list[str] | None:
    if info.get("sparse"):
        return info["feature_names"]
    made_up = known.features == _made_up_names(len(known.features)) and not known.categories
    return None if made_up and not info.get("feature_names") else known.features


def _dense_type(
    pa: ModuleType, file: "pa.parquet.ParquetFile", known: Table, columns: Columns, dtype: DTypeLike | None
) -> DTypeLike:
    """Type of a dense X; DataError if there are no features or they are not numbers."""
    schema = file.schema_arrow
    if not known.features:
        raise DataError(f"{known.name} has no feature columns.")
    numbers = [column for column in known.features if column not in known.texts]
    for column in numbers:
        kind = schema.field(column).type
        if not _is_numeric(pa, kind):
            raise DataError(
                f"column {column!r} of {known.name} has type {kind}: features must be numbers. "
                f"{columns.text_column_advice}"
            )
    if dtype is not None:
        return dtype
    narrow = (pa.float32(), pa.float16(), pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.bool_(), pa.null())
    return np.float32 if all(schema.field(column).type in narrow for column in numbers) else np.float64


def _read_dense(
    pa: ModuleType, file: "pa.parquet.ParquetFile", known: Table, columns: Columns, dtype: DTypeLike | None
) -> np.ndarray:
    dtype = _dense_type(pa, file, known, columns, dtype)
    X = np.empty((file.metadata.num_rows, len(known.features)), dtype=dtype)
    row = 0
    for batch in file.iter_batches(batch_size=_ROWS, columns=known.features):
        known.fill(pa, X[row : row + len(batch)], batch, row)
        row += len(batch)
    return X[:row]


def _read_csr(file: "pa.parquet.ParquetFile", n_features: int, dtype: DTypeLike | None) -> "sparse.csr_matrix":
    from scipy import sparse

    batches = file.iter_batches(batch_size=_ROWS, columns=["feature_indices", "feature_values"])
    blocks = [_csr(batch, n_features) for batch in batches]
    if not blocks:
        return sparse.csr_matrix((0, n_features), dtype=dtype or np.float32)
    return sparse.vstack(blocks, format="csr")


def _cast(X: "sparse.csr_matrix", dtype: DTypeLike | None, name: str, first_row: int) -> "sparse.csr_matrix":
    """A CSR matrix converted to another type; DataError names the first value that the type cannot hold."""
    if dtype is None:
        return X
    with np.errstate(over="ignore"):  # an overflow is found below
        cast = X.astype(dtype, copy=False)
    if cast.dtype.itemsize < X.dtype.itemsize and len(bad := np.flatnonzero(np.isinf(cast.data) & np.isfinite(X.data))):
        row = first_row + int(np.searchsorted(X.indptr, bad[0], side="right")) - 1
        raise DataError(
            f"feature {feature_label(int(X.indices[bad[0]]))} of {name} has {X.data[bad[0]]} in row {row} (from 0), "
            f"beyond the range of {cast.dtype}: read it with dtype=numpy.float64."
        )
    return cast


def _csr(batch: "pa.RecordBatch", n_features: int) -> "sparse.csr_matrix":
    from scipy import sparse

    lists, values = batch.column("feature_indices"), batch.column("feature_values")
    pointers = lists.offsets.to_numpy()
    parts = values.flatten().to_numpy(), lists.flatten().to_numpy(), pointers - pointers[0]
    X = sparse.csr_matrix(parts, shape=(len(batch), n_features))
    X.check_format(full_check=True)
    return X
