// Replaces the labels of each query by their ranks 0 .. k-1 (levels) among its distinct labels, and counts its pairs.
#ifndef RANKSVM_LEVELS_HPP
#define RANKSVM_LEVELS_HPP

#include <algorithm>
#include <cstdint>

#include "sorted_query.hpp"

namespace ranksvm::RANKSVM_VARIANT {

static void compress_levels(const int64_t *pointers, int64_t first_query, int64_t last_query, const double *y,
                            int32_t *levels, int32_t *n_levels, SortedQuery &query, const Workers &workers) {
    constexpr int kSmall = 64;  // whole labels 0 .. 63 take a bit mask, anything else a sort
    for (int64_t q = first_query; q < last_query; ++q) {
        const int64_t first = pointers[q], last = pointers[q + 1];
        uint64_t mask = 0;
        bool small = true;
        for (int64_t t = first; t < last && small; ++t) {
            const double label = y[t];
            small = label >= 0.0 && label < kSmall && label == static_cast<double>(static_cast<int>(label));
            if (small) mask |= uint64_t{1} << static_cast<int>(label);
        }
        if (small) {
            int32_t rank[kSmall], k = 0;
            for (int label = 0; label < kSmall && mask >> label; ++label) {
                rank[label] = k;
                k += static_cast<int32_t>((mask >> label) & 1);
            }
            for (int64_t t = first; t < last; ++t) levels[t] = rank[static_cast<int>(y[t])];
            n_levels[q] = k;
            continue;
        }
        const int64_t m = last - first;
        resize(query, m, 0, workers);
        const auto item = [&](int64_t i) { return Keyed{y[first + i], static_cast<int32_t>(i)}; };
        const auto put = [&](int64_t begin, const Keyed *sorted, int64_t size) {
            for (int64_t i = 0; i < size; ++i) {
                query.s[begin + i] = sorted[i].score;
                query.level[begin + i] = sorted[i].index;
            }
        };
        sort_documents(query.workers, query.sorting, m, item, put);
        int32_t rank = -1;
        for (int64_t i = 0; i < m; ++i) {
            rank += i == 0 || query.s[i] != query.s[i - 1];
            levels[first + query.level[i]] = rank;
        }
        n_levels[q] = rank + 1;
    }
}

// Number of pairs of each query, and their total weight, from sums over the documents below each level.
static void count_pairs(const Pairs &pairs, int64_t first_query, int64_t last_query, double *n_pairs, double *weight) {
    // of each level: its documents, and the sums of a, a g, b and b g
    enum { kDocuments, kA, kAg, kB, kBg, kSums };
    Vector<double> sums;
    for (int64_t q = first_query; q < last_query; ++q) {
        const size_t k = static_cast<size_t>(pairs.n_levels[q]);
        sums.assign(k * kSums, 0.0);
        for (int64_t t = pairs.pointers[q]; t < pairs.pointers[q + 1]; ++t) {
            double *own = sums.data() + pairs.levels[t] * kSums;
            const double a = pairs.preferred ? pairs.preferred[t] : 1.0, b = pairs.other ? pairs.other[t] : 1.0;
            const double g = pairs.gain ? pairs.gain[t] : 1.0;
            own[kDocuments] += 1.0;
            own[kA] += a, own[kAg] += a * g;
            own[kB] += b, own[kBg] += b * g;
        }
        double below[kSums] = {0.0};
        n_pairs[q] = weight[q] = 0.0;
        for (size_t level = 0; level < k; ++level) {
            const double *own = sums.data() + level * kSums;
            n_pairs[q] += own[kDocuments] * below[kDocuments];
            weight[q] += pairs.gain ? own[kAg] * below[kB] - own[kA] * below[kBg] : own[kA] * below[kB];
            for (int sum = 0; sum < kSums; ++sum) below[sum] = own[sum] + (pairs.adjacent ? 0.0 : below[sum]);
        }
    }
}

// Sorts the documents of each query by label, lowest first, and decides which queries have all their pairs visited: those with
// at most visit_limit * (14 + min(levels, 40)) pairs a document. This limit grows with the number of levels, as the time of a
// sweep does (benchmarks/results/sweep_levels.md). Returns how many of the queries that have a pair are swept.
static int64_t order_by_level(const Pairs &pairs, int64_t n_queries, const double *n_pairs, double visit_limit,
                              int32_t *by_level, uint8_t *visited) {
    Vector<int32_t> next;
    int64_t swept = 0;
    for (int64_t q = 0; q < n_queries; ++q) {
        const int64_t first = pairs.pointers[q], m = pairs.pointers[q + 1] - first;
        const int32_t *levels = pairs.levels + first;
        next.assign(static_cast<size_t>(pairs.n_levels[q]) + 1, 0);
        for (int64_t i = 0; i < m; ++i) ++next[levels[i] + 1];
        for (int32_t level = 0; level < pairs.n_levels[q]; ++level) next[level + 1] += next[level];
        for (int64_t i = 0; i < m; ++i) by_level[first + next[levels[i]]++] = static_cast<int32_t>(i);
        visited[q] = n_pairs[q] <= visit_limit * (14 + std::min(pairs.n_levels[q], 40)) * static_cast<double>(m);
        swept += pairs.n_levels[q] > 1 && !visited[q];
    }
    return swept;
}

}  // namespace ranksvm::RANKSVM_VARIANT

#endif
