// One copy of the loops of laplacian_product.hpp, levels.hpp, squared_rows.hpp and sweep.hpp, for the instruction set that
// meson.build compiles this for.
#include "laplacian_product.hpp"
#include "levels.hpp"
#include "sweep.hpp"

#include "sweep_loops.hpp"

namespace ranksvm::RANKSVM_VARIANT {

static constexpr SweepLoops kSweep = {squared_hinge,   huber,       smooth,        laplacian,
                                      compress_levels, count_pairs, order_by_level};
template <class Real>
static constexpr SweepRowLoops<Real> kSweepRows = {hessian_rows<Real>, laplacian_product<Real>};

template <> const SweepLoops &loops() { return kSweep; }
template <> const SweepRowLoops<double> &loops() { return kSweepRows<double>; }
template <> const SweepRowLoops<float> &loops() { return kSweepRows<float>; }

}  // namespace ranksvm::RANKSVM_VARIANT
