"""One function to read any file of ranking data as a stream of queries."""

import os
import stat
from collections.abc import Iterator
from typing import Any

from ranksvm.data import _parquet
from ranksvm.data._cache import MAGIC
from ranksvm.data._whole_queries import checked_batch_queries, whole_queries
from ranksvm.data.letor_stream import iter_letor
from ranksvm.data.ranking_data import RankingData

__all__ = ["iter_data"]

# Rows of a memory-mapped cache that are read at a time.
_CACHE_ROWS = 1 << 12


def iter_data(path: Any, *, batch_queries: int = 1, **options: Any) -> Iterator[RankingData]:
    """Read ranking data query by query, in bounded memory: LETOR text, Parquet or a cache, by the first bytes.

    A query is a run of rows with one id: if an id occurs again later, that run is a separate query.

    Parameters
    ----------
    path : path-like, binary file object, or "-"
        The file. File objects, pipes and "-", standard input, can only hold text, compressed or not.
    batch_queries : int, default=1
        Number of queries of a batch. A batch ends early before an id that it already contains; the last one may be
        smaller.
    **options
        Options of `iter_letor` for text. ``dtype`` is also used for Parquet; others are ignored there.

    Returns
    -------
    iterator of RankingData
        The documents of ``batch_queries`` queries at a time.

    Raises
    ------
    ParseError
        When a line of text is malformed.
    DataError
        When the file holds no data, or no query ids.
    ModelFileError
        When a cache is truncated or altered.
    MissingDependencyError
        When the file format needs a package that is not installed.

    See Also
    --------
    read_data : Reads a whole file.
    """
    batch_queries = checked_batch_queries(batch_queries)
    # a pipe is opened only once, by its reader: its writer would notice that a first reader closed it
    if hasattr(path, "read") or path == "-" or not stat.S_ISREG(os.stat(path).st_mode):
        return iter_letor(path, batch_queries=batch_queries, **options)
    name = os.fspath(path)
    with open(name, "rb") as file:
        head = file.read(len(MAGIC))
    if head.startswith(b"ranksvm-data"):
        return whole_queries(_cached_blocks(path), batch_queries, name)
    if head.startswith(b"PAR1"):
        blocks = _parquet.read_blocks(path, "label", "qid", "docid", options.get("dtype"))
        return whole_queries((RankingData(**fields) for fields in blocks), batch_queries, name)
    return iter_letor(path, batch_queries=batch_queries, **options)


def _cached_blocks(path: Any) -> Iterator[RankingData]:
    data = RankingData.load(path)
    for start in range(0, data.n_rows, _CACHE_ROWS):
        yield data.select(slice(start, start + _CACHE_ROWS))
