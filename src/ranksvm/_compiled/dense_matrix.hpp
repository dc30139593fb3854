// Dense rows of features, row-major: in one array, or in two, such as the preferred and the other documents of listed pairs.
#ifndef RANKSVM_DENSE_MATRIX_HPP
#define RANKSVM_DENSE_MATRIX_HPP

#include <cstdint>

namespace ranksvm {

template <class Real>
struct OneBlock {
    using Value = Real;
    const Real *values;
};

// The rows of `second` are numbered after the n_first rows of `first`.
template <class Real>
struct TwoBlocks {
    using Value = Real;
    const Real *first, *second;
    std::int64_t n_first;
};

// Where a loop finds the rows: in a core's cache; in memory, in the order in which it reads them; or in memory, in another
// order.
enum class Where { kNear, kFar, kScattered };

}  // namespace ranksvm

#endif
