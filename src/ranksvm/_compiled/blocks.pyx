# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""The Huberized hinge with a margin of its own for each pair, computed on arrays of pairs without the GIL.

The pairs of a query form a block, which has a row for each preferred document and a column for each other document. Arrays over
documents are in sorted order (`ranksvm.data.Queries`); arguments named ``*_range`` hold the documents from query ``first`` to
query ``last - 1``. ``target`` has a number for each entry of every block; the hinge of a pair is raised by ``raise_`` times the
number of its entry.
"""

from libc.stdint cimport int64_t

from ranksvm._compiled.border cimport need, need_pointers, need_range
from ranksvm._compiled.instruction_set cimport chosen

cdef extern from "blocks_loops.hpp" namespace "ranksvm" nogil:
    cdef struct Blocks:
        const int64_t *pointers
        const int64_t *rows
        const int64_t *columns
        const int64_t *offsets
        const int64_t *preferred
        const int64_t *other
        const int64_t *first

    cdef struct ShiftedHinge:
        const double *target
        double raise_ "raise"
        double width

    cppclass BlockLoops:
        double (*hinge)(const Blocks &, int64_t, int64_t, const double *, const ShiftedHinge &, double *,
                        double *) except +
        void (*laplacian)(const Blocks &, int64_t, int64_t, const double *, const ShiftedHinge &, const double *,
                          double *) except +
        void (*pulls)(const Blocks &, int64_t, const double *, const ShiftedHinge &, double *) except +
        void (*bends)(const Blocks &, int64_t, const double *, const ShiftedHinge &, double *) except +

    const Loops &loops_of[Loops](int)


cdef class BlockArrays:
    """The blocks of all queries as arrays: see `ranksvm.data.PairBlocks`."""

    cdef Blocks blocks
    cdef object owners  # keeps the arrays alive
    cdef int64_t n_rows, n_queries, n_entries

    def __init__(self, const int64_t[::1] pointers, const int64_t[::1] rows, const int64_t[::1] columns,
                 const int64_t[::1] offsets, const int64_t[::1] preferred, const int64_t[::1] other,
                 const int64_t[::1] first):
        self.n_queries = pointers.shape[0] - 1
        need_pointers("pointers", pointers, pointers[self.n_queries] if pointers.shape[0] else 0)
        need("rows", rows.shape[0], pointers.shape[0])
        need("columns", columns.shape[0], pointers.shape[0])
        need("offsets", offsets.shape[0], pointers.shape[0])
        need("first", first.shape[0], preferred.shape[0])
        need_pointers("rows", rows, preferred.shape[0])
        need_pointers("columns", columns, other.shape[0])
        self.n_rows, self.n_entries = pointers[self.n_queries], offsets[self.n_queries]
        _need_blocks(pointers, rows, columns, offsets, preferred, other, first)
        self.owners = (pointers, rows, columns, offsets, preferred, other, first)
        self.blocks.pointers = &pointers[0]
        self.blocks.rows = &rows[0]
        self.blocks.columns = &columns[0]
        self.blocks.offsets = &offsets[0]
        self.blocks.preferred = &preferred[0] if preferred.shape[0] else NULL
        self.blocks.other = &other[0] if other.shape[0] else NULL
        self.blocks.first = &first[0] if first.shape[0] else NULL

    cdef int need_documents(self, const double[::1] scores, const double[::1] target) except -1:
        """Refuse scores unless there is one for each document, and targets unless there is one for each entry."""
        need("scores", scores.shape[0], self.n_rows)
        return need("target", target.shape[0], self.n_entries)

    cdef int need_rows_of(self, str name, int64_t found, int64_t first, int64_t last) except -1:
        """Refuse an array that does not hold the documents of a range of queries."""
        need_range("queries", first, last, self.n_queries)
        return need(name, found, self.blocks.pointers[last] - self.blocks.pointers[first])

    cdef int need_block(self, int64_t query, int64_t n_rows, int64_t n_columns) except -1:
        """Refuse a matrix that does not have the shape of a query's block."""
        need_range("queries", query, query + 1, self.n_queries)
        need("out", n_rows, self.blocks.rows[query + 1] - self.blocks.rows[query])
        return need("a row of out", n_columns, self.blocks.columns[query + 1] - self.blocks.columns[query])


