// Value, gradient and curvature of a loss over all pairs, query by query. Every pair is visited if there are few of them, or if
// the loss is curved at every margin; else the margin sweep takes O(m log m) for m documents. Arrays named *_range hold only
// the rows of a range of queries.
#ifndef RANKSVM_SWEEP_HPP
#define RANKSVM_SWEEP_HPP

#include <algorithm>
#include <cstdint>
#include <limits>

#include "all_pairs.hpp"
#include "center_queries.hpp"
#include "hessian_rows.hpp"
#include "level_vectors.hpp"
#include "loss_sums.hpp"
#include "pair_sums.hpp"
#include "portable.hpp"
#include "query_order.hpp"
#include "smooth_pairs.hpp"
#include "sorted_query.hpp"
#include "squared_rows.hpp"

namespace ranksvm::RANKSVM_VARIANT {

// ---------------------------------------------------------------------------------------------------------------------
// Value and gradient

// The sums that segments leave in `total`, added up in order.
template <int kTotals>
struct Added {
    double sum[kTotals];
};

template <int kTotals, class Task>
RANKSVM_INLINE Added<kTotals> add_segments(SortedQuery &query, const Task &task) {
    double *totals = room_for<double>(query.partial, kMostSegments * kTotals);
    for_segments(query.workers, query.m, [&](int64_t segment, int64_t begin, int64_t end) {
        task(begin, end, totals + segment * kTotals);
    });
    Added<kTotals> all = {};
    for (int64_t k = 0; k < Segments(query.m).n; ++k)
        for (int c = 0; c < kTotals; ++c) all.sum[c] += totals[k * kTotals + c];
    return all;
}

// Squared hinge: sum of a_ij max(0, t - (s_i - s_j))^2 over the pairs. With the weighted counts c+, c- and score sums S+, S-
// of the violating pairs that i loses and wins, the hinges of i as the other document add up to c+ (t + s_i) - S+, as the
// preferred one to c- (t - s_i) + S-.
struct SquaredHingeSums {
    static constexpr bool kVisitsAll = false;

    // minus the derivative of a pair's loss, divided by the pair's term in the sums over visited pairs
    RANKSVM_INLINE_METHOD double slope() const { return 2.0; }

    RANKSVM_INLINE_METHOD LossSums visited(const LabeledQuery &query, const PairState &state, const Workers &) const {
        return squared_hinge_of_all_pairs(query, state);
    }

    RANKSVM_INLINE_METHOD LossSums swept(const Pairs &pairs, const PairState &state, SortedQuery &query,
                                         const double *x, const int32_t *order, double *counts,
                                         double *gradient) const {
        const double *z = query.z, *sums = pair_sums<2, 1, false>(pairs, query, x);
        const double threshold = state.outer_threshold;
        const auto found = add_segments<2>(query, [&](int64_t begin, int64_t end, double *total) {
            double hinges = 0.0, product = 0.0;
            for (int64_t i = begin; i < end; ++i) {
                const double *lost = sums + 4 * i, *won = lost + 2;
                const double as_other = lost[0] * (threshold + z[i]) - lost[1];
                const double as_preferred = won[0] * (threshold - z[i]) + won[1];
                hinges += as_other;
                product += (as_other - as_preferred) * z[i];
                gradient[order[i]] = 2.0 * (as_other - as_preferred);
                counts[order[i]] = lost[0] + won[0];
            }
            total[0] = hinges, total[1] = product;
        });
        const double hinges = found.sum[0], product = found.sum[1];
        // h^2 = h (t - margin), and the sum of h * margin over the pairs is -(gradient / 2)' z.
        return {threshold * hinges + product, 0.0, 0.0};
    }
};

// Huberized hinge of width d: 0 for a margin from 1 up, h^2 / (2d) in the ring 1 - d <= margin < 1 (h = 1 - margin), h - d/2
// below it. Also the hinge loss minus this loss, and the sum of h (1 - h/d) over the ring, which is a part of the duality gap
// of the hinge problem (loss_sums.hpp). The ring is summed by itself, so that the sums of narrow rings do not suffer from
// cancellation.
struct HuberSums {
    static constexpr bool kVisitsAll = false;
    double width;

    RANKSVM_INLINE_METHOD double slope() const { return 1.0; }

    RANKSVM_INLINE_METHOD LossSums visited(const LabeledQuery &query, const PairState &state, const Workers &) const {
        return huber_of_all_pairs(query, state, width);
    }

