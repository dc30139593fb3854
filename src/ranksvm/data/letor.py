"""Reading LETOR / SVMlight text."""

import io
import mmap
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import replace
from typing import IO, Any

import numpy as np
import scipy.sparse as sp

from ranksvm._parallel import effective_n_jobs, parallel_map
from ranksvm.data._compression import BrokenStreamError, compression_of, decompressed
from ranksvm.data._letor_text import (
    Layout,
    Piece,
    Settings,
    empty_pages,
    pack_strings,
    parse_text,
    probe,
    split,
    widened,
)
from ranksvm.data.ranking_data import RankingData
from ranksvm.exceptions import DataError, OptionError, ParseError

__all__ = ["read_letor"]

# Share of the values that a file states from which X is dense. A CSR entry takes twice the memory of a dense float32
# and about four times its time in a product with a vector, so below a quarter CSR is both smaller and faster.
_DENSE_FROM = 0.25
# Decompressed text is parsed in windows of this many bytes: small beside any result whose memory matters.
_WINDOW = 1 << 22
_MODEL = re.compile(rb"PK\x03\x04.{26}header\.json", re.DOTALL)  # the first member of the zip archive
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_NOT_TEXT = {
    b"\xff\xfe": "UTF-16 text: convert it to UTF-8",
    b"\xfe\xff": "UTF-16 text: convert it to UTF-8",
    b"PAR1": "a Parquet file: use RankingData.from_parquet or read_data",
    b"ranksvm-data": "a ranksvm data cache: use RankingData.load or read_data",
    b"PK\x03\x04": "a zip archive, not data: unpack it",
}


class _WrongLayoutError(Exception):
    """Reading showed that the file has another layout; carries that one."""

    def __init__(self, layout: Layout):
        self.layout = layout


def read_letor(
    path: Any,
    *,
    n_features: int | None = None,
    dtype: Any = np.float32,
    sparse: bool | None = None,
    zero_based: bool | str = "auto",
    docids: bool = True,
    n_jobs: int | None = None,
) -> RankingData:
    """Read ranking data from LETOR / SVMlight text: ``label qid:id feature:value ... # comment`` per line.

    The file may be compressed (gzip, bzip2, xz, zstd: told by its content), begin with a byte-order mark, have
    lines that end in CRLF, blank lines and comment lines. Queries may come in any order, also interrupted. Labels
    are any finite numbers. Feature ids may be in any order in a line, a feature left out is 0. Every number is
    rounded once from its decimal text to the type asked for. Where no line has a qid, ``qid`` is None (one query).

    Parameters
    ----------
    path : path-like or binary file object
        The file. A plain file is mapped into memory and parsed in parallel.
    n_features : int, optional
        Number of columns of X; a larger feature id is then an error. None: as many as the largest id needs.
    dtype : {numpy.float32, numpy.float64}, default=numpy.float32
        Type of the values of X. Labels are float64.
    sparse : bool, optional
        True: X is CSR, with every value stored that the file states, zeros too. False: X is dense. None: dense
        when the file states at least a quarter of all values.
    zero_based : bool or "auto", default="auto"
        Whether feature ids count from 0. "auto": they do when the file has an id 0.
    docids : bool, default=True
        Whether to read document ids: ``X`` of a comment ``#docid = X``, or else its first word. Rows without one
        have the empty string; where no row has one, ``docid`` is None.
    n_jobs : int, optional
        Number of threads; None is all processors.

    Returns
    -------
    RankingData
        X (dense, C-contiguous, or `scipy.sparse.csr_matrix` with sorted indices), y (float64), qid (int64 where
        all are integers, else str) and docid.

    Raises
    ------
    ParseError
        When a line is malformed or compressed data end early: file, line, column and reason. It is the first bad
        line, whatever the number of threads.
    DataError
        When the file holds no data or is of another kind.
    OptionError
        When an option has a value it cannot have.
    MissingDependencyError
        When a ``.zst`` file is read and no package for it is installed.

    Examples
    --------
    >>> import io
    >>> data = read_letor(io.BytesIO(b"2 qid:1 1:0.5 2:1 # a\\n0 qid:1 1:0.25 # b\\n"))
    >>> data.X.tolist(), data.y.tolist(), data.qid.tolist(), data.docid.tolist()
    ([[0.5, 1.0], [0.25, 0.0]], [2.0, 0.0], [1, 1], ['a', 'b'])
    """
    settings = _settings(path, n_features, dtype, sparse, zero_based, docids, n_jobs)
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
            raise DataError(f"{settings.path} is empty: there is no data in it.")
        # Unmapped when the last view goes; closed by hand it would fail under an error's traceback, which holds views.
        text = np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), dtype=np.uint8)
    return _read_text(text, settings, sparse)


