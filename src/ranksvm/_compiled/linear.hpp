// Products of the design matrix with vectors, rows taken where they lie: float32 or float64 storage, float64 sums.
#ifndef RANKSVM_LINEAR_HPP
#define RANKSVM_LINEAR_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "portable.hpp"

namespace ranksvm::RANKSVM_VARIANT {

using std::int32_t;
using std::int64_t;

RANKSVM_INLINE int64_t row_at(const int64_t *rows, int64_t position) { return rows ? rows[position] : position; }

// ---------------------------------------------------------------------------------------------------------------------
// Dense, row-major

constexpr int kLanes = 16;

template <class Real>
RANKSVM_INLINE void dot4(const Real *x0, const Real *x1, const Real *x2, const Real *x3, const double *w, int64_t n,
                         double *out) {
    double s0[kLanes] = {0}, s1[kLanes] = {0}, s2[kLanes] = {0}, s3[kLanes] = {0};
    int64_t f = 0;
    for (; f + kLanes <= n; f += kLanes)
        for (int c = 0; c < kLanes; ++c) {
            s0[c] += static_cast<double>(x0[f + c]) * w[f + c];
            s1[c] += static_cast<double>(x1[f + c]) * w[f + c];
            s2[c] += static_cast<double>(x2[f + c]) * w[f + c];
            s3[c] += static_cast<double>(x3[f + c]) * w[f + c];
        }
    for (int half = kLanes / 2; half > 0; half /= 2)
        for (int c = 0; c < half; ++c) s0[c] += s0[c + half], s1[c] += s1[c + half], s2[c] += s2[c + half], s3[c] += s3[c + half];
    double r0 = 0, r1 = 0, r2 = 0, r3 = 0;
    for (; f < n; ++f) {
        r0 += static_cast<double>(x0[f]) * w[f];
        r1 += static_cast<double>(x1[f]) * w[f];
        r2 += static_cast<double>(x2[f]) * w[f];
        r3 += static_cast<double>(x3[f]) * w[f];
    }
    out[0] = s0[0] + r0, out[1] = s1[0] + r1, out[2] = s2[0] + r2, out[3] = s3[0] + r3;
}

template <class Real>
RANKSVM_INLINE void dense_scores(const Real *X, int64_t n, const int64_t *rows, int64_t start, int64_t stop,
                                 const double *w, double *out_range) {
    // The processor's own prefetching keeps no more than a core's share of the memory busy, and none for rows in disorder.
    constexpr int64_t kAhead = 16;
    const int64_t row_bytes = n * static_cast<int64_t>(sizeof(Real));
    double tail[4];
    for (int64_t t = start; t < stop; t += 4) {
        const int64_t last = stop - 1;
        const Real *x0 = X + row_at(rows, t) * n, *x1 = X + row_at(rows, std::min(t + 1, last)) * n;
        const Real *x2 = X + row_at(rows, std::min(t + 2, last)) * n, *x3 = X + row_at(rows, std::min(t + 3, last)) * n;
        for (int64_t r = 0; r < 4; ++r) {
            const char *later = reinterpret_cast<const char *>(X + row_at(rows, std::min(t + kAhead + r, last)) * n);
            for (int64_t byte = 0; byte < row_bytes; byte += 64) RANKSVM_PREFETCH(later + byte);
        }
        dot4(x0, x1, x2, x3, w, n, tail);
        for (int64_t r = 0; r < 4 && t + r < stop; ++r) out_range[t - start + r] = tail[r];
    }
}

// out += sum of u_t x_t; rows with u_t = 0 (documents in no violating pair) are not read.
template <class Real>
RANKSVM_INLINE void dense_accumulate(const Real *X, int64_t n, const int64_t *rows, int64_t start, int64_t stop,
                                     const double *u_range, double *RANKSVM_RESTRICT out) {
    int64_t t = start;
    while (t < stop) {
        const Real *x[4];
        double u[4];
        int filled = 0;
        for (; t < stop && filled < 4; ++t)
            if (u_range[t - start] != 0.0) {
                x[filled] = X + row_at(rows, t) * n;
                u[filled++] = u_range[t - start];
            }
        if (filled == 4) {
            const Real *x0 = x[0], *x1 = x[1], *x2 = x[2], *x3 = x[3];
            for (int64_t f = 0; f < n; ++f)
                out[f] += (u[0] * static_cast<double>(x0[f]) + u[1] * static_cast<double>(x1[f])) +
                          (u[2] * static_cast<double>(x2[f]) + u[3] * static_cast<double>(x3[f]));
        } else {
            for (int r = 0; r < filled; ++r)
                for (int64_t f = 0; f < n; ++f) out[f] += u[r] * static_cast<double>(x[r][f]);
        }
    }
}

template <class Real>
RANKSVM_INLINE bool dense_finite(const Real *X, int64_t size) {
    // x * 0 is 0 for finite x only, and NaN spoils the whole sum.
    Real spoilt[32] = {0};
    int64_t i = 0;
    for (; i + 32 <= size; i += 32) {
        for (std::size_t byte = 0; byte < 32 * sizeof(Real); byte += 64)
            RANKSVM_PREFETCH(reinterpret_cast<const char *>(X + i + 1024) + byte);
        for (int c = 0; c < 32; ++c) spoilt[c] += X[i + c] * Real(0);
    }
    Real total = 0;
    for (int c = 0; c < 32; ++c) total += spoilt[c];
    for (; i < size; ++i) total += X[i] * Real(0);
    return total == Real(0);
}

template <class Real>
RANKSVM_INLINE void dense_gather(const Real *X, int64_t n, const int64_t *rows, int64_t start, int64_t stop,
                                 double *RANKSVM_RESTRICT out_range) {
    for (int64_t t = start; t < stop; ++t) {
        const Real *x = X + row_at(rows, t) * n;
        double *RANKSVM_RESTRICT out = out_range + (t - start) * n;
        for (int64_t f = 0; f < n; ++f) out[f] = static_cast<double>(x[f]);
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// CSR

template <class Real, class Index>
RANKSVM_INLINE void sparse_scores(const Real *data, const Index *indices, const Index *indptr, const int64_t *rows,
                                  int64_t start, int64_t stop, const double *w, double *out_range) {
    for (int64_t t = start; t < stop; ++t) {
        const int64_t row = row_at(rows, t);
        double sum = 0.0;
        for (int64_t e = indptr[row]; e < indptr[row + 1]; ++e) sum += static_cast<double>(data[e]) * w[indices[e]];
        out_range[t - start] = sum;
    }
}

// out += sum of u_t x_t (or u_t x_t^2, feature by feature).
template <class Real, class Index>
RANKSVM_INLINE void sparse_accumulate(const Real *data, const Index *indices, const Index *indptr, const int64_t *rows,
                                      int64_t start, int64_t stop, const double *u_range, bool squares, double *out) {
    for (int64_t t = start; t < stop; ++t) {
        const double u = u_range[t - start];
        if (u == 0.0) continue;
        const int64_t row = row_at(rows, t);
        for (int64_t e = indptr[row]; e < indptr[row + 1]; ++e) {
            const double x = static_cast<double>(data[e]);
            out[indices[e]] += squares ? u * x * x : u * x;
        }
    }
}

template <class Real, class Index>
RANKSVM_INLINE void sparse_gather(const Real *data, const Index *indices, const Index *indptr, int64_t n,
                                  const int64_t *rows, int64_t start, int64_t stop, double *out_range) {
    std::fill_n(out_range, (stop - start) * n, 0.0);
    for (int64_t t = start; t < stop; ++t) {
        const int64_t row = row_at(rows, t);
        for (int64_t e = indptr[row]; e < indptr[row + 1]; ++e) out_range[(t - start) * n + indices[e]] += static_cast<double>(data[e]);
    }
}

// Rows of each query less their mean: L annihilates constants, so a Hessian is the same and loses no digits.
static void centre_queries(const int64_t *pointers, int64_t first_query, int64_t last_query, int64_t n,
                                   double *X_range) {
    Vector<double> mean(static_cast<size_t>(n));
    const int64_t origin = pointers[first_query];
    for (int64_t q = first_query; q < last_query; ++q) {
        const int64_t m = pointers[q + 1] - pointers[q];
        double *X = X_range + (pointers[q] - origin) * n;
        double *RANKSVM_RESTRICT centre = mean.data();
        std::fill_n(centre, n, 0.0);
        for (int64_t i = 0; i < m; ++i)
            for (int64_t f = 0; f < n; ++f) centre[f] += X[i * n + f];
        for (int64_t f = 0; f < n; ++f) centre[f] /= static_cast<double>(m);
        for (int64_t i = 0; i < m; ++i)
            for (int64_t f = 0; f < n; ++f) X[i * n + f] -= centre[f];
    }
}

}  // namespace ranksvm::RANKSVM_VARIANT

#endif
