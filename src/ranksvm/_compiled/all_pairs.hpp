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

// Arrays with a number for each document of a query, in label order.
struct DocumentArrays {
    double *s, *a, *b, *g;            // scores, weights, gains
    double *x;                        // the vector that the Laplacian multiplies
    double *as_preferred, *as_other;  // of each document: sums over its pairs in this role, without its own factor
    double *won, *lost;               // the same sums of weights, over the pairs whose loss is curved
};

// One query, its documents in label order. A loop reuses one of these, and its memory, for all of its queries.
struct LabeledQuery : DocumentArrays {
    int64_t m;
    bool weighted, gaps, adjacent;
    Vector<int32_t> level;
    Vector<double> memory;

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

// The other documents of a level: from .. whole fill vectors, and `rest` has the scores of those from `whole` to `below`, and
// -inf in its other lanes.
struct OtherDocuments {
    const double *s;
    int64_t from, whole, below;
    Lanes rest;

    RANKSVM_INLINE_METHOD OtherDocuments(const double *scores, int64_t first, int64_t end)
        : s(scores), from(first), whole(first + (end - first) / kWidth * kWidth), below(end),
          rest(first_lanes(lanes_at(s + whole), below - whole, -std::numeric_limits<double>::infinity())) {}
};

// The pairs of the preferred documents i .. i + kDocuments with the others.
template <int kDocuments, class Visit>
RANKSVM_INLINE void visit_documents(int64_t i, const OtherDocuments &all, Visit &visit) {
    typename Visit::Document documents[kDocuments];
    for (int d = 0; d < kDocuments; ++d) documents[d] = visit.begin(i + d);
    const auto pairs = [&](int64_t j, const Lanes &s) {
        typename Visit::Others others = visit.others(j);
        for (int d = 0; d < kDocuments; ++d) visit.pairs(documents[d], j, s, others);
        visit.put(j, others);
    };
    for (int64_t j = all.from; j < all.whole; j += kWidth) pairs(j, lanes_at(all.s + j));
    if (all.whole < all.below) pairs(all.whole, all.rest);
    for (int d = 0; d < kDocuments; ++d) visit.end(i + d, documents[d]);
}

// Goes through the pairs of Visit::kDocuments preferred documents at a time: the sums of the other documents are then read and
// written once for all of these, whose own sums must fit into the registers. `visit.begin(i)` makes what is kept of a preferred
// document i, and `visit.others(j)` the sums of a vector of other documents, of which j is the first. For each such document
// and vector, `visit.pairs(document, j, s, others)` adds their pairs (s has the scores of the others). Then
// `visit.put(j, others)` and `visit.end(i, document)` write the sums. Lanes beyond the last other document have the score -inf:
// these pairs violate no margin.
template <class Visit>
RANKSVM_INLINE void visit_pairs(const LabeledQuery &query, Visit &visit) {
    for_levels(query, [&](int64_t from, int64_t below, int64_t end) {
        if (from == below) return;
        const OtherDocuments others(query.s, from, below);
        constexpr int kDocuments = Visit::kDocuments;
        int64_t i = below;
        for (; i + kDocuments <= end; i += kDocuments) visit_documents<kDocuments>(i, others, visit);
        if constexpr (kDocuments > 2)
            if (i + 2 <= end) visit_documents<2>(i, others, visit), i += 2;
        if (i < end) visit_documents<1>(i, others, visit);
    });
}

// The weight of a pair of the preferred document i and the other document j is a_i b_j (g_i - g_j); without weights a = b = 1,
// and without gains the difference is 1. This struct has the factors of one i, for a vector of j. The sums of a document leave
// out its own factor, by which `put_sides` multiplies them at the end: a term of the sum of i has the factors b_j and
// g_i - g_j, and a term of the sum of j has a_i and g_i - g_j.
template <bool kWeighted, bool kGaps>
struct PairWeights {
    Lanes a, g;

