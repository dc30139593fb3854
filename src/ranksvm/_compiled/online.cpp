// One copy of the loops of online.hpp, for the instruction set that meson.build compiles this for.
#include "online.hpp"

#include "online_loops.hpp"

namespace ranksvm::RANKSVM_VARIANT {

static constexpr OnlinePairLoops kPairs = {count_online_pairs, fill_online_pairs, kOnlineMethods,
                                           static_cast<int>(std::size(kOnlineMethods))};
template <class Real>
static constexpr DenseOnlineLoops<Real> kDense = {learn_dense<Real>, committee_dense<Real>, prank_dense<Real>};
template <class Real, class Index>
static constexpr SparseOnlineLoops<Real, Index> kSparse = {learn_sparse<Real, Index>, committee_sparse<Real, Index>,
                                                    prank_sparse<Real, Index>};

template <> const OnlinePairLoops &loops() { return kPairs; }
template <> const DenseOnlineLoops<float> &loops() { return kDense<float>; }
template <> const DenseOnlineLoops<double> &loops() { return kDense<double>; }
template <> const SparseOnlineLoops<float, int32_t> &loops() { return kSparse<float, int32_t>; }
template <> const SparseOnlineLoops<float, int64_t> &loops() { return kSparse<float, int64_t>; }
template <> const SparseOnlineLoops<double, int32_t> &loops() { return kSparse<double, int32_t>; }
template <> const SparseOnlineLoops<double, int64_t> &loops() { return kSparse<double, int64_t>; }

}  // namespace ranksvm::RANKSVM_VARIANT