    RANKSVM_INLINE_METHOD LossSums swept(const Pairs &pairs, const PairState &, SortedQuery &query, const double *x,
                                         const int32_t *order, double *counts, double *gradient) const {
        const double *z = query.z, *sums = pair_sums<2, 2, true>(pairs, query, x);
        const auto found = add_segments<4>(query, [&](int64_t begin, int64_t end, double *total) {
            double hinges = 0.0, within = 0.0, product = 0.0, margins = 0.0;
            for (int64_t i = begin; i < end; ++i) {
                const double *lost = sums + 8 * i, *won = lost + 4;
                const double as_other = lost[0] * (1.0 + z[i]) - lost[1], as_preferred = won[0] * (1.0 - z[i]) + won[1];
                hinges += as_other;
                within += lost[2];
                product += (as_preferred - as_other) * z[i];
                margins += (won[2] - lost[2]) * z[i];
                gradient[order[i]] = (lost[2] - won[2]) + (as_other - as_preferred) / width;
                counts[order[i]] = lost[0] + won[0];
            }
            total[0] = hinges, total[1] = within, total[2] = product, total[3] = margins;
        });
        // sums over all pairs: hinges in the ring; weights below it; hinges times margins in the ring; margins below it
        const double hinges = found.sum[0], within = found.sum[1], product = found.sum[2], margins = found.sum[3];
        const double squares = std::max(hinges - product, 0.0);  // h^2 = h (1 - margin)
        return {0.5 * squares / width + (1.0 - 0.5 * width) * within - margins,
                hinges - 0.5 * squares / width + 0.5 * width * within, std::max(hinges - squares / width, 0.0)};
    }
};

// A function of margin_functions.hpp.
struct SmoothSums {
    static constexpr bool kVisitsAll = true;

    RANKSVM_INLINE_METHOD double slope() const { return 1.0; }

    RANKSVM_INLINE_METHOD LossSums visited(const LabeledQuery &query, const PairState &state, const Workers &workers) const {
        return {visit_smooth<VisitSmooth>(query, state.function, workers), 0.0, 0.0};
    }
};

RANKSVM_INLINE bool visit_query(const Pairs &pairs, const PairState &state, int64_t first, const double *scores,
                                LabeledQuery &query) {
    gather_labeled(pairs, first, query);
    double *kept = state.scores + first;
    if (scores != kept) std::copy_n(scores, query.m, kept);
    return gather_scores(scores, pairs.by_level + first, query);
}

// Sort a query and find its windows; x receives the pairs (1, score) of its documents. False if a score is NaN.
RANKSVM_NOINLINE static bool sort_query(const Pairs &pairs, const PairState &state, int64_t first, const double *scores,
                               SortedQuery &query, double *x) {
    int32_t *order = state.order + first, *outer = state.outer + first;
    int32_t *inner = state.ring ? state.inner + first : nullptr;
    if (!sort_by_score(scores, order, query)) {
        std::fill_n(outer, query.m, 0);
        if (inner != nullptr) std::fill_n(inner, query.m, 0);
        return false;
    }
    // The middle score as the origin: a common offset of the scores then costs no digits in the sums.
    const double center = query.s[query.m / 2];
    query.s[query.m] = std::numeric_limits<double>::infinity();
    for_segments(query.workers, query.m, [&](int64_t, int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            query.z[i] = query.s[i] - center;
            x[2 * i] = 1.0, x[2 * i + 1] = query.z[i];
        }
        find_windows(query, state.outer_threshold, begin, end, outer);
        if (inner != nullptr) find_windows(query, state.inner_threshold, begin, end, inner);
    });
    gather_pairs(pairs, first, order, outer, inner, query);
    return true;
}

template <class Loss>
RANKSVM_INLINE LossSums evaluate_range(const Pairs &pairs, const PairState &state, int64_t first_query,
                                       int64_t last_query, const double *scores_range, const Loss &loss,
                                       double *gradient_range, SortedQuery &sorted, const Workers &workers) {
    LabeledQuery labeled;
    LossSums total = {0.0, 0.0, 0.0};
    const int64_t origin = pairs.pointers[first_query];
    for (int64_t q = first_query; q < last_query; ++q) {
        const int64_t first = pairs.pointers[q], m = pairs.pointers[q + 1] - first;
        const double *scores = scores_range + (first - origin);
        double *gradient = gradient_range + (first - origin), *counts = state.degrees + first;
        LossSums sums = {0.0, 0.0, 0.0};
        bool numbers = true;
        if (pairs.n_levels[q] < 2) {
            std::fill_n(gradient, m, 0.0);
            std::fill_n(counts, m, 0.0);
        } else if (Loss::kVisitsAll || pairs.visited[q]) {
            labeled.resize(m);
            numbers = visit_query(pairs, state, first, scores, labeled);
            if (numbers) {
                const int32_t *documents = pairs.by_level + first;
                sums = loss.visited(labeled, state, workers);
                put_sides(labeled, documents, 1.0, labeled.lost, 1.0, labeled.won, counts);
                put_sides(labeled, documents, loss.slope(), labeled.as_other, -loss.slope(), labeled.as_preferred,
                          gradient);
            }
        } else if constexpr (!Loss::kVisitsAll) {
            resize(sorted, m, pairs.n_levels[q], workers);
            double *x = room_for<double>(sorted.values, 2 * m);
            numbers = sort_query(pairs, state, first, scores, sorted, x);
            if (numbers) sums = loss.swept(pairs, state, sorted, x, state.order + first, counts, gradient);
        }
        if (!numbers) {
            const double nan = std::numeric_limits<double>::quiet_NaN();
            std::fill_n(gradient, m, nan);
            std::fill_n(counts, m, nan);
            sums.value = nan;
        }
        total.value += sums.value;
        total.excess += sums.excess;
        total.slack += sums.slack;
    }
    return total;
}