    RANKSVM_INLINE_METHOD void begin(const DocumentArrays &query, int64_t i) {
        if (kWeighted) a = all_lanes(query.a[i]);
        if (kGaps) g = all_lanes(query.g[i]);
    }
    RANKSVM_INLINE_METHOD Lanes gap(const DocumentArrays &query, int64_t j) const {
        return kGaps ? g - lanes_at(query.g + j) : all_lanes(1.0);
    }
    RANKSVM_INLINE_METHOD Lanes times_gap(const DocumentArrays &query, int64_t j, const Lanes &x) const {
        return kGaps ? x * (g - lanes_at(query.g + j)) : x;
    }
    RANKSVM_INLINE_METHOD Lanes times_a(const Lanes &x) const { return kWeighted ? a * x : x; }
    RANKSVM_INLINE_METHOD Lanes times_b(const DocumentArrays &query, int64_t j, const Lanes &x) const {
        return kWeighted ? lanes_at(query.b + j) * x : x;
    }
};

// The sums of a vector of other documents.
struct OtherSums {
    Lanes as_other, lost;
};

// Squared hinge: as_preferred and as_other receive the sums of the hinges, up to the document's own factor.
template <bool kWeighted, bool kGaps>
struct VisitSquaredHinge {
    static constexpr int kDocuments = kWidth == 8 ? 4 : 2;
    struct Document {
        PairWeights<kWeighted, kGaps> weights;
        Lanes own, hinges, degree, value;
    };
    using Others = OtherSums;
    const DocumentArrays query;  // not a reference: writing sums could change what it refers to
    Lanes threshold, zero, value;

    RANKSVM_INLINE_METHOD VisitSquaredHinge(const LabeledQuery &labeled, double margin)
        : query(labeled), threshold(all_lanes(margin)), zero(all_lanes(0.0)), value(zero) {}

    RANKSVM_INLINE_METHOD Document begin(int64_t i) const {
        Document document = {{}, all_lanes(query.s[i]), zero, zero, zero};
        document.weights.begin(query, i);
        return document;
    }
    RANKSVM_INLINE_METHOD Others others(int64_t j) const { return {lanes_at(query.as_other + j), lanes_at(query.lost + j)}; }
    RANKSVM_INLINE_METHOD void pairs(Document &document, int64_t j, const Lanes &s, Others &others) const {
        // d > 0 exactly if the margin is less than the threshold: the difference of two unequal numbers does not round to 0
        const Lanes d = threshold - (document.own - s), h = where_less(zero, d, d, zero);
        const PairWeights<kWeighted, kGaps> &weights = document.weights;
        const Lanes pull = weights.times_gap(query, j, h), edge = where_less(zero, d, weights.gap(query, j), zero);
        const Lanes b_pull = weights.times_b(query, j, pull);
        others.as_other += weights.times_a(pull);
        others.lost += weights.times_a(edge);
        document.hinges += b_pull;
        document.degree += weights.times_b(query, j, edge);
        document.value += weights.times_a(b_pull) * h;
    }
    RANKSVM_INLINE_METHOD void put(int64_t j, const Others &others) const {
        put_lanes(query.as_other + j, others.as_other);
        put_lanes(query.lost + j, others.lost);
    }
    RANKSVM_INLINE_METHOD void end(int64_t i, const Document &document) {
        query.as_preferred[i] = sum_of(document.hinges);
        query.won[i] = sum_of(document.degree);
        value += document.value;
    }
};

// Huberized hinge: as_preferred and as_other receive the sums of alpha = clip(h / d, 0, 1), which is minus the derivative of a
// pair's loss. The loss is alpha h - alpha^2 d / 2, and the slack is h (1 - alpha).
template <bool kWeighted, bool kGaps>
struct VisitHuber {
    static constexpr int kDocuments = kWidth == 8 ? 4 : 2;
    struct Document {
        PairWeights<kWeighted, kGaps> weights;
        Lanes own, pulls, degree;
    };
    using Others = OtherSums;
    const DocumentArrays query;
    Lanes outer, inner, zero, one, steepness;
    Lanes products, squares, slack;  // of all pairs: alpha h, alpha^2, h (1 - alpha)

