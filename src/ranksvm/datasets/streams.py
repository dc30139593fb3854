"""Streams of queries, in bounded memory: iter_data reads any file of ranking data, iter_letor LETOR text."""

import contextlib
import os
import stat
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import IO, Any

import numpy as np
from numpy.typing import DTypeLike

from ranksvm._util.checks import is_integer
from ranksvm._util.compression import HEAD, BrokenStreamError, compression_of, decompressed, first_text
from ranksvm._util.types import PathLike
from ranksvm.data import frames
from ranksvm.datasets import parquet
from ranksvm.datasets.csv import is_csv, read_csv_blocks
from ranksvm.datasets.letor.source import GrowingFile, MemoryText, Text
from ranksvm.datasets.letor.text import Layout, Settings, split
from ranksvm.datasets.letor.windows import (
    WINDOW,
    assemble,
    join_strings,
    parse_whole,
    parse_window,
    settings_of,
    text_start,
    windows,
)
from ranksvm.datasets.ltr_log import is_ltr_log, read_ltr_log
from ranksvm.datasets.ranking_data import RankingData
from ranksvm.datasets.table import Columns
from ranksvm.exceptions import DataError, OptionError, ParseError

__all__ = ["iter_data", "iter_letor"]

# Number of rows of a memory-mapped cache that are read at a time.
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
    batch_queries = _checked_batch_queries(batch_queries)
    columns = Columns(label, qid, docid, tuple(ignore), require_labels, missing, takes_categorical=False)
    # a pipe is opened only once, by the function that reads it: its writer would notice if it were opened and closed
    if hasattr(path, "read") or path == "-" or not stat.S_ISREG(os.stat(path).st_mode):
        columns.check_ignored("the stream")
        return iter_letor(path, batch_queries=batch_queries, **options)
    name = os.fspath(path)
    with open(name, "rb") as file:
        head, text = file.read(HEAD), first_text(file)
    if head.startswith(b"ranksvm-data"):
        return _whole_queries(_of_numbers(_cached_blocks(path, columns), name), batch_queries, name)
    if head.startswith(b"PAR1"):
        blocks = parquet.read_blocks(path, columns, options.get("dtype"))
        return _whole_queries(_of_numbers((RankingData(**fields) for fields in blocks), name), batch_queries, name)
    if is_ltr_log(text):
        with open(name, "rb") as file:
            log = RankingData(**read_ltr_log(file.read(), name, columns, options.get("dtype")))
        return _whole_queries(iter([log]), batch_queries, name)
    if is_csv(name, text, columns):
        return _whole_queries(_csv_blocks(path, columns, options.get("dtype")), batch_queries, name)
    columns.check_ignored(name)
    return iter_letor(path, batch_queries=batch_queries, **options)


def _of_numbers(blocks: Iterator[RankingData], name: str) -> Iterator[RankingData]:
    """Pass the blocks on; DataError if features hold text, which no model that learns from a stream can use."""
    for block in blocks:
        if block.categories:
            raise DataError(f"the features {', '.join(map(repr, block.categories))} of {name} hold text: encode them.")
        yield block


def _csv_blocks(path: PathLike, columns: Columns, dtype: DTypeLike | None) -> Iterator[RankingData]:
    with open(path, "rb") as file:
        source = GrowingFile(file, os.fspath(path))
        for fields in read_csv_blocks(source, os.fspath(path), columns, dtype):
            yield RankingData(**fields)


def _cached_blocks(path: PathLike, columns: Columns) -> Iterator[RankingData]:
    data = RankingData.load(path)
    columns.check_ignored(os.fspath(path), data)
    for start in range(0, data.n_rows, _CACHE_ROWS):
        yield data.select(slice(start, start + _CACHE_ROWS))


