// Hessians of queries of two documents, and of those of which every pair is active, as at w = 0 they all are: squares of rows,
// without a sweep.
//
// Where each pair of a query has the weight c, its Laplacian is L = D - c (1 1' - sum over levels of 1_k 1_k'), with D_i = c
// times the number of documents of other levels. With x_i centred by query, X'1 = 0, so that
// X' L X = sum D_i x_i x_i' + c * sum over levels of S_k S_k', S_k the sum of the x_i of level k. No term is negative.
#ifndef RANKSVM_COMPLETE_QUERIES_HPP
#define RANKSVM_COMPLETE_QUERIES_HPP

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "hessian_rows.hpp"
#include "pairs.hpp"
#include "portable.hpp"

namespace ranksvm::RANKSVM_VARIANT {

// Number of documents of each level of a query.
inline void count_levels(const Pairs &pairs, int64_t q, Vector<double> &counts) {
    counts.assign(static_cast<size_t>(pairs.n_levels[q]), 0.0);
    for (int64_t t = pairs.pointers[q]; t < pairs.pointers[q + 1]; ++t) counts[static_cast<size_t>(pairs.levels[t])] += 1.0;
}

// Whether all pairs of a query are active and weigh the same.
inline bool is_complete(const Pairs &pairs, const double *degrees, int64_t q, const Vector<double> &counts) {
    const int64_t first = pairs.pointers[q], last = pairs.pointers[q + 1];
    const double *a = pairs.preferred, *b = pairs.other;
    const double weight = a ? a[first] * b[first] : 1.0, m = static_cast<double>(last - first);
    for (int64_t t = first; t < last; ++t) {
        if (a && (a[t] != a[first] || b[t] != b[first])) return false;
        // less than half a pair is round-off
        const double missing = weight * (m - counts[static_cast<size_t>(pairs.levels[t])]) - degrees[t];
        if (!(std::fabs(missing) < 0.5 * weight)) return false;  // so too for NaN
    }
    return true;
}

// Whether a query has two documents, whose scores are numbers.
inline bool is_pair(const Pairs &pairs, const double *degrees, int64_t q) {
    const int64_t first = pairs.pointers[q];
    return pairs.pointers[q + 1] - first == 2 && degrees[first] == degrees[first];
}

// Rows D with D'D = factor * X' L X over a range of queries, of two documents or complete ones; there is room for twice the
// rows of X. Returns how many there are, kNotSquared if there is a query of another kind.
template <class Real>
static int64_t squared_rows(const Pairs &pairs, const double *degrees, int64_t first_query, int64_t last_query,
                            const Real *X_range, int64_t n, double factor, Real *D) {
    const bool alike = !pairs.adjacent && !pairs.gain;
    Vector<double> counts;
    for (int64_t q = first_query; q < last_query; ++q) {
        if (pairs.n_levels[q] < 2 || is_pair(pairs, degrees, q)) continue;
        if (!alike) return kNotSquared;
        count_levels(pairs, q, counts);
        if (!is_complete(pairs, degrees, q, counts)) return kNotSquared;
    }
    Vector<Real> memory(static_cast<size_t>(n)), scales;
    Real *RANKSVM_RESTRICT mean = memory.data();
    Real *row = D;
    for (int64_t q = first_query; q < last_query; ++q) {
        const int32_t k = pairs.n_levels[q];
        if (k < 2) continue;
        const int64_t first = pairs.pointers[q], m = pairs.pointers[q + 1] - first;
        const Real *X = X_range + (first - pairs.pointers[first_query]) * n;
        if (is_pair(pairs, degrees, q)) {
            if (degrees[first] > 0.0) {
                const Real root = static_cast<Real>(std::sqrt(factor * degrees[first]));
                for (int64_t f = 0; f < n; ++f) row[f] = root * (X[f] - X[n + f]);
                row += n;
            }
            continue;
        }
        count_levels(pairs, q, counts);
        const double weight = factor * (pairs.preferred ? pairs.preferred[first] * pairs.other[first] : 1.0);
        // relative to the first document, so that an offset common to all costs no digits
        Real *sums = row + m * n;
        std::fill_n(sums, k * n, Real(0));
        for (int64_t t = 0; t < m; ++t) {
            const Real *x = X + t * n;
            Real *RANKSVM_RESTRICT sum = sums + pairs.levels[first + t] * n;
            for (int64_t f = 0; f < n; ++f) sum[f] += x[f] - X[f];
        }
        std::fill_n(mean, n, Real(0));
        for (int32_t level = 0; level < k; ++level)
            for (int64_t f = 0; f < n; ++f) mean[f] += sums[level * n + f];
        for (int64_t f = 0; f < n; ++f) mean[f] /= static_cast<Real>(m);
        scales.resize(static_cast<size_t>(k));
        for (size_t level = 0; level < scales.size(); ++level)
            scales[level] = static_cast<Real>(std::sqrt(weight * (static_cast<double>(m) - counts[level])));
        for (int64_t t = 0; t < m; ++t, row += n) {
            const Real scale = scales[static_cast<size_t>(pairs.levels[first + t])], *x = X + t * n;
            Real *RANKSVM_RESTRICT out = row;
            for (int64_t f = 0; f < n; ++f) out[f] = scale * ((x[f] - X[f]) - mean[f]);
        }
        const Real root = static_cast<Real>(std::sqrt(weight));
        for (int32_t level = 0; level < k; ++level, row += n) {
            const Real size = static_cast<Real>(counts[static_cast<size_t>(level)]);
            for (int64_t f = 0; f < n; ++f) row[f] = root * (row[f] - size * mean[f]);
        }
    }
    return (row - D) / n;
}

}  // namespace ranksvm::RANKSVM_VARIANT

#endif
