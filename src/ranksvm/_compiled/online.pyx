# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""Update linear models in place, by one pair (PRank: one document) after another, without the GIL.

Documents are numbered by their rows in X; ``weight`` is None if all pairs weigh 1. After T pairs, the mean of w over all
pairs so far is ``w - lag / T``; ``lag`` is None if this averaged model is not needed.
"""

from libc.stdint cimport int32_t, int64_t, uint64_t

from ranksvm._compiled.border cimport need, need_csr, need_if_given, need_places, need_present
from ranksvm._compiled.instruction_set cimport chosen

cdef extern from "online_loops.hpp" namespace "ranksvm" nogil:
    cdef struct OnlinePairs:
        const int32_t *preferred
        const int32_t *other
        const double *weight
        int64_t size

    cdef struct OnlineSums:
        int64_t updates
        double loss

    cdef struct OnlineModel:
        double *w
        double *lag
        double count

    cdef struct Committee:
        double *experts
        double *survivals
        int64_t size
        double *survival

    cppclass OnlinePairLoops:
        int64_t (*count)(const double *, int64_t) except +
        void (*fill)(const double *, int64_t, bint, uint64_t, uint64_t, int32_t *, int32_t *) except +
        const char **methods
        int n_methods

    cppclass DenseOnlineLoops[Real]:
        OnlineSums (*learn)(int, const Real *, int64_t, const OnlinePairs &, double, double *,
                            OnlineModel) except +
        OnlineSums (*committee)(const Real *, int64_t, const OnlinePairs &, const Committee &, OnlineModel) except +
        int64_t (*prank)(const Real *, int64_t, const int32_t *, const int32_t *, int64_t, double *, int64_t,
                         OnlineModel) except +

    cppclass SparseOnlineLoops[Real, Index]:
        OnlineSums (*learn)(int, const Real *, const Index *, const Index *, const OnlinePairs &, double,
                            double *, OnlineModel) except +
        OnlineSums (*committee)(const Real *, const Index *, const Index *, int64_t, const OnlinePairs &,
                                const Committee &, OnlineModel) except +
        int64_t (*prank)(const Real *, const Index *, const Index *, const int32_t *, const int32_t *, int64_t, double *,
                         int64_t, OnlineModel) except +

    const Loops &loops_of[Loops](int)

ctypedef fused real:
    float
    double

ctypedef fused index:
    int32_t
    int64_t


def _methods():
    cdef int number
    names = []
    for number in range(loops_of[OnlinePairLoops](chosen).n_methods):
        names.append(loops_of[OnlinePairLoops](chosen).methods[number].decode())
    return {name: number for number, name in enumerate(names)}


# Name of each method of learning from pairs -> its number.
METHODS = _methods()


cdef class Model:
    """A linear model that learns; its arrays are changed in place.

    ``lag`` is None if the mean of w over all pairs is not needed. ``counts`` has four totals so far: pairs or documents seen;
    updates; the sum of weight times squared hinge; queries. If ``decay`` is less than 1, the model forgets before it learns
    from a query. If ``forgets`` is given, it is the covariance S of a second-order method (n x n, flat, or its diagonal), and
    becomes ``decay S + (1 - decay) I``. Otherwise w is multiplied by ``decay``. All arrays change together: no signal
    interrupts an update.
    """

    cdef double[::1] w, lag, counts, forgets
    cdef double decay
    cdef OnlineModel model

    def __init__(self, double[::1] w, double[::1] lag, double[::1] counts, double decay=1.0, double[::1] forgets=None):
        need_if_given("lag", lag, w.shape[0])
        need("counts", counts.shape[0], 4)
        if forgets is not None and forgets.shape[0] != w.shape[0]:
            need("forgets", forgets.shape[0], w.shape[0] * w.shape[0])
        self.w, self.lag, self.counts, self.decay, self.forgets = w, lag, counts, decay, forgets
        self.model.w = &w[0] if w.shape[0] else NULL
        self.model.lag = NULL
        if lag is not None and lag.shape[0]:
            self.model.lag = &lag[0]

    cdef OnlineModel now(self):
        if self.decay < 1.0:
            self.forget()
        self.model.count = self.counts[0]
        return self.model

    cdef void forget(self):
        cdef Py_ssize_t n = self.w.shape[0], f
        if self.forgets is not None:
            for f in range(self.forgets.shape[0]):
                self.forgets[f] *= self.decay
            for f in range(n):
                self.forgets[f * (n + 1) if self.forgets.shape[0] > n else f] += 1.0 - self.decay
            return
        for f in range(n):
            if self.model.lag != NULL:  # the sum of w over all pairs so far, count * w - lag, stays the same
                self.lag[f] -= self.counts[0] * (1.0 - self.decay) * self.w[f]
            self.w[f] *= self.decay

    cdef void add(self, int64_t size, int64_t updates, double loss):
        self.counts[0] += <double>size
        self.counts[1] += <double>updates
        self.counts[2] += loss
        self.counts[3] += 1.0

    cdef int need_features(self, int64_t n_features) except -1:
        """Raise an error unless rows of X have as many features as the model."""
        return need("a row of X", n_features, self.w.shape[0])

    cdef int need_method(self, method, const double[::1] S) except -1:
        """The number of a method; raise an error if its covariance is missing or has the wrong length."""
        cdef int64_t n = self.w.shape[0]
        if method not in METHODS:
            raise ValueError(f"no method {method!r}: choose from {', '.join(METHODS)}")
        if method == "solar_second" or method == "solar_diagonal":
            if S is None:
                raise ValueError("the second order needs a covariance")
            need("S", S.shape[0], n * n if method == "solar_second" else n)
        return METHODS[method]

    cdef int need_committee(self, const double[:, ::1] experts, const double[::1] survivals,
                            const double[::1] survival) except -1:
        """Raise an error if a committee has no members, or if they do not have as many features as the model."""
        if experts.shape[0] == 0:
            raise ValueError("a committee needs members")
        need("a row of experts", experts.shape[1], self.w.shape[0])
        need("survivals", survivals.shape[0], experts.shape[0])
        return need("survival", survival.shape[0], 1)


cdef int _need_pairs(const int32_t[::1] preferred, const int32_t[::1] other, const double[::1] weight,
                     int64_t n_rows) except -1:
    need("other", other.shape[0], preferred.shape[0])
    need_if_given("weight", weight, preferred.shape[0])
    need_places("preferred", preferred, n_rows)
    return need_places("other", other, n_rows)


cdef int _need_documents(const int32_t[::1] documents, const int32_t[::1] levels, int64_t n_thresholds,
                         int64_t n_rows) except -1:
    need("levels", levels.shape[0], documents.shape[0])
    need_places("levels", levels, n_thresholds + 1)
    return need_places("documents", documents, n_rows)


cdef OnlinePairs _pairs(const int32_t[::1] preferred, const int32_t[::1] other, const double[::1] weight):
    cdef OnlinePairs pairs
    pairs.preferred = &preferred[0]
    pairs.other = &other[0]
    pairs.weight = NULL
    if weight is not None:
        pairs.weight = &weight[0]
    pairs.size = preferred.shape[0]
    return pairs


def count_pairs(const double[::1] y):
    """Number of pairs of documents with different labels; NaN is refused."""
    if y.shape[0] == 0:
        return 0
    need_present("y", &y[0], 0, y.shape[0])
    return loops_of[OnlinePairLoops](chosen).count(&y[0], y.shape[0])


def fill_pairs(const double[::1] y, bint shuffle, uint64_t seed, uint64_t stream, int32_t[::1] preferred,
               int32_t[::1] other):
    """Write the pairs of one query, sorted by label and then by document, or in a random order from seed and stream."""
    need("preferred", preferred.shape[0], count_pairs(y))
    need("other", other.shape[0], preferred.shape[0])
    if preferred.shape[0] == 0:
        return
    with nogil:
        loops_of[OnlinePairLoops](chosen).fill(&y[0], y.shape[0], shuffle, seed, stream, &preferred[0], &other[0])


def learn_dense(Model model, method, double parameter, double[::1] S, const real[:, ::1] X,
                const int32_t[::1] preferred, const int32_t[::1] other, const double[::1] weight):
    """Learn from pairs of dense rows by one of `METHODS`.

    S is the covariance of the second-order methods, flat, or its diagonal.
    """
    cdef int number
    cdef OnlineSums sums = OnlineSums(0, 0.0)
    cdef OnlinePairs pairs
    cdef OnlineModel now
    cdef double *covariance = NULL
    model.need_features(X.shape[1])
    number = model.need_method(method, S)
    _need_pairs(preferred, other, weight, X.shape[0])
    now = model.now()
    if preferred.shape[0] and model.w.shape[0]:
        pairs = _pairs(preferred, other, weight)
        if S is not None:
            covariance = &S[0]
        with nogil:
            sums = loops_of[DenseOnlineLoops[real]](chosen).learn(
                number, &X[0, 0], X.shape[1], pairs, parameter, covariance, now)
    model.add(preferred.shape[0], sums.updates, sums.loss)


def learn_sparse(Model model, method, double parameter, double[::1] S, const real[::1] data,
                 const index[::1] indices, const index[::1] indptr, int64_t n_features, const int32_t[::1] preferred,
                 const int32_t[::1] other, const double[::1] weight):
    """As `learn_dense`, for CSR rows whose columns ascend."""
    cdef int number
    cdef OnlineSums sums = OnlineSums(0, 0.0)
    cdef OnlinePairs pairs
    cdef OnlineModel now
    cdef double *covariance = NULL
    need_csr(data.shape[0], indices.shape[0], indptr.shape[0])
    model.need_features(n_features)
    number = model.need_method(method, S)
    _need_pairs(preferred, other, weight, indptr.shape[0] - 1)
    now = model.now()
    if preferred.shape[0] and data.shape[0]:
        pairs = _pairs(preferred, other, weight)
        if S is not None:
            covariance = &S[0]
        with nogil:
            sums = loops_of[SparseOnlineLoops[real, index]](chosen).learn(
                number, &data[0], &indices[0], &indptr[0], pairs, parameter, covariance,
                                  now)
    model.add(preferred.shape[0], sums.updates, sums.loss)


def committee_dense(Model model, double[:, ::1] experts, double[::1] survivals, double[::1] survival,
                    const real[:, ::1] X, const int32_t[::1] preferred, const int32_t[::1] other,
                    const double[::1] weight):
    """Learn from pairs of dense rows with a perceptron, and keep its best earlier models as a committee."""
    cdef OnlineSums sums = OnlineSums(0, 0.0)
    cdef OnlinePairs pairs
    cdef OnlineModel now
    cdef Committee committee
    model.need_features(X.shape[1])
    model.need_committee(experts, survivals, survival)
    _need_pairs(preferred, other, weight, X.shape[0])
    now = model.now()
    if preferred.shape[0] and model.w.shape[0]:
        pairs = _pairs(preferred, other, weight)
        committee = Committee(&experts[0, 0], &survivals[0], survivals.shape[0], &survival[0])
        with nogil:
            sums = loops_of[DenseOnlineLoops[real]](chosen).committee(&X[0, 0], X.shape[1], pairs, committee, now)
    model.add(preferred.shape[0], sums.updates, sums.loss)


def committee_sparse(Model model, double[:, ::1] experts, double[::1] survivals, double[::1] survival,
                     const real[::1] data, const index[::1] indices, const index[::1] indptr, int64_t n_features,
                     const int32_t[::1] preferred, const int32_t[::1] other, const double[::1] weight):
    """As `committee_dense`, for CSR rows whose columns ascend."""
    cdef OnlineSums sums = OnlineSums(0, 0.0)
    cdef OnlinePairs pairs
    cdef OnlineModel now
    cdef Committee committee
    need_csr(data.shape[0], indices.shape[0], indptr.shape[0])
    model.need_features(n_features)
    model.need_committee(experts, survivals, survival)
    _need_pairs(preferred, other, weight, indptr.shape[0] - 1)
    now = model.now()
    if preferred.shape[0] and data.shape[0]:
        pairs = _pairs(preferred, other, weight)
        committee = Committee(&experts[0, 0], &survivals[0], survivals.shape[0], &survival[0])
        with nogil:
            sums = loops_of[SparseOnlineLoops[real, index]](chosen).committee(
                &data[0], &indices[0], &indptr[0], <int64_t>experts.shape[1], pairs, committee, now)
    model.add(preferred.shape[0], sums.updates, sums.loss)


def prank_dense(Model model, double[::1] thresholds, const real[:, ::1] X, const int32_t[::1] documents,
                const int32_t[::1] levels):
    """Learn from one document (a dense row of X) and its level after another, by PRank."""
    cdef int64_t updates = 0
    cdef OnlineModel now
    cdef double *limits = NULL
    model.need_features(X.shape[1])
    _need_documents(documents, levels, thresholds.shape[0], X.shape[0])
    now = model.now()
    if documents.shape[0] and model.w.shape[0]:
        if thresholds.shape[0]:
            limits = &thresholds[0]
        with nogil:
            updates = loops_of[DenseOnlineLoops[real]](chosen).prank(
                &X[0, 0], <int64_t>X.shape[1], &documents[0], &levels[0],
                                    <int64_t>documents.shape[0], limits, <int64_t>thresholds.shape[0], now)
    model.add(documents.shape[0], updates, 0.0)


def prank_sparse(Model model, double[::1] thresholds, const real[::1] data, const index[::1] indices,
                 const index[::1] indptr, int64_t n_features, const int32_t[::1] documents, const int32_t[::1] levels):
    """As `prank_dense`, for CSR rows."""
    cdef int64_t updates = 0
    cdef OnlineModel now
    cdef double *limits = NULL
    need_csr(data.shape[0], indices.shape[0], indptr.shape[0])
    model.need_features(n_features)
    _need_documents(documents, levels, thresholds.shape[0], indptr.shape[0] - 1)
    now = model.now()
    if documents.shape[0] and data.shape[0]:
        if thresholds.shape[0]:
            limits = &thresholds[0]
        with nogil:
            updates = loops_of[SparseOnlineLoops[real, index]](chosen).prank(
                &data[0], &indices[0], &indptr[0], &documents[0], &levels[0],
                                     <int64_t>documents.shape[0], limits, <int64_t>thresholds.shape[0], now)
    model.add(documents.shape[0], updates, 0.0)
