# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""Products of a dense or CSR design matrix with vectors, over ranges of rows: in float64 unless asked otherwise.

``rows`` maps positions to rows of X (None if they are the same); ``*_range`` arrays hold the positions ``start .. stop`` only.
The GIL is released.
"""

from libc.stdint cimport int32_t, int64_t
from libcpp cimport bool as cbool

from ranksvm._compiled.border cimport (
    need, need_ascending, need_at_least, need_csr, need_places, need_pointers, need_rows, rows_needed)
from ranksvm._compiled.instruction_set cimport chosen
from ranksvm._compiled.passes cimport RowProducts, new_products

cdef extern from "dense_matrix.hpp" namespace "ranksvm" nogil:
    enum class Where:
        kNear
        kFar
        kScattered

    cppclass OneBlock[Real]:
        const Real *values

    cppclass TwoBlocks[Real]:
        const Real *first
        const Real *second
        int64_t n_first

cdef extern from "linear_loops.hpp" namespace "ranksvm" nogil:
    cppclass DenseLoops[Matrix]:
        void (*gather)(Matrix, int64_t, const int64_t *, int64_t, int64_t, double *, int64_t)
        void (*gather_single)(Matrix, int64_t, const int64_t *, int64_t, int64_t, float *, int64_t)

    cppclass ArrayLoops[Real]:
        cbool (*finite)(const Real *, int64_t)
        void (*largest)(const Real *, int64_t, int64_t, int64_t, double *)

    cppclass SparseLoops[Real, Index]:
        void (*accumulate)(const Real *, const Index *, const Index *, const int64_t *, int64_t, int64_t, const double *,
                           cbool, double *)
        void (*gather)(const Real *, const Index *, const Index *, int64_t, const int64_t *, int64_t, int64_t, double *)
        void (*gather_single)(const Real *, const Index *, const Index *, int64_t, const int64_t *, int64_t, int64_t,
                              float *)
        void (*gram)(const Real *, const Index *, const Index *, int64_t, const int64_t *, int64_t, double *)
        void (*largest)(const Real *, const Index *, int64_t, int64_t, double *)

    cppclass CenterLoops[Real]:
        void (*center_queries)(const int64_t *, int64_t, int64_t, int64_t, Real *)

    const Loops &loops_of[Loops](int)

cdef extern from "row_products.hpp" namespace "ranksvm" nogil:
    cppclass DenseRows[Matrix]:
        const DenseLoops[Matrix] *loops
        Matrix X
        int64_t n
        const int64_t *rows
        int64_t n_positions
        Where where
        @staticmethod
        void scores(const void *, int64_t, int64_t, const double *, double *) except + nogil
        @staticmethod
        void accumulate(const void *, int64_t, int64_t, const double *, double *) except + nogil
        @staticmethod
        void single_scores(const void *, int64_t, int64_t, const double *, double *) except + nogil
        @staticmethod
        void single_accumulate(const void *, int64_t, int64_t, const double *, double *) except + nogil
        @staticmethod
        void gather(const void *, int64_t, int64_t, double *, int64_t) except + nogil
        @staticmethod
        void gather_single(const void *, int64_t, int64_t, float *, int64_t) except + nogil

    cppclass SparseRows[Real, Index]:
        const SparseLoops[Real, Index] *loops
        const Real *data
        const Index *indices
        const Index *indptr
        const int64_t *rows
        @staticmethod
        void scores(const void *, int64_t, int64_t, const double *, double *) except + nogil
        @staticmethod
        void accumulate(const void *, int64_t, int64_t, const double *, double *) except + nogil
        @staticmethod
        void gather(const void *, int64_t, int64_t, double *, int64_t) except + nogil
        @staticmethod
        void gather_single(const void *, int64_t, int64_t, float *, int64_t) except + nogil

# If all rows of X together take at most this many bytes, loops expect to find them in a core's cache.
NEAR_BYTES = 1 << 21

# SUM_ROWS: number of rows that are summed up separately. FEW_ROWS: for fewer rows there are no separate sums. Both are as in
# linear.hpp. SUM_DEPTH: number of additions in a separate sum, if groups of four rows or more are added up first.
SUM_ROWS = 512
FEW_ROWS = 64
SUM_DEPTH = SUM_ROWS // 4 + 16

ctypedef fused real:
    float
    double

ctypedef fused index:
    int32_t
    int64_t

# the precision of a copy, whatever that of the storage
ctypedef fused copied:
    float
    double


cdef const int64_t *_map(const int64_t[::1] rows):
    if rows is None or rows.shape[0] == 0:
        return NULL
    return &rows[0]


cdef Where _where(const int64_t[::1] rows, int64_t n_bytes):
    cdef int64_t i
    cdef cbool ascending = True
    if n_bytes <= <int64_t>NEAR_BYTES:
        return Where.kNear
    if rows is not None:
        for i in range(rows.shape[0] - 1):
            ascending &= rows[i] < rows[i + 1]
    return Where.kFar if ascending else Where.kScattered


cdef OneBlock[real] _one(const real[:, ::1] X):
    cdef OneBlock[real] block
    block.values = &X[0, 0]
    return block


cdef TwoBlocks[real] _two(const real[:, ::1] X, const real[:, ::1] second):
    cdef TwoBlocks[real] blocks
    blocks.first = &X[0, 0]
    blocks.second = &second[0, 0]
    blocks.n_first = X.shape[0]
    return blocks


def dense_products(const real[:, ::1] X, const int64_t[::1] rows, cbool in_double=True):
    """``X[rows] w`` and ``X[rows]' u`` of a dense matrix, for a pass over the rows.

    Sums are in float64, or without ``in_double`` in float32 if X is float32 and its rows fill a vector.
    """
    if rows is not None:
        need_places("rows", rows, X.shape[0])
    cdef RowProducts products = new_products(
        sizeof(DenseRows[OneBlock[real]]), (X, rows), X.shape[0] if rows is None else rows.shape[0], X.shape[1])
    cdef DenseRows[OneBlock[real]] *own = <DenseRows[OneBlock[real]] *>products.memory
    own.loops = &loops_of[DenseLoops[OneBlock[real]]](chosen)
    own.X = _one(X)
    own.n = X.shape[1]
    own.rows = _map(rows)
    own.n_positions = products.n_positions
    own.where = _where(rows, products.n_positions * X.shape[1] * <int64_t>sizeof(real))
    products.table.scores = DenseRows[OneBlock[real]].scores if in_double else DenseRows[OneBlock[real]].single_scores
    products.table.accumulate = (
        DenseRows[OneBlock[real]].accumulate if in_double else DenseRows[OneBlock[real]].single_accumulate)
    products.table.gather = DenseRows[OneBlock[real]].gather
    products.table.gather_single = DenseRows[OneBlock[real]].gather_single
    return products


def two_block_products(const real[:, ::1] X, const real[:, ::1] second, const int64_t[::1] rows, cbool in_double=True):
    """As `dense_products`, for rows in two arrays: the rows of ``second`` are numbered after the rows of ``X``."""
    cdef int64_t n_rows = X.shape[0] + second.shape[0]
    need("a row of second", second.shape[1], X.shape[1])
    if rows is not None:
        need_places("rows", rows, n_rows)
    cdef RowProducts products = new_products(
        sizeof(DenseRows[TwoBlocks[real]]), (X, second, rows), n_rows if rows is None else rows.shape[0], X.shape[1])
    cdef DenseRows[TwoBlocks[real]] *own = <DenseRows[TwoBlocks[real]] *>products.memory
    own.loops = &loops_of[DenseLoops[TwoBlocks[real]]](chosen)
    own.X = _two(X, second)
    own.n = X.shape[1]
    own.rows = _map(rows)
    own.n_positions = products.n_positions
    own.where = Where.kScattered  # listed pairs take their rows in disorder
    products.table.scores = DenseRows[TwoBlocks[real]].scores if in_double else DenseRows[TwoBlocks[real]].single_scores
    products.table.accumulate = (
        DenseRows[TwoBlocks[real]].accumulate if in_double else DenseRows[TwoBlocks[real]].single_accumulate)
    products.table.gather = DenseRows[TwoBlocks[real]].gather
    products.table.gather_single = DenseRows[TwoBlocks[real]].gather_single
    return products


def sparse_products(const real[::1] data, const index[::1] indices, const index[::1] indptr, int64_t n_features,
                    const int64_t[::1] rows):
    """``X[rows] w`` and ``X[rows]' u`` of a CSR matrix that `check_csr` has checked, with at least one entry, for a pass."""
    need_csr(data.shape[0], indices.shape[0], indptr.shape[0])
    if rows is not None:
        need_places("rows", rows, indptr.shape[0] - 1)
    cdef RowProducts products = new_products(
        sizeof(SparseRows[real, index]), (data, indices, indptr, rows),
        indptr.shape[0] - 1 if rows is None else rows.shape[0], n_features)
    cdef SparseRows[real, index] *own = <SparseRows[real, index] *>products.memory
    own.loops = &loops_of[SparseLoops[real, index]](chosen)
    own.data = &data[0]
    own.indices = &indices[0]
    own.indptr = &indptr[0]
    own.rows = _map(rows)
    products.table.scores = SparseRows[real, index].scores
    products.table.accumulate = SparseRows[real, index].accumulate
    products.table.gather = SparseRows[real, index].gather
    products.table.gather_single = SparseRows[real, index].gather_single
    return products


