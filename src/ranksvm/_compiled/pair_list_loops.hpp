// Tables of pointers to the loops of pair_list.hpp; each instruction set has its own table.
#ifndef RANKSVM_PAIR_LIST_LOOPS_HPP
#define RANKSVM_PAIR_LIST_LOOPS_HPP

#include <cstdint>

#include "hessian_rows.hpp"
#include "instruction_set.hpp"
#include "loss_sums.hpp"

namespace ranksvm {

using std::int32_t;
using std::int64_t;

struct PairList {
    const int64_t *pointers;       // (n_queries + 1,) first position of each query
    const int64_t *pair_pointers;  // (n_queries + 1,) first pair of each query
    const int32_t *preferred;      // (n_pairs,) documents, numbered within their query
    const int32_t *other;          // (n_pairs,)
    const double *weight;          // (n_pairs,)
};

struct PairListLoops {
    LossSums (*squared_hinge)(PairList pairs, int64_t first_query, int64_t last_query, const double *scores_range,
                              double threshold, double *curvature, double *counts, double *gradient_range);
    LossSums (*huber)(PairList pairs, int64_t first_query, int64_t last_query, const double *scores_range, double width,
                      double ring, double *curvature, double *counts, double *gradient_range);
    LossSums (*smooth)(PairList pairs, int64_t first_query, int64_t last_query, const double *scores_range, int function,
                       double *curvature, double *counts, double *gradient_range);
    void (*laplacian)(const PairList &pairs, int64_t first_query, int64_t last_query, const double *curvature,
                      const double *v_range, double *out_range);
};
// Rows in double or single precision, in which Hessians are built.
template <class Real>
struct PairListRowLoops {
    int64_t (*hessian_rows)(const PairList &pairs, int64_t first_query, int64_t last_query, const double *curvature,
                            const double *counts, Real *X_range, int64_t n, double factor, Real *out);
    bool (*laplacian_product)(const PairList &pairs, int64_t first_query, int64_t last_query, const double *curvature,
                              const double *counts, const Columns<Real> &columns, double factor);
};
RANKSVM_DECLARE_LOOPS(PairListLoops)
RANKSVM_DECLARE_LOOPS(PairListRowLoops<double>)
RANKSVM_DECLARE_LOOPS(PairListRowLoops<float>)

}  // namespace ranksvm

#endif
