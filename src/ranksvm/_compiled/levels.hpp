// Labels of each query replaced by their ranks 0 .. k-1 among the query's distinct labels, and its pairs counted.
#ifndef RANKSVM_LEVELS_HPP
#define RANKSVM_LEVELS_HPP

#include <algorithm>
#include <cstdint>

#include "sorted_query.hpp"

namespace ranksvm::RANKSVM_VARIANT {

static void compress_levels(const int64_t *pointers, int64_t first_query, int64_t last_query, const double *y,
                            int32_t *levels, int32_t *n_levels) {
    constexpr int kSmall = 64;  // whole labels 0 .. 63 take a bit mask, anything else a sort
    SortedQuery query;
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
        query.resize(m);
        double low = std::numeric_limits<double>::infinity(), high = -low;
        for (int64_t i = 0; i < m; ++i) {
            query.keyed[i] = {y[first + i], static_cast<int32_t>(i)};
            low = std::min(low, y[first + i]);
            high = std::max(high, y[first + i]);
        }
        sort_keyed(query.keyed, query.spread, m, low, high, query.level.data(), query.start[0].data());
        int32_t rank = -1;
        for (int64_t i = 0; i < m; ++i) {
            rank += i == 0 || query.keyed[i].score != query.keyed[i - 1].score;
            levels[first + query.keyed[i].index] = rank;
        }
        n_levels[q] = rank + 1;
    }
}

// Number of pairs of each query, and their total weight: level by level, the documents below it.
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

}  // namespace ranksvm::RANKSVM_VARIANT

#endif
