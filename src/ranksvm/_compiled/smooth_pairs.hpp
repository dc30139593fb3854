// Sums over all pairs of one query of a loss that is curved at every margin: as in all_pairs.hpp, but without thresholds, and
// with long queries shared out among threads.
#ifndef RANKSVM_SMOOTH_PAIRS_HPP
#define RANKSVM_SMOOTH_PAIRS_HPP

#include <algorithm>
#include <cstdint>
#include <limits>

#include "all_pairs.hpp"
#include "lanes.hpp"
#include "loss_sums.hpp"
#include "margin_functions.hpp"
#include "pairs.hpp"
#include "portable.hpp"
#include "segments.hpp"
#include "workers.hpp"

namespace ranksvm::RANKSVM_VARIANT {

// A query with at least kSharedVisits documents is cut into kVisitShares shares, whatever the number of threads is, so
// that sums are the same to the last bit.
constexpr int64_t kSharedVisits = 1024, kVisitShares = 16;

RANKSVM_INLINE void add_lanes(double *p, const Lanes &x) { put_lanes(p, lanes_at(p) + x); }

// The value, and the sums of minus the derivatives (pulls) and of the second derivatives (bends).
template <bool kWeighted, bool kGaps, class Function>
struct VisitSmooth {
    const LabeledQuery &query;
    Function function;
    PairWeights<kWeighted, kGaps> weights;
    double *as_other, *lost;
    Lanes own, pulls, degree, value;

    RANKSVM_INLINE_METHOD VisitSmooth(const LabeledQuery &labeled, Function f, double *sums, double *bends)
        : query(labeled), function(f), weights{}, as_other(sums), lost(bends), own(all_lanes(0.0)), pulls(own), degree(own),
          value(own) {}

    RANKSVM_INLINE_METHOD void begin(int64_t i) {
        weights.begin(query, i);
        own = all_lanes(query.s[i]);
        pulls = degree = all_lanes(0.0);
    }
    RANKSVM_INLINE_METHOD void pairs(int64_t j, const Lanes &s) {
        const AtMargins at = function.at(own - s);
        const Lanes pull = weights.times_gap(query, j, at.pull), bend = weights.times_gap(query, j, at.bend);
        add_lanes(as_other + j, weights.times_a(pull));
        add_lanes(lost + j, weights.times_a(bend));
        pulls += weights.times_b(query, j, pull);
        degree += weights.times_b(query, j, bend);
        value += weights.times_a(weights.times_b(query, j, weights.times_gap(query, j, at.value)));
    }
    RANKSVM_INLINE_METHOD void end(int64_t i) {
        query.as_preferred[i] = sum_of(pulls);
        query.won[i] = sum_of(degree);
    }
    RANKSVM_INLINE_METHOD double total() const { return sum_of(value); }
};

// Sums of the differences of x over the pairs, weighted by the second derivatives (bends), for L x.
template <bool kWeighted, bool kGaps, class Function>
struct VisitSmoothLaplacian {
    const LabeledQuery &query;
    Function function;
    PairWeights<kWeighted, kGaps> weights;
    double *as_other;
    Lanes infinity, zero, own, x, flows;

    RANKSVM_INLINE_METHOD VisitSmoothLaplacian(const LabeledQuery &labeled, Function f, double *sums, double *)
        : query(labeled), function(f), weights{}, as_other(sums), infinity(all_lanes(std::numeric_limits<double>::infinity())),
          zero(all_lanes(0.0)), own(zero), x(zero), flows(zero) {}

