// The dual of a RankSVM with factorized variables, alpha_ij = <v_i, v_j>. Projected gradient steps go from query to query; a
// query of l_q documents takes O(l_q K), for vectors v of K numbers, in addition to two reads of its rows. Other steps change
// all queries together.
#ifndef RANKSVM_FACTORIZED_HPP
#define RANKSVM_FACTORIZED_HPP

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "factorized_loops.hpp"
#include "linear.hpp"
#include "portable.hpp"

namespace ranksvm::RANKSVM_VARIANT {

// ---------------------------------------------------------------------------------------------------------------------
// Sums over the levels of a query

// For each level: sums over the documents below it minus sums over those above it, and sums over both.
struct LevelSums {
    Vector<double> own, difference, both;
    Vector<double> total, below;

    void reset(int64_t n_levels, int64_t stride) {
        own.assign(static_cast<size_t>(n_levels * stride), 0.0);
        difference.resize(own.size());
        both.resize(own.size());
        total.assign(static_cast<size_t>(stride), 0.0);
        below.assign(static_cast<size_t>(stride), 0.0);
    }

    // Computes the other sums from those over each level's own documents (`own`).
    RANKSVM_INLINE_METHOD void finish(int64_t n_levels, int64_t stride) {
        for (int64_t level = 0; level < n_levels; ++level)
            for (int64_t k = 0; k < stride; ++k) total[k] += own[level * stride + k];
        for (int64_t level = 0; level < n_levels; ++level)
            for (int64_t k = 0; k < stride; ++k) {
                const double here = own[level * stride + k];
                difference[level * stride + k] = (below[k] + here) + below[k] - total[k];
                both[level * stride + k] = total[k] - here;
                below[k] += here;
            }
    }
};

// out += weight * v, kFactorLanes numbers at a time
RANKSVM_INLINE void add_scaled(double *RANKSVM_RESTRICT out, const double *v, double weight, int64_t stride) {
    for (int64_t k = 0; k < stride; k += kFactorLanes)
        for (int c = 0; c < kFactorLanes; ++c) out[k + c] += weight * v[k + c];
}

RANKSVM_INLINE double inner(const double *u, const double *v, int64_t stride) {
    double sum[kFactorLanes] = {0.0};
    for (int64_t k = 0; k < stride; k += kFactorLanes)
        for (int c = 0; c < kFactorLanes; ++c) sum[c] += u[k + c] * v[k + c];
    return (sum[0] + sum[2]) + (sum[1] + sum[3]);
}

static void sum_levels(LevelSums &sums, const int32_t *levels, int64_t m, int64_t n_levels, int64_t stride,
                               const double *V, const double *weights) {
    sums.reset(n_levels, stride);
    for (int64_t i = 0; i < m; ++i)
        add_scaled(&sums.own[levels[i] * stride], V + i * stride, weights ? weights[i] : 1.0, stride);
    sums.finish(n_levels, stride);
}

// ---------------------------------------------------------------------------------------------------------------------
// One query

// The terms of a step t from V along D that do not need the rows of X. The objective changes by
// t slope + t^2 (s'c2 + |X'c1|^2 / 2 - pairs2) + t^3 <X'c1, X'c2> + t^4 |X'c2|^2 / 2, where X'(c0 + t c1 + t^2 c2) is
// the query's part of beta.
struct Direction {
    double pairs, pairs1, pairs2;  // sum of <v_i + t d_i, v_j + t d_j> over the pairs: three coefficients
    double slope;                  // <G, D>
    double score_product;          // s'c2
    double length2;                // |D|^2
    double projected2;             // |P(V - G) - V|^2
};

struct QueryWork {
    LevelSums factors, scored, moved;
    Vector<double> scores, G, D, c1, c2;

