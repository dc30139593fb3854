// One copy of the loops of coded.hpp, for the instruction set that meson.build compiles this for.
#include "coded.hpp"

#include "coded_loops.hpp"

namespace ranksvm::RANKSVM_VARIANT {

static constexpr CodedLoops kCoded = {coded_values,       coded_gather_sums, coded_look_up, coded_add_up,
                                      coded_fill<double>, coded_fill<float>, coded_cells,  coded_counts, codes_within};
template <class Real>
static constexpr LevelLoops<Real> kLevels = {feature_levels<Real>, value_cuts<Real>, range_sums<Real>, copy_columns<Real>};

template <> const CodedLoops &loops() { return kCoded; }
template <> const LevelLoops<float> &loops() { return kLevels<float>; }
template <> const LevelLoops<double> &loops() { return kLevels<double>; }

}  // namespace ranksvm::RANKSVM_VARIANT