def _settings(
    path: Any, n_features: Any, dtype: Any, sparse: Any, zero_based: Any, docids: Any, n_jobs: int | None
) -> Settings:
    if n_features is not None and not (isinstance(n_features, int | np.integer) and n_features >= 1):
        raise OptionError(f"n_features must be None or a positive integer, got {n_features!r}.")
    if dtype not in (np.float32, np.float64, "float32", "float64", np.dtype(np.float32), np.dtype(np.float64)):
        raise OptionError(f"dtype must be numpy.float32 or numpy.float64, got {dtype!r}.")
    if sparse not in (None, True, False):
        raise OptionError(f"sparse must be None, True or False, got {sparse!r}.")
    if not (isinstance(zero_based, bool) or zero_based == "auto"):
        raise OptionError(f"zero_based must be True, False or 'auto', got {zero_based!r}.")
    name = getattr(path, "name", "<bytes>") if hasattr(path, "read") else os.fspath(path)
    return Settings(
        path=os.fsdecode(name) if isinstance(name, str | bytes) else "<bytes>",
        dtype=np.dtype(dtype),
        n_features=None if n_features is None else int(n_features),
        zero_based=None if zero_based == "auto" else bool(zero_based),
        docids=bool(docids),
        n_threads=effective_n_jobs(n_jobs),
    )


def _read_bytes(content: bytes, settings: Settings, sparse: bool | None) -> RankingData:
    if (kind := compression_of(content)) is not None:
        return _read_stream(io.BytesIO(content), kind, settings, sparse)
    return _read_text(np.frombuffer(content, dtype=np.uint8), settings, sparse)


def _read_text(text: np.ndarray, settings: Settings, sparse: bool | None) -> RankingData:
    """Text that lies in memory whole: exact counts first, then parsed straight into the result."""
    start = _start(text, settings)
    ranges = split(text, start, settings.n_threads)
    rows = sum(part.rows for part in ranges)
    if rows == 0:
        raise DataError(f"{settings.path} has no line of data.")
    colons = sum(part.colons for part in ranges)
    layout = _first_layout(text, start, rows, colons, settings, sparse)
    while True:
        try:
            piece = _parse_window(text, ranges, layout, settings, 0, np.empty)
            layout = _check_density(layout, piece.rows, piece.entries, piece.largest_id, settings, sparse)
            return _assemble([piece], layout, settings)
        except _WrongLayoutError as wrong:
            layout = wrong.layout


def _read_stream(file: IO[bytes], kind: str, settings: Settings, sparse: bool | None) -> RankingData:
    """Compressed text: parsed window by window, while the next one is decompressed."""
    layout = None
    while True:
        try:
            file.seek(0)
            pieces, layout = _parse_stream(_windows(file, kind), layout, settings, sparse)
            rows, entries = sum(piece.rows for piece in pieces), sum(piece.entries for piece in pieces)
            if rows == 0:
                raise DataError(f"{settings.path} has no line of data.")
            largest = max(piece.largest_id for piece in pieces)
            layout = _check_density(layout, rows, entries, largest, settings, sparse)
            return _assemble(pieces, layout, settings)
        except _WrongLayoutError as wrong:
            layout = wrong.layout


