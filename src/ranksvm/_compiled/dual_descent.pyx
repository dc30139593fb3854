# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""Block coordinate ascent on the dual over listed pairs, one query after another; the GIL released.

Arrays over documents are by position; ``rows`` maps positions to rows of X (None if they are the same).
"""

import numpy as np

from libc.stdint cimport int8_t, int32_t, int64_t

from ranksvm._compiled.border cimport need, need_csr, need_places, need_places_by_query, need_pointers, need_range, rows_needed
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
        int32_t *pauses

    cppclass DenseDualLoops[Real]:
        void (*grams)(const Real *, int64_t, const DualPairs &, const int64_t *, int64_t, double *) except +
        double (*ascend)(const Real *, int64_t, const DualPairs &, const int64_t *, int64_t, double *, double *,
                         const int8_t *, double *) except +

    cppclass SparseDualLoops[Real, Index]:
        void (*grams)(const Real *, const Index *, const Index *, const DualPairs &, const int64_t *, int64_t,
                      double *) except +
        double (*ascend)(const Real *, const Index *, const Index *, const DualPairs &, const int64_t *, int64_t, double *,
                         double *, const int8_t *, double *) except +

    const Loops &loops_of[Loops](int)

ctypedef fused real:
    float
    double

ctypedef fused index:
    int32_t
    int64_t


cdef class PairArrays:
    """Pairs listed query by query, with the upper bound of each alpha and the curvature that each loss adds to the dual.

    ``pauses`` has, for each query, the number of its next visits without Newton steps, because earlier ones failed, and the
    length of its last such pause. To begin another problem, set it to 0.
    """

    cdef object owners  # keeps the arrays alive
    cdef readonly object pauses
    cdef DualPairs pairs
    cdef int64_t n_pairs, n_queries, rows_of_x, n_numbers

    def __init__(self, const int64_t[::1] pointers, const int64_t[::1] rows, const int64_t[::1] pair_pointers,
                 const int32_t[::1] preferred, const int32_t[::1] other, const double[::1] upper,
                 const double[::1] ridge, const int64_t[::1] gram_pointers, double[::1] grams):
        if preferred.shape[0] == 0:
            raise ValueError("there are no pairs")
        for name, values in (("other", other), ("upper", upper), ("ridge", ridge)):
            need(name, len(values), preferred.shape[0])
        self.n_queries, self.n_numbers = pointers.shape[0] - 1, grams.shape[0]
        need_pointers("pointers", pointers, pointers[self.n_queries] if pointers.shape[0] else 0)
        self.rows_of_x = rows_needed(rows, pointers[self.n_queries])
        need("pair_pointers", pair_pointers.shape[0], pointers.shape[0])
        need_pointers("pair_pointers", pair_pointers, preferred.shape[0])
        need_places_by_query("preferred", preferred, pair_pointers, pointers)
        need_places_by_query("other", other, pair_pointers, pointers)
        need("gram_pointers", gram_pointers.shape[0], pointers.shape[0])
        if grams.shape[0] == 0:
            raise ValueError("there is no memory for Gram matrices")
        self.owners = (pointers, rows, pair_pointers, preferred, other, upper, ridge, gram_pointers, grams)
        cdef int32_t[:, ::1] pauses = np.zeros((self.n_queries, 2), dtype=np.int32)
        self.pauses = pauses.base
        self.pairs.pauses = &pauses[0, 0]
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

    cdef int need_visits(self, const int64_t[::1] order, int64_t n_rows) except -1:
        """Refuse queries that are not there or have no room for their Gram matrix, or rows beyond those of X."""
        cdef int64_t visit, q, size, begin
        need_places("order", order, self.n_queries)
        for visit in range(order.shape[0]):
            q = order[visit]
            size, begin = self.pairs.pointers[q + 1] - self.pairs.pointers[q], self.pairs.gram_pointers[q]
            if begin < 0 or size > 3037000499 or size * size > self.n_numbers - begin:
                raise ValueError(f"query {q} has no room for its Gram matrix")
        return need_range("rows", 0, self.rows_of_x, n_rows)


def dense_grams(const real[:, ::1] X, PairArrays arrays, const int64_t[::1] order, double[::1] work):
    """Write the Gram matrices of the queries in ``order``; ``work`` holds a zero for each feature."""
    cdef int64_t n = X.shape[1], n_visits = order.shape[0]
    arrays.need_visits(order, X.shape[0])
    need("work", work.shape[0], n)
    if n_visits == 0:
        return
    with nogil:
        loops_of[DenseDualLoops[real]](chosen).grams(&X[0, 0], n, arrays.pairs, &order[0], n_visits, &work[0])


def sparse_grams(const real[::1] data, const index[::1] indices, const index[::1] indptr, int64_t n_features,
                 PairArrays arrays, const int64_t[::1] order, double[::1] work):
    """As `dense_grams`, for a CSR matrix with at least one entry."""
    cdef int64_t n_visits = order.shape[0]
    need_csr(data.shape[0], indices.shape[0], indptr.shape[0])
    arrays.need_visits(order, indptr.shape[0] - 1)
    need("work", work.shape[0], n_features)
    if n_visits == 0:
        return
    with nogil:
        loops_of[SparseDualLoops[real, index]](chosen).grams(&data[0], &indices[0], &indptr[0], arrays.pairs, &order[0],
                                                             n_visits, &work[0])


def dense_ascent(const real[:, ::1] X, PairArrays arrays, const int64_t[::1] order, double[::1] alpha, double[::1] z,
                 const int8_t[::1] signs=None, double[::1] w=None):
    """One visit to each query in ``order``; updates alpha and ``z = sum of alpha_ij (x_i - x_j)``.

    With ``signs`` it also updates ``w``, the projection of z onto the weights that have these signs. Returns the sum of the
    absolute steps of alpha.
    """
    cdef int64_t n = X.shape[1], n_visits = order.shape[0]
    cdef const int8_t *of_weights = NULL
    cdef double *weights
    cdef double distance
    arrays.need_visits(order, X.shape[0])
    need("alpha", alpha.shape[0], arrays.n_pairs)
    need("z", z.shape[0], n)
    if n_visits == 0:
        return 0.0
    weights = &z[0]
    if signs is not None:
        need("signs", signs.shape[0], n)
        need("w", 0 if w is None else w.shape[0], n)
        of_weights, weights = &signs[0], &w[0]
    with nogil:
        distance = loops_of[DenseDualLoops[real]](chosen).ascend(&X[0, 0], n, arrays.pairs, &order[0], n_visits,
                                                                 &alpha[0], &z[0], of_weights, weights)
    return distance


def sparse_ascent(const real[::1] data, const index[::1] indices, const index[::1] indptr, int64_t n_features,
                  PairArrays arrays, const int64_t[::1] order, double[::1] alpha, double[::1] z,
                  const int8_t[::1] signs=None, double[::1] w=None):
    """As `dense_ascent`, for a CSR matrix with at least one entry."""
    cdef int64_t n_visits = order.shape[0]
    cdef const int8_t *of_weights = NULL
    cdef double *weights
    cdef double distance
    need_csr(data.shape[0], indices.shape[0], indptr.shape[0])
    arrays.need_visits(order, indptr.shape[0] - 1)
    need("alpha", alpha.shape[0], arrays.n_pairs)
    need("z", z.shape[0], n_features)
    if n_visits == 0:
        return 0.0
    weights = &z[0]
    if signs is not None:
        need("signs", signs.shape[0], n_features)
        need("w", 0 if w is None else w.shape[0], n_features)
        of_weights, weights = &signs[0], &w[0]
    with nogil:
        distance = loops_of[SparseDualLoops[real, index]](chosen).ascend(&data[0], &indices[0], &indptr[0], arrays.pairs,
                                                                         &order[0], n_visits, &alpha[0], &z[0],
                                                                         of_weights, weights)
    return distance
