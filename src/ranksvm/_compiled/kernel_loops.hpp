// Tables of pointers to the loops of factor_rows.hpp, kernel_distances.hpp, kernel_form.hpp and kernel_product.hpp; each
// instruction set has its own tables.
#ifndef RANKSVM_KERNEL_LOOPS_HPP
#define RANKSVM_KERNEL_LOOPS_HPP

#include <cstdint>

#include "instruction_set.hpp"

namespace ranksvm {

using std::int32_t;
using std::int64_t;

template <class Real>
struct ProductLoops {
    void (*panels)(const Real *panels, int64_t n, int64_t height, int64_t first, int64_t last, const double *b, double *s);
    void (*block)(const Real *Q, int64_t stride, int64_t n_rows, int64_t n_columns, const double *b_row, double *s_row,
                  const double *b_column, double *s_column);
    void (*square)(const Real *Q, int64_t stride, int64_t n, const double *b, double *s);
};

struct DistanceLoops {
    void (*dense)(const double *X, int64_t n_x, const double *Z, int64_t n_z, int64_t n, double *out);
};

template <class Index>
struct SparseDistanceLoops {
    void (*sparse)(const double *x_data, const Index *x_indices, const Index *x_indptr, int64_t n_x, const double *z_data,
                   const Index *z_indices, const Index *z_indptr, int64_t n_z, int64_t n, double *out);
};

template <class Stored, class Real>
struct GatherLoops {
    void (*rows)(const Stored *panels, int64_t n, int64_t height, const int64_t *positions, int64_t n_positions,
                 int64_t first, int64_t last, Real *out);
};

template <class Real>
struct FormLoops {
    void (*blocks)(Real *Q, int64_t n, const Real *U, const int64_t *entry, const int64_t *row, const int64_t *column,
                   int64_t first, int64_t last, Real C, Real *out, int64_t rank);
};

// Largest number of columns of a block of a factor: factor_rows.hpp stores its inverse in one piece.
constexpr int64_t kMostFactorColumns = 256;
template <class Real>
struct FactorLoops {
    int64_t (*packed_size)(int64_t n, int64_t depth);
    void (*pack)(const Real *rows, int64_t stride, int64_t n, int64_t depth, Real *out);
    void (*rows)(Real *matrix, int64_t n, int64_t first, int64_t last, int64_t start, int64_t stop, const Real *left,
                 const Real *inverse);
};

RANKSVM_DECLARE_LOOPS(FactorLoops<float>)
RANKSVM_DECLARE_LOOPS(FactorLoops<double>)
RANKSVM_DECLARE_LOOPS(FormLoops<float>)
RANKSVM_DECLARE_LOOPS(FormLoops<double>)
using GatherSingle = GatherLoops<float, float>;
using GatherDouble = GatherLoops<double, double>;
using GatherNarrowed = GatherLoops<double, float>;
using GatherWidened = GatherLoops<float, double>;
RANKSVM_DECLARE_LOOPS(GatherSingle)
RANKSVM_DECLARE_LOOPS(GatherDouble)
RANKSVM_DECLARE_LOOPS(GatherNarrowed)
RANKSVM_DECLARE_LOOPS(GatherWidened)
RANKSVM_DECLARE_LOOPS(ProductLoops<float>)
RANKSVM_DECLARE_LOOPS(ProductLoops<double>)
RANKSVM_DECLARE_LOOPS(DistanceLoops)
RANKSVM_DECLARE_LOOPS(SparseDistanceLoops<int32_t>)
RANKSVM_DECLARE_LOOPS(SparseDistanceLoops<int64_t>)

}  // namespace ranksvm

#endif
