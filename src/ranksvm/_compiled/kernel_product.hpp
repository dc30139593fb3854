// Products with a symmetric matrix of which one triangle is stored: each value is read once and used twice, as q_ij in s_i +=
// q_ij b_j and as q_ji in s_j += q_ij b_i. Float32 or float64 values, float64 sums.
#ifndef RANKSVM_KERNEL_PRODUCT_HPP
#define RANKSVM_KERNEL_PRODUCT_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "portable.hpp"

namespace ranksvm::RANKSVM_VARIANT {

using std::int64_t;

// kRows: number of rows that share each read of b and each write of s. kSums: number of sums that each of these rows keeps in
// registers. Measured with rows of 8,000 to 20,000 values, two threads: 8 rows reach 0.8 to 0.9 of the speed of a plain read of
// memory, 4 rows 0.6.
constexpr int kRows = 8;
constexpr int kSums = 8;

// s_row += Q b_column and s_column += Q' b_row for kRows rows of Q, `stride` values apart.
template <class Real>
RANKSVM_INLINE void rows_product(const Real *Q, int64_t stride, int64_t n, const double *b_row, double *s_row,
                                 const double *b_column, double *RANKSVM_RESTRICT s_column) {
    // The processor's own prefetching uses only a part of the memory's speed: 0.6 of it without this.
    constexpr int64_t kAhead = 1536 / static_cast<int64_t>(sizeof(Real));
    constexpr int64_t kLine = 64 / static_cast<int64_t>(sizeof(Real));
    const Real *q[kRows];
    double b[kRows], sums[kRows][kSums] = {};
    for (int r = 0; r < kRows; ++r) q[r] = Q + r * stride, b[r] = b_row[r];
    int64_t j = 0;
    for (; j + kLine <= n; j += kLine) {
        for (int r = 0; r < kRows; ++r) RANKSVM_PREFETCH(q[r] + j + kAhead);
        for (int64_t k = j; k < j + kLine; k += kSums)
            for (int c = 0; c < kSums; ++c) {
                double below = 0.0;
                for (int r = 0; r < kRows; ++r) {
                    const double value = static_cast<double>(q[r][k + c]);
                    sums[r][c] += value * b_column[k + c];
                    below += value * b[r];
                }
                s_column[k + c] += below;
            }
    }
    for (int r = 0; r < kRows; ++r) {
        double sum = 0.0;
        for (int c = 0; c < kSums; ++c) sum += sums[r][c];
        for (int64_t k = j; k < n; ++k) {
            const double value = static_cast<double>(q[r][k]);
            sum += value * b_column[k];
            s_column[k] += value * b[r];
        }
        s_row[r] += sum;
    }
}

// The same for a whole block, off the diagonal.
template <class Real>
RANKSVM_INLINE void block_product(const Real *Q, int64_t stride, int64_t n_rows, int64_t n_columns, const double *b_row,
                                  double *s_row, const double *b_column, double *s_column) {
    int64_t i = 0;
    for (; i + kRows <= n_rows; i += kRows)
        rows_product(Q + i * stride, stride, n_columns, b_row + i, s_row + i, b_column, s_column);
    for (; i < n_rows; ++i) {
        double sum = 0.0;
        for (int64_t j = 0; j < n_columns; ++j) {
            const double v = static_cast<double>(Q[i * stride + j]);
            sum += v * b_column[j];
            s_column[j] += v * b_row[i];
        }
        s_row[i] += sum;
    }
}

// s += Q b for a square block on the diagonal, both of whose triangles are stored.
template <class Real>
RANKSVM_INLINE void square_product(const Real *Q, int64_t stride, int64_t n, const double *b, double *s) {
    for (int64_t i = 0; i < n; ++i) {
        const double b_row = b[i];
        const Real *row = Q + i * stride;  // = column i
        for (int64_t j = 0; j < n; ++j) s[j] += static_cast<double>(row[j]) * b_row;
    }
}

// Panels of `height` rows, each with the columns up to its last row, one after the other: s += the part of Q that the
// panels first .. last stand for, times b.
template <class Real>
static void panels_product(const Real *panels, int64_t n, int64_t height, int64_t first, int64_t last,
                                   const double *b, double *s) {
    for (int64_t p = first; p < last; ++p) {
        const int64_t start = p * height, stop = std::min(start + height, n);
        const Real *Q = panels + height * height * (p * (p + 1) / 2);
        block_product(Q, stop, stop - start, start, b + start, s + start, b, s);
        square_product(Q + start, stop, stop - start, b + start, s + start);
    }
}

}  // namespace ranksvm::RANKSVM_VARIANT

#endif