    void resize(int64_t m, int64_t stride) {
        const size_t size = static_cast<size_t>(m);
        if (scores.size() < size) {
            scores.resize(size);
            c1.resize(size);
            c2.resize(size);
        }
        if (G.size() < size * static_cast<size_t>(stride)) {
            G.resize(size * static_cast<size_t>(stride));
            D.resize(G.size());
        }
    }
};

// Gradient G with respect to the query's factors. The mean of the scores is subtracted first: no pair depends on it, and it
// would cost digits.
static void gradient_of_query(QueryWork &work, const int32_t *levels, int64_t m, int64_t n_levels, int64_t stride,
                                      const double *V, double *scores, double *G) {
    double mean = 0.0;
    for (int64_t i = 0; i < m; ++i) mean += scores[i];
    mean /= static_cast<double>(m);
    for (int64_t i = 0; i < m; ++i) scores[i] -= mean;
    sum_levels(work.factors, levels, m, n_levels, stride, V, nullptr);
    sum_levels(work.scored, levels, m, n_levels, stride, V, scores);
    // sums of (1 + s_j) v_j over lower levels and of (1 - s_j) v_j over higher ones
    double *margin = work.scored.difference.data();
    for (int64_t e = 0; e < n_levels * stride; ++e) margin[e] += work.factors.both[e];
    for (int64_t i = 0; i < m; ++i) {
        const double s = scores[i];
        const double *A = &work.factors.difference[levels[i] * stride], *B = margin + levels[i] * stride;
        double *RANKSVM_RESTRICT g = G + i * stride;
        for (int64_t k = 0; k < stride; k += kFactorLanes)
            for (int c = 0; c < kFactorLanes; ++c) g[k + c] = s * A[k + c] - B[k + c];
    }
}

// For a direction D, the coefficients of c(t) = c0 + t c1 + t^2 c2 and of the sum over the pairs, which are both bilinear in V.
// `moved` has the sums of D over each level's own documents, and `factors` has the sums of V.
static void expand_along(LevelSums &factors, LevelSums &moved, const int32_t *levels, int64_t m,
                                 int64_t n_levels, int64_t stride, const double *V, const double *D, double *c1,
                                 double *c2, double *pairs1, double *pairs2) {
    moved.finish(n_levels, stride);
    double sum1 = 0.0, sum2 = 0.0;
    for (int64_t i = 0; i < m; ++i) {
        const int64_t level = levels[i] * stride;
        const double *v = V + i * stride, *d = D + i * stride;
        const double *A = &factors.difference[level], *E = &factors.both[level];
        const double *AD = &moved.difference[level], *ED = &moved.both[level];
        double first[kFactorLanes] = {0.0}, second[kFactorLanes] = {0.0};
        double both1[kFactorLanes] = {0.0}, both2[kFactorLanes] = {0.0};
        for (int64_t k = 0; k < stride; k += kFactorLanes)
            for (int c = 0; c < kFactorLanes; ++c) {
                first[c] += v[k + c] * AD[k + c];
                first[c] += d[k + c] * A[k + c];
                second[c] += d[k + c] * AD[k + c];
                both1[c] += d[k + c] * E[k + c];
                both2[c] += d[k + c] * ED[k + c];
            }
        c1[i] = (first[0] + first[2]) + (first[1] + first[3]);
        c2[i] = (second[0] + second[2]) + (second[1] + second[3]);
        sum1 += (both1[0] + both1[2]) + (both1[1] + both1[3]);
        sum2 += (both2[0] + both2[2]) + (both2[1] + both2[3]);
    }
    *pairs1 = sum1, *pairs2 = 0.5 * sum2;
}

// Computes D = P(V - step G) - V, where P is the projection onto the box from 0 to `upper`, and all terms of `Direction`, none
// of which needs the rows of X. If `step` is 0, the step is the largest entry of V divided by the largest absolute entry of G.
static Direction direction_of_query(QueryWork &work, const int32_t *levels, int64_t m, int64_t n_levels,
                                            int64_t stride, double upper, double step, const double *V) {
    const double *G = work.G.data();
    if (step == 0.0) {
        double largest_v = 0.0, largest_g = 0.0;
        for (int64_t e = 0; e < m * stride; ++e) {
            largest_v = std::max(largest_v, V[e]);
            largest_g = std::max(largest_g, std::abs(G[e]));
        }
        step = largest_g > 0.0 ? largest_v / largest_g : 0.0;
    }
    work.moved.reset(n_levels, stride);
    double slope[kFactorLanes] = {0.0}, length2[kFactorLanes] = {0.0}, projected2[kFactorLanes] = {0.0};
    double pairs[kFactorLanes] = {0.0};
    for (int64_t i = 0; i < m; ++i) {
        const double *v = V + i * stride, *g = G + i * stride, *both = &work.factors.both[levels[i] * stride];
        double *RANKSVM_RESTRICT d = &work.D[i * stride], *RANKSVM_RESTRICT own = &work.moved.own[levels[i] * stride];
        for (int64_t k = 0; k < stride; k += kFactorLanes)
            for (int c = 0; c < kFactorLanes; ++c) {
                const double at = v[k + c], slope_here = g[k + c];
                const double move = std::min(std::max(at - step * slope_here, 0.0), upper) - at;
                const double unit = std::min(std::max(at - slope_here, 0.0), upper) - at;
                d[k + c] = move;
                own[k + c] += move;
                slope[c] += slope_here * move;
                length2[c] += move * move;
                projected2[c] += unit * unit;
                pairs[c] += at * both[k + c];
            }
    }
    Direction out = {};
    for (int c = 0; c < kFactorLanes; ++c) {
        out.slope += slope[c], out.length2 += length2[c], out.projected2 += projected2[c], out.pairs += 0.5 * pairs[c];
    }
    expand_along(work.factors, work.moved, levels, m, n_levels, stride, V, work.D.data(), work.c1.data(), work.c2.data(),
                 &out.pairs1, &out.pairs2);
    for (int64_t i = 0; i < m; ++i) out.score_product += work.scores[i] * work.c2[i];
    return out;
}

// ---------------------------------------------------------------------------------------------------------------------
// The step

RANKSVM_INLINE double value_at(const Quartic &of, double t) { return t * (of.q1 + t * (of.q2 + t * (of.q3 + t * of.q4))); }
RANKSVM_INLINE double slope_at(const Quartic &of, double t) {
    return of.q1 + t * (2.0 * of.q2 + t * (3.0 * of.q3 + t * 4.0 * of.q4));
}

// The root of the slope between two places at which its signs differ; between them it is monotone.
static double root_between(const Quartic &quartic, double low, double high) {
    const double at_low = slope_at(quartic, low);
    double t = 0.5 * (low + high);
    for (int iteration = 0; iteration < 100; ++iteration) {
        const double slope = slope_at(quartic, t);
        if ((slope < 0.0) == (at_low < 0.0)) low = t;
        else high = t;
        const double curvature = 2.0 * quartic.q2 + t * (6.0 * quartic.q3 + t * 12.0 * quartic.q4);
        double next = t - slope / curvature;
        if (!(next > low && next < high)) next = 0.5 * (low + high);
        if (std::abs(next - t) <= 1e-15 * high) return next;
        t = next;
    }
    return t;
}

// The exact minimizer of a quartic on [0, 1]: a root of its slope, found between the turning points of the slope, or 1.
static double least(const Quartic &quartic) {
    double cuts[4] = {0.0, 1.0, 1.0, 1.0};
    int n_cuts = 1;
    const double a = 12.0 * quartic.q4, b = 6.0 * quartic.q3, c = 2.0 * quartic.q2;
    const double discriminant = b * b - 4.0 * a * c;
    if (discriminant > 0.0) {
        const double q = -0.5 * (b + std::copysign(std::sqrt(discriminant), b));
        double turns[2] = {q != 0.0 ? c / q : 0.0, a != 0.0 ? q / a : 0.0};
        if (turns[0] > turns[1]) std::swap(turns[0], turns[1]);
        for (double turn : turns)
            if (turn > 0.0 && turn < 1.0) cuts[n_cuts++] = turn;
    }
    cuts[n_cuts++] = 1.0;
    double best = 1.0;
    for (int part = 0; part + 1 < n_cuts; ++part) {
        const double low = cuts[part], high = cuts[part + 1];
        if (!(slope_at(quartic, low) < 0.0 && slope_at(quartic, high) > 0.0)) continue;
        const double root = root_between(quartic, low, high);
        if (value_at(quartic, root) < value_at(quartic, best)) best = root;
    }
    return best;
}

// ---------------------------------------------------------------------------------------------------------------------
// Rows of X: scores, the two products p = X'c1 and r = X'c2, and their share of beta

struct Products {
    double pp, pr, rr;
};

// Sums here take one product at a time. In a sum of two products the compiler fuses one of them with the addition. Which one
// may differ between its copies of a loop (one copy for arrays that are close together, one for all others): the same fit would
// sometimes give other digits.

constexpr int kSums = 16;

template <class Real>
struct DenseRows {
    const Real *X;
    int64_t n;
    Vector<double> p, r;

