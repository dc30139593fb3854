// The parts of an explicit Hessian. For a Hessian H with respect to the scores and the rows X of some queries, of n columns, a
// function `rows` either writes rows D with D'D = X' H X to `out`, which has room for twice as many as X, and returns their
// number; or it returns kNotSquared, centers X by query, and writes as many rows Z as X has, with X'Z + Z'X = 2 X' H X. (In the
// first case X may also be centered.)
#ifndef RANKSVM_HESSIAN_ROWS_HPP
#define RANKSVM_HESSIAN_ROWS_HPP

#include <cstdint>

namespace ranksvm {

constexpr std::int64_t kNotSquared = -1;

}  // namespace ranksvm

#endif
