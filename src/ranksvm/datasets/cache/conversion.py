"""Converts any file of ranking data to a cache, with memory independent of its size, and names caches in a folder."""

import contextlib
import hashlib
import json
import os
import shutil
import stat
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from ranksvm._util.atomic_files import atomic_write, remove_abandoned, temporary_beside
from ranksvm._util.checks import is_sparse
from ranksvm._util.compression import HEAD, compression_of, first_text
from ranksvm._util.special_files import is_special
from ranksvm._util.types import PathLike
from ranksvm.datasets import parquet
from ranksvm.datasets.cache.writer import CacheWriter
from ranksvm.datasets.csv import is_csv, read_csv_blocks
from ranksvm.datasets.letor.reader import letor_blocks
from ranksvm.datasets.letor.source import FileText
from ranksvm.datasets.letor.text import Layout
from ranksvm.datasets.letor.windows import WrongLayoutError, settings_of
from ranksvm.datasets.ltr_log import is_ltr_log, read_ltr_log
from ranksvm.datasets.ranking_data import RankingData
from ranksvm.datasets.table import Columns
from ranksvm.exceptions import DataError, OptionError, RankSVMError

__all__ = ["ConvertedData", "cache_of", "convert_to_cache", "default_cache_folder", "memory_to_read"]

# Number of values of a mapped cache that are copied at a time.
_CACHE_VALUES = 1 << 22
# Number of bytes of a pipe that are copied at a time.
_COPIED = 1 << 20

# Kind of file -> how many times as large as the file its data may be in memory. A value takes four bytes in memory
# (from CSV, eight), and two characters or more in text, usually seven; compression of text saves up to nine tenths.
_GROWTH = {"cache": 1, "text": 1, "log": 1, "csv": 4, "parquet": 8, "compressed": 10}

# Hashed into the name of a cache; increased when a new version of ranksvm would read the same file differently.
_VERSION = 2

# Called with the number of bytes of the source that have been read, and their total number.
Progress = Callable[[int, int], None]
# Takes an iterator over parts of the rows, and yields these parts with other labels.
Relabel = Callable[[Iterator[RankingData]], Iterator[RankingData]]


@dataclass(frozen=True)
class ConvertedData:
    """Summary of a cache that `convert_to_cache` has written.

    Attributes
    ----------
    n_rows, n_queries, n_features : int
        Its numbers of rows, distinct query ids and features.
    sparse : bool
        Whether X is CSR.
    has_qid : bool
        Whether there are query ids; without them all rows are one query.
    feature_names : tuple of str, or None
        Names of the features.

    Examples
    --------
    >>> from ranksvm import make_ranking
    >>> data = make_ranking(n_queries=20, n_docs=8, n_features=4, random_state=0)
    >>> import os, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> source, target = os.path.join(folder, "train.txt"), os.path.join(folder, "train.rsd")
    >>> from ranksvm import write_letor
    >>> from ranksvm.datasets import convert_to_cache
    >>> write_letor(source, data)
    >>> found = convert_to_cache(source, target)
    >>> found.n_rows, found.n_queries, found.n_features, found.sparse
    (160, 20, 4, False)
    """

    n_rows: int
    n_queries: int
    n_features: int
    sparse: bool
    has_qid: bool
    feature_names: tuple[str, ...] | None


def convert_to_cache(
    source: PathLike,
    target: PathLike,
    *,
    label: str = "label",
    qid: str = "qid",
    docid: str = "docid",
    ignore: Sequence[str] = (),
    require_labels: bool = True,
    missing: bool = False,
    categorical: Sequence[str | int] | Mapping[str, Sequence[str]] = (),
    relabel: Relabel | None = None,
    progress: Progress | None = None,
    n_jobs: int | None = None,
    **options: Any,
) -> ConvertedData:
    """Write the cache of a file as ``read_data(source).save(target)`` does, but with little memory.

    Text, compressed or not, is parsed once, with the layout that its beginning suggests (number of features, dense or
    sparse, whether ids start at 0), and once more if a later line contradicts it.

    Parameters
    ----------
    source : path-like or "-"
        The file, in any format that `read_data` reads; "-" is standard input. A pipe is copied to a file first. A log
        of features in JSON is read into memory.
    target : path-like
        The cache; written atomically. Its folder must also have room for temporary files, which take as much
        as everything but the values of X.
    label, qid, docid, ignore, require_labels, missing, categorical
        As in `read_data`.
    relabel : callable, optional
        Takes an iterator over the rows in parts, each a RankingData, and yields these parts with other labels. If it
        raises an error, even after the last part, no target is left.
    progress : callable, optional
        Called with the number of bytes of the source that have been read, and their total.
    n_jobs : int, optional
        Number of threads; None means all processors.
    **options
        Options of `read_letor` for text; ``dtype`` is also used for Parquet, CSV and TSV.

    Returns
    -------
    ConvertedData
        What the cache holds.

    Raises
    ------
    ParseError
        When a line of text is malformed.
    DataError
        When the source holds no data, a named column is missing, or a column is not numeric. Or when it is a cache
        that is truncated or altered, or another process changes it while it is read.
    OptionError
        When the target is a pipe or a device: the parts of a cache are not written in order.
    OSError
        For example when the disk is full; no partial target is left.

    Examples
    --------
    >>> from ranksvm import make_ranking
    >>> data = make_ranking(n_queries=20, n_docs=8, n_features=4, random_state=0)
    >>> import os, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> source, target = os.path.join(folder, "train.txt"), os.path.join(folder, "train.rsd")
    >>> from ranksvm import RankingData, write_letor
    >>> from ranksvm.datasets import convert_to_cache
    >>> write_letor(source, data)
    >>> convert_to_cache(source, target).n_rows
    160
    >>> RankingData.load(target).n_features
    4
    """
    if is_special(target):
        raise OptionError(f"{os.fspath(target)} is a pipe or a device: a cache needs a file.")
    columns = Columns(label, qid, docid, tuple(ignore), require_labels, missing, categorical)
    folder = os.path.dirname(os.path.realpath(os.fspath(target)))
    with _regular_file(source, target) as (path, name):
        try:
            found = _Source(path, name, columns, n_jobs, options, progress or (lambda *_: None))
            return _written(found, target, folder, relabel)
        except RankSVMError as error:
            if path is name:
                raise
            named = (each.replace(path, name) if isinstance(each, str) else each for each in error.args)
            raise type(error)(*named) from None


