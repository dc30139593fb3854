# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""The Huberised hinge with a margin of its own for each pair, over blocks: arrays in, arrays out, the GIL released.

Arrays over documents are in sorted order; arguments named ``*_range`` hold those of the queries ``first .. last`` only.
``target`` has the entries of all blocks, and ``raise_`` says by how much they raise the hinges.
"""

from libc.stdint cimport int64_t

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

    def __init__(self, const int64_t[::1] pointers, const int64_t[::1] rows, const int64_t[::1] columns,
                 const int64_t[::1] offsets, const int64_t[::1] preferred, const int64_t[::1] other,
                 const int64_t[::1] first):
        self.owners = (pointers, rows, columns, offsets, preferred, other, first)
        self.blocks.pointers = &pointers[0]
        self.blocks.rows = &rows[0]
        self.blocks.columns = &columns[0]
        self.blocks.offsets = &offsets[0]
        self.blocks.preferred = &preferred[0] if preferred.shape[0] else NULL
        self.blocks.other = &other[0] if other.shape[0] else NULL
        self.blocks.first = &first[0] if first.shape[0] else NULL


cdef ShiftedHinge _loss(const double[::1] target, double raise_, double width):
    cdef ShiftedHinge loss
    loss.target = &target[0]
    loss.raise_ = raise_
    loss.width = width
    return loss


def shifted_hinge(BlockArrays arrays, int64_t first, int64_t last, const double[::1] scores,
                  const double[::1] target, double raise_, double width, double[::1] counts,
                  double[::1] gradient_range):
    """Value of the losses of a range of queries; writes their gradient and how many pairs bend at each document."""
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
    """``L v`` of a range of queries, L the Laplacian over the pairs that bend."""
    if v_range.shape[0] == 0 or target.shape[0] == 0:
        return
    cdef ShiftedHinge loss = _loss(target, raise_, width)
    with nogil:
        loops_of[BlockLoops](chosen).laplacian(arrays.blocks, first, last, &scores[0], loss, &v_range[0], &out_range[0])


def shifted_pulls(BlockArrays arrays, int64_t query, const double[::1] scores, const double[::1] target,
                  double raise_, double width, double[:, ::1] out):
    """Minus the derivative of the loss of each pair of a query by its margin; 0 for entries that are no pairs."""
    if out.shape[0] == 0 or out.shape[1] == 0:
        return
    cdef ShiftedHinge loss = _loss(target, raise_, width)
    with nogil:
        loops_of[BlockLoops](chosen).pulls(arrays.blocks, query, &scores[0], loss, &out[0, 0])


def shifted_bends(BlockArrays arrays, int64_t query, const double[::1] scores, const double[::1] target,
                  double raise_, double width, double[:, ::1] out):
    """1 for each pair of a query whose loss bends, 0 for all other entries."""
    if out.shape[0] == 0 or out.shape[1] == 0:
        return
    cdef ShiftedHinge loss = _loss(target, raise_, width)
    with nogil:
        loops_of[BlockLoops](chosen).bends(arrays.blocks, query, &scores[0], loss, &out[0, 0])
