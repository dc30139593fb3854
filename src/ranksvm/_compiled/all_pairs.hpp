// Sums over the pairs of one short query: every pair is visited, without a sort. The documents are in label order: those with
// lower labels than a given document are contiguous, and are read a vector at a time.
#ifndef RANKSVM_ALL_PAIRS_HPP
#define RANKSVM_ALL_PAIRS_HPP

#include <algorithm>
#include <cstdint>
#include <limits>

#include "lanes.hpp"
#include "loss_sums.hpp"
#include "portable.hpp"
#include "sweep_loops.hpp"

namespace ranksvm::RANKSVM_VARIANT {

// One query, its documents in label order. A loop reuses one of these, and its memory, for all of its queries.
struct LabeledQuery {
    int64_t m;
    bool weighted, gaps, adjacent;
    Vector<int32_t> level;
    Vector<double> memory;
    double *s, *a, *b, *g;            // scores, weights, gains
    double *x;                        // the vector that the Laplacian multiplies
    double *as_preferred, *as_other;  // of each document: sums over its pairs in this role, without its own factor
    double *won, *lost;               // the same sums of weights, over the pairs whose loss is curved

    // The last vector of a range reads a few numbers beyond the documents. An earlier query may have left values there, but
    // always of the same array: a weight is never read from the memory of scores.
    RANKSVM_INLINE_METHOD void resize(int64_t size) {
        m = size;
        const int64_t room = size + kWidth;
        if (static_cast<int64_t>(level.size()) >= room) return;
        memory.assign(static_cast<size_t>(9 * room), 0.0);
        level.resize(static_cast<size_t>(room));
        double *next = memory.data();
        for (double **array : {&s, &a, &b, &g, &x, &as_preferred, &as_other, &won, &lost}) *array = next, next += room;
    }
};

RANKSVM_NOINLINE static void gather_labeled(const Pairs &pairs, int64_t first, LabeledQuery &query) {
    const int64_t m = query.m;
    query.weighted = pairs.preferred != nullptr;
    query.gaps = pairs.gain != nullptr;
    query.adjacent = pairs.adjacent != 0;
    const int32_t *documents = pairs.by_level + first;
    for (int64_t r = 0; r < m; ++r) query.level[r] = pairs.levels[first + documents[r]];
    if (query.weighted)
        for (int64_t r = 0; r < m; ++r) {
            query.a[r] = pairs.preferred[first + documents[r]];
            query.b[r] = pairs.other[first + documents[r]];
        }
    if (query.gaps)
        for (int64_t r = 0; r < m; ++r) query.g[r] = pairs.gain[first + documents[r]];
    for (double *sums : {query.as_preferred, query.as_other, query.won, query.lost}) std::fill_n(sums, m + kWidth, 0.0);
}

// Calls `compare(from, below, end)` for each level: its documents, below .. end, are preferred to those from `from` to `below`.
template <class Compare>
RANKSVM_INLINE void for_levels(const LabeledQuery &query, const Compare &compare) {
    const int32_t *level = query.level.data();
    for (int64_t from = 0, below = 0; below < query.m;) {
        int64_t end = below + 1;
        while (end < query.m && level[end] == level[below]) ++end;
        compare(from, below, end);
        if (query.adjacent) from = below;
        below = end;
    }
}

// Goes through the pairs. For each preferred document i it calls `visit.begin(i)`, then `visit.pairs(j, s)` for each vector of
// other documents (j is the first of them, s has their scores), then `visit.end(i)`. Lanes beyond the last other document have
// the score -inf: these pairs violate no margin.
template <class Visit>
RANKSVM_INLINE void visit_pairs(const LabeledQuery &query, Visit &visit) {
    const double *s = query.s;
    for_levels(query, [&](int64_t from, int64_t below, int64_t end) {
        const int64_t whole = from + (below - from) / kWidth * kWidth;
        const Lanes last = first_lanes(lanes_at(s + whole), below - whole, -std::numeric_limits<double>::infinity());
        for (int64_t i = below; i < end && from < below; ++i) {
            visit.begin(i);
            for (int64_t j = from; j < whole; j += kWidth) visit.pairs(j, lanes_at(s + j));
            if (whole < below) visit.pairs(whole, last);
            visit.end(i);
        }
    });
}

// The weight of a pair of the preferred document i and the other document j is a_i b_j (g_i - g_j); without weights a = b = 1,
// and without gains the difference is 1. This struct has the factors for the current i and a vector of j. The sums of a
// document leave out its own factor, by which `put_sides` multiplies them at the end: a term of the sum of i has the factors
// b_j and g_i - g_j, and a term of the sum of j has a_i and g_i - g_j.
template <bool kWeighted, bool kGaps>
struct PairWeights {
    const LabeledQuery &query;
    Lanes a, g;

