# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""The margin sweep over ranges of queries: arrays in, arrays out, the GIL released.

All arrays over rows are in sorted order (`ranksvm.data.Queries`): query ``q`` has the positions ``pointers[q]`` to
``pointers[q + 1]``. Arguments named ``*_range`` hold the rows of the queries ``first .. last`` only.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t

from ranksvm._compiled.instruction_set cimport chosen

from ranksvm._parallel import parallel_map

cdef extern from "workers.hpp" namespace "ranksvm" nogil:
    ctypedef void (*Task)(const void *, int64_t) noexcept nogil

    cdef struct Workers:
        int (*run)(void *, int64_t, Task, const void *) noexcept nogil
        void *context

cdef extern from "shared_work.hpp" namespace "ranksvm" nogil:
    cdef cppclass SharedWork:
        SharedWork(int64_t, Task, const void *)
        void take() except +
        void stop()

    cdef cppclass SortedQuery:
        pass

    void pause_briefly()
    void release(SortedQuery &)

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

    cdef struct LossSums:
        double value
        double excess
        double slack

    cppclass SweepLoops:
        LossSums (*squared_hinge)(const Pairs &, const PairState &, int64_t, int64_t, const double *, double *,
                                  SortedQuery &, const Workers &) except +
        LossSums (*huber)(const Pairs &, const PairState &, int64_t, int64_t, const double *, double, double *,
                          SortedQuery &, const Workers &) except +
        void (*laplacian)(const Pairs &, const PairState &, int64_t, int64_t, const double *, double *,
                          SortedQuery &, const Workers &) except +
        void (*laplacian_rows)(const Pairs &, const PairState &, int64_t, int64_t, const double *, int64_t,
                               double *, SortedQuery &) except +
        void (*compress_levels)(const int64_t *, int64_t, int64_t, const double *, int32_t *, int32_t *,
                                SortedQuery &, const Workers &) except +
        void (*count_pairs)(const Pairs &, int64_t, int64_t, double *, double *) except +
        int64_t (*order_by_level)(const Pairs &, int64_t, const double *, double, int32_t *, uint8_t *) except +

    const Loops &loops_of[Loops](int)


cdef class _Taken:
    """What every thread calls to take parts of one piece of work."""

    cdef SharedWork *work
    cdef bint over
    cdef int inside

    def __call__(self, _):
        if self.over:
            return
        self.inside += 1
        try:
            with nogil:
                self.work.take()
        finally:
            self.inside -= 1


cdef int _run(void *context, int64_t n, Task task, const void *argument) noexcept with gil:
    cdef Threads threads = <Threads>context
    cdef SharedWork *work = new SharedWork(n, task, argument)
    cdef _Taken taken = _Taken()
    taken.work = work
    try:
        parallel_map(taken, range(threads.n_threads), threads.n_threads)
    except BaseException as error:
        threads.error = error
        work.stop()
    # an interrupt comes to this thread only: others may still be at work in the caller's memory
    taken.over = True
    while taken.inside > 0:
        with nogil:
            pause_briefly()
    del work
    return 0 if threads.error is None else -1


cdef class Threads:
    """The threads that share one long list, for one call of a loop; ``error`` is what stopped them."""

    cdef Workers workers
    cdef int n_threads
    cdef object error

    def __init__(self, int n_threads):
        self.n_threads = n_threads
        self.workers.run = NULL
        if n_threads > 1:
            self.workers.run = _run
        self.workers.context = <void *>self

    cdef reraise(self):
        """In an ``except`` clause: raise what stopped the threads, if anything did."""
        if self.error is not None:
            raise self.error


cdef class Scratch:
    """Memory to sort and sweep a query in."""

    cdef SortedQuery query

    def __dealloc__(self):
        release(self.query)


