"""Checks at the border of the compiled modules: a loop never reads or writes beyond the arrays it was given.

Callers validate what a user gives, and say what to do about it; a failure here is a mistake in a caller.
"""

from libc.stdint cimport int64_t


cdef inline int need_present(str name, const double *values, int64_t start, int64_t stop) except -1:
    """Refuse NaN among values that are compared or sorted: with it, a sort may run out of its array."""
    cdef int64_t t
    cdef bint present = True
    for t in range(start, stop):
        present &= values[t] == values[t]
    if not present:
        raise ValueError(f"{name} has NaN among the positions {start} to {stop}")
    return 0
