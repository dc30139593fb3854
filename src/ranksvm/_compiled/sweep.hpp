// The margin sweep: value, gradient and curvature of a loss over all violating pairs, in O(m log m) a query of m
// documents, never pair by pair. Arrays named *_range hold only the rows of a range of queries.
#ifndef RANKSVM_SWEEP_HPP
#define RANKSVM_SWEEP_HPP

#include <algorithm>
#include <cstdint>
#include <limits>

#include "loss_sums.hpp"
#include "pair_sums.hpp"
#include "portable.hpp"
#include "sorted_query.hpp"

namespace ranksvm::RANKSVM_VARIANT {

// Sort one query and find the windows of one or two thresholds (the inner window may be null). Where there is nothing to do
// (one level) or a score is NaN, fill in 0 or NaN and say no.
RANKSVM_INLINE bool sort_query(const Pairs &pairs, int64_t q, const double *scores, double outer_threshold,
                               double inner_threshold, int32_t *order, int32_t *outer, int32_t *inner, double *counts,
                               double *gradient, double *value, SortedQuery &query) {
    const int64_t first = pairs.pointers[q], m = pairs.pointers[q + 1] - first;
    query.n_levels = pairs.n_levels[q];
    query.resize(m);
    const bool ordered = query.n_levels < 2 || sort_by_score(scores + first, order + first, query);
    if (inner != nullptr) inner += first;
    if (query.n_levels < 2 || !ordered) {
        const double fill = ordered ? 0.0 : std::numeric_limits<double>::quiet_NaN();
        std::fill_n(gradient, m, fill);
        std::fill_n(counts + first, m, fill);
        std::fill_n(outer + first, m, 0);
        if (inner != nullptr) std::fill_n(inner, m, 0);
        *value += fill;
        return false;
    }
    find_windows(query, outer_threshold, outer + first);
    if (inner != nullptr) find_windows(query, inner_threshold, inner);
    gather_pairs(pairs, first, order + first, outer + first, inner, query);
    return true;
}

// Squared hinge: sum of a_ij max(0, t - (s_i - s_j))^2 over the pairs. With the weighted counts c+, c- and score sums S+, S-
// of the violating pairs that i loses and wins, the hinges of i as the other document add up to c+ (t + s_i) - S+, as the
// preferred one to c- (t - s_i) + S-.
static double squared_hinge(const Pairs &pairs, int64_t first_query, int64_t last_query, const double *scores,
                                          double threshold, int32_t *order, int32_t *window, double *counts,
                                          double *gradient_range) {
    SortedQuery query;
    double value = 0.0;
    const int64_t origin = pairs.pointers[first_query];
    for (int64_t q = first_query; q < last_query; ++q) {
        const int64_t first = pairs.pointers[q];
        double *gradient = gradient_range + (first - origin);
        if (!sort_query(pairs, q, scores, threshold, 0.0, order, window, nullptr, counts, gradient, &value, query)) continue;
        const int64_t m = query.m;
        const int32_t *query_order = order + first;
        const double *z = query.z.data();
        double *x = at_least(query.values, 2 * m);
        for (int64_t i = 0; i < m; ++i) x[2 * i] = 1.0, x[2 * i + 1] = z[i];
        const double *sums = pair_sums<2, 1, false>(pairs, query, x);
        double hinges = 0.0, product = 0.0;
        for (int64_t i = 0; i < m; ++i) {
            const double *lost = sums + 4 * i, *won = lost + 2;
            const double as_other = lost[0] * (threshold + z[i]) - lost[1];
            const double as_preferred = won[0] * (threshold - z[i]) + won[1];
            hinges += as_other;
            product += (as_other - as_preferred) * z[i];
            gradient[query_order[i]] = 2.0 * (as_other - as_preferred);
            counts[first + query_order[i]] = lost[0] + won[0];
        }
        // h^2 = h (t - margin), and the sum of h * margin over the pairs is -(gradient / 2)' z.
        value += threshold * hinges + product;
    }
    return value;
}

// Huberised hinge of width d: 0 for a margin from 1 up, h^2 / (2d) in the ring 1 - d <= margin < 1 (h = 1 - margin), h - d/2
// below it. Also what the hinge loss itself has more, and the sum of h (1 - h/d) over the ring: what the duality gap of the
// hinge problem has beyond the gradient's part. The ring is summed by itself, so that narrow ones do not cancel.
static LossSums huber(const Pairs &pairs, int64_t first_query, int64_t last_query, const double *scores,
                                    double width, int32_t *order, int32_t *outer, int32_t *inner, double *counts,
                                    double *gradient_range) {
    SortedQuery query;
    LossSums sums = {0.0, 0.0, 0.0};
    const int64_t origin = pairs.pointers[first_query];
    for (int64_t q = first_query; q < last_query; ++q) {
        const int64_t first = pairs.pointers[q];
        double *gradient = gradient_range + (first - origin);
        if (!sort_query(pairs, q, scores, 1.0, 1.0 - width, order, outer, inner, counts, gradient, &sums.value, query))
            continue;
        const int64_t m = query.m;
        const int32_t *query_order = order + first;
        const double *z = query.z.data();
        double *x = at_least(query.values, 2 * m);
        for (int64_t i = 0; i < m; ++i) x[2 * i] = 1.0, x[2 * i + 1] = z[i];
        const double *found = pair_sums<2, 2, true>(pairs, query, x);
        // of all pairs: hinges in the ring; weights within; hinges times margin in the ring; margins within
        double hinges = 0.0, within = 0.0, product = 0.0, margins = 0.0;
        for (int64_t i = 0; i < m; ++i) {
            const double *lost = found + 8 * i, *won = lost + 4;
            const double as_other = lost[0] * (1.0 + z[i]) - lost[1], as_preferred = won[0] * (1.0 - z[i]) + won[1];
            hinges += as_other;
            within += lost[2];
            product += (as_preferred - as_other) * z[i];
            margins += (won[2] - lost[2]) * z[i];
            gradient[query_order[i]] = (lost[2] - won[2]) + (as_other - as_preferred) / width;
            counts[first + query_order[i]] = lost[0] + won[0];
        }
        const double squares = std::max(hinges - product, 0.0);  // h^2 = h (1 - margin)
        sums.value += 0.5 * squares / width + (1.0 - 0.5 * width) * within - margins;
        sums.excess += hinges - 0.5 * squares / width + 0.5 * width * within;
        sums.slack += std::max(hinges - squares / width, 0.0);
    }
    return sums;
}

// The pairs that bend the loss: those in the outer window, or, with an inner one, in the ring.
// (L v)_i = counts_i v_i - (sum of a_pi v_p over the pairs that i loses) - (sum of a_ij v_j over those it wins).
template <int kWindows>
RANKSVM_INLINE void subtract_pairs(const Pairs &pairs, SortedQuery &query, const int32_t *order, double *out) {
    const double *sums = pair_sums<1, kWindows, false>(pairs, query, query.v.data());
    for (int64_t i = 0; i < query.m; ++i) out[order[i]] -= sums[2 * kWindows * i] + sums[(2 * i + 1) * kWindows];
}

static void laplacian(const Pairs &pairs, int64_t first_query, int64_t last_query, const int32_t *order,
                                    const int32_t *outer, const int32_t *inner, const double *counts,
                                    const double *v_range, double *out_range) {
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
        gather_pairs(pairs, first, query_order, outer + first, inner == nullptr ? nullptr : inner + first, query);
        // L annihilates constants: an origin in the middle keeps the sums small.
        const double centre = v[query_order[m / 2]];
        for (int64_t i = 0; i < m; ++i) query.v[i] = v[query_order[i]] - centre;
        for (int64_t i = 0; i < m; ++i) out[query_order[i]] = counts[first + query_order[i]] * query.v[i];
        if (inner == nullptr)
            subtract_pairs<1>(pairs, query, query_order, out);
        else
            subtract_pairs<2>(pairs, query, query_order, out);
    }
}

