# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""Cholesky factors of small dense matrices, also of singular Laplacians, and solutions with them."""

from libc.stdint cimport int64_t

from ranksvm._compiled.border cimport need


cdef extern from "cholesky.hpp" namespace "ranksvm" nogil:
    bint cholesky_factorize(double *matrix, int64_t n)
    void cholesky_solve(const double *factor, int64_t n, double *x)
    void laplacian_factorize(double *matrix, int64_t n)


def factorize(double[:, ::1] matrix):
    """Overwrite the lower triangle of a symmetric matrix A by L with L L' = A; False if A is not positive definite."""
    need("the rows of matrix", matrix.shape[1], matrix.shape[0])
    cdef bint found = True
    if matrix.shape[0]:
        with nogil:
            found = cholesky_factorize(&matrix[0, 0], matrix.shape[0])
    return found


def solve(const double[:, ::1] factor, double[::1] x):
    """Overwrite x = b by the solution of L L' x = b."""
    need("the rows of factor", factor.shape[1], factor.shape[0])
    need("x", x.shape[0], factor.shape[0])
    if x.shape[0]:
        with nogil:
            cholesky_solve(&factor[0, 0], factor.shape[0], &x[0])


def factorize_laplacians(double[::1] blocks, const int64_t[::1] sizes):
    """Overwrite Laplacians L of graphs, one after the other in memory, by upper triangular U with U'U = L.

    Only the entries right of the diagonals are read. The last node of each component of a graph has a row of zeros in U.
    """
    cdef int64_t q, place = 0
    for q in range(sizes.shape[0]):
        if sizes[q] < 0:
            raise ValueError("sizes must not be negative")
        place += sizes[q] * sizes[q]
    need("blocks", blocks.shape[0], place)
    if place == 0:
        return
    with nogil:
        place = 0
        for q in range(sizes.shape[0]):
            laplacian_factorize(&blocks[place], sizes[q])
            place += sizes[q] * sizes[q]