def _written(source: "_Source", target: PathLike, folder: str, relabel: Relabel | None) -> ConvertedData:
    layout: Layout | None = None
    while True:
        try:
            with atomic_write(target) as file:
                writer, counter = CacheWriter(file, folder, source.expected), _QueryCounter()
                first = None
                blocks = source.blocks(layout)
                for block in blocks if relabel is None else relabel(blocks):
                    first = first or block
                    counter.add(block.qid)
                    writer.append(block)
                if first is None:
                    raise DataError(f"{source.name} has no row of data.")
                writer.close()
        except WrongLayoutError as wrong:
            layout = wrong.layout
            continue
        return ConvertedData(
            writer.n_rows,
            counter.n_queries,
            writer.n_features,
            is_sparse(first.X),
            first.qid is not None,
            first.feature_names,
        )


class _Source:
    """A file whose rows can be read in blocks, from the first one on, any number of times."""

    def __init__(
        self, path: str, name: str, columns: Columns, n_jobs: int | None, options: dict[str, Any], progress: Progress
    ):
        self.path, self.name = path, name
        self._columns, self._options = columns, options
        self._size = os.stat(path).st_size
        self._progress = progress
        with open(path, "rb") as file:
            head = file.read(HEAD)
            self._kind = _kind(head, first_text(file), name, columns)
        self.expected = self._size * _GROWTH["compressed" if compression_of(head) else self._kind]
        if self._kind == "text":
            if not head:
                raise DataError(f"{name} is empty: it contains no data.")
            text: dict[str, Any] = {
                "n_features": None,
                "dtype": np.float32,
                "sparse": None,
                "zero_based": "auto",
                "docids": True,
            }
            columns.check_ignored(name)
            if unknown := options.keys() - text.keys():
                raise OptionError(f"unknown option {min(unknown)!r}: options of text are {', '.join(text)}.")
            text |= options
            self._sparse = text["sparse"]
            self._settings = settings_of(path, n_jobs=n_jobs, **text)

    def blocks(self, layout: Layout | None) -> Iterator[RankingData]:
        """The rows in blocks; ``layout`` is the layout of a text file, if an earlier pass has found it.

        If the file was changed in the meantime, it is refused after the last block.
        """
        with open(self.path, "rb") as file, FileText(file, self.name):
            if self._kind == "text":
                yield from letor_blocks(self.path, self._settings, self._sparse, layout, self._read)
            elif self._kind == "cache":
                yield from self._cached()
            elif self._kind == "log":
                yield RankingData(**read_ltr_log(file.read(), self.name, self._columns, self._options.get("dtype")))
                self._read(self._size)
            else:
                yield from self._table(file)

    def _read(self, n_bytes: int) -> None:
        self._progress(min(n_bytes, self._size), self._size)

    def _cached(self) -> Iterator[RankingData]:
        data = RankingData.load(self.path)
        self._columns.check_ignored(self.name, data)
        stored = data.X.nnz if is_sparse(data.X) else data.X.size
        step = max(1, _CACHE_VALUES * data.n_rows // max(1, stored))
        for start in range(0, data.n_rows, step):
            yield data.select(slice(start, start + step))
            self._read(self._size * min(start + step, data.n_rows) // data.n_rows)

    def _table(self, file: IO[bytes]) -> Iterator[RankingData]:
        dtype = self._options.get("dtype")
        if self._kind == "parquet":
            n_rows, total = 0, parquet.number_of_rows(self.path)
            for fields in parquet.read_blocks(self.path, self._columns, dtype):
                yield RankingData(**fields)
                n_rows += len(fields["y"])
                self._read(self._size * n_rows // max(1, total))
        else:
            for fields in read_csv_blocks(file, self.name, self._columns, dtype):
                yield RankingData(**fields)
                self._read(file.tell())


def _kind(head: bytes, text: bytes, name: str, columns: Columns) -> str:
    """The format of a file with these first bytes, which is this text after decompression."""
    if head.startswith(b"ranksvm-data"):
        return "cache"
    if head.startswith(b"PAR1"):
        return "parquet"
    return "csv" if is_csv(name, text, columns) else "log" if is_ltr_log(text) else "text"


def memory_to_read(path: PathLike) -> int:
    """Bytes that the data of a regular file may take in memory, roughly; 0 for a cache, which is mapped, or a pipe.

    Parameters
    ----------
    path : path-like
        The file.

    Returns
    -------
    int
        The bytes.
    """
    if not os.path.isfile(path):
        return 0
    with open(path, "rb") as file:
        head = file.read(HEAD)
        kind = _kind(head, first_text(file), os.fspath(path), Columns())
    if kind == "cache":
        return 0
    return max(1, os.stat(path).st_size * _GROWTH["compressed" if compression_of(head) else kind])


@contextlib.contextmanager
def _regular_file(source: PathLike, target: PathLike) -> Iterator[tuple[str, str]]:
    """The path of a file that can be read more than once (the source, or a copy of a pipe), and the name of the source.

    The copy is in the folder of the target.
    """
    path = os.fspath(source)
    if path == "-":
        with _copy(sys.stdin.buffer, target) as copied:
            yield copied, "standard input"
        return
    with open(path, "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            with _copy(file, target) as copied:
                yield copied, path
            return
    yield path, path


@contextlib.contextmanager
def _copy(file: IO[bytes], target: PathLike) -> Iterator[str]:
    with temporary_beside(target) as path:
        with open(path, "wb") as copy:
            shutil.copyfileobj(file, copy, _COPIED)
        yield path


class _QueryCounter:
    """Counts the distinct query ids of all blocks, with 8 bytes of memory for each distinct id of a block."""

    def __init__(self) -> None:
        self._numbers: list[np.ndarray] = []
        self._hashes: list[np.ndarray] = []

    def add(self, qid: np.ndarray | None) -> None:
        """Add the ids of the rows of a block."""
        if qid is None or not len(qid):
            return
        runs = qid[np.concatenate(([0], np.flatnonzero(qid[1:] != qid[:-1]) + 1))]
        if runs.dtype.kind in "biuf":
            self._numbers.append(np.unique(runs))
        else:
            self._hashes.append(_hashes(runs))

    @property
    def n_queries(self) -> int:
        """Number of distinct ids; without ids all rows are one query."""
        numbers = np.unique(np.concatenate(self._numbers)) if self._numbers else np.empty(0)
        if not self._hashes:
            return max(1, len(numbers))
        # an id may be a number in one block, and the same number as text in another one
        return len(np.unique(np.concatenate([*self._hashes, _hashes(numbers)])))


def _hashes(ids: np.ndarray) -> np.ndarray:
    """A 64-bit hash of each id's text."""
    words = (str(each).encode("utf-8", "surrogatepass") for each in ids.tolist())
    return np.unique(
        np.frombuffer(b"".join(hashlib.blake2b(word, digest_size=8).digest() for word in words), np.uint64)
    )


def default_cache_folder() -> Path:
    """The folder for caches of this user: ``$XDG_CACHE_HOME/ranksvm``, or ``~/.cache/ranksvm``.

    Returns
    -------
    Path
        The folder, which may not exist.
    """
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "ranksvm")


def cache_of(path: PathLike, folder: PathLike, options: Mapping[str, object], *others: PathLike) -> Path:
    """Path of a file's cache, which may not exist; if the file or the options change, so does the path.

    Files left behind in the folder by killed processes are removed.

    Parameters
    ----------
    path : path-like
        The file.
    folder : path-like
        The folder of caches.
    options : mapping
        The options with which the file is read; their values are numbers, text or lists of these.
    *others : path-like
        Further files that the cache depends on.

    Returns
    -------
    Path
        The cache, which may not exist.
    """
    remove_abandoned(folder)
    states = [(os.path.realpath(each), *_state(each)) for each in (path, *others)]
    key = json.dumps([_VERSION, states, sorted(options.items())], default=str)
    stem = Path(path).name.split(".")[0] or "data"
    return Path(folder, f"{stem}-{hashlib.blake2b(key.encode(), digest_size=8).hexdigest()}.rsd")


def _state(path: PathLike) -> tuple[int, int]:
    state = os.stat(path)
    return state.st_size, state.st_mtime_ns
