// Window sums: for every document i, the sums over upper(i) and over lower(i) of kSums values each, for each of kWindows
// windows. They lie in query.columns as [document][upper, lower][window][sum].
#ifndef RANKSVM_WINDOW_SUMS_HPP
#define RANKSVM_WINDOW_SUMS_HPP

#include <algorithm>
#include <cstdint>

#include "portable.hpp"
#include "sorted_query.hpp"

namespace ranksvm::RANKSVM_VARIANT {

// The sums over upper(i) are read off running sums from the front, those over lower(i) off running sums from the back:
// as total less running sum, a score far off, in no violating pair, would cost all others their digits.

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
    double *table = at_least(query.table, (m + 1) * row);
    const int32_t *level = query.level.data();
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

// Pairs of neighbouring levels only, O(m): one running sum a level will do.
template <int kSums, int kWindows>
RANKSVM_INLINE void window_sums_adjacent(SortedQuery &query, const double *preferred, const double *other, double *out) {
    const int64_t m = query.m, size = static_cast<int64_t>(query.n_levels) * kSums;
    const int32_t *level = query.level.data();
    double *running = at_least(query.table, size);
    for (int which = 0; which < kWindows; ++which) {
        const int32_t *window = query.window[which], *start = query.start[which].data();
        std::fill_n(running, size, 0.0);
        for (int64_t i = 0, p = 0; i < m; ++i) {
            for (; p < window[i]; ++p)
                for (int sum = 0; sum < kSums; ++sum) running[level[p] * kSums + sum] += preferred[p * kSums + sum];
            const bool any = level[i] + 1 < query.n_levels;
            double *own = out + (2 * i * kWindows + which) * kSums;
            for (int sum = 0; sum < kSums; ++sum) own[sum] = any ? running[(level[i] + 1) * kSums + sum] : 0.0;
        }
        std::fill_n(running, size, 0.0);
        for (int64_t i = m - 1, p = m; i >= 0; --i) {
            while (p > start[i]) {
                --p;
                for (int sum = 0; sum < kSums; ++sum) running[level[p] * kSums + sum] += other[p * kSums + sum];
            }
            double *own = out + ((2 * i + 1) * kWindows + which) * kSums;
            for (int sum = 0; sum < kSums; ++sum) own[sum] = level[i] > 0 ? running[(level[i] - 1) * kSums + sum] : 0.0;
        }
    }
}

// Many-level form, O(m log k): part the documents by level into kFan groups, each in score order. All pairs between the
// groups are counted by the running sums of the groups, read at the windows; then each group by itself, its windows
// renumbered. No branch depends on the data; a group of few documents is summed pair by pair.
template <int kTotals, int kWindows>
struct SplitItem {
    int32_t id, level, window[kWindows], start[kWindows];
    double values[kTotals];  // as the preferred document (the first kSums) and as the other (the last kSums)
};

template <int kFan, int kSums>
struct RunningSums {
    double sums[kSums][kFan];  // of the documents before this position in group c and above; then, of those from this
                               // position on in groups below c
    int32_t count[kFan];       // of the documents before this position in group c
};

constexpr int64_t kPairwiseDocuments = 12;

template <int kSums, int kTotals, int kWindows>
RANKSVM_INLINE void sum_pairwise(const SplitItem<kTotals, kWindows> *items, int64_t m, double *out) {
    for (int64_t i = 0; i < m; ++i)
        for (int which = 0; which < kWindows; ++which) {
            double upper[kSums] = {0.0}, lower[kSums] = {0.0};
            for (int64_t p = 0; p < m; ++p) {
                const double above = (items[p].level > items[i].level) & (p < items[i].window[which]);
                const double below = (items[p].level < items[i].level) & (p >= items[i].start[which]);
                for (int sum = 0; sum < kSums; ++sum) {
                    upper[sum] += above * items[p].values[sum];
                    lower[sum] += below * items[p].values[kTotals - kSums + sum];
                }
            }
            double *own = out + (items[i].id * 2 * kWindows + which) * kSums;
            for (int sum = 0; sum < kSums; ++sum) own[sum] += upper[sum], own[kWindows * kSums + sum] += lower[sum];
        }
}

// One parting by (level - low) >> shift; counts[c] receives the size of group c.
template <int kFan, int kSums, int kTotals, int kWindows>
RANKSVM_INLINE void part_by_level(const SplitItem<kTotals, kWindows> *items, SplitItem<kTotals, kWindows> *parted,
                                  void *memory, int64_t m, int32_t low, int shift, int32_t *counts, double *out) {
    using Running = RunningSums<kFan, kSums>;
    Running *running = static_cast<Running *>(memory);
    double total[kSums][kFan] = {{0.0}};
    int32_t count[kFan] = {0};
    for (int64_t p = 0; p <= m; ++p) {
        for (int sum = 0; sum < kSums; ++sum)
            for (int c = 0; c < kFan; ++c) running[p].sums[sum][c] = total[sum][c];
        for (int c = 0; c < kFan; ++c) running[p].count[c] = count[c];
        if (p == m) break;
        const int32_t group = (items[p].level - low) >> shift;
        for (int sum = 0; sum < kSums; ++sum) {
            const double x = items[p].values[sum];
            for (int c = 0; c < kFan; ++c) total[sum][c] += c <= group ? x : 0.0;
        }
        for (int c = 0; c < kFan; ++c) count[c] += c == group;
    }
    int32_t offset[kFan], position = 0;
    for (int c = 0; c < kFan; ++c) {
        offset[c] = position;
        position += counts[c] = count[c];
    }
    for (int64_t i = 0; i < m; ++i) {
        const SplitItem<kTotals, kWindows> &item = items[i];
        const int32_t group = (item.level - low) >> shift, above = (group + 1) % kFan;
        SplitItem<kTotals, kWindows> &moved = parted[offset[group] + running[i].count[group]];
        moved = item;
        for (int which = 0; which < kWindows; ++which) {
            const Running &window = running[item.window[which]];
            double *own = out + (item.id * 2 * kWindows + which) * kSums;
            for (int sum = 0; sum < kSums; ++sum) own[sum] += above ? window.sums[sum][above] : 0.0;
            moved.window[which] = window.count[group];
            moved.start[which] = running[item.start[which]].count[group];
        }
    }
    for (int sum = 0; sum < kSums; ++sum)
        for (int c = 0; c < kFan; ++c) total[sum][c] = running[m].sums[sum][c] = 0.0;
    for (int64_t p = m - 1; p >= 0; --p) {
        const int32_t group = (items[p].level - low) >> shift;
        for (int sum = 0; sum < kSums; ++sum) {
            const double x = items[p].values[kTotals - kSums + sum];
            for (int c = 0; c < kFan; ++c) {
                total[sum][c] += c > group ? x : 0.0;
                running[p].sums[sum][c] = total[sum][c];
            }
        }
    }
    for (int64_t i = 0; i < m; ++i) {
        const int32_t group = (items[i].level - low) >> shift;
        for (int which = 0; which < kWindows; ++which) {
            double *own = out + ((items[i].id * 2 + 1) * kWindows + which) * kSums;
            const Running &beyond = running[items[i].start[which]];
            for (int sum = 0; sum < kSums; ++sum) own[sum] += beyond.sums[sum][group];
        }
    }
}

// Parts beyond this size take the binary parting: the running sums of the eightfold one would leave the cache.
constexpr int64_t kEightfoldDocuments = 16384;

template <int kSums, int kTotals, int kWindows>
RANKSVM_INLINE void window_sums_split(SplitItem<kTotals, kWindows> *items, SplitItem<kTotals, kWindows> *spare,
                                      void *memory, int64_t m, int32_t n_levels, double *out) {
    struct Part {
        int64_t first, size;
        int32_t low, n_levels;
        bool in_spare;
    };
    Part stack[8 * 32];
    int depth = 0;
    stack[depth++] = {0, m, 0, n_levels, false};
    while (depth > 0) {
        const Part part = stack[--depth];
        if (part.size < 2 || part.n_levels < 2) continue;
        SplitItem<kTotals, kWindows> *here = (part.in_spare ? spare : items) + part.first;
        SplitItem<kTotals, kWindows> *there = (part.in_spare ? items : spare) + part.first;
        if (part.size <= kPairwiseDocuments) {
            sum_pairwise<kSums>(here, part.size, out);
            continue;
        }
        const int fan = part.size > kEightfoldDocuments ? 2 : 8;
        int shift = 0;
        while ((fan << shift) < part.n_levels) ++shift;
        int32_t counts[8];
        if (fan == 2)
            part_by_level<2, kSums>(here, there, memory, part.size, part.low, shift, counts, out);
        else
            part_by_level<8, kSums>(here, there, memory, part.size, part.low, shift, counts, out);
        int64_t first = part.first;
        for (int c = 0; c < fan && (c << shift) < part.n_levels; ++c) {
            const int32_t left = part.n_levels - (c << shift);
            stack[depth++] = {first, counts[c], part.low + (c << shift), std::min(1 << shift, left), !part.in_spare};
            first += counts[c];
        }
    }
}

template <int kSums, int kTotals, int kWindows>
RANKSVM_INLINE void window_sums_many_levels(SortedQuery &query, const double *preferred, const double *other,
                                            double *out) {
    using Item = SplitItem<kTotals, kWindows>;
    const int64_t m = query.m;
    const size_t bytes = 2 * m * sizeof(Item) + (m + 1) * sizeof(RunningSums<2, kSums>) +
                         (std::min(m, kEightfoldDocuments) + 1) * sizeof(RunningSums<8, kSums>);
    Item *items = reinterpret_cast<Item *>(at_least(query.split, static_cast<int64_t>(bytes / sizeof(double) + 1)));
    Item *spare = items + m;
    for (int64_t i = 0; i < m; ++i) {
        items[i].id = static_cast<int32_t>(i);
        items[i].level = query.level[i];
        for (int which = 0; which < kWindows; ++which) {
            items[i].window[which] = query.window[which][i];
            items[i].start[which] = query.start[which][i];
        }
        for (int sum = 0; sum < kSums; ++sum) {
            items[i].values[sum] = preferred[i * kSums + sum];
            items[i].values[kTotals - kSums + sum] = other[i * kSums + sum];
        }
    }
    std::fill_n(out, 2 * kWindows * kSums * m, 0.0);
    window_sums_split<kSums>(items, spare, static_cast<void *>(spare + m), m, query.n_levels, out);
}

// Longer lists are split: the direct form's table would leave the cache.
constexpr int64_t kDirectDocuments = 4096;

template <int kSums, int kWindows>
RANKSVM_INLINE const double *window_sums(const Pairs &pairs, SortedQuery &query, const double *preferred,
                                         const double *other) {
    double *out = at_least(query.columns, 2 * kWindows * kSums * query.m);
    if (pairs.adjacent)
        window_sums_adjacent<kSums, kWindows>(query, preferred, other, out);
    else if (query.n_levels <= pairs.direct_limit && query.m <= kDirectDocuments)
        window_sums_direct<kSums, kWindows>(query, preferred, other, out);
    else if (preferred == other)
        window_sums_many_levels<kSums, kSums, kWindows>(query, preferred, other, out);
    else
        window_sums_many_levels<kSums, 2 * kSums, kWindows>(query, preferred, other, out);
    return out;
}

}  // namespace ranksvm::RANKSVM_VARIANT

#endif