    RANKSVM_INLINE_METHOD void begin(int64_t i) {
        if (kWeighted) a = all_lanes(query.a[i]);
        if (kGaps) g = all_lanes(query.g[i]);
    }
    RANKSVM_INLINE_METHOD Lanes gap(int64_t j) const { return kGaps ? g - lanes_at(query.g + j) : all_lanes(1.0); }
    RANKSVM_INLINE_METHOD Lanes times_gap(int64_t j, const Lanes &x) const {
        return kGaps ? x * (g - lanes_at(query.g + j)) : x;
    }
    RANKSVM_INLINE_METHOD Lanes times_a(const Lanes &x) const { return kWeighted ? a * x : x; }
    RANKSVM_INLINE_METHOD Lanes times_b(int64_t j, const Lanes &x) const {
        return kWeighted ? lanes_at(query.b + j) * x : x;
    }
};

RANKSVM_INLINE void add_lanes(double *p, const Lanes &x) { put_lanes(p, lanes_at(p) + x); }

// Squared hinge: as_preferred and as_other receive the sums of the hinges, up to the document's own factor.
template <bool kWeighted, bool kGaps>
struct VisitSquaredHinge {
    const LabeledQuery &query;
    PairWeights<kWeighted, kGaps> weights;
    Lanes threshold, zero, own, hinges, degree, value;

    RANKSVM_INLINE_METHOD VisitSquaredHinge(const LabeledQuery &labeled, double margin)
        : query(labeled), weights{labeled, all_lanes(1.0), all_lanes(0.0)}, threshold(all_lanes(margin)),
          zero(all_lanes(0.0)), own(zero), hinges(zero), degree(zero), value(zero) {}

    RANKSVM_INLINE_METHOD void begin(int64_t i) {
        weights.begin(i);
        own = all_lanes(query.s[i]);
        hinges = degree = zero;
    }
    RANKSVM_INLINE_METHOD void pairs(int64_t j, const Lanes &s) {
        // d > 0 exactly if the margin is less than the threshold: the difference of two unequal numbers does not round to 0
        const Lanes d = threshold - (own - s), h = where_less(zero, d, d, zero);
        const Lanes pull = weights.times_gap(j, h), edge = where_less(zero, d, weights.gap(j), zero);
        const Lanes a_pull = weights.times_a(pull), b_pull = weights.times_b(j, pull);
        add_lanes(query.as_other + j, a_pull);
        add_lanes(query.lost + j, weights.times_a(edge));
        hinges += b_pull;
        degree += weights.times_b(j, edge);
        value += weights.times_a(b_pull) * h;
    }
    RANKSVM_INLINE_METHOD void end(int64_t i) {
        query.as_preferred[i] = sum_of(hinges);
        query.won[i] = sum_of(degree);
    }
};

// Huberized hinge: as_preferred and as_other receive the sums of alpha = clip(h / d, 0, 1), which is minus the derivative of a
// pair's loss. The loss is alpha h - alpha^2 d / 2, and the slack is h (1 - alpha).
template <bool kWeighted, bool kGaps>
struct VisitHuber {
    const LabeledQuery &query;
    PairWeights<kWeighted, kGaps> weights;
    Lanes outer, inner, zero, one, steepness, own, pulls, degree;
    Lanes products, squares, slack;  // of all pairs: alpha h, alpha^2, h (1 - alpha)

    RANKSVM_INLINE_METHOD VisitHuber(const LabeledQuery &labeled, double outer_threshold, double inner_threshold,
                                     double width)
        : query(labeled), weights{labeled, all_lanes(1.0), all_lanes(0.0)}, outer(all_lanes(outer_threshold)),
          inner(all_lanes(inner_threshold)), zero(all_lanes(0.0)), one(all_lanes(1.0)), steepness(all_lanes(1.0 / width)),
          own(zero), pulls(zero), degree(zero), products(zero), squares(zero), slack(zero) {}

