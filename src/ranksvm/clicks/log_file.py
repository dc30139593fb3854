"""Click logs in Parquet and CSV files, read in blocks of whole impressions by pyarrow."""

import csv
import os
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from ranksvm._util.atomic_files import atomic_write
from ranksvm._util.checks import check, count
from ranksvm._util.types import PathLike
from ranksvm.clicks._ids import Coded, Encoder
from ranksvm.clicks.log import ClickLog
from ranksvm.datasets.csv import REFUSED_VALUE
from ranksvm.exceptions import DataError, MissingDependencyError

if TYPE_CHECKING:
    import pyarrow

__all__ = ["ClickLogFile", "Log", "known_columns", "refuse_pipe", "write_log"]

_REQUIRED = ("query", "document", "rank", "clicked")
_FIELDS = (*_REQUIRED, "impression", "ranker", "base_rank", "propensity", "time")
_IDS = ("query", "document", "impression", "ranker")
_DELIMITERS = {".csv": ",", ".tsv": "\t"}
# number of rows decoded at a time
_BATCH = 1 << 18
# bytes of CSV decoded at a time
_CSV_BYTES = 1 << 24
# from here on, float64 does not hold every whole number
_FIRST_INEXACT = 2.0**53


def known_columns(source: str, names: list[str], renamed: Mapping[str, str]) -> dict[str, str]:
    """For each field of a log (parameter of `ClickLog`), its column in a file or DataFrame.

    Raises
    ------
    DataError
        When a required column, or one that the user named, is missing, or is given for two required fields, or two
        columns have the same name, or a field is unknown.
    """
    for field, name in renamed.items():
        if field not in _FIELDS:
            raise DataError(f"a click log has no column {field!r}: it has {', '.join(_FIELDS)}.")
        if name not in names:
            raise DataError(f"{source} has no column {name!r} ({field}); its columns are {', '.join(names[:12])}.")
    found = {field: renamed.get(field, field) for field in _FIELDS}
    for field in _REQUIRED:
        if found[field] not in names:
            raise DataError(
                f"{source} has no column {field!r}; its columns are {', '.join(names[:12])}. Rename the one that "
                f"holds it, or name it: {field}=..."
            )
        if same := [other for other in _REQUIRED if other != field and found[other] == found[field]]:
            raise DataError(
                f"column {found[field]!r} of {source} is given for both {field} and {same[0]}: name one for each."
            )
    if twice := [name for name in found.values() if names.count(name) > 1]:
        raise DataError(f"{source} has two columns {twice[0]!r}: rename or drop one of them.")
    return {field: name for field, name in found.items() if name in names}


