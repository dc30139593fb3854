// Maximizes the dual of a RankSVM over listed pairs by block coordinate ascent, one query after another. A visit to a query
// reads its rows twice, first to compute their scores and then to update w. Between these reads, all steps on its pairs need
// only the query's Gram matrix: Newton steps on all pairs together, if the query has many pairs and the loss is smooth, or
// steps of single pairs.
#ifndef RANKSVM_DUAL_DESCENT_HPP
#define RANKSVM_DUAL_DESCENT_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "dual_descent_loops.hpp"
#include "linear.hpp"
#include "portable.hpp"
#include "query_newton.hpp"

namespace ranksvm::RANKSVM_VARIANT {

// Maximum number of cycles over the pairs of a query in one visit. They end earlier once the largest slope of a cycle is
// at most kEnough times the largest slope of the first cycle.
constexpr int kCycles = 10;
constexpr double kEnough = 0.1;
// Each time that the Newton steps for a query fail, they pause for twice as many visits, at most kLongestPause.
constexpr int32_t kLongestPause = 64;

// The value, or 0 if its sign is opposite to `sign`.
RANKSVM_INLINE double of_sign(int8_t sign, double value) { return sign * value < 0.0 ? 0.0 : value; }

template <class Real>
struct DenseReader {
    const Real *X;
    int64_t n;

    DenseReader(const Real *X, int64_t n) : X(X), n(n) {}

    RANKSVM_INLINE_METHOD void scores(const int64_t *rows, int64_t start, int64_t stop, const double *w, double *out) const {
        dense_scores(OneBlock<Real>{X}, n, rows, start, stop, Where::kScattered, w, out);
    }
    RANKSVM_INLINE_METHOD void add(const int64_t *rows, int64_t start, int64_t stop, const double *u, double *w) const {
        dense_accumulate(OneBlock<Real>{X}, n, rows, start, stop, stop, u, w);
    }
    RANKSVM_INLINE_METHOD void clear(const int64_t *, int64_t, double *w) const { std::fill_n(w, n, 0.0); }
    RANKSVM_INLINE_METHOD void project(const int64_t *, int64_t, int64_t, const int8_t *signs, const double *z,
                                       double *w) const {
        for (int64_t f = 0; f < n; ++f) w[f] = of_sign(signs[f], z[f]);
    }
};

template <class Real, class Index>
struct SparseReader {
    const Real *data;
    const Index *indices;
    const Index *indptr;

    SparseReader(const Real *data, const Index *indices, const Index *indptr)
        : data(data), indices(indices), indptr(indptr) {}

