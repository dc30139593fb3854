"""Reading LETOR / SVMlight text as a stream of queries, in bounded memory."""

import contextlib
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import IO, Any

import numpy as np
from numpy.typing import DTypeLike

from ranksvm._util.compression import BrokenStreamError, compression_of, decompressed
from ranksvm._util.types import PathLike
from ranksvm.datasets.letor.source import GrowingFile, MemoryText, Text
from ranksvm.datasets.letor.text import Layout, Settings, split
from ranksvm.datasets.letor.windows import WINDOW, assemble, parse_whole, parse_window, settings_of, text_start, windows
from ranksvm.datasets.ranking_data import RankingData
from ranksvm.datasets.whole_queries import checked_batch_queries, whole_queries
from ranksvm.exceptions import DataError, ParseError

__all__ = ["iter_letor"]


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
        The documents of ``batch_queries`` queries. ``qid`` is int64 if all ids of the same block of text are integers,
        else str.

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
    batch_queries = checked_batch_queries(batch_queries)
    standard_input = isinstance(path, str) and path == "-"
    source = sys.stdin.buffer if standard_input else path
    settings = settings_of(source, n_features, dtype, sparse, zero_based, docids, n_jobs=1)
    return whole_queries(_blocks(source, settings, sparse), batch_queries, settings.path)


def _blocks(path: Any, settings: Settings, sparse: bool | None) -> Iterator[RankingData]:
    """The rows of each window of text."""
    with contextlib.nullcontext(path) if hasattr(path, "read") else open(os.fspath(path), "rb") as file:
        source = file if file is path else GrowingFile(file, settings.path)
        texts, reader = _texts(source, settings, sparse), _Reader(settings, sparse)
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


class _Reader:
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