def dense_gather(const real[:, ::1] X, const int64_t[::1] rows, int64_t start, int64_t stop,
                 copied[:, ::1] out_range):
    """``out[t] = X[rows[t]]``, in the precision of ``out``; other columns of ``out`` become 0."""
    need_rows(rows, start, stop, X.shape[0])
    need("out_range", out_range.shape[0], stop - start)
    need_at_least("a row of out_range", out_range.shape[1], X.shape[1])
    if start == stop:
        return
    cdef const int64_t *map = _map(rows)
    cdef int64_t n = X.shape[1], n_columns = out_range.shape[1]
    cdef OneBlock[real] block = _one(X)
    with nogil:
        if copied is float:
            loops_of[DenseLoops[OneBlock[real]]](chosen).gather_single(
                block, n, map, start, stop, &out_range[0, 0], n_columns)
        else:
            loops_of[DenseLoops[OneBlock[real]]](chosen).gather(
                block, n, map, start, stop, &out_range[0, 0], n_columns)


def two_block_gather(const real[:, ::1] X, const real[:, ::1] second, const int64_t[::1] rows, int64_t start,
                     int64_t stop, copied[:, ::1] out_range):
    """As `dense_gather`, for rows in two arrays; ``rows`` are within them, as `two_block_products` has checked."""
    need("a row of second", second.shape[1], X.shape[1])
    need_rows(rows, start, stop, X.shape[0] + second.shape[0])
    need("out_range", out_range.shape[0], stop - start)
    need_at_least("a row of out_range", out_range.shape[1], X.shape[1])
    if start == stop:
        return
    cdef const int64_t *map = _map(rows)
    cdef int64_t n = X.shape[1], n_columns = out_range.shape[1]
    cdef TwoBlocks[real] blocks = _two(X, second)
    with nogil:
        if copied is float:
            loops_of[DenseLoops[TwoBlocks[real]]](chosen).gather_single(
                blocks, n, map, start, stop, &out_range[0, 0], n_columns)
        else:
            loops_of[DenseLoops[TwoBlocks[real]]](chosen).gather(
                blocks, n, map, start, stop, &out_range[0, 0], n_columns)


