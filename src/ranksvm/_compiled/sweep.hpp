// The margin sweep: sums over all violating pairs of a query in O(m log m), never pair by pair.
//
// A query has m documents with scores s and label ranks (levels) 0 .. k-1. A pair (i, j) with level_i > level_j, i the
// preferred and j the other document, violates the margin t when fl(s_i - s_j) < t. With the documents sorted by score
// this one predicate becomes one array: window[j] = number of documents whose score is less than s_j + t, so that
//     upper(j) = documents of higher level among the first window[j],
//     lower(i) = documents j of lower level with i < window[j], that is all from start[i] on.
// Everything (value, gradient, Laplacian) reads the windows, so that the two sides of a pair always agree.
// The weight of a pair is a_i * b_j (a: as the preferred document, b: as the other); null pointers mean 1.
#ifndef RANKSVM_SWEEP_HPP
#define RANKSVM_SWEEP_HPP

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "portable.hpp"

namespace ranksvm {

using std::int32_t;
using std::int64_t;

struct Pairs {
    const int64_t *pointers;   // (n_queries + 1,) first position of each query
    const int32_t *levels;     // (n_rows,) rank of the label in its query
    const int32_t *n_levels;   // (n_queries,)
    const double *preferred;   // (n_rows,) a, or null
    const double *other;       // (n_rows,) b, or null
    int32_t direct_limit;      // queries of up to so many levels take the direct form
};

// ---------------------------------------------------------------------------------------------------------------------
// One query, its documents sorted by score; also the scratch memory of a thread.

struct Keyed {
    double score;
    int32_t index;
};

struct SortedQuery {
    int64_t m = 0;
    int32_t n_levels = 0;
    bool weighted = false;
    std::vector<Keyed> keyed, spread;
    std::vector<double> z, a, b;          // centred scores and weights, sorted
    std::vector<int32_t> level, start;    // sorted levels; first document of lower(i)
    const int32_t *window = nullptr;      // sorted
    std::vector<double> table, values, v, upper, lower;

