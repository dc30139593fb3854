// The losses of sweep.hpp and their Laplacian as a pass over the rows takes them.
#ifndef RANKSVM_SWEEP_OPERATORS_HPP
#define RANKSVM_SWEEP_OPERATORS_HPP

#include "passes.hpp"
#include "shared_work.hpp"
#include "sweep_loops.hpp"

namespace ranksvm {

// scores -> gradient
struct SquaredHingeOfQueries {
    const SweepLoops *loops;
    const Pairs *pairs;
    const PairState *state;
    ScratchPool *pool;
    const Workers *workers;

    static LossSums apply(const void *context, int64_t first, int64_t last, const double *v_range, double *u_range) {
        const SquaredHingeOfQueries &own = *static_cast<const SquaredHingeOfQueries *>(context);
        Scratch scratch(*own.pool);
        return own.loops->squared_hinge(*own.pairs, *own.state, first, last, v_range, u_range, scratch.query(), *own.workers);
    }
};

// scores -> gradient
struct HuberOfQueries {
    const SweepLoops *loops;
    const Pairs *pairs;
    const PairState *state;
    ScratchPool *pool;
    const Workers *workers;
    double width;
    bool smoothing;  // of the hinge: excess and slack count

    static LossSums apply(const void *context, int64_t first, int64_t last, const double *v_range, double *u_range) {
        const HuberOfQueries &own = *static_cast<const HuberOfQueries *>(context);
        Scratch scratch(*own.pool);
        const LossSums sums =
            own.loops->huber(*own.pairs, *own.state, first, last, v_range, own.width, u_range, scratch.query(), *own.workers);
        return own.smoothing ? sums : LossSums{sums.value, 0.0, 0.0};
    }
};

// v -> factor * L v
struct LaplacianOfQueries {
    const SweepLoops *loops;
    const Pairs *pairs;
    const PairState *state;
    ScratchPool *pool;
    const Workers *workers;
    double factor;

    static LossSums apply(const void *context, int64_t first, int64_t last, const double *v_range, double *u_range) {
        const LaplacianOfQueries &own = *static_cast<const LaplacianOfQueries *>(context);
        Scratch scratch(*own.pool);
        own.loops->laplacian(*own.pairs, *own.state, first, last, v_range, u_range, scratch.query(), *own.workers);
        const int64_t size = own.pairs->pointers[last] - own.pairs->pointers[first];
        for (int64_t t = 0; t < size; ++t) u_range[t] *= own.factor;
        return {0.0, 0.0, 0.0};
    }
};

}  // namespace ranksvm

#endif