def dense_largest(const real[:, ::1] X, int64_t start, int64_t stop, double[::1] out):
    """``out = max(out, |x|)`` over the rows ``start .. stop`` of X, column by column; NaN if a value is not finite."""
    need_rows(None, start, stop, X.shape[0])
    need("out", out.shape[0], X.shape[1])
    if start == stop or X.shape[1] == 0:
        return
    cdef int64_t n = X.shape[1]
    with nogil:
        loops_of[ArrayLoops[real]](chosen).largest(&X[0, 0], n, start, stop, &out[0])


def sparse_largest(const real[::1] data, const index[::1] indices, const index[::1] indptr, int64_t n_features,
                   int64_t start, int64_t stop, double[::1] out):
    """As `dense_largest`, for the rows of a CSR matrix, but NaN is ignored, and infinity stays infinity."""
    need_csr(data.shape[0], indices.shape[0], indptr.shape[0])
    need_rows(None, start, stop, indptr.shape[0] - 1)
    need("out", out.shape[0], n_features)
    cdef int64_t first = indptr[start], last = indptr[stop]
    if first >= last:
        return
    with nogil:
        loops_of[SparseLoops[real, index]](chosen).largest(&data[0], &indices[0], first, last, &out[0])


def all_finite(const real[::1] values):
    """Whether no value is NaN or infinite."""
    cdef cbool finite
    if values.shape[0] == 0:
        return True
    with nogil:
        finite = loops_of[ArrayLoops[real]](chosen).finite(&values[0], values.shape[0])
    return finite


