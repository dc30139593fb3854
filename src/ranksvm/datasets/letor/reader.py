"""Reading LETOR / SVMlight text."""

import io
import os
import stat
from collections.abc import Callable, Iterator
from typing import IO, Any, TypeVar

import numpy as np
from numpy.typing import DTypeLike

from ranksvm._util.compression import BrokenStreamError, compression_of, decompressed
from ranksvm._util.threads import parallel_map
from ranksvm._util.types import PathLike
from ranksvm.datasets.letor.source import FileText, MemoryText, Text
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

__all__ = ["read_letor"]

T = TypeVar("T")


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
