# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""Explicit Hessians ``X' H X``, and their diagonals: one call without the GIL, which shares the queries out among threads."""

from libc.stdint cimport int64_t
from libcpp cimport bool as cbool

from ranksvm._compiled.border cimport need, need_range
from ranksvm._compiled.instruction_set cimport chosen
from ranksvm._compiled.passes cimport (
    OperatorTable, ProductTable, QueryOperator, QueryShares, RowProducts, real)
from ranksvm._compiled.threads cimport Workers, workers_of

cdef extern from "hessian_loops.hpp" namespace "ranksvm" nogil:
    cppclass HessianLoops[Real]:
        pass

    const Loops &loops_of[Loops](int)

cdef extern from "hessian_pass.hpp" namespace "ranksvm" nogil:
    cppclass HessianPass[Rows, Real]:
        ProductTable products
        OperatorTable hessian
        const HessianLoops[Real] *loops
        const int64_t *pointers
        const int64_t *ranges
        const int64_t *ends
        int64_t rows_at_once
        int64_t n_features
        cbool diagonal
        double *totals
        void run(const Workers &, int64_t) except +

    void add_to_hessian[Real](const HessianLoops[Real] &, const Real *, const Real *, int64_t, int64_t, double *) except +

# the precision of rows and of H times the rows (`real` is the precision of the products)
ctypedef fused rows_real:
    float
    double


cdef int _run(RowProducts products, QueryOperator hessian, QueryShares shares, int64_t rows_at_once, int64_t n_features,
              cbool diagonal, double *totals, int64_t n_threads, rows_real of_rows, real of_products) except -1:
    cdef HessianPass[rows_real, real] work
    cdef Workers workers = workers_of(n_threads)
    work.products, work.hessian = products.table, hessian.table
    work.loops = &loops_of[HessianLoops[real]](chosen)
    work.pointers, work.ranges, work.ends = hessian.pointers, shares.first_range, shares.first_end
    work.rows_at_once, work.n_features, work.diagonal, work.totals = rows_at_once, n_features, diagonal, totals
    with nogil:
        work.run(workers, shares.n_shares)
    return 0


def hessian_over(RowProducts products, QueryOperator hessian, QueryShares shares, int64_t rows_at_once, bint single,
                 bint single_rows, double[:, :, ::1] totals, int64_t n_threads):
    """``X' H X`` in the first matrix of ``totals``.

    ``rows_at_once`` rows, or a whole query, are taken at a time. Products are in float32 with ``single``, else in float64;
    totals are in float64. With ``single``, ``single_rows`` says whether the rows and H times the rows are in float32 too.
    ``totals`` has a matrix of zeros for each share; all but the first are scratch.
    """
    cdef int64_t n = totals.shape[1]
    need("a matrix of totals", totals.shape[2], n)
    if not _some_rows(products, hessian, shares, totals.shape[0], n):
        return
    if not single:
        _run(products, hessian, shares, rows_at_once, n, False, &totals[0, 0, 0], n_threads, <double>0, <double>0)
    elif single_rows:
        _run(products, hessian, shares, rows_at_once, n, False, &totals[0, 0, 0], n_threads, <float>0, <float>0)
    else:
        _run(products, hessian, shares, rows_at_once, n, False, &totals[0, 0, 0], n_threads, <double>0, <float>0)


def diagonal_over(RowProducts products, QueryOperator hessian, QueryShares shares, int64_t rows_at_once,
                  double[:, ::1] totals, int64_t n_threads):
    """The diagonal of ``X' H X`` in float64, in the first row of ``totals``, which has a row for each share.

    All else is as in `hessian_over`.
    """
    cdef int64_t n = totals.shape[1]
    if not _some_rows(products, hessian, shares, totals.shape[0], n):
        return
    _run(products, hessian, shares, rows_at_once, n, True, &totals[0, 0], n_threads, <double>0, <double>0)


cdef bint _some_rows(RowProducts products, QueryOperator hessian, QueryShares shares, int64_t n_totals,
                     int64_t n_features) except? -1:
    """Check that the arguments fit together; return whether there is anything to add up."""
    hessian.check_hessian()
    cdef int64_t n_rows = hessian.pointers[hessian.n_queries]
    need("totals", n_totals, max(1, shares.n_shares))
    need_range("queries", 0, shares.n_queries, hessian.n_queries)
    products.check_columns(0, n_rows, n_features)
    return shares.n_shares > 0 and n_rows > 0 and n_features > 0


def add_product(const real[:, ::1] A, const real[:, ::1] B, double[:, ::1] total):
    """``total += (A'B + B'A) / 2``, for a symmetric total."""
    need("a column of B", B.shape[0], A.shape[0])
    need("a row of B", B.shape[1], A.shape[1])
    need("total", total.shape[0], A.shape[1])
    need("a row of total", total.shape[1], A.shape[1])
    if A.shape[0] == 0 or A.shape[1] == 0:
        return
    with nogil:
        add_to_hessian(loops_of[HessianLoops[real]](chosen), &A[0, 0], &B[0, 0], A.shape[0], A.shape[1], &total[0, 0])