    void resize(int64_t size) {
        m = size;
        const size_t needed = static_cast<size_t>(size) + 1;
        if (z.size() >= needed) return;
        keyed.resize(needed);
        spread.resize(needed);
        z.resize(needed);
        a.resize(needed);
        b.resize(needed);
        level.resize(needed);
        start.resize(needed);
        values.resize(4 * needed);
        v.resize(needed);
        upper.resize(2 * needed);
        lower.resize(2 * needed);
    }
};

// Straight insertion, given up after so many moves. Whether it came to the end.
RANKSVM_INLINE bool insertion_sort(Keyed *keyed, int64_t m, int64_t moves_left) {
    for (int64_t i = 1; i < m; ++i) {
        const Keyed item = keyed[i];
        int64_t j = i;
        for (; j > 0 && item.score < keyed[j - 1].score; --j) keyed[j] = keyed[j - 1];
        keyed[j] = item;
        if ((moves_left -= i - j) < 0) return false;
    }
    return true;
}

// Distribute over as many buckets of equal width as there are documents: nearly sorted then, unless scores cluster.
RANKSVM_INLINE void bucket_sort(const Keyed *keyed, int64_t m, double low, double scale, int32_t *bucket, int32_t *next,
                                Keyed *out) {
    std::fill_n(next, m, 0);
    for (int64_t i = 0; i < m; ++i) bucket[i] = static_cast<int32_t>((keyed[i].score - low) * scale);
    for (int64_t i = 0; i < m; ++i) ++next[bucket[i]];
    int32_t position = 0;
    for (int64_t c = 0; c < m; ++c) {
        const int32_t size = next[c];
        next[c] = position;
        position += size;
    }
    for (int64_t i = 0; i < m; ++i) out[next[bucket[i]]++] = keyed[i];
}

// Sort by score, beginning from `order` (the documents in the order of an earlier score vector): where few have moved,
// insertion alone is enough. Leaves the sorted scores less the middle one in z. False if a score is NaN.
template <class Real>
RANKSVM_INLINE bool sort_by_score(const Real *scores, int32_t *order, SortedQuery &query) {
    const int64_t m = query.m;
    Keyed *keyed = query.keyed.data();
    int64_t descents = 0;
    bool ordered = true;
    double last = -std::numeric_limits<double>::infinity(), low = std::numeric_limits<double>::infinity(), high = last;
    for (int64_t i = 0; i < m; ++i) {
        const double score = static_cast<double>(scores[order[i]]);
        keyed[i] = {score, order[i]};
        descents += score < last;
        ordered = ordered && score == score;
        low = std::min(low, score);
        high = std::max(high, score);
        last = score;
    }
    if (!ordered) return false;
    if (descents > 0) {
        bool sorted = descents * 4 <= m && insertion_sort(keyed, m, 4 * m);
        // Neither the range of the scores nor the buckets per unit may overflow (scores in [0, 5e-324] have such a scale).
        const double scale = static_cast<double>(m - 1) / (high - low);
        if (!sorted && high - low <= std::numeric_limits<double>::max() && std::isfinite(scale)) {
            bucket_sort(keyed, m, low, scale, query.level.data(), query.start.data(), query.spread.data());
            std::swap(query.keyed, query.spread);
            keyed = query.keyed.data();
            sorted = insertion_sort(keyed, m, 8 * m);
        }
        if (!sorted)
            std::sort(keyed, keyed + m, [](const Keyed &x, const Keyed &y) { return x.score < y.score; });
        for (int64_t i = 0; i < m; ++i) order[i] = keyed[i].index;
    }
    // The middle score as the origin: a common offset of the scores then costs no digits in the sums.
    const double centre = keyed[m / 2].score;
    for (int64_t i = 0; i < m; ++i) query.z[i] = keyed[i].score - centre;
    return true;
}

// window[i] = number of p with z[p] - z[i] < t, by two pointers in one loop without a branch on the data. A step waits for
// the one before it, so several stretches of the list go through side by side.
RANKSVM_INLINE void find_windows(SortedQuery &query, double threshold, int32_t *window) {
    constexpr int kStretches = 4;
    const int64_t m = query.m;
    double *z = query.z.data();
    z[m] = std::numeric_limits<double>::infinity();
    int64_t i[kStretches], p[kStretches], end[kStretches];
    for (int c = 0; c < kStretches; ++c) {
        i[c] = m * c / kStretches;
        end[c] = m * (c + 1) / kStretches;
        int64_t low = 0, high = m;
        while (c > 0 && low < high) {
            const int64_t middle = (low + high) / 2;
            if (z[middle] - z[i[c]] < threshold)
                low = middle + 1;
            else
                high = middle;
        }
        p[c] = low;
    }
    while (i[0] < end[0] && i[1] < end[1] && i[2] < end[2] && i[3] < end[3])
        for (int c = 0; c < kStretches; ++c) {
            const int64_t advance = z[p[c]] - z[i[c]] < threshold;
            window[i[c]] = static_cast<int32_t>(p[c]);
            p[c] += advance;
            i[c] += 1 - advance;
        }
    for (int c = 0; c < kStretches; ++c)
        while (i[c] < end[c]) {
            const int64_t advance = z[p[c]] - z[i[c]] < threshold;
            window[i[c]] = static_cast<int32_t>(p[c]);
            p[c] += advance;
            i[c] += 1 - advance;
        }
}

// Levels, weights and the other side of the windows: start[i] = number of documents p with window[p] <= i.
RANKSVM_INLINE void gather_pairs(const Pairs &pairs, int64_t first, const int32_t *order, const int32_t *window,
                                 SortedQuery &query) {
    const int64_t m = query.m;
    for (int64_t i = 0; i < m; ++i) query.level[i] = pairs.levels[first + order[i]];
    query.weighted = pairs.preferred != nullptr;
    if (query.weighted)
        for (int64_t i = 0; i < m; ++i) {
            query.a[i] = pairs.preferred[first + order[i]];
            query.b[i] = pairs.other[first + order[i]];
        }
    int32_t *start = query.start.data();
    std::fill_n(start, m + 1, 0);
    for (int64_t p = 0; p < m; ++p) ++start[window[p]];
    for (int64_t i = 1; i < m; ++i) start[i] += start[i - 1];
    query.window = window;
}

// ---------------------------------------------------------------------------------------------------------------------
// Window sums: for every i, upper[i] = sum of values over upper(i) and lower[i] = sum over lower(i), kSums values each.

// Direct form, O(m k): running totals of the documents of level >= c, for every c, kept at every position of the sorted
// order, in vectors of 8 levels. No branch depends on the data. Up to 7 levels the totals stay in registers.
template <int kTotals>
RANKSVM_INLINE void running_totals(int64_t m, const int32_t *level, const double *values, int64_t first_level,
                                   int64_t row, double *RANKSVM_RESTRICT table) {
    double total[kTotals][8] = {{0.0}};
    for (int64_t p = 0; p < m; ++p, table += row) {
        const double own = static_cast<double>(level[p] - first_level);
        for (int sum = 0; sum < kTotals; ++sum) {
            const double x = values[p * kTotals + sum];
            for (int c = 0; c < 8; ++c) {
                table[sum * 8 + c] = total[sum][c];
                total[sum][c] += static_cast<double>(c) <= own ? x : 0.0;
            }
        }
    }
    for (int sum = 0; sum < kTotals; ++sum)
        for (int c = 0; c < 8; ++c) table[sum * 8 + c] = total[sum][c];
}

template <int kSums>
RANKSVM_INLINE void window_sums_direct(SortedQuery &query, const double *preferred, const double *other) {
    // row p of the table: for every group of 8 levels, the sums over the first p documents; preferred's, then other's
    const int64_t m = query.m, groups = (query.n_levels + 8) / 8, half = groups * 8 * kSums;
    const bool same = preferred == other;
    const int64_t row = same ? half : 2 * half;
    if (static_cast<int64_t>(query.table.size()) < (m + 1) * row) query.table.resize((m + 1) * row);
    double *table = query.table.data();
    const int32_t *level = query.level.data();
    for (int64_t group = 0; group < groups; ++group) {
        running_totals<kSums>(m, level, preferred, 8 * group, row, table + group * 8 * kSums);
        if (!same) running_totals<kSums>(m, level, other, 8 * group, row, table + half + group * 8 * kSums);
    }
    const double *others = same ? table : table + half, *all = others + m * row;
    for (int64_t i = 0; i < m; ++i) {
        const int64_t own = level[i], above = own + 1;
        const int64_t at = own / 8 * 8 * kSums + own % 8, at_above = above / 8 * 8 * kSums + above % 8;
        const double *within = table + query.window[i] * row, *before = others + query.start[i] * row;
        for (int sum = 0; sum < kSums; ++sum) {
            query.upper[i * kSums + sum] = within[at_above + sum * 8];
            query.lower[i * kSums + sum] = (all[sum * 8] - all[at + sum * 8]) - (before[sum * 8] - before[at + sum * 8]);
        }
    }
}

// Many-level form, O(m log k): a tree of fan-out 16 over the levels, in which a node holds, for each child, the sums of
// the children after it. Unlike in a binary indexed tree the number of steps is fixed and each is a vector operation.
template <int kSums>
struct LevelTree {
    static constexpr int kFan = 16, kShift = 4;
    std::vector<double> &totals;
    int depth = 0;
    int64_t offset[9] = {0};

