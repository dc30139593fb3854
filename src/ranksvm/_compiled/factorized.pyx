# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""Steps on the factorized dual, alpha_ij = <v_i, v_j>: query by query, and all queries together; the GIL released.

Arrays over rows are in sorted order (`ranksvm.data.Queries`); ``rows`` maps their positions to rows of X (None if they are the
same). Factors have ``stride`` entries a row, a multiple of `LANES`; those beyond the rank K are 0 and stay 0.
"""

from libc.stdint cimport int32_t, int64_t

from ranksvm._compiled.border cimport (
    need,
    need_csr,
    need_levels,
    need_places,
    need_pointers,
    need_range,
    rows_needed,
)
from ranksvm._compiled.instruction_set cimport chosen

cdef extern from "factorized_loops.hpp" namespace "ranksvm" nogil:
    int kFactorLanes

    cdef struct FactorArrays:
        const int64_t *pointers
        const int32_t *levels
        const int32_t *n_levels
        int64_t stride

    cdef struct Visits:
        FactorArrays arrays
        const int64_t *rows
        const int64_t *order
        int64_t n_visits
        double upper
        double fixed_step

    cdef struct Quartic:
        double q1
        double q2
        double q3
        double q4

    cppclass FactorLoops:
        double (*least)(const Quartic &)
        void (*coefficients)(const FactorArrays &, int64_t, int64_t, const double *, double *, double *) except +
        void (*momentum)(const FactorArrays &, int64_t, int64_t, double, const double *, double *, double *, double *,
                         double *, double *) except +
        void (*move)(int64_t, double, double, double *, double *)
        void (*gradient)(const FactorArrays &, int64_t, int64_t, const double *, double *, double *) except +

    cppclass DenseVisitLoops[Real]:
        double (*visit)(const Real *, int64_t, const Visits &, double *, double *, double *, double *) except +

    cppclass SparseVisitLoops[Real, Index]:
        double (*visit)(const Real *, const Index *, const Index *, int64_t, const Visits &, double *, double *,
                        double *, double *) except +

    const Loops &loops_of[Loops](int)

ctypedef fused real:
    float
    double

ctypedef fused index:
    int32_t
    int64_t

LANES = kFactorLanes


cdef class QueryFactors:
    """The factors of the documents of some queries, and the arrays that a step needs in addition.

    ``V`` has a row for each position. ``step`` (the next step length of each query; 0: not known) and ``pairs`` (sum of
    ``<v_i, v_j>`` over the pairs of each query) are kept by `visit_dense` and `visit_sparse`.
    """

    cdef object owners  # keeps the arrays alive
    cdef FactorArrays arrays
    cdef const int64_t *rows
    cdef double *factors
    cdef double *steps
    cdef double *pair_sums
    cdef int64_t n_rows, n_queries, rows_of_x

    def __init__(self, const int64_t[::1] pointers, const int64_t[::1] rows, const int32_t[::1] levels,
                 const int32_t[::1] n_levels, double[:, ::1] V, double[::1] step, double[::1] pairs):
        if V.shape[1] % kFactorLanes:
            raise ValueError(f"factors of stride {V.shape[1]}, which is no multiple of {kFactorLanes}")
        self.n_rows, self.n_queries = V.shape[0], pointers.shape[0] - 1
        self.rows_of_x = rows_needed(rows, self.n_rows)
        need("levels", levels.shape[0], self.n_rows)
        need_pointers("pointers", pointers, self.n_rows)
        need("n_levels", n_levels.shape[0], self.n_queries)
        need("step", step.shape[0], self.n_queries)
        need("pairs", pairs.shape[0], self.n_queries)
        need_levels(pointers, levels, n_levels)
        self.owners = (pointers, rows, levels, n_levels, V, step, pairs)
        self.arrays = FactorArrays(&pointers[0], &levels[0], &n_levels[0], V.shape[1])
        self.rows = NULL
        if rows is not None:
            self.rows = &rows[0]
        self.factors, self.steps, self.pair_sums = &V[0, 0], &step[0], &pairs[0]

    cdef int need_visits(self, const int64_t[::1] order, int64_t n_rows) except -1:
        """Refuse an order of queries that are not there, or rows beyond those of X."""
        need_places("order", order, self.n_queries)
        return need_range("rows", 0, self.rows_of_x, n_rows)

    cdef int need_rows_of(self, str name, int64_t found, int64_t first, int64_t last) except -1:
        """Refuse an array that does not hold the rows of a range of queries."""
        need_range("queries", first, last, self.n_queries)
        return need(name, found, self.arrays.pointers[last] - self.arrays.pointers[first])

    cdef Visits visits(self, const int64_t[::1] order, double upper, double fixed_step):
        return Visits(self.arrays, self.rows, &order[0], order.shape[0], upper, fixed_step)


def visit_dense(const real[:, ::1] X, QueryFactors factors, const int64_t[::1] order, double upper, double fixed_step,
                double[::1] beta):
    """A projected gradient step on the factors of one query after another, in the order given; updates beta.

    With ``fixed_step`` 0 each query has a step length of its own and an exact line search. Returns the sum of ``|P(V - G) -
    V|^2`` over the queries, each at the beginning of its visit.
    """
    cdef double projected2
    need("beta", beta.shape[0], X.shape[1])
    factors.need_visits(order, X.shape[0])
    if order.shape[0] == 0:
        return 0.0
    cdef Visits visits = factors.visits(order, upper, fixed_step)
    cdef int64_t n = X.shape[1]
    with nogil:
        projected2 = loops_of[DenseVisitLoops[real]](chosen).visit(&X[0, 0], n, visits, factors.factors, &beta[0],
                                                                   factors.steps, factors.pair_sums)
    return projected2


def visit_sparse(const real[::1] data, const index[::1] indices, const index[::1] indptr, int64_t n_features,
                 QueryFactors factors, const int64_t[::1] order, double upper, double fixed_step, double[::1] beta):
    """As `visit_dense`, for a CSR matrix with at least one entry."""
    cdef double projected2
    need_csr(data.shape[0], indices.shape[0], indptr.shape[0])
    need("beta", beta.shape[0], n_features)
    factors.need_visits(order, indptr.shape[0] - 1)
    if order.shape[0] == 0:
        return 0.0
    cdef Visits visits = factors.visits(order, upper, fixed_step)
    cdef int64_t n = beta.shape[0]
    with nogil:
        projected2 = loops_of[SparseVisitLoops[real, index]](chosen).visit(
            &data[0], &indices[0], &indptr[0], n, visits, factors.factors, &beta[0],
                                    factors.steps, factors.pair_sums)
    return projected2


def coefficients(QueryFactors factors, int64_t first, int64_t last, double[::1] c_range):
    """Write ``c``, for which ``beta = X'c``, at the positions of queries ``first .. last``, and the queries' ``pairs``."""
    factors.need_rows_of("c_range", c_range.shape[0], first, last)
    if c_range.shape[0] == 0:
        return
    with nogil:
        loops_of[FactorLoops](chosen).coefficients(
            factors.arrays, first, last, factors.factors, &c_range[0], factors.pair_sums)


def momentum(QueryFactors factors, int64_t first, int64_t last, double upper, double[:, ::1] previous,
             double[::1] c1_range, double[::1] c2_range, double[::1] pairs1, double[::1] pairs2):
    """Repeat the step from ``previous`` to V, within the box: ``D = P(2 V - previous) - V`` overwrites ``previous``.

    At ``V + t D``, ``c`` is ``c + t c1 + t^2 c2``, and a query's ``pairs`` are ``pairs + t pairs1 + t^2 pairs2``.
    """
    factors.need_rows_of("c1_range", c1_range.shape[0], first, last)
    factors.need_rows_of("c2_range", c2_range.shape[0], first, last)
    need("previous", previous.shape[0], factors.n_rows)
    need("a row of previous", previous.shape[1], factors.arrays.stride)
    need("pairs1", pairs1.shape[0], factors.n_queries)
    need("pairs2", pairs2.shape[0], factors.n_queries)
    if c1_range.shape[0] == 0:
        return
    with nogil:
        loops_of[FactorLoops](chosen).momentum(
            factors.arrays, first, last, upper, factors.factors, &previous[0, 0], &c1_range[0], &c2_range[0],
                        &pairs1[0], &pairs2[0])


def move(double[:, ::1] V_range, double[:, ::1] D_range, double upper, double t):
    """V becomes ``V + t D``, within the box, and D becomes the former V."""
    need("D_range", D_range.shape[0], V_range.shape[0])
    need("a row of D_range", D_range.shape[1], V_range.shape[1])
    if V_range.shape[0] == 0:
        return
    with nogil:
        loops_of[FactorLoops](chosen).move(
            V_range.shape[0] * V_range.shape[1], upper, t, &V_range[0, 0], &D_range[0, 0])


def gradient(QueryFactors factors, int64_t first, int64_t last, double[::1] scores_range, double[:, ::1] G_range):
    """Write the gradient with respect to the factors of queries ``first .. last``; also subtracts each query's mean score."""
    factors.need_rows_of("scores_range", scores_range.shape[0], first, last)
    factors.need_rows_of("G_range", G_range.shape[0], first, last)
    need("a row of G_range", G_range.shape[1], factors.arrays.stride)
    if scores_range.shape[0] == 0:
        return
    with nogil:
        loops_of[FactorLoops](chosen).gradient(
            factors.arrays, first, last, factors.factors, &scores_range[0], &G_range[0, 0])


def least_of_quartic(double q1, double q2, double q3, double q4):
    """The minimizer in [0, 1] of ``q1 t + q2 t^2 + q3 t^3 + q4 t^4`` with ``q1 < 0``, and the value there."""
    cdef Quartic quartic = Quartic(q1, q2, q3, q4)
    cdef double t = loops_of[FactorLoops](chosen).least(quartic)
    return t, t * (q1 + t * (q2 + t * (q3 + t * q4)))
