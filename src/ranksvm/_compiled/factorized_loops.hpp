// Tables of pointers to the loops of factorized.hpp; each instruction set has its own tables.
#ifndef RANKSVM_FACTORIZED_LOOPS_HPP
#define RANKSVM_FACTORIZED_LOOPS_HPP

#include <cstdint>

#include "instruction_set.hpp"

namespace ranksvm {

using std::int32_t;
using std::int64_t;

// The stride of the factors is a multiple of kFactorLanes; the entries beyond the rank K are 0 and stay 0.
constexpr int kFactorLanes = 4;

struct FactorArrays {
    const int64_t *pointers;
    const int32_t *levels;
    const int32_t *n_levels;
    int64_t stride;
};

struct Visits {
    FactorArrays arrays;
    const int64_t *rows;
    const int64_t *order;  // the queries to visit
    int64_t n_visits;
    double upper;       // upper bound of the entries of V (the box)
    double fixed_step;  // 0: spectral step lengths and an exact line search
};

// q1 t + q2 t^2 + q3 t^3 + q4 t^4
struct Quartic {
    double q1, q2, q3, q4;
};

struct FactorLoops {
    double (*least)(const Quartic &quartic);
    void (*coefficients)(const FactorArrays &arrays, int64_t first, int64_t last, const double *V, double *c_range,
                         double *pairs);
    void (*momentum)(const FactorArrays &arrays, int64_t first, int64_t last, double upper, const double *V,
                     double *previous, double *c1_range, double *c2_range, double *pairs1, double *pairs2);
    void (*move)(int64_t size, double upper, double t, double *V, double *D);
    void (*gradient)(const FactorArrays &arrays, int64_t first, int64_t last, const double *V, double *scores_range,
                     double *G_range);
};

template <class Real>
struct DenseVisitLoops {
    double (*visit)(const Real *X, int64_t n, const Visits &visits, double *V, double *beta, double *steps, double *pairs);
};

template <class Real, class Index>
struct SparseVisitLoops {
    double (*visit)(const Real *data, const Index *indices, const Index *indptr, int64_t n, const Visits &visits,
                    double *V, double *beta, double *steps, double *pairs);
};

RANKSVM_DECLARE_LOOPS(FactorLoops)
RANKSVM_DECLARE_LOOPS(DenseVisitLoops<float>)
RANKSVM_DECLARE_LOOPS(DenseVisitLoops<double>)
RANKSVM_DECLARE_LOOPS(SparseVisitLoops<float, int32_t>)
RANKSVM_DECLARE_LOOPS(SparseVisitLoops<float, int64_t>)
RANKSVM_DECLARE_LOOPS(SparseVisitLoops<double, int32_t>)
RANKSVM_DECLARE_LOOPS(SparseVisitLoops<double, int64_t>)

}  // namespace ranksvm

#endif
