"""Functions that split LETOR text into ranges of lines, count its rows, and parse it on several threads."""

import mmap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

import ranksvm._compiled.letor as _compiled
from ranksvm._util.threads import parallel_map
from ranksvm.datasets.letor.source import ChangedTextError, Text, after_newline
from ranksvm.exceptions import DataError, ParseError

__all__ = [
    "Layout",
    "Piece",
    "Settings",
    "empty_pages",
    "pack_strings",
    "parse_text",
    "probe",
    "split",
    "widened",
]

# Bytes that a thread reads and parses at a time: few enough for the L2 cache, enough to make the overhead of a call
# negligible. Parsing 123 MB of dense text took 0.23 s of CPU time with ranges of 256 kB and also with 1 MB, and 0.22 s
# from a mapped file.
_RANGE = 1 << 20
_LARGEST_COLUMNS = (1 << 31) - 1
# In the order of `enum Reason` in _compiled/letor.hpp. {found}: the text refused; {before}: the feature id before it.
_SENTENCES = (
    "",
    "the label is missing: a line begins with a number, then qid:<id>, then features, but found {found}",
    "the label must be a number, found {found}",
    "the label is nan ({found}); labels must be finite numbers",
    "the label is infinite ({found}); labels must be finite numbers",
    "the label {found} is out of the range of float64",
    "the line has no qid, but the first line of data has one: expected qid:<id> after the label, found {found}",
    "the line has {found}, but the first line of data has no qid",
    "the query id is empty: expected qid:<id>, found {found}",
    "{found} must occur once, right after the label and before the features",
    "a colon is missing: expected <feature id>:<value>, found {found}",
    "the feature id must be a whole number, found {found}",
    "the feature id is negative: {found}",
    "the feature id {found} is too large: ids go up to 2147483647",
    "the feature id {found} is above n_features={n_features} (ids start at {base})",
    "the feature id is 0, but with zero_based=False ids start at 1",
    "duplicate feature id: {found} repeats a feature of the line",
    "the value is missing: expected <feature id>:<value>, found {found}",
    "the value of feature {before} must be a number, found {found}",
    "the value of feature {before} is nan ({found}); omit a missing feature, or impute it",
    "the value of feature {before} is infinite ({found}); values must be finite numbers",
    "the value of feature {before} is out of the range of {dtype}: {found}{remedy}",
    "an id has a NUL character, which no array of strings keeps: {found}",
)
# Reasons of errors that depend on what a reader inferred from the beginning of a stream -> the option that helps.
_ASSUMPTIONS = {14: "n_features", 15: "zero_based=True"}


@dataclass(frozen=True)
class Settings:
    """The options of the caller, which are the same for the whole file."""

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

    columns: int  # number of columns that are allocated for dense X
    zero_based: bool
    sparse: bool
    has_qid: bool

    def compiled(self, settings: Settings) -> tuple[int, bool, bool, bool, bool]:
        """The layout in the form that the compiled parser takes."""
        declared = settings.n_features is not None
        columns = self.columns if declared or not self.sparse else _LARGEST_COLUMNS
        return columns, declared, self.zero_based, settings.zero_based is not None, self.has_qid


class Range(NamedTuple):
    """Whole lines ``text[start:stop]`` with counts; ``colons`` (outside comments) bounds the number of values."""

    start: int
    stop: int
    lines: int
    rows: int
    colons: int

    def most_entries(self, layout: Layout) -> int:
        """Upper bound of the number of feature values: colons, minus one per row if rows have a ``qid:``."""
        return max(0, self.colons - (self.rows if layout.has_qid else 0))


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


class _Rows(NamedTuple):
    """The parser's report and error for one range, and the ids in the range, whose bytes follow one another."""

    report: _Report
    error: ParseError | None = None
    docids: bytes = b""
    qids: tuple[bytes, np.ndarray] | None = None  # bytes and lengths; None: all are integers


def split(text: Text, start: int, n_threads: int) -> list[Range]:
    """The text from ``start`` on, split into ranges for the threads, each with its counts."""
    cuts = [start]
    while cuts[-1] < text.size:
        cuts.append(after_newline(text, cuts[-1] + _RANGE))

    def count(bounds: tuple[int, int]) -> Range:
        with text.part(*bounds) as part:
            return Range(*bounds, *_compiled.count(part, 0, len(part)))

    return parallel_map(count, list(pairwise(cuts)), n_threads)


