"""Files as X of a fit: read into memory or, if the data do not fit in memory, read in passes."""

import logging
import os
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ranksvm._util.checks import level_of_caller
from ranksvm._util.memory import in_words, memory_bytes
from ranksvm._util.types import MatrixLike, MemoryLimit, PathLike
from ranksvm.datasets.cache.reader import CacheFile
from ranksvm.datasets.ranking_data import RankingData
from ranksvm.exceptions import DataError, LikelyMistakeWarning

__all__ = ["FileData", "TextFeatures", "in_file", "training_file", "unpacked"]

logger = logging.getLogger("ranksvm.datasets")

# Bytes per row that a fit in memory needs in addition to the features: labels, queries, levels, and the scores for
# a few weight vectors that the solver compares.
BYTES_OF_A_ROW = 120


class FileData(NamedTuple):
    """The features of a cache, as X of a fit that reads them in passes.

    Attributes
    ----------
    path : str
        The cache.
    shape : tuple of int
        Numbers of rows and features.
    has_qid : bool
        Whether the file has the query ids of this fit.
    """

    path: str
    shape: tuple[int, int]
    has_qid: bool


class TextFeatures(NamedTuple):
    """Names of the features of RankingData, with the texts of those that held text.

    Attributes
    ----------
    names : tuple of str
        Names of all features.
    categories : dict of str to list of str
        For each feature that held text, the list of its texts. Its values are positions in this list.
    """

    names: tuple[str, ...]
    categories: dict[str, list[str]]


def in_file(path: str, limit: MemoryLimit) -> bool:
    """Whether the data of a cache should stay in the file.

    Parameters
    ----------
    path : str
        The cache.
    limit : int, str or None
        The memory limit: see `memory_bytes`.

    Returns
    -------
    bool
        Whether a fit in memory would take more than the limit.
    """
    file = CacheFile(path)
    try:
        return file.n_values * file.value_bytes + BYTES_OF_A_ROW * file.n_rows > memory_bytes(limit)
    finally:
        file.close()


def unpacked(
    X: MatrixLike | RankingData | FileData,
    y: ArrayLike | None,
    qid: ArrayLike | None,
    group: ArrayLike | None,
    pairs: object,
    limit: MemoryLimit,
    missing: bool = False,
    categorical: Sequence[str | int] = (),
) -> tuple[Any, Any, Any, TextFeatures | None]:
    """Split X of ``fit``, which may be one RankingData, into X, y and qid.

    Parameters
    ----------
    X : RankingData or other features
        The data. RankingData that were loaded from a file become `FileData` if a fit in memory would take more than
        ``limit``.
    y, qid : array-like or None
        Labels and query ids; None: from the RankingData.
    group : array-like or None
        Sizes of queries, instead of ids.
    pairs : array-like or None
        Pairs, instead of labels. A fit to pairs needs the rows in memory.
    limit : int, str or None
        The memory limit: see `memory_bytes`.
    missing : bool
        Whether the model is additive. If so, values of features in a file may be missing, and the features in
        ``categorical`` may hold text.
    categorical : sequence of str or int
        Names or numbers of features.

    Returns
    -------
    tuple of (X, y, qid, text_features)
        The training data. ``text_features`` is None if no feature held text and ``categorical`` has no name.
    """
    if not isinstance(X, RankingData):
        if limit is not None and not isinstance(X, FileData):  # FileData come from the command line
            warnings.warn(
                f"memory_limit={limit!r} has no effect on X in memory: it is for RankingData that are mapped from a "
                "file (RankingData.load), or the path of a file.",
                LikelyMistakeWarning,
                stacklevel=level_of_caller(),
            )
        return X, y, qid, None
    data = X
    texts = None
    named = any(isinstance(each, str) for each in categorical)
    if data.feature_names is not None and (data.categories or named):
        texts = TextFeatures(data.feature_names, data.categories)
    if data.categories and not missing:
        raise DataError(
            f"the features {', '.join(map(repr, data.categories))} held text: only AdditiveRankSVM learns from "
            "categories. Drop them, or encode them, for example with scikit-learn's OneHotEncoder."
        )
    own_ids = qid is None and group is None
    if data.source is not None and pairs is None and _stays_in_file(data, limit):
        if not data.source_is_unchanged():
            raise DataError(
                f"{data.source} has been changed since it was loaded, and a fit reads it again, because it is larger "
                "than memory_limit: load it again."
            )
        # arrays loaded from the file are read from it again, not kept in memory
        unchanged = data.is_loaded("qid")
        found = FileData(data.source, (data.n_rows, data.n_features), own_ids and unchanged)
        y = None if y is None and data.is_loaded("y") else data.y if y is None else y
        return found, y, data.qid if own_ids and not unchanged else qid, texts
    return data.X, data.y if y is None and pairs is None else y, data.qid if own_ids else qid, texts


def _stays_in_file(data: RankingData, limit: MemoryLimit) -> bool:
    assert data.source is not None
    try:
        return in_file(data.source, limit)
    except (OSError, DataError):
        if data.is_mapped:
            raise
        return False  # X is in memory and does not need its file


def training_file(
    path: PathLike, limit: MemoryLimit, missing: bool = False, categorical: Sequence[str | int] = ()
) -> RankingData:
    """Read the training data of a file; data that may exceed the memory limit are mapped from a cache.

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
    from ranksvm.datasets.cache.conversion import cache_of, convert_to_cache, default_cache_folder, memory_to_read
    from ranksvm.datasets.files import read_data

    if not os.path.isfile(path):
        what = "that is no regular file" if os.path.exists(path) else "there is no such file"
        raise DataError(f"X is {os.fspath(path)!r}, but {what}: give a path, or features.")
    needed = memory_to_read(path)
    if needed <= memory_bytes(limit):
        if needed:
            data = read_data(path, missing=missing, categorical=categorical)
        else:
            # read, not mapped, if it fits in memory: a mapped file must not become shorter during the fit
            data = RankingData.load(path, mmap=in_file(os.fspath(path), limit), verify=False)
        if not data.n_rows:
            raise DataError(f"{os.fspath(path)} has no row of data.")
        return data
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


def labels_of(y: ArrayLike, n_rows: int) -> np.ndarray:
    """Labels that were passed in addition to a file, as float64.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        Labels.
    n_rows : int
        Number of rows of the file.

    Returns
    -------
    ndarray of float64, shape (n_rows,)
        The labels.
    """
    from ranksvm.data.numeric_column import label_column

    labels = label_column(y)
    if labels.shape != (n_rows,):
        raise DataError(f"y has shape {labels.shape}, but the file has {n_rows} rows.")
    return labels
