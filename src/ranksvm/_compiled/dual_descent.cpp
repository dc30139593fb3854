// One copy of the loops of dual_descent.hpp, for the instruction set that meson.build compiles this for.
#include "dual_descent.hpp"

#include "dual_descent_loops.hpp"

namespace ranksvm::RANKSVM_VARIANT {

template <class Real>
static constexpr DenseDualLoops<Real> kDense = {dense_grams<Real>, dense_ascent<Real>};
template <class Real, class Index>
static constexpr SparseDualLoops<Real, Index> kSparse = {sparse_grams<Real, Index>, sparse_ascent<Real, Index>};

template <> const DenseDualLoops<float> &loops() { return kDense<float>; }
template <> const DenseDualLoops<double> &loops() { return kDense<double>; }
template <> const SparseDualLoops<float, int32_t> &loops() { return kSparse<float, int32_t>; }
template <> const SparseDualLoops<float, int64_t> &loops() { return kSparse<float, int64_t>; }
template <> const SparseDualLoops<double, int32_t> &loops() { return kSparse<double, int32_t>; }
template <> const SparseDualLoops<double, int64_t> &loops() { return kSparse<double, int64_t>; }

}  // namespace ranksvm::RANKSVM_VARIANT
