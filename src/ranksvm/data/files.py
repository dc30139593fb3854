"""One function to read any file of ranking data, and one to write it."""

import os
from typing import Any

from ranksvm.data._cache import MAGIC
from ranksvm.data.letor import read_letor
from ranksvm.data.letor_writer import write_letor
from ranksvm.data.ranking_data import RankingData
from ranksvm.exceptions import OptionError

__all__ = ["read_data", "write_data"]

_CACHE_SUFFIXES = (".rsd",)
_PARQUET_SUFFIXES = (".parquet", ".pq")
_TEXT_SUFFIXES = ("", ".txt", ".letor", ".dat", ".data", ".svm", ".svmlight", ".libsvm", ".train", ".test", ".vali")
_COMPRESSIONS = (".gz", ".bz2", ".xz", ".zst")


def read_data(path: Any, **options: Any) -> RankingData:
    """Read ranking data: a cache (`RankingData.save`), Parquet, or LETOR text, recognised by the first bytes.

    Parameters
    ----------
    path : path-like
        The file. It may be a pipe if it holds text.
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
    with open(os.fspath(path), "rb") as file:
        if not file.seekable():
            # opened only once: the writer of a pipe would notice that its reader closed it
            return read_letor(file, **options)
        head = file.read(len(MAGIC))
    if head.startswith(b"ranksvm-data"):
        return RankingData.load(path)
    if head.startswith(b"PAR1"):
        return RankingData.from_parquet(path, dtype=options.get("dtype"))
    return read_letor(path, **options)


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
