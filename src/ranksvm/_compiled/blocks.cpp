// One copy of the loops of blocks.hpp, for the instruction set that meson.build compiles this for.
#include "blocks.hpp"

#include "blocks_loops.hpp"

namespace ranksvm::RANKSVM_VARIANT {

static constexpr BlockLoops kBlocks = {shifted_hinge, shifted_laplacian, shifted_pulls, shifted_bends};

template <> const BlockLoops &loops() { return kBlocks; }

}  // namespace ranksvm::RANKSVM_VARIANT