    RANKSVM_INLINE_METHOD void begin(int64_t i) {
        weights.begin(i);
        own = all_lanes(query.s[i]);
        pulls = degree = zero;
    }
    RANKSVM_INLINE_METHOD void pairs(int64_t j, const Lanes &s) {
        const Lanes margin = own - s, d = outer - margin, h = where_less(zero, d, d, zero), scaled = h * steepness;
        const Lanes alpha = where_less(margin, inner, one, where_less(scaled, one, scaled, one));
        const Lanes gap = weights.gap(j), ring = where_less(margin, inner, zero, where_less(zero, d, gap, zero));
        const Lanes pull = weights.times_gap(j, alpha), b_pull = weights.times_b(j, pull);
        add_lanes(query.as_other + j, weights.times_a(pull));
        add_lanes(query.lost + j, weights.times_a(ring));
        pulls += b_pull;
        degree += weights.times_b(j, ring);
        const Lanes ab_pull = weights.times_a(b_pull);
        products += ab_pull * h;
        squares += ab_pull * alpha;
        slack += weights.times_a(weights.times_b(j, weights.times_gap(j, h * (one - alpha))));
    }
    RANKSVM_INLINE_METHOD void end(int64_t i) {
        query.as_preferred[i] = sum_of(pulls);
        query.won[i] = sum_of(degree);
    }
};

// Sums of the differences of x over the curved pairs, from which `put_sides` makes L x.
template <bool kWeighted, bool kGaps, bool kRing>
struct VisitLaplacian {
    const LabeledQuery &query;
    PairWeights<kWeighted, kGaps> weights;
    Lanes outer, inner, zero, own, x, flows;

    RANKSVM_INLINE_METHOD VisitLaplacian(const LabeledQuery &labeled, double outer_threshold, double inner_threshold)
        : query(labeled), weights{labeled, all_lanes(1.0), all_lanes(0.0)}, outer(all_lanes(outer_threshold)),
          inner(all_lanes(inner_threshold)), zero(all_lanes(0.0)), own(zero), x(zero), flows(zero) {}