def _windows(file: IO[bytes], kind: str) -> Iterator[bytes | BrokenStreamError]:
    """The decompressed text cut at line ends; an error comes after the good text, as the last item."""
    parts: list[bytes] = []
    size = 0
    try:
        for chunk in decompressed(file, kind):
            parts.append(chunk)
            size += len(chunk)
            if size >= _WINDOW and b"\n" in chunk:
                text = b"".join(parts)
                cut = text.rindex(b"\n") + 1
                parts = [text[cut:]]
                size = len(text) - cut
                yield text[:cut] if size else text
                del text
    except BrokenStreamError as error:
        # The last line may be cut anywhere, and is no line to judge.
        text = b"".join(parts)
        yield text[: text.rfind(b"\n") + 1]
        yield error
        return
    yield b"".join(parts)


def _parse_stream(
    windows: Iterator[bytes | BrokenStreamError], layout: Layout | None, settings: Settings, sparse: bool | None
) -> tuple[list[Piece], Layout]:
    pieces: list[Piece] = []
    lines = 0
    window = next(windows, None)
    first = True
    while window is not None:
        if isinstance(window, BrokenStreamError):
            raise ParseError(settings.path, lines + 1, 1, f"{window}; the lines before are well-formed")
        text = np.frombuffer(window, dtype=np.uint8)
        start = _start(text, settings) if first else 0
        first = False
        ranges = split(text, start, 1)
        rows, colons = sum(part.rows for part in ranges), sum(part.colons for part in ranges)
        if layout is None and rows:
            layout = _first_layout(text, start, rows, colons, settings, sparse)

        def parse(text: Any = text, ranges: Any = ranges, layout: Any = layout, before: int = lines) -> Piece | None:
            return None if layout is None else _parse_window(text, ranges, layout, settings, before, empty_pages)

        # One thread parses this window while another decompresses the next. That one comes first in the list: were
        # the parser's error the first result, it would be raised while the file is still being read.
        tasks = [lambda: next(windows, None), parse]
        following, piece = parallel_map(_call, tasks, min(2, settings.n_threads))
        if piece is not None and layout is not None:
            pieces.append(piece)
            layout = widened(layout, piece) or layout
        lines += sum(part.lines for part in ranges)
        window = following
    return pieces, layout or Layout(0, False, False, False)


def _call(function: Any) -> Any:
    return function()


def _parse_window(
    text: np.ndarray, ranges: list, layout: Layout, settings: Settings, lines_before: int, empty: Any
) -> Piece:
    """Parse, and again where a feature id is larger than thought."""
    piece = parse_text(text, ranges, layout, settings, lines_before, empty)
    if piece.needs_zero_base:
        raise _WrongLayoutError(replace(layout, zero_based=True))
    wider = None if settings.n_features else widened(layout, piece)
    if wider is not None:
        del piece
        piece = parse_text(text, ranges, wider, settings, lines_before, empty)
    return piece


def _start(text: np.ndarray, settings: Settings) -> int:
    """Where the text begins, past a byte-order mark."""
    head = text[:64].tobytes()
    if _MODEL.match(head):
        raise DataError(f"{settings.path} is a ranksvm model file, not data.")
    for magic, what in _NOT_TEXT.items():
        if head.startswith(magic):
            raise DataError(f"{settings.path} is {what}.")
    return len(_BYTE_ORDER_MARK) if head.startswith(_BYTE_ORDER_MARK) else 0


def _first_layout(
    text: np.ndarray, start: int, rows: int, colons: int, settings: Settings, sparse: bool | None
) -> Layout:
    has_qid = re.search(rb"(?:^|[ \t\r])qid:", _first_data_line(text, start)) is not None
    largest, zero = probe(text, start, has_qid)
    zero_based = zero if settings.zero_based is None else settings.zero_based
    columns = settings.n_features or max(1, largest + zero_based)
    density = (colons - rows * has_qid) / (rows * columns)
    return Layout(columns, zero_based, density < _DENSE_FROM if sparse is None else bool(sparse), has_qid)


