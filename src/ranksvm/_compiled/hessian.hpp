// Products A'B of matrices for explicit Hessians, summed up over many rows.
#ifndef RANKSVM_HESSIAN_HPP
#define RANKSVM_HESSIAN_HPP

#include <algorithm>
#include <cstdint>

#include "portable.hpp"

namespace ranksvm::RANKSVM_VARIANT {

using std::int64_t;

// A vector with as many numbers as a register of the instruction set holds.
#if defined(__GNUC__)
template <class Real>
struct Wide {
    typedef Real Vector __attribute__((vector_size(8 * kWidth), aligned(sizeof(Real)), may_alias));
};
#else
template <class Real>
struct Wide {
    struct Vector {
        Real v[8 * kWidth / sizeof(Real)];
        Vector &operator+=(const Vector &a) {
            for (int c = 0; c < static_cast<int>(8 * kWidth / sizeof(Real)); ++c) v[c] += a.v[c];
            return *this;
        }
        friend Vector operator*(Real factor, Vector a) {
            for (int c = 0; c < static_cast<int>(8 * kWidth / sizeof(Real)); ++c) a.v[c] *= factor;
            return a;
        }
    };
};
#endif

// A tile of the product stays in registers: kTileColumns columns of A times kTileVectors vectors of columns of B. It is summed
// up over kTileRows rows, so that their columns of A and of B stay in the nearest cache. (AVX2, 46, 136 and 245 columns of
// float32: 55, 421 and 1,786 ns a row with 32 rows, 65, 553 and 1,866 with 64; OpenBLAS 59, 417 and 1,470.)
constexpr int kTileColumns = kWidth == 8 ? 8 : kWidth == 4 ? 6 : 4;
constexpr int kTileVectors = kWidth == 8 ? 3 : 2;
constexpr int64_t kTileRows = 32;

// C += A'B for kTileColumns columns of A and kVectors vectors of columns of B.
template <class Real, int kVectors>
RANKSVM_INLINE void add_tile(const Real *A, const Real *B, int64_t n_rows, int64_t stride, Real *C, int64_t C_stride) {
    using Vector = typename Wide<Real>::Vector;
    constexpr int64_t kLength = 8 * kWidth / sizeof(Real);
    Vector sums[kTileColumns][kVectors] = {};
    for (int64_t t = 0; t < n_rows; ++t, A += stride, B += stride) {
        Vector b[kVectors];
        for (int v = 0; v < kVectors; ++v) b[v] = *reinterpret_cast<const Vector *>(B + v * kLength);
        for (int i = 0; i < kTileColumns; ++i)
            for (int v = 0; v < kVectors; ++v) sums[i][v] += A[i] * b[v];
    }
    for (int i = 0; i < kTileColumns; ++i)
        for (int v = 0; v < kVectors; ++v) *reinterpret_cast<Vector *>(C + i * C_stride + v * kLength) += sums[i][v];
}

// C += A'B for rows of n columns, `stride` numbers apart, a multiple of the vector size; with `upper`, only the tiles that have
// a part on or above the diagonal. A, B and C are read beyond n columns, and the values of C there are meaningless: A and B
// need room for a tile after their last row, C for whole tiles.
template <class Real>
static void add_product(const Real *A, const Real *B, int64_t n_rows, int64_t stride, int64_t n, bool upper, Real *C,
                        int64_t C_stride) {
    constexpr int64_t kLength = 8 * kWidth / sizeof(Real), kColumns = kTileVectors * kLength;
    for (int64_t t = 0; t < n_rows; t += kTileRows) {
        const int64_t size = std::min(kTileRows, n_rows - t);
        for (int64_t j = 0; j < n; j += kColumns) {
            const int64_t n_vectors = (n - j + kLength - 1) / kLength, end = upper ? std::min(n, j + kColumns) : n;
            for (int64_t i = 0; i < end; i += kTileColumns) {
                const Real *a = A + t * stride + i, *b = B + t * stride + j;
                Real *c = C + i * C_stride + j;
                if (n_vectors >= kTileVectors)
                    add_tile<Real, kTileVectors>(a, b, size, stride, c, C_stride);
                else if (n_vectors == 2)
                    add_tile<Real, 2>(a, b, size, stride, c, C_stride);
                else
                    add_tile<Real, 1>(a, b, size, stride, c, C_stride);
            }
        }
    }
}

// total += the diagonal of A'B.
template <class Real>
static void add_diagonal(const Real *A, const Real *B, int64_t n_rows, int64_t stride, int64_t n,
                         double *RANKSVM_RESTRICT total) {
    for (int64_t t = 0; t < n_rows; ++t, A += stride, B += stride)
        for (int64_t f = 0; f < n; ++f) total[f] += static_cast<double>(A[f]) * static_cast<double>(B[f]);
}

}  // namespace ranksvm::RANKSVM_VARIANT

#endif
