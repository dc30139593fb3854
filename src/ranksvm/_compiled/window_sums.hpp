// Window sums: for every document i, the sums over upper(i) and over lower(i) of kSums values each, for each of kWindows
// windows. They lie in query.columns as [document][upper, lower][window][sum].
#ifndef RANKSVM_WINDOW_SUMS_HPP
#define RANKSVM_WINDOW_SUMS_HPP

#include <algorithm>
#include <cstdint>

#include "level_split.hpp"
#include "portable.hpp"
#include "sorted_query.hpp"

namespace ranksvm::RANKSVM_VARIANT {

// The sums over upper(i) come from running sums from the front, those over lower(i) from running sums from the back. If they
// were totals minus running sums, one score far from all others, in no violating pair, would cost all sums their digits.

// Direct form, O(m k): the running sums of the documents of level >= c (from the front), then < c (from the back), for
// every c, kept at every position of the sorted order, in vectors of 8 levels. No branch depends on the data.
template <int kSums>
RANKSVM_INLINE void sums_from_front(int64_t m, const int32_t *level, const double *values, int64_t first_level,
                                    int64_t row, double *RANKSVM_RESTRICT table) {
    double total[kSums][8] = {{0.0}};
    for (int64_t p = 0; p < m; ++p, table += row) {
        const double own = static_cast<double>(level[p] - first_level);
        for (int sum = 0; sum < kSums; ++sum) {
            const double x = values[p * kSums + sum];
            for (int c = 0; c < 8; ++c) {
                table[sum * 8 + c] = total[sum][c];
                total[sum][c] += static_cast<double>(c) <= own ? x : 0.0;
            }
        }
    }
    for (int sum = 0; sum < kSums; ++sum)
        for (int c = 0; c < 8; ++c) table[sum * 8 + c] = total[sum][c];
}

template <int kSums>
RANKSVM_INLINE void sums_from_back(int64_t m, const int32_t *level, const double *values, int64_t first_level,
                                   int64_t row, double *RANKSVM_RESTRICT table) {
    double total[kSums][8] = {{0.0}};
    table += m * row;
    for (int sum = 0; sum < kSums; ++sum)
        for (int c = 0; c < 8; ++c) table[sum * 8 + c] = 0.0;
    for (int64_t p = m - 1; p >= 0; --p) {
        table -= row;
        const double own = static_cast<double>(level[p] - first_level);
        for (int sum = 0; sum < kSums; ++sum) {
            const double x = values[p * kSums + sum];
            for (int c = 0; c < 8; ++c) {
                total[sum][c] += static_cast<double>(c) > own ? x : 0.0;
                table[sum * 8 + c] = total[sum][c];
            }
        }
    }
}

template <int kSums, int kWindows>
RANKSVM_INLINE void window_sums_direct(SortedQuery &query, const double *preferred, const double *other, double *out) {
    // a row of the table: for every group of 8 levels, kSums times 8 running sums
    const int64_t m = query.m, group_size = 8 * kSums, row = (query.n_levels + 8) / 8 * group_size;
    double *table = room_for<double>(query.table, (m + 1) * row);
    const int32_t *level = query.level;
    for (int64_t at = 0; at < row; at += group_size)
        sums_from_front<kSums>(m, level, preferred, at / kSums, row, table + at);
    for (int64_t i = 0; i < m; ++i) {
        const int64_t above = level[i] + 1, column = above / 8 * group_size + above % 8;
        for (int which = 0; which < kWindows; ++which) {
            const double *within = table + query.window[which][i] * row + column;
            for (int sum = 0; sum < kSums; ++sum) out[(2 * i * kWindows + which) * kSums + sum] = within[sum * 8];
        }
    }
    for (int64_t at = 0; at < row; at += group_size)
        sums_from_back<kSums>(m, level, other, at / kSums, row, table + at);
    for (int64_t i = 0; i < m; ++i) {
        const int64_t column = level[i] / 8 * group_size + level[i] % 8;
        for (int which = 0; which < kWindows; ++which) {
            const double *beyond = table + query.start[which][i] * row + column;
            for (int sum = 0; sum < kSums; ++sum) out[((2 * i + 1) * kWindows + which) * kSums + sum] = beyond[sum * 8];
        }
    }
}

// Pairs of neighboring levels only, O(m): one running sum for each level suffices. The work is divided into one part for each
// of the two sides of each window.
template <int kSums, int kWindows>
RANKSVM_INLINE void window_sums_adjacent(SortedQuery &query, const double *preferred, const double *other, double *out) {
    const int64_t m = query.m, size = static_cast<int64_t>(query.n_levels) * kSums;
    const int32_t *level = query.level;
    double *memory = room_for<double>(query.table, 2 * kWindows * size);
    for_each(query.workers, 2 * kWindows, [&](int64_t part) {
        const int64_t which = part / 2;
        const int32_t *window = query.window[which], *start = query.start[which];
        double *running = memory + part * size;
        std::fill_n(running, size, 0.0);
        if (part % 2 == 0)
            for (int64_t i = 0, p = 0; i < m; ++i) {
                for (; p < window[i]; ++p)
                    for (int sum = 0; sum < kSums; ++sum) running[level[p] * kSums + sum] += preferred[p * kSums + sum];
                const bool any = level[i] + 1 < query.n_levels;
                double *own = out + (2 * i * kWindows + which) * kSums;
                for (int sum = 0; sum < kSums; ++sum) own[sum] = any ? running[(level[i] + 1) * kSums + sum] : 0.0;
            }
        else
            for (int64_t i = m - 1, p = m; i >= 0; --i) {
                while (p > start[i]) {
                    --p;
                    for (int sum = 0; sum < kSums; ++sum) running[level[p] * kSums + sum] += other[p * kSums + sum];
                }
                double *own = out + ((2 * i + 1) * kWindows + which) * kSums;
                for (int sum = 0; sum < kSums; ++sum)
                    own[sum] = level[i] > 0 ? running[(level[i] - 1) * kSums + sum] : 0.0;
            }
    });
}

// Longer lists are split: the table of the direct form would not fit into the cache.
constexpr int64_t kDirectDocuments = 4096;

template <int kSums, int kWindows>
RANKSVM_NOINLINE static const double *window_sums(const Pairs &pairs, SortedQuery &query, const double *preferred,
                                         const double *other) {
    double *out = room_for<double>(query.columns, 2 * kWindows * kSums * query.m);
    if (pairs.adjacent)
        window_sums_adjacent<kSums, kWindows>(query, preferred, other, out);
    else if (query.n_levels <= pairs.direct_limit && query.m <= kDirectDocuments)
        window_sums_direct<kSums, kWindows>(query, preferred, other, out);
    else
        LevelSplit<kSums, kWindows>(query, preferred, other, out).sum();
    return out;
}

}  // namespace ranksvm::RANKSVM_VARIANT

#endif
