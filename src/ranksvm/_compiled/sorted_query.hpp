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
#include "scratch.hpp"
#include "segments.hpp"
#include "sort_documents.hpp"
#include "sweep_loops.hpp"

namespace ranksvm::RANKSVM_VARIANT {

// A query of fewer documents is left to one thread. (An evaluation of 8,192 / 16,384 / 32,768 documents with distinct labels
// takes 0.98 / 2.70 / 5.79 ms on one thread and 0.87 / 1.85 / 3.55 ms on two. With five levels, it takes 0.30 / 0.91 / 1.84 ms
// on one thread and 0.30 / 0.77 / 1.42 ms on two.)
constexpr int64_t kSharedDocuments = 16384;

RANKSVM_INLINE void resize(SortedQuery &query, int64_t m, int32_t n_levels, const Workers &workers) {
    query.m = m;
    query.n_levels = n_levels;
    query.workers = m < kSharedDocuments ? kCallerAlone : workers;
    double *next = room_for<double>(query.documents, 5 * (m + 1) + (3 * (m + 1) + 1) / 2);
    for (double **array : {&query.s, &query.z, &query.a, &query.b, &query.g}) *array = next, next += m + 1;
    int32_t *number = reinterpret_cast<int32_t *>(next);
    for (int32_t **array : {&query.level, &query.start[0], &query.start[1]}) *array = number, number += m + 1;
}

// Sorts documents by score. On entry, `order` has them in the order of an earlier score vector. Leaves the sorted scores in
// query.s. False if a score is NaN.
RANKSVM_INLINE bool sort_by_score(const double *scores, int32_t *order, SortedQuery &query) {
    const auto item = [&](int64_t i) { return Keyed{scores[order[i]], order[i]}; };
    const auto put = [&](int64_t begin, const Keyed *sorted, int64_t size) {
        for (int64_t i = 0; i < size; ++i) {
            query.s[begin + i] = sorted[i].score;
            order[begin + i] = sorted[i].index;
        }
    };
    return sort_documents(query.workers, query.sorting, query.m, item, put);
}

// window[i] = number of p with s[p] - s[i] < t for a segment of i, by two pointers in one loop without a branch on the data. A
// step waits for the one before it, so the loop takes steps in several parts of the segment by turns.
RANKSVM_NOINLINE static void find_windows(SortedQuery &query, double threshold, int64_t first, int64_t last, int32_t *window) {
    constexpr int kStretches = 4;
    const int64_t m = query.m, size = last - first;
    const double *s = query.s;
    int64_t i[kStretches], p[kStretches], end[kStretches];
    for (int c = 0; c < kStretches; ++c) {
        i[c] = first + size * c / kStretches;
        end[c] = first + size * (c + 1) / kStretches;
        int64_t low = 0, high = i[c] < m ? m : 0;
        while (i[c] > 0 && low < high) {
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

// The first i with at(i) >= least, where at(i) ascends with i; m if there is none.
template <class At>
RANKSVM_INLINE int64_t first_from(const At &at, int64_t m, int64_t least) {
    int64_t low = 0, high = m;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (at(middle) < least)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// Gathers levels and weights in sorted order, and the other side of the windows: start[i] = number of documents p with
// window[p] <= i. The inner window may be null.
RANKSVM_NOINLINE static void gather_pairs(const Pairs &pairs, int64_t first, const int32_t *order, const int32_t *outer,
                                 const int32_t *inner, SortedQuery &query) {
    const int64_t m = query.m;
    query.weighted = pairs.preferred != nullptr;
    query.gaps = pairs.gain != nullptr;
    query.window[0] = outer;
    query.window[1] = inner;
    for_segments(query.workers, m, [&](int64_t, int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) query.level[i] = pairs.levels[first + order[i]];
        if (query.weighted)
            for (int64_t i = begin; i < end; ++i) {
                query.a[i] = pairs.preferred[first + order[i]];
                query.b[i] = pairs.other[first + order[i]];
            }
        if (query.gaps)
            for (int64_t i = begin; i < end; ++i) query.g[i] = pairs.gain[first + order[i]];
        for (int which = 0; which < 2; ++which) {
            const int32_t *window = query.window[which];
            if (window == nullptr) continue;
            int32_t *start = query.start[which];
            std::fill_n(start + begin, end - begin, 0);
            const int64_t before = first_from([&](int64_t i) { return window[i]; }, m, begin);
            for (int64_t p = before; p < m && window[p] < end; ++p) ++start[window[p]];
            int32_t count = static_cast<int32_t>(before);
            for (int64_t i = begin; i < end; ++i) start[i] = count += start[i];
        }
    });
}

}  // namespace ranksvm::RANKSVM_VARIANT

#endif
