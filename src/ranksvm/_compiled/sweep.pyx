# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""Losses over the pairs that labels imply, and their Hessians, as operators that compiled passes call without the GIL.

All arrays over rows are in sorted order (`ranksvm.data.Queries`): query ``q`` has the positions ``pointers[q]`` to ``pointers[q
+ 1]``. Sums over the pairs of a query visit all of its pairs, or take the margin sweep of sweep.hpp if there are too many.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t
from libcpp cimport bool as cbool

from ranksvm._compiled.border cimport need, need_if_given, need_levels, need_pointers, need_present, need_range
from ranksvm._compiled.instruction_set cimport chosen
from ranksvm._compiled.passes cimport Columns, LossSums, QueryOperator, new_operator
from ranksvm._compiled.threads cimport Workers, workers_of

cdef extern from "scratch_pool.hpp" namespace "ranksvm" nogil:
    cdef cppclass SortedQuery:
        pass

    cdef cppclass ScratchPool:
        pass

    cdef cppclass Scratch:
        Scratch(ScratchPool &) except +
        SortedQuery &query()

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
        int32_t function

    cppclass SweepLoops:
        void (*compress_levels)(const int64_t *, int64_t, int64_t, const double *, int32_t *, int32_t *,
                                SortedQuery &, const Workers &) except +
        void (*count_pairs)(const Pairs &, int64_t, int64_t, double *, double *) except +
        int64_t (*order_by_level)(const Pairs &, int64_t, const double *, double, int32_t *, uint8_t *) except +

    cppclass SweepRowLoops[Real]:
        pass

    const Loops &loops_of[Loops](int)

cdef extern from "sweep_operators.hpp" namespace "ranksvm" nogil:
    cppclass SweepOperator:
        const SweepLoops *loops
        const SweepRowLoops[double] *row_loops
        const SweepRowLoops[float] *single_row_loops
        const Pairs *pairs
        const PairState *state
        ScratchPool *pool
        Workers workers
        double width
        cbool smoothing
        double factor
        @staticmethod
        LossSums squared_hinge(const void *, int64_t, int64_t, const double *, double *) except + nogil
        @staticmethod
        LossSums huber(const void *, int64_t, int64_t, const double *, double *) except + nogil
        @staticmethod
        LossSums smooth(const void *, int64_t, int64_t, const double *, double *) except + nogil
        @staticmethod
        LossSums laplacian(const void *, int64_t, int64_t, const double *, double *) except + nogil
        @staticmethod
        int64_t rows(const void *, int64_t, int64_t, double *, int64_t, double *) except + nogil
        @staticmethod
        int64_t rows_single(const void *, int64_t, int64_t, float *, int64_t, float *) except + nogil
        @staticmethod
        bint product(const void *, int64_t, int64_t, const Columns[double] &) except + nogil
        @staticmethod
        bint product_single(const void *, int64_t, int64_t, const Columns[float] &) except + nogil