class ClickLogFile:
    """A click log in a Parquet or CSV file; see `ClickLog.scan`.

    Parameters
    ----------
    path : path-like
        The file.
    columns : mapping of str to str
        Field of a log -> name of its column, if it differs.
    block_rows : int, default 1048576
        Number of rows of a block.

    Examples
    --------
    >>> import os, tempfile
    >>> from ranksvm.clicks import ClickLog
    >>> path = os.path.join(tempfile.mkdtemp(), "log.parquet")
    >>> ClickLog(["a", "a", "b"], [4, 7, 7], [1, 2, 1], [0, 1, 0]).save(path)
    >>> [block.n_impressions for block in ClickLog.scan(path)]
    [2]
    """

    def __init__(self, path: PathLike, columns: Mapping[str, str], block_rows: int = 1 << 20):
        check(block_rows=count(block_rows))
        self._path, self._columns, self._block_rows = os.fspath(path), dict(columns), block_rows
        self._encoders: dict[str, Encoder] = {name: Encoder() for name in _IDS}

    def blocks(self) -> Iterator[ClickLog]:
        """The log, in blocks of whole impressions.

        Yields
        ------
        ClickLog
            The next impressions. An id has one code in all blocks.

        Raises
        ------
        DataError
            When the file cannot be read, or a block is not a valid log.
        """
        rest: dict[str, Any] = {}
        is_part = False
        for batch in self._batches():
            rest = _joined(rest, batch) if rest else batch
            n_rows = len(rest["rank"])
            if n_rows >= self._block_rows and (cut := _last_start(rest)):
                is_part = True
                yield self._block(_rows(rest, slice(0, cut)), is_part)
                rest = _rows(rest, slice(cut, n_rows))
        if not rest:
            raise DataError(f"{self._path} has no rows: there is nothing to learn from.")
        yield self._block(rest, is_part)

    __iter__ = blocks

    def _block(self, fields: dict[str, Any], is_part: bool) -> ClickLog:
        try:
            return ClickLog(**fields)
        except DataError as error:
            if not is_part or "impression" not in fields:
                raise
            raise DataError(
                f"{error} {self._path} is read in blocks, so the rows of an impression must be next to each other: "
                "sort them by impression."
            ) from None

    def read(self) -> ClickLog:
        """The whole log in memory.

        Returns
        -------
        ClickLog
            The log; rows of an impression may be anywhere in the file.
        """
        batches = list(self._batches())
        if not batches:
            raise DataError(f"{self._path} has no rows: there is nothing to learn from.")
        return ClickLog(**_joined(*batches))

    def _batches(self) -> Iterator[dict[str, Any]]:
        """Yield blocks of rows, each as a dict: field of a log -> values."""
        pa = _pyarrow()
        try:
            with open(self._path, "rb") as handle:
                refuse_pipe(handle, self._path)
                batches = _csv(pa, handle, self) if _suffix(self._path) in _DELIMITERS else _parquet(pa, handle, self)
                for batch, found in batches:
                    if len(batch):
                        yield {field: self._values(pa, field, batch.column(name)) for field, name in found.items()}
        except (pa.ArrowInvalid, pa.ArrowKeyError, csv.Error) as error:
            is_csv = _suffix(self._path) in _DELIMITERS
            form = "" if is_csv else " in Parquet (CSV must be decompressed, in a file named *.csv or *.tsv)"
            raise DataError(f"{self._path} cannot be read as a click log{form}: {error}") from error

    def columns_in(self, names: list[str]) -> dict[str, str]:
        """For each field of a log (parameter of `ClickLog`), its column in the file.

        Parameters
        ----------
        names : list of str
            The columns of the file.

        Returns
        -------
        dict of str to str
            Field -> column, for the fields that the file has.
        """
        return known_columns(self._path, names, self._columns)

    def _values(self, pa: ModuleType, field: str, column: "pyarrow.Array") -> np.ndarray | Coded:
        missing, is_csv = column.null_count, _suffix(self._path) in _DELIMITERS
        if field in _IDS and pa.types.is_floating(column.type):
            missing = np.count_nonzero(np.isnan(column.to_numpy(zero_copy_only=False)))
        elif field in _IDS and pa.types.is_string(column.type) and is_csv:  # text is never null
            missing = pa.compute.equal(column, "").true_count
        if missing:
            raise DataError(f"column {field!r} of {self._path} has {missing} missing values: fill or drop them.")
        if field not in _IDS:
            return column.to_numpy(zero_copy_only=False)
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            column = column.dictionary_encode()
        elif pa.types.is_floating(column.type) and is_csv:
            self._refuse_rounded(field, column.to_numpy(zero_copy_only=False))
        return self._encoders[field].encode(
            column if pa.types.is_dictionary(column.type) else column.to_numpy(zero_copy_only=False)
        )

    def _refuse_rounded(self, field: str, ids: np.ndarray) -> None:
        """Raise DataError if ids were read as float64 and some are too large for it: different ids may be equal."""
        rounded = np.abs(ids) >= _FIRST_INEXACT
        if rounded.any():
            name = self._columns.get(field, field)
            raise DataError(
                f"column {name!r} of {self._path} holds ids such as {ids[rounded.argmax()]:.0f}, which was rounded: "
                f"integers in CSV are read exactly up to {np.iinfo(np.int64).max}. Write the log as Parquet, or "
                f"call ClickLog.from_frame(pandas.read_csv(..., dtype={{{name!r}: 'uint64'}}))."
            )


Log = ClickLog | ClickLogFile


def write_log(path: PathLike, log: ClickLog) -> None:
    """Write a log; see `ClickLog.save`."""
    pa = _pyarrow()
    columns = {
        "impression": pa.array(log.impression),
        "query": _id_column(pa, log.query, log.query_ids),
        "document": _id_column(pa, log.document, log.document_ids),
        "rank": pa.array(log.rank),
        "clicked": pa.array(log.clicked),
    }
    if log.ranker is not None:
        columns["ranker"] = _id_column(pa, log.ranker, np.array([str(name) for name in log.ranker_names]))
    for name in ("base_rank", "propensity", "time"):
        if (values := getattr(log, name)) is not None:
            columns[name] = pa.array(values)
    delimiter = _DELIMITERS.get(_suffix(os.fspath(path)))
    table = pa.table(columns)
    with atomic_write(path) as file:
        if delimiter is None:
            pa.parquet.write_table(table, file, compression="zstd")
            return
        for place, kind in enumerate(table.schema.types):
            if pa.types.is_dictionary(kind):
                table = table.set_column(place, table.column_names[place], table.column(place).cast(pa.string()))
        pa.csv.write_csv(table, file, pa.csv.WriteOptions(delimiter=delimiter))


def _id_column(pa: ModuleType, codes: np.ndarray, ids: np.ndarray) -> "pyarrow.Array":
    """Ids of rows: numbers unchanged; others as distinct strings with a code for each row."""
    if ids.dtype.kind in "iuf":
        return pa.array(ids[codes])
    texts: dict[str, object] = {}
    for value in ids.tolist():
        if texts.setdefault(str(value), value) is not value:
            raise DataError(
                f"the log has the ids {texts[str(value)]!r} and {value!r}, which a file would not distinguish: give "
                "all ids as text, or all as numbers."
            )
    return pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(list(texts)))


