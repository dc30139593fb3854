# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""Products with a symmetric kernel matrix of which one triangle is held, float64 sums whatever the storage; distances.

The triangle comes as panels of ``height`` consecutive rows, one after the other in memory: panel p holds the rows
``p * height .. stop`` and of each the columns ``0 .. stop``; the square on the diagonal is whole. The GIL is released.
"""

from libc.stdint cimport int32_t, int64_t

cdef extern from "kernel_product.hpp" namespace "ranksvm" nogil:
    void panels_product_f32(const float *, int64_t, int64_t, int64_t, int64_t, const double *, double *)
    void panels_product_f64(const double *, int64_t, int64_t, int64_t, int64_t, const double *, double *)
    void block_product_f32(const float *, int64_t, int64_t, int64_t, const double *, double *, const double *, double *)
    void block_product_f64(const double *, int64_t, int64_t, int64_t, const double *, double *, const double *, double *)
    void square_product_f32(const float *, int64_t, int64_t, const double *, double *)
    void square_product_f64(const double *, int64_t, int64_t, const double *, double *)

cdef extern from "kernel_distances.hpp" namespace "ranksvm" nogil:
    void c_dense_distances "ranksvm::dense_distances"(
        const double *, int64_t, const double *, int64_t, int64_t, double *)
    void c_sparse_distances "ranksvm::sparse_distances"[Index](
        const double *, const Index *, const Index *, int64_t, const double *, const Index *, const Index *, int64_t,
        int64_t, double *)

ctypedef fused real:
    float
    double

ctypedef fused index:
    int32_t
    int64_t


def panels_product(const real[::1] panels, int64_t n_rows, int64_t height, int64_t first, int64_t last,
                   const double[::1] b, double[::1] s):
    """``s += Q b`` for the part of Q that the panels ``first .. last`` stand for."""
    if first >= last:
        return
    with nogil:
        if real is float:
            panels_product_f32(&panels[0], n_rows, height, first, last, &b[0], &s[0])
        else:
            panels_product_f64(&panels[0], n_rows, height, first, last, &b[0], &s[0])


def block_product(const real[:, ::1] block, int64_t row, int64_t column, const double[::1] b, double[::1] s):
    """``s += Q b`` for a block of Q below the diagonal, from this row and column on, and its mirror image."""
    cdef int64_t n_rows = block.shape[0], n_columns = block.shape[1]
    if n_rows == 0 or n_columns == 0:
        return
    with nogil:
        if real is float:
            block_product_f32(&block[0, 0], n_columns, n_rows, n_columns, &b[row], &s[row], &b[column], &s[column])
        else:
            block_product_f64(&block[0, 0], n_columns, n_rows, n_columns, &b[row], &s[row], &b[column], &s[column])


def square_product(const real[:, ::1] block, int64_t row, const double[::1] b, double[::1] s):
    """``s += Q b`` for a square block on the diagonal of Q, from this row on."""
    cdef int64_t n = block.shape[0]
    if n == 0:
        return
    with nogil:
        if real is float:
            square_product_f32(&block[0, 0], n, n, &b[row], &s[row])
        else:
            square_product_f64(&block[0, 0], n, n, &b[row], &s[row])


def dense_distances(const double[:, ::1] X, const double[:, ::1] Z, double[:, ::1] out):
    """``out[i, j] = |X[i] - Z[j]|_1``."""
    cdef int64_t n = X.shape[1]
    if Z.shape[1] != n:
        raise ValueError(f"{n} and {Z.shape[1]} features")
    if out.shape[0] == 0 or out.shape[1] == 0:
        return
    if n == 0:
        out[:, :] = 0.0
        return
    with nogil:
        c_dense_distances(&X[0, 0], X.shape[0], &Z[0, 0], Z.shape[0], n, &out[0, 0])


def sparse_distances(const double[::1] x_data, const index[::1] x_indices, const index[::1] x_indptr,
                     const double[::1] z_data, const index[::1] z_indices, const index[::1] z_indptr,
                     int64_t n_features, double[:, ::1] out):
    """The same for CSR matrices whose rows hold each feature once at most."""
    if out.shape[0] == 0 or out.shape[1] == 0:
        return
    # of an array without values there is no first one to point at
    cdef const double *x_values = &x_data[0] if x_data.shape[0] else NULL
    cdef const double *z_values = &z_data[0] if z_data.shape[0] else NULL
    cdef const index *x_features = &x_indices[0] if x_indices.shape[0] else NULL
    cdef const index *z_features = &z_indices[0] if z_indices.shape[0] else NULL
    with nogil:
        c_sparse_distances(x_values, x_features, &x_indptr[0], out.shape[0], z_values, z_features, &z_indptr[0],
                           out.shape[1], n_features, &out[0, 0])