static LossSums squared_hinge(const Pairs &pairs, const PairState &state, int64_t first_query, int64_t last_query,
                              const double *scores_range, double *gradient_range, SortedQuery &scratch,
                              const Workers &workers) {
    return evaluate_range(pairs, state, first_query, last_query, scores_range, SquaredHingeSums(), gradient_range, scratch,
                          workers);
}

static LossSums huber(const Pairs &pairs, const PairState &state, int64_t first_query, int64_t last_query,
                      const double *scores_range, double width, double *gradient_range, SortedQuery &scratch,
                      const Workers &workers) {
    return evaluate_range(pairs, state, first_query, last_query, scores_range, HuberSums{width}, gradient_range, scratch,
                          workers);
}

static LossSums smooth(const Pairs &pairs, const PairState &state, int64_t first_query, int64_t last_query,
                       const double *scores_range, double *gradient_range, SortedQuery &scratch, const Workers &workers) {
    return evaluate_range(pairs, state, first_query, last_query, scores_range, SmoothSums(), gradient_range, scratch, workers);
}

// ---------------------------------------------------------------------------------------------------------------------
// Curvature: L, the Laplacian of the graph of the curved pairs

// (L v)_i = counts_i v_i - (sum of a_pi v_p over the pairs that i loses) - (sum of a_ij v_j over those it wins).
RANKSVM_INLINE void laplacian_by_sweep(const Pairs &pairs, const PairState &state, int64_t first, const double *v,
                                       double *out, SortedQuery &query) {
    const int32_t *order = state.order + first;
    const int32_t *inner = state.ring ? state.inner + first : nullptr;
    const double *counts = state.degrees + first;
    gather_pairs(pairs, first, order, state.outer + first, inner, query);
    // L annihilates constants: an origin in the middle keeps the sums small.
    const double center = v[order[query.m / 2]];
    double *x = room_for<double>(query.values, query.m);
    for_segments(query.workers, query.m, [&](int64_t, int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) x[i] = v[order[i]] - center;
    });
    const int windows = state.ring ? 2 : 1;
    const double *sums = state.ring ? pair_sums<1, 2, false>(pairs, query, x) : pair_sums<1, 1, false>(pairs, query, x);
    for_segments(query.workers, query.m, [&](int64_t, int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
            out[order[i]] = counts[order[i]] * x[i] - (sums[2 * windows * i] + sums[(2 * i + 1) * windows]);
    });
}

static void laplacian(const Pairs &pairs, const PairState &state, int64_t first_query, int64_t last_query,
                      const double *v_range, double *out_range, SortedQuery &sorted, const Workers &workers) {
    LabeledQuery labeled;
    const int64_t origin = pairs.pointers[first_query];
    for (int64_t q = first_query; q < last_query; ++q) {
        const int64_t first = pairs.pointers[q], m = pairs.pointers[q + 1] - first;
        const double *v = v_range + (first - origin);
        double *out = out_range + (first - origin);
        if (pairs.n_levels[q] < 2) {
            std::fill_n(out, m, 0.0);
        } else if (state.function) {
            labeled.resize(m);
            laplacian_of_all_pairs(pairs, state, first, v, out, labeled, [&](const LabeledQuery &query) {
                visit_smooth<VisitSmoothLaplacian>(query, state.function, workers);
            });
        } else if (pairs.visited[q]) {
            labeled.resize(m);
            laplacian_of_all_pairs(pairs, state, first, v, out, labeled,
                                   [&](const LabeledQuery &query) { visit_curved_pairs(query, state); });
        } else {
            resize(sorted, m, pairs.n_levels[q], workers);
            laplacian_by_sweep(pairs, state, first, v, out, sorted);
        }
    }
}