def probe(text: Text, start: int, has_qid: bool, n_lines: int = 64) -> tuple[int, bool]:
    """Largest feature id, and whether an id 0 occurs, in a few lines spread over the text (bad ones ignored)."""
    layout = (0, False, False, False, has_qid)
    nothing, label = np.empty((1, 0), dtype=np.float32), np.empty(1)
    largest, zero = -1, False
    for i in range(n_lines):
        position = start + (text.size - start) * i // n_lines
        begin = position if position == start else after_newline(text, position)
        end = after_newline(text, begin)
        if begin < end:
            with text.part(begin, end) as line:
                report = _Report(*_compiled.parse_dense(line, 0, len(line), layout, nothing, label, None, None, None))
            largest, zero = max(largest, report.largest_id), zero or report.zero_id
    return largest, zero


def parse_text(
    text: Text,
    ranges: Sequence[Range],
    layout: Layout,
    settings: Settings,
    lines_before: int = 0,
    empty: Callable[..., np.ndarray] = np.empty,
) -> Piece:
    """Parse the ranges, in parallel, into one piece; its X is allocated by ``empty(shape, dtype=...)``.

    Raises
    ------
    ParseError
        For the first bad line of the text, for any number of threads.
    """
    rows = sum(part.rows for part in ranges)
    target = (_SparseTarget if layout.sparse else _DenseTarget)(ranges, layout, settings, empty)
    y = np.empty(rows)
    qid = np.empty(rows, dtype=np.int64) if layout.has_qid else None
    lengths = np.empty(rows, dtype=np.int32) if settings.docids else None
    row_starts = np.cumsum([0] + [part.rows for part in ranges])
    line_starts = np.cumsum([lines_before] + [part.lines for part in ranges])

    def parse_range(number: int) -> _Rows:
        part, rows = ranges[number], slice(row_starts[number], row_starts[number + 1])
        offsets = np.empty(part.rows, dtype=np.int64) if settings.docids else None
        columns = [None if array is None else array[rows] for array in (y, qid)]
        spans = offsets, None if lengths is None else lengths[rows]
        with text.part(part.start, part.stop) as words:
            report = _Report(*target.parse(words, number, rows, [*columns, *spans]))
            if report.reason:
                return _Rows(report, _error(words, report, layout, settings, int(line_starts[number])))
            if report.rows != part.rows or report.entries > part.most_entries(layout):
                raise ChangedTextError
            docids = _compiled.joined_spans(words, *spans) if report.docid else b""
            return _Rows(report, None, docids, _qids(words, part.rows) if report.string_qid else None)

    parsed = parallel_map(parse_range, range(len(ranges)), settings.n_threads)
    reports = [each.report for each in parsed]
    for each in parsed:
        # An id 0 before the first bad line determines the base of the ids; a bad line after it is reported when the
        # text is read again.
        if each.report.zero_id:
            return Piece(None, y, None, None, 0, 0, needs_zero_base=True)
        if each.error is not None:
            raise each.error
    if qid is not None and any(report.string_qid for report in reports):
        qid = _string_qid(qid, row_starts, [each.qids for each in parsed])
    docid = None
    if lengths is not None and any(report.docid for report in reports):
        docid = _strings(b"".join(each.docids for each in parsed), lengths)
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

    def parse(self, text: np.ndarray, number: int, rows: slice, columns: list) -> tuple:
        return _compiled.parse_dense(text, 0, len(text), self._layout, self._X[rows], *columns)

    def finish(self, reports: list[_Report]) -> np.ndarray:
        return self._X


