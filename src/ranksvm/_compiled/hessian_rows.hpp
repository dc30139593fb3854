// The parts of an explicit Hessian. Let H be a Hessian with respect to the scores, and X the rows of some queries, of n
// columns. A function `rows` does one of two things. It may write rows D with D'D = X' H X to `out`, which has room for twice
// as many rows as X has, and return their number. Or it centers X by query, writes as many rows Z as X has, with
// X'Z + Z'X = 2 X' H X, and returns kNotSquared. (In the first case X may also be centered.)
#ifndef RANKSVM_HESSIAN_ROWS_HPP
#define RANKSVM_HESSIAN_ROWS_HPP

#include <cstdint>

namespace ranksvm {

constexpr std::int64_t kNotSquared = -1;

// Columns of two matrices V and U: a function `product` writes U = H V. Both have a row for each document of some queries at
// which H is not 0, and rows lie `stride` numbers apart.
template <class Real>
struct Columns {
    const Real *V;
    Real *U;
    std::int64_t n_rows, n, stride;
};

}  // namespace ranksvm

#endif
