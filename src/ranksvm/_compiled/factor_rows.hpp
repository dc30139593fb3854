// Rows of a Cholesky factor, a block of columns at a time: the products of dense matrices that this takes. BLAS computes the
// same, but the BLAS of NumPy uses half of the width of the registers on some processors with AVX-512.
#ifndef RANKSVM_FACTOR_ROWS_HPP
#define RANKSVM_FACTOR_ROWS_HPP

#include <algorithm>
#include <cstdint>

#include "kernel_form.hpp"

namespace ranksvm::RANKSVM_VARIANT {

// A tile: kTileRows rows of a product and kTileColumns of its columns, whose sums stay in registers.
#if defined(__AVX512F__)
constexpr int kTileRows = 8;
#elif defined(__AVX2__)
constexpr int kTileRows = 6;
#else
constexpr int kTileRows = 4;
#endif
constexpr int kTileVectors = 2;
template <class Real>
constexpr int kTileColumns = kTileVectors * kFormRows<Real>;
// Number of terms of a product that are summed at a time. The packed columns of a tile then stay in the nearest cache.
constexpr int64_t kDepth = 256;

// Number of values of `packed_rows`.
template <class Real>
inline int64_t packed_size(int64_t n, int64_t depth) {
    return (n + kTileColumns<Real> - 1) / kTileColumns<Real> * kTileColumns<Real> * depth;
}

// Copies n rows of `depth` values, `stride` apart, in the order in which tiles read them: kDepth values of all rows after one
// another, of these kTileColumns rows after one another, whose values lie side by side. Zeros fill up the last rows.
template <class Real>
inline void packed_rows(const Real *rows, int64_t stride, int64_t n, int64_t depth, Real *out) {
    for (int64_t first = 0; first < depth; first += kDepth) {
        const int64_t last = std::min(first + kDepth, depth);
        for (int64_t j = 0; j < n; j += kTileColumns<Real>)
            for (int64_t k = first; k < last; ++k)
                for (int64_t c = j; c < j + kTileColumns<Real>; ++c) *out++ = c < n ? rows[c * stride + k] : Real(0);
    }
}

// out = left right' for some rows of `left` and a tile's columns of packed `right`, or out -= left right'; only `rows` x
// `columns` of a tile are written. `out` may be a part of `left`.
template <bool kSubtract, class Real>
RANKSVM_INLINE void tile_product(const Real *left, Real *out, int64_t stride, int rows, const Real *right, int64_t depth,
                                 int64_t columns) {
    constexpr int kWide = kFormRows<Real>;
    // beyond the last row, the last one again
    const Real *lefts[kTileRows];
    for (int r = 0; r < kTileRows; ++r) lefts[r] = left + std::min(r, rows - 1) * stride;
    decltype(form_lanes(right)) sums[kTileRows][kTileVectors] = {};
    for (int64_t k = 0; k < depth; ++k, right += kTileColumns<Real>) {
        const decltype(form_lanes(right)) values[kTileVectors] = {form_lanes(right), form_lanes(right + kWide)};
#pragma GCC unroll 8
        for (int r = 0; r < kTileRows; ++r)
#pragma GCC unroll 2
            for (int v = 0; v < kTileVectors; ++v) sums[r][v] = sums[r][v] + lefts[r][k] * values[v];
    }
    for (int r = 0; r < rows; ++r, out += stride) {
        Real row[kTileColumns<Real>];
        for (int v = 0; v < kTileVectors; ++v) put_lanes(row + v * kWide, sums[r][v]);
        for (int64_t c = 0; c < columns; ++c) out[c] = kSubtract ? out[c] - row[c] : row[c];
    }
}

// The columns start .. stop of the rows first .. last of a Cholesky factor, whose columns before `start` are complete. `left`
// has these complete columns of the rows start .. stop, and `inverse` the lower triangular inverse of the factor's block in
// these rows; both are packed. With `inverse`, there are at most kDepth columns. Without it, the rows are the rows of the
// block. They are then not multiplied by the transpose of the inverse, and what is above the diagonal is undefined.
template <class Real>
inline void factor_rows(Real *matrix, int64_t n, int64_t first, int64_t last, int64_t start, int64_t stop, const Real *left,
                        const Real *inverse) {
    constexpr int64_t kWide = kTileColumns<Real>;
    const int64_t size = stop - start, panels = (size + kWide - 1) / kWide;
    for (int64_t begin = 0; begin < start; begin += kDepth) {
        const int64_t depth = std::min(kDepth, start - begin);
        for (int64_t j = 0; j < size; j += kWide, left += kWide * depth)
            for (int64_t i = inverse ? first : std::max(first, start + j); i < last; i += kTileRows)
                tile_product<true>(matrix + i * n + begin, matrix + i * n + start + j, n,
                                   static_cast<int>(std::min<int64_t>(kTileRows, last - i)), left, depth,
                                   std::min(kWide, size - j));
    }
    // a tile reads no column that an earlier tile wrote: tiles further to the right come first
    for (int64_t p = inverse ? panels - 1 : -1; p >= 0; --p)
        for (int64_t i = first; i < last; i += kTileRows)
            tile_product<false>(matrix + i * n + start, matrix + i * n + start + p * kWide, n,
                                static_cast<int>(std::min<int64_t>(kTileRows, last - i)), inverse + p * kWide * size,
                                std::min((p + 1) * kWide, size), std::min(kWide, size - p * kWide));
}

}  // namespace ranksvm::RANKSVM_VARIANT

#endif