cdef class PairArrays:
    """The pairs of a data set as arrays: pointers, levels, levels per query, and the weights a, b and gains g (or None).

    Which queries have their pairs visited, in which order, is for `choose` to say.
    """

    cdef Pairs pairs
    cdef object owners  # keeps the arrays alive
    cdef list spare  # scratch memory that no thread is using

    def __init__(self, const int64_t[::1] pointers, const int32_t[::1] levels, const int32_t[::1] n_levels,
                 const double[::1] preferred, const double[::1] other, const double[::1] gain, bint adjacent,
                 int32_t direct_limit):
        self.owners = [pointers, levels, n_levels, preferred, other, gain]
        self.spare = []
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

    cdef Scratch scratch(self):
        """Memory for a thread, to be appended to `spare` when it is done: the system would clear new memory each time."""
        return self.spare.pop() if self.spare else Scratch()

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
    the loss is curved in the whole outer window. A long list is shared out among ``n_threads``.
    """

    cdef PairState state
    cdef object owners
    cdef int n_threads

    def __init__(self, int32_t[::1] order, int32_t[::1] outer, int32_t[::1] inner, double[::1] scores,
                 double[::1] degrees, bint ring, int n_threads=1):
        self.owners = order, outer, inner, scores, degrees
        self.state.order = &order[0] if order is not None and order.shape[0] else NULL
        self.state.outer = &outer[0] if outer is not None and outer.shape[0] else NULL
        self.state.inner = &inner[0] if inner is not None and inner.shape[0] else NULL
        self.state.scores = &scores[0] if scores is not None and scores.shape[0] else NULL
        self.state.degrees = &degrees[0] if degrees.shape[0] else NULL
        self.state.outer_threshold = self.state.inner_threshold = 0.0
        self.state.ring = ring
        self.n_threads = n_threads


def squared_hinge(PairArrays arrays, StateArrays state, int64_t first, int64_t last, const double[::1] scores,
                  double threshold, double[::1] gradient_range):
    """Sum of ``a_i b_j max(0, t - (s_i - s_j))^2`` over the pairs of a range of queries.

    Writes the gradient with respect to the scores and leaves the violating pairs in the state. Its ``order`` (document
    numbers within their query) is on entry any permutation, best by similar scores.
    """
    cdef LossSums sums
    if gradient_range.shape[0] == 0:
        return 0.0
    state.state.outer_threshold = threshold
    cdef Threads threads = Threads(state.n_threads)
    cdef Scratch scratch = arrays.scratch()
    try:
        with nogil:
            sums = loops_of[SweepLoops](chosen).squared_hinge(
                arrays.pairs, state.state, first, last, &scores[0], &gradient_range[0], scratch.query, threads.workers)
    except BaseException:
        threads.reraise()
        raise
    arrays.spare.append(scratch)
    return sums.value


def huber(PairArrays arrays, StateArrays state, int64_t first, int64_t last, const double[::1] scores, double width,
          double[::1] gradient_range):
    """Sums over the pairs of a range of queries: Huberised hinge, how much more the hinge is, and ``h (1 - h / width)``.

    Writes the gradient and leaves the pairs whose loss is curved, as `squared_hinge` does; the state has a ring.
    """
    cdef LossSums sums
    if gradient_range.shape[0] == 0:
        return 0.0, 0.0, 0.0
    state.state.outer_threshold = 1.0
    state.state.inner_threshold = 1.0 - width
    cdef Threads threads = Threads(state.n_threads)
    cdef Scratch scratch = arrays.scratch()
    try:
        with nogil:
            sums = loops_of[SweepLoops](chosen).huber(
                arrays.pairs, state.state, first, last, &scores[0], width, &gradient_range[0], scratch.query,
                threads.workers)
    except BaseException:
        threads.reraise()
        raise
    arrays.spare.append(scratch)
    return sums.value, sums.excess, sums.slack


def laplacian(PairArrays arrays, StateArrays state, int64_t first, int64_t last, const double[::1] v_range,
              double[::1] out_range):
    """``L v`` of a range of queries, for the pairs that a loss left in the state."""
    if v_range.shape[0] == 0:
        return
    cdef Threads threads = Threads(state.n_threads)
    cdef Scratch scratch = arrays.scratch()
    try:
        with nogil:
            loops_of[SweepLoops](chosen).laplacian(
                arrays.pairs, state.state, first, last, &v_range[0], &out_range[0], scratch.query, threads.workers)
    except BaseException:
        threads.reraise()
        raise
    arrays.spare.append(scratch)


def laplacian_rows(PairArrays arrays, StateArrays state, int64_t first, int64_t last, const double[:, ::1] X_range,
                   double[:, ::1] Z_range):
    """Rows Z with ``X' L X = (X'Z + Z'X) / 2`` for a range of queries (X of the range centred by query)."""
    if X_range.shape[0] == 0 or X_range.shape[1] == 0:
        return
    cdef Scratch scratch = arrays.scratch()
    with nogil:
        loops_of[SweepLoops](chosen).laplacian_rows(
            arrays.pairs, state.state, first, last, &X_range[0, 0], X_range.shape[1], &Z_range[0, 0], scratch.query)
    arrays.spare.append(scratch)


def compress_levels(const int64_t[::1] pointers, int64_t first, int64_t last, const double[::1] y,
                    int32_t[::1] levels, int32_t[::1] n_levels, int n_threads=1):
    """Replace each query's labels by their ranks among the query's distinct labels."""
    if first >= last or y.shape[0] == 0:
        return
    cdef Threads threads = Threads(n_threads)
    cdef Scratch scratch = Scratch()
    try:
        with nogil:
            loops_of[SweepLoops](chosen).compress_levels(
                &pointers[0], first, last, &y[0], &levels[0], &n_levels[0], scratch.query, threads.workers)
    except BaseException:
        threads.reraise()
        raise


def count_pairs(PairArrays arrays, int64_t first, int64_t last, double[::1] n_pairs, double[::1] weight):
    """Number and total weight of the pairs of each query of a range."""
    if first >= last:
        return
    with nogil:
        loops_of[SweepLoops](chosen).count_pairs(arrays.pairs, first, last, &n_pairs[0], &weight[0])
