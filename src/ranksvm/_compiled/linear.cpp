// One copy of the loops of linear.hpp, for the instruction set that meson.build compiles this for.
#include "linear.hpp"

#include "linear_loops.hpp"

namespace ranksvm::RANKSVM_VARIANT {

template <class Matrix>
static constexpr DenseLoops<Matrix> kDense = {
    dense_scores<Matrix>,         dense_accumulate<Matrix>,    dense_single_scores<Matrix>, dense_single_accumulate<Matrix>,
    dense_gather<Matrix, double>, dense_gather<Matrix, float>};
template <class Real>
static constexpr ArrayLoops<Real> kArrays = {dense_finite<Real>, dense_largest<Real>};
template <class Real, class Index>
static constexpr SparseLoops<Real, Index> kSparse = {sparse_scores<Real, Index>, sparse_accumulate<Real, Index>,
                                                     sparse_gather<Real, Index, double>, sparse_gather<Real, Index, float>,
                                                     sparse_gram<Real, Index>, sparse_largest<Real, Index>};
template <class Real>
static constexpr CenterLoops<Real> kCenter = {center_queries<Real>};

template <> const DenseLoops<OneBlock<float>> &loops() { return kDense<OneBlock<float>>; }
template <> const DenseLoops<OneBlock<double>> &loops() { return kDense<OneBlock<double>>; }
template <> const DenseLoops<TwoBlocks<float>> &loops() { return kDense<TwoBlocks<float>>; }
template <> const DenseLoops<TwoBlocks<double>> &loops() { return kDense<TwoBlocks<double>>; }
template <> const ArrayLoops<float> &loops() { return kArrays<float>; }
template <> const ArrayLoops<double> &loops() { return kArrays<double>; }
template <> const SparseLoops<float, int32_t> &loops() { return kSparse<float, int32_t>; }
template <> const SparseLoops<float, int64_t> &loops() { return kSparse<float, int64_t>; }
template <> const SparseLoops<double, int32_t> &loops() { return kSparse<double, int32_t>; }
template <> const SparseLoops<double, int64_t> &loops() { return kSparse<double, int64_t>; }
template <> const CenterLoops<double> &loops() { return kCenter<double>; }
template <> const CenterLoops<float> &loops() { return kCenter<float>; }

}  // namespace ranksvm::RANKSVM_VARIANT