    RANKSVM_INLINE_METHOD VisitHuber(const LabeledQuery &labeled, double outer_threshold, double inner_threshold,
                                     double width)
        : query(labeled), outer(all_lanes(outer_threshold)), inner(all_lanes(inner_threshold)), zero(all_lanes(0.0)),
          one(all_lanes(1.0)), steepness(all_lanes(1.0 / width)), products(zero), squares(zero), slack(zero) {}

    RANKSVM_INLINE_METHOD Document begin(int64_t i) const {
        Document document = {{}, all_lanes(query.s[i]), zero, zero};
        document.weights.begin(query, i);
        return document;
    }
    RANKSVM_INLINE_METHOD Others others(int64_t j) const { return {lanes_at(query.as_other + j), lanes_at(query.lost + j)}; }
    RANKSVM_INLINE_METHOD void pairs(Document &document, int64_t j, const Lanes &s, Others &others) {
        const Lanes margin = document.own - s, d = outer - margin, h = where_less(zero, d, d, zero), scaled = h * steepness;
        const Lanes alpha = where_less(margin, inner, one, where_less(scaled, one, scaled, one));
        const PairWeights<kWeighted, kGaps> &weights = document.weights;
        const Lanes gap = weights.gap(query, j), ring = where_less(margin, inner, zero, where_less(zero, d, gap, zero));
        const Lanes pull = weights.times_gap(query, j, alpha), b_pull = weights.times_b(query, j, pull);
        others.as_other += weights.times_a(pull);
        others.lost += weights.times_a(ring);
        document.pulls += b_pull;
        document.degree += weights.times_b(query, j, ring);
        const Lanes ab_pull = weights.times_a(b_pull);
        products += ab_pull * h;
        squares += ab_pull * alpha;
        slack += weights.times_a(weights.times_b(query, j, weights.times_gap(query, j, h * (one - alpha))));
    }
    RANKSVM_INLINE_METHOD void put(int64_t j, const Others &others) const {
        put_lanes(query.as_other + j, others.as_other);
        put_lanes(query.lost + j, others.lost);
    }
    RANKSVM_INLINE_METHOD void end(int64_t i, const Document &document) const {
        query.as_preferred[i] = sum_of(document.pulls);
        query.won[i] = sum_of(document.degree);
    }
};

// Sums of the differences of x over the curved pairs, from which `put_sides` makes L x.
template <bool kWeighted, bool kGaps, bool kRing>
struct VisitLaplacian {
    static constexpr int kDocuments = kWidth == 8 ? 4 : 2;
    struct Document {
        PairWeights<kWeighted, kGaps> weights;
        Lanes own, x, flows;
    };
    // the sums and x of a vector of other documents
    struct Others {
        Lanes as_other, x;
    };
    const DocumentArrays query;
    Lanes outer, inner, zero;

    RANKSVM_INLINE_METHOD VisitLaplacian(const LabeledQuery &labeled, double outer_threshold, double inner_threshold)
        : query(labeled), outer(all_lanes(outer_threshold)), inner(all_lanes(inner_threshold)), zero(all_lanes(0.0)) {}

    RANKSVM_INLINE_METHOD Document begin(int64_t i) const {
        Document document = {{}, all_lanes(query.s[i]), all_lanes(query.x[i]), zero};
        document.weights.begin(query, i);
        return document;
    }
    RANKSVM_INLINE_METHOD Others others(int64_t j) const { return {lanes_at(query.as_other + j), lanes_at(query.x + j)}; }
    RANKSVM_INLINE_METHOD void pairs(Document &document, int64_t j, const Lanes &s, Others &others) const {
        const Lanes margin = document.own - s;
        const PairWeights<kWeighted, kGaps> &weights = document.weights;
        Lanes flow = where_less(margin, outer, weights.times_gap(query, j, document.x - others.x), zero);
        if (kRing) flow = where_less(margin, inner, zero, flow);
        others.as_other += weights.times_a(flow);
        document.flows += weights.times_b(query, j, flow);
    }
    RANKSVM_INLINE_METHOD void put(int64_t j, const Others &others) const { put_lanes(query.as_other + j, others.as_other); }
    RANKSVM_INLINE_METHOD void end(int64_t i, const Document &document) const {
        query.as_preferred[i] = sum_of(document.flows);
    }
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