// Rows of L X up to symmetry, for an explicit Hessian: Z_i = counts_i x_i - 2 * (sum of a_ij x_j over the pairs that i wins),
// so that X' L X = (X'Z + Z'X) / 2. One descending sweep with a running vector per level; beyond a few levels, a binary
// indexed tree of vectors.
RANKSVM_INLINE void add_scaled(double *RANKSVM_RESTRICT y, double scale, const double *RANKSVM_RESTRICT x, int64_t n) {
    for (int64_t f = 0; f < n; ++f) y[f] += scale * x[f];
}

class LevelVectors {
   public:
    LevelVectors(int32_t n_levels, bool adjacent, int64_t n, Vector<double> &memory)
        : n_levels_(n_levels), adjacent_(adjacent), few_(n_levels <= kFewLevels), n_(n), memory_(memory) {
        memory_.assign(static_cast<size_t>(n_levels) * n, 0.0);
    }

    RANKSVM_INLINE_METHOD void add(int32_t level, double weight, const double *x) {
        if (level == n_levels_ - 1) return;  // preferred to all, so nobody's other document
        if (few_ || adjacent_)
            add_scaled(memory_.data() + level * n_, weight, x, n_);
        else
            for (int32_t node = level + 1; node <= n_levels_; node += node & -node)
                add_scaled(memory_.data() + (node - 1) * n_, weight, x, n_);
    }

