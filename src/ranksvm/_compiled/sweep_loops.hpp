// Tables of pointers to the loops of laplacian_product.hpp, levels.hpp, squared_rows.hpp and sweep.hpp; each instruction set
// has its own table.
#ifndef RANKSVM_SWEEP_LOOPS_HPP
#define RANKSVM_SWEEP_LOOPS_HPP

#include <cstdint>

#include "hessian_rows.hpp"
#include "instruction_set.hpp"
#include "loss_sums.hpp"
#include "pairs.hpp"
#include "workers.hpp"

namespace ranksvm {

struct SortedQuery;

struct SweepLoops {
    LossSums (*squared_hinge)(const Pairs &pairs, const PairState &state, int64_t first_query, int64_t last_query,
                              const double *scores_range, double *gradient_range, SortedQuery &scratch,
                              const Workers &workers);
    LossSums (*huber)(const Pairs &pairs, const PairState &state, int64_t first_query, int64_t last_query,
                      const double *scores_range, double width, double *gradient_range, SortedQuery &scratch,
                      const Workers &workers);
    LossSums (*smooth)(const Pairs &pairs, const PairState &state, int64_t first_query, int64_t last_query,
                       const double *scores_range, double *gradient_range, SortedQuery &scratch, const Workers &workers);
    void (*laplacian)(const Pairs &pairs, const PairState &state, int64_t first_query, int64_t last_query,
                      const double *v_range, double *out_range, SortedQuery &scratch, const Workers &workers);
    void (*compress_levels)(const int64_t *pointers, int64_t first_query, int64_t last_query, const double *y,
                            int32_t *levels, int32_t *n_levels, SortedQuery &scratch, const Workers &workers);
    void (*count_pairs)(const Pairs &pairs, int64_t first_query, int64_t last_query, double *n_pairs, double *weight);
    int64_t (*order_by_level)(const Pairs &pairs, int64_t n_queries, const double *n_pairs, double visit_limit,
                              int32_t *by_level, uint8_t *visited);
};
// Rows in double or single precision, in which Hessians are built.
template <class Real>
struct SweepRowLoops {
    int64_t (*hessian_rows)(const Pairs &pairs, const PairState &state, int64_t first_query, int64_t last_query, Real *X_range,
                            int64_t n, double factor, Real *out, SortedQuery &scratch);
    bool (*laplacian_product)(const Pairs &pairs, const PairState &state, int64_t first_query, int64_t last_query,
                              const Columns<Real> &columns, double factor, SortedQuery &scratch);
};
RANKSVM_DECLARE_LOOPS(SweepLoops)
RANKSVM_DECLARE_LOOPS(SweepRowLoops<double>)
RANKSVM_DECLARE_LOOPS(SweepRowLoops<float>)

}  // namespace ranksvm

#endif
