# cython: language_level=3
"""The threads of this process that run compiled work, and whether the current thread is at work on a task."""

from libcpp cimport bool as cbool

cdef extern from "thread_pool.hpp" namespace "ranksvm" nogil:
    cbool at_work "ranksvm::in_task"
    void run_in_pool(int64_t, int64_t, Task, const void *) except +
    void begin_anew() except +


cdef Workers workers_of(int64_t n_threads) noexcept:
    cdef Workers workers
    workers.run = NULL
    if n_threads > 1:
        workers.run = run_in_pool
    workers.n_threads = n_threads
    return workers


def in_task():
    """Whether this thread is at work on a task: if such a task shares out work, its own thread does all of it."""
    return at_work


def set_in_task(cbool whether):
    """Say that this thread is, or is not, at work on a task."""
    global at_work
    at_work = whether


def after_fork():
    """Begin without threads, in the child of a fork."""
    begin_anew()
