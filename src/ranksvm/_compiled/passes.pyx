# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""Passes over the rows: multiply them by w, apply an operator to the products query by query, multiply X' by its result.

The other compiled modules make the two parts, `RowProducts` and `QueryOperator`. A pass is one call without the GIL, which
shares the queries out among threads.
"""

from libc.stdint cimport INT64_MAX, int64_t
from libc.stdlib cimport free, malloc

import numpy as np

from ranksvm._compiled.border cimport need, need_range
from ranksvm._compiled.threads cimport Workers, workers_of

cdef extern from "passes.hpp" namespace "ranksvm" nogil:
    cdef cppclass Pass:
        ProductTable products
        OperatorTable query_operator
        const int64_t *pointers
        const int64_t *ranges
        const int64_t *ends
        int64_t rows_at_once
        const double *w
        double *v
        int64_t n_features
        double *totals
        LossSums *sums
        LossSums run(const Workers &, int64_t) except +


cdef class RowProducts:
    """Products of a design matrix, at positions ``start .. stop``; arrays named ``*_range`` hold these only."""

    def __dealloc__(self):
        free(self.memory)

    def scores(self, int64_t start, int64_t stop, const double[::1] w, double[::1] v_range):
        """``v = X w``."""
        self.check(start, stop, w.shape[0], v_range.shape[0])
        if start < stop:
            with nogil:
                self.table.scores(self.table.context, start, stop, &w[0], &v_range[0])

    def accumulate(self, int64_t start, int64_t stop, const double[::1] u_range, double[::1] total):
        """``total += X' u``."""
        self.check(start, stop, total.shape[0], u_range.shape[0])
        if start < stop:
            with nogil:
                self.table.accumulate(self.table.context, start, stop, &u_range[0], &total[0])

    cdef int check(self, int64_t start, int64_t stop, int64_t n_features, int64_t n_rows) except -1:
        need("a vector over features", n_features, self.n_features)
        need_range("positions", start, stop, self.n_positions)
        return need("a vector over positions", n_rows, stop - start)

    cdef int check_columns(self, int64_t start, int64_t stop, int64_t n_columns) except -1:
        need("a row", n_columns, self.n_columns)
        return need_range("positions", start, stop, self.n_positions)


cdef class QueryOperator:
    """A map of vectors over rows, query by query: writes ``u = f(v)``, returns the value, excess and slack of a loss.

    A call takes the queries ``first .. last``; its v and u hold only the rows of these queries.
    """

    def __dealloc__(self):
        free(self.memory)

    def __call__(self, int64_t first, int64_t last, const double[::1] v_range, double[::1] u_range):
        cdef LossSums sums
        self.check(first, last, v_range.shape[0])
        self.check(first, last, u_range.shape[0])
        if u_range.shape[0] == 0:
            return 0.0, 0.0, 0.0
        with nogil:
            sums = self.table.apply(self.table.context, first, last, &v_range[0], &u_range[0])
        return sums.value, sums.excess, sums.slack

    def rows(self, int64_t first, int64_t last, real[:, ::1] X_range, real[:, ::1] out):
        """The parts of an explicit Hessian, from the rows X of a range of queries.

        The operator is a Hessian H with respect to the scores. This method does one of two things. It may write rows D with
        ``D'D = X' H X`` to ``out``, which has twice as many rows as X, and return their number. Or it centers X by query,
        writes Z with ``X'Z + Z'X = 2 X' H X`` to the first rows of ``out``, and returns None.
        """
        cdef int64_t found
        self.check_hessian()
        self.check(first, last, X_range.shape[0])
        need("out", out.shape[0], 2 * X_range.shape[0])
        need("a row of out", out.shape[1], X_range.shape[1])
        if X_range.shape[0] == 0 or X_range.shape[1] == 0:
            return 0
        with nogil:
            if real is float:
                found = self.table.rows_single(
                    self.table.context, first, last, &X_range[0, 0], X_range.shape[1], &out[0, 0])
            else:
                found = self.table.rows(self.table.context, first, last, &X_range[0, 0], X_range.shape[1], &out[0, 0])
        return None if found == kNotSquared else found

    def product(self, int64_t first, int64_t last, const real[:, :] V, real[:, :] U):
        """Write ``U = H V`` for a range of queries.

        The operator is a Hessian H with respect to the scores. V and U have a row for each document that is in an active pair
        (one at which the loss is curved), and a column for each vector. They may be columns of larger arrays.
        """
        cdef Columns[double] columns
        cdef Columns[float] single
        cdef bint done
        self.check_hessian()
        need_range("queries", first, last, self.n_queries)
        need("U", U.shape[0], V.shape[0])
        need("a row of U", U.shape[1], V.shape[1])
        if V.shape[0] == 0 or V.shape[1] == 0:
            return
        if V.strides[1] != sizeof(real) or U.strides[1] != sizeof(real) or U.strides[0] != V.strides[0]:
            raise ValueError("V and U must have rows of consecutive numbers, and one distance between rows")
        if real is float:
            single.V, single.U, single.n_rows, single.n = &V[0, 0], &U[0, 0], V.shape[0], V.shape[1]
            single.stride = V.strides[0] // <int64_t>sizeof(real)
            with nogil:
                done = self.table.product_single(self.table.context, first, last, single)
        else:
            columns.V, columns.U, columns.n_rows, columns.n = &V[0, 0], &U[0, 0], V.shape[0], V.shape[1]
            columns.stride = V.strides[0] // <int64_t>sizeof(real)
            with nogil:
                done = self.table.product(self.table.context, first, last, columns)
        if not done:
            raise ValueError("V must have a row for each document in an active pair")

    cdef int check_hessian(self) except -1:
        self.check_made()
        if self.table.rows == NULL:
            raise ValueError("an operator of a Hessian is needed")
        return 0

    cdef int check_made(self) except -1:
        if self.pointers == NULL:
            raise ValueError("an operator is made by a loss")
        return 0

    cdef int check(self, int64_t first, int64_t last, int64_t n_rows) except -1:
        self.check_made()
        need_range("queries", first, last, self.n_queries)
        return need("a vector over rows", n_rows, self.pointers[last] - self.pointers[first])