class _SparseTarget:
    def __init__(self, ranges: Sequence[Range], layout: Layout, settings: Settings, empty: Callable[..., np.ndarray]):
        self._starts = np.cumsum([0] + [part.most_entries(layout) for part in ranges])
        self._values = empty((self._starts[-1],), dtype=settings.dtype)
        self._indices = empty((self._starts[-1],), dtype=np.dtype(np.int32))
        self._pointers = np.zeros(sum(part.rows for part in ranges) + 1, dtype=np.int64)
        self._rows = np.cumsum([0] + [part.rows for part in ranges])
        self._layout = layout.compiled(settings)

    def parse(self, text: np.ndarray, number: int, rows: slice, columns: list) -> tuple:
        room = slice(self._starts[number], self._starts[number + 1])
        pointers = self._pointers[1:][rows]
        return _compiled.parse_sparse(
            text, 0, len(text), self._layout, self._indices[room], self._values[room], pointers, *columns
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


def _error(text: np.ndarray, report: _Report, layout: Layout, settings: Settings, lines_before: int) -> ParseError:
    number = lines_before + int(np.count_nonzero(text[: report.line] == 10)) + 1
    line = text[report.line : max(report.stop, report.at)].tobytes()
    return _refusal(
        report.reason, settings.path, number, line, report.at - report.line, report.stop - report.line,
        settings.n_features or 0, 0 if layout.zero_based else 1, settings.dtype.name, settings.assumed,
    )  # fmt: skip


def _qids(text: np.ndarray, rows: int) -> tuple[bytes, np.ndarray]:
    """Query ids of well-formed lines: their bytes, one after another, and their lengths."""
    offsets, lengths = np.empty(rows, dtype=np.int64), np.empty(rows, dtype=np.int32)
    _compiled.qid_spans(text, 0, len(text), offsets, lengths)
    return _compiled.joined_spans(text, offsets, lengths), lengths


def _string_qid(qid: np.ndarray, row_starts: np.ndarray, words: list[tuple[bytes, np.ndarray] | None]) -> np.ndarray:
    """All query ids as str; a range without ``words`` has only integers, whose str() is the text in the file."""
    for number, (start, stop) in enumerate(pairwise(row_starts)):
        if words[number] is None:
            integers = [b"%d" % value for value in qid[start:stop].tolist()]
            words[number] = b"".join(integers), np.array([len(word) for word in integers], dtype=np.int32)
    known = [each for each in words if each is not None]
    return _strings(b"".join(each[0] for each in known), np.concatenate([each[1] for each in known]))


def _strings(content: bytes, lengths: np.ndarray) -> np.ndarray:
    """The words that ``content`` joins, as an array of str: of fixed width, or of objects if a few are far longer."""
    text, offsets = np.frombuffer(content, dtype=np.uint8), np.cumsum(lengths, dtype=np.int64) - lengths
    width = max(1, int(lengths.max(initial=0)))
    if width <= 32 + 4 * float(lengths.mean() if len(lengths) else 0):
        out = np.empty(len(offsets), dtype=f"=U{width}")
        if _compiled.widen(text, offsets, lengths, out.view(np.uint32).reshape(len(out), width)):
            return out
    words = [
        content[start : start + length].decode("utf-8", "backslashreplace")
        for start, length in zip(offsets.tolist(), lengths.tolist(), strict=True)
    ]
    return pack_strings(words)


def pack_strings(words: list[str]) -> np.ndarray:
    """An array of str, of fixed width unless that wastes memory."""
    lengths = [len(word) for word in words]
    wasteful = wastes_memory(max(lengths, default=0), sum(lengths) / max(1, len(lengths)))
    return np.array(words, dtype=object if wasteful else np.str_)


def wastes_memory(width: int, mean_length: float) -> bool:
    """Whether an array of fixed width would take much more memory than its words: a few are far longer than most."""
    return width > 32 + 4 * mean_length


def empty_pages(shape: tuple[int, ...], *, dtype: np.dtype) -> np.ndarray:
    """Like `numpy.empty`, but in pages that are returned to the system when the array is freed.

    malloc does not always return memory: after a file was read in windows, freed arrays could take as much memory as
    the result itself.
    """
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    private = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}
    pages = mmap.mmap(-1, max(dtype.itemsize, size), **private)
    return np.frombuffer(pages, dtype=dtype, count=size // dtype.itemsize).reshape(shape)


def widened(layout: Layout, piece: Piece) -> Layout | None:
    """The layout widened to the largest id of the piece; None if it is wide enough."""
    needed = piece.largest_id + layout.zero_based
    return replace(layout, columns=needed) if not layout.sparse and needed > layout.columns else None


def _refusal(
    reason: int, path: str, line_number: int, line: bytes, at: int, stop: int, n_features: int, base: int, dtype: str,
    assumed: bool = False,
) -> ParseError:  # fmt: skip
    """The error for a refused line.

    Parameters
    ----------
    reason : int
        Number of the reason in the compiled parser.
    path : str
        The file.
    line_number : int
        The line's number, from 1.
    line : bytes
        The line, at least up to the error.
    at, stop : int
        The invalid text: ``line[at:stop]``.
    n_features, base : int
        Number of features declared and the first id.
    dtype : str
        Type that values are read as.
    assumed : bool, default False
        Whether the number of features and the first id were inferred from the beginning of the text, not declared.

    Returns
    -------
    ParseError
        To be raised.
    """
    text = line[at:stop].decode("utf-8", "backslashreplace")
    found = repr(text if len(text) <= 60 else text[:57] + "...") if text else "the end of the line"
    before = line[:at].rpartition(b":")[0].rpartition(b" ")[2].rpartition(b"\t")[2].decode("utf-8", "backslashreplace")
    remedy = " (dtype=numpy.float64 reaches 1.8e308)" if dtype == "float32" else ""
    sentence = _SENTENCES[reason].format(
        found=found, before=before, n_features=n_features, base=base, dtype=dtype, remedy=remedy
    )
    if assumed and reason in _ASSUMPTIONS:
        sentence += f"; this was inferred from the beginning of the text: give {_ASSUMPTIONS[reason]}"
    return ParseError(path, line_number, at + 1, sentence)
