"""Checks of the arguments of compiled modules, so that no loop reads or writes beyond the arrays that it was given.

Lengths are checked in every call. Contents that loops use as indices (pointers, row numbers, levels) are checked once, when the
objects that hold them are made. Callers validate what users pass, and their error messages say what to do. A failure here is a
mistake in a caller.
"""

from libc.stdint cimport int32_t, int64_t

ctypedef fused whole_number:
    int32_t
    int64_t

ctypedef fused number:
    int32_t
    double


cdef inline int need(str name, int64_t found, int64_t expected) except -1:
    """Refuse an array of another length than expected."""
    if found != expected:
        raise ValueError(f"{name} has length {found}, but {expected} is needed")
    return 0


cdef inline int need_at_least(str name, int64_t found, int64_t least) except -1:
    """Refuse an array that is too short."""
    if found < least:
        raise ValueError(f"{name} has length {found}, but at least {least} is needed")
    return 0


cdef inline int need_if_given(str name, const number[::1] values, int64_t expected) except -1:
    """Refuse an array of another length than expected; None is accepted."""
    return 0 if values is None else need(name, values.shape[0], expected)


cdef inline int need_range(str name, int64_t first, int64_t last, int64_t size) except -1:
    """Refuse a range that is not within ``0 .. size``."""
    if first < 0 or last < first or last > size:
        raise ValueError(f"the range {first} .. {last} of {name} is not within 0 .. {size}")
    return 0


cdef inline int need_pointers(str name, const whole_number[::1] pointers, int64_t size) except -1:
    """Refuse pointers that are not ascending from 0 to ``size``."""
    cdef int64_t i
    cdef bint ascending = True
    if pointers.shape[0] == 0:
        raise ValueError(f"{name} is empty: it needs at least one pointer")
    for i in range(1, pointers.shape[0]):
        ascending &= pointers[i - 1] <= pointers[i]
    if not ascending or pointers[0] != 0 or pointers[pointers.shape[0] - 1] != size:
        raise ValueError(f"{name} must ascend from 0 to {size}")
    return 0


cdef inline int need_ascending(str name, const int64_t[::1] pointers, int64_t first, int64_t last) except -1:
    """Refuse pointers of a range of queries that are not ascending."""
    cdef int64_t i
    cdef bint ascending = True
    need_range("queries", first, last, pointers.shape[0] - 1)
    for i in range(first, last):
        ascending &= pointers[i] <= pointers[i + 1]
    if not ascending:
        raise ValueError(f"{name} must be ascending")
    return 0


cdef inline int need_places(str name, const whole_number[::1] places, int64_t size) except -1:
    """Refuse numbers that are not within ``0 .. size - 1``."""
    cdef int64_t i
    cdef bint within = True
    for i in range(places.shape[0]):
        within &= 0 <= places[i] < size
    if not within:
        raise ValueError(f"{name} holds numbers that are not within 0 .. {size - 1}")
    return 0


cdef inline int need_places_by_query(
    str name, const int32_t[::1] places, const int64_t[::1] pointers, const int64_t[::1] sizes
) except -1:
    """Refuse numbers in ``pointers[q] .. pointers[q + 1]`` that are not below ``sizes[q + 1] - sizes[q]``."""
    cdef int64_t q, t
    cdef bint within = True
    for q in range(pointers.shape[0] - 1):
        for t in range(pointers[q], pointers[q + 1]):
            within &= 0 <= places[t] < sizes[q + 1] - sizes[q]
    if not within:
        raise ValueError(f"{name} holds numbers beyond the documents of their query")
    return 0


cdef inline int need_levels(
    const int64_t[::1] pointers, const int32_t[::1] levels, const int32_t[::1] n_levels
) except -1:
    """Refuse a level that is not below the number of levels of its query."""
    cdef int64_t q, t
    cdef bint within = True
    for q in range(n_levels.shape[0]):
        within &= n_levels[q] >= 0
        for t in range(pointers[q], pointers[q + 1]):
            within &= 0 <= levels[t] < n_levels[q]
    if not within:
        raise ValueError("levels hold numbers beyond the levels of their query")
    return 0


cdef inline int need_rows(const int64_t[::1] rows, int64_t start, int64_t stop, int64_t n_rows) except -1:
    """Refuse positions beyond the map from positions to rows or, if there is no map, beyond the rows."""
    return need_range("positions", start, stop, n_rows if rows is None else rows.shape[0])


cdef inline int64_t rows_needed(const int64_t[::1] rows, int64_t n_positions) except -1:
    """Number of rows that X must have if ``rows`` maps positions to rows; if it is None, positions are row numbers."""
    cdef int64_t i, largest = -1
    cdef bint within = True
    if rows is None:
        return n_positions
    need("rows", rows.shape[0], n_positions)
    for i in range(n_positions):
        within &= rows[i] >= 0
        largest = max(largest, rows[i])
    if not within:
        raise ValueError("rows holds negative numbers")
    return largest + 1


cdef inline int need_csr(int64_t n_values, int64_t n_indices, int64_t n_pointers) except -1:
    """Refuse arrays that are not those of a CSR matrix; `csr_arrays` checks what they hold."""
    need("indices", n_indices, n_values)
    if n_pointers < 1:
        raise ValueError("indptr is empty")
    return 0


cdef inline int need_present(str name, const double *values, int64_t start, int64_t stop) except -1:
    """Refuse NaN among values that are compared or sorted: with it, a sort may run out of its array."""
    cdef int64_t t
    cdef bint present = True
    for t in range(start, stop):
        present &= values[t] == values[t]
    if not present:
        raise ValueError(f"{name} has NaN among the positions {start} to {stop}")
    return 0
