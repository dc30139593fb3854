"""Code shared by the LETOR readers for whole files and for streams: it cuts text into windows, and parses these."""

import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import IO, TYPE_CHECKING

import numpy as np
from numpy.typing import DTypeLike

from ranksvm._util.checks import is_integer
from ranksvm._util.compression import BrokenStreamError
from ranksvm._util.threads import effective_n_jobs
from ranksvm._util.types import PathLike
from ranksvm.datasets.letor.source import Text
from ranksvm.datasets.letor.text import Layout, Piece, Settings, pack_strings, parse_text, probe, wastes_memory, widened
from ranksvm.datasets.ranking_data import RankingData
from ranksvm.exceptions import DataError, OptionError

if TYPE_CHECKING:
    from scipy import sparse

__all__ = [
    "WINDOW",
    "WrongLayoutError",
    "assemble",
    "check_density",
    "first_layout",
    "join_strings",
    "parse_whole",
    "parse_window",
    "settings_of",
    "text_start",
    "windows",
]

# Share of values present in a file above which X is dense. A CSR entry takes twice the memory of a dense float32
# and about four times its time in a product with a vector, so below a quarter CSR is both smaller and faster.
_DENSE_FROM = 0.25
# Decompressed text is parsed in windows of this many bytes, which is little compared with any large result.
WINDOW = 1 << 22
_MODEL = re.compile(rb"PK\x03\x04.{26}header\.json", re.DOTALL)  # a model file: the first member of a zip archive
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_NOT_TEXT = {
    b"\xff\xfe": "UTF-16 text: convert it to UTF-8",
    b"\xfe\xff": "UTF-16 text: convert it to UTF-8",
    b"PAR1": "a Parquet file: use RankingData.from_parquet or read_data",
    b"ranksvm-data": "a ranksvm data cache: use RankingData.load or read_data",
    b"PK\x03\x04": "a zip archive, not data: unpack it",
}


class WrongLayoutError(Exception):
    """The file has another layout than assumed; carries the correct one."""

    def __init__(self, layout: Layout):
        self.layout = layout


def settings_of(
    path: PathLike | IO[bytes],
    n_features: int | None,
    dtype: DTypeLike,
    sparse: bool | None,
    zero_based: bool | str,
    docids: bool,
    n_jobs: int | None,
) -> Settings:
    """The validated options of a reader."""
    if n_features is not None and not is_integer(n_features, 1):
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


def windows(chunks: Iterable[bytes], first: int, later: int) -> Iterator[bytes | BrokenStreamError]:
    """Text cut at line ends: at the first one after ``first`` bytes, then always at the last available one.

    Windows between the first and the last have at least ``later`` bytes. An error of decompression is the last item,
    after the good text. The first window is the same for any division of the text into chunks.
    """
    parts: list[bytes] = []
    size, smallest, search = 0, first, bytes.find if first else bytes.rfind
    try:
        for chunk in chunks:
            parts.append(chunk)
            size += len(chunk)
            if size >= smallest and b"\n" in chunk:
                text = b"".join(parts)
                cut = search(text, b"\n", max(smallest - 1, 0)) + 1
                parts = [text[cut:]]
                size = len(text) - cut
                if cut:
                    smallest, search = later, bytes.rfind
                    yield text[:cut] if size else text
                del text
    except BrokenStreamError as error:
        # The last line may be incomplete, so it is not parsed.
        text = b"".join(parts)
        yield text[: text.rfind(b"\n") + 1]
        yield error
        return
    yield b"".join(parts)


def parse_window(
    text: Text, ranges: list, layout: Layout, settings: Settings, lines_before: int, empty: Callable[..., np.ndarray]
) -> Piece:
    """Parse a text, and parse it again if a feature id is larger than assumed."""
    piece = parse_text(text, ranges, layout, settings, lines_before, empty)
    if piece.needs_zero_base:
        raise WrongLayoutError(replace(layout, zero_based=True))
    wider = None if settings.n_features else widened(layout, piece)
    if wider is not None:
        del piece
        piece = parse_text(text, ranges, wider, settings, lines_before, empty)
    return piece


def text_start(text: Text, settings: Settings) -> int:
    """Start of the text, after a byte-order mark."""
    with text.part(0, min(64, text.size)) as first:
        head = first.tobytes()
    if _MODEL.match(head):
        raise DataError(f"{settings.path} is a ranksvm model file, not data.")
    for magic, what in _NOT_TEXT.items():
        if head.startswith(magic):
            raise DataError(f"{settings.path} is {what}.")
    return len(_BYTE_ORDER_MARK) if head.startswith(_BYTE_ORDER_MARK) else 0


