// Tables of pointers to the loops of hessian.hpp; each instruction set has its own table.
#ifndef RANKSVM_HESSIAN_LOOPS_HPP
#define RANKSVM_HESSIAN_LOOPS_HPP

#include <cstdint>

#include "instruction_set.hpp"

namespace ranksvm {

using std::int64_t;

template <class Real>
struct HessianLoops {
    void (*add_product)(const Real *A, const Real *B, int64_t n_rows, int64_t stride, int64_t n, bool upper, Real *C,
                        int64_t C_stride);
    void (*add_diagonal)(const Real *A, const Real *B, int64_t n_rows, int64_t stride, int64_t n, double *total);
};
RANKSVM_DECLARE_LOOPS(HessianLoops<float>)
RANKSVM_DECLARE_LOOPS(HessianLoops<double>)

}  // namespace ranksvm

#endif