    DenseRows(const Real *X, int64_t n) : X(X), n(n), p(static_cast<size_t>(n)), r(static_cast<size_t>(n)) {}

    RANKSVM_INLINE_METHOD void scores(const int64_t *rows, int64_t start, int64_t stop, const double *beta, double *out) {
        dense_scores(OneBlock<Real>{X}, n, rows, start, stop, Where::kScattered, beta, out);
    }

    RANKSVM_INLINE_METHOD Products products(const int64_t *rows, int64_t start, int64_t stop, const double *c1,
                                            const double *c2) {
        double *RANKSVM_RESTRICT P = p.data(), *RANKSVM_RESTRICT R = r.data();
        std::fill_n(P, n, 0.0);
        std::fill_n(R, n, 0.0);
        int64_t t = start;
        for (; t + 4 <= stop; t += 4) {
            const Real *x0 = X + row_at(rows, t) * n, *x1 = X + row_at(rows, t + 1) * n;
            const Real *x2 = X + row_at(rows, t + 2) * n, *x3 = X + row_at(rows, t + 3) * n;
            const double *a = c1 + (t - start), *b = c2 + (t - start);
            for (int64_t f = 0; f < n; ++f) {
                const double y0 = static_cast<double>(x0[f]), y1 = static_cast<double>(x1[f]);
                const double y2 = static_cast<double>(x2[f]), y3 = static_cast<double>(x3[f]);
                double with_a = P[f], with_b = R[f];
                with_a += a[0] * y0, with_b += b[0] * y0;
                with_a += a[1] * y1, with_b += b[1] * y1;
                with_a += a[2] * y2, with_b += b[2] * y2;
                with_a += a[3] * y3, with_b += b[3] * y3;
                P[f] = with_a, R[f] = with_b;
            }
        }
        for (; t < stop; ++t) {
            const Real *x = X + row_at(rows, t) * n;
            for (int64_t f = 0; f < n; ++f) {
                P[f] += c1[t - start] * static_cast<double>(x[f]);
                R[f] += c2[t - start] * static_cast<double>(x[f]);
            }
        }
        double pp[kSums] = {0.0}, pr[kSums] = {0.0}, rr[kSums] = {0.0};
        int64_t f = 0;
        for (; f + kSums <= n; f += kSums)
            for (int c = 0; c < kSums; ++c) {
                pp[c] += P[f + c] * P[f + c];
                pr[c] += P[f + c] * R[f + c];
                rr[c] += R[f + c] * R[f + c];
            }
        Products out = {0.0, 0.0, 0.0};
        for (int c = 0; c < kSums; ++c) out.pp += pp[c], out.pr += pr[c], out.rr += rr[c];
        for (; f < n; ++f) out.pp += P[f] * P[f], out.pr += P[f] * R[f], out.rr += R[f] * R[f];
        return out;
    }

