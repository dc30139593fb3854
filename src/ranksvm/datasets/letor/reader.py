"""Reading LETOR / SVMlight text: whole, or in blocks of rows in memory that does not grow with the size of the file."""

import io
import os
import stat
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import IO, Any, TypeVar

import numpy as np
from numpy.typing import DTypeLike

from ranksvm._util.compression import BrokenStreamError, compression_of, decompressed
from ranksvm._util.threads import parallel_map
from ranksvm._util.types import PathLike
from ranksvm.datasets.letor.source import FileText, MemoryText, Text, after_newline
from ranksvm.datasets.letor.text import Layout, Piece, Range, Settings, empty_pages, split, widened
from ranksvm.datasets.letor.windows import (
    WINDOW,
    WrongLayoutError,
    assemble,
    check_density,
    first_layout,
    parse_whole,
    parse_window,
    settings_of,
    text_start,
    windows,
)
from ranksvm.datasets.ranking_data import RankingData
from ranksvm.exceptions import DataError, ParseError

__all__ = ["letor_blocks", "read_letor"]

T = TypeVar("T")
# Number of bytes of plain text that all threads together parse at a time.
_TEXT = 1 << 24

# Called with the number of bytes of the file that have been read.
Read = Callable[[int], None]
# Parts of the text, each with the position of its end in the file (0 if compressed); the last may be an error.
Texts = Iterator[tuple[Text | BrokenStreamError, int]]


