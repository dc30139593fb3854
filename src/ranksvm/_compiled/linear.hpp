// Products of the design matrix with vectors, without a copy of its rows: float32 or float64 storage, float64 sums unless the
// name of a loop has `single`.
#ifndef RANKSVM_LINEAR_HPP
#define RANKSVM_LINEAR_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "center_queries.hpp"
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

// If n is not a multiple of the vector size, one more vector holds the last features of a row. It overlaps the vector before:
// the features that both have get the factor 0 here. Without w, the other factors are 1.
template <class In>
RANKSVM_INLINE typename In::Vector last_lanes(const typename In::Number *w, int64_t n) {
    constexpr int kNumbers = In::kNumbers;
    typename In::Number lanes[kNumbers] = {};
    for (int64_t f = n - n % kNumbers; f < n; ++f) lanes[f - (n - kNumbers)] = w ? w[f] : 1;
    return In::at(lanes);
}

// Products of rows with w. A row's product does not depend on the rows beside it.
template <class In, class Real>
RANKSVM_INLINE void dots(const Real *const *x, const typename In::Number *w, int64_t n, const typename In::Vector &last,
                         double *out) {
    constexpr int kNumbers = In::kNumbers;
    typename In::Vector sums[kTogether] = {};
    int64_t f = 0;
    for (; f + kNumbers <= n; f += kNumbers) {
        const typename In::Vector at = In::at(w + f);
        for (int r = 0; r < kTogether; ++r) sums[r] = sums[r] + In::at(x[r] + f) * at;
    }
    if (f < n)
        for (int r = 0; r < kTogether; ++r) sums[r] = sums[r] + In::at(x[r] + (n - kNumbers)) * last;
    sums_of(sums, out);
}

