# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, freethreading_compatible=True
"""LETOR / SVMlight text: arrays in, arrays out, the GIL released. `ranksvm.datasets.letor.text` says why lines are refused.

A text is bytes; a range ``start .. stop`` of it holds whole lines. Callers give ranges that `count` has counted, and
arrays with room for what it found.
"""

from libc.stdint cimport int32_t, int64_t, uint32_t
from libcpp cimport bool as cbool
from libcpp.string cimport string

from ranksvm._compiled.border cimport need, need_pointers, need_range

cdef extern from "letor.hpp" namespace "letor" nogil:
    cdef cppclass Layout:
        int64_t columns
        cbool declared
        cbool zero_based
        cbool base_known
        cbool has_qid

    cdef cppclass Report:
        int64_t rows
        int64_t entries
        int64_t largest_id
        cbool zero_id
        cbool string_qid
        cbool docid
        int reason
        int64_t line
        int64_t at
        int64_t stop

    cdef cppclass Count:
        int64_t lines
        int64_t rows
        int64_t colons

    cdef cppclass RowInfo:
        double* label
        int64_t* qid
        int64_t* docid_offset
        int32_t* docid_length
        int64_t* entries_so_far

    cdef cppclass DenseRows[T]:
        T* row
        int64_t columns

    cdef cppclass SparseRows[T]:
        int32_t* indices
        T* values
        int64_t capacity

    Count c_count "letor::count"(const char*, int64_t, int64_t)
    Report c_parse "letor::parse"[Sink](
        const char*, int64_t, int64_t, int64_t, int64_t, const Layout&, const Sink&, const RowInfo&
    ) except +
    void c_qid_spans "letor::qid_spans"(const char*, int64_t, int64_t, int64_t, int64_t, int64_t*, int32_t*) except +
    void c_joined_spans "letor::joined_spans"(const char*, const int64_t*, const int32_t*, int64_t, string&) except +
    cbool c_widen "letor::widen"(const char*, const int64_t*, const int32_t*, int64_t, int64_t, uint32_t*)

cdef extern from "letor_format.hpp" namespace "letor" nogil:
    cdef cppclass Words:
        const char* p
        const char* end

    cdef cppclass RowText:
        const double* label
        const int64_t* qid
        Words qid_words
        cbool has_qid_words
        Words docids
        cbool has_docids

    void c_write_dense "letor::write_dense"[T](const T*, int64_t, int64_t, int64_t, RowText, string&) except +
    void c_write_sparse "letor::write_sparse"[T, Index](
        const Index*, const Index*, const T*, int64_t, int64_t, const int64_t*, RowText, string&
    ) except +

ctypedef fused real:
    float
    double

ctypedef fused index:
    int32_t
    int64_t


cdef Layout _layout(tuple layout):
    cdef Layout result
    result.columns, result.declared, result.zero_based, result.base_known, result.has_qid = layout
    return result


cdef RowInfo _row_info(
    double[::1] label, int64_t[::1] qid, int64_t[::1] docid_offset, int32_t[::1] docid_length, int64_t[::1] so_far
):
    cdef RowInfo info
    info.label = &label[0] if label is not None and label.shape[0] else NULL
    info.qid = &qid[0] if qid is not None and qid.shape[0] else NULL
    info.docid_offset = &docid_offset[0] if docid_offset is not None and docid_offset.shape[0] else NULL
    info.docid_length = &docid_length[0] if docid_length is not None and docid_length.shape[0] else NULL
    info.entries_so_far = &so_far[0] if so_far is not None and so_far.shape[0] else NULL
    return info


cdef int _need_row_info(
    int64_t rows, const double[::1] label, const int64_t[::1] qid, const int64_t[::1] docid_offset,
    const int32_t[::1] docid_length
) except -1:
    need("label", label.shape[0], rows)
    if qid is not None:
        need("qid", qid.shape[0], rows)
    if (docid_offset is None) != (docid_length is None):
        raise ValueError("docid_offset and docid_length go together")
    if docid_offset is not None:
        need("docid_offset", docid_offset.shape[0], rows)
        need("docid_length", docid_length.shape[0], rows)
    return 0


cdef tuple _report(Report report):
    return (
        report.rows, report.entries, report.largest_id, report.zero_id, report.string_qid, report.docid,
        report.reason, report.line, report.at, report.stop,
    )


def count(const unsigned char[::1] text, int64_t start, int64_t stop):
    """Count the lines of a text, its data lines, and the colons in data lines (outside comments)."""
    cdef Count total
    need_range("text", start, stop, text.shape[0])
    if start == stop:
        return 0, 0, 0
    with nogil:
        total = c_count(<const char*>&text[0], start, stop)
    return total.lines, total.rows, total.colons


def parse_dense(
    const unsigned char[::1] text, int64_t start, int64_t stop, tuple layout, real[:, ::1] X, double[::1] label,
    int64_t[::1] qid, int64_t[::1] docid_offset, int32_t[::1] docid_length,
):
    """Fill one row of every array (those for query and document ids may be None) per data line; return the report."""
    cdef Layout c_layout = _layout(layout)
    cdef RowInfo info = _row_info(label, qid, docid_offset, docid_length, None)
    cdef DenseRows[real] sink
    cdef Report report
    need_range("text", start, stop, text.shape[0])
    need("a row of X", X.shape[1], c_layout.columns)
    _need_row_info(X.shape[0], label, qid, docid_offset, docid_length)
    if start == stop:
        return _report(report)
    sink.columns = X.shape[1]
    sink.row = &X[0, 0] if X.shape[0] and X.shape[1] else NULL
    with nogil:
        report = c_parse(<const char*>&text[0], text.shape[0], start, stop, X.shape[0], c_layout, sink, info)
    return _report(report)


