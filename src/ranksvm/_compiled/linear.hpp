// Products of the design matrix with vectors, rows taken where they lie: float32 or float64 storage, float64 sums.
#ifndef RANKSVM_LINEAR_HPP
#define RANKSVM_LINEAR_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "centre_queries.hpp"
#include "dense_matrix.hpp"
#include "portable.hpp"
#include "row_lanes.hpp"

namespace ranksvm::RANKSVM_VARIANT {

using std::int32_t;
using std::int64_t;

RANKSVM_INLINE int64_t row_at(const int64_t *rows, int64_t position) { return rows ? rows[position] : position; }

// ---------------------------------------------------------------------------------------------------------------------
// Dense

template <class Real>
RANKSVM_INLINE const Real *row_of(const OneBlock<Real> &X, int64_t n, int64_t row) {
    return X.values + row * n;
}

template <class Real>
RANKSVM_INLINE const Real *row_of(const TwoBlocks<Real> &X, int64_t n, int64_t row) {
    return row < X.n_first ? X.first + row * n : X.second + (row - X.n_first) * n;
}

// The last kWidth features of a row again, where n is no multiple of it, count for those that no whole vector has: what
// multiplies the others is 0. Without w it is 1 for those that count.
RANKSVM_INLINE Lanes last_lanes(const double *w, int64_t n) {
    double lanes[kWidth] = {};
    for (int64_t f = n - n % kWidth; f < n; ++f) lanes[f - (n - kWidth)] = w ? w[f] : 1.0;
    return lanes_at(lanes);
}

// Products of rows with w. A row's product does not depend on the rows beside it.
template <class Real>
RANKSVM_INLINE void dots(const Real *const *x, const double *w, int64_t n, const Lanes &last, double *out) {
    Lanes sums[kTogether] = {};
    int64_t f = 0;
    for (; f + kWidth <= n; f += kWidth) {
        const Lanes at = lanes_at(w + f);
        for (int r = 0; r < kTogether; ++r) sums[r] = sums[r] + lanes_at(x[r] + f) * at;
    }
    if (f < n)
        for (int r = 0; r < kTogether; ++r) sums[r] = sums[r] + lanes_at(x[r] + (n - kWidth)) * last;
    sums_of(sums, out);
}

// The same for rows shorter than a vector.
template <class Real>
RANKSVM_INLINE void short_dots(const Real *const *x, const double *w, int64_t n, double *out) {
    const Lanes at = short_lanes(w, n);
    Lanes sums[kTogether];
    for (int r = 0; r < kTogether; ++r) sums[r] = short_lanes(x[r], n) * at;
    sums_of(sums, out);
}

template <class Matrix>
RANKSVM_INLINE void dense_scores(Matrix X, int64_t n, const int64_t *rows, int64_t start, int64_t stop, bool far,
                                 const double *w, double *out_range) {
    using Real = typename Matrix::Value;
    // The processor's own prefetching keeps no more than a core's share of the memory busy, and none for rows in disorder.
    constexpr int64_t kAhead = 16;
    const int64_t row_bytes = n * static_cast<int64_t>(sizeof(Real)), last = stop - 1;
    const Lanes end = n < kWidth ? Lanes() : last_lanes(w, n);
    for (int64_t t = start; t < stop; t += kTogether) {
        const Real *x[kTogether];
        double products[kTogether];
        for (int r = 0; r < kTogether; ++r) x[r] = row_of(X, n, row_at(rows, std::min(t + r, last)));
        for (int r = 0; far && r < kTogether; ++r) {
            const Real *ahead = row_of(X, n, row_at(rows, std::min(t + kAhead + r, last)));
            const char *later = reinterpret_cast<const char *>(ahead);
            for (int64_t byte = 0; byte < row_bytes; byte += 64) RANKSVM_PREFETCH(later + byte);
        }
        if (n < kWidth)
            short_dots(x, w, n, products);
        else
            dots(x, w, n, end, products);
        std::copy_n(products, std::min<int64_t>(kTogether, stop - t), out_range + (t - start));
    }
}

// Sums over so many rows are made by themselves before they are added to others: with all rows in one sum, round-off would
// grow with their number. Shorter stretches are not worth it.
constexpr int64_t kSumRows = 512, kFewRows = 64;

// The sum of u_r x_r over kTogether rows, of the features from f on.
template <class Real>
RANKSVM_INLINE Lanes weighted_sum(const Real *const *x, const double *u, int64_t f) {
    // two sums, so that an addition need not wait for all before it
    Lanes even = u[0] * lanes_at(x[0] + f), odd = u[1] * lanes_at(x[1] + f);
    for (int r = 2; r < kTogether; r += 2) {
        even = even + u[r] * lanes_at(x[r] + f);
        odd = odd + u[r + 1] * lanes_at(x[r + 1] + f);
    }
    return even + odd;
}

// out += sum of u_t x_t; rows with u_t = 0 (documents in no violating pair) are not read. As many rows from `fetched` on, but
// none from `fetch_stop` on, are fetched meanwhile: the next rows that a pass reads. (700,080 x 136: 0.93 to 0.95 of its time.)
template <class Matrix>
RANKSVM_INLINE void accumulate_rows(Matrix X, int64_t n, const int64_t *rows, int64_t start, int64_t stop, int64_t fetched,
                                    int64_t fetch_stop, const double *u_range, double *RANKSVM_RESTRICT out) {
    using Real = typename Matrix::Value;
    const int64_t row_bytes = n * static_cast<int64_t>(sizeof(Real));
    const Lanes end = n < kWidth ? Lanes() : last_lanes(nullptr, n);
    int64_t t = start;
    while (t < stop) {
        for (const int64_t until = std::min(fetched + kTogether, fetch_stop); fetched < until; ++fetched) {
            const char *later = reinterpret_cast<const char *>(row_of(X, n, row_at(rows, fetched)));
            for (int64_t byte = 0; byte < row_bytes; byte += 64) RANKSVM_PREFETCH_LATER(later + byte);
        }
        const Real *x[kTogether];
        double u[kTogether];
        int filled = 0;
        for (; t < stop && filled < kTogether; ++t)
            if (u_range[t - start] != 0.0) {
                x[filled] = row_of(X, n, row_at(rows, t));
                u[filled++] = u_range[t - start];
            }
        if (filled == 0) return;
        for (int r = filled; r < kTogether; ++r) x[r] = x[0], u[r] = 0.0;
        int64_t f = 0;
        for (; f + kWidth <= n; f += kWidth) put_lanes(out + f, lanes_at(out + f) + weighted_sum(x, u, f));
        if (f < n && n >= kWidth) {
            f = n - kWidth;
            put_lanes(out + f, lanes_at(out + f) + weighted_sum(x, u, f) * end);
        } else {
            for (; f < n; ++f) {
                double sum = 0.0;
                for (int r = 0; r < kTogether; ++r) sum += u[r] * static_cast<double>(x[r][f]);
                out[f] += sum;
            }
        }
    }
}

template <class Matrix>
RANKSVM_INLINE void dense_accumulate(Matrix X, int64_t n, const int64_t *rows, int64_t start, int64_t stop,
                                     int64_t fetch_stop, const double *u_range, double *RANKSVM_RESTRICT out) {
    if (stop - start < kFewRows) return accumulate_rows(X, n, rows, start, stop, stop, fetch_stop, u_range, out);
    Vector<double> memory(static_cast<size_t>(n));
    double *RANKSVM_RESTRICT sum = memory.data();
    for (int64_t at = start; at < stop; at += kSumRows) {
        std::fill_n(sum, n, 0.0);
        accumulate_rows(X, n, rows, at, std::min(at + kSumRows, stop), stop + (at - start), fetch_stop, u_range + (at - start),
                        sum);
        for (int64_t f = 0; f < n; ++f) out[f] += sum[f];
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

// The bits of |x| as an integer: they are in the order of the numbers, infinity and NaN above all others.
RANKSVM_INLINE int32_t size_bits(float x) {
    int32_t bits;
    std::memcpy(&bits, &x, sizeof(x));
    return bits & std::numeric_limits<int32_t>::max();
}
RANKSVM_INLINE int64_t size_bits(double x) {
    int64_t bits;
    std::memcpy(&bits, &x, sizeof(x));
    return bits & std::numeric_limits<int64_t>::max();
}

// So many rows are compared at a time. (AVX2, 9,219 x 45 in the cache: 44 GB/s with four rows, 34 with eight, 20 with two, 21
// one by one; in memory 16 with 136 features and four rows, 13 with eight.)
constexpr int kCompared = 4;

// largest[f] = the largest size_bits of kCompared rows, if it was not larger before, for kCount features.
template <int kCount, class Real, class Bits>
RANKSVM_INLINE void raise_largest(const Real *const *x, int64_t f, Bits *RANKSVM_RESTRICT largest) {
    for (int c = 0; c < kCount; ++c) {
        Bits most = largest[f + c];
        for (int r = 0; r < kCompared; ++r) most = std::max(most, size_bits(x[r][f + c]));
        largest[f + c] = most;
    }
}

// out[f] = the largest |x[f]| of some rows, if it was not larger before; NaN where one is not finite.
template <class Real>
RANKSVM_INLINE void dense_largest(const Real *X, int64_t n, int64_t start, int64_t stop, double *RANKSVM_RESTRICT out) {
    using Bits = decltype(size_bits(Real()));
    constexpr int64_t kAhead = 8;
    constexpr int kVector = 8 * kWidth / sizeof(Real);
    const int64_t row_bytes = n * static_cast<int64_t>(sizeof(Real)), last = stop - 1;
    Vector<Bits> memory(static_cast<size_t>(n), Bits(0));
    Bits *largest = memory.data();
    for (int64_t t = start; t < stop; t += kCompared) {
        const Real *x[kCompared];
        for (int r = 0; r < kCompared; ++r) {
            x[r] = X + std::min(t + r, last) * n;
            const char *later = reinterpret_cast<const char *>(X + std::min(t + kAhead + r, last) * n);
            for (int64_t byte = 0; byte < row_bytes; byte += 64) RANKSVM_PREFETCH(later + byte);
        }
        int64_t f = 0;
        for (; f + kVector <= n; f += kVector) raise_largest<kVector>(x, f, largest);
        if (f < n && n >= kVector) f = n - kVector, raise_largest<kVector>(x, f, largest), f = n;
        for (; f < n; ++f) raise_largest<1>(x, f, largest);
    }
    for (int64_t f = 0; f < n; ++f) {
        Real found;
        std::memcpy(&found, &largest[f], sizeof(found));
        out[f] = std::isfinite(found) ? std::max(out[f], static_cast<double>(found)) : std::numeric_limits<double>::quiet_NaN();
    }
}

// Rows in columns 0 .. n - 1 of out, 0 in the others.
template <class Matrix, class Out>
RANKSVM_INLINE void dense_gather(Matrix X, int64_t n, const int64_t *rows, int64_t start, int64_t stop,
                                 Out *RANKSVM_RESTRICT out_range, int64_t n_columns) {
    for (int64_t t = start; t < stop; ++t) {
        const typename Matrix::Value *x = row_of(X, n, row_at(rows, t));
        Out *RANKSVM_RESTRICT out = out_range + (t - start) * n_columns;
        for (int64_t f = 0; f < n; ++f) out[f] = static_cast<Out>(x[f]);
        for (int64_t f = n; f < n_columns; ++f) out[f] = Out(0);
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

// The same of entries whose columns these are.
template <class Real, class Index>
RANKSVM_INLINE void sparse_largest(const Real *data, const Index *indices, int64_t start, int64_t stop, double *out) {
    for (int64_t e = start; e < stop; ++e)
        out[indices[e]] = std::max(out[indices[e]], static_cast<double>(std::fabs(data[e])));
}

template <class Real, class Index, class Out>
RANKSVM_INLINE void sparse_gather(const Real *data, const Index *indices, const Index *indptr, int64_t n,
                                  const int64_t *rows, int64_t start, int64_t stop, Out *out_range) {
    std::fill_n(out_range, (stop - start) * n, Out(0));
    for (int64_t t = start; t < stop; ++t) {
        const int64_t row = row_at(rows, t);
        for (int64_t e = indptr[row]; e < indptr[row + 1]; ++e) out_range[(t - start) * n + indices[e]] += static_cast<Out>(data[e]);
    }
}

}  // namespace ranksvm::RANKSVM_VARIANT

#endif