// The same products, computed for one row after the other.
template <class In, class Real>
RANKSVM_INLINE void dots_in_turn(const Real *const *x, const typename In::Number *w, int64_t n,
                                 const typename In::Vector &last, double *out) {
    constexpr int kNumbers = In::kNumbers;
    typename In::Vector sums[kTogether];
    for (int r = 0; r < kTogether; ++r) {
        typename In::Vector sum = {};
        int64_t f = 0;
        for (; f + kNumbers <= n; f += kNumbers) sum = sum + In::at(x[r] + f) * In::at(w + f);
        sums[r] = f < n ? sum + In::at(x[r] + (n - kNumbers)) * last : sum;
    }
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

template <class In, class Matrix>
RANKSVM_INLINE void scores_of_rows(Matrix X, int64_t n, const int64_t *rows, int64_t start, int64_t stop, Where where,
                                   const typename In::Number *w, double *out_range) {
    using Real = typename Matrix::Value;
    // With sums in float64, the processor's own prefetching uses no more than a core's share of the memory's speed, and it does
    // not help rows in disorder. With sums in float32, that prefetching alone is faster if the rows are read in the order of
    // memory.
    const bool in_turn = In::kInTurn && where == Where::kFar, fetched = where != Where::kNear && !in_turn;
    constexpr int64_t kAhead = 16;
    const int64_t row_bytes = n * static_cast<int64_t>(sizeof(Real)), last = stop - 1;
    const typename In::Vector end = n < In::kNumbers ? typename In::Vector() : last_lanes<In>(w, n);
    for (int64_t t = start; t < stop; t += kTogether) {
        const Real *x[kTogether];
        double products[kTogether];
        for (int r = 0; r < kTogether; ++r) x[r] = row_of(X, n, row_at(rows, std::min(t + r, last)));
        for (int r = 0; fetched && r < kTogether; ++r) {
            const Real *ahead = row_of(X, n, row_at(rows, std::min(t + kAhead + r, last)));
            const char *later = reinterpret_cast<const char *>(ahead);
            for (int64_t byte = 0; byte < row_bytes; byte += 64) RANKSVM_PREFETCH(later + byte);
        }
        if (n >= In::kNumbers && in_turn)
            dots_in_turn<In>(x, w, n, end, products);
        else if (n >= In::kNumbers)
            dots<In>(x, w, n, end, products);
        else if constexpr (In::kNumbers == kWidth)
            short_dots(x, w, n, products);
        std::copy_n(products, std::min<int64_t>(kTogether, stop - t), out_range + (t - start));
    }
}

template <class Matrix>
RANKSVM_INLINE void dense_scores(Matrix X, int64_t n, const int64_t *rows, int64_t start, int64_t stop, Where where,
                                 const double *w, double *out_range) {
    scores_of_rows<InDouble>(X, n, rows, start, stop, where, w, out_range);
}

// The same in the precision of the rows, if the rows are long enough to fill a vector of that precision.
template <class Matrix>
RANKSVM_INLINE void dense_single_scores(Matrix X, int64_t n, const int64_t *rows, int64_t start, int64_t stop, Where where,
                                        const double *w, double *out_range) {
    if constexpr (std::is_same<typename Matrix::Value, float>::value) {
        if (n >= kSingleWidth) {
            const Vector<float> rounded(w, w + n);
            return scores_of_rows<InSingle>(X, n, rows, start, stop, where, rounded.data(), out_range);
        }
    }
    scores_of_rows<InDouble>(X, n, rows, start, stop, where, w, out_range);
}

// This many rows are summed up separately before their sum is added to others: with all rows in one sum, round-off would grow
// with their number. For fewer than kFewRows rows, a separate sum is not worth its time.
constexpr int64_t kSumRows = 512, kFewRows = 64;

// The sum of u_r x_r over kTogether rows, of the features from f on.
template <class In, class Real>
RANKSVM_INLINE typename In::Vector weighted_sum(const Real *const *x, const typename In::Number *u, int64_t f) {
    // two sums, so that an addition need not wait for all before it
    typename In::Vector even = u[0] * In::at(x[0] + f), odd = u[1] * In::at(x[1] + f);
    for (int r = 2; r < kTogether; r += 2) {
        even = even + u[r] * In::at(x[r] + f);
        odd = odd + u[r + 1] * In::at(x[r + 1] + f);
    }
    return even + odd;
}

// out += sum of u_t x_t; rows with u_t = 0 (documents in no violating pair) are not read. Also prefetches as many rows from
// `fetched` on, but before `fetch_stop`: the rows that a pass reads next. (With 700,080 x 136 values, a pass takes 0.93 to 0.95
// of the time that it takes without this.)
template <class In, class Matrix>
RANKSVM_INLINE void accumulate_rows(Matrix X, int64_t n, const int64_t *rows, int64_t start, int64_t stop, int64_t fetched,
                                    int64_t fetch_stop, const double *u_range,
                                    typename In::Number *RANKSVM_RESTRICT out) {
    using Real = typename Matrix::Value;
    using Number = typename In::Number;
    constexpr int kNumbers = In::kNumbers;
    const int64_t row_bytes = n * static_cast<int64_t>(sizeof(Real));
    const typename In::Vector end = n < kNumbers ? typename In::Vector() : last_lanes<In>(nullptr, n);
    int64_t t = start;
    while (t < stop) {
        for (const int64_t until = std::min(fetched + kTogether, fetch_stop); fetched < until; ++fetched) {
            const char *later = reinterpret_cast<const char *>(row_of(X, n, row_at(rows, fetched)));
            for (int64_t byte = 0; byte < row_bytes; byte += 64) RANKSVM_PREFETCH_LATER(later + byte);
        }
        const Real *x[kTogether];
        Number u[kTogether];
        int filled = 0;
        for (; t < stop && filled < kTogether; ++t)
            if (u_range[t - start] != 0.0) {
                x[filled] = row_of(X, n, row_at(rows, t));
                u[filled++] = static_cast<Number>(u_range[t - start]);
            }
        if (filled == 0) return;
        for (int r = filled; r < kTogether; ++r) x[r] = x[0], u[r] = 0;
        int64_t f = 0;
        for (; f + kNumbers <= n; f += kNumbers) put_lanes(out + f, In::at(out + f) + weighted_sum<In>(x, u, f));
        if (f < n && n >= kNumbers) {
            f = n - kNumbers;
            put_lanes(out + f, In::at(out + f) + weighted_sum<In>(x, u, f) * end);
        } else {
            for (; f < n; ++f) {
                Number sum = 0;
                for (int r = 0; r < kTogether; ++r) sum += u[r] * static_cast<Number>(x[r][f]);
                out[f] += sum;
            }
        }
    }
}

// The same, with separate sums of kSumRows rows.
template <class In, class Matrix>
RANKSVM_INLINE void accumulate_sums(Matrix X, int64_t n, const int64_t *rows, int64_t start, int64_t stop,
                                    int64_t fetch_stop, const double *u_range, double *RANKSVM_RESTRICT out) {
    Vector<typename In::Number> memory(static_cast<size_t>(n));
    typename In::Number *RANKSVM_RESTRICT sum = memory.data();
    for (int64_t at = start; at < stop; at += kSumRows) {
        std::fill_n(sum, n, typename In::Number(0));
        accumulate_rows<In>(X, n, rows, at, std::min(at + kSumRows, stop), stop + (at - start), fetch_stop,
                            u_range + (at - start), sum);
        for (int64_t f = 0; f < n; ++f) out[f] += sum[f];
    }
}

template <class Matrix>
RANKSVM_INLINE void dense_accumulate(Matrix X, int64_t n, const int64_t *rows, int64_t start, int64_t stop,
                                     int64_t fetch_stop, const double *u_range, double *RANKSVM_RESTRICT out) {
    if (stop - start < kFewRows)
        accumulate_rows<InDouble>(X, n, rows, start, stop, stop, fetch_stop, u_range, out);
    else
        accumulate_sums<InDouble>(X, n, rows, start, stop, fetch_stop, u_range, out);
}

// The same, but sums of kSumRows rows are in the precision of the rows, if the rows are long enough to fill a vector of that
// precision.
template <class Matrix>
RANKSVM_INLINE void dense_single_accumulate(Matrix X, int64_t n, const int64_t *rows, int64_t start, int64_t stop,
                                            int64_t fetch_stop, const double *u_range, double *RANKSVM_RESTRICT out) {
    if constexpr (std::is_same<typename Matrix::Value, float>::value) {
        if (n >= kSingleWidth) return accumulate_sums<InSingle>(X, n, rows, start, stop, fetch_stop, u_range, out);
    }
    dense_accumulate(X, n, rows, start, stop, fetch_stop, u_range, out);
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

// This many rows are compared at a time. (AVX2, 9,219 x 45 in the cache: 44 GB/s with four rows, 34 with eight, 20 with two, 21
// one by one; in memory 16 with 136 features and four rows, 13 with eight.)
constexpr int kCompared = 4;

// largest[f] becomes the larger of itself and the size_bits of kCompared rows, for kCount features from f on.
template <int kCount, class Real, class Bits>
RANKSVM_INLINE void raise_largest(const Real *const *x, int64_t f, Bits *RANKSVM_RESTRICT largest) {
    for (int c = 0; c < kCount; ++c) {
        Bits most = largest[f + c];
        for (int r = 0; r < kCompared; ++r) most = std::max(most, size_bits(x[r][f + c]));
        largest[f + c] = most;
    }
}

// out[f] becomes the larger of itself and the |x[f]| of some rows; NaN if one of them is not finite.
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

// Copies rows to columns 0 .. n - 1 of `out`; its other columns become 0.
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

// The products of n rows of a CSR matrix with each other: `out`, of n times n zeros on entry. Each row meets, at each of its
// features, the rows up to itself that have this feature.
template <class Real, class Index>
static void sparse_gram(const Real *data, const Index *indices, const Index *indptr, int64_t n_features, const int64_t *rows,
                        int64_t n, double *out) {
    constexpr int64_t kBlock = 32;
    struct Entry {
        int64_t t;
        double x;
    };
    Vector<int64_t> ends(static_cast<size_t>(n_features) + 1, 0);  // of the entries of each feature that were met
    for (int64_t t = 0; t < n; ++t)
        for (int64_t e = indptr[row_at(rows, t)]; e < indptr[row_at(rows, t) + 1]; ++e)
            ++ends[static_cast<size_t>(indices[e]) + 1];
    for (size_t f = 1; f < ends.size(); ++f) ends[f] += ends[f - 1];
    const Vector<int64_t> begins(ends);
    Vector<Entry> met(static_cast<size_t>(ends.back()));
    for (int64_t t = 0; t < n; ++t) {
        const int64_t first = indptr[row_at(rows, t)], last = indptr[row_at(rows, t) + 1];
        for (int64_t e = first; e < last; ++e)
            met[static_cast<size_t>(ends[static_cast<size_t>(indices[e])]++)] = {t, static_cast<double>(data[e])};
        double *products = out + t * n;
        for (int64_t e = first; e < last; ++e) {
            const size_t f = static_cast<size_t>(indices[e]);
            const double x = static_cast<double>(data[e]);
            for (int64_t k = begins[f]; k < ends[f]; ++k) {
                const Entry &entry = met[static_cast<size_t>(k)];
                products[entry.t] += x * entry.x;
            }
        }
    }
    for (int64_t top = 0; top < n; top += kBlock)
        for (int64_t left = 0; left <= top; left += kBlock)
            for (int64_t i = top; i < std::min(top + kBlock, n); ++i)
                for (int64_t j = left; j < std::min(left + kBlock, i); ++j) out[j * n + i] = out[i * n + j];
}

// out[f] becomes the larger of itself and the |x| of feature f among the entries start .. stop of a CSR matrix, whose columns
// are in `indices`. NaN is ignored.
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
