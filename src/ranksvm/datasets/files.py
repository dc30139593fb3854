"""Functions that read and write a file of ranking data in any format."""

import io
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from ranksvm._util.atomic_files import temporary_file
from ranksvm._util.compression import HEAD, first_text
from ranksvm._util.types import PathLike
from ranksvm.datasets import parquet
from ranksvm.datasets.csv import is_csv, read_csv
from ranksvm.datasets.letor.reader import read_letor
from ranksvm.datasets.letor.writer import write_letor
from ranksvm.datasets.ltr_log import is_ltr_log, read_ltr_log
from ranksvm.datasets.ranking_data import RankingData
from ranksvm.datasets.table import Columns
from ranksvm.datasets.trec_files import write_qrels
from ranksvm.exceptions import DataError, OptionError

__all__ = ["read_data", "write_data"]

# first bytes of the binary formats
_CACHE = b"ranksvm-data"
_PARQUET = b"PAR1"
# first bytes of a database of SQLite, in which the service keeps its log
SQLITE = b"SQLite format 3\0"
_CACHE_SUFFIXES = (".rsd",)
_PARQUET_SUFFIXES = (".parquet", ".pq")
_CSV_SUFFIXES = (".csv", ".tsv")
_QRELS_SUFFIXES = (".qrels",)
_TEXT_SUFFIXES = ("", ".txt", ".letor", ".dat", ".data", ".svm", ".svmlight", ".libsvm", ".train", ".test", ".vali")
_COMPRESSIONS = (".gz", ".bz2", ".xz", ".zst")


def read_data(
    path: PathLike,
    *,
    label: str = "label",
    qid: str = "qid",
    docid: str = "docid",
    ignore: Sequence[str] = (),
    require_labels: bool = True,
    missing: bool = False,
    categorical: Sequence[str | int] | Mapping[str, Sequence[str]] = (),
    **options: Any,
) -> RankingData:
    """Read ranking data: a cache (`RankingData.save`), Parquet, CSV or TSV, LETOR text, or logged features in JSON.

    Caches and Parquet are recognized by their first bytes; CSV and TSV by the suffix ``.csv`` or ``.tsv`` (also before
    ``.gz`` and the like), or by a first line that names the column of labels or of query ids. Each line of a JSON file
    is the response of Elasticsearch or OpenSearch to the search for one query: it has the query's id under the key
    ``qid``, and the features that the learning-to-rank plugin logged in ``_ltrlog``. Such a file has no labels, so
    ``require_labels`` must be False.

    Parameters
    ----------
    path : path-like or "-"
        The file, which may be a pipe; "-" is standard input.
    label, qid, docid : str, default "label", "qid" and "docid"
        Names of the columns of labels, query ids and document ids in Parquet, CSV and TSV. The columns ``qid`` and
        ``docid`` may be absent.
    ignore : sequence of str, default ()
        Names of columns that are not read; all others are features, with these names.
    require_labels : bool, default=True
        Whether the file must have the column of labels. If False, and the column is absent, all labels are 0.
    missing : bool, default=False
        Whether values of features in Parquet, CSV and TSV may be missing: empty cells, NA and nulls become NaN, which
        additive models take. Otherwise missing values are refused.
    categorical : sequence of str or int, or mapping of str to list of str, default ()
        Names or numbers (from 0) of features of Parquet, CSV and TSV that may hold text. Each text becomes its
        position in ``categories`` of the data, which lists the texts of each such feature in alphabetical order. A
        column of numbers stays as it is; so does a column of CSV or TSV whose texts are all numbers. A mapping, such as
        ``categories_`` of an additive model, gives the known texts of each feature by its name; new texts come after
        them. Names that the file does not have are ignored.
    **options
        Options of `read_letor` for text. ``dtype`` is also used for Parquet (None: as in the file), CSV and TSV (None:
        float64); others are ignored there.

    Returns
    -------
    RankingData
        The data.

    Raises
    ------
    ParseError
        When a line of text is malformed.
    DataError
        When the file has no data, a named column is missing, a column is not numeric, a number is beyond the range of
        its type, or a cache is truncated or altered. Also when a column that would be a feature is named like ids or
        labels (``query_id``, ``session``, ``document``, ``relevance`` or the like) or like an index of pandas
        (``__index_level_0__``, ``Unnamed: 0`` or an empty name).
    OptionError
        When an option has an invalid value, or a feature of a cache or of LETOR text is to be ignored.
    MissingDependencyError
        When the file format needs a package that is not installed.

    Examples
    --------
    >>> from ranksvm import make_ranking
    >>> data = make_ranking(n_queries=20, n_docs=8, n_features=4, random_state=0)
    >>> import os, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> from ranksvm.datasets import read_data, write_data
    >>> path = os.path.join(folder, "data.rsd")
    >>> write_data(data, path)
    >>> read_data(path).queries.n_queries
    20
    """
    columns = Columns(label, qid, docid, tuple(ignore), require_labels, missing, categorical)
    if isinstance(path, str) and path == "-":
        return _read_content(sys.stdin.buffer.read(), "standard input", columns, options)
    with open(os.fspath(path), "rb") as file:
        if not file.seekable():
            # a pipe is opened only once: its writer would notice if it were closed and opened again
            return _read_content(file.read(), os.fspath(path), columns, options)
        head = file.read(HEAD)
        if head.startswith(_PARQUET):
            return _from_parquet(path, columns, options)
        if head.startswith(SQLITE):
            raise DataError(
                f"{os.fspath(path)} is a database of SQLite, not ranking data. --clicks takes the log in the store of "
                "a service, and `ranksvm replay` shows its contents."
            )
        if not head.startswith(_CACHE):
            text = first_text(file)
            file.seek(0)
            if is_csv(os.fspath(path), text, columns):
                return RankingData(**read_csv(file, os.fspath(path), columns, options.get("dtype")))
            if is_ltr_log(text):
                return _from_ltr_log(file.read(), os.fspath(path), columns, options)
    if head.startswith(_CACHE):
        return _from_cache(path, os.fspath(path), columns)
    columns.check_ignored(os.fspath(path))
    return read_letor(path, **options)