def iter_letor(
    path: PathLike | IO[bytes],
    *,
    batch_queries: int = 1,
    n_features: int | None = None,
    dtype: DTypeLike = np.float32,
    sparse: bool | None = None,
    zero_based: bool | str = "auto",
    docids: bool = True,
) -> Iterator[RankingData]:
    """Read LETOR / SVMlight text query by query, in memory independent of the file size.

    A query is a run of lines with one id: if an id occurs again later, that run is a separate query. Every batch has
    the same columns. If ``n_features``, ``sparse`` or ``zero_based`` is not given, it is inferred from the first 4 MiB
    of the text; so all three are needed to read the queries of a pipe as they arrive. Files may have all the formats
    that `read_letor` reads.

    Parameters
    ----------
    path : path-like, binary file object, or "-"
        The file; "-" is standard input.
    batch_queries : int, default=1
        Number of queries of a batch. A batch ends early if it already contains the id of the next query; the last
        batch may be smaller.
    n_features : int, optional
        Number of columns of X; a larger feature id is an error. None: as many as the first 4 MiB need.
    dtype : {numpy.float32, numpy.float64}, default=numpy.float32
        Type of the values of X. Labels are float64.
    sparse : bool, optional
        True: X is CSR. False: X is dense. None: dense if the first 4 MiB contain at least a quarter of all values.
    zero_based : bool or "auto", default="auto"
        Whether feature ids start at 0. "auto": they do if the first 4 MiB have an id 0.
    docids : bool, default=True
        Whether to read document ids, as in `read_letor`.

    Yields
    ------
    RankingData
        The documents of ``batch_queries`` queries. Text is parsed in windows of up to some MiB: ``qid`` is int64 if all
        ids in the windows with these queries are integers, else str.

    Raises
    ------
    ParseError
        When a line is malformed or compressed data end early; it names the file, line, column and reason, as in
        `read_letor`. Complete queries before that line are yielded first.
    DataError
        When the file holds no data, is of another kind, or has no query ids, or when another process shortens it while
        it is read (it may grow).
    OptionError
        When an option has an invalid value; raised at once, before the first query is read.
    MissingDependencyError
        When a ``.zst`` file is read and no package for it is installed.

    See Also
    --------
    ranksvm.read_letor : Reads a whole file.

    Examples
    --------
    >>> import io
    >>> text = b"2 qid:1 1:0.5 2:1\\n0 qid:1 1:0.25\\n1 qid:2 2:3\\n"
    >>> for query in iter_letor(io.BytesIO(text)):
    ...     print(query.qid, query.y, query.X.tolist())
    [1 1] [2. 0.] [[0.5, 1.0], [0.25, 0.0]]
    [2] [1.] [[0.0, 3.0]]
    """
    batch_queries = _checked_batch_queries(batch_queries)
    standard_input = isinstance(path, str) and path == "-"
    source = sys.stdin.buffer if standard_input else path
    settings = settings_of(source, n_features, dtype, sparse, zero_based, docids, n_jobs=1)
    return _whole_queries(_text_blocks(source, settings, sparse), batch_queries, settings.path)


def _text_blocks(path: Any, settings: Settings, sparse: bool | None) -> Iterator[RankingData]:
    """The rows of each window of text."""
    with contextlib.nullcontext(path) if hasattr(path, "read") else open(os.fspath(path), "rb") as file:
        source = file if file is path else GrowingFile(file, settings.path)
        texts, reader = _texts(source, settings, sparse), _TextReader(settings, sparse)
        for number, window in enumerate(texts):
            if isinstance(window, BrokenStreamError):
                raise ParseError(settings.path, reader.lines + 1, 1, f"{window}; the lines before are well-formed")
            content = np.frombuffer(window, dtype=np.uint8)
            yield from reader.blocks(content, 0 if number else text_start(MemoryText(content), settings))
        if reader.layout is None:
            raise DataError(f"{settings.path} has no line of data.")


def _texts(
    file: IO[bytes] | GrowingFile, settings: Settings, sparse: bool | None
) -> Iterator[bytes | BrokenStreamError]:
    head = b""
    while len(head) < 6 and (part := file.read(6 - len(head))):
        head += part
    kind = compression_of(head)
    if kind is not None:
        return windows(decompressed(_Rejoined(head, file), kind), WINDOW, WINDOW)  # type: ignore[arg-type]
    # Plain text is read as it arrives, so that a pipe's queries need not wait for later ones; only the first window
    # must be complete if options are inferred from it.
    known = settings.n_features is not None and settings.zero_based is not None and sparse is not None
    return windows(_as_it_comes(head, file), 0 if known else WINDOW, 0)


def _as_it_comes(head: bytes, file: IO[bytes] | GrowingFile) -> Iterator[bytes]:
    yield head
    read = getattr(file, "read1", file.read)
    while chunk := read(WINDOW):
        yield chunk


class _Rejoined:
    """A file whose first bytes were already read."""

    def __init__(self, head: bytes, file: IO[bytes] | GrowingFile):
        self._head, self._file = head, file

    def read(self, size: int) -> bytes:
        head, self._head = self._head, b""
        return head or self._file.read(size)


