"""A file as X of ``fit``: read into memory, or, if it is too large, in passes from its cache."""

import logging
import os
from collections.abc import Sequence
from typing import Any

from ranksvm._util.memory import in_words, memory_bytes
from ranksvm._util.types import MemoryLimit, PathLike
from ranksvm.datasets.cache.conversion import cache_of, convert_to_cache, default_cache_folder, memory_to_read
from ranksvm.datasets.file_data import in_file
from ranksvm.datasets.files import read_data
from ranksvm.datasets.ranking_data import RankingData
from ranksvm.exceptions import DataError

__all__ = ["training_file"]

logger = logging.getLogger("ranksvm.data")


def training_file(
    path: PathLike, limit: MemoryLimit, missing: bool = False, categorical: Sequence[str | int] = ()
) -> RankingData:
    """The data of a file.

    Parameters
    ----------
    path : path-like
        A file of any kind that `read_data` reads.
    limit : int, str or None
        The memory limit: see `memory_bytes`. A file that may need more memory, and is not a cache, is first converted
        to a cache in the user's cache folder, unless that cache exists.
    missing : bool
        Whether features may be missing: see `read_data`.
    categorical : sequence of str or int
        The features that may hold text: see `read_data`.

    Returns
    -------
    RankingData
        The data, mapped from a cache or in memory.

    Raises
    ------
    DataError
        When there is no such file, or its data are invalid.
    """
    if not os.path.isfile(path):
        raise DataError(f"X is {os.fspath(path)!r}, but there is no such file: give a path, or features.")
    needed = memory_to_read(path)
    if needed and needed <= memory_bytes(limit):
        return read_data(path, missing=missing, categorical=categorical)
    if not needed:
        # read, not mapped, if it fits in memory: a mapped file must not become shorter during the fit
        return RankingData.load(path, mmap=in_file(os.fspath(path), limit), verify=False)
    options: dict[str, Any] = {"missing": True} if missing else {}
    if categorical:
        options["categorical"] = list(categorical)
    cache = cache_of(path, default_cache_folder(), options)
    if not cache.is_file():
        cache.parent.mkdir(parents=True, exist_ok=True)
        size = in_words(needed)
        logger.info("%s may take %s of memory: its cache %s is written, for this and later fits", path, size, cache)
        convert_to_cache(path, cache, **options)
    return RankingData.load(cache, verify=False)