def _from_cache(path: PathLike, name: PathLike, columns: Columns, **options: Any) -> RankingData:
    data = RankingData.load(path, **options)
    columns.check_ignored(os.fspath(name), data)
    return data


def _from_parquet(path: PathLike, columns: Columns, options: dict[str, Any]) -> RankingData:
    return RankingData(**parquet.read_parquet(path, columns, options.get("dtype")))


def _from_ltr_log(content: bytes, name: str, columns: Columns, options: dict[str, Any]) -> RankingData:
    return RankingData(**read_ltr_log(content, name, columns, options.get("dtype")))


def _read_content(content: bytes, name: str, columns: Columns, options: dict[str, Any]) -> RankingData:
    """Read the data from the whole content of a pipe, in any format."""
    if not content.startswith((_CACHE, _PARQUET)):
        text = first_text(io.BytesIO(content))
        if is_csv(name, text, columns):
            return RankingData(**read_csv(io.BytesIO(content), name, columns, options.get("dtype")))
        if is_ltr_log(text):
            return _from_ltr_log(content, name, columns, options)
        columns.check_ignored(name)
        return read_letor(_Named(content, name), **options)
    # the readers of these formats need a regular file
    with temporary_file() as copy:
        with open(copy, "wb") as file:
            file.write(content)
        try:
            if content.startswith(_CACHE):
                return _from_cache(copy, name, columns, mmap=False)
            return _from_parquet(copy, columns, options)
        except DataError as error:
            raise type(error)(str(error).replace(copy, name)) from None


class _Named(io.BytesIO):
    """Content with the name of the file that it was read from, for messages."""

    def __init__(self, content: bytes, name: str):
        super().__init__(content)
        self.name = name


def write_data(data: RankingData, path: PathLike, *, n_jobs: int | None = None, escape_formulas: bool = False) -> None:
    """Write ranking data in the format that the extension of the file name selects.

    ``.rsd`` is a cache, ``.parquet`` or ``.pq`` is Parquet, ``.csv`` or ``.tsv`` CSV; ``.txt``, ``.letor``, ``.dat``,
    ``.svm`` and the like, or no suffix, is LETOR text; ``.qrels`` has the labels only, as relevance judgments of TREC.
    A further ``.gz``, ``.bz2``, ``.xz`` or ``.zst`` compresses text.

    Parameters
    ----------
    data : RankingData
        The data.
    path : path-like
        The file; written atomically.
    n_jobs : int, optional
        Number of threads that format text; None means all processors.
    escape_formulas : bool, default=False
        Whether to put an apostrophe before text in CSV and TSV that a spreadsheet would treat as a formula, as in
        `RankingData.to_csv`; other formats ignore this option.

    Raises
    ------
    OptionError
        When the suffix is none of these, or a cache or Parquet is to be compressed.
    DataError
        When the format cannot hold the data.
    MissingDependencyError
        When the format needs a package that is not installed.

    Examples
    --------
    >>> from ranksvm import make_ranking
    >>> data = make_ranking(n_queries=20, n_docs=8, n_features=4, random_state=0)
    >>> import os, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> from ranksvm.datasets import read_data, write_data
    >>> path = os.path.join(folder, "data.txt.gz")
    >>> write_data(data, path)
    >>> read_data(path).n_rows
    160
    """
    stem, suffix = os.path.splitext(os.fspath(path).lower())
    kind = os.path.splitext(stem)[1] if suffix in _COMPRESSIONS else suffix
    if kind != suffix and kind in (*_CACHE_SUFFIXES, *_PARQUET_SUFFIXES):
        raise OptionError(f"{os.fspath(path)}: only text is written with {suffix!r}: use {kind}, or .txt{suffix}.")
    if kind in _CSV_SUFFIXES:
        data.to_csv(path, escape_formulas=escape_formulas)
    elif kind in _QRELS_SUFFIXES:
        write_qrels(path, data)
    elif suffix in _CACHE_SUFFIXES:
        data.save(path)
    elif suffix in _PARQUET_SUFFIXES:
        data.to_parquet(path)
    elif suffix in _TEXT_SUFFIXES or suffix in _COMPRESSIONS:
        write_letor(path, data, n_jobs=n_jobs)
    else:
        others = [*_CACHE_SUFFIXES, *_PARQUET_SUFFIXES, *_CSV_SUFFIXES, *_QRELS_SUFFIXES]
        known = ", ".join([*others, *_TEXT_SUFFIXES[1:], *_COMPRESSIONS])
        raise OptionError(f"{os.fspath(path)}: unknown suffix {suffix!r}: use one of {known}.")
