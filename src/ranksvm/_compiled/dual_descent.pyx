# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""Block coordinate ascent on the dual over listed pairs, one query after another; the GIL released.

Arrays over documents are by position; ``rows`` maps positions to rows of X (None where they are the same).
"""

from libc.stdint cimport int32_t, int64_t

from ranksvm._compiled.instruction_set cimport chosen

cdef extern from "dual_descent_loops.hpp" namespace "ranksvm" nogil:
    cdef struct DualPairs:
        const int64_t *pointers
        const int64_t *rows
        const int64_t *pair_pointers
        const int32_t *preferred
        const int32_t *other
        const double *upper
        const double *ridge
        const int64_t *gram_pointers
        double *grams

    cppclass DenseDualLoops[Real]:
        void (*grams)(const Real *, int64_t, const DualPairs &, const int64_t *, int64_t, double *) except +
        double (*ascend)(const Real *, int64_t, const DualPairs &, const int64_t *, int64_t, double *, double *) except +

    cppclass SparseDualLoops[Real, Index]:
        void (*grams)(const Real *, const Index *, const Index *, const DualPairs &, const int64_t *, int64_t,
                      double *) except +
        double (*ascend)(const Real *, const Index *, const Index *, const DualPairs &, const int64_t *, int64_t, double *,
                         double *) except +

    const Loops &loops_of[Loops](int)

ctypedef fused real:
    float
    double

ctypedef fused index:
    int32_t
    int64_t


cdef class PairArrays:
    """Pairs listed query by query, with what the loss says of each: its largest alpha and the curvature it adds."""

    cdef object owners  # keeps the arrays alive
    cdef DualPairs pairs
    cdef int64_t n_pairs

    def __init__(self, const int64_t[::1] pointers, const int64_t[::1] rows, const int64_t[::1] pair_pointers,
                 const int32_t[::1] preferred, const int32_t[::1] other, const double[::1] upper,
                 const double[::1] ridge, const int64_t[::1] gram_pointers, double[::1] grams):
        if not preferred.shape[0] == other.shape[0] == upper.shape[0] == ridge.shape[0] > 0:
            raise ValueError("the arrays over pairs must be of one length, and not empty")
        self.owners = (pointers, rows, pair_pointers, preferred, other, upper, ridge, gram_pointers, grams)
        self.n_pairs = preferred.shape[0]
        self.pairs.pointers = &pointers[0]
        self.pairs.rows = NULL
        if rows is not None:
            self.pairs.rows = &rows[0]
        self.pairs.pair_pointers = &pair_pointers[0]
        self.pairs.preferred = &preferred[0]
        self.pairs.other = &other[0]
        self.pairs.upper = &upper[0]
        self.pairs.ridge = &ridge[0]
        self.pairs.gram_pointers = &gram_pointers[0]
        self.pairs.grams = &grams[0]


def dense_grams(const real[:, ::1] X, PairArrays arrays, const int64_t[::1] order, double[::1] work):
    """Write the Gram matrices of the queries in ``order``; ``work`` holds a zero for each feature."""
    cdef int64_t n = X.shape[1], n_visits = order.shape[0]
    if n_visits == 0:
        return
    with nogil:
        loops_of[DenseDualLoops[real]](chosen).grams(&X[0, 0], n, arrays.pairs, &order[0], n_visits, &work[0])


def sparse_grams(const real[::1] data, const index[::1] indices, const index[::1] indptr, PairArrays arrays,
                 const int64_t[::1] order, double[::1] work):
    """The same for a CSR matrix with at least one entry."""
    cdef int64_t n_visits = order.shape[0]
    if n_visits == 0:
        return
    with nogil:
        loops_of[SparseDualLoops[real, index]](chosen).grams(&data[0], &indices[0], &indptr[0], arrays.pairs, &order[0],
                                                             n_visits, &work[0])


def dense_ascent(const real[:, ::1] X, PairArrays arrays, const int64_t[::1] order, double[::1] alpha, double[::1] w):
    """One visit to each of the queries in ``order``; alpha and ``w = sum of alpha_ij (x_i - x_j)`` follow.

    Returns the largest projected slope of the dual that a visit met.
    """
    cdef int64_t n = X.shape[1], n_visits = order.shape[0]
    cdef double slope
    if alpha.shape[0] != arrays.n_pairs or w.shape[0] != n:
        raise ValueError(f"{alpha.shape[0]} alpha for {arrays.n_pairs} pairs, {w.shape[0]} weights for {n} features")
    if n_visits == 0:
        return 0.0
    with nogil:
        slope = loops_of[DenseDualLoops[real]](chosen).ascend(&X[0, 0], n, arrays.pairs, &order[0], n_visits,
                                                              &alpha[0], &w[0])
    return slope


def sparse_ascent(const real[::1] data, const index[::1] indices, const index[::1] indptr, PairArrays arrays,
                  const int64_t[::1] order, double[::1] alpha, double[::1] w):
    """The same for a CSR matrix with at least one entry."""
    cdef int64_t n_visits = order.shape[0]
    cdef double slope
    if alpha.shape[0] != arrays.n_pairs:
        raise ValueError(f"{alpha.shape[0]} alpha for {arrays.n_pairs} pairs")
    if n_visits == 0:
        return 0.0
    with nogil:
        slope = loops_of[SparseDualLoops[real, index]](chosen).ascend(&data[0], &indices[0], &indptr[0], arrays.pairs,
                                                                      &order[0], n_visits, &alpha[0], &w[0])
    return slope
