// One copy of the loops of pair_list.hpp, for the instruction set that meson.build compiles this for.
#include "pair_list.hpp"

#include "pair_list_loops.hpp"

namespace ranksvm::RANKSVM_VARIANT {

static constexpr PairListLoops kPairList = {squared_hinge_of_list, huber_of_list, smooth_of_list, laplacian_of_list};
template <class Real>
static constexpr PairListRowLoops<Real> kPairListRows = {hessian_rows_of_list<Real>, laplacian_product_of_list<Real>};

template <> const PairListLoops &loops() { return kPairList; }
template <> const PairListRowLoops<double> &loops() { return kPairListRows<double>; }
template <> const PairListRowLoops<float> &loops() { return kPairListRows<float>; }

}  // namespace ranksvm::RANKSVM_VARIANT
