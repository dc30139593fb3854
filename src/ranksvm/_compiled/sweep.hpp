// The margin sweep: value, gradient and curvature of a loss over all violating pairs, in O(m log m) a query of m
// documents, never pair by pair. Arrays named *_range hold only the rows of a range of queries.
#ifndef RANKSVM_SWEEP_HPP
#define RANKSVM_SWEEP_HPP

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "portable.hpp"
#include "sorted_query.hpp"
#include "window_sums.hpp"

namespace ranksvm {

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
            const double *up = query.sums.data() + 4 * i, *down = up + 2;
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
            double up = query.sums[2 * i], down = query.sums[2 * i + 1];
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