def refuse_pipe(handle: IO[bytes], name: str) -> None:
    """Raise DataError if a file is a pipe."""
    if not handle.seekable():
        raise DataError(f"{name} is a pipe: a click log is read several times, so it must be a file.")


def _pyarrow() -> ModuleType:
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.csv
        import pyarrow.parquet
    except ImportError:
        raise MissingDependencyError('click logs in files need pyarrow: pip install "ranksvm[parquet]"') from None
    return pyarrow


def _suffix(path: str) -> str:
    return os.path.splitext(path.lower())[1]


# Yields some rows of a file with a dict: field of a log -> name of its column.
Batches = Iterator[tuple["pyarrow.RecordBatch", dict[str, str]]]


def _parquet(pa: ModuleType, handle: IO[bytes], log: ClickLogFile) -> Batches:
    with pa.parquet.ParquetFile(handle) as file:
        found = log.columns_in(file.schema_arrow.names)
        for batch in file.iter_batches(batch_size=_BATCH, columns=list(found.values())):
            yield batch, found


def _csv(pa: ModuleType, handle: IO[bytes], log: ClickLogFile) -> Batches:
    delimiter = _DELIMITERS[_suffix(os.fspath(handle.name))]
    parse = pa.csv.ParseOptions(delimiter=delimiter)
    header = handle.readline().decode("utf-8-sig", errors="replace")
    if not header.strip():
        raise pa.ArrowInvalid("its first line, which names the columns, is empty.")
    names = next(csv.reader([header], delimiter=delimiter), [])
    found = log.columns_in(names)
    # names of rankers may look like numbers at first, and propensities like integers
    types = {"ranker": pa.string(), "propensity": pa.float64(), "clicked": pa.bool_()}
    convert = pa.csv.ConvertOptions(
        include_columns=list(dict.fromkeys(found.values())),
        column_types={found[field]: kind for field, kind in types.items() if field in found},
    )
    read = pa.csv.ReadOptions(block_size=_CSV_BYTES)
    n_rows = 0
    # pyarrow opens the file by its path. If its threads read ahead from a Python file object instead, they would abort
    # a process that ends with an error in the meantime.
    try:
        with pa.csv.open_csv(pa.OSFile(os.fsencode(handle.name)), read, parse, convert) as reader:
            first = reader.schema
        # ids that pyarrow would read as dates, times or booleans stay as they are written
        texts = {name for field, name in found.items() if field in _IDS and not _is_numeric(pa, first.field(name).type)}
        convert.column_types = convert.column_types | dict.fromkeys(texts, pa.string())
        with pa.csv.open_csv(pa.OSFile(os.fsencode(handle.name)), read, parse, convert) as reader:
            for batch in reader:
                yield batch, found
                n_rows += len(batch)
    except pa.ArrowInvalid as error:
        if (refused := REFUSED_VALUE.search(str(error))) is None:
            raise
        column, _, kind, value = refused.groups()
        place = f" after row {n_rows - 1:,} (from 0)" if n_rows else ""
        name = names[int(column)]
        advice = f" {_advice_on_text_ids(name)}" if n_rows and name in [found.get(field) for field in _IDS] else ""
        message = f"column {name!r} of {handle.name} holds {value!r}{place}, which cannot be read as {kind}.{advice}"
        raise DataError(message) from error


def _is_numeric(pa: ModuleType, kind: "pyarrow.DataType") -> bool:
    """Whether ids are numbers; ids that are all missing count as numbers, which may be null."""
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_null(kind)


def _advice_on_text_ids(name: str) -> str:
    # Earlier blocks may have been used already. If their ids were read again as text, 007 would no longer be 7.
    return (
        "The first rows of a CSV file decide on the type of its ids. If they are text, write the log as Parquet, or "
        f"call ClickLog.from_frame(pandas.read_csv(..., dtype={{{name!r}: str}}))."
    )


def _joined(*parts: dict[str, Any]) -> dict[str, Any]:
    """The fields of several blocks, one after the other."""
    out: dict[str, Any] = {}
    for field in parts[0]:
        values = [part[field] for part in parts]
        if isinstance(values[0], Coded):
            out[field] = Coded(np.concatenate([value.codes for value in values]), values[-1].ids)
        else:
            out[field] = np.concatenate(values)
    return out


def _rows(fields: dict[str, Any], rows: slice) -> dict[str, Any]:
    return {field: values.take(rows) if isinstance(values, Coded) else values[rows] for field, values in fields.items()}


def _last_start(fields: dict[str, Any]) -> int:
    """First row of the last impression, which may continue in the next block."""
    if "impression" in fields:
        codes = fields["impression"].codes
        changes = np.flatnonzero(codes[1:] != codes[:-1])
        return int(changes[-1]) + 1 if len(changes) else 0
    return int(np.flatnonzero(fields["rank"] == 1)[-1:].sum())