    // out += scale * (sum of the vectors of the levels that this one is compared with)
    RANKSVM_INLINE_METHOD void add_below(int32_t level, double scale, double *out) const {
        if (adjacent_)
            add_scaled(out, scale, memory_.data() + (level - 1) * n_, n_);
        else if (few_)
            for (int32_t below = 0; below < level; ++below) add_scaled(out, scale, memory_.data() + below * n_, n_);
        else
            for (int32_t node = level; node > 0; node -= node & -node)
                add_scaled(out, scale, memory_.data() + (node - 1) * n_, n_);
    }

   private:
    static constexpr int32_t kFewLevels = 8;
    int32_t n_levels_;
    bool adjacent_, few_;
    int64_t n_;
    Vector<double> &memory_;
};

RANKSVM_INLINE void add_other(const SortedQuery &query, int64_t p, double sign, const double *x, LevelVectors &others,
                              LevelVectors &gains) {
    const double weight = query.weighted ? sign * query.b[p] : sign;
    others.add(query.level[p], weight, x);
    if (query.gaps) gains.add(query.level[p], weight * query.g[p], x);
}

static void laplacian_rows(const Pairs &pairs, int64_t first_query, int64_t last_query,
                                         const int32_t *order, const int32_t *outer, const int32_t *inner,
                                         const double *counts, const double *X_range, int64_t n, double *Z_range) {
    SortedQuery query;
    Vector<double> plain, times_gain;
    const int64_t origin = pairs.pointers[first_query];
    for (int64_t q = first_query; q < last_query; ++q) {
        const int64_t first = pairs.pointers[q], m = pairs.pointers[q + 1] - first;
        const double *X = X_range + (first - origin) * n;
        double *Z = Z_range + (first - origin) * n;
        const int32_t n_levels = pairs.n_levels[q];
        if (n_levels < 2) {
            std::fill_n(Z, m * n, 0.0);
            continue;
        }
        query.resize(m);
        const int32_t *query_order = order + first;
        gather_pairs(pairs, first, query_order, outer + first, inner == nullptr ? nullptr : inner + first, query);
        LevelVectors others(n_levels, pairs.adjacent != 0, n, plain);
        LevelVectors gains(query.gaps ? n_levels : 0, pairs.adjacent != 0, n, times_gain);
        for (int64_t i = m - 1, entering = m - 1, leaving = m - 1; i >= 0; --i) {
            for (; entering >= query.start[0][i]; --entering)
                add_other(query, entering, 1.0, X + query_order[entering] * n, others, gains);
            if (inner != nullptr)
                for (; leaving >= query.start[1][i]; --leaving)
                    add_other(query, leaving, -1.0, X + query_order[leaving] * n, others, gains);
            const int32_t level = query.level[i];
            const double *x = X + query_order[i] * n, count = counts[first + query_order[i]];
            double *RANKSVM_RESTRICT out = Z + query_order[i] * n;
            for (int64_t f = 0; f < n; ++f) out[f] = count * x[f];
            if (level == 0 || count == 0.0) continue;
            const double scale = query.weighted ? -2.0 * query.a[i] : -2.0;
            others.add_below(level, query.gaps ? scale * query.g[i] : scale, out);
            if (query.gaps) gains.add_below(level, -scale, out);
        }
    }
}

}  // namespace ranksvm::RANKSVM_VARIANT

#endif