cdef class PairArrays:
    """The pairs of a data set as arrays: pointers, levels, levels per query, and the weights a, b and gains g (or None).

    `choose` sorts documents by level, and decides which queries have all their pairs visited.
    """

    cdef Pairs pairs
    cdef object owners  # keeps the arrays alive
    cdef int64_t n_rows, n_queries
    cdef int64_t n_swept  # -1 before `choose`
    cdef ScratchPool pool  # keeps the memory of threads: the system would clear new memory each time

    def __init__(self, const int64_t[::1] pointers, const int32_t[::1] levels, const int32_t[::1] n_levels,
                 const double[::1] preferred, const double[::1] other, const double[::1] gain, bint adjacent,
                 int32_t direct_limit):
        need_pointers("pointers", pointers, levels.shape[0])
        need("n_levels", n_levels.shape[0], pointers.shape[0] - 1)
        need_levels(pointers, levels, n_levels)
        need_if_given("preferred", preferred, levels.shape[0])
        need_if_given("other", other, levels.shape[0])
        need_if_given("gain", gain, levels.shape[0])
        if (preferred is None) != (other is None) or (gain is not None and preferred is None):
            raise ValueError("weights of the preferred and the other document go together, and gains need both")
        self.n_rows, self.n_queries, self.n_swept = levels.shape[0], n_levels.shape[0], -1
        self.owners = [pointers, levels, n_levels, preferred, other, gain]
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
        """Sort documents by level, and choose which queries have all their pairs visited and which are swept.

        Fills ``by_level`` (rows) and ``visited`` (queries) and keeps them. A query is visited if it has at most
        ``visit_limit * (14 + min(levels, 40))`` pairs per document. Returns how many queries are to be swept.
        """
        cdef int64_t swept
        need("n_pairs", n_pairs.shape[0], self.n_queries)
        need("by_level", by_level.shape[0], self.n_rows)
        need("visited", visited.shape[0], self.n_queries)
        self.n_swept = 0
        if visited.shape[0] == 0 or by_level.shape[0] == 0:
            return 0
        with nogil:
            swept = loops_of[SweepLoops](chosen).order_by_level(
                self.pairs, visited.shape[0], &n_pairs[0], visit_limit, &by_level[0], &visited[0])
        self.owners += [by_level, visited]
        self.pairs.by_level = &by_level[0]
        self.pairs.visited = &visited[0]
        self.n_swept = swept
        return swept

    cdef int need_queries(self, int64_t first, int64_t last) except -1:
        """Refuse a range that is not within the queries."""
        return need_range("queries", first, last, self.n_queries)

    cdef int need_rows_of(self, str name, int64_t found, int64_t first, int64_t last) except -1:
        """Refuse an array that does not hold the rows of a range of queries."""
        self.need_queries(first, last)
        return need(name, found, self.pairs.pointers[last] - self.pairs.pointers[first])

    cdef int need_state(self, StateArrays state) except -1:
        """Refuse a state of other pairs, or one without the arrays that queries to be swept need."""
        need("scores of the state", state.n_rows, self.n_rows)
        if self.n_rows == 0:
            return 0
        if self.n_swept < 0:
            raise ValueError("no way was chosen: call `choose` first")
        if not state.state.function and self.n_swept > 0 and (
                state.state.order == NULL or state.state.outer == NULL or
                (state.state.ring and state.state.inner == NULL)):
            raise ValueError("queries are swept, but the state has no order or no windows")
        if (state.state.function or self.n_swept < self.n_queries) and state.state.scores == NULL:
            raise ValueError("queries are visited, but the state has no scores")
        return 0


cdef class StateArrays:
    """The state of a loss at one score vector: order and windows of swept queries, scores of the others.

    Evaluations copy the scores of visited queries to ``scores``, unless they are there already. ``order``, ``outer`` and
    ``inner`` may be None if no query is swept, and ``scores`` if all queries are swept. ``inner`` may also be None if the loss
    is curved in the whole outer window. A long list is shared out among ``n_threads``. With the number of a function of
    margin_functions.hpp all queries are visited.
    """

    cdef PairState state
    cdef object owners
    cdef int64_t n_rows
    cdef int n_threads

    def __init__(self, int32_t[::1] order, int32_t[::1] outer, int32_t[::1] inner, double[::1] scores,
                 double[::1] degrees, bint ring, int n_threads=1, int function=0):
        self.n_rows = degrees.shape[0]
        need_if_given("order", order, self.n_rows)
        need_if_given("outer", outer, self.n_rows)
        need_if_given("inner", inner, self.n_rows)
        need_if_given("scores", scores, self.n_rows)
        self.owners = order, outer, inner, scores, degrees
        self.state.order = &order[0] if order is not None and order.shape[0] else NULL
        self.state.outer = &outer[0] if outer is not None and outer.shape[0] else NULL
        self.state.inner = &inner[0] if inner is not None and inner.shape[0] else NULL
        self.state.scores = &scores[0] if scores is not None and scores.shape[0] else NULL
        self.state.degrees = &degrees[0] if degrees.shape[0] else NULL
        self.state.outer_threshold = self.state.inner_threshold = 0.0
        self.state.ring = ring
        self.state.function = function
        self.n_threads = n_threads


cdef QueryOperator _new_operator(PairArrays arrays, StateArrays state):
    arrays.need_state(state)
    cdef QueryOperator made = new_operator(
        sizeof(SweepOperator), (arrays, state), arrays.pairs.pointers, arrays.n_queries)
    cdef SweepOperator *own = <SweepOperator *>made.memory
    own.loops = &loops_of[SweepLoops](chosen)
    own.row_loops = &loops_of[SweepRowLoops[double]](chosen)
    own.single_row_loops = &loops_of[SweepRowLoops[float]](chosen)
    own.pairs = &arrays.pairs
    own.state = &state.state
    own.pool = &arrays.pool
    own.workers = workers_of(state.n_threads)
    return made