def parse_sparse(
    const unsigned char[::1] text, int64_t start, int64_t stop, tuple layout, int32_t[::1] indices, real[::1] values,
    int64_t[::1] entries_so_far, double[::1] label, int64_t[::1] qid, int64_t[::1] docid_offset,
    int32_t[::1] docid_length,
):
    """As `parse_dense`, to CSR arrays: entries_so_far[i] is the number of entries of the rows up to row i."""
    cdef Layout c_layout = _layout(layout)
    cdef RowInfo info = _row_info(label, qid, docid_offset, docid_length, entries_so_far)
    cdef SparseRows[real] sink
    cdef Report report
    need_range("text", start, stop, text.shape[0])
    need("values", values.shape[0], indices.shape[0])
    _need_row_info(entries_so_far.shape[0], label, qid, docid_offset, docid_length)
    if start == stop:
        return _report(report)
    sink.capacity = values.shape[0]
    sink.indices = &indices[0] if values.shape[0] else NULL
    sink.values = &values[0] if values.shape[0] else NULL
    with nogil:
        report = c_parse(
            <const char*>&text[0], text.shape[0], start, stop, entries_so_far.shape[0], c_layout, sink, info
        )
    return _report(report)


def qid_spans(
    const unsigned char[::1] text, int64_t start, int64_t stop, int64_t[::1] offsets, int32_t[::1] lengths
):
    """Find where the query id of each data line is; the lines must have been parsed without error."""
    need_range("text", start, stop, text.shape[0])
    need("lengths", lengths.shape[0], offsets.shape[0])
    if offsets.shape[0] and start < stop:
        with nogil:
            c_qid_spans(
                <const char*>&text[0], text.shape[0], start, stop, offsets.shape[0], &offsets[0], &lengths[0]
            )


cdef int _need_spans(const int64_t[::1] offsets, const int32_t[::1] lengths, int64_t size, int64_t longest) except -1:
    cdef cbool within = True
    cdef int64_t i
    need("lengths", lengths.shape[0], offsets.shape[0])
    for i in range(offsets.shape[0]):
        within &= 0 <= lengths[i] <= longest and 0 <= offsets[i] <= size - lengths[i]
    if not within:
        raise ValueError("spans are not within the text, or wider than the output")
    return 0


def joined_spans(const unsigned char[::1] text, const int64_t[::1] offsets, const int32_t[::1] lengths):
    """Join spans of text, one after another, to bytes."""
    cdef string out
    _need_spans(offsets, lengths, text.shape[0], text.shape[0])
    if text.shape[0] and offsets.shape[0]:
        with nogil:
            c_joined_spans(<const char*>&text[0], &offsets[0], &lengths[0], offsets.shape[0], out)
    return out.data()[: out.size()]


def widen(
    const unsigned char[::1] text, const int64_t[::1] offsets, const int32_t[::1] lengths, uint32_t[:, ::1] out
):
    """Write spans of text as fixed-width UCS-4 text; return False if some byte is not ASCII."""
    cdef cbool ascii = True
    need("out", out.shape[0], offsets.shape[0])
    _need_spans(offsets, lengths, text.shape[0], out.shape[1])
    if out.shape[0] and out.shape[1]:
        with nogil:
            ascii = c_widen(
                <const char*>&text[0] if text.shape[0] else NULL, &offsets[0], &lengths[0], out.shape[0], out.shape[1],
                &out[0, 0],
            )
    return ascii


cdef RowText _row_text(const double[::1] label, const int64_t[::1] qid, bytes qid_words, bytes docids):
    cdef RowText text
    text.label = &label[0]
    text.qid = &qid[0] if qid is not None else NULL
    text.has_qid_words = qid_words is not None
    if text.has_qid_words:
        text.qid_words.p = qid_words
        text.qid_words.end = text.qid_words.p + len(qid_words)
    text.has_docids = docids is not None
    if text.has_docids:
        text.docids.p = docids
        text.docids.end = text.docids.p + len(docids)
    return text


def format_dense(
    const real[:, ::1] X, int64_t base, const double[::1] label, const int64_t[::1] qid, bytes qid_words, bytes docids
):
    """Lines of text for the rows of X. qid_words and docids: words separated by newlines, one per row, or None."""
    cdef string out
    cdef RowText text
    _need_row_info(X.shape[0], label, qid, None, None)
    if X.shape[0] == 0:
        return b""
    text = _row_text(label, qid, qid_words, docids)
    with nogil:
        out.reserve(X.shape[0] * (40 + 14 * X.shape[1]))
        c_write_dense(&X[0, 0] if X.shape[1] else NULL, X.shape[0], X.shape[1], base, text, out)
    return out.data()[: out.size()]


def format_sparse(
    const index[::1] pointers, const index[::1] indices, const real[::1] values, int64_t base,
    const int64_t[::1] pads, const double[::1] label, const int64_t[::1] qid, bytes qid_words, bytes docids,
):
    """As `format_dense` for CSR rows with sorted indices; `pads` are columns to write as zeros in the first row."""
    cdef string out
    cdef RowText text
    cdef int64_t rows = pointers.shape[0] - 1
    need_pointers("pointers", pointers, values.shape[0])
    need("indices", indices.shape[0], values.shape[0])
    need("pads", pads.shape[0], 2)
    _need_row_info(rows, label, qid, None, None)
    if rows == 0:
        return b""
    text = _row_text(label, qid, qid_words, docids)
    with nogil:
        out.reserve(rows * 40 + 16 * values.shape[0])
        c_write_sparse(
            &pointers[0], &indices[0] if values.shape[0] else NULL, &values[0] if values.shape[0] else NULL,
            rows, base, &pads[0], text, out,
        )
    return out.data()[: out.size()]
