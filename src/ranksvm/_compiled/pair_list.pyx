# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""Losses over listed pairs, and their Hessians, as operators that compiled passes call without the GIL.

Arrays over rows are in sorted order (`ranksvm.data.Queries`). A loss writes a number for each pair to ``active``, and the sum
of these numbers for each document to ``degrees``.
"""

from libc.stdint cimport int32_t, int64_t
from libcpp cimport bool as cbool

from ranksvm._compiled.border cimport need, need_places_by_query, need_pointers
from ranksvm._compiled.instruction_set cimport chosen
from ranksvm._compiled.passes cimport Columns, LossSums, QueryOperator, new_operator

cdef extern from "pair_list_loops.hpp" namespace "ranksvm" nogil:
    cdef struct PairList:
        const int64_t *pointers
        const int64_t *pair_pointers
        const int32_t *preferred
        const int32_t *other
        const double *weight

    cppclass PairListLoops:
        pass

    cppclass PairListRowLoops[Real]:
        pass

    const Loops &loops_of[Loops](int)

cdef extern from "pair_list_operators.hpp" namespace "ranksvm" nogil:
    cppclass ListOperator:
        const PairListLoops *loops
        const PairListRowLoops[double] *row_loops
        const PairListRowLoops[float] *single_row_loops
        const PairList *pairs
        double *active
        double *degrees
        double threshold
        double width
        double ring
        cbool smoothing
        int function
        double factor
        @staticmethod
        LossSums squared_hinge(const void *, int64_t, int64_t, const double *, double *) except + nogil
        @staticmethod
        LossSums huber(const void *, int64_t, int64_t, const double *, double *) except + nogil
        @staticmethod
        LossSums smooth(const void *, int64_t, int64_t, const double *, double *) except + nogil
        @staticmethod
        LossSums laplacian(const void *, int64_t, int64_t, const double *, double *) except + nogil
        @staticmethod
        int64_t rows(const void *, int64_t, int64_t, double *, int64_t, double *) except + nogil
        @staticmethod
        int64_t rows_single(const void *, int64_t, int64_t, float *, int64_t, float *) except + nogil
        @staticmethod
        bint product(const void *, int64_t, int64_t, const Columns[double] &) except + nogil
        @staticmethod
        bint product_single(const void *, int64_t, int64_t, const Columns[float] &) except + nogil


cdef class ListArrays:
    """Listed pairs as arrays: pointers to the rows and the pairs of each query, documents and weights."""

    cdef PairList pairs
    cdef object owners  # keeps the arrays alive
    cdef int64_t n_rows, n_queries, n_pairs

    def __init__(self, const int64_t[::1] pointers, const int64_t[::1] pair_pointers, const int32_t[::1] preferred,
                 const int32_t[::1] other, const double[::1] weight):
        need_pointers("pointers", pointers, pointers[pointers.shape[0] - 1] if pointers.shape[0] else 0)
        need_pointers("pair_pointers", pair_pointers, preferred.shape[0])
        need("pair_pointers", pair_pointers.shape[0], pointers.shape[0])
        need("other", other.shape[0], preferred.shape[0])
        need("weight", weight.shape[0], preferred.shape[0])
        need_places_by_query("preferred", preferred, pair_pointers, pointers)
        need_places_by_query("other", other, pair_pointers, pointers)
        self.n_queries, self.n_pairs = pointers.shape[0] - 1, preferred.shape[0]
        self.n_rows = pointers[self.n_queries]
        self.owners = (pointers, pair_pointers, preferred, other, weight)
        self.pairs.pointers = &pointers[0]
        self.pairs.pair_pointers = &pair_pointers[0]
        self.pairs.preferred = &preferred[0] if preferred.shape[0] else NULL
        self.pairs.other = &other[0] if other.shape[0] else NULL
        self.pairs.weight = &weight[0] if weight.shape[0] else NULL


cdef QueryOperator _new_operator(ListArrays arrays, double[::1] active, double[::1] degrees):
    need("active", active.shape[0], arrays.n_pairs)
    need("degrees", degrees.shape[0], arrays.n_rows)
    cdef QueryOperator made = new_operator(
        sizeof(ListOperator), (arrays, active, degrees), arrays.pairs.pointers, arrays.n_queries)
    cdef ListOperator *own = <ListOperator *>made.memory
    own.loops = &loops_of[PairListLoops](chosen)
    own.row_loops = &loops_of[PairListRowLoops[double]](chosen)
    own.single_row_loops = &loops_of[PairListRowLoops[float]](chosen)
    own.pairs = &arrays.pairs
    own.active = &active[0]
    own.degrees = &degrees[0]
    return made


def squared_hinge(ListArrays arrays, double threshold, double[::1] active, double[::1] degrees):
    """The operator from scores to the gradient of the sum of ``a max(0, t - (s_i - s_j))^2`` over the pairs.

    Writes the weights of the violating pairs (0 for the others) to ``active``, and their sums to ``degrees``.
    """
    cdef QueryOperator made = _new_operator(arrays, active, degrees)
    (<ListOperator *>made.memory).threshold = threshold
    made.table.apply = ListOperator.squared_hinge
    return made


def huber(ListArrays arrays, double width, bint smoothing, double[::1] active, double[::1] degrees, double ring=0.0):
    """The operator from scores to the gradient of the Huberized hinge; its sums and its ring are as in `sweep.huber`."""
    cdef QueryOperator made = _new_operator(arrays, active, degrees)
    cdef ListOperator *own = <ListOperator *>made.memory
    own.width = width
    own.ring = ring if ring else width
    own.smoothing = smoothing
    made.table.apply = ListOperator.huber
    return made


def smooth(ListArrays arrays, int function, double[::1] active, double[::1] degrees):
    """The operator from scores to the gradient of a function of the margin, by its number in margin_functions.hpp.

    Writes the pairs' weights times the second derivatives, and their sum for each document.
    """
    if not function:
        raise ValueError("no number of a function of the margin")
    cdef QueryOperator made = _new_operator(arrays, active, degrees)
    (<ListOperator *>made.memory).function = function
    made.table.apply = ListOperator.smooth
    return made


def laplacian(ListArrays arrays, double[::1] active, double[::1] degrees, double factor):
    """The operator ``v -> factor * L v``, where L is the Laplacian of the pairs, weighted by ``active`` (see above)."""
    cdef QueryOperator made = _new_operator(arrays, active, degrees)
    (<ListOperator *>made.memory).factor = factor
    made.table.apply = ListOperator.laplacian
    made.table.rows = ListOperator.rows
    made.table.rows_single = ListOperator.rows_single
    made.table.product = ListOperator.product
    made.table.product_single = ListOperator.product_single
    return made
