// One copy of the loops of levels.hpp and sweep.hpp, for the instruction set that meson.build compiles this for.
#include "levels.hpp"
#include "sweep.hpp"

#include "sweep_loops.hpp"

namespace ranksvm::RANKSVM_VARIANT {

static constexpr SweepLoops kSweep = {squared_hinge,   huber,       laplacian,     laplacian_rows,
                                      compress_levels, count_pairs, order_by_level};

template <> const SweepLoops &loops() { return kSweep; }

}  // namespace ranksvm::RANKSVM_VARIANT
