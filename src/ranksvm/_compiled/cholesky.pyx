# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""Cholesky factors of small dense matrices, and solutions with them. Arrays in, arrays out."""

from libc.stdint cimport int64_t

from ranksvm._compiled.border cimport need


cdef extern from "cholesky.hpp" namespace "ranksvm" nogil:
    bint cholesky_factorise(double *matrix, int64_t n)
    void cholesky_solve(const double *factor, int64_t n, double *x)


def factorise(double[:, ::1] matrix):
    """Overwrite the lower triangle of a symmetric matrix A by L with L L' = A; False if A is not positive definite."""
    need("the rows of matrix", matrix.shape[1], matrix.shape[0])
    cdef bint found = True
    if matrix.shape[0]:
        with nogil:
            found = cholesky_factorise(&matrix[0, 0], matrix.shape[0])
    return found


def solve(const double[:, ::1] factor, double[::1] x):
    """Overwrite x = b by the solution of L L' x = b."""
    need("the rows of factor", factor.shape[1], factor.shape[0])
    need("x", x.shape[0], factor.shape[0])
    if x.shape[0]:
        with nogil:
            cholesky_solve(&factor[0, 0], factor.shape[0], &x[0])
