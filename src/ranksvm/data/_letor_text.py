"""A part of LETOR text in memory: counted, split into ranges at line ends, parsed by threads into one piece."""

import mmap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

import ranksvm._compiled.letor as _compiled
from ranksvm._parallel import parallel_map
from ranksvm.data._letor_reasons import refusal
from ranksvm.exceptions import DataError

__all__ = ["Layout", "Piece", "Settings", "empty_pages", "pack_strings", "parse_text", "probe", "split", "widened"]

# No range is smaller than this: starting a thread costs as much as parsing about 100 kB.
_SMALLEST_RANGE = 1 << 20
_LARGEST_COLUMNS = (1 << 31) - 1


@dataclass(frozen=True)
class Settings:
    """The options of the caller; one value for the whole file."""

    path: str
    dtype: np.dtype
    n_features: int | None
    zero_based: bool | None
    docids: bool
    n_threads: int
    assumed: bool = False  # n_features and zero_based were inferred from the beginning of a stream


@dataclass(frozen=True)
class Layout:
    """The assumed layout of the file; if reading contradicts it, the text is read again."""

    columns: int  # number of features allocated (dense)
    zero_based: bool
    sparse: bool
    has_qid: bool

    def compiled(self, settings: Settings) -> tuple[int, bool, bool, bool, bool]:
        """The layout in the form of the compiled parser."""
        declared = settings.n_features is not None
        columns = self.columns if declared or not self.sparse else _LARGEST_COLUMNS
        return columns, declared, self.zero_based, settings.zero_based is not None, self.has_qid


class Range(NamedTuple):
    """Whole lines ``text[start:stop]`` and their counts; ``colons`` (outside comments) bounds the number of entries."""

    start: int
    stop: int
    lines: int
    rows: int
    colons: int


class _Report(NamedTuple):
    rows: int
    entries: int
    largest_id: int
    zero_id: bool
    string_qid: bool
    docid: bool
    reason: int
    line: int
    at: int
    stop: int


@dataclass
class Piece:
    """Parsed rows. ``X`` is dense, or the CSR arrays (values, indices, pointers)."""

    X: Any
    y: np.ndarray
    qid: np.ndarray | None
    docid: np.ndarray | None
    entries: int
    largest_id: int
    needs_zero_base: bool = False  # an id 0 was found in text read as 1-based: the other fields are invalid

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.y)


