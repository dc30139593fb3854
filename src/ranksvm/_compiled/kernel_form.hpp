// I + C U Q U' for a symmetric Q and a U that consists of blocks along the diagonal, and the rows of such a Q.
#ifndef RANKSVM_KERNEL_FORM_HPP
#define RANKSVM_KERNEL_FORM_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "portable.hpp"

namespace ranksvm::RANKSVM_VARIANT {

using std::int64_t;

// kFormRows: number of rows of a block of U whose sums lie side by side in a register. kFormColumns: number of columns of Q, or
// of rows of another block, that are taken at a time.
template <class Real>
constexpr int kFormRows = sizeof(Real) == sizeof(float) ? kSingleWidth : kWidth;
constexpr int kFormColumns = 4;

RANKSVM_INLINE SingleLanes form_lanes(const float *p) { return single_lanes_at(p); }
RANKSVM_INLINE Lanes form_lanes(const double *p) { return lanes_at(p); }

// sums[c, :] = sum over k in first .. last of values[k * stride + c * apart] * rows[k, :], kFormRows numbers each. The
// vectors are explicit: when GCC 12 vectorizes the loop itself, it reads beyond the end of `values`.
template <int kColumns, class Real>
RANKSVM_INLINE void column_sums(const Real *values, int64_t stride, int64_t apart, const Real *rows, int64_t first,
                                int64_t last, Real *sums) {
    decltype(form_lanes(rows)) found[kColumns] = {};
    for (int64_t k = first; k < last; ++k) {
        const auto row = form_lanes(rows + k * kFormRows<Real>);
        for (int c = 0; c < kColumns; ++c) found[c] = found[c] + values[k * stride + c * apart] * row;
    }
    for (int c = 0; c < kColumns; ++c) put_lanes(sums + c * kFormRows<Real>, found[c]);
}

// The rows of I + C U Q U' that belong to the blocks first .. last of U, up to the diagonal. Block q has the rows row[q] ..
// row[q + 1] and the columns column[q] .. column[q + 1] of U, and its values begin at U[entry[q]]; row i of a block is 0
// left of column i. Only the lower triangle of Q is read; the squares of these blocks on its diagonal become symmetric.
template <class Real>
inline void form_blocks(Real *Q, int64_t n, const Real *U, const int64_t *entry, const int64_t *row,
                        const int64_t *column, int64_t first, int64_t last, Real C, Real *out, int64_t rank) {
    constexpr int kRows = kFormRows<Real>;
    Vector<Real> transposed, products(static_cast<std::size_t>(n * kRows));
    for (int64_t q = first; q < last; ++q) {
        const int64_t width = column[q + 1] - column[q], height = row[q + 1] - row[q];
        for (int64_t i = column[q]; i < column[q + 1]; ++i)
            for (int64_t j = column[q]; j < i; ++j) Q[j * n + i] = Q[i * n + j];
        transposed.resize(static_cast<std::size_t>(width * kRows));
        for (int64_t top = 0; top < height; top += kRows) {
            const int64_t rows = std::min<int64_t>(kRows, height - top);
            // kRows rows of the block, entries of one column side by side
            std::fill(transposed.begin(), transposed.end(), Real(0));
            for (int64_t i = 0; i < rows; ++i)
                for (int64_t k = top; k < width; ++k)
                    transposed[static_cast<std::size_t>(k * kRows + i)] = U[entry[q] + (top + i) * width + k];
            // these rows times Q, entries of one column of Q side by side
            const Real *q_rows = Q + column[q] * n;
            const int64_t end = column[q + 1];
            const Real *u_rows = transposed.data();
            for (int64_t x = 0; x < end; x += kFormColumns)
                if (x + kFormColumns <= end)
                    column_sums<kFormColumns>(q_rows + x, n, 1, u_rows, top, width, products.data() + x * kRows);
                else
                    for (int64_t c = x; c < end; ++c)
                        column_sums<1>(q_rows + c, n, 1, u_rows, top, width, products.data() + c * kRows);
            // times U': the product of each row of U with all of these rows
            for (int64_t p = 0; p <= q; ++p) {
                const int64_t n_columns = column[p + 1] - column[p], n_rows = row[p + 1] - row[p];
                const Real *these = products.data() + column[p] * kRows;
                Real *target = out + (row[q] + top) * rank + row[p];
                for (int64_t j = 0; j < n_rows; j += kFormColumns) {
                    const Real *u = U + entry[p] + j * n_columns;
                    Real sums[kFormColumns * kRows];
                    const int64_t at_once = std::min<int64_t>(kFormColumns, n_rows - j);
                    if (at_once == kFormColumns)
                        column_sums<kFormColumns>(u, 1, n_columns, these, j, n_columns, sums);
                    else
                        for (int64_t c = 0; c < at_once; ++c)
                            column_sums<1>(u + c * n_columns, 1, 0, these, j, n_columns, sums + c * kRows);
                    for (int64_t c = 0; c < at_once; ++c)
                        for (int64_t i = 0; i < rows; ++i) target[i * rank + j + c] = C * sums[c * kRows + i];
                }
            }
        }
        for (int64_t i = row[q]; i < row[q + 1]; ++i) out[i * rank + i] += Real(1);
    }
}

// out[i, j] = Q[positions[i], positions[j]] for j <= i and i in first .. last, from panels of `height` rows of the lower
// triangle of Q, n x n: see kernel.pyx.
template <class Stored, class Real>
inline void gather_rows(const Stored *panels, int64_t n, int64_t height, const int64_t *positions, int64_t n_positions,
                        int64_t first, int64_t last, Real *out) {
    for (int64_t i = first; i < last; ++i) {
        const int64_t panel = positions[i] / height, start = panel * height, stop = std::min(start + height, n);
        const Stored *row = panels + height * height * (panel * (panel + 1) / 2) + (positions[i] - start) * stop;
        for (int64_t j = 0; j <= i; ++j) out[i * n_positions + j] = static_cast<Real>(row[positions[j]]);
    }
}

}  // namespace ranksvm::RANKSVM_VARIANT

#endif
