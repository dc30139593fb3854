# How compiled work is shared out among threads: see workers.hpp.
from libc.stdint cimport int64_t

cdef extern from "workers.hpp" namespace "ranksvm" nogil:
    ctypedef void (*Task)(const void *, int64_t) except +

    cdef struct Workers:
        void (*run)(int64_t, int64_t, Task, const void *) except +
        int64_t n_threads


# Up to `n_threads` threads of this process, of which the caller is one.
cdef Workers workers_of(int64_t n_threads) noexcept
