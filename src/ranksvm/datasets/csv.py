"""CSV and TSV, whose first line names the columns, read by pyarrow; compressed or not."""

import io
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from types import ModuleType
from typing import IO, TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import DTypeLike

import ranksvm._compiled.linear as linear
from ranksvm._util.atomic_files import atomic_text_file
from ranksvm._util.compression import HEAD, BrokenStreamError, compression_of, decompressed
from ranksvm._util.tables import frame_of, without_formula
from ranksvm._util.types import PathLike
from ranksvm.datasets.table import Columns, Table, pyarrow_with, table
from ranksvm.exceptions import DataError

if TYPE_CHECKING:
    import pyarrow as pa

    from ranksvm.datasets.letor.source import GrowingFile
    from ranksvm.datasets.ranking_data import RankingData
    from ranksvm.datasets.table import Rows

    SeekableFile: TypeAlias = IO[bytes] | GrowingFile

__all__ = ["DTYPE", "REFUSED_VALUE", "is_csv", "read_csv", "read_csv_blocks", "write_csv"]

_SUFFIXES = {".csv": ",", ".tsv": "\t"}
_COMPRESSIONS = (".gz", ".bz2", ".xz", ".zst")
# default type of X: it keeps the precision of the text
DTYPE = np.float64
# Bytes parsed at a time, at least, and for each column: no line may be longer.
_BLOCK, _BLOCK_OF_COLUMN = 1 << 20, 32
# rows written at a time
_ROWS = 1 << 14
# pyarrow's message for a value that is not of the type of its column; the groups are the number of the column, the
# line, the type and the value
REFUSED_VALUE = re.compile(
    r"In CSV column #(\d+): (?:Row #(\d+): )?CSV conversion error to ([^:]+): invalid value '(.*)'", re.S
)
# a name in quotes
_QUOTED = re.compile(rb'"[^"]*"')
# spellings of an infinite value in a file
_INFINITY = re.compile(r"\s*[+-]?inf(inity)?\s*", re.I)
# spellings of booleans
_BOOLEANS = ("true", "false")
# If a column is empty in the first row, this many further rows are searched for a value, which may be a boolean.
_ROWS_FOR_TYPES = 1000


class _Form(NamedTuple):
    """The delimiter of a file, and how many bytes of it are parsed at a time."""

    delimiter: str
    block_size: int


def is_csv(name: str, head: bytes, columns: Columns) -> bool:
    """Whether a file is CSV or TSV: by its suffix, or because its first line names the column of labels or queries.

    Parameters
    ----------
    name : str
        The file.
    head : bytes
        Its first bytes, decompressed.
    columns : Columns
        The names of these columns.
    """
    if _suffix(name) in _SUFFIXES:
        return True
    names, _ = _records(head)
    # a comment of LETOR text may contain these words
    return not head.startswith(b"#") and len(names) > 1 and (columns.label in names or columns.qid in names)


def read_csv(content: "SeekableFile", name: str, columns: Columns, dtype: DTypeLike | None) -> dict[str, Any]:
    """Read a CSV or TSV file, and return the fields of a RankingData.

    Parameters
    ----------
    content : binary file object
        The file, which can seek.
    name : str
        Its name, for messages; the suffix determines the delimiter.
    columns : Columns
        Which columns are not features.
    dtype : numpy.dtype
        Type of X.
    """
    pa = pyarrow_with("csv", "reading CSV and TSV")
    stream, names, first_values, form = _opened(content, name)
    known = _table(pa, name, names, columns)
    try:
        rows = pa.csv.read_csv(stream, **_options(pa, known, _booleans(names, first_values), form))
    except (pa.ArrowInvalid, BrokenStreamError) as error:
        # the reader on several threads does not tell the row of an error; the streaming reader does
        content.seek(0)
        for _ in read_csv_blocks(content, name, columns, dtype):
            pass
        raise _refusal(name, error, names, columns) from error
    known = known.with_categories(pa, [rows])
    fields = _fields(pa, rows, known, dtype, 0)
    infinite = _Infinite(known.features)
    infinite.add(fields["X"], 0)
    infinite.check(pa, content, name)
    return fields


def write_csv(path: PathLike, data: "RankingData", escape_formulas: bool) -> None:
    """Write the fields of a RankingData; see `RankingData.to_csv`."""
    pa = pyarrow_with("csv", "writing CSV and TSV")
    columns: dict[str, Any] = data._columns()
    missing = set(pa.csv.ConvertOptions().null_values)
    for name, texts in data.categories.items():
        if lost := missing.intersection(texts):
            raise DataError(
                f"the text {min(lost)!r} of feature {name!r} stands for a missing value in CSV: write Parquet or a "
                "cache."
            )
    if escape_formulas:
        columns = {
            without_formula(name): values if values.dtype.kind in "iuf" else list(map(without_formula, values.tolist()))
            for name, values in columns.items()
        }
    rows = frame_of(columns, "pyarrow")
    options = pa.csv.WriteOptions(delimiter=_SUFFIXES.get(_suffix(os.fspath(path)), ","))
    with atomic_text_file(path) as file:
        for batch in _written(pa, rows, options):
            file.write(batch)


