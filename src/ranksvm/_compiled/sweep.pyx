# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""The margin sweep over ranges of queries: arrays in, arrays out, the GIL released.

All arrays over rows are in sorted order (`ranksvm.data.Queries`): query ``q`` has the positions ``pointers[q]`` to
``pointers[q + 1]``. Arguments named ``*_range`` hold the rows of the queries ``first .. last`` only.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t
from libcpp cimport bool as cbool

from ranksvm._compiled.instruction_set cimport chosen
from ranksvm._compiled.passes cimport LossSums, QueryOperator, new_operator

cdef extern from "sweep_loops.hpp" namespace "ranksvm" nogil:
    cdef struct Pairs:
        const int64_t *pointers
        const int32_t *levels
        const int32_t *n_levels
        const int32_t *by_level
        const uint8_t *visited
        const double *preferred
        const double *other
        const double *gain
        int32_t adjacent
        int32_t direct_limit

    cdef struct PairState:
        int32_t *order
        int32_t *outer
        int32_t *inner
        double *scores
        double *degrees
        double outer_threshold
        double inner_threshold
        int32_t ring

    cppclass SweepLoops:
        void (*laplacian_rows)(const Pairs &, const PairState &, int64_t, int64_t, const double *, int64_t,
                               double *) except +
        void (*compress_levels)(const int64_t *, int64_t, int64_t, const double *, int32_t *, int32_t *) except +
        void (*count_pairs)(const Pairs &, int64_t, int64_t, double *, double *) except +
        int64_t (*order_by_level)(const Pairs &, int64_t, const double *, double, int32_t *, uint8_t *) except +

    const Loops &loops_of[Loops](int)

cdef extern from "sweep_operators.hpp" namespace "ranksvm" nogil:
    cppclass SquaredHingeOfQueries:
        const SweepLoops *loops
        const Pairs *pairs
        const PairState *state
        @staticmethod
        LossSums apply(const void *, int64_t, int64_t, const double *, double *) except + nogil

    cppclass HuberOfQueries:
        const SweepLoops *loops
        const Pairs *pairs
        const PairState *state
        double width
        cbool smoothing
        @staticmethod
        LossSums apply(const void *, int64_t, int64_t, const double *, double *) except + nogil

    cppclass LaplacianOfQueries:
        const SweepLoops *loops
        const Pairs *pairs
        const PairState *state
        double factor
        @staticmethod
        LossSums apply(const void *, int64_t, int64_t, const double *, double *) except + nogil


cdef class PairArrays:
    """The pairs of a data set as arrays: pointers, levels, levels per query, and the weights a, b and gains g (or None).

    Which queries have their pairs visited, in which order, is for `choose` to say.
    """

    cdef Pairs pairs
    cdef int64_t n_queries
    cdef object owners  # keeps the arrays alive

    def __init__(self, const int64_t[::1] pointers, const int32_t[::1] levels, const int32_t[::1] n_levels,
                 const double[::1] preferred, const double[::1] other, const double[::1] gain, bint adjacent,
                 int32_t direct_limit):
        self.owners = [pointers, levels, n_levels, preferred, other, gain]
        self.n_queries = pointers.shape[0] - 1
        self.pairs.pointers = &pointers[0]
        self.pairs.levels = &levels[0] if levels.shape[0] else NULL
        self.pairs.n_levels = &n_levels[0] if n_levels.shape[0] else NULL
        self.pairs.by_level = NULL
        self.pairs.visited = NULL
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

    def choose(self, const double[::1] n_pairs, double visit_limit, int32_t[::1] by_level, uint8_t[::1] visited):
        """Sort documents by level, and say which queries have all their pairs visited, which are swept.

        Fills ``by_level`` (rows) and ``visited`` (queries) and keeps them. A query is visited up to ``visit_limit * (14
        + min(levels, 40))`` pairs a document. Returns how many queries are to be swept.
        """
        cdef int64_t swept
        if visited.shape[0] == 0 or by_level.shape[0] == 0:
            return 0
        with nogil:
            swept = loops_of[SweepLoops](chosen).order_by_level(
                self.pairs, visited.shape[0], &n_pairs[0], visit_limit, &by_level[0], &visited[0])
        self.owners += [by_level, visited]
        self.pairs.by_level = &by_level[0]
        self.pairs.visited = &visited[0]
        return swept


