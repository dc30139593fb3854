# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""The margin sweep over ranges of queries: arrays in, arrays out, the GIL released.

All arrays over rows are in sorted order (`ranksvm.data.Queries`): query ``q`` has the positions ``pointers[q]`` to
``pointers[q + 1]``. Arguments named ``*_range`` hold the rows of the queries ``first .. last`` only.
"""

from libc.stdint cimport int32_t, int64_t

from ranksvm._compiled.instruction_set cimport chosen

cdef extern from "sweep_loops.hpp" namespace "ranksvm" nogil:
    cdef struct Pairs:
        const int64_t *pointers
        const int32_t *levels
        const int32_t *n_levels
        const double *preferred
        const double *other
        const double *gain
        int32_t adjacent
        int32_t direct_limit

    cdef struct LossSums:
        double value
        double excess
        double slack

    cppclass SweepLoops:
        double (*squared_hinge)(const Pairs &, int64_t, int64_t, const double *, double, int32_t *, int32_t *, double *,
                                double *) except +
        LossSums (*huber)(const Pairs &, int64_t, int64_t, const double *, double, int32_t *, int32_t *, int32_t *,
                          double *, double *) except +
        void (*laplacian)(const Pairs &, int64_t, int64_t, const int32_t *, const int32_t *, const int32_t *,
                          const double *, const double *, double *) except +
        void (*laplacian_rows)(const Pairs &, int64_t, int64_t, const int32_t *, const int32_t *, const int32_t *,
                               const double *, const double *, int64_t, double *) except +
        void (*compress_levels)(const int64_t *, int64_t, int64_t, const double *, int32_t *, int32_t *) except +
        void (*count_pairs)(const Pairs &, int64_t, int64_t, double *, double *) except +

    const Loops &loops_of[Loops](int)


cdef class PairArrays:
    """The pairs of a data set as arrays: pointers, levels, levels per query, and the weights a, b and gains g (or None)."""

    cdef Pairs pairs
    cdef object owners  # keeps the arrays alive

    def __init__(self, const int64_t[::1] pointers, const int32_t[::1] levels, const int32_t[::1] n_levels,
                 const double[::1] preferred, const double[::1] other, const double[::1] gain, bint adjacent,
                 int32_t direct_limit):
        self.owners = (pointers, levels, n_levels, preferred, other, gain)
        self.pairs.pointers = &pointers[0]
        self.pairs.levels = &levels[0] if levels.shape[0] else NULL
        self.pairs.n_levels = &n_levels[0] if n_levels.shape[0] else NULL
        self.pairs.preferred = NULL
        self.pairs.other = NULL
        self.pairs.gain = NULL
        self.pairs.adjacent = adjacent
        if gain is not None and gain.shape[0]:
            self.pairs.gain = &gain[0]
        if preferred is not None and preferred.shape[0]:
            self.pairs.preferred = &preferred[0]
            self.pairs.other = &other[0]
        self.pairs.direct_limit = direct_limit


def squared_hinge(PairArrays arrays, int64_t first, int64_t last, const double[::1] scores, double threshold,
                  int32_t[::1] order, int32_t[::1] window, double[::1] counts, double[::1] gradient_range):
    """Sum of ``a_i b_j max(0, t - (s_i - s_j))^2`` over the pairs of a range of queries.

    Writes the gradient with respect to the scores, sorts ``order`` (document numbers within their query, by score; on
    entry any permutation, best an earlier order) and leaves the violating pairs as ``window`` (in sorted order) and
    the diagonal of their Laplacian as ``counts``.
    """
    cdef double value
    if gradient_range.shape[0] == 0:
        return 0.0
    with nogil:
        value = loops_of[SweepLoops](chosen).squared_hinge(
            arrays.pairs, first, last, &scores[0], threshold, &order[0], &window[0], &counts[0],
                                &gradient_range[0])
    return value


def huber(PairArrays arrays, int64_t first, int64_t last, const double[::1] scores, double width, int32_t[::1] order,
          int32_t[::1] outer, int32_t[::1] inner, double[::1] counts, double[::1] gradient_range):
    """Sums over the pairs of a range of queries: Huberised hinge, how much more the hinge is, and ``h (1 - h / width)``.

    Writes gradient, ``order`` and ``counts`` as `squared_hinge` does; the pairs whose loss is curved are those of the
    window ``outer`` that are not in ``inner``.
    """
    cdef LossSums sums
    if gradient_range.shape[0] == 0:
        return 0.0, 0.0, 0.0
    with nogil:
        sums = loops_of[SweepLoops](chosen).huber(
            arrays.pairs, first, last, &scores[0], width, &order[0], &outer[0], &inner[0], &counts[0],
                       &gradient_range[0])
    return sums.value, sums.excess, sums.slack


def laplacian(PairArrays arrays, int64_t first, int64_t last, const int32_t[::1] order, const int32_t[::1] outer,
              const int32_t[::1] inner, const double[::1] counts, const double[::1] v_range, double[::1] out_range):
    """``L v`` of a range of queries, for the pairs that a loss left in its windows (``inner`` may be None)."""
    if v_range.shape[0] == 0:
        return
    with nogil:
        loops_of[SweepLoops](chosen).laplacian(
            arrays.pairs, first, last, &order[0], &outer[0], &inner[0] if inner is not None else NULL,
                    &counts[0], &v_range[0], &out_range[0])


def laplacian_rows(PairArrays arrays, int64_t first, int64_t last, const int32_t[::1] order,
                   const int32_t[::1] outer, const int32_t[::1] inner, const double[::1] counts,
                   const double[:, ::1] X_range, double[:, ::1] Z_range):
    """Rows Z with ``X' L X = (X'Z + Z'X) / 2`` for a range of queries (X of the range centred by query)."""
    if X_range.shape[0] == 0 or X_range.shape[1] == 0:
        return
    with nogil:
        loops_of[SweepLoops](chosen).laplacian_rows(
            arrays.pairs, first, last, &order[0], &outer[0], &inner[0] if inner is not None else NULL,
                         &counts[0], &X_range[0, 0], X_range.shape[1], &Z_range[0, 0])


def compress_levels(const int64_t[::1] pointers, int64_t first, int64_t last, const double[::1] y,
                    int32_t[::1] levels, int32_t[::1] n_levels):
    """Replace each query's labels by their ranks among the query's distinct labels."""
    if first >= last or y.shape[0] == 0:
        return
    with nogil:
        loops_of[SweepLoops](chosen).compress_levels(&pointers[0], first, last, &y[0], &levels[0], &n_levels[0])


def count_pairs(PairArrays arrays, int64_t first, int64_t last, double[::1] n_pairs, double[::1] weight):
    """Number and total weight of the pairs of each query of a range."""
    if first >= last:
        return
    with nogil:
        loops_of[SweepLoops](chosen).count_pairs(arrays.pairs, first, last, &n_pairs[0], &weight[0])