    RANKSVM_INLINE_METHOD void move(double t, double *RANKSVM_RESTRICT beta) {
        const double *P = p.data(), *R = r.data();
        for (int64_t f = 0; f < n; ++f) beta[f] += t * (P[f] + t * R[f]);
    }

    // beta += X'c
    RANKSVM_INLINE_METHOD void add(const int64_t *rows, int64_t start, int64_t stop, const double *c, double *beta) {
        dense_accumulate(OneBlock<Real>{X}, n, rows, start, stop, stop, c, beta);
    }
};

// Of sparse rows only the features that a query has are touched: there may be far more features than entries.
template <class Real, class Index>
struct SparseRows {
    const Real *data;
    const Index *indices;
    const Index *indptr;
    Vector<double> p, r;
    Vector<char> seen;
    Vector<int64_t> touched;

    SparseRows(const Real *data, const Index *indices, const Index *indptr, int64_t n)
        : data(data), indices(indices), indptr(indptr), p(static_cast<size_t>(n)), r(static_cast<size_t>(n)),
          seen(static_cast<size_t>(n)) {}

    RANKSVM_INLINE_METHOD void scores(const int64_t *rows, int64_t start, int64_t stop, const double *beta, double *out) {
        sparse_scores(data, indices, indptr, rows, start, stop, beta, out);
    }

