// A query's documents sorted by score, and the windows that say which pairs violate the margin (pairs.hpp).
//
// With the documents sorted by score the predicate becomes one array: window[j] = number of documents p with
// fl(s_p - s_j) < t, so that
//     upper(j) = documents of higher level among the first window[j],
//     lower(i) = documents j of lower level with i < window[j], that is all from start[i] on.
// Everything (value, gradient, Laplacian) reads the windows, so that the two sides of a pair always agree. A second window,
// for a smaller threshold, makes rings: the pairs in the outer and not in the inner one.
#ifndef RANKSVM_SORTED_QUERY_HPP
#define RANKSVM_SORTED_QUERY_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "portable.hpp"
#include "sweep_loops.hpp"

namespace ranksvm::RANKSVM_VARIANT {

struct Keyed {
    double score;
    int32_t index;
};

// One query, its documents sorted by score; also the scratch memory of a thread.
struct SortedQuery {
    int64_t m = 0;
    int32_t n_levels = 0;
    bool weighted = false, gaps = false;
    Vector<Keyed> keyed, spread;
    Vector<double> s, z, a, b, g;                        // sorted: scores, the same centred, weights and gains
    Vector<int32_t> level, start[2];                     // sorted levels; first document of lower(i)
    const int32_t *window[2] = {nullptr, nullptr};            // sorted; the outer one, the inner one
    Vector<double> table, split, v, values, weighed;     // scratch
    Vector<double> columns;                              // window sums
    Vector<double> sums;                                 // pair sums