def split(text: np.ndarray, start: int, n_threads: int) -> list[Range]:
    """``text[start:]`` split into ranges for the threads, each with its counts."""
    size = len(text)
    n_ranges = 1 if n_threads == 1 else max(1, min(4 * n_threads, (size - start) // _SMALLEST_RANGE))
    cuts = [start]
    for i in range(1, n_ranges):
        cuts.append(max(cuts[-1], _after_newline(text, start + (size - start) * i // n_ranges)))
    cuts.append(size)
    bounds = [(a, b) for a, b in pairwise(cuts) if b > a]
    counts = parallel_map(lambda bound: _compiled.count(text, *bound), bounds, n_threads)
    return [Range(*bound, *count) for bound, count in zip(bounds, counts, strict=True)]


def _after_newline(text: np.ndarray, position: int) -> int:
    """Start of the first line that begins after ``position``."""
    while position < len(text):
        hits = np.flatnonzero(text[position : position + 65536] == 10)
        if len(hits):
            return position + int(hits[0]) + 1
        position += 65536
    return len(text)


def probe(text: np.ndarray, start: int, has_qid: bool, n_lines: int = 64) -> tuple[int, bool]:
    """Largest feature id, and whether an id 0 occurs, in a few lines spread over the text (bad ones ignored)."""
    layout = (0, False, False, False, has_qid)
    nothing, label = np.empty((1, 0), dtype=np.float32), np.empty(1)
    largest, zero = -1, False
    for i in range(n_lines):
        position = start + (len(text) - start) * i // n_lines
        begin = position if position == start else _after_newline(text, position)
        end = _after_newline(text, begin)
        if begin < end:
            report = _Report(*_compiled.parse_dense(text, begin, end, layout, nothing, label, None, None, None))
            largest, zero = max(largest, report.largest_id), zero or report.zero_id
    return largest, zero


def parse_text(
    text: np.ndarray,
    ranges: Sequence[Range],
    layout: Layout,
    settings: Settings,
    lines_before: int = 0,
    empty: Callable[..., np.ndarray] = np.empty,
) -> Piece:
    """Parse the ranges, in parallel, into one piece; its X is made by ``empty(shape, dtype=...)``.

    Raises
    ------
    ParseError
        For the first bad line of the text, for any number of threads.
    """
    rows = sum(part.rows for part in ranges)
    target = (_SparseTarget if layout.sparse else _DenseTarget)(ranges, layout, settings, empty)
    y = np.empty(rows)
    qid = np.empty(rows, dtype=np.int64) if layout.has_qid else None
    offsets = np.empty(rows, dtype=np.int64) if settings.docids else None
    lengths = np.empty(rows, dtype=np.int32) if settings.docids else None
    row_starts = np.cumsum([0] + [part.rows for part in ranges])

    def parse_range(number: int) -> _Report:
        part, rows = ranges[number], slice(row_starts[number], row_starts[number + 1])
        columns = [None if array is None else array[rows] for array in (y, qid, offsets, lengths)]
        return _Report(*target.parse(text, part, number, rows, columns))

    reports = parallel_map(parse_range, range(len(ranges)), settings.n_threads)
    for report in reports:
        # An id 0 before the first bad line determines the base of the ids; a bad line after it is reported when the
        # text is read again.
        if report.zero_id:
            return Piece(None, y, None, None, 0, 0, needs_zero_base=True)
        if report.reason:
            raise _error(text, report, layout, settings, lines_before)
    if qid is not None and any(report.string_qid for report in reports):
        qid = _string_qid(text, ranges, row_starts, settings.n_threads)
    docid = None
    if offsets is not None and lengths is not None and any(report.docid for report in reports):
        docid = _strings(text, offsets, lengths)
    entries = sum(report.entries for report in reports)
    largest = max((report.largest_id for report in reports), default=-1)
    return Piece(target.finish(reports), y, qid, docid, entries, largest)


class _DenseTarget:
    def __init__(self, ranges: Sequence[Range], layout: Layout, settings: Settings, empty: Callable[..., np.ndarray]):
        shape = sum(part.rows for part in ranges), layout.columns
        try:
            self._X = empty(shape, dtype=settings.dtype)
        except (MemoryError, OSError) as error:
            raise DataError(
                f"{settings.path} has feature ids up to {layout.columns}, for which a dense X of {shape[0]} rows does "
                "not fit into memory: give sparse=True."
            ) from error
        self._layout = layout.compiled(settings)

    def parse(self, text: np.ndarray, part: Range, number: int, rows: slice, columns: list) -> tuple:
        return _compiled.parse_dense(text, part.start, part.stop, self._layout, self._X[rows], *columns)

    def finish(self, reports: list[_Report]) -> np.ndarray:
        return self._X


class _SparseTarget:
    def __init__(self, ranges: Sequence[Range], layout: Layout, settings: Settings, empty: Callable[..., np.ndarray]):
        # (a row without a qid, where others have one, is refused when it is parsed)
        room = [max(0, part.colons - (part.rows if layout.has_qid else 0)) for part in ranges]
        self._starts = np.cumsum([0, *room])
        self._values = empty((self._starts[-1],), dtype=settings.dtype)
        self._indices = empty((self._starts[-1],), dtype=np.dtype(np.int32))
        self._pointers = np.zeros(sum(part.rows for part in ranges) + 1, dtype=np.int64)
        self._rows = np.cumsum([0] + [part.rows for part in ranges])
        self._layout = layout.compiled(settings)

    def parse(self, text: np.ndarray, part: Range, number: int, rows: slice, columns: list) -> tuple:
        room = slice(self._starts[number], max(self._starts[number], self._starts[number + 1]))
        pointers = self._pointers[1:][rows]
        return _compiled.parse_sparse(
            text, part.start, part.stop, self._layout, self._indices[room], self._values[room], pointers, *columns
        )

    def finish(self, reports: list[_Report]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        size = 0
        for number, report in enumerate(reports):
            # Allocated space is unused only if a query id contains a colon.
            start = self._starts[number]
            if start != size:
                for array in (self._values, self._indices):
                    array[size : size + report.entries] = array[start : start + report.entries]
            self._pointers[1:][self._rows[number] : self._rows[number + 1]] += size
            size += report.entries
        return self._values[:size], self._indices[:size], self._pointers


def _error(text: np.ndarray, report: _Report, layout: Layout, settings: Settings, lines_before: int) -> Exception:
    number = lines_before + int(np.count_nonzero(text[: report.line] == 10)) + 1
    line = text[report.line : max(report.stop, report.at)].tobytes()
    return refusal(
        report.reason, settings.path, number, line, report.at - report.line, report.stop - report.line,
        settings.n_features or 0, 0 if layout.zero_based else 1, settings.dtype.name, settings.assumed,
    )  # fmt: skip


def _string_qid(text: np.ndarray, ranges: Sequence[Range], row_starts: np.ndarray, n_threads: int) -> np.ndarray:
    offsets = np.empty(row_starts[-1], dtype=np.int64)
    lengths = np.empty(row_starts[-1], dtype=np.int32)

    def spans(number: int) -> None:
        rows = slice(row_starts[number], row_starts[number + 1])
        _compiled.qid_spans(text, ranges[number].start, ranges[number].stop, offsets[rows], lengths[rows])

    parallel_map(spans, range(len(ranges)), n_threads)
    return _strings(text, offsets, lengths)


def _strings(text: np.ndarray, offsets: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Spans of the text as an array of str: of fixed width, or of objects if a few are far longer than the rest."""
    width = max(1, int(lengths.max(initial=0)))
    if width <= 32 + 4 * float(lengths.mean() if len(lengths) else 0):
        out = np.empty(len(offsets), dtype=f"=U{width}")
        if _compiled.widen(text, offsets, lengths, out.view(np.uint32).reshape(len(out), width)):
            return out
    words = [
        text[start : start + length].tobytes().decode("utf-8", "backslashreplace")
        for start, length in zip(offsets.tolist(), lengths.tolist(), strict=True)
    ]
    return pack_strings(words)


def pack_strings(words: list[str]) -> np.ndarray:
    """An array of str, of fixed width unless that wastes memory."""
    lengths = [len(word) for word in words]
    fixed = max(lengths, default=0) <= 32 + 4 * (sum(lengths) / max(1, len(lengths)))
    return np.array(words, dtype=np.str_ if fixed else object)


def empty_pages(shape: tuple[int, ...], *, dtype: np.dtype) -> np.ndarray:
    """Like `numpy.empty`, but in pages that are returned to the system when the array is freed.

    Memory from malloc may not be: after reading windows, the process would retain as much memory as the result takes.
    """
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    private = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}
    pages = mmap.mmap(-1, max(dtype.itemsize, size), **private)
    return np.frombuffer(pages, dtype=dtype, count=size // dtype.itemsize).reshape(shape)


def widened(layout: Layout, piece: Piece) -> Layout | None:
    """The layout widened to the largest id of the piece; None if it is wide enough."""
    needed = piece.largest_id + layout.zero_based
    return replace(layout, columns=needed) if not layout.sparse and needed > layout.columns else None
