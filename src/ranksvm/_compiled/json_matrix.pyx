# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, freethreading_compatible=True
"""Read a matrix in JSON as float64 numbers, each rounded once; the interpreter lock is released."""

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int64_t
from libcpp.vector cimport vector

from ranksvm._compiled.border cimport need_range

cdef extern from "json_matrix.hpp" namespace "json_matrix" nogil:
    cdef cppclass Found:
        int64_t rows
        int64_t columns
        int64_t start
        int64_t stop

    Found c_read "json_matrix::read"(const char*, int64_t, vector[double]&) except +

# Zero bytes with which a text must end.
PADDING = bytes(9)


def read(const unsigned char[::1] padded, int64_t start):
    """Read the matrix after the colon that is at ``start`` or follows blanks there, in a text that ends with `PADDING`.

    Returns (rows, columns, start, stop, numbers), with the place of the matrix in the text; None if the text there is not a
    matrix of numbers with rows of equal length.
    """
    cdef vector[double] values
    cdef Found found
    cdef int64_t size = padded.shape[0]
    need_range("text", start, size - 9, size)
    if any(padded[size - 9:]):
        raise ValueError("the text does not end with the padding")
    with nogil:
        found = c_read(<const char*>&padded[0], start, values)
    if found.rows == 0:
        return None
    numbers = PyBytes_FromStringAndSize(<const char*>values.data(), <Py_ssize_t>(8 * values.size()))
    return found.rows, found.columns, found.start, found.stop, numbers
