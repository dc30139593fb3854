# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""Passes over the rows: products with w, an operator on them query by query, and the rows times what it gives.

The other compiled modules make the two parts, `RowProducts` and `QueryOperator`. Of these a pass over any number of queries
is one call without the GIL. Objects of Python that offer the same serve too.
"""

from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc

import numpy as np

from ranksvm._compiled.border cimport need, need_range

cdef extern from "passes.hpp" namespace "ranksvm" nogil:
    LossSums compiled_pass "ranksvm::pass_over"(
        const ProductTable &, const OperatorTable &, const int64_t *, int64_t, int64_t, int64_t, const double *, double *,
        double *) except +


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


cdef class QueryOperator:
    """A map of vectors over rows, query by query: writes ``u = f(v)``, returns the value, excess and slack of a loss.

    The call has the queries ``first .. last``, and of v and u their rows only.
    """

    def __dealloc__(self):
        free(self.memory)

    def __call__(self, int64_t first, int64_t last, const double[::1] v_range, double[::1] u_range):
        cdef LossSums sums
        self.check(first, last, v_range.shape[0])
        self.check(first, last, u_range.shape[0])
        if u_range.shape[0] == 0:
            return 0.0, 0.0, 0.0
        try:
            with nogil:
                sums = self.table.apply(self.table.context, first, last, &v_range[0], &u_range[0])
        except BaseException:
            self.reraise()
            raise
        return sums.value, sums.excess, sums.slack

    cdef int reraise(self) except -1:
        """In an ``except`` clause: raise what stopped the operator's threads, if anything did."""
        if self.errors:
            raise self.errors.pop() from None
        return 0

    cdef int check(self, int64_t first, int64_t last, int64_t n_rows) except -1:
        need_range("queries", first, last, self.n_queries)
        return need("a vector over rows", n_rows, self.pointers[last] - self.pointers[first])


cdef RowProducts new_products(size_t context_size, object owners, int64_t n_positions, int64_t n_features):
    cdef RowProducts made = RowProducts()
    made.memory = malloc(context_size)
    if made.memory == NULL:
        raise MemoryError()
    made.owners = owners
    made.table.context = made.memory
    made.n_positions = n_positions
    made.n_features = n_features
    return made


cdef QueryOperator new_operator(size_t context_size, object owners, list errors, const int64_t *pointers, int64_t n_queries):
    cdef QueryOperator made = QueryOperator()
    made.memory = malloc(context_size)
    if made.memory == NULL:
        raise MemoryError()
    made.owners = owners
    made.table.context = made.memory
    made.errors = errors
    made.pointers = pointers
    made.n_queries = n_queries
    return made


def pass_over(products, query_operator, const int64_t[::1] pointers, int64_t first, int64_t last, int64_t rows_at_once, w,
              v_range, total):
    """``total += X' f(X w)`` over a range of queries; compiled parts take so many rows, or a whole query, at a time.

    ``v_range`` (None: nobody asks) receives ``X w`` of the range; where ``w`` is None it has what takes the place of X w.
    Returns the sums of the operator.
    """
    if isinstance(products, RowProducts) and isinstance(query_operator, QueryOperator):
        return _compiled_pass(products, query_operator, first, last, rows_at_once, w, v_range, total)
    return _python_pass(products, query_operator, pointers, first, last, w, v_range, total)


cdef _compiled_pass(RowProducts products, QueryOperator query_operator, int64_t first, int64_t last, int64_t rows_at_once,
                    const double[::1] w, double[::1] v_range, double[::1] total):
    cdef LossSums sums
    cdef const int64_t *pointers = query_operator.pointers
    cdef const double *w_begin = NULL
    cdef double *v_begin = NULL
    need_range("queries", first, last, query_operator.n_queries)
    if v_range is not None:
        query_operator.check(first, last, v_range.shape[0])
    products.check(pointers[first], pointers[last], total.shape[0], pointers[last] - pointers[first])
    if pointers[last] == pointers[first]:
        return 0.0, 0.0, 0.0
    if w is not None:
        products.check(0, 0, w.shape[0], 0)
        w_begin = &w[0]
    if v_range is not None:
        v_begin = &v_range[0]
    try:
        with nogil:
            sums = compiled_pass(products.table, query_operator.table, pointers, first, last, rows_at_once, w_begin,
                                 v_begin, &total[0])
    except BaseException:
        query_operator.reraise()
        raise
    return sums.value, sums.excess, sums.slack


def _python_pass(products, query_operator, pointers, first, last, w, v_range, total):
    start, stop = pointers[first], pointers[last]
    if start == stop:
        return 0.0, 0.0, 0.0
    v, u = np.empty(stop - start) if v_range is None else v_range, np.empty(stop - start)
    if w is not None:
        products.scores(start, stop, w, v)
    sums = query_operator(first, last, v, u)
    products.accumulate(start, stop, u, total)
    return sums
