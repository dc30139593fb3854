# cython: language_level=3, boundscheck=False, wraparound=False
"""Loops over ranked lists, which are arrays: sorting, running sums, expected reciprocal ranks and counts of pairs."""

import numpy as np

from libc.stdint cimport int64_t, uint8_t

from ranksvm._compiled.border cimport need, need_pointers, need_present


cdef extern from "metrics.h" namespace "ranksvm" nogil:
    void c_descending_order "ranksvm::descending_order"(
        const double* keys, const int64_t* pointers, int64_t n_queries, int64_t* order) except +
    void c_running_sums "ranksvm::running_sums"(
        const double* values, const int64_t* pointers, int64_t n_queries, double* out)
    void c_expected_reciprocal_rank "ranksvm::expected_reciprocal_rank"(
        const double* stop, const uint8_t* tied, const int64_t* pointers, int64_t n_queries, int64_t depth,
        double* out) except +
    void c_pair_counts "ranksvm::pair_counts"(
        const double* labels, const uint8_t* tied, const int64_t* pointers, int64_t n_queries, int64_t* comparable,
        int64_t* concordant, int64_t* discordant, int64_t* different_scores) except +
    void c_concordance_counts "ranksvm::concordance_counts"(
        const double* labels, const uint8_t* observed, const uint8_t* tied, const int64_t* pointers, int64_t n_queries,
        int64_t* comparable, int64_t* concordant, int64_t* discordant) except +


def descending_order(const double[::1] keys, const int64_t[::1] pointers):
    """Positions of every list in descending order of key; equal keys keep their order. NaN is refused."""
    need_pointers("pointers", pointers, keys.shape[0])
    cdef int64_t n_queries = pointers.shape[0] - 1
    out = np.empty(keys.shape[0], dtype=np.int64)
    cdef int64_t[::1] view = out
    if keys.shape[0]:
        need_present("keys", &keys[0], 0, keys.shape[0])
        with nogil:
            c_descending_order(&keys[0], &pointers[0], n_queries, &view[0])
    return out


def running_sums(const double[::1] values, const int64_t[::1] pointers):
    """Sum of the values of a list up to and including each position."""
    need_pointers("pointers", pointers, values.shape[0])
    cdef int64_t n_queries = pointers.shape[0] - 1
    out = np.empty(values.shape[0])
    cdef double[::1] view = out
    if values.shape[0]:
        with nogil:
            c_running_sums(&values[0], &pointers[0], n_queries, &view[0])
    return out


def expected_reciprocal_rank(
    const double[::1] stop, const uint8_t[::1] tied, const int64_t[::1] pointers, int64_t depth
):
    """Expected 1 / rank at which a user stops, for each list, with tied documents in random order."""
    need_pointers("pointers", pointers, stop.shape[0])
    need("tied", tied.shape[0], stop.shape[0])
    cdef int64_t n_queries = pointers.shape[0] - 1
    out = np.zeros(n_queries)
    cdef double[::1] view = out
    if stop.shape[0]:
        with nogil:
            c_expected_reciprocal_rank(&stop[0], &tied[0], &pointers[0], n_queries, depth, &view[0])
    return out


def pair_counts(const double[::1] labels, const uint8_t[::1] tied, const int64_t[::1] pointers):
    """For each list, count comparable, concordant and discordant pairs, and pairs with different scores; NaN is refused."""
    need_pointers("pointers", pointers, labels.shape[0])
    need("tied", tied.shape[0], labels.shape[0])
    cdef int64_t n_queries = pointers.shape[0] - 1
    out = np.zeros((4, n_queries), dtype=np.int64)
    cdef int64_t[:, ::1] view = out
    if labels.shape[0]:
        need_present("labels", &labels[0], 0, labels.shape[0])
        with nogil:
            c_pair_counts(&labels[0], &tied[0], &pointers[0], n_queries,
                          &view[0, 0], &view[1, 0], &view[2, 0], &view[3, 0])
    return out


def concordance_counts(
    const double[::1] labels, const uint8_t[::1] observed, const uint8_t[::1] tied, const int64_t[::1] pointers
):
    """Per list: number of pairs whose smaller label was observed, and how many of them the scores order right and wrong."""
    need_pointers("pointers", pointers, labels.shape[0])
    need("observed", observed.shape[0], labels.shape[0])
    need("tied", tied.shape[0], labels.shape[0])
    cdef int64_t n_queries = pointers.shape[0] - 1
    out = np.zeros((3, n_queries), dtype=np.int64)
    cdef int64_t[:, ::1] view = out
    if labels.shape[0]:
        need_present("labels", &labels[0], 0, labels.shape[0])
        with nogil:
            c_concordance_counts(&labels[0], &observed[0], &tied[0], &pointers[0], n_queries,
                                 &view[0, 0], &view[1, 0], &view[2, 0])
    return out