def read_letor(
    path: PathLike | IO[bytes],
    *,
    n_features: int | None = None,
    dtype: DTypeLike = np.float32,
    sparse: bool | None = None,
    zero_based: bool | str = "auto",
    docids: bool = True,
    n_jobs: int | None = None,
) -> RankingData:
    """Read ranking data from LETOR / SVMlight text.

    A line is ``label qid:id feature:value ... # comment``.

    The file may be compressed (gzip, bzip2, xz, zstd: recognized by its content), begin with a byte-order mark, and
    have lines that end in CRLF, blank lines and comment lines. Queries may occur in any order, and their lines need not
    be contiguous. Labels are any finite numbers. Feature ids may be in any order in a line; omitted features are 0.
    Every number is rounded once from its decimal text to the requested type. If no line has a qid, ``qid`` is None (one
    query).

    Parameters
    ----------
    path : path-like or binary file object
        The file. A plain file is read twice, in parts and in parallel; if another process changes it meanwhile, that is
        an error. Give an open file, or a pipe, to read it once.
    n_features : int, optional
        Number of columns of X; a larger feature id is then an error. None: as many as the largest id needs.
    dtype : {numpy.float32, numpy.float64}, default=numpy.float32
        Type of the values of X. Labels are float64.
    sparse : bool, optional
        True: X is CSR and stores every value in the file, including zeros. False: X is dense. None: dense if the file
        contains at least a quarter of all values.
    zero_based : bool or "auto", default="auto"
        Whether feature ids start at 0. "auto": they do if the file has an id 0.
    docids : bool, default=True
        Whether to read document ids: ``X`` of a comment ``#docid = X``, or else its first word. Rows without an id have
        the empty string; if no row has one, ``docid`` is None.
    n_jobs : int, optional
        Number of threads; None means all processors.

    Returns
    -------
    RankingData
        X (dense, C-contiguous, or `scipy.sparse.csr_matrix` with sorted indices), y (float64), qid (int64 if all are
        integers, else str) and docid.

    Raises
    ------
    ParseError
        When a line is malformed or compressed data end early; it names the file, line, column and reason. It reports
        the first bad line, for any number of threads.
    DataError
        When the file holds no data, is of another kind, or was changed by another process while it was read.
    OptionError
        When an option has an invalid value.
    MissingDependencyError
        When a ``.zst`` file is read and no package for it is installed.

    Examples
    --------
    >>> import io
    >>> data = read_letor(io.BytesIO(b"2 qid:1 1:0.5 2:1 # a\\n0 qid:1 1:0.25 # b\\n"))
    >>> data.X.tolist(), data.y.tolist(), data.qid.tolist(), data.docid.tolist()
    ([[0.5, 1.0], [0.25, 0.0]], [2.0, 0.0], [1, 1], ['a', 'b'])
    """
    settings = settings_of(path, n_features, dtype, sparse, zero_based, docids, n_jobs)
    if hasattr(path, "read"):
        return _read_bytes(path.read(), settings, sparse)
    with open(path, "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return _read_bytes(file.read(), settings, sparse)
        head = file.read(16)
        file.seek(0)
        if (kind := compression_of(head)) is not None:
            return _read_stream(file, kind, settings, sparse)
        if not head:
            raise DataError(f"{settings.path} is empty: it contains no data.")
        with FileText(file, settings.path) as text:
            return _read_text(text, settings, sparse)


def _read_bytes(content: bytes, settings: Settings, sparse: bool | None) -> RankingData:
    if (kind := compression_of(content)) is not None:
        return _read_stream(io.BytesIO(content), kind, settings, sparse)
    return _read_text(MemoryText(np.frombuffer(content, dtype=np.uint8)), settings, sparse)


def _read_text(text: Text, settings: Settings, sparse: bool | None) -> RankingData:
    """Read text of known size: count its rows and values, then parse them directly into the result."""
    start = text_start(text, settings)
    ranges = split(text, start, settings.n_threads)
    if sum(part.rows for part in ranges) == 0:
        raise DataError(f"{settings.path} has no line of data.")
    piece, layout = parse_whole(text, ranges, settings, sparse)
    return assemble([piece], layout, settings)


def _read_stream(file: IO[bytes], kind: str, settings: Settings, sparse: bool | None) -> RankingData:
    """Read compressed text: each window is parsed while the next one is decompressed."""
    layout = None
    while True:
        try:
            file.seek(0)
            pieces, layout = _parse_stream(windows(decompressed(file, kind), WINDOW, WINDOW), layout, settings, sparse)
            rows, entries = sum(piece.rows for piece in pieces), sum(piece.entries for piece in pieces)
            if rows == 0:
                raise DataError(f"{settings.path} has no line of data.")
            largest = max(piece.largest_id for piece in pieces)
            layout = check_density(layout, rows, entries, largest, settings, sparse)
            return assemble(pieces, layout, settings)
        except WrongLayoutError as wrong:
            layout = wrong.layout


def _parse_stream(
    texts: Iterator[bytes | BrokenStreamError], layout: Layout | None, settings: Settings, sparse: bool | None
) -> tuple[list[Piece], Layout]:
    pieces: list[Piece] = []
    lines = 0
    window = next(texts, None)
    first = True
    while window is not None:
        if isinstance(window, BrokenStreamError):
            raise ParseError(settings.path, lines + 1, 1, f"{window}; the lines before are well-formed")
        text = MemoryText(np.frombuffer(window, dtype=np.uint8))
        start = text_start(text, settings) if first else 0
        first = False
        ranges = split(text, start, 1)
        rows, colons = sum(part.rows for part in ranges), sum(part.colons for part in ranges)
        if layout is None and rows:
            layout = first_layout(text, start, rows, colons, settings, sparse)

        def parse(
            text: Text = text, ranges: list[Range] = ranges, layout: Layout | None = layout, before: int = lines
        ) -> Piece | None:
            return None if layout is None else parse_window(text, ranges, layout, settings, before, empty_pages)

        # One thread parses this window while another decompresses the next. Decompression comes first in the list: if
        # the parser's error were the first result, it would be raised while the file is still being read.
        tasks: list[Callable[[], Any]] = [lambda: next(texts, None), parse]
        following, piece = parallel_map(_call, tasks, min(2, settings.n_threads))
        if piece is not None and layout is not None:
            pieces.append(piece)
            layout = widened(layout, piece) or layout
        lines += sum(part.lines for part in ranges)
        window = following
    return pieces, layout or Layout(0, False, False, False)


def _call(function: Callable[[], T]) -> T:
    return function()


def letor_blocks(
    path: PathLike, settings: Settings, sparse: bool | None, layout: Layout | None, read: Read
) -> Iterator[RankingData]:
    """The rows of a file in blocks, as `read_letor` reads them.

    Parameters
    ----------
    path : path-like
        A regular file, plain or compressed.
    settings : Settings
        Options of the reader.
    sparse : bool or None
        Whether X is sparse; None: as the density of the whole file demands.
    layout : Layout or None
        The layout of the file, if it is known.
    read : callable
        Called with the number of bytes of the file that have been read.

    Yields
    ------
    RankingData
        Rows.

    Raises
    ------
    WrongLayoutError
        At the end of the file, if its layout is not the one that its beginning suggested. The blocks are then invalid,
        and must be read again with the layout that the error carries.
    """
    reader = _Reader(settings, sparse, layout)
    with open(path, "rb") as file:
        kind = compression_of(file.read(16))
        file.seek(0)
        if kind is None:
            with FileText(file, settings.path) as text:
                yield from reader.blocks(_parts(text), text, read)
        else:
            texts = windows(decompressed(file, kind), WINDOW, WINDOW)
            yield from reader.blocks(_decompressed_ahead(texts), None, lambda _: read(file.tell()))
    reader.finish()


def _parts(text: Text) -> Iterator[tuple[Text, int]]:
    """Parts of a plain file, which consist of whole lines, each with the position of its end."""
    start = 0
    while start < text.size:
        stop = after_newline(text, min(start + _TEXT, text.size) - 1)
        yield _Part(text, start, stop), stop
        start = stop


def _decompressed_ahead(texts: Iterator[bytes | BrokenStreamError]) -> Texts:
    """The windows of decompressed text; the next one is decompressed while one is parsed."""
    with ThreadPoolExecutor(1) as thread:
        following = thread.submit(next, texts, None)
        while (window := following.result()) is not None:
            following = thread.submit(next, texts, None)
            if isinstance(window, BrokenStreamError):
                yield window, 0
            else:
                yield MemoryText(np.frombuffer(window, np.uint8)), 0


class _Part:
    """A part of a text; implements the protocol `Text`."""

    def __init__(self, text: Text, start: int, stop: int):
        self.size = stop - start
        self._text, self._start = text, start

    def part(self, start: int, stop: int) -> AbstractContextManager[np.ndarray]:
        return self._text.part(self._start + start, self._start + stop)


class _Reader:
    """Parses one text after another, and determines the layout that fits all of them."""

    def __init__(self, settings: Settings, sparse: bool | None, layout: Layout | None):
        self.settings, self._sparse = settings, sparse
        self._layout = layout
        self._wrong = False
        self._lines = self._rows = self._entries = 0
        self._largest = -1

    def blocks(self, texts: Texts, whole: Text | None, read: Read) -> Iterator[RankingData]:
        """The rows of each text, as long as they fit the layout."""
        first = True
        for text, stop in texts:
            if isinstance(text, BrokenStreamError):
                raise ParseError(self.settings.path, self._lines + 1, 1, f"{text}; the lines before are well-formed")
            start = text_start(text, self.settings) if first else 0
            first = False
            ranges = split(text, start, self.settings.n_threads)
            rows, colons = sum(part.rows for part in ranges), sum(part.colons for part in ranges)
            if rows:
                if self._layout is None:
                    self._layout = first_layout(whole or text, start, rows, colons, self.settings, self._sparse)
                piece = self._parsed(text, ranges)
                if not self._wrong:
                    yield assemble([piece], self._layout, self.settings)
            self._lines += sum(part.lines for part in ranges)
            read(stop)

    def _parsed(self, text: Text, ranges: list) -> Piece:
        assert self._layout is not None
        layout = self._layout
        try:
            piece = parse_window(text, ranges, layout, self.settings, self._lines, np.empty)
        except WrongLayoutError as wrong:
            layout, self._wrong = wrong.layout, self._wrong or self._rows > 0
            piece = parse_window(text, ranges, layout, self.settings, self._lines, np.empty)
        wider = widened(layout, piece)
        self._wrong = self._wrong or (wider is not None and self._rows > 0)
        self._layout = wider or layout
        self._rows += piece.rows
        self._entries += piece.entries
        self._largest = max(self._largest, piece.largest_id)
        if self._layout.sparse and self.settings.n_features is None:
            self._layout = replace(self._layout, columns=max(1, self._largest + self._layout.zero_based))
        return piece

    def finish(self) -> None:
        """Refuse a file without rows, or with another layout than its beginning suggested."""
        if self._layout is None:
            raise DataError(f"{self.settings.path} has no line of data.")
        settings = self.settings
        final = check_density(self._layout, self._rows, self._entries, self._largest, settings, self._sparse)
        if self._wrong:
            raise WrongLayoutError(final)
