// Hessians of a query's pairs as D'D = X' L X with rows D, where L is the Laplacian of the active pairs (those at which the
// loss is curved). This takes half the multiplications of a product of two matrices, and no term is negative.
//
// Two documents: one row, their difference.
//
// If all pairs of a query are active, as they are at w = 0, and all have the weight c, then
// L = diag(d) - c (1 1' - sum over levels of 1_k 1_k'), with d_i = c times the number of documents of other levels. With x_i
// centered by query, X'1 = 0, so that X' L X = sum d_i x_i x_i' + c * sum over levels of S_k S_k', where S_k is the sum of
// the x_i of level k.
//
// Otherwise, take the documents j of a level k by ascending score: each loses to all documents of higher levels that the one
// before it loses to, and maybe to more, so these sets are nested. With A the weight and M the mean of such a set (a gap of
// gains is part of a_i, because it is the same for all j of a level),
//     sum of a_i b_j (x_i - x_j) (x_i - x_j)' over the set = b_j A (x_j - M) (x_j - M)' + b_j (scatter of the set about M),
// and the scatter grows by A a_i / (A + a_i) (x_i - M) (x_i - M)' with each document i. So there is one row for each j, and one
// for each i and each k below its level, with the weight of all j to which i is preferred. With many levels these are too many.
#ifndef RANKSVM_SQUARED_ROWS_HPP
#define RANKSVM_SQUARED_ROWS_HPP

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "center_queries.hpp"
#include "hessian_rows.hpp"
#include "pairs.hpp"
#include "portable.hpp"
#include "query_order.hpp"
#include "sorted_query.hpp"

namespace ranksvm::RANKSVM_VARIANT {

// Nested sets are of use if they give at most this number of rows D for each document. (A Hessian of MQ2008, with 46 columns of
// float32, takes 70 to 94 ns a document with nested sets, which give 0.94 rows, and 114 to 122 with a product of two matrices,
// which takes twice the multiplications. With 136 columns and 1.8 rows of nested sets, it takes 677 to 699 and 687 to 701.)
constexpr double kMostNestedRows = 1.7;

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
        if (!(std::fabs(missing) < 0.5 * weight)) return false;  // also if it is NaN
    }
    return true;
}

// Whether a query has two documents, whose scores are numbers.
inline bool is_pair(const Pairs &pairs, const double *degrees, int64_t q) {
    const int64_t first = pairs.pointers[q];
    return pairs.pointers[q + 1] - first == 2 && degrees[first] == degrees[first];
}

// An upper bound of the number of rows of nested sets.
inline double nested_rows_at_most(const Pairs &pairs, const Vector<double> &counts) {
    double n_rows = 0.0, above = 0.0;
    for (size_t level = counts.size() - 1; level-- > 0;) {
        above = pairs.adjacent ? counts[level + 1] : above + counts[level + 1];
        n_rows += counts[level] + above;
    }
    return n_rows;
}

// Writes the row of two documents after the last one that was written; returns the place after it.
template <class Real>
static Real *row_of_pair(double degree, const Real *X, int64_t n, double factor, Real *row) {
    if (!(degree > 0.0)) return row;
    const Real root = static_cast<Real>(std::sqrt(factor * degree));
    for (int64_t f = 0; f < n; ++f) row[f] = root * (X[f] - X[n + f]);
    return row + n;
}

// Writes the rows of m documents all of whose pairs have one weight.
template <class Real>
static Real *rows_of_complete_query(const int32_t *levels, int64_t m, const Vector<double> &counts, const Real *X, int64_t n,
                                    double weight, Real *row, Vector<Real> &memory) {
    const int64_t k = static_cast<int64_t>(counts.size());
    memory.resize(static_cast<size_t>(n));
    Real *RANKSVM_RESTRICT mean = memory.data();
    // relative to the first document, so that an offset common to all costs no digits
    Real *sums = row + m * n;
    std::fill_n(sums, k * n, Real(0));
    for (int64_t t = 0; t < m; ++t) {
        const Real *x = X + t * n;
        Real *RANKSVM_RESTRICT sum = sums + levels[t] * n;
        for (int64_t f = 0; f < n; ++f) sum[f] += x[f] - X[f];
    }
    std::fill_n(mean, n, Real(0));
    for (int64_t level = 0; level < k; ++level)
        for (int64_t f = 0; f < n; ++f) mean[f] += sums[level * n + f];
    for (int64_t f = 0; f < n; ++f) mean[f] /= static_cast<Real>(m);
    for (int64_t t = 0; t < m; ++t, row += n) {
        const double others = static_cast<double>(m) - counts[static_cast<size_t>(levels[t])];
        const Real scale = static_cast<Real>(std::sqrt(weight * others)), *x = X + t * n;
        Real *RANKSVM_RESTRICT out = row;
        for (int64_t f = 0; f < n; ++f) out[f] = scale * ((x[f] - X[f]) - mean[f]);
    }
    const Real root = static_cast<Real>(std::sqrt(weight));
    for (int64_t level = 0; level < k; ++level, row += n) {
        const Real size = static_cast<Real>(counts[static_cast<size_t>(level)]);
        for (int64_t f = 0; f < n; ++f) row[f] = root * (row[f] - size * mean[f]);
    }
    return row;
}

// For each level: the mean of the documents of higher levels that have been visited, and the weight of its own documents that
// are still to come.
template <class Real>
struct NestedSets {
    Vector<Real> means;               // of each level, n numbers
    Vector<double> met, left, gains;  // of each level: weights, and the gain of its documents
};

