// The losses of sweep.hpp and their Laplacian, in the form that a pass over the rows calls (passes.hpp).
#ifndef RANKSVM_SWEEP_OPERATORS_HPP
#define RANKSVM_SWEEP_OPERATORS_HPP

#include "passes.hpp"
#include "scratch_pool.hpp"
#include "sweep_loops.hpp"

namespace ranksvm {

struct SweepOperator {
    const SweepLoops *loops;
    const SweepRowLoops<double> *row_loops;
    const SweepRowLoops<float> *single_row_loops;
    const Pairs *pairs;
    const PairState *state;
    ScratchPool *pool;
    Workers workers;
    double width;    // of the Huberized hinge
    bool smoothing;  // whether the loss smooths the hinge, so that excess and slack count
    double factor;   // of the Laplacian

    // scores -> gradient
    static LossSums squared_hinge(const void *context, int64_t first, int64_t last, const double *v_range, double *u_range) {
        const SweepOperator &own = *static_cast<const SweepOperator *>(context);
        Scratch scratch(*own.pool);
        return own.loops->squared_hinge(*own.pairs, *own.state, first, last, v_range, u_range, scratch.query(), own.workers);
    }

    // scores -> gradient
    static LossSums huber(const void *context, int64_t first, int64_t last, const double *v_range, double *u_range) {
        const SweepOperator &own = *static_cast<const SweepOperator *>(context);
        Scratch scratch(*own.pool);
        const LossSums sums =
            own.loops->huber(*own.pairs, *own.state, first, last, v_range, own.width, u_range, scratch.query(), own.workers);
        return own.smoothing ? sums : LossSums{sums.value, 0.0, 0.0};
    }

    // scores -> gradient
    static LossSums smooth(const void *context, int64_t first, int64_t last, const double *v_range, double *u_range) {
        const SweepOperator &own = *static_cast<const SweepOperator *>(context);
        Scratch scratch(*own.pool);
        return own.loops->smooth(*own.pairs, *own.state, first, last, v_range, u_range, scratch.query(), own.workers);
    }

    // v -> factor * L v
    static LossSums laplacian(const void *context, int64_t first, int64_t last, const double *v_range, double *u_range) {
        const SweepOperator &own = *static_cast<const SweepOperator *>(context);
        Scratch scratch(*own.pool);
        own.loops->laplacian(*own.pairs, *own.state, first, last, v_range, u_range, scratch.query(), own.workers);
        const int64_t size = own.pairs->pointers[last] - own.pairs->pointers[first];
        for (int64_t t = 0; t < size; ++t) u_range[t] *= own.factor;
        return {0.0, 0.0, 0.0};
    }
    static int64_t rows(const void *context, int64_t first, int64_t last, double *X_range, int64_t n, double *out) {
        const SweepOperator &own = *static_cast<const SweepOperator *>(context);
        Scratch scratch(*own.pool);
        return own.row_loops->hessian_rows(*own.pairs, *own.state, first, last, X_range, n, own.factor, out, scratch.query());
    }
    static int64_t rows_single(const void *context, int64_t first, int64_t last, float *X_range, int64_t n, float *out) {
        const SweepOperator &own = *static_cast<const SweepOperator *>(context);
        Scratch scratch(*own.pool);
        return own.single_row_loops->hessian_rows(*own.pairs, *own.state, first, last, X_range, n, own.factor, out,
                                                  scratch.query());
    }
    static bool product(const void *context, int64_t first, int64_t last, const Columns<double> &columns) {
        const SweepOperator &own = *static_cast<const SweepOperator *>(context);
        Scratch scratch(*own.pool);
        return own.row_loops->laplacian_product(*own.pairs, *own.state, first, last, columns, own.factor, scratch.query());
    }
    static bool product_single(const void *context, int64_t first, int64_t last, const Columns<float> &columns) {
        const SweepOperator &own = *static_cast<const SweepOperator *>(context);
        Scratch scratch(*own.pool);
        return own.single_row_loops->laplacian_product(*own.pairs, *own.state, first, last, columns, own.factor,
                                                       scratch.query());
    }
};

}  // namespace ranksvm

#endif