cdef int _need_blocks(
    const int64_t[::1] pointers, const int64_t[::1] rows, const int64_t[::1] columns, const int64_t[::1] offsets,
    const int64_t[::1] preferred, const int64_t[::1] other, const int64_t[::1] first
) except -1:
    """Refuse blocks with documents of other queries, or with rows whose pairs begin beyond the block."""
    cdef int64_t q, t, n_columns
    cdef bint right = offsets[0] == 0
    for q in range(pointers.shape[0] - 1):
        n_columns = columns[q + 1] - columns[q]
        right &= offsets[q + 1] - offsets[q] == n_columns * (rows[q + 1] - rows[q])
        for t in range(rows[q], rows[q + 1]):
            right &= pointers[q] <= preferred[t] < pointers[q + 1] and 0 <= first[t] <= n_columns
        for t in range(columns[q], columns[q + 1]):
            right &= pointers[q] <= other[t] < pointers[q + 1]
    if not right:
        raise ValueError("the blocks do not agree with the documents of their queries")
    return 0


cdef ShiftedHinge _loss(const double[::1] target, double raise_, double width):
    cdef ShiftedHinge loss
    loss.target = &target[0]
    loss.raise_ = raise_
    loss.width = width
    return loss


def shifted_hinge(BlockArrays arrays, int64_t first, int64_t last, const double[::1] scores,
                  const double[::1] target, double raise_, double width, double[::1] counts,
                  double[::1] gradient_range):
    """Value of the losses of some queries; writes their gradient and how many pairs of each document have a curved loss."""
    arrays.need_documents(scores, target)
    need("counts", counts.shape[0], arrays.n_rows)
    arrays.need_rows_of("gradient_range", gradient_range.shape[0], first, last)
    if gradient_range.shape[0] == 0 or target.shape[0] == 0:
        return 0.0
    cdef ShiftedHinge loss = _loss(target, raise_, width)
    cdef double value
    with nogil:
        value = loops_of[BlockLoops](chosen).hinge(
            arrays.blocks, first, last, &scores[0], loss, &counts[0], &gradient_range[0])
    return value


def shifted_laplacian(BlockArrays arrays, int64_t first, int64_t last, const double[::1] scores,
                      const double[::1] target, double raise_, double width, const double[::1] v_range,
                      double[::1] out_range):
    """``L v`` of a range of queries, where L is the Laplacian over the pairs whose loss is curved."""
    arrays.need_documents(scores, target)
    arrays.need_rows_of("v_range", v_range.shape[0], first, last)
    arrays.need_rows_of("out_range", out_range.shape[0], first, last)
    if v_range.shape[0] == 0 or target.shape[0] == 0:
        return
    cdef ShiftedHinge loss = _loss(target, raise_, width)
    with nogil:
        loops_of[BlockLoops](chosen).laplacian(arrays.blocks, first, last, &scores[0], loss, &v_range[0], &out_range[0])


def shifted_pulls(BlockArrays arrays, int64_t query, const double[::1] scores, const double[::1] target,
                  double raise_, double width, double[:, ::1] out):
    """Minus the derivative of each pair's loss with respect to its margin, for one query; 0 for entries that are not pairs."""
    arrays.need_documents(scores, target)
    arrays.need_block(query, out.shape[0], out.shape[1])
    if out.shape[0] == 0 or out.shape[1] == 0:
        return
    cdef ShiftedHinge loss = _loss(target, raise_, width)
    with nogil:
        loops_of[BlockLoops](chosen).pulls(arrays.blocks, query, &scores[0], loss, &out[0, 0])


def shifted_bends(BlockArrays arrays, int64_t query, const double[::1] scores, const double[::1] target,
                  double raise_, double width, double[:, ::1] out):
    """1 for each pair of a query whose loss is curved, 0 for all other entries."""
    arrays.need_documents(scores, target)
    arrays.need_block(query, out.shape[0], out.shape[1])
    if out.shape[0] == 0 or out.shape[1] == 0:
        return
    cdef ShiftedHinge loss = _loss(target, raise_, width)
    with nogil:
        loops_of[BlockLoops](chosen).bends(arrays.blocks, query, &scores[0], loss, &out[0, 0])