// Writes the rows of nested sets, from documents in ascending order of their scores: the p-th loses to the documents
// of higher levels among the first outer[p].
template <class Real>
static Real *rows_of_nested_sets(const SortedQuery &query, const int32_t *order, const int32_t *outer, bool adjacent,
                                 const Real *X, int64_t n, double factor, Real *row, NestedSets<Real> &sets) {
    const int32_t top = query.n_levels - 1;
    sets.means.resize(static_cast<size_t>(top * n));
    sets.met.assign(static_cast<size_t>(top), 0.0);
    sets.left.assign(static_cast<size_t>(top), 0.0);
    sets.gains.assign(static_cast<size_t>(top), 0.0);
    Real *means = sets.means.data();
    double *met = sets.met.data(), *left = sets.left.data(), *gains = sets.gains.data();
    const auto root_of = [](double weight) { return static_cast<Real>(std::sqrt(weight)); };
    for (int64_t p = 0; p < query.m; ++p) {
        const int32_t k = query.level[p];
        if (k == top) continue;
        left[k] += query.weighted ? query.b[p] : 1.0;
        if (query.gaps) gains[k] = query.g[p];
    }
    int64_t next = 0;
    for (int64_t p = 0; p < query.m; ++p) {
        for (; next < outer[p]; ++next) {
            const int32_t level = query.level[next];
            const Real *x = X + order[next] * n;
            const double own = query.weighted ? query.a[next] : 1.0;
            for (int32_t k = adjacent ? std::max(0, level - 1) : 0; k < level; ++k) {
                const double a = query.gaps ? own * (query.g[next] - gains[k]) : own;
                if (!(left[k] > 0.0 && a > 0.0)) continue;  // preferred to no document of level k that is still to come
                Real *RANKSVM_RESTRICT mean = means + k * n;
                const double before = met[k];
                met[k] += a;
                if (before == 0.0) {
                    std::copy_n(x, n, mean);
                    continue;
                }
                const Real root = root_of(factor * left[k] * (before * a / met[k])), share = static_cast<Real>(a / met[k]);
                Real *RANKSVM_RESTRICT out = row;
                for (int64_t f = 0; f < n; ++f) {
                    const Real difference = x[f] - mean[f];
                    out[f] = root * difference;
                    mean[f] += share * difference;
                }
                row += n;
            }
        }
        const int32_t k = query.level[p];
        if (k == top) continue;
        const double b = query.weighted ? query.b[p] : 1.0, weight = factor * b * met[k];
        left[k] -= b;
        if (!(weight > 0.0)) continue;
        const Real root = root_of(weight), *x = X + order[p] * n, *mean = means + k * n;
        Real *RANKSVM_RESTRICT out = row;
        for (int64_t f = 0; f < n; ++f) out[f] = root * (x[f] - mean[f]);
        row += n;
    }
    return row;
}

// Rows D with D'D = factor * X' L X over a range of queries; there is room for twice the rows of X, which may be centered by
// query. Returns their number, or kNotSquared if they would not be less work than a product of two matrices.
template <class Real>
static int64_t squared_rows(const Pairs &pairs, const PairState &state, int64_t first_query, int64_t last_query, Real *X_range,
                            int64_t n, double factor, Real *D, SortedQuery &query) {
    enum Kind : uint8_t { kNoPairs, kPair, kComplete, kNested };
    const bool alike = !pairs.adjacent && !pairs.gain;
    Vector<uint8_t> kinds(static_cast<size_t>(last_query - first_query));
    Vector<double> counts;
    double n_nested = 0.0, n_rows_of_nested = 0.0;
    for (int64_t q = first_query; q < last_query; ++q) {
        const int64_t first = pairs.pointers[q], m = pairs.pointers[q + 1] - first;
        uint8_t &kind = kinds[static_cast<size_t>(q - first_query)];
        if (pairs.n_levels[q] < 2) {
            kind = kNoPairs;
            continue;
        }
        if (is_pair(pairs, state.degrees, q)) {
            kind = kPair;
            continue;
        }
        count_levels(pairs, q, counts);
        if (alike && is_complete(pairs, state.degrees, q, counts)) {
            kind = kComplete;
            continue;
        }
        if (state.ring || state.degrees[first] != state.degrees[first]) return kNotSquared;
        kind = kNested;
        n_nested += static_cast<double>(m);
        n_rows_of_nested += nested_rows_at_most(pairs, counts);
    }
    if (n_rows_of_nested > kMostNestedRows * n_nested) return kNotSquared;
    Vector<Real> memory;
    NestedSets<Real> sets;
    QueryOrder sorted;
    Real *row = D;
    for (int64_t q = first_query; q < last_query; ++q) {
        const uint8_t kind = kinds[static_cast<size_t>(q - first_query)];
        const int64_t first = pairs.pointers[q], m = pairs.pointers[q + 1] - first;
        Real *X = X_range + (first - pairs.pointers[first_query]) * n;
        if (kind == kPair) {
            row = row_of_pair(state.degrees[first], X, n, factor, row);
        } else if (kind == kComplete) {
            count_levels(pairs, q, counts);
            const double weight = factor * (pairs.preferred ? pairs.preferred[first] * pairs.other[first] : 1.0);
            row = rows_of_complete_query(pairs.levels + first, m, counts, X, n, weight, row, memory);
        } else if (kind == kNested) {
            center_queries(pairs.pointers, q, q + 1, n, X);
            sorted.find(pairs, state, q, query);
            row = rows_of_nested_sets(query, sorted.order, sorted.outer, pairs.adjacent != 0, X, n, factor, row, sets);
        }
    }
    return (row - D) / n;
}

}  // namespace ranksvm::RANKSVM_VARIANT

#endif