    RANKSVM_INLINE_METHOD void scores(const int64_t *rows, int64_t start, int64_t stop, const double *w, double *out) const {
        sparse_scores(data, indices, indptr, rows, start, stop, w, out);
    }
    RANKSVM_INLINE_METHOD void add(const int64_t *rows, int64_t start, int64_t stop, const double *u, double *w) const {
        sparse_accumulate(data, indices, indptr, rows, start, stop, u, false, w);
    }
    RANKSVM_INLINE_METHOD void clear(const int64_t *rows, int64_t position, double *w) const {
        const int64_t row = row_at(rows, position);
        for (int64_t e = indptr[row]; e < indptr[row + 1]; ++e) w[indices[e]] = 0.0;
    }
    RANKSVM_INLINE_METHOD void project(const int64_t *rows, int64_t start, int64_t stop, const int8_t *signs, const double *z,
                                       double *w) const {
        for (int64_t position = start; position < stop; ++position) {
            const int64_t row = row_at(rows, position);
            for (int64_t e = indptr[row]; e < indptr[row + 1]; ++e) w[indices[e]] = of_sign(signs[indices[e]], z[indices[e]]);
        }
    }
};

// Computes the Gram matrix of each query in `order`: the products of its documents with each other. `work` has a zero for each
// feature, on entry and on return.
template <class Reader>
RANKSVM_INLINE void gram_matrices(const Reader &X, const DualPairs &pairs, const int64_t *order, int64_t n_visits,
                                  double *work) {
    const double one = 1.0;
    for (int64_t visit = 0; visit < n_visits; ++visit) {
        const int64_t q = order[visit], start = pairs.pointers[q], stop = pairs.pointers[q + 1], m = stop - start;
        double *G = pairs.grams + pairs.gram_pointers[q];
        for (int64_t i = 0; i < m; ++i) {
            X.add(pairs.rows, start + i, start + i + 1, &one, work);
            X.scores(pairs.rows, start + i, stop, work, G + i * m + i);
            for (int64_t j = i + 1; j < m; ++j) G[j * m + i] = G[i * m + j];
            X.clear(pairs.rows, start + i, work);
        }
    }
}

// Maximizes the dual exactly over one pair's alpha after another, in at most kCycles cycles over the pairs of the query. s has
// the scores of its documents, and b receives the changes of their coefficients; returns the sum of the absolute steps of
// alpha.
RANKSVM_INLINE double maximize_query(const DualPairs &pairs, int64_t q, int64_t m, double *alpha, double *RANKSVM_RESTRICT s,
                                     double *b) {
    const double *G = pairs.grams + pairs.gram_pointers[q];
    double first = 0.0, distance = 0.0;
    for (int cycle = 0; cycle < kCycles; ++cycle) {
        double largest = 0.0;
        for (int64_t p = pairs.pair_pointers[q]; p < pairs.pair_pointers[q + 1]; ++p) {
            const double upper = pairs.upper[p], ridge = pairs.ridge[p], before = alpha[p];
            if (upper == 0.0) continue;
            const int64_t i = pairs.preferred[p], j = pairs.other[p];
            const double slope = 1.0 - (s[i] - s[j]) - ridge * before;
            if ((before <= 0.0 && slope <= 0.0) || (before >= upper && slope >= 0.0)) continue;
            largest = std::max(largest, std::fabs(slope));
            const double curvature = G[i * m + i] + G[j * m + j] - 2.0 * G[i * m + j] + ridge;
            double after = slope > 0.0 ? upper : 0.0;  // the bound in this direction, if there is no curvature
            if (curvature > 0.0) after = std::min(std::max(before + slope / curvature, 0.0), upper);
            if (!std::isfinite(after)) continue;  // two equal documents, whose slope is round-off: no curvature and no bound
            const double step = after - before;
            distance += std::fabs(step);
            alpha[p] = after;
            b[i] += step;
            b[j] -= step;
            const double *g = G + i * m, *h = G + j * m;
            for (int64_t r = 0; r < m; ++r) s[r] += step * (g[r] - h[r]);
        }
        if (cycle == 0) first = largest;
        if (largest <= kEnough * first) break;
    }
    return distance;
}

// z is updated with alpha; w is z itself or, with signs, the projection of z onto the weights that have these signs. As a
// function of z, |w|^2 / 2 has the gradient w and at most the curvature of |z|^2 / 2, so steps that assume the curvature of
// |z|^2 / 2 never lower the dual.
template <class Reader>
RANKSVM_INLINE double ascend_queries(const Reader &X, const DualPairs &pairs, const int64_t *order, int64_t n_visits,
                                     double *alpha, double *z, const int8_t *signs, double *w) {
    Vector<double> s, b;
    QueryNewton newton(pairs);
    double distance = 0.0;
    for (int64_t visit = 0; visit < n_visits; ++visit) {
        const int64_t q = order[visit], start = pairs.pointers[q], stop = pairs.pointers[q + 1], m = stop - start;
        s.resize(static_cast<size_t>(m));
        b.assign(static_cast<size_t>(m), 0.0);
        X.scores(pairs.rows, start, stop, w, s.data());
        int32_t &pause = pairs.pauses[2 * q], &last_pause = pairs.pauses[2 * q + 1];
        double gone = -1.0;
        if (pause > 0) {
            --pause;
        } else if (newton.suits(q, m)) {
            gone = newton.maximize(q, m, alpha, s.data(), b.data());
            pause = last_pause = gone < 0.0 ? std::min(std::max(2 * last_pause, 1), kLongestPause) : 0;
        }
        if (gone < 0.0) gone = maximize_query(pairs, q, m, alpha, s.data(), b.data());
        if (gone > 0.0) {
            X.add(pairs.rows, start, stop, b.data(), z);
            if (signs != nullptr) X.project(pairs.rows, start, stop, signs, z, w);
        }
        distance += gone;
    }
    return distance;
}

template <class Real>
static void dense_grams(const Real *X, int64_t n, const DualPairs &pairs, const int64_t *order, int64_t n_visits,
                        double *work) {
    gram_matrices(DenseReader<Real>(X, n), pairs, order, n_visits, work);
}

template <class Real>
static double dense_ascent(const Real *X, int64_t n, const DualPairs &pairs, const int64_t *order, int64_t n_visits,
                           double *alpha, double *z, const int8_t *signs, double *w) {
    return ascend_queries(DenseReader<Real>(X, n), pairs, order, n_visits, alpha, z, signs, w);
}

template <class Real, class Index>
static void sparse_grams(const Real *data, const Index *indices, const Index *indptr, const DualPairs &pairs,
                         const int64_t *order, int64_t n_visits, double *work) {
    gram_matrices(SparseReader<Real, Index>(data, indices, indptr), pairs, order, n_visits, work);
}

template <class Real, class Index>
static double sparse_ascent(const Real *data, const Index *indices, const Index *indptr, const DualPairs &pairs,
                            const int64_t *order, int64_t n_visits, double *alpha, double *z, const int8_t *signs,
                            double *w) {
    return ascend_queries(SparseReader<Real, Index>(data, indices, indptr), pairs, order, n_visits, alpha, z, signs, w);
}

}  // namespace ranksvm::RANKSVM_VARIANT

#endif
