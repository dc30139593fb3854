// The loops of sweep.hpp and levels.hpp as a table, for each instruction set.
#ifndef RANKSVM_SWEEP_LOOPS_HPP
#define RANKSVM_SWEEP_LOOPS_HPP

#include <cstdint>

#include "instruction_set.hpp"
#include "loss_sums.hpp"

namespace ranksvm {

using std::int32_t;
using std::int64_t;

struct Pairs {
    const int64_t *pointers;   // (n_queries + 1,) first position of each query
    const int32_t *levels;     // (n_rows,) rank of the label in its query
    const int32_t *n_levels;   // (n_queries,)
    const double *preferred;   // (n_rows,) a, or null
    const double *other;       // (n_rows,) b, or null
    const double *gain;        // (n_rows,) g, ascending with the level, or null; needs a and b
    int32_t adjacent;          // whether only the pairs of neighbouring levels count
    int32_t direct_limit;      // queries of up to so many levels take the direct form
};

struct SweepLoops {
    double (*squared_hinge)(const Pairs &pairs, int64_t first_query, int64_t last_query, const double *scores,
                            double threshold, int32_t *order, int32_t *window, double *counts, double *gradient_range);
    LossSums (*huber)(const Pairs &pairs, int64_t first_query, int64_t last_query, const double *scores, double width,
                      int32_t *order, int32_t *outer, int32_t *inner, double *counts, double *gradient_range);
    void (*laplacian)(const Pairs &pairs, int64_t first_query, int64_t last_query, const int32_t *order,
                      const int32_t *outer, const int32_t *inner, const double *counts, const double *v_range,
                      double *out_range);
    void (*laplacian_rows)(const Pairs &pairs, int64_t first_query, int64_t last_query, const int32_t *order,
                           const int32_t *outer, const int32_t *inner, const double *counts, const double *X_range,
                           int64_t n, double *Z_range);
    void (*compress_levels)(const int64_t *pointers, int64_t first_query, int64_t last_query, const double *y,
                            int32_t *levels, int32_t *n_levels);
    void (*count_pairs)(const Pairs &pairs, int64_t first_query, int64_t last_query, double *n_pairs, double *weight);
};
RANKSVM_DECLARE_LOOPS(SweepLoops)

}  // namespace ranksvm

#endif