    RANKSVM_INLINE_METHOD Products products(const int64_t *rows, int64_t start, int64_t stop, const double *c1,
                                            const double *c2) {
        for (int64_t f : touched) p[f] = r[f] = 0.0, seen[f] = 0;
        touched.clear();
        for (int64_t t = start; t < stop; ++t) {
            const int64_t row = row_at(rows, t);
            for (int64_t e = indptr[row]; e < indptr[row + 1]; ++e) {
                const int64_t f = indices[e];
                const double x = static_cast<double>(data[e]);
                p[f] += c1[t - start] * x;
                r[f] += c2[t - start] * x;
                if (!seen[f]) seen[f] = 1, touched.push_back(f);
            }
        }
        Products out = {0.0, 0.0, 0.0};
        for (int64_t f : touched) out.pp += p[f] * p[f], out.pr += p[f] * r[f], out.rr += r[f] * r[f];
        return out;
    }

    RANKSVM_INLINE_METHOD void move(double t, double *beta) {
        for (int64_t f : touched) beta[f] += t * (p[f] + t * r[f]);
    }

    RANKSVM_INLINE_METHOD void add(const int64_t *rows, int64_t start, int64_t stop, const double *c, double *beta) {
        sparse_accumulate(data, indices, indptr, rows, start, stop, c, false, beta);
    }
};

// ---------------------------------------------------------------------------------------------------------------------
// Visits, one query after another

// Returns the sum of |P(V - G) - V|^2 over the queries, each as it was when it was visited.
template <class Rows>
static double visit_queries(Rows &X, const Visits &visits, double *V, double *beta, double *steps,
                                    double *pairs) {
    const FactorArrays &arrays = visits.arrays;
    const int64_t stride = arrays.stride;
    QueryWork work;
    double projected2 = 0.0;
    for (int64_t visit = 0; visit < visits.n_visits; ++visit) {
        const int64_t q = visits.order[visit], start = arrays.pointers[q], stop = arrays.pointers[q + 1], m = stop - start;
        const int64_t n_levels = arrays.n_levels[q];
        if (n_levels < 2) continue;
        const int32_t *levels = arrays.levels + start;
        double *own = V + start * stride;
        work.resize(m, stride);
        X.scores(visits.rows, start, stop, beta, work.scores.data());
        gradient_of_query(work, levels, m, n_levels, stride, own, work.scores.data(), work.G.data());
        const double step = visits.fixed_step > 0.0 ? visits.fixed_step : steps[q];
        const Direction direction = direction_of_query(work, levels, m, n_levels, stride, visits.upper, step, own);
        projected2 += direction.projected2;
        pairs[q] = direction.pairs;
        if (direction.length2 == 0.0) continue;
        double t = 1.0;
        if (visits.fixed_step > 0.0) {
            for (int64_t i = 0; i < m; ++i) work.c1[i] += work.c2[i];
            X.add(visits.rows, start, stop, work.c1.data(), beta);
        } else {
            const Products products = X.products(visits.rows, start, stop, work.c1.data(), work.c2.data());
            const Quartic quartic = {direction.slope, direction.score_product + 0.5 * products.pp - direction.pairs2,
                                     products.pr, 0.5 * products.rr};
            t = least(quartic);
            if (!(value_at(quartic, t) < 0.0)) continue;  // no decrease, because of round-off
            // the spectral step length of Barzilai and Borwein, <S, S> / <S, Y> with the step S = t D
            const double turned = slope_at(quartic, t) - quartic.q1;
            steps[q] = turned > 0.0 ? t * direction.length2 / turned : 0.0;
            X.move(t, beta);
        }
        const double *D = work.D.data();
        for (int64_t e = 0; e < m * stride; ++e) own[e] = std::min(std::max(own[e] + t * D[e], 0.0), visits.upper);
        pairs[q] += t * (direction.pairs1 + t * direction.pairs2);
    }
    return projected2;
}

template <class Real>
static double visit_dense(const Real *X, int64_t n, const Visits &visits, double *V, double *beta, double *steps,
                          double *pairs) {
    DenseRows<Real> rows(X, n);
    return visit_queries(rows, visits, V, beta, steps, pairs);
}
template <class Real, class Index>
static double visit_sparse(const Real *data, const Index *indices, const Index *indptr, int64_t n, const Visits &visits,
                           double *V, double *beta, double *steps, double *pairs) {
    SparseRows<Real, Index> rows(data, indices, indptr, n);
    return visit_queries(rows, visits, V, beta, steps, pairs);
}

// ---------------------------------------------------------------------------------------------------------------------
// Queries first .. last all at once: the coefficients c of beta = X'c and the sums of <v_i, v_j>; the gradient

static void factor_coefficients(const FactorArrays &arrays, int64_t first, int64_t last, const double *V,
                                        double *c_range, double *pairs) {
    LevelSums sums;
    const int64_t stride = arrays.stride, origin = arrays.pointers[first];
    for (int64_t q = first; q < last; ++q) {
        const int64_t start = arrays.pointers[q], m = arrays.pointers[q + 1] - start;
        const int32_t *levels = arrays.levels + start;
        sum_levels(sums, levels, m, arrays.n_levels[q], stride, V + start * stride, nullptr);
        pairs[q] = 0.0;
        for (int64_t i = 0; i < m; ++i) {
            const double *v = V + (start + i) * stride;
            c_range[start - origin + i] = inner(v, &sums.difference[levels[i] * stride], stride);
            pairs[q] += 0.5 * inner(v, &sums.both[levels[i] * stride], stride);
        }
    }
}

// Repeats the step from `previous` to V: D = P(2 V - previous) - V overwrites `previous`. Also writes the coefficients that
// `expand_along` computes for each position and for each query.
static void factor_momentum(const FactorArrays &arrays, int64_t first, int64_t last, double upper, const double *V,
                                    double *previous, double *c1_range, double *c2_range, double *pairs1,
                                    double *pairs2) {
    LevelSums factors, moved;
    const int64_t stride = arrays.stride, origin = arrays.pointers[first];
    for (int64_t q = first; q < last; ++q) {
        const int64_t start = arrays.pointers[q], m = arrays.pointers[q + 1] - start, n_levels = arrays.n_levels[q];
        const int32_t *levels = arrays.levels + start;
        const double *own = V + start * stride;
        double *D = previous + start * stride;
        for (int64_t e = 0; e < m * stride; ++e) D[e] = std::min(std::max(2.0 * own[e] - D[e], 0.0), upper) - own[e];
        sum_levels(factors, levels, m, n_levels, stride, own, nullptr);
        moved.reset(n_levels, stride);
        for (int64_t i = 0; i < m; ++i) add_scaled(&moved.own[levels[i] * stride], D + i * stride, 1.0, stride);
        expand_along(factors, moved, levels, m, n_levels, stride, own, D, c1_range + (start - origin),
                     c2_range + (start - origin), pairs1 + q, pairs2 + q);
    }
}

// V becomes V + t D, and D the former V.
static void factor_move(int64_t size, double upper, double t, double *RANKSVM_RESTRICT V,
                                double *RANKSVM_RESTRICT D) {
    for (int64_t e = 0; e < size; ++e) {
        const double before = V[e];
        V[e] = std::min(std::max(before + t * D[e], 0.0), upper);
        D[e] = before;
    }
}

static void factor_gradient(const FactorArrays &arrays, int64_t first, int64_t last, const double *V,
                                    double *scores_range, double *G_range) {
    QueryWork work;
    const int64_t stride = arrays.stride, origin = arrays.pointers[first];
    for (int64_t q = first; q < last; ++q) {
        const int64_t start = arrays.pointers[q], m = arrays.pointers[q + 1] - start;
        gradient_of_query(work, arrays.levels + start, m, arrays.n_levels[q], stride, V + start * stride,
                          scores_range + (start - origin), G_range + (start - origin) * stride);
    }
}

}  // namespace ranksvm::RANKSVM_VARIANT

#endif