    void resize(int64_t size) {
        m = size;
        const std::size_t needed = static_cast<size_t>(size) + 1;
        if (z.size() >= needed) return;
        keyed.resize(needed);
        spread.resize(needed);
        s.resize(needed);
        z.resize(needed);
        a.resize(needed);
        b.resize(needed);
        g.resize(needed);
        level.resize(needed);
        start[0].resize(needed);
        start[1].resize(needed);
        v.resize(needed);
    }
};

// Memory for so many numbers.
RANKSVM_INLINE double *at_least(Vector<double> &memory, int64_t size) {
    if (static_cast<int64_t>(memory.size()) < size) memory.resize(static_cast<size_t>(size));
    return memory.data();
}

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
RANKSVM_INLINE void bucket_sort(const Keyed *keyed, int64_t m, double low, double high, int32_t *bucket, int32_t *next,
                                Keyed *out) {
    const double scale = static_cast<double>(m - 1) / (high - low);
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

// Sort in O(m) where keys spread, in O(m log m) at worst; bucket and next are scratch of m numbers each.
RANKSVM_INLINE void sort_keyed(Vector<Keyed> &keyed, Vector<Keyed> &spread, int64_t m, double low, double high,
                               int32_t *bucket, int32_t *next) {
    const double range = high - low;
    // (a range so small or so large that positions in it overflow is left to std::sort)
    if (range > 1e-290 && range < 1e290) {
        bucket_sort(keyed.data(), m, low, high, bucket, next, spread.data());
        std::swap(keyed, spread);
        if (insertion_sort(keyed.data(), m, 8 * m)) return;
    }
    std::sort(keyed.begin(), keyed.begin() + m, [](const Keyed &x, const Keyed &y) { return x.score < y.score; });
}

// Sort by score, beginning from `order` (the documents in the order of an earlier score vector): where few have moved,
// insertion alone is enough. Leaves the sorted scores in s and, less the middle one, in z. False if a score is NaN.
RANKSVM_INLINE bool sort_by_score(const double *scores, int32_t *order, SortedQuery &query) {
    const int64_t m = query.m;
    Keyed *keyed = query.keyed.data();
    int64_t descents = 0;
    bool ordered = true;
    double last = -std::numeric_limits<double>::infinity(), low = std::numeric_limits<double>::infinity(), high = last;
    for (int64_t i = 0; i < m; ++i) {
        const double score = scores[order[i]];
        keyed[i] = {score, order[i]};
        descents += score < last;
        ordered = ordered && score == score;
        low = std::min(low, score);
        high = std::max(high, score);
        last = score;
    }
    if (!ordered) return false;
    if (descents > 0) {
        if (descents * 4 > m || !insertion_sort(keyed, m, 4 * m))
            sort_keyed(query.keyed, query.spread, m, low, high, query.level.data(), query.start[0].data());
        keyed = query.keyed.data();
        for (int64_t i = 0; i < m; ++i) order[i] = keyed[i].index;
    }
    // The middle score as the origin: a common offset of the scores then costs no digits in the sums.
    const double centre = keyed[m / 2].score;
    for (int64_t i = 0; i < m; ++i) {
        query.s[i] = keyed[i].score;
        query.z[i] = keyed[i].score - centre;
    }
    return true;
}

// window[i] = number of p with s[p] - s[i] < t, by two pointers in one loop without a branch on the data. A step waits for
// the one before it, so several stretches of the list go through side by side.
RANKSVM_INLINE void find_windows(SortedQuery &query, double threshold, int32_t *window) {
    constexpr int kStretches = 4;
    const int64_t m = query.m;
    double *s = query.s.data();
    s[m] = std::numeric_limits<double>::infinity();
    int64_t i[kStretches], p[kStretches], end[kStretches];
    for (int c = 0; c < kStretches; ++c) {
        i[c] = m * c / kStretches;
        end[c] = m * (c + 1) / kStretches;
        int64_t low = 0, high = m;
        while (c > 0 && low < high) {
            const int64_t middle = (low + high) / 2;
            if (s[middle] - s[i[c]] < threshold)
                low = middle + 1;
            else
                high = middle;
        }
        p[c] = low;
    }
    while (i[0] < end[0] && i[1] < end[1] && i[2] < end[2] && i[3] < end[3])
        for (int c = 0; c < kStretches; ++c) {
            const int64_t advance = s[p[c]] - s[i[c]] < threshold;
            window[i[c]] = static_cast<int32_t>(p[c]);
            p[c] += advance;
            i[c] += 1 - advance;
        }
    for (int c = 0; c < kStretches; ++c)
        while (i[c] < end[c]) {
            const int64_t advance = s[p[c]] - s[i[c]] < threshold;
            window[i[c]] = static_cast<int32_t>(p[c]);
            p[c] += advance;
            i[c] += 1 - advance;
        }
}

// Levels, weights and the other side of the windows: start[i] = number of documents p with window[p] <= i. The inner window
// may be null.
RANKSVM_INLINE void gather_pairs(const Pairs &pairs, int64_t first, const int32_t *order, const int32_t *outer,
                                 const int32_t *inner, SortedQuery &query) {
    const int64_t m = query.m;
    for (int64_t i = 0; i < m; ++i) query.level[i] = pairs.levels[first + order[i]];
    query.weighted = pairs.preferred != nullptr;
    query.gaps = pairs.gain != nullptr;
    if (query.weighted)
        for (int64_t i = 0; i < m; ++i) {
            query.a[i] = pairs.preferred[first + order[i]];
            query.b[i] = pairs.other[first + order[i]];
        }
    if (query.gaps)
        for (int64_t i = 0; i < m; ++i) query.g[i] = pairs.gain[first + order[i]];
    query.window[0] = outer;
    query.window[1] = inner;
    for (int which = 0; which < 2; ++which) {
        const int32_t *window = query.window[which];
        if (window == nullptr) continue;
        int32_t *start = query.start[which].data();
        std::fill_n(start, m + 1, 0);
        for (int64_t p = 0; p < m; ++p) ++start[window[p]];
        for (int64_t i = 1; i < m; ++i) start[i] += start[i - 1];
    }
}

}  // namespace ranksvm::RANKSVM_VARIANT

#endif
