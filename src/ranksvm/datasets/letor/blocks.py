"""LETOR text read in blocks of rows with one layout, in memory that does not depend on the size of the file."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import replace

import numpy as np

from ranksvm._util.compression import BrokenStreamError, compression_of, decompressed
from ranksvm._util.types import PathLike
from ranksvm.datasets.letor.source import FileText, MemoryText, Text, after_newline
from ranksvm.datasets.letor.text import Layout, Piece, Settings, split, widened
from ranksvm.datasets.letor.windows import (
    WINDOW,
    WrongLayoutError,
    assemble,
    check_density,
    first_layout,
    parse_window,
    text_start,
    windows,
)
from ranksvm.datasets.ranking_data import RankingData
from ranksvm.exceptions import DataError, ParseError

__all__ = ["letor_blocks"]

# Number of bytes of plain text that all threads together parse at a time.
_TEXT = 1 << 24

# Called with the number of bytes of the file that have been read.
Read = Callable[[int], None]
# Parts of the text, each with the position of its end in the file (0 if compressed); the last may be an error.
Texts = Iterator[tuple[Text | BrokenStreamError, int]]


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