    RANKSVM_INLINE_METHOD void begin(int64_t i) {
        weights.begin(i);
        own = all_lanes(query.s[i]);
        x = all_lanes(query.x[i]);
        flows = zero;
    }
    RANKSVM_INLINE_METHOD void pairs(int64_t j, const Lanes &s) {
        const Lanes margin = own - s;
        Lanes flow = where_less(margin, outer, weights.times_gap(j, x - lanes_at(query.x + j)), zero);
        if (kRing) flow = where_less(margin, inner, zero, flow);
        add_lanes(query.as_other + j, weights.times_a(flow));
        flows += weights.times_b(j, flow);
    }
    RANKSVM_INLINE_METHOD void end(int64_t i) { query.as_preferred[i] = sum_of(flows); }
};

// For each document, writes to its position in `out` u times its sum as the other document of its pairs, plus v times its sum
// as the preferred document.
RANKSVM_INLINE void put_sides(const LabeledQuery &query, const int32_t *documents, double u, const double *as_other,
                              double v, const double *as_preferred, double *out) {
    if (query.weighted)
        for (int64_t r = 0; r < query.m; ++r)
            out[documents[r]] = u * query.b[r] * as_other[r] + v * query.a[r] * as_preferred[r];
    else
        for (int64_t r = 0; r < query.m; ++r) out[documents[r]] = u * as_other[r] + v * as_preferred[r];
}

// Copies the scores of a query in label order. Returns false if one of them is NaN.
RANKSVM_INLINE bool gather_scores(const double *scores, const int32_t *documents, LabeledQuery &query) {
    bool numbers = true;
    for (int64_t r = 0; r < query.m; ++r) {
        const double score = scores[documents[r]];
        query.s[r] = score;
        numbers = numbers && score == score;
    }
    return numbers;
}

template <bool kWeighted, bool kGaps>
RANKSVM_INLINE LossSums visit_squared_hinge(const LabeledQuery &query, const PairState &state) {
    VisitSquaredHinge<kWeighted, kGaps> visit(query, state.outer_threshold);
    visit_pairs(query, visit);
    return {sum_of(visit.value), 0.0, 0.0};
}

template <bool kWeighted, bool kGaps>
RANKSVM_INLINE LossSums visit_huber(const LabeledQuery &query, const PairState &state, double width) {
    VisitHuber<kWeighted, kGaps> visit(query, state.outer_threshold, state.inner_threshold, width);
    visit_pairs(query, visit);
    const double squares = 0.5 * width * sum_of(visit.squares), slack = sum_of(visit.slack);
    return {sum_of(visit.products) - squares, slack + squares, slack};
}

template <bool kWeighted, bool kGaps>
RANKSVM_INLINE void visit_laplacian(const LabeledQuery &query, const PairState &state) {
    if (state.ring) {
        VisitLaplacian<kWeighted, kGaps, true> visit(query, state.outer_threshold, state.inner_threshold);
        visit_pairs(query, visit);
    } else {
        VisitLaplacian<kWeighted, kGaps, false> visit(query, state.outer_threshold, 0.0);
        visit_pairs(query, visit);
    }
}

RANKSVM_INLINE bool are_equal(const double *s, int64_t m) {
    for (int64_t r = m - 1; r > 0; --r)
        if (s[r] != s[0]) return false;
    return true;
}

// The squared hinge of pairs of weight 1 if all scores are equal, as they are at w = 0: each sum is a number of pairs times the
// hinge, which is the same for all pairs. (9,219 documents in queries of 146, AVX2: an evaluation there takes 0.12 ms instead
// of 0.23.)
RANKSVM_INLINE LossSums squared_hinge_of_equal_scores(const LabeledQuery &query, const PairState &state) {
    const double d = state.outer_threshold - (query.s[0] - query.s[0]), edge = d > 0.0 ? 1.0 : 0.0, h = d > 0.0 ? d : 0.0;
    double n_pairs = 0.0;
    for_levels(query, [&](int64_t from, int64_t below, int64_t end) {
        const double lower = static_cast<double>(below - from), upper = static_cast<double>(end - below);
        for (int64_t i = below; i < end; ++i) query.as_preferred[i] = lower * h, query.won[i] = lower * edge;
        for (int64_t j = from; j < below; ++j) query.as_other[j] += upper * h, query.lost[j] += upper * edge;
        n_pairs += lower * upper;
    });
    return {n_pairs * h * h, 0.0, 0.0};
}

RANKSVM_INLINE LossSums squared_hinge_of_all_pairs(const LabeledQuery &query, const PairState &state) {
    if (!query.weighted && are_equal(query.s, query.m)) return squared_hinge_of_equal_scores(query, state);
    if (query.gaps) return visit_squared_hinge<true, true>(query, state);
    if (query.weighted) return visit_squared_hinge<true, false>(query, state);
    return visit_squared_hinge<false, false>(query, state);
}

RANKSVM_INLINE LossSums huber_of_all_pairs(const LabeledQuery &query, const PairState &state, double width) {
    if (query.gaps) return visit_huber<true, true>(query, state, width);
    if (query.weighted) return visit_huber<true, false>(query, state, width);
    return visit_huber<false, false>(query, state, width);
}

RANKSVM_INLINE void visit_curved_pairs(const LabeledQuery &query, const PairState &state) {
    if (query.gaps)
        visit_laplacian<true, true>(query, state);
    else if (query.weighted)
        visit_laplacian<true, false>(query, state);
    else
        visit_laplacian<false, false>(query, state);
}

// out = L x of a query whose scores the state has; `visit` goes through the pairs.
template <class Visit>
RANKSVM_INLINE void laplacian_of_all_pairs(const Pairs &pairs, const PairState &state, int64_t first, const double *x,
                                           double *out, LabeledQuery &query, const Visit &visit) {
    const int32_t *documents = pairs.by_level + first;
    gather_labeled(pairs, first, query);
    for (int64_t r = 0; r < query.m; ++r) {
        query.s[r] = state.scores[first + documents[r]];
        query.x[r] = x[documents[r]];
    }
    visit(query);
    put_sides(query, documents, -1.0, query.as_other, 1.0, query.as_preferred, out);
}

}  // namespace ranksvm::RANKSVM_VARIANT

#endif
