"""Reading LETOR / SVMlight text as a stream of queries, in bounded memory."""

import contextlib
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import IO, Any

import numpy as np

from ranksvm.data._letor_text import Layout, Settings, split
from ranksvm.data._letor_windows import WINDOW, assemble, parse_whole, parse_window, settings_of, text_start, windows
from ranksvm.data._whole_queries import checked_batch_queries, whole_queries
from ranksvm.data.compression import BrokenStreamError, compression_of, decompressed
from ranksvm.data.ranking_data import RankingData
from ranksvm.exceptions import DataError, ParseError

__all__ = ["iter_letor"]


def iter_letor(
    path: Any,
    *,
    batch_queries: int = 1,
    n_features: int | None = None,
    dtype: Any = np.float32,
    sparse: bool | None = None,
    zero_based: bool | str = "auto",
    docids: bool = True,
) -> Iterator[RankingData]:
    """Read LETOR / SVMlight text query by query, in memory that does not grow with the file.

    A query is a run of lines with one id: an id that comes back later is a query of its own, a new arrival. Every batch
    has the same columns. What is left open of them (``n_features``, ``sparse``, ``zero_based``) is taken from the first
    4 MiB of the text; so a pipe whose queries are wanted as they come needs all three. Files may be of all the kinds
    that `read_letor` reads.

    Parameters
    ----------
    path : path-like, binary file object, or "-"
        The file; "-" is standard input.
    batch_queries : int, default=1
        Number of queries of a batch. One ends early before an id that it has already; the last one may be smaller.
    n_features : int, optional
        Number of columns of X; a larger feature id is an error. None: as many as the first 4 MiB need.
    dtype : {numpy.float32, numpy.float64}, default=numpy.float32
        Type of the values of X. Labels are float64.
    sparse : bool, optional
        True: X is CSR. False: X is dense. None: dense when the first 4 MiB state at least a quarter of all values.
    zero_based : bool or "auto", default="auto"
        Whether feature ids count from 0. "auto": they do when the first 4 MiB have an id 0.
    docids : bool, default=True
        Whether to read document ids, as `read_letor` does.

    Yields
    ------
    RankingData
        The documents of ``batch_queries`` queries. ``qid`` is int64 where all ids about there are integers, else str.

    Raises
    ------
    ParseError
        When a line is malformed or compressed data end early: file, line, column and reason, as `read_letor` has them.
        Queries that another one follows before that line were yielded.
    DataError
        When the file holds no data, is of another kind, or has no query ids.
    OptionError
        When an option has a value it cannot have; at once, before the first query is asked for.
    MissingDependencyError
        When a ``.zst`` file is read and no package for it is installed.

    See Also
    --------
    read_letor : Reads all of a file.

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
        texts, reader = _texts(file, settings, sparse), _Reader(settings, sparse)
        for number, window in enumerate(texts):
            if isinstance(window, BrokenStreamError):
                raise ParseError(settings.path, reader.lines + 1, 1, f"{window}; the lines before are well-formed")
            text = np.frombuffer(window, dtype=np.uint8)
            yield from reader.blocks(text, 0 if number else text_start(text, settings))
        if reader.layout is None:
            raise DataError(f"{settings.path} has no line of data.")


def _texts(file: IO[bytes], settings: Settings, sparse: bool | None) -> Iterator[bytes | BrokenStreamError]:
    head = b""
    while len(head) < 6 and (part := file.read(6 - len(head))):
        head += part
    kind = compression_of(head)
    if kind is not None:
        return windows(decompressed(_Rejoined(head, file), kind), WINDOW, WINDOW)  # type: ignore[arg-type]
    # Plain text is taken as it comes, so that a pipe's queries need not wait for those after them: all but the first
    # window where that has to show what the caller left open.
    known = settings.n_features is not None and settings.zero_based is not None and sparse is not None
    return windows(_as_it_comes(head, file), 0 if known else WINDOW, 0)


def _as_it_comes(head: bytes, file: IO[bytes]) -> Iterator[bytes]:
    yield head
    read = getattr(file, "read1", file.read)
    while chunk := read(WINDOW):
        yield chunk


class _Rejoined:
    """A file of which the first bytes were read already."""

    def __init__(self, head: bytes, file: IO[bytes]):
        self._head, self._file = head, file

    def read(self, size: int) -> bytes:
        head, self._head = self._head, b""
        return head or self._file.read(size)


class _Reader:
    """From windows of text to rows; the first window that has any fixes what the caller left open."""

    def __init__(self, settings: Settings, sparse: bool | None):
        self.settings, self._sparse = settings, sparse
        self.layout: Layout | None = None
        self.lines = 0

    def blocks(self, text: np.ndarray, start: int) -> Iterator[RankingData]:
        """The rows of one window, if it has some; those before a bad line come before the error."""
        ranges = split(text, start, 1)
        if any(part.rows for part in ranges):
            try:
                block = self._parsed(text, ranges)
            except ParseError as error:
                good = split(text[: _line_start(text, error.line - self.lines)], start, 1)
                if any(part.rows for part in good):
                    yield self._parsed(text, good)
                raise
            yield block
        self.lines += sum(part.lines for part in ranges)

    def _parsed(self, text: np.ndarray, ranges: list) -> RankingData:
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
    """Where a line begins, of which the first is number 1."""
    return 0 if line == 1 else int(np.flatnonzero(text == 10)[line - 2]) + 1