template <class Real>
RANKSVM_INLINE void add_other(const SortedQuery &query, int64_t p, double sign, const Real *x, LevelVectors<Real> &others,
                              LevelVectors<Real> &gains) {
    const double weight = query.weighted ? sign * query.b[p] : sign;
    others.add(query.level[p], static_cast<Real>(weight), x);
    if (query.gaps) gains.add(query.level[p], static_cast<Real>(weight * query.g[p]), x);
}

// Rows Z with factor * X' L X = (X'Z + Z'X) / 2, for an explicit Hessian: Z_i is `factor` times counts_i x_i - 2 * (sum of
// a_ij x_j over the pairs that i wins). One descending sweep with a running vector per level or, beyond a few levels, a binary
// indexed tree of vectors.
template <class Real>
RANKSVM_INLINE void laplacian_rows_of_query(const Pairs &pairs, const SortedQuery &query, const int32_t *order,
                                            const double *counts, const Real *X, int64_t n, double factor, Real *Z,
                                            LevelVectors<Real> &others, LevelVectors<Real> &gains) {
    const bool ring = query.window[1] != nullptr;
    for (int64_t i = query.m - 1, entering = i, leaving = i; i >= 0; --i) {
        for (; entering >= query.start[0][i]; --entering)
            add_other(query, entering, 1.0, X + order[entering] * n, others, gains);
        if (ring)
            for (; leaving >= query.start[1][i]; --leaving)
                add_other(query, leaving, -1.0, X + order[leaving] * n, others, gains);
        const int32_t level = query.level[i];
        const Real *x = X + order[i] * n, count = static_cast<Real>(factor * counts[order[i]]);
        Real *RANKSVM_RESTRICT out = Z + order[i] * n;
        for (int64_t f = 0; f < n; ++f) out[f] = count * x[f];
        if (level == 0 || counts[order[i]] == 0.0) continue;
        const double scale = query.weighted ? -2.0 * factor * query.a[i] : -2.0 * factor;
        others.add_below(level, static_cast<Real>(query.gaps ? scale * query.g[i] : scale), out);
        if (query.gaps) gains.add_below(level, static_cast<Real>(-scale), out);
    }
}

template <class Real>
RANKSVM_INLINE void laplacian_rows(const Pairs &pairs, const PairState &state, int64_t first_query, int64_t last_query,
                           const Real *X_range, int64_t n, double factor, Real *Z_range, SortedQuery &query) {
    QueryOrder sorted;
    LabeledQuery labeled;
    Vector<Real> plain, times_gain;
    const int64_t origin = pairs.pointers[first_query];
    for (int64_t q = first_query; q < last_query; ++q) {
        const int64_t first = pairs.pointers[q], m = pairs.pointers[q + 1] - first;
        const Real *X = X_range + (first - origin) * n;
        const double *counts = state.degrees + first;
        Real *Z = Z_range + (first - origin) * n;
        const int32_t n_levels = pairs.n_levels[q];
        if (n_levels < 2) {  // such a query may have no rows at all
            std::fill_n(Z, m * n, Real(0));
            continue;
        }
        if (counts[0] != counts[0]) {  // all are NaN if a score of the query is NaN
            std::fill_n(Z, m * n, static_cast<Real>(counts[0]));
            continue;
        }
        if (state.function) {
            labeled.resize(m);
            smooth_rows_of_query(pairs, state, first, X, n, factor, Z, labeled);
            continue;
        }
        sorted.find(pairs, state, q, query);
        LevelVectors<Real> others(n_levels, pairs.adjacent != 0, n, plain);
        LevelVectors<Real> gains(query.gaps ? n_levels : 0, pairs.adjacent != 0, n, times_gain);
        laplacian_rows_of_query(pairs, query, sorted.order, counts, X, n, factor, Z, others, gains);
    }
}

// The parts of a Hessian: see hessian_rows.hpp.
template <class Real>
static int64_t hessian_rows(const Pairs &pairs, const PairState &state, int64_t first_query, int64_t last_query,
                            Real *X_range, int64_t n, double factor, Real *out, SortedQuery &query) {
    if (!state.function) {
        const int64_t squared = squared_rows(pairs, state, first_query, last_query, X_range, n, factor, out, query);
        if (squared != kNotSquared) return squared;
    }
    center_queries(pairs.pointers, first_query, last_query, n, X_range);
    laplacian_rows(pairs, state, first_query, last_query, X_range, n, factor, out, query);
    return kNotSquared;
}

}  // namespace ranksvm::RANKSVM_VARIANT

#endif
