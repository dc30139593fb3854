# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""Products with a symmetric kernel matrix of which one triangle is held: float64 sums whatever the storage.

The triangle comes as panels of ``height`` consecutive rows, one after the other in memory: panel p holds the rows
``p * height .. stop`` and of each the columns ``0 .. stop``; the square on the diagonal is whole. The GIL is released.
"""

from libc.stdint cimport int64_t

cdef extern from "kernel_product.hpp" namespace "ranksvm" nogil:
    void panels_product_f32(const float *, int64_t, int64_t, int64_t, int64_t, const double *, double *)
    void panels_product_f64(const double *, int64_t, int64_t, int64_t, int64_t, const double *, double *)
    void block_product_f32(const float *, int64_t, int64_t, int64_t, const double *, double *, const double *, double *)
    void block_product_f64(const double *, int64_t, int64_t, int64_t, const double *, double *, const double *, double *)
    void square_product_f32(const float *, int64_t, int64_t, const double *, double *)
    void square_product_f64(const double *, int64_t, int64_t, const double *, double *)

ctypedef fused real:
    float
    double


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
