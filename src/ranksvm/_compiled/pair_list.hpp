// Losses over listed pairs: preferences that do not come from labels.
#ifndef RANKSVM_PAIR_LIST_HPP
#define RANKSVM_PAIR_LIST_HPP

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "active_rows.hpp"
#include "center_queries.hpp"
#include "hessian_rows.hpp"
#include "lanes.hpp"
#include "level_vectors.hpp"
#include "loss_sums.hpp"
#include "margin_functions.hpp"
#include "pair_list_loops.hpp"
#include "portable.hpp"

namespace ranksvm::RANKSVM_VARIANT {

using std::int32_t;
using std::int64_t;

// Loss of one pair whose margin is below the threshold; `pull` is minus the derivative, `bend` whether the loss is curved
// there.
struct SquaredHingeOfPair {
    double threshold;
    RANKSVM_INLINE_METHOD void operator()(double margin, double a, double *pull, bool *bend, LossSums *sums) const {
        const double h = threshold - margin;
        sums->value += a * h * h;
        *pull = 2.0 * h;
        *bend = true;
    }
};

struct HuberOfPair {
    double threshold, width, ring_width;
    RANKSVM_INLINE_METHOD void operator()(double margin, double a, double *pull, bool *bend, LossSums *sums) const {
        const double h = threshold - margin;
        const bool ring = margin >= threshold - ring_width;
        const double value = ring ? 0.5 * h * h / width : h - 0.5 * width;
        sums->value += a * value;
        sums->excess += a * (h - value);
        if (ring) sums->slack += a * h * std::max(1.0 - h / width, 0.0);
        *pull = ring ? h / width : 1.0;
        *bend = ring;
    }
};

// Value and gradient; `curvature` receives the weight of each pair whose loss is curved, `counts` the sum of these weights for
// each document.
template <class Loss>
RANKSVM_INLINE LossSums evaluate_list(const PairList &pairs, int64_t first_query, int64_t last_query, const double *scores_range,
                                      const Loss &loss, double *curvature, double *counts, double *gradient_range) {
    LossSums sums = {0.0, 0.0, 0.0};
    const int64_t origin = pairs.pointers[first_query], end = pairs.pointers[last_query];
    std::fill_n(gradient_range, end - origin, 0.0);
    std::fill_n(counts + origin, end - origin, 0.0);
    for (int64_t q = first_query; q < last_query; ++q) {
        const double *s = scores_range + (pairs.pointers[q] - origin);
        double *own_counts = counts + pairs.pointers[q], *gradient = gradient_range + (pairs.pointers[q] - origin);
        for (int64_t p = pairs.pair_pointers[q]; p < pairs.pair_pointers[q + 1]; ++p) {
            const int32_t i = pairs.preferred[p], j = pairs.other[p];
            const double margin = s[i] - s[j], a = pairs.weight[p];
            curvature[p] = 0.0;
            if (margin >= loss.threshold) continue;
            if (margin != margin) sums.value = std::numeric_limits<double>::quiet_NaN();
            double pull;
            bool bend;
            loss(margin, a, &pull, &bend, &sums);
            gradient[i] -= a * pull;
            gradient[j] += a * pull;
            if (!bend) continue;
            curvature[p] = a;
            own_counts[i] += a;
            own_counts[j] += a;
        }
    }
    return sums;
}

static LossSums squared_hinge_of_list(PairList pairs, int64_t first_query, int64_t last_query, const double *scores_range,
                                      double threshold, double *curvature, double *counts, double *gradient_range) {
    return evaluate_list(pairs, first_query, last_query, scores_range, SquaredHingeOfPair{threshold}, curvature, counts,
                         gradient_range);
}

static LossSums huber_of_list(PairList pairs, int64_t first_query, int64_t last_query, const double *scores_range, double width,
                              double ring, double *curvature, double *counts, double *gradient_range) {
    return evaluate_list(pairs, first_query, last_query, scores_range, HuberOfPair{1.0, width, ring}, curvature, counts,
                         gradient_range);
}

// A function of margin_functions.hpp: value and gradient. `curvature` receives the second derivative of each pair's loss,
// `counts` the sum of these for each document. Pairs are gathered a block at a time, across queries.
template <class Function>
RANKSVM_INLINE LossSums evaluate_smooth_list(const PairList &pairs, int64_t first_query, int64_t last_query,
                                             const double *scores_range, const Function &function, double *curvature,
                                             double *counts, double *gradient_range) {
    constexpr int64_t kBlock = 256;
    const int64_t origin = pairs.pointers[first_query], end = pairs.pointers[last_query];
    std::fill_n(gradient_range, end - origin, 0.0);
    std::fill_n(counts + origin, end - origin, 0.0);
    int64_t preferred[kBlock], other[kBlock];
    double margins[kBlock], weights[kBlock], pulls[kBlock], bends[kBlock];
    Lanes value = all_lanes(0.0);
    int64_t q = first_query;
    for (int64_t p = pairs.pair_pointers[first_query], last = pairs.pair_pointers[last_query]; p < last;) {
        const int64_t size = std::min(kBlock, last - p);
        for (int64_t c = 0; c < size;) {
            while (pairs.pair_pointers[q + 1] <= p + c) ++q;
            const int64_t base = pairs.pointers[q] - origin, until = std::min(size, pairs.pair_pointers[q + 1] - p);
            for (; c < until; ++c) {
                preferred[c] = base + pairs.preferred[p + c];
                other[c] = base + pairs.other[p + c];
                margins[c] = scores_range[preferred[c]] - scores_range[other[c]];
                weights[c] = pairs.weight[p + c];
            }
        }
        for (int64_t c = size; c < size + kWidth && c < kBlock; ++c) margins[c] = weights[c] = 0.0;
        for (int64_t c = 0; c < size; c += kWidth) {
            const AtMargins at = function.at(lanes_at(margins + c));
            const Lanes weight = lanes_at(weights + c);
            value += weight * at.value;
            put_lanes(pulls + c, weight * at.pull);
            put_lanes(bends + c, weight * at.bend);
        }
        for (int64_t c = 0; c < size; ++c) {
            gradient_range[preferred[c]] -= pulls[c];
            gradient_range[other[c]] += pulls[c];
            counts[origin + preferred[c]] += bends[c];
            counts[origin + other[c]] += bends[c];
            curvature[p + c] = bends[c];
        }
        p += size;
    }
    return {sum_of(value), 0.0, 0.0};
}

static LossSums smooth_of_list(PairList pairs, int64_t first_query, int64_t last_query, const double *scores_range, int function,
                               double *curvature, double *counts, double *gradient_range) {
    return with_margin_function(function, [&](auto of_margin) {
        return evaluate_smooth_list(pairs, first_query, last_query, scores_range, of_margin, curvature, counts, gradient_range);
    });
}

// L v, where L is the Laplacian of the graph of the pairs, weighted by their curvature.
static void laplacian_of_list(const PairList &pairs, int64_t first_query, int64_t last_query, const double *curvature,
                              const double *v_range, double *out_range) {
    const int64_t origin = pairs.pointers[first_query];
    std::fill_n(out_range, pairs.pointers[last_query] - origin, 0.0);
    for (int64_t q = first_query; q < last_query; ++q) {
        const double *v = v_range + (pairs.pointers[q] - origin);
        double *out = out_range + (pairs.pointers[q] - origin);
        for (int64_t p = pairs.pair_pointers[q]; p < pairs.pair_pointers[q + 1]; ++p) {
            const int32_t i = pairs.preferred[p], j = pairs.other[p];
            const double flow = curvature[p] * (v[i] - v[j]);
            out[i] += flow;
            out[j] -= flow;
        }
    }
}

// Rows Z with factor * X' L X = (X'Z + Z'X) / 2: Z_i is `factor` times counts_i x_i - 2 * (sum of curvature_ij x_j over the
// pairs that i wins).
template <class Real>
RANKSVM_INLINE void laplacian_rows_of_list(const PairList &pairs, int64_t first_query, int64_t last_query, const double *curvature,
                                   const double *counts, const Real *X_range, int64_t n, double factor, Real *Z_range) {
    const int64_t origin = pairs.pointers[first_query], end = pairs.pointers[last_query];
    for (int64_t t = 0; t < end - origin; ++t) {
        const Real count = static_cast<Real>(factor * counts[origin + t]);
        for (int64_t f = 0; f < n; ++f) Z_range[t * n + f] = count * X_range[t * n + f];
    }
    for (int64_t q = first_query; q < last_query; ++q) {
        const Real *X = X_range + (pairs.pointers[q] - origin) * n;
        Real *Z = Z_range + (pairs.pointers[q] - origin) * n;
        for (int64_t p = pairs.pair_pointers[q]; p < pairs.pair_pointers[q + 1]; ++p) {
            if (curvature[p] == 0.0) continue;
            const Real weight = static_cast<Real>(2.0 * factor * curvature[p]);
            const Real *RANKSVM_RESTRICT x = X + pairs.other[p] * n;
            Real *RANKSVM_RESTRICT z = Z + pairs.preferred[p] * n;
            for (int64_t f = 0; f < n; ++f) z[f] -= weight * x[f];
        }
    }
}

// Writes a row sqrt(factor * curvature_ij) (x_i - x_j) for each pair whose curvature is not 0. Returns the number of rows.
template <class Real>
RANKSVM_INLINE int64_t differences_of_list(const PairList &pairs, int64_t first_query, int64_t last_query,
                                           const double *curvature, const Real *X_range, int64_t n, double factor, Real *D) {
    Real *row = D;
    for (int64_t q = first_query; q < last_query; ++q) {
        const Real *X = X_range + (pairs.pointers[q] - pairs.pointers[first_query]) * n;
        for (int64_t p = pairs.pair_pointers[q]; p < pairs.pair_pointers[q + 1]; ++p) {
            if (curvature[p] == 0.0) continue;
            const Real root = static_cast<Real>(std::sqrt(factor * curvature[p]));
            const Real *preferred = X + pairs.preferred[p] * n, *other = X + pairs.other[p] * n;
            for (int64_t f = 0; f < n; ++f) row[f] = root * (preferred[f] - other[f]);
            row += n;
        }
    }
    return (row - D) / n;
}

// The parts of a Hessian: see hessian_rows.hpp. The product of a difference with itself takes half the work of the product of a
// row of X with a row of Z, so differences are less work if there are at most two pairs for each row of X.
template <class Real>
static int64_t hessian_rows_of_list(const PairList &pairs, int64_t first_query, int64_t last_query, const double *curvature,
                                    const double *counts, Real *X_range, int64_t n, double factor, Real *out) {
    const int64_t n_pairs = pairs.pair_pointers[last_query] - pairs.pair_pointers[first_query];
    if (n_pairs <= 2 * (pairs.pointers[last_query] - pairs.pointers[first_query]))
        return differences_of_list(pairs, first_query, last_query, curvature, X_range, n, factor, out);
    center_queries(pairs.pointers, first_query, last_query, n, X_range);
    laplacian_rows_of_list(pairs, first_query, last_query, curvature, counts, X_range, n, factor, out);
    return kNotSquared;
}

// U = factor * L V for a range of queries; false if V does not have a row for each document in an active pair.
template <class Real>
static bool laplacian_product_of_list(const PairList &pairs, int64_t first_query, int64_t last_query, const double *curvature,
                                      const double *counts, const Columns<Real> &columns, double factor) {
    const int64_t origin = pairs.pointers[first_query];
    if (count_active(counts + origin, pairs.pointers[last_query] - origin) != columns.n_rows) return false;
    ActiveRows rows;
    for (int64_t q = first_query; q < last_query; ++q) {
        const int64_t first = pairs.pointers[q], m = pairs.pointers[q + 1] - first;
        rows.find(counts + first, m);
        multiply_diagonal(rows, counts + first, m, columns, factor);
        for (int64_t p = pairs.pair_pointers[q]; p < pairs.pair_pointers[q + 1]; ++p) {
            const int64_t i = rows[pairs.preferred[p]], j = rows[pairs.other[p]];
            if (curvature[p] == 0.0 || i < 0 || j < 0) continue;
            const Real weight = static_cast<Real>(-factor * curvature[p]);
            add_scaled(columns.U + i * columns.stride, weight, columns.V + j * columns.stride, columns.n);
            add_scaled(columns.U + j * columns.stride, weight, columns.V + i * columns.stride, columns.n);
        }
    }
    return true;
}

}  // namespace ranksvm::RANKSVM_VARIANT

#endif
