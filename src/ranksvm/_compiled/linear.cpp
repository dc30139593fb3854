// One copy of the loops of linear.hpp, for the instruction set that meson.build compiles this for.
#include "linear.hpp"

#include "linear_loops.hpp"

namespace ranksvm::RANKSVM_VARIANT {

template <class Real>
static constexpr DenseLoops<Real> kDense = {
    dense_scores<const Real *>,
    dense_accumulate<const Real *>,
    dense_gather<const Real *, double>,
    dense_gather<const Real *, float>,
    dense_finite<Real>,
    dense_scores<TwoBlocks<Real>>,
    dense_accumulate<TwoBlocks<Real>>,
    dense_gather<TwoBlocks<Real>, double>,
    dense_gather<TwoBlocks<Real>, float>,
    dense_largest<Real>,
};
template <class Real, class Index>
static constexpr SparseLoops<Real, Index> kSparse = {sparse_scores<Real, Index>, sparse_accumulate<Real, Index>,
                                                     sparse_gather<Real, Index, double>, sparse_gather<Real, Index, float>,
                                                     sparse_largest<Real, Index>};
template <class Real>
static constexpr CentreLoops<Real> kCentre = {centre_queries<Real>};

template <> const DenseLoops<float> &loops() { return kDense<float>; }
template <> const DenseLoops<double> &loops() { return kDense<double>; }
template <> const SparseLoops<float, int32_t> &loops() { return kSparse<float, int32_t>; }
template <> const SparseLoops<float, int64_t> &loops() { return kSparse<float, int64_t>; }
template <> const SparseLoops<double, int32_t> &loops() { return kSparse<double, int32_t>; }
template <> const SparseLoops<double, int64_t> &loops() { return kSparse<double, int64_t>; }
template <> const CentreLoops<double> &loops() { return kCentre<double>; }
template <> const CentreLoops<float> &loops() { return kCentre<float>; }

}  // namespace ranksvm::RANKSVM_VARIANT