cdef class StateArrays:
    """What a loss leaves of the pairs at one score vector: order and windows of swept queries, scores of the others.

    ``order``, ``outer`` and ``inner`` may be None where no query is swept, ``scores`` where all are; ``inner`` where
    the loss is curved in the whole outer window.
    """

    cdef PairState state
    cdef object owners

    def __init__(self, int32_t[::1] order, int32_t[::1] outer, int32_t[::1] inner, double[::1] scores,
                 double[::1] degrees, bint ring):
        self.owners = order, outer, inner, scores, degrees
        self.state.order = &order[0] if order is not None and order.shape[0] else NULL
        self.state.outer = &outer[0] if outer is not None and outer.shape[0] else NULL
        self.state.inner = &inner[0] if inner is not None and inner.shape[0] else NULL
        self.state.scores = &scores[0] if scores is not None and scores.shape[0] else NULL
        self.state.degrees = &degrees[0] if degrees.shape[0] else NULL
        self.state.outer_threshold = self.state.inner_threshold = 0.0
        self.state.ring = ring


def squared_hinge(PairArrays arrays, StateArrays state, double threshold):
    """The operator from scores to the gradient of the sum of ``a_i b_j max(0, t - (s_i - s_j))^2`` over the pairs.

    It leaves the violating pairs in the state. The state's ``order`` (document numbers within their query) is on entry any
    permutation, best by similar scores.
    """
    cdef QueryOperator made = new_operator(
        sizeof(SquaredHingeOfQueries), (arrays, state), arrays.pairs.pointers, arrays.n_queries)
    cdef SquaredHingeOfQueries *own = <SquaredHingeOfQueries *>made.memory
    state.state.outer_threshold = threshold
    own.loops = &loops_of[SweepLoops](chosen)
    own.pairs = &arrays.pairs
    own.state = &state.state
    made.table.apply = SquaredHingeOfQueries.apply
    return made


def huber(PairArrays arrays, StateArrays state, double width, bint smoothing):
    """The operator from scores to the gradient of the Huberised hinge.

    Its sums: the loss and, where it is a smoothing, how much more the hinge is and ``h (1 - h / width)``. It leaves the pairs whose loss is curved in
    the state, as `squared_hinge` does; the state has a ring.
    """
    cdef QueryOperator made = new_operator(
        sizeof(HuberOfQueries), (arrays, state), arrays.pairs.pointers, arrays.n_queries)
    cdef HuberOfQueries *own = <HuberOfQueries *>made.memory
    state.state.outer_threshold = 1.0
    state.state.inner_threshold = 1.0 - width
    own.loops = &loops_of[SweepLoops](chosen)
    own.pairs = &arrays.pairs
    own.state = &state.state
    own.width = width
    own.smoothing = smoothing
    made.table.apply = HuberOfQueries.apply
    return made


def laplacian(PairArrays arrays, StateArrays state, double factor):
    """The operator ``v -> factor * L v``, for the pairs that a loss left in the state."""
    cdef QueryOperator made = new_operator(
        sizeof(LaplacianOfQueries), (arrays, state), arrays.pairs.pointers, arrays.n_queries)
    cdef LaplacianOfQueries *own = <LaplacianOfQueries *>made.memory
    own.loops = &loops_of[SweepLoops](chosen)
    own.pairs = &arrays.pairs
    own.state = &state.state
    own.factor = factor
    made.table.apply = LaplacianOfQueries.apply
    return made


def laplacian_rows(PairArrays arrays, StateArrays state, int64_t first, int64_t last, const double[:, ::1] X_range,
                   double[:, ::1] Z_range):
    """Rows Z with ``X' L X = (X'Z + Z'X) / 2`` for a range of queries (X of the range centred by query)."""
    if X_range.shape[0] == 0 or X_range.shape[1] == 0:
        return
    with nogil:
        loops_of[SweepLoops](chosen).laplacian_rows(
            arrays.pairs, state.state, first, last, &X_range[0, 0], X_range.shape[1], &Z_range[0, 0])


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
