"""One function to read any file of ranking data, and one to write it."""

import io
import os
import sys
import tempfile
from typing import Any

from ranksvm.data._cache import MAGIC
from ranksvm.data.letor import read_letor
from ranksvm.data.letor_writer import write_letor
from ranksvm.data.ranking_data import RankingData
from ranksvm.exceptions import DataError, ModelFileError, OptionError

__all__ = ["read_data", "write_data"]

# the first bytes of the formats that are not text
_CACHE = b"ranksvm-data"
_PARQUET = b"PAR1"
_CACHE_SUFFIXES = (".rsd",)
_PARQUET_SUFFIXES = (".parquet", ".pq")
_TEXT_SUFFIXES = ("", ".txt", ".letor", ".dat", ".data", ".svm", ".svmlight", ".libsvm", ".train", ".test", ".vali")
_COMPRESSIONS = (".gz", ".bz2", ".xz", ".zst")


def read_data(path: Any, **options: Any) -> RankingData:
    """Read ranking data: a cache (`RankingData.save`), Parquet, or LETOR text, recognised by the first bytes.

    Parameters
    ----------
    path : path-like or "-"
        The file, which may be a pipe; "-" is standard input.
    **options
        Options of `read_letor` for text. ``dtype`` is also used for Parquet; others are ignored there.

    Returns
    -------
    RankingData
        The data.

    Raises
    ------
    ParseError
        When a line of text is malformed.
    DataError
        When the file holds no data.
    ModelFileError
        When a cache is truncated or altered.
    MissingDependencyError
        When the file format needs a package that is not installed.
    """
    if isinstance(path, str) and path == "-":
        return _read_content(sys.stdin.buffer.read(), "standard input", options)
    with open(os.fspath(path), "rb") as file:
        if not file.seekable():
            # opened only once: the writer of a pipe would notice that its reader closed it
            return _read_content(file.read(), os.fspath(path), options)
        head = file.read(len(MAGIC))
    if head.startswith(_CACHE):
        return RankingData.load(path)
    if head.startswith(_PARQUET):
        return RankingData.from_parquet(path, dtype=options.get("dtype"))
    return read_letor(path, **options)


def _read_content(content: bytes, name: str, options: dict[str, Any]) -> RankingData:
    """The data in the whole content of a pipe, of any format."""
    if not content.startswith((_CACHE, _PARQUET)):
        return read_letor(_Named(content, name), **options)
    # the readers of these formats need a file
    with tempfile.TemporaryDirectory() as folder:
        copy = os.path.join(folder, "data")
        with open(copy, "wb") as file:
            file.write(content)
        try:
            if content.startswith(_CACHE):
                return RankingData.load(copy, mmap=False)
            return RankingData.from_parquet(copy, dtype=options.get("dtype"))
        except (DataError, ModelFileError) as error:
            raise type(error)(str(error).replace(copy, name)) from None


class _Named(io.BytesIO):
    """Content with the name of the file that it was read from, for messages."""

    def __init__(self, content: bytes, name: str):
        super().__init__(content)
        self.name = name


def write_data(data: RankingData, path: Any, *, n_jobs: int | None = None) -> None:
    """Write ranking data in the format given by the extension of the file name.

    ``.rsd`` is a cache, ``.parquet`` or ``.pq`` is Parquet; ``.txt``, ``.letor``, ``.dat``, ``.svm`` and the like, or
    no suffix, is LETOR text; a further ``.gz``, ``.bz2``, ``.xz`` or ``.zst`` compresses it.

    Parameters
    ----------
    data : RankingData
        The data.
    path : path-like
        The file; written atomically.
    n_jobs : int, optional
        Number of threads that format text; None means all processors.

    Raises
    ------
    OptionError
        When the suffix is none of these.
    DataError
        When the format cannot hold the data.
    MissingDependencyError
        When the format needs a package that is not installed.
    """
    suffix = os.path.splitext(os.fspath(path).lower())[1]
    if suffix in _CACHE_SUFFIXES:
        data.save(path)
    elif suffix in _PARQUET_SUFFIXES:
        data.to_parquet(path)
    elif suffix in _TEXT_SUFFIXES or suffix in _COMPRESSIONS:
        write_letor(path, data, n_jobs=n_jobs)
    else:
        known = ", ".join([*_CACHE_SUFFIXES, *_PARQUET_SUFFIXES, *_TEXT_SUFFIXES[1:], *_COMPRESSIONS])
        raise OptionError(f"{os.fspath(path)}: unknown suffix {suffix!r}: use one of {known}.")