def check_csr(const index[::1] indices, const index[::1] indptr, int64_t n_features):
    """Refuse pointers or column numbers beyond the arrays of a CSR matrix: no loop checks them again."""
    need_pointers("indptr", indptr, indices.shape[0])
    need_places("indices", indices, n_features)


def sparse_accumulate_squares(const real[::1] data, const index[::1] indices, const index[::1] indptr,
                              int64_t n_features, const int64_t[::1] rows, int64_t start, int64_t stop,
                              const double[::1] u_range, double[::1] out):
    """``out += sum of u[t] * X[rows[t]] ** 2``."""
    need_csr(data.shape[0], indices.shape[0], indptr.shape[0])
    need_rows(rows, start, stop, indptr.shape[0] - 1)
    need("u_range", u_range.shape[0], stop - start)
    need("out", out.shape[0], n_features)
    if start == stop:
        return
    cdef const int64_t *map = _map(rows)
    with nogil:
        loops_of[SparseLoops[real, index]](chosen).accumulate(
            &data[0], &indices[0], &indptr[0], map, start, stop, &u_range[0], True, &out[0])


def sparse_gather(const real[::1] data, const index[::1] indices, const index[::1] indptr, int64_t n_features,
                  const int64_t[::1] rows, int64_t start, int64_t stop, copied[:, ::1] out_range):
    """``out[t] = X[rows[t]]``, dense, in the precision of ``out``; other columns of ``out`` become 0."""
    need_csr(data.shape[0], indices.shape[0], indptr.shape[0])
    need_rows(rows, start, stop, indptr.shape[0] - 1)
    need("out_range", out_range.shape[0], stop - start)
    need_at_least("a row of out_range", out_range.shape[1], n_features)
    if start == stop:
        return
    cdef const int64_t *map = _map(rows)
    cdef int64_t n_columns = out_range.shape[1]
    with nogil:
        if copied is float:
            loops_of[SparseLoops[real, index]](chosen).gather_single(
                &data[0], &indices[0], &indptr[0], n_columns, map, start, stop, &out_range[0, 0])
        else:
            loops_of[SparseLoops[real, index]](chosen).gather(
                &data[0], &indices[0], &indptr[0], n_columns, map, start, stop, &out_range[0, 0])


def sparse_gram(const real[::1] data, const index[::1] indices, const index[::1] indptr, int64_t n_features,
                const int64_t[::1] rows, double[:, ::1] out):
    """``out[s, t] = X[rows[s]]' X[rows[t]]``; None: all rows."""
    cdef int64_t n = out.shape[0]
    need_csr(data.shape[0], indices.shape[0], indptr.shape[0])
    need_at_least("rows", indptr.shape[0] - 1, rows_needed(rows, n))
    need("a row of out", out.shape[1], n)
    out[:, :] = 0.0
    if n == 0 or data.shape[0] == 0:
        return
    cdef const int64_t *map = _map(rows)
    with nogil:
        loops_of[SparseLoops[real, index]](chosen).gram(
            &data[0], &indices[0], &indptr[0], n_features, map, n, &out[0, 0])


def center_queries(const int64_t[::1] pointers, int64_t first, int64_t last, real[:, ::1] X_range):
    """Subtract from each row the mean row of its query, in place."""
    need_ascending("pointers", pointers, first, last)
    need("X_range", X_range.shape[0], pointers[last] - pointers[first])
    if first == last or X_range.shape[0] == 0:
        return
    cdef int64_t n = X_range.shape[1]
    with nogil:
        loops_of[CenterLoops[real]](chosen).center_queries(&pointers[0], first, last, n, &X_range[0, 0])