def _first_data_line(text: np.ndarray, start: int) -> bytes:
    """The first line of data without its comment."""
    step = 1 << 16
    line = b""
    for position in range(start, len(text), step):
        *whole, line = (line + text[position : position + step].tobytes()).split(b"\n")
        for candidate in whole:
            if content := candidate.partition(b"#")[0].strip():
                return content
    return line.partition(b"#")[0].strip()


def _check_density(
    layout: Layout, rows: int, entries: int, largest_id: int, settings: Settings, sparse: bool | None
) -> Layout:
    """Final layout, or `_WrongLayoutError` when the file's density asks for the other kind of matrix."""
    columns = settings.n_features or max(1, largest_id + layout.zero_based)
    wanted = entries < _DENSE_FROM * rows * columns if sparse is None else bool(sparse)
    final = replace(layout, columns=columns)
    if wanted != layout.sparse:
        raise _WrongLayoutError(replace(final, sparse=wanted))
    return final


def _assemble(pieces: list[Piece], layout: Layout, settings: Settings) -> RankingData:
    y = _join([piece.y for piece in pieces])
    qid = _join_strings([piece.qid for piece in pieces]) if layout.has_qid else None
    docid = None
    if any(piece.docid is not None for piece in pieces):
        docid = _join_strings([np.zeros(piece.rows, "U1") if piece.docid is None else piece.docid for piece in pieces])
    X = _join_sparse(pieces, layout) if layout.sparse else _join_dense(pieces, layout, settings.dtype)
    return RankingData(X, y, qid, docid)


def _join(arrays: list[np.ndarray]) -> np.ndarray:
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def _join_strings(arrays: list) -> np.ndarray:
    """Integers where all are, else strings (the integers were read from the text that str() gives)."""
    if len(arrays) == 1 or all(array.dtype == np.int64 for array in arrays):
        return _join(arrays)
    arrays = [pack_strings([str(v) for v in array.tolist()]) if array.dtype.kind == "i" else array for array in arrays]
    if any(array.dtype == object for array in arrays):
        return pack_strings([word for array in arrays for word in array.tolist()])
    return np.concatenate(arrays)


def _join_dense(pieces: list[Piece], layout: Layout, dtype: np.dtype) -> np.ndarray:
    if len(pieces) == 1 and pieces[0].X.shape[1] == layout.columns:
        return pieces[0].X
    X = np.empty((sum(piece.rows for piece in pieces), layout.columns), dtype=dtype)
    stop = len(X)
    while pieces:  # each piece is freed as its rows are filled in
        piece = pieces.pop()
        start = stop - piece.rows
        width = min(piece.X.shape[1], layout.columns)
        X[start:stop, :width] = piece.X[:, :width]
        X[start:stop, width:] = 0
        stop = start
    return X


def _join_sparse(pieces: list[Piece], layout: Layout) -> sp.csr_matrix:
    rows = sum(piece.rows for piece in pieces)
    if len(pieces) == 1:
        values, indices, pointers = pieces[0].X
    else:
        sizes = [piece.entries for piece in pieces]
        values = np.empty(sum(sizes), dtype=pieces[0].X[0].dtype)
        indices = np.empty(sum(sizes), dtype=np.int32)
        pointers = np.zeros(rows + 1, dtype=np.int64)
        size, row = sum(sizes), rows
        while pieces:
            piece = pieces.pop()
            part_values, part_indices, part_pointers = piece.X
            size, row = size - piece.entries, row - piece.rows
            values[size : size + piece.entries] = part_values
            indices[size : size + piece.entries] = part_indices
            pointers[row + 1 : row + 1 + piece.rows] = part_pointers[1:] + size
            del piece, part_values, part_indices, part_pointers
    if len(values) < 1 << 31:
        pointers = pointers.astype(np.int32)
    X = sp.csr_matrix((values, indices, pointers), shape=(rows, layout.columns), copy=False)
    X.has_canonical_format = True  # the parser sorted the ids of a line and refused duplicates
    return X
