// Distances |x - z|_1 between the rows of two matrices, dense or CSR.
#ifndef RANKSVM_KERNEL_DISTANCES_HPP
#define RANKSVM_KERNEL_DISTANCES_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "portable.hpp"

namespace ranksvm::RANKSVM_VARIANT {

using std::int64_t;

// kBeside: number of rows of Z whose values lie side by side, so that sums over features need no sums across a vector. kShare:
// number of rows of X that are compared with these rows of Z at a time. With 46 features a distance takes a fifth of the time
// of SciPy's cdist, and threads need not wait for each other.
constexpr int kBeside = 16;
constexpr int kShare = 4;

// out[i, j] = |X[i] - Z[j]|_1
static void dense_distances(const double *X, int64_t n_x, const double *Z, int64_t n_z, int64_t n, double *out) {
    Vector<double> beside(static_cast<size_t>(n * kBeside));
    for (int64_t left = 0; left < n_z; left += kBeside) {
        const int64_t width = std::min<int64_t>(kBeside, n_z - left);
        for (int64_t c = 0; c < kBeside; ++c) {
            const double *z = Z + (left + std::min(c, width - 1)) * n;
            for (int64_t f = 0; f < n; ++f) beside[static_cast<size_t>(f * kBeside + c)] = z[f];
        }
        for (int64_t i = 0; i < n_x; i += kShare) {
            const double *x[kShare];
            double sums[kShare][kBeside] = {};
            for (int r = 0; r < kShare; ++r) x[r] = X + std::min(i + r, n_x - 1) * n;
            for (int64_t f = 0; f < n; ++f) {
                const double *z = beside.data() + f * kBeside;
                for (int c = 0; c < kBeside; ++c)
                    for (int r = 0; r < kShare; ++r) sums[r][c] += std::fabs(x[r][f] - z[c]);
            }
            for (int64_t r = 0; r < std::min<int64_t>(kShare, n_x - i); ++r)
                std::copy_n(sums[r], width, out + (i + r) * n_z + left);
        }
    }
}

// The same for CSR matrices: begins with |x|_1, and adds the change that each entry of z makes.
template <class Index>
static void sparse_distances(const double *x_data, const Index *x_indices, const Index *x_indptr, int64_t n_x,
                                     const double *z_data, const Index *z_indices, const Index *z_indptr, int64_t n_z,
                                     int64_t n, double *out) {
    Vector<double> x(static_cast<size_t>(n));
    for (int64_t i = 0; i < n_x; ++i) {
        double norm = 0.0;
        for (int64_t e = x_indptr[i]; e < x_indptr[i + 1]; ++e) x[static_cast<size_t>(x_indices[e])] = x_data[e];
        for (int64_t e = x_indptr[i]; e < x_indptr[i + 1]; ++e) norm += std::fabs(x_data[e]);
        for (int64_t j = 0; j < n_z; ++j) {
            double sum = norm;
            for (int64_t e = z_indptr[j]; e < z_indptr[j + 1]; ++e) {
                const double value = x[static_cast<size_t>(z_indices[e])];
                sum += std::fabs(value - z_data[e]) - std::fabs(value);
            }
            out[i * n_z + j] = std::max(sum, 0.0);
        }
        for (int64_t e = x_indptr[i]; e < x_indptr[i + 1]; ++e) x[static_cast<size_t>(x_indices[e])] = 0.0;
    }
}

}  // namespace ranksvm::RANKSVM_VARIANT

#endif
