// One copy of the loops of factor_rows.hpp, kernel_distances.hpp, kernel_form.hpp and kernel_product.hpp, for the instruction
// set that meson.build compiles this for.
#include "factor_rows.hpp"
#include "kernel_distances.hpp"
#include "kernel_form.hpp"
#include "kernel_product.hpp"

#include "kernel_loops.hpp"

namespace ranksvm::RANKSVM_VARIANT {

template <class Real>
static constexpr ProductLoops<Real> kProduct = {panels_product<Real>, block_product<Real>, square_product<Real>};
static constexpr DistanceLoops kDistance = {dense_distances};
template <class Index>
static constexpr SparseDistanceLoops<Index> kSparseDistance = {sparse_distances<Index>};

template <class Stored, class Real>
static constexpr GatherLoops<Stored, Real> kGather = {gather_rows<Stored, Real>};
template <class Real>
static constexpr FormLoops<Real> kForm = {form_blocks<Real>};
static_assert(kMostFactorColumns <= kDepth);
template <class Real>
static constexpr FactorLoops<Real> kFactor = {packed_size<Real>, packed_rows<Real>, factor_rows<Real>};

template <> const FactorLoops<float> &loops() { return kFactor<float>; }
template <> const FactorLoops<double> &loops() { return kFactor<double>; }
template <> const FormLoops<float> &loops() { return kForm<float>; }
template <> const FormLoops<double> &loops() { return kForm<double>; }
template <> const GatherSingle &loops() { return kGather<float, float>; }
template <> const GatherDouble &loops() { return kGather<double, double>; }
template <> const GatherNarrowed &loops() { return kGather<double, float>; }
template <> const GatherWidened &loops() { return kGather<float, double>; }
template <> const ProductLoops<float> &loops() { return kProduct<float>; }
template <> const ProductLoops<double> &loops() { return kProduct<double>; }
template <> const DistanceLoops &loops() { return kDistance; }
template <> const SparseDistanceLoops<int32_t> &loops() { return kSparseDistance<int32_t>; }
template <> const SparseDistanceLoops<int64_t> &loops() { return kSparseDistance<int64_t>; }

}  // namespace ranksvm::RANKSVM_VARIANT