def squared_hinge(PairArrays arrays, StateArrays state, double threshold):
    """The operator from scores to the gradient of the sum of ``a_i b_j max(0, t - (s_i - s_j))^2`` over the pairs.

    It writes the violating pairs to the state. On entry, the state's ``order`` (document numbers within their query) may be any
    permutation; the sort takes the least time if the permutation sorts similar scores.
    """
    cdef QueryOperator made = _new_operator(arrays, state)
    state.state.outer_threshold = threshold
    made.table.apply = SweepOperator.squared_hinge
    return made


def huber(PairArrays arrays, StateArrays state, double width, bint smoothing, double ring=0.0):
    """The operator from scores to the gradient of the Huberized hinge.

    It returns three sums over the pairs: the loss; the hinge minus this loss; and ``h (1 - h / width)`` of the pairs in the
    ring. Without ``smoothing``, the last two are 0. It writes the pairs whose loss is curved to the state, as `squared_hinge`
    does; the state must have a ring. If the ring has a width of its own that is less than the width of the loss, pairs beyond
    the ring count as if their loss were linear. Only the gradient and the state have a meaning then.
    """
    cdef QueryOperator made = _new_operator(arrays, state)
    cdef SweepOperator *own = <SweepOperator *>made.memory
    state.state.outer_threshold = 1.0
    state.state.inner_threshold = 1.0 - (ring if ring else width)
    own.width = width
    own.smoothing = smoothing
    made.table.apply = SweepOperator.huber
    return made


def smooth(PairArrays arrays, StateArrays state):
    """The operator from scores to the gradient of the sum of the state's function of the margin over the pairs."""
    if not state.state.function:
        raise ValueError("the state has no function of the margin")
    cdef QueryOperator made = _new_operator(arrays, state)
    made.table.apply = SweepOperator.smooth
    return made


def laplacian(PairArrays arrays, StateArrays state, double factor):
    """The operator ``v -> factor * L v``, where L is the Laplacian of the pairs that a loss has written to the state."""
    cdef QueryOperator made = _new_operator(arrays, state)
    (<SweepOperator *>made.memory).factor = factor
    made.table.apply = SweepOperator.laplacian
    made.table.rows = SweepOperator.rows
    made.table.rows_single = SweepOperator.rows_single
    made.table.product = SweepOperator.product
    made.table.product_single = SweepOperator.product_single
    return made


def compress_levels(const int64_t[::1] pointers, int64_t first, int64_t last, const double[::1] y,
                    int32_t[::1] levels, int32_t[::1] n_levels, int n_threads=1):
    """Replace each query's labels by their ranks among the query's distinct labels; NaN is refused."""
    need_pointers("pointers", pointers, y.shape[0])
    need_range("queries", first, last, pointers.shape[0] - 1)
    need("levels", levels.shape[0], y.shape[0])
    need("n_levels", n_levels.shape[0], pointers.shape[0] - 1)
    if first >= last or y.shape[0] == 0:
        return
    need_present("y", &y[0], pointers[first], pointers[last])
    cdef Workers workers = workers_of(n_threads)
    cdef ScratchPool pool
    cdef Scratch *scratch = new Scratch(pool)
    try:
        with nogil:
            loops_of[SweepLoops](chosen).compress_levels(
                &pointers[0], first, last, &y[0], &levels[0], &n_levels[0], scratch.query(), workers)
    finally:
        del scratch


def count_pairs(PairArrays arrays, int64_t first, int64_t last, double[::1] n_pairs, double[::1] weight):
    """Number and total weight of the pairs of each query of a range."""
    arrays.need_queries(first, last)
    need("n_pairs", n_pairs.shape[0], arrays.n_queries)
    need("weight", weight.shape[0], arrays.n_queries)
    if first >= last:
        return
    with nogil:
        loops_of[SweepLoops](chosen).count_pairs(arrays.pairs, first, last, &n_pairs[0], &weight[0])