cdef void *_allocated(size_t size) except NULL:
    cdef void *memory = malloc(size)
    if memory == NULL:
        raise MemoryError()
    return memory


cdef RowProducts new_products(size_t context_size, object owners, int64_t n_positions, int64_t n_features):
    cdef RowProducts made = RowProducts()
    made.memory = _allocated(context_size)
    made.owners = owners
    made.table.context = made.memory
    made.n_positions = n_positions
    made.n_features = made.n_columns = n_features
    return made


cdef QueryOperator new_operator(size_t context_size, object owners, const int64_t *pointers, int64_t n_queries):
    cdef QueryOperator made = QueryOperator()
    made.memory = _allocated(context_size)
    made.owners = owners
    made.table.context = made.memory
    made.table.rows = NULL
    made.table.rows_single = NULL
    made.table.product = NULL
    made.table.product_single = NULL
    made.pointers = pointers
    made.n_queries = n_queries
    return made


cdef class QueryShares:
    """Shares of the queries of a pass: ``ranges`` (first, last) of queries, and in ``ends`` the end of each share in them.

    A share begins where the one before ends. Every share adds up by itself, so that results depend on the shares and not on
    the number of threads.
    """

    def __init__(self, const int64_t[:, ::1] ranges, const int64_t[::1] ends):
        cdef int64_t i, before = 0
        need("a range of queries", ranges.shape[1], 2)
        for i in range(ends.shape[0]):
            need_range("ranges of queries", before, ends[i], ranges.shape[0])
            before = ends[i]
        need("ranges in shares", before, ranges.shape[0])
        self.n_queries = 0
        for i in range(ranges.shape[0]):
            need_range("queries", ranges[i, 0], ranges[i, 1], INT64_MAX)
            if ranges[i, 0] < self.n_queries:  # two threads would write to the same rows
                raise ValueError("ranges of queries must be ascending")
            self.n_queries = ranges[i, 1]
        self.ranges, self.ends, self.n_shares = ranges, ends, ends.shape[0]
        self.first_range = &ranges[0, 0] if ranges.shape[0] else NULL
        self.first_end = &ends[0] if ends.shape[0] else NULL


def pass_over(RowProducts products, QueryOperator query_operator, QueryShares shares, int64_t rows_at_once,
              const double[::1] w, double[::1] v, double[:, ::1] totals, int64_t n_threads):
    """Add ``X' f(X w)`` to the first row of ``totals``; return the sums of the operator.

    ``rows_at_once`` rows, or a whole query, are taken at a time. ``v`` (over all rows; None: not wanted) receives ``X w``; if
    ``w`` is None, ``v`` is used in place of X w. ``totals`` has a row for each share; all but the first are scratch, and zero
    on entry.
    """
    cdef Pass work
    cdef LossSums found
    cdef Workers workers = workers_of(n_threads)
    cdef double[:, ::1] sums = np.zeros((max(1, shares.n_shares), 3))
    query_operator.check_made()
    cdef int64_t n_rows = query_operator.pointers[query_operator.n_queries]
    if w is None and v is None:
        raise ValueError("a pass needs w, or v in place of X w")
    need("totals", totals.shape[0], max(1, shares.n_shares))
    need_range("queries", 0, shares.n_queries, query_operator.n_queries)
    products.check(0, n_rows, totals.shape[1], n_rows)
    if shares.n_shares == 0 or n_rows == 0:
        return 0.0, 0.0, 0.0
    work.w = NULL
    work.v = NULL
    if w is not None:
        products.check(0, n_rows, w.shape[0], n_rows)
        work.w = &w[0]
    if v is not None:
        need("a vector over rows", v.shape[0], n_rows)
        work.v = &v[0]
    work.products, work.query_operator = products.table, query_operator.table
    work.pointers, work.ranges, work.ends = query_operator.pointers, shares.first_range, shares.first_end
    work.rows_at_once, work.n_features = rows_at_once, totals.shape[1]
    work.totals, work.sums = &totals[0, 0], <LossSums *>&sums[0, 0]
    with nogil:
        found = work.run(workers, shares.n_shares)
    return found.value, found.excess, found.slack
