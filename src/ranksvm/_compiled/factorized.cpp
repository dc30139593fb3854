// One copy of the loops of factorized.hpp, for the instruction set that meson.build compiles this for.
#include "factorized.hpp"

#include "factorized_loops.hpp"

namespace ranksvm::RANKSVM_VARIANT {

static constexpr FactorLoops kFactors = {least, factor_coefficients, factor_momentum, factor_move, factor_gradient};
template <class Real>
static constexpr DenseVisitLoops<Real> kDenseVisits = {visit_dense<Real>};
template <class Real, class Index>
static constexpr SparseVisitLoops<Real, Index> kSparseVisits = {visit_sparse<Real, Index>};

template <> const FactorLoops &loops() { return kFactors; }
template <> const DenseVisitLoops<float> &loops() { return kDenseVisits<float>; }
template <> const DenseVisitLoops<double> &loops() { return kDenseVisits<double>; }
template <> const SparseVisitLoops<float, int32_t> &loops() { return kSparseVisits<float, int32_t>; }
template <> const SparseVisitLoops<float, int64_t> &loops() { return kSparseVisits<float, int64_t>; }
template <> const SparseVisitLoops<double, int32_t> &loops() { return kSparseVisits<double, int32_t>; }
template <> const SparseVisitLoops<double, int64_t> &loops() { return kSparseVisits<double, int64_t>; }

}  // namespace ranksvm::RANKSVM_VARIANT
