// Rows of features that lie in two arrays, such as the preferred and the other documents of listed pairs.
#ifndef RANKSVM_TWO_BLOCKS_HPP
#define RANKSVM_TWO_BLOCKS_HPP

#include <cstdint>

namespace ranksvm {

// The rows of `second` are numbered after the n_first rows of `first`.
template <class Real>
struct TwoBlocks {
    const Real *first, *second;
    std::int64_t n_first;
};

}  // namespace ranksvm

#endif
