// The losses of pair_list.hpp and their Laplacian as a pass over the rows takes them.
#ifndef RANKSVM_PAIR_LIST_OPERATORS_HPP
#define RANKSVM_PAIR_LIST_OPERATORS_HPP

#include "pair_list_loops.hpp"
#include "passes.hpp"

namespace ranksvm {

// scores -> gradient; `active` receives the weight of each pair at which the loss is curved, `degrees` their sum for each
// document
struct SquaredHingeOfList {
    const PairListLoops *loops;
    const PairList *pairs;
    double threshold, *active, *degrees;

    static LossSums apply(const void *context, int64_t first, int64_t last, const double *v_range, double *u_range) {
        const SquaredHingeOfList &own = *static_cast<const SquaredHingeOfList *>(context);
        return own.loops->squared_hinge(*own.pairs, first, last, v_range, own.threshold, own.active, own.degrees, u_range);
    }
};

struct HuberOfList {
    const PairListLoops *loops;
    const PairList *pairs;
    double width, *active, *degrees;
    bool smoothing;

    static LossSums apply(const void *context, int64_t first, int64_t last, const double *v_range, double *u_range) {
        const HuberOfList &own = *static_cast<const HuberOfList *>(context);
        const LossSums sums = own.loops->huber(*own.pairs, first, last, v_range, own.width, own.active, own.degrees, u_range);
        return own.smoothing ? sums : LossSums{sums.value, 0.0, 0.0};
    }
};

// v -> factor * L v
struct LaplacianOfList {
    const PairListLoops *loops;
    const PairList *pairs;
    const double *active;
    double factor;

    static LossSums apply(const void *context, int64_t first, int64_t last, const double *v_range, double *u_range) {
        const LaplacianOfList &own = *static_cast<const LaplacianOfList *>(context);
        own.loops->laplacian(*own.pairs, first, last, own.active, v_range, u_range);
        const int64_t size = own.pairs->pointers[last] - own.pairs->pointers[first];
        for (int64_t t = 0; t < size; ++t) u_range[t] *= own.factor;
        return {0.0, 0.0, 0.0};
    }
};

}  // namespace ranksvm

#endif
