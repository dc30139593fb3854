"""A function that reads any file of ranking data as a stream of queries."""

import os
import stat
from collections.abc import Iterator, Sequence
from typing import IO, Any

from numpy.typing import DTypeLike

from ranksvm._util.types import PathLike
from ranksvm.datasets import parquet
from ranksvm.datasets.csv import HEAD, first_bytes, is_csv, read_csv_blocks
from ranksvm.datasets.letor.source import GrowingFile
from ranksvm.datasets.letor.stream import iter_letor
from ranksvm.datasets.ltr_log import is_ltr_log, read_ltr_log
from ranksvm.datasets.ranking_data import RankingData
from ranksvm.datasets.table import Columns
from ranksvm.datasets.whole_queries import checked_batch_queries, whole_queries
from ranksvm.exceptions import DataError

__all__ = ["iter_data"]

# Rows of a memory-mapped cache that are read at a time.
_CACHE_ROWS = 1 << 12


def iter_data(
    path: PathLike | IO[bytes],
    *,
    batch_queries: int = 1,
    label: str = "label",
    qid: str = "qid",
    docid: str = "docid",
    ignore: Sequence[str] = (),
    require_labels: bool = True,
    missing: bool = False,
    **options: Any,
) -> Iterator[RankingData]:
    """Read ranking data query by query, in bounded memory; a log of features in JSON is read whole.

    The file may have any format that `read_data` reads. A query is a run of rows with
    one id: if an id occurs again later, that run is a separate query.

    Parameters
    ----------
    path : path-like, binary file object, or "-"
        The file. File objects, pipes and "-", standard input, can only hold LETOR text, compressed or not.
    batch_queries : int, default=1
        Number of queries of a batch. A batch ends early if it already contains the id of the next query; the last
        batch may be smaller.
    label, qid, docid, ignore, require_labels, missing
        Columns of Parquet, CSV and TSV, as in `read_data`.
    **options
        Options of `iter_letor` for text. ``dtype`` is also used for Parquet, CSV and TSV; others are ignored there.

    Returns
    -------
    iterator of RankingData
        The documents of ``batch_queries`` queries at a time.

    Raises
    ------
    ParseError
        When a line of text is malformed.
    DataError
        When the file holds no data, or no query ids, or is a cache that is truncated or altered.
    MissingDependencyError
        When the file format needs a package that is not installed.

    See Also
    --------
    read_data : Reads a whole file.

    Examples
    --------
    >>> from ranksvm import make_ranking
    >>> data = make_ranking(n_queries=20, n_docs=8, n_features=4, random_state=0)
    >>> import os, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> from ranksvm.datasets import iter_data, write_data
    >>> path = os.path.join(folder, "data.txt")
    >>> write_data(data, path)
    >>> sum(len(query.y) for query in iter_data(path))
    160
    """
    batch_queries = checked_batch_queries(batch_queries)
    columns = Columns(label, qid, docid, tuple(ignore), require_labels, missing, takes_categorical=False)
    # a pipe is opened only once, by the function that reads it: its writer would notice if it were opened and closed
    if hasattr(path, "read") or path == "-" or not stat.S_ISREG(os.stat(path).st_mode):
        return iter_letor(path, batch_queries=batch_queries, **options)
    name = os.fspath(path)
    with open(name, "rb") as file:
        head = file.read(HEAD)
    if head.startswith(b"ranksvm-data"):
        return whole_queries(_of_numbers(_cached_blocks(path), name), batch_queries, name)
    if head.startswith(b"PAR1"):
        blocks = parquet.read_blocks(path, columns, options.get("dtype"))
        return whole_queries(_of_numbers((RankingData(**fields) for fields in blocks), name), batch_queries, name)
    if is_ltr_log(first_bytes(head)):
        with open(name, "rb") as file:
            log = RankingData(**read_ltr_log(file.read(), name, columns, options.get("dtype")))
        return whole_queries(iter([log]), batch_queries, name)
    if is_csv(name, first_bytes(head), columns):
        return whole_queries(_csv_blocks(path, columns, options.get("dtype")), batch_queries, name)
    return iter_letor(path, batch_queries=batch_queries, **options)


def _of_numbers(blocks: Iterator[RankingData], name: str) -> Iterator[RankingData]:
    """The blocks; DataError if features hold text, which no model that learns from a stream can use."""
    for block in blocks:
        if block.categories:
            raise DataError(f"the features {', '.join(map(repr, block.categories))} of {name} hold text: encode them.")
        yield block


def _csv_blocks(path: PathLike, columns: Columns, dtype: DTypeLike | None) -> Iterator[RankingData]:
    with open(path, "rb") as file:
        source = GrowingFile(file, os.fspath(path))
        for fields in read_csv_blocks(source, os.fspath(path), columns, dtype):
            yield RankingData(**fields)


def _cached_blocks(path: PathLike) -> Iterator[RankingData]:
    data = RankingData.load(path)
    for start in range(0, data.n_rows, _CACHE_ROWS):
        yield data.select(slice(start, start + _CACHE_ROWS))