def _written(pa: ModuleType, rows: "pa.Table", options: "pa.csv.WriteOptions") -> Iterator[bytes]:
    """The text of a table, in blocks of rows."""
    for start in range(0, max(1, len(rows)), _ROWS):
        options.include_header = start == 0
        out = pa.BufferOutputStream()
        pa.csv.write_csv(rows.slice(start, _ROWS), out, options)
        yield out.getvalue().to_pybytes()


def read_csv_blocks(
    content: "SeekableFile", name: str, columns: Columns, dtype: DTypeLike | None
) -> Iterator[dict[str, Any]]:
    """Yield the fields of a RankingData for each block of rows; memory does not depend on the file size."""
    pa = pyarrow_with("csv", "reading CSV and TSV")
    stream, names, first_values, form = _opened(content, name)
    known = _table(pa, name, names, columns)
    if known.texts:
        # every block needs the categories of the whole file, so the file is first read once for them
        try:
            parts = pa.csv.open_csv(stream, **_typed(pa, dict.fromkeys(known.texts, pa.string()), form))
            known = known.with_categories(pa, parts)
        except (pa.ArrowInvalid, BrokenStreamError) as error:
            raise _refusal(name, error, names, columns) from error
        content.seek(0)
        stream, _, _, _ = _opened(content, name)
    options = _options(pa, known, _booleans(names, first_values), form)
    # on several threads the message of an error does not name the row
    options["read_options"].use_threads = False
    row, infinite = 0, _Infinite(known.features)
    try:
        for batch in pa.csv.open_csv(stream, **options):
            fields = _fields(pa, batch, known, dtype, row)
            infinite.add(fields["X"], row)
            yield fields
            row += len(batch)
    except (pa.ArrowInvalid, BrokenStreamError) as error:
        raise _refusal(name, error, names, columns) from error
    infinite.check(pa, content, name)


class _Infinite:
    """Collects rows with infinite values, by column: a value whose text is not infinity has overflowed."""

    def __init__(self, features: list[str]):
        self._features = features
        self._rows: dict[str, list[np.ndarray]] = {}

    def add(self, X: np.ndarray, first_row: int) -> None:
        """Record the infinite values of some rows."""
        if X.dtype in (np.float32, np.float64) and linear.all_finite(X.reshape(-1)):
            return
        for column, values in zip(self._features, X.T, strict=True):
            if len(rows := np.flatnonzero(np.isinf(values))):
                self._rows.setdefault(column, []).append(first_row + rows)

    def check(self, pa: ModuleType, content: "SeekableFile", name: str) -> None:
        """Read the text of these values from the file again; DataError names the first that is a finite number."""
        if not self._rows:
            return
        content.seek(0)
        stream, _, _, form = _opened(content, name)
        rows = {column: np.concatenate(found) for column, found in self._rows.items()}
        row = 0
        for batch in pa.csv.open_csv(stream, **_typed(pa, dict.fromkeys(rows, pa.string()), form)):
            for column, all_rows in rows.items():
                own = all_rows[np.searchsorted(all_rows, row) : np.searchsorted(all_rows, row + len(batch))] - row
                for place, text in zip(own.tolist(), batch.column(column).take(pa.array(own)).to_pylist(), strict=True):
                    if not _INFINITY.fullmatch(text):
                        raise DataError(
                            f"column {column!r} of {name} has {text} in row {row + place} (from 0), beyond the range "
                            "of float64: fill or drop it first."
                        )
            row += len(batch)


def _fields(pa: ModuleType, rows: "Rows", known: Table, dtype: DTypeLike | None, first_row: int) -> dict[str, Any]:
    fields: dict[str, Any] = {"y": known.labels(pa, rows, first_row)}
    for field, ids in known.ids(pa, rows, first_row).items():
        fields[field] = ids if ids is None or field == "docid" else _whole_numbers(ids)
        if field == "qid" and ids is not None and (ids == "").any():
            row = first_row + int((ids == "").argmax())
            raise DataError(f"column {known.qid!r} of {known.name} has no query id in row {row} (from 0).")
    fields["X"] = np.empty((len(rows), len(known.features)), dtype=DTYPE if dtype is None else dtype)
    known.fill(pa, fields["X"], rows, first_row)
    fields["feature_names"] = known.features
    fields["categories"] = known.categories
    return fields


def _table(pa: Any, name: str, names: list[str], columns: Columns) -> Table:
    return replace(table(name, names, columns), missing_texts=frozenset(pa.csv.ConvertOptions().null_values))


def _whole_numbers(ids: np.ndarray) -> np.ndarray:
    """Ids as int64 if each is written exactly as an integer is printed (no leading zeros), as in LETOR text."""
    try:
        numbers = ids.astype(np.int64)
    except (ValueError, OverflowError):
        return ids
    return numbers if (numbers.astype(ids.dtype) == ids).all() else ids