    RANKSVM_INLINE_METHOD void begin(int64_t i) {
        weights.begin(query, i);
        own = all_lanes(query.s[i]);
        x = all_lanes(query.x[i]);
        flows = all_lanes(0.0);
    }
    RANKSVM_INLINE_METHOD void pairs(int64_t j, const Lanes &s) {
        const Lanes margin = own - s, difference = x - lanes_at(query.x + j);
        const Lanes bent = weights.times_gap(query, j, function.at(margin).bend * difference);
        // beyond the last other document x may be NaN
        const Lanes flow = where_less(margin, infinity, bent, zero);
        add_lanes(as_other + j, weights.times_a(flow));
        flows += weights.times_b(query, j, flow);
    }
    RANKSVM_INLINE_METHOD void end(int64_t i) { query.as_preferred[i] = sum_of(flows); }
    RANKSVM_INLINE_METHOD double total() const { return 0.0; }
};

// Goes through the pairs of the preferred documents first .. last, one of these at a time: functions take much longer than
// reading and writing the sums of the others. `visit` has the sums of one preferred document.
template <class Visit>
RANKSVM_INLINE void visit_pairs_of(const LabeledQuery &query, int64_t first, int64_t last, Visit &visit) {
    for_levels(query, [&](int64_t from, int64_t below, int64_t end) {
        if (from == below) return;
        const OtherDocuments others(query.s, from, below);
        for (int64_t i = std::max(below, first); i < std::min(end, last); ++i) {
            visit.begin(i);
            for (int64_t j = from; j < others.whole; j += kWidth) visit.pairs(j, lanes_at(others.s + j));
            if (others.whole < below) visit.pairs(others.whole, others.rest);
            visit.end(i);
        }
    });
}

template <template <bool, bool, class> class Visit, bool kWeighted, bool kGaps, class Function>
RANKSVM_INLINE double share_pairs(const LabeledQuery &query, Function function, const Workers &workers) {
    if (query.m < kSharedVisits) {
        Visit<kWeighted, kGaps, Function> visit(query, function, query.as_other, query.lost);
        visit_pairs_of(query, 0, query.m, visit);
        return visit.total();
    }
    // each share adds to sums of its own
    const int64_t room = query.m + kWidth;
    Vector<double> sums(static_cast<size_t>(2 * kVisitShares * room), 0.0);
    double totals[kVisitShares], total = 0.0;
    for_each(workers, kVisitShares, [&](int64_t k) {
        double *own = sums.data() + 2 * k * room;
        Visit<kWeighted, kGaps, Function> visit(query, function, own, own + room);
        visit_pairs_of(query, query.m * k / kVisitShares, query.m * (k + 1) / kVisitShares, visit);
        totals[k] = visit.total();
    });
    for (int64_t k = 0; k < kVisitShares; ++k) {
        const double *own = sums.data() + 2 * k * room;
        total += totals[k];
        for (int64_t r = 0; r < query.m; ++r) query.as_other[r] += own[r], query.lost[r] += own[room + r];
    }
    return total;
}

template <template <bool, bool, class> class Visit>
RANKSVM_INLINE double visit_smooth(const LabeledQuery &query, int function_number, const Workers &workers) {
    return with_margin_function(function_number, [&](auto function) {
        using Function = decltype(function);
        if (query.gaps) return share_pairs<Visit, true, true, Function>(query, function, workers);
        if (query.weighted) return share_pairs<Visit, true, false, Function>(query, function, workers);
        return share_pairs<Visit, false, false, Function>(query, function, workers);
    });
}

// Weights of the pairs of the preferred document i with the others from .. below, times the bends.
template <bool kWeighted, bool kGaps, class Function>
RANKSVM_INLINE void bends_of(const LabeledQuery &query, Function function, int64_t i, int64_t from, int64_t below, double *out) {
    PairWeights<kWeighted, kGaps> weights = {};
    weights.begin(query, i);
    const Lanes own = all_lanes(query.s[i]);
    for (int64_t j = from; j < below; j += kWidth) {
        const Lanes bend = weights.times_gap(query, j, function.at(own - lanes_at(query.s + j)).bend);
        put_lanes(out + j, weights.times_a(weights.times_b(query, j, bend)));
    }
}

// Calls `visit(i, from, below)` for each preferred document i, after writing the weights of its pairs with the others
// from .. below, times the bends, to `bends`.
template <class Visit>
RANKSVM_INLINE void visit_bends(int function, const LabeledQuery &query, Vector<double> &bends, const Visit &visit) {
    const auto all = [&](auto bends_at) {
        for_levels(query, [&](int64_t from, int64_t below, int64_t end) {
            for (int64_t i = below; from < below && i < end; ++i) {
                bends_at(i, from, below);
                visit(i, from, below);
            }
        });
    };
    with_margin_function(function, [&](auto margin_function) {
        if (query.gaps)
            all([&](auto... at) { bends_of<true, true>(query, margin_function, at..., bends.data()); });
        else if (query.weighted)
            all([&](auto... at) { bends_of<true, false>(query, margin_function, at..., bends.data()); });
        else
            all([&](auto... at) { bends_of<false, false>(query, margin_function, at..., bends.data()); });
    });
}

// out -= sum of scale * weight[j] x_j over the documents from .. below, four rows at a time. Rows have n numbers, and lie
// `stride` numbers apart.
template <class Real>
RANKSVM_INLINE void subtract_rows(const double *weight, double scale, const int32_t *documents, int64_t from, int64_t below,
                                  const Real *X, int64_t n, int64_t stride, Real *RANKSVM_RESTRICT out) {
    const auto weight_of = [&](int64_t j) { return static_cast<Real>(scale * weight[j]); };
    const auto row_of = [&](int64_t j) { return X + documents[j] * stride; };
    int64_t j = from;
    for (; j + 4 <= below; j += 4) {
        const Real a = weight_of(j), b = weight_of(j + 1), c = weight_of(j + 2), d = weight_of(j + 3);
        const Real *x = row_of(j), *y = row_of(j + 1), *z = row_of(j + 2), *u = row_of(j + 3);
        for (int64_t f = 0; f < n; ++f) out[f] -= (a * x[f] + b * y[f]) + (c * z[f] + d * u[f]);
    }
    for (; j < below; ++j) {
        const Real a = weight_of(j), *x = row_of(j);
        for (int64_t f = 0; f < n; ++f) out[f] -= a * x[f];
    }
}

// Rows Z with factor * X' L X = (X'Z + Z'X) / 2, as laplacian_rows of sweep.hpp makes them.
template <class Real>
RANKSVM_INLINE void smooth_rows_of_query(const Pairs &pairs, const PairState &state, int64_t first, const Real *X, int64_t n,
                                         double factor, Real *Z, LabeledQuery &query) {
    const int32_t *documents = pairs.by_level + first;
    const double *counts = state.degrees + first;
    gather_labeled(pairs, first, query);
    gather_scores(state.scores + first, documents, query);
    for (int64_t i = 0; i < query.m; ++i) {
        const Real *x = X + i * n, count = static_cast<Real>(factor * counts[i]);
        Real *RANKSVM_RESTRICT out = Z + i * n;
        for (int64_t f = 0; f < n; ++f) out[f] = count * x[f];
    }
    Vector<double> bends(static_cast<size_t>(query.m + kWidth));
    visit_bends(state.function, query, bends, [&](int64_t i, int64_t from, int64_t below) {
        subtract_rows(bends.data(), 2.0 * factor, documents, from, below, X, n, n, Z + documents[i] * n);
    });
}

}  // namespace ranksvm::RANKSVM_VARIANT

#endif
