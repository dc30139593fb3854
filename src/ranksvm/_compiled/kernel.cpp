// One copy of the loops of kernel_distances.hpp and kernel_product.hpp, for the instruction set that meson.build compiles this for.
#include "kernel_distances.hpp"
#include "kernel_product.hpp"

#include "kernel_loops.hpp"

namespace ranksvm::RANKSVM_VARIANT {

template <class Real>
static constexpr ProductLoops<Real> kProduct = {panels_product<Real>, block_product<Real>, square_product<Real>};
static constexpr DistanceLoops kDistance = {dense_distances};
template <class Index>
static constexpr SparseDistanceLoops<Index> kSparseDistance = {sparse_distances<Index>};

template <> const ProductLoops<float> &loops() { return kProduct<float>; }
template <> const ProductLoops<double> &loops() { return kProduct<double>; }
template <> const DistanceLoops &loops() { return kDistance; }
template <> const SparseDistanceLoops<int32_t> &loops() { return kSparseDistance<int32_t>; }
template <> const SparseDistanceLoops<int64_t> &loops() { return kSparseDistance<int64_t>; }

}  // namespace ranksvm::RANKSVM_VARIANT
