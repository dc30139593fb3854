# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""Products with a symmetric kernel matrix, distances, the form U Q U' that a Newton step factorizes, and parts of its factor.

Only one triangle of the matrix is stored. Sums are in float64, whatever the storage.

The triangle comes as panels of ``height`` consecutive rows, one after the other in memory: panel p holds the columns
``0 .. stop`` of the rows ``p * height .. stop``, and so both triangles of its square on the diagonal. The GIL is released.
"""

from libc.stdint cimport int32_t, int64_t

import numpy as np

from ranksvm._compiled.border cimport need, need_csr, need_pointers, need_range
from ranksvm._compiled.instruction_set cimport chosen

cdef extern from "kernel_loops.hpp" namespace "ranksvm" nogil:
    cppclass ProductLoops[Real]:
        void (*panels)(const Real *, int64_t, int64_t, int64_t, int64_t, const double *, double *)
        void (*block)(const Real *, int64_t, int64_t, int64_t, const double *, double *, const double *, double *)
        void (*square)(const Real *, int64_t, int64_t, const double *, double *)

    cppclass GatherLoops[Stored, Real]:
        void (*rows)(const Stored *, int64_t, int64_t, const int64_t *, int64_t, int64_t, int64_t, Real *)

    cppclass FormLoops[Real]:
        void (*blocks)(Real *, int64_t, const Real *, const int64_t *, const int64_t *, const int64_t *, int64_t,
                       int64_t, Real, Real *, int64_t) except +

    cppclass FactorLoops[Real]:
        int64_t (*packed_size)(int64_t, int64_t)
        void (*pack)(const Real *, int64_t, int64_t, int64_t, Real *)
        void (*rows)(Real *, int64_t, int64_t, int64_t, int64_t, int64_t, const Real *, const Real *)

    const int64_t kMostFactorColumns

    cppclass DistanceLoops:
        void (*dense)(const double *, int64_t, const double *, int64_t, int64_t, double *) except +

    cppclass SparseDistanceLoops[Index]:
        void (*sparse)(const double *, const Index *, const Index *, int64_t, const double *, const Index *,
                       const Index *, int64_t, int64_t, double *) except +

    const Loops &loops_of[Loops](int)

ctypedef fused real:
    float
    double

ctypedef fused index:
    int32_t
    int64_t


cdef int64_t _n_values(int64_t n_panels, int64_t n_rows, int64_t height):
    """Number of values of the first panels of a matrix."""
    cdef int64_t whole = min(n_panels, n_rows // height)
    cdef int64_t values = height * height * (whole * (whole + 1) // 2)
    return values if whole == n_panels else values + (n_rows - whole * height) * n_rows


cdef int need_ascending_places(str name, const int64_t[::1] places, int64_t size) except -1:
    """Refuse places that do not ascend, or are not within ``0 .. size - 1``."""
    cdef int64_t i, before = -1
    cdef bint ascending = True
    for i in range(places.shape[0]):
        ascending &= before < places[i] < size
        before = places[i]
    if not ascending:
        raise ValueError(f"{name} must ascend within 0 .. {size - 1}")
    return 0


def panels_product(const real[::1] panels, int64_t n_rows, int64_t height, int64_t first, int64_t last,
                   const double[::1] b, double[::1] s):
    """``s += Q b`` for the part of Q that the panels ``first .. last`` stand for."""
    if height < 1 or n_rows < 0:
        raise ValueError(f"panels of {height} rows of a matrix of {n_rows}")
    need_range("panels", first, last, (n_rows + height - 1) // height)
    need_range("values", 0, _n_values(last, n_rows, height), panels.shape[0])
    need("b", b.shape[0], n_rows)
    need("s", s.shape[0], n_rows)
    if first == last:
        return
    with nogil:
        loops_of[ProductLoops[real]](chosen).panels(&panels[0], n_rows, height, first, last, &b[0], &s[0])


def block_product(const real[:, ::1] block, int64_t row, int64_t column, const double[::1] b, double[::1] s):
    """``s += Q b`` for a block of Q below the diagonal, which begins at ``row`` and ``column``, and for its mirror image."""
    cdef int64_t n_rows = block.shape[0], n_columns = block.shape[1]
    need("s", s.shape[0], b.shape[0])
    need_range("rows", row, row + n_rows, b.shape[0])
    need_range("columns", column, column + n_columns, b.shape[0])
    if n_rows == 0 or n_columns == 0:
        return
    with nogil:
        loops_of[ProductLoops[real]](chosen).block(
            &block[0, 0], n_columns, n_rows, n_columns, &b[row], &s[row], &b[column], &s[column])


def square_product(const real[:, ::1] block, int64_t row, const double[::1] b, double[::1] s):
    """``s += Q b`` for a square block on the diagonal of Q, which begins at ``row``."""
    cdef int64_t n = block.shape[0]
    need("a row of block", block.shape[1], n)
    need("s", s.shape[0], b.shape[0])
    need_range("rows", row, row + n, b.shape[0])
    if n == 0:
        return
    with nogil:
        loops_of[ProductLoops[real]](chosen).square(&block[0, 0], n, n, &b[row], &s[row])


ctypedef fused other_real:
    float
    double


def gather_rows(const real[::1] panels, int64_t n_rows, int64_t height, const int64_t[::1] positions, int64_t first,
                int64_t last, other_real[:, ::1] out):
    """``out[i, j] = Q[positions[i], positions[j]]`` for ``first <= i < last`` and ``j <= i``; positions ascend."""
    cdef int64_t n_panels
    if height < 1 or n_rows < 0:
        raise ValueError(f"panels of {height} rows of a matrix of {n_rows}")
    n_panels = (n_rows + height - 1) // height
    need("panels", panels.shape[0], _n_values(n_panels, n_rows, height))
    need_ascending_places("positions", positions, n_rows)
    need("out", out.shape[0], positions.shape[0])
    need("a row of out", out.shape[1], positions.shape[0])
    need_range("positions", first, last, positions.shape[0])
    if first == last:
        return
    with nogil:
        loops_of[GatherLoops[real, other_real]](chosen).rows(
            &panels[0], n_rows, height, &positions[0], positions.shape[0], first, last, &out[0, 0])


def form_blocks(real[:, ::1] Q, const real[::1] U, const int64_t[::1] row, const int64_t[::1] column,
                int64_t first, int64_t last, real C, real[:, ::1] out):
    """The part of ``out = I + C U Q U'`` for the blocks ``first .. last`` of U with themselves and with earlier blocks.

    U has blocks along its diagonal, each upper triangular or trapezoidal: block q has the rows ``row[q] .. row[q + 1]``, at
    most as many as columns, ``column[q] .. column[q + 1]``. Q and ``out`` are symmetric: of Q only the lower triangle is
    read, of ``out`` only the lower triangle is written. The squares of these blocks on the diagonal of Q are made symmetric.
    """
    cdef int64_t q, n_blocks = row.shape[0] - 1
    need_pointers("row", row, out.shape[0])
    need_pointers("column", column, Q.shape[0])
    need("column", column.shape[0], n_blocks + 1)
    need("a row of Q", Q.shape[1], Q.shape[0])
    need("a row of out", out.shape[1], out.shape[0])
    need_range("blocks", first, last, n_blocks)
    cdef int64_t[::1] entry = np.zeros(n_blocks + 1, dtype=np.int64)
    for q in range(n_blocks):
        if row[q + 1] - row[q] > column[q + 1] - column[q]:
            raise ValueError("a block must not have more rows than columns")
        entry[q + 1] = entry[q] + (row[q + 1] - row[q]) * (column[q + 1] - column[q])
    need("U", U.shape[0], entry[n_blocks])
    if first == last or U.shape[0] == 0:
        return
    with nogil:
        loops_of[FormLoops[real]](chosen).blocks(
            &Q[0, 0], Q.shape[0], &U[0], &entry[0], &row[0], &column[0], first, last, C, &out[0, 0], out.shape[0])


def packed_rows(const real[:, :] rows):
    """Rows, each contiguous, in the order in which `factor_rows` reads them."""
    cdef int64_t n = rows.shape[0], depth = rows.shape[1], size
    if depth > 1 and rows.strides[1] != sizeof(real):
        raise ValueError("the values of a row must be contiguous")
    size = loops_of[FactorLoops[real]](chosen).packed_size(n, depth)
    out = np.empty(size, dtype=np.float32 if real is float else np.float64)
    cdef real[::1] packed = out
    if size:
        with nogil:
            loops_of[FactorLoops[real]](chosen).pack(
                &rows[0, 0], rows.strides[0] // <int64_t>sizeof(real), n, depth, &packed[0])
    return out


def factor_rows(real[:, ::1] matrix, int64_t first, int64_t last, int64_t start, int64_t stop, const real[::1] left,
                const real[::1] inverse=None):
    """Compute the columns ``start .. stop`` of a Cholesky factor in the rows ``first .. last``, in place of the matrix.

    ``left`` holds ``matrix[start:stop, :start]``, which is complete, and ``inverse`` the inverse of the factor's lower
    triangular block in the rows ``start .. stop`` (at most 256), both as `packed_rows`. Without ``inverse`` the rows are those
    of the block itself: only the product with ``left`` is subtracted, and what is above the diagonal is undefined.
    """
    need("the rows of matrix", matrix.shape[1], matrix.shape[0])
    need_range("columns", start, stop, matrix.shape[0])
    need_range("rows", first, last, matrix.shape[0])
    need("left", left.shape[0], loops_of[FactorLoops[real]](chosen).packed_size(stop - start, start))
    if inverse is None:
        need("the first row", first, start)
    else:
        if stop - start > kMostFactorColumns:
            raise ValueError(f"a block must have at most {kMostFactorColumns} columns")
        need("inverse", inverse.shape[0], loops_of[FactorLoops[real]](chosen).packed_size(stop - start, stop - start))
        need_range("rows below the block", stop, first, matrix.shape[0])
    if first == last or start == stop:
        return
    cdef const real *lefts = NULL
    cdef const real *inverses = NULL
    if start:  # an empty array has no first value to point at
        lefts = &left[0]
    if inverse is not None:
        inverses = &inverse[0]
    with nogil:
        loops_of[FactorLoops[real]](chosen).rows(
            &matrix[0, 0], matrix.shape[0], first, last, start, stop, lefts, inverses)


def dense_distances(const double[:, ::1] X, const double[:, ::1] Z, double[:, ::1] out):
    """``out[i, j] = |X[i] - Z[j]|_1``."""
    cdef int64_t n = X.shape[1]
    need("a row of Z", Z.shape[1], n)
    need("out", out.shape[0], X.shape[0])
    need("a row of out", out.shape[1], Z.shape[0])
    if out.shape[0] == 0 or out.shape[1] == 0:
        return
    if n == 0:
        out[:, :] = 0.0
        return
    with nogil:
        loops_of[DistanceLoops](chosen).dense(&X[0, 0], X.shape[0], &Z[0, 0], Z.shape[0], n, &out[0, 0])


def sparse_distances(const double[::1] x_data, const index[::1] x_indices, const index[::1] x_indptr,
                     const double[::1] z_data, const index[::1] z_indices, const index[::1] z_indptr,
                     int64_t n_features, double[:, ::1] out):
    """As `dense_distances`, for CSR matrices that `check_csr` has checked and whose rows hold each feature at most once."""
    need_csr(x_data.shape[0], x_indices.shape[0], x_indptr.shape[0])
    need_csr(z_data.shape[0], z_indices.shape[0], z_indptr.shape[0])
    need("out", out.shape[0], x_indptr.shape[0] - 1)
    need("a row of out", out.shape[1], z_indptr.shape[0] - 1)
    if out.shape[0] == 0 or out.shape[1] == 0:
        return
    # an empty array has no first value to point at
    cdef const double *x_values = &x_data[0] if x_data.shape[0] else NULL
    cdef const double *z_values = &z_data[0] if z_data.shape[0] else NULL
    cdef const index *x_features = &x_indices[0] if x_indices.shape[0] else NULL
    cdef const index *z_features = &z_indices[0] if z_indices.shape[0] else NULL
    with nogil:
        loops_of[SparseDistanceLoops[index]](chosen).sparse(
            x_values, x_features, &x_indptr[0], out.shape[0], z_values, z_features, &z_indptr[0],
                           out.shape[1], n_features, &out[0, 0])