    LevelTree(std::vector<double> &memory, int32_t n_levels) : totals(memory) {
        int64_t size = 0, nodes = n_levels;
        do {
            nodes = (nodes + kFan - 1) / kFan;
            offset[depth++] = size;
            size += nodes * kFan * kSums;
        } while (nodes > 1);
        totals.assign(static_cast<size_t>(size), 0.0);
    }
};

template <int kSums>
RANKSVM_INLINE void add_level(LevelTree<kSums> &tree, int32_t level, const double *value) {
    constexpr int kFan = LevelTree<kSums>::kFan;
    for (int d = 0; d < tree.depth; ++d, level >>= LevelTree<kSums>::kShift) {
        const double child = level & (kFan - 1);
        double *RANKSVM_RESTRICT node =
            tree.totals.data() + tree.offset[d] + static_cast<int64_t>(level >> LevelTree<kSums>::kShift) * kFan * kSums;
        for (int sum = 0; sum < kSums; ++sum)
            for (int c = 0; c < kFan; ++c) node[sum * kFan + c] += static_cast<double>(c) < child ? value[sum] : 0.0;
    }
}

template <int kSums>
RANKSVM_INLINE void sum_above(const LevelTree<kSums> &tree, int32_t level, double *out) {
    constexpr int kFan = LevelTree<kSums>::kFan;
    for (int sum = 0; sum < kSums; ++sum) out[sum] = 0.0;
    for (int d = 0; d < tree.depth; ++d, level >>= LevelTree<kSums>::kShift) {
        const double *node = tree.totals.data() + tree.offset[d] +
                             static_cast<int64_t>(level >> LevelTree<kSums>::kShift) * kFan * kSums +
                             (level & (kFan - 1));
        for (int sum = 0; sum < kSums; ++sum) out[sum] += node[sum * kFan];
    }
}

template <int kSums>
RANKSVM_INLINE void window_sums_tree(SortedQuery &query, const double *preferred, const double *other) {
    const int64_t m = query.m;
    const int32_t top = query.n_levels - 1;
    LevelTree<kSums> above(query.table, query.n_levels);
    for (int64_t i = 0, p = 0; i < m; ++i) {
        for (; p < query.window[i]; ++p) add_level(above, query.level[p], preferred + p * kSums);
        sum_above(above, query.level[i], query.upper.data() + i * kSums);
    }
    LevelTree<kSums> below(query.table, query.n_levels);  // levels counted from the top
    for (int64_t i = m - 1, p = m - 1; i >= 0; --i) {
        for (; p >= query.start[i]; --p) add_level(below, top - query.level[p], other + p * kSums);
        sum_above(below, top - query.level[i], query.lower.data() + i * kSums);
    }
}

// Longer lists take the tree: the direct form's table would leave the cache.
constexpr int64_t kDirectDocuments = 4096;

template <int kSums>
RANKSVM_INLINE void window_sums(const Pairs &pairs, SortedQuery &query, const double *preferred, const double *other) {
    if (query.n_levels <= pairs.direct_limit && query.m <= kDirectDocuments)
        window_sums_direct<kSums>(query, preferred, other);
    else
        window_sums_tree<kSums>(query, preferred, other);
}

// ---------------------------------------------------------------------------------------------------------------------
// Ranges of queries. Arrays named *_range hold only the rows of the range.

// Squared hinge: sum of a_i b_j max(0, t - (s_i - s_j))^2 over the pairs. With c+, c- and S+, S- the weighted counts and
// score sums of upper(i) and lower(i), the hinges of i as the other document add up to b_i (c+ (t + s_i) - S+), as the
// preferred one to a_i (c- (t - s_i) + S-).
template <class Real>
RANKSVM_INLINE double squared_hinge_range(const Pairs &pairs, int64_t first_query, int64_t last_query, const Real *scores,
                                          double threshold, int32_t *order, int32_t *window, double *counts,
                                          double *gradient_range) {
    SortedQuery query;
    double value = 0.0;
    const int64_t origin = pairs.pointers[first_query];
    for (int64_t q = first_query; q < last_query; ++q) {
        const int64_t first = pairs.pointers[q], m = pairs.pointers[q + 1] - first;
        double *gradient = gradient_range + (first - origin);
        query.n_levels = pairs.n_levels[q];
        query.resize(m);
        int32_t *query_order = order + first;
        const bool ordered = query.n_levels < 2 || sort_by_score(scores + first, query_order, query);
        if (query.n_levels < 2 || !ordered) {
            const double fill = ordered ? 0.0 : std::numeric_limits<double>::quiet_NaN();
            std::fill_n(gradient, m, fill);
            std::fill_n(counts + first, m, fill);
            std::fill_n(window + first, m, 0);
            value += fill;
            continue;
        }
        find_windows(query, threshold, window + first);
        gather_pairs(pairs, first, query_order, window + first, query);
        const double *z = query.z.data();
        double *values = query.values.data(), *other = values;
        if (query.weighted) {
            other = values + 2 * m;
            for (int64_t i = 0; i < m; ++i) {
                values[2 * i] = query.a[i], values[2 * i + 1] = query.a[i] * z[i];
                other[2 * i] = query.b[i], other[2 * i + 1] = query.b[i] * z[i];
            }
        } else {
            for (int64_t i = 0; i < m; ++i) values[2 * i] = 1.0, values[2 * i + 1] = z[i];
        }
        window_sums<2>(pairs, query, values, other);
        double hinges = 0.0, product = 0.0;
        for (int64_t i = 0; i < m; ++i) {
            const double *up = query.upper.data() + 2 * i, *down = query.lower.data() + 2 * i;
            double as_other = up[0] * (threshold + z[i]) - up[1], as_preferred = down[0] * (threshold - z[i]) + down[1];
            double count_up = up[0], count_down = down[0];
            if (query.weighted) {
                as_other *= query.b[i], count_up *= query.b[i];
                as_preferred *= query.a[i], count_down *= query.a[i];
            }
            hinges += as_other;
            product += (as_other - as_preferred) * z[i];
            gradient[query_order[i]] = 2.0 * (as_other - as_preferred);
            counts[first + query_order[i]] = count_up + count_down;
        }
        // h^2 = h (t - margin), and the sum of h * margin over the pairs is -(gradient / 2)' z.
        value += threshold * hinges + product;
    }
    return value;
}

// (L v)_i = counts_i v_i - b_i * (sum of a_j v_j over upper(i)) - a_i * (sum of b_j v_j over lower(i)).
RANKSVM_INLINE void laplacian_range(const Pairs &pairs, int64_t first_query, int64_t last_query, const int32_t *order,
                                    const int32_t *window, const double *counts, const double *v_range,
                                    double *out_range) {
    SortedQuery query;
    const int64_t origin = pairs.pointers[first_query];
    for (int64_t q = first_query; q < last_query; ++q) {
        const int64_t first = pairs.pointers[q], m = pairs.pointers[q + 1] - first;
        const double *v = v_range + (first - origin);
        double *out = out_range + (first - origin);
        query.n_levels = pairs.n_levels[q];
        if (query.n_levels < 2) {
            std::fill_n(out, m, 0.0);
            continue;
        }
        query.resize(m);
        const int32_t *query_order = order + first;
        gather_pairs(pairs, first, query_order, window + first, query);
        // L annihilates constants: an origin in the middle keeps the sums small.
        const double centre = v[query_order[m / 2]];
        double *sorted = query.v.data(), *values = sorted, *other = sorted;
        for (int64_t i = 0; i < m; ++i) sorted[i] = v[query_order[i]] - centre;
        if (query.weighted) {
            values = query.values.data(), other = values + m;
            for (int64_t i = 0; i < m; ++i) values[i] = query.a[i] * sorted[i], other[i] = query.b[i] * sorted[i];
        }
        window_sums<1>(pairs, query, values, other);
        for (int64_t i = 0; i < m; ++i) {
            double up = query.upper[i], down = query.lower[i];
            if (query.weighted) up *= query.b[i], down *= query.a[i];
            out[query_order[i]] = counts[first + query_order[i]] * sorted[i] - up - down;
        }
    }
}

// Rows of L X up to symmetry, for an explicit Hessian: Z_i = counts_i x_i - 2 a_i * (sum of b_j x_j over lower(i)), so that
// X' L X = (X'Z + Z'X) / 2. One descending sweep with a running vector per level; beyond a few levels, a binary indexed
// tree of vectors.
RANKSVM_INLINE void add_scaled(double *RANKSVM_RESTRICT y, double scale, const double *RANKSVM_RESTRICT x, int64_t n) {
    for (int64_t f = 0; f < n; ++f) y[f] += scale * x[f];
}

RANKSVM_INLINE void laplacian_rows_range(const Pairs &pairs, int64_t first_query, int64_t last_query,
                                         const int32_t *order, const int32_t *window, const double *counts,
                                         const double *X_range, int64_t n, double *Z_range) {
    constexpr int32_t kFewLevels = 8;
    SortedQuery query;
    std::vector<double> running, sum(static_cast<size_t>(n));
    const int64_t origin = pairs.pointers[first_query];
    for (int64_t q = first_query; q < last_query; ++q) {
        const int64_t first = pairs.pointers[q], m = pairs.pointers[q + 1] - first;
        const int32_t n_levels = pairs.n_levels[q];
        const double *X = X_range + (first - origin) * n;
        double *Z = Z_range + (first - origin) * n;
        if (n_levels < 2) {
            std::fill_n(Z, m * n, 0.0);
            continue;
        }
        query.resize(m);
        query.n_levels = n_levels;
        const int32_t *query_order = order + first;
        gather_pairs(pairs, first, query_order, window + first, query);
        const bool few = n_levels <= kFewLevels;
        running.assign(static_cast<size_t>(n_levels) * n, 0.0);
        for (int64_t i = m - 1, p = m - 1; i >= 0; --i) {
            for (; p >= query.start[i]; --p) {
                const int32_t level = query.level[p];
                if (level == n_levels - 1) continue;  // preferred to all, so nobody's other document
                const double *x = X + query_order[p] * n, weight = query.weighted ? query.b[p] : 1.0;
                if (few)
                    add_scaled(running.data() + level * n, weight, x, n);
                else
                    for (int32_t node = level + 1; node <= n_levels; node += node & -node)
                        add_scaled(running.data() + (node - 1) * n, weight, x, n);
            }
            const int32_t level = query.level[i];
            const double *x = X + query_order[i] * n, count = counts[first + query_order[i]];
            double *RANKSVM_RESTRICT out = Z + query_order[i] * n;
            if (level == 0 || count == 0.0) {
                for (int64_t f = 0; f < n; ++f) out[f] = count * x[f];
                continue;
            }
            double *RANKSVM_RESTRICT total = sum.data();
            std::fill_n(total, n, 0.0);
            if (few)
                for (int32_t below = 0; below < level; ++below) add_scaled(total, 1.0, running.data() + below * n, n);
            else
                for (int32_t node = level; node > 0; node -= node & -node)
                    add_scaled(total, 1.0, running.data() + (node - 1) * n, n);
            const double scale = query.weighted ? -2.0 * query.a[i] : -2.0;
            for (int64_t f = 0; f < n; ++f) out[f] = count * x[f] + scale * total[f];
        }
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// Entry points, compiled for the processor at hand

RANKSVM_CLONES double squared_hinge_f64(Pairs pairs, int64_t first_query, int64_t last_query, const double *scores,
                                        double threshold, int32_t *order, int32_t *window, double *counts,
                                        double *gradient_range) {
    return squared_hinge_range(pairs, first_query, last_query, scores, threshold, order, window, counts, gradient_range);
}

RANKSVM_CLONES double squared_hinge_f32(Pairs pairs, int64_t first_query, int64_t last_query, const float *scores,
                                        double threshold, int32_t *order, int32_t *window, double *counts,
                                        double *gradient_range) {
    return squared_hinge_range(pairs, first_query, last_query, scores, threshold, order, window, counts, gradient_range);
}

RANKSVM_CLONES void laplacian(Pairs pairs, int64_t first_query, int64_t last_query, const int32_t *order,
                              const int32_t *window, const double *counts, const double *v_range, double *out_range) {
    laplacian_range(pairs, first_query, last_query, order, window, counts, v_range, out_range);
}

RANKSVM_CLONES void laplacian_rows(Pairs pairs, int64_t first_query, int64_t last_query, const int32_t *order,
                                   const int32_t *window, const double *counts, const double *X_range, int64_t n,
                                   double *Z_range) {
    laplacian_rows_range(pairs, first_query, last_query, order, window, counts, X_range, n, Z_range);
}

}  // namespace ranksvm

#endif
