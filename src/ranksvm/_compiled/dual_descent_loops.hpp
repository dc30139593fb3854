// Tables of pointers to the loops of dual_descent.hpp; each instruction set has its own tables.
#ifndef RANKSVM_DUAL_DESCENT_LOOPS_HPP
#define RANKSVM_DUAL_DESCENT_LOOPS_HPP

#include <cstdint>

#include "instruction_set.hpp"

namespace ranksvm {

using std::int32_t;
using std::int8_t;
using std::int64_t;

struct DualPairs {
    const int64_t *pointers;       // first position of each query
    const int64_t *rows;           // row of each position; null: the same
    const int64_t *pair_pointers;  // first pair of each query
    const int32_t *preferred;      // documents of each pair, numbered within the query
    const int32_t *other;
    const double *upper;           // largest alpha of each pair; a pair with 0 is left out
    const double *ridge;           // curvature that the loss adds to each pair
    const int64_t *gram_pointers;  // first entry of each query's Gram matrix
    double *grams;
    int32_t *pauses;               // of each query, the visits without Newton steps: how many are left, and how long the last
                                   // pause was
};

template <class Real>
struct DenseDualLoops {
    void (*grams)(const Real *X, int64_t n, const DualPairs &pairs, const int64_t *order, int64_t n_visits, double *work);
    double (*ascend)(const Real *X, int64_t n, const DualPairs &pairs, const int64_t *order, int64_t n_visits,
                     double *alpha, double *z, const int8_t *signs, double *w);
};

template <class Real, class Index>
struct SparseDualLoops {
    void (*grams)(const Real *data, const Index *indices, const Index *indptr, const DualPairs &pairs,
                  const int64_t *order, int64_t n_visits, double *work);
    double (*ascend)(const Real *data, const Index *indices, const Index *indptr, const DualPairs &pairs,
                     const int64_t *order, int64_t n_visits, double *alpha, double *z, const int8_t *signs, double *w);
};

RANKSVM_DECLARE_LOOPS(DenseDualLoops<float>)
RANKSVM_DECLARE_LOOPS(DenseDualLoops<double>)
RANKSVM_DECLARE_LOOPS(SparseDualLoops<float, int32_t>)
RANKSVM_DECLARE_LOOPS(SparseDualLoops<float, int64_t>)
RANKSVM_DECLARE_LOOPS(SparseDualLoops<double, int32_t>)
RANKSVM_DECLARE_LOOPS(SparseDualLoops<double, int64_t>)

}  // namespace ranksvm

#endif
