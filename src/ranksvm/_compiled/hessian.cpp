// One copy of the loops of hessian.hpp, for the instruction set that meson.build compiles this for.
#include "hessian.hpp"

#include "hessian_loops.hpp"

namespace ranksvm::RANKSVM_VARIANT {

template <class Real>
static constexpr HessianLoops<Real> kHessian = {add_product<Real>, add_diagonal<Real>};

template <> const HessianLoops<float> &loops() { return kHessian<float>; }
template <> const HessianLoops<double> &loops() { return kHessian<double>; }

}  // namespace ranksvm::RANKSVM_VARIANT