def first_layout(text: Text, start: int, rows: int, colons: int, settings: Settings, sparse: bool | None) -> Layout:
    """The layout inferred from the beginning of the text."""
    has_qid = re.search(rb"(?:^|[ \t\r])qid:", _first_data_line(text, start)) is not None
    largest, zero = probe(text, start, has_qid)
    zero_based = zero if settings.zero_based is None else settings.zero_based
    columns = settings.n_features or max(1, largest + zero_based)
    density = (colons - rows * has_qid) / (rows * columns)
    return Layout(columns, zero_based, density < _DENSE_FROM if sparse is None else bool(sparse), has_qid)


def _first_data_line(text: Text, start: int) -> bytes:
    """The first line of data without its comment."""
    step = 1 << 16
    line = b""
    for position in range(start, text.size, step):
        with text.part(position, min(position + step, text.size)) as block:
            *whole, line = (line + block.tobytes()).split(b"\n")
        for candidate in whole:
            if content := candidate.partition(b"#")[0].strip():
                return content
    return line.partition(b"#")[0].strip()


def check_density(
    layout: Layout, rows: int, entries: int, largest_id: int, settings: Settings, sparse: bool | None
) -> Layout:
    """Final layout, or `WrongLayoutError` if the file's density requires the other kind of matrix."""
    columns = settings.n_features or max(1, largest_id + layout.zero_based)
    wanted = entries < _DENSE_FROM * rows * columns if sparse is None else bool(sparse)
    final = replace(layout, columns=columns)
    if wanted != layout.sparse:
        raise WrongLayoutError(replace(final, sparse=wanted))
    return final


def parse_whole(
    text: Text, ranges: list, settings: Settings, sparse: bool | None, lines_before: int = 0
) -> tuple[Piece, Layout]:
    """Parse a text that determines the layout completely; its ranges hold at least one row."""
    rows, colons = sum(part.rows for part in ranges), sum(part.colons for part in ranges)
    layout = first_layout(text, ranges[0].start, rows, colons, settings, sparse)
    while True:
        try:
            piece = parse_window(text, ranges, layout, settings, lines_before, np.empty)
            return piece, check_density(layout, piece.rows, piece.entries, piece.largest_id, settings, sparse)
        except WrongLayoutError as wrong:
            layout = wrong.layout


def assemble(pieces: list[Piece], layout: Layout, settings: Settings) -> RankingData:
    """The pieces, one after another, as one data set."""
    y = _join([piece.y for piece in pieces])
    qid = join_strings([piece.qid for piece in pieces]) if layout.has_qid else None
    docid = None
    if any(piece.docid is not None for piece in pieces):
        docid = join_strings([np.zeros(piece.rows, "U1") if piece.docid is None else piece.docid for piece in pieces])
    X = _join_sparse(pieces, layout) if layout.sparse else _join_dense(pieces, layout, settings.dtype)
    data = RankingData(X, y, qid, docid)
    data._zero_based = layout.zero_based
    return data


def _join(arrays: list[np.ndarray]) -> np.ndarray:
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def join_strings(arrays: list) -> np.ndarray:
    """Ids as one array: integers if all are, else strings (str() gives the original text of an integer)."""
    if len(arrays) == 1 or all(array.dtype == np.int64 for array in arrays):
        return _join(arrays)
    arrays = [pack_strings([str(v) for v in array.tolist()]) if array.dtype.kind == "i" else array for array in arrays]
    widths, sizes = [array.dtype.itemsize // 4 for array in arrays], [len(array) for array in arrays]
    joined_width, mean_width = max(widths), np.dot(widths, sizes) / max(1, sum(sizes))
    if any(array.dtype == object for array in arrays) or wastes_memory(joined_width, mean_width):
        return pack_strings([word for array in arrays for word in array.tolist()])
    return np.concatenate(arrays)


def _join_dense(pieces: list[Piece], layout: Layout, dtype: np.dtype) -> np.ndarray:
    if len(pieces) == 1 and pieces[0].X.shape[1] == layout.columns:
        return pieces[0].X
    X = np.empty((sum(piece.rows for piece in pieces), layout.columns), dtype=dtype)
    stop = len(X)
    while pieces:  # each piece is freed after its rows are copied
        piece = pieces.pop()
        start = stop - piece.rows
        width = min(piece.X.shape[1], layout.columns)
        X[start:stop, :width] = piece.X[:, :width]
        X[start:stop, width:] = 0
        stop = start
    return X


def _join_sparse(pieces: list[Piece], layout: Layout) -> "sparse.csr_matrix":
    from scipy import sparse

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
    X = sparse.csr_matrix((values, indices, pointers), shape=(rows, layout.columns), copy=False)
    X.has_canonical_format = True  # the parser sorted the ids of a line and refused duplicates
    return X
