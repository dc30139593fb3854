// A query in the order of its scores, for loops that need its documents in this order, not only sums over pairs.
#ifndef RANKSVM_QUERY_ORDER_HPP
#define RANKSVM_QUERY_ORDER_HPP

#include <algorithm>
#include <cstdint>
#include <limits>

#include "all_pairs.hpp"
#include "lanes.hpp"
#include "portable.hpp"
#include "sorted_query.hpp"

namespace ranksvm::RANKSVM_VARIANT {

// Order and windows (sorted_query.hpp) of a query whose scores are in the state and are not NaN. Each score is compared with
// all others, which takes less time than a sort. `taken` is scratch.
RANKSVM_INLINE void order_by_counting(const int32_t *documents, const PairState &state, int64_t first, int32_t *order,
                                      int32_t *outer, int32_t *inner, int32_t *taken, LabeledQuery &query) {
    const int64_t m = query.m;
    double *s = query.s;
    for (int64_t r = 0; r < m; ++r) s[r] = state.scores[first + documents[r]];
    std::fill_n(s + m, kWidth, std::numeric_limits<double>::infinity());
    std::fill_n(taken, m, 0);
    const Lanes one = all_lanes(1.0), zero = all_lanes(0.0);
    const Lanes outer_threshold = all_lanes(state.outer_threshold), inner_threshold = all_lanes(state.inner_threshold);
    for (int64_t i = 0; i < m; ++i) {
        const Lanes own = all_lanes(s[i]);
        Lanes less = zero, in_outer = zero, in_inner = zero;
        for (int64_t j = 0; j < m; j += kWidth) {
            const Lanes score = lanes_at(s + j), margin = score - own;
            less += where_less(score, own, one, zero);
            in_outer += where_less(margin, outer_threshold, one, zero);
            if (state.ring) in_inner += where_less(margin, inner_threshold, one, zero);
        }
        const int64_t rank = static_cast<int64_t>(sum_of(less)), place = rank + taken[rank]++;
        order[place] = documents[i];
        outer[place] = static_cast<int32_t>(sum_of(in_outer));
        inner[place] = static_cast<int32_t>(sum_of(in_inner));
    }
}

// Order and windows of one query after another. For a query that is swept they come from the state; for a query whose pairs are
// visited, `order_by_counting` finds them.
struct QueryOrder {
    const int32_t *order, *outer;

    // Finds them for a query without NaN scores; also fills `query` with its levels and weights, in that order.
    RANKSVM_NOINLINE void find(const Pairs &pairs, const PairState &state, int64_t q, SortedQuery &query) {
        const int64_t first = pairs.pointers[q], m = pairs.pointers[q + 1] - first;
        resize(query, m, pairs.n_levels[q], kCallerAlone);
        order = state.order + first, outer = state.outer + first;
        const int32_t *inner = state.inner + first;
        if (pairs.visited[q]) {
            counted_.resize(static_cast<size_t>(4 * m));
            int32_t *own = counted_.data();
            labeled_.resize(m);
            order_by_counting(pairs.by_level + first, state, first, own, own + m, own + 2 * m, own + 3 * m, labeled_);
            order = own, outer = own + m, inner = own + 2 * m;
        }
        gather_pairs(pairs, first, order, outer, state.ring ? inner : nullptr, query);
    }

   private:
    LabeledQuery labeled_;
    Vector<int32_t> counted_;
};

}  // namespace ranksvm::RANKSVM_VARIANT

#endif
