# The objects that compiled modules pass to each other for a pass over the rows: see passes.hpp. The module that makes one fills
# in its table and its context.
from libc.stdint cimport int64_t

cdef extern from "loss_sums.hpp" namespace "ranksvm" nogil:
    cdef struct LossSums:
        double value
        double excess
        double slack

cdef extern from "hessian_rows.hpp" namespace "ranksvm" nogil:
    const int64_t kNotSquared
    cdef cppclass Columns[Real]:
        const Real *V
        Real *U
        int64_t n_rows
        int64_t n
        int64_t stride

cdef extern from "passes.hpp" namespace "ranksvm" nogil:
    cdef struct ProductTable "ranksvm::RowProducts":
        const void *context
        void (*scores)(const void *, int64_t, int64_t, const double *, double *) except + nogil
        void (*accumulate)(const void *, int64_t, int64_t, const double *, double *) except + nogil
        void (*gather)(const void *, int64_t, int64_t, double *, int64_t) except + nogil
        void (*gather_single)(const void *, int64_t, int64_t, float *, int64_t) except + nogil

    cdef struct OperatorTable "ranksvm::QueryOperator":
        const void *context
        LossSums (*apply)(const void *, int64_t, int64_t, const double *, double *) except + nogil
        int64_t (*rows)(const void *, int64_t, int64_t, double *, int64_t, double *) except + nogil
        int64_t (*rows_single)(const void *, int64_t, int64_t, float *, int64_t, float *) except + nogil
        bint (*product)(const void *, int64_t, int64_t, const Columns[double] &) except + nogil
        bint (*product_single)(const void *, int64_t, int64_t, const Columns[float] &) except + nogil


ctypedef fused real:
    float
    double


cdef class RowProducts:
    cdef ProductTable table
    cdef void *memory  # the context
    cdef object owners
    cdef int64_t n_positions
    cdef int64_t n_features  # length of vectors over features
    cdef int64_t n_columns  # length of rows that are gathered; the same number unless the products say otherwise

    cdef int check(self, int64_t start, int64_t stop, int64_t n_features, int64_t n_rows) except -1
    cdef int check_columns(self, int64_t start, int64_t stop, int64_t n_columns) except -1


cdef class QueryOperator:
    cdef OperatorTable table
    cdef void *memory
    cdef object owners
    cdef const int64_t *pointers  # (n_queries + 1,) first position of each query; null if not made by `new_operator`
    cdef int64_t n_queries

    cdef int check_made(self) except -1
    cdef int check_hessian(self) except -1
    cdef int check(self, int64_t first, int64_t last, int64_t n_rows) except -1


# Objects with a context of `context_size` bytes, to be filled in; `owners` keeps alive what it points to.
cdef RowProducts new_products(size_t context_size, object owners, int64_t n_positions, int64_t n_features)
cdef QueryOperator new_operator(size_t context_size, object owners, const int64_t *pointers, int64_t n_queries)


cdef class QueryShares:
    cdef readonly object ranges
    cdef readonly object ends
    cdef const int64_t *first_range
    cdef const int64_t *first_end
    cdef readonly int64_t n_shares
    cdef int64_t n_queries