def _booleans(names: list[str], first_values: list[str]) -> set[str]:
    """The columns whose first value is spelled like a boolean, as pandas and others write it."""
    return {name for name, value in zip(names, first_values, strict=False) if value.lower() in _BOOLEANS}


def _options(pa: ModuleType, known: Table, booleans: set[str], form: _Form) -> dict[str, Any]:
    if not known.features:
        raise DataError(f"{known.name} has no feature columns.")
    # Types are set, not inferred from the first rows: an id may be a number there and text later.
    numbers = (known.label, *known.features)
    types = {number: pa.bool_() if number in booleans else pa.float64() for number in numbers}
    types |= {known.qid: pa.string(), known.docid: pa.string()}
    types |= dict.fromkeys(known.texts, pa.string())
    types.pop(None, None)
    return _typed(pa, types, form)


def _typed(pa: ModuleType, types: "dict[str | None, pa.DataType]", form: _Form) -> dict[str, Any]:
    """Options that read these columns, each with its type."""
    return {
        "read_options": pa.csv.ReadOptions(block_size=form.block_size),
        "parse_options": pa.csv.ParseOptions(delimiter=form.delimiter),
        "convert_options": pa.csv.ConvertOptions(column_types=types, include_columns=list(types)),
    }


def _opened(content: "SeekableFile", name: str) -> tuple[Any, list[str], list[str], _Form]:
    """The text of a file from its beginning, the names of its columns, their first values, and its form."""
    head = content.read(HEAD)
    kind = compression_of(head)
    rest: Iterator[bytes] = iter(lambda: content.read(HEAD), b"")
    chunks = _chained(head, rest) if kind is None else decompressed(_File(_chained(head, rest)), kind)  # type: ignore[arg-type]
    first = b""
    try:
        # names and first values of all columns: their lines may be long
        while len(first.splitlines()) < 3 and (chunk := next(chunks, b"")):
            first += chunk
    except BrokenStreamError as error:
        raise _refusal(name, error) from error
    try:
        first.partition(b"\n")[0].decode()
    except UnicodeDecodeError:
        raise DataError(f"{name} is not text in UTF-8: convert it to UTF-8 first.") from None
    names, first_values = _records(first, _SUFFIXES.get(_suffix(name)))
    if not any(names):
        raise DataError(f"{name} is empty: expected a first line with the names of the columns.")
    longest = max(len(line) for line in first.splitlines())
    form = _Form(
        delimiter=_SUFFIXES.get(_suffix(name)) or _delimiter(first),
        block_size=max(_BLOCK, 2 * longest, _BLOCK_OF_COLUMN * len(names)),
    )
    return _File(_chained(first, chunks)), names, first_values, form


def _records(head: bytes, delimiter: str | None = None) -> tuple[list[str], list[str]]:
    """Fields of the first line, and the first non-empty value of each column in the next lines."""
    import csv

    # the last line may end beyond the head
    whole = head[: head.rfind(b"\n") + 1] if head.count(b"\n") > 1 else head
    text = whole.decode("utf-8-sig", "replace")
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter or _delimiter(head))
    names = next(lines, [])
    values = next(lines, [])
    for line in islice(lines, _ROWS_FOR_TYPES):
        if all(values):
            break
        for place, value in enumerate(line[: len(values)]):
            values[place] = values[place] or value
    return names, values


def _delimiter(head: bytes) -> str:
    """A tab character if the first line has one, except in quotes; otherwise a comma."""
    return "\t" if b"\t" in _QUOTED.sub(b"", head).split(b"\n", 1)[0] else ","


def _suffix(name: str) -> str:
    stem, suffix = os.path.splitext(name.lower())
    return os.path.splitext(stem)[1] if suffix in _COMPRESSIONS else suffix


def _chained(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    if first:
        yield first
    yield from rest


def _refusal(name: str, error: Exception, names: list[str] | None = None, columns: Columns | None = None) -> DataError:
    found = REFUSED_VALUE.search(str(error))
    if found is None or names is None or columns is None:
        return DataError(f"{name} cannot be read as a table of numbers: {error}")
    column, line, _, value = found.groups()
    place = "" if line is None else f" in line {line}"
    if names[int(column)] == columns.label:
        advice = "Labels must be numbers, such as 0, 1 and 2: encode them, or name another column (label, --label)."
    else:
        advice = (
            f"If it holds ids, name it (qid, docid; --qid, --docid at the command line). {columns.text_column_advice}"
        )
    return DataError(f"column {names[int(column)]!r} of {name} is not numeric: {value!r}{place}. {advice}")


class _File(io.RawIOBase):
    """A file that reads chunks of bytes one after another."""

    def __init__(self, chunks: Iterator[bytes]):
        self._chunks, self._rest = chunks, b""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        """Exactly ``size`` bytes, fewer only at the end; all for -1."""
        parts, missing = [], size
        while missing:
            if not self._rest:
                self._rest = next(self._chunks, b"")
                if not self._rest:
                    break
            part = self._rest if size < 0 else self._rest[:missing]
            self._rest = self._rest[len(part) :]
            parts.append(part)
            missing -= len(part) if size >= 0 else 0
        return b"".join(parts)