class _TextReader:
    """Converts windows of text to rows; the first window with rows determines the options that were not given."""

    def __init__(self, settings: Settings, sparse: bool | None):
        self.settings, self._sparse = settings, sparse
        self.layout: Layout | None = None
        self.lines = 0

    def blocks(self, content: np.ndarray, start: int) -> Iterator[RankingData]:
        """The rows of one window, if any; rows before a bad line are yielded before the error."""
        text = MemoryText(content)
        ranges = split(text, start, 1)
        if any(part.rows for part in ranges):
            try:
                block = self._parsed(text, ranges)
            except ParseError as error:
                before = MemoryText(content[: _line_start(content, error.line - self.lines)])
                good = split(before, start, 1)
                if any(part.rows for part in good):
                    yield self._parsed(before, good)
                raise
            yield block
        self.lines += sum(part.lines for part in ranges)

    def _parsed(self, text: Text, ranges: list) -> RankingData:
        if self.layout is None:
            piece, self.layout = parse_whole(text, ranges, self.settings, self._sparse, self.lines)
            assumed = self.settings.n_features is None or self.settings.zero_based is None
            self.settings = replace(
                self.settings, n_features=self.layout.columns, zero_based=self.layout.zero_based, assumed=assumed
            )
        else:
            piece = parse_window(text, ranges, self.layout, self.settings, self.lines, np.empty)
        return assemble([piece], self.layout, self.settings)


def _line_start(text: np.ndarray, line: int) -> int:
    """Start of a line; lines are numbered from 1."""
    return 0 if line == 1 else int(np.flatnonzero(text == 10)[line - 2]) + 1


def _checked_batch_queries(batch_queries: int) -> int:
    """The validated number of queries of a batch; OptionError if it is invalid."""
    if not is_integer(batch_queries, 1):
        raise OptionError(f"batch_queries must be a positive integer, got {batch_queries!r}.")
    return int(batch_queries)


def _whole_queries(blocks: Iterable[RankingData], batch_queries: int, name: str) -> Iterator[RankingData]:
    """Rows in batches of ``batch_queries`` queries; a query is a run of rows with one id, also across blocks.

    A batch ends early if it already contains the id of the next query; the last batch may be smaller.

    Raises
    ------
    DataError
        When a block has no query ids, which mark the ends of queries. Before this error, or one that ``blocks``
        raises, all complete queries are yielded.
    """
    rest: list[RankingData] = []  # rows of a query that may continue in the next block
    try:
        for block in blocks:
            if block.qid is None:
                raise DataError(f"{name} has no query ids (qid:...): a new query begins where the id changes.")
            if rest and _is_one_query(rest[-1], block):
                rest.append(block)  # a query that spans many blocks, which are joined once
                continue
            rows = _joined([*rest, block])
            cuts = [0, *_cuts(np.asarray(rows.qid), batch_queries)]
            for start, stop in pairwise(cuts):
                yield rows.select(slice(start, stop))
            rest = [rows.select(slice(cuts[-1], None))]
    except DataError:
        # complete queries are yielded before the error
        if rest and (last := _starts(np.asarray((rows := _joined(rest)).qid))[-1]):
            yield rows.select(slice(0, int(last)))
        raise
    if rest:
        yield _joined(rest)


def _starts(qid: np.ndarray) -> np.ndarray:
    """First row of each run of equal ids."""
    return np.concatenate(([0], np.flatnonzero(qid[1:] != qid[:-1]) + 1))


def _cuts(qid: np.ndarray, batch_queries: int) -> Iterator[int]:
    """Rows at which a batch begins, except the first."""
    starts = _starts(qid)
    seen: set = set()
    for query, start in zip(qid[starts].tolist(), starts.tolist(), strict=True):
        if len(seen) == batch_queries or query in seen:
            yield start
            seen.clear()
        seen.add(query)


def _is_one_query(before: RankingData, block: RankingData) -> bool:
    last, ids = np.asarray(before.qid)[-1], np.asarray(block.qid)
    return bool((ids == ids[0]).all()) and str(last) == str(ids[0])


def _joined(blocks: list[RankingData]) -> RankingData:
    if len(blocks) == 1:
        return blocks[0]
    docid = None
    if any(block.docid is not None for block in blocks):
        docid = _join_ids([np.zeros(block.n_rows, "U1") if block.docid is None else block.docid for block in blocks])
    return RankingData(
        frames.stacked(*(block.X for block in blocks)),
        np.concatenate([block.y for block in blocks]),
        _join_ids([block.qid for block in blocks]),
        docid,
        blocks[0].feature_names,
    )


def _join_ids(arrays: list) -> np.ndarray:
    if all(array.dtype == arrays[0].dtype for array in arrays):
        return np.concatenate(arrays)
    return join_strings(arrays)
