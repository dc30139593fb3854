// The losses of pair_list.hpp and their Laplacian, in the form that a pass over the rows calls (passes.hpp).
#ifndef RANKSVM_PAIR_LIST_OPERATORS_HPP
#define RANKSVM_PAIR_LIST_OPERATORS_HPP

#include "pair_list_loops.hpp"
#include "passes.hpp"

namespace ranksvm {

struct ListOperator {
    const PairListLoops *loops;
    const PairListRowLoops<double> *row_loops;
    const PairListRowLoops<float> *single_row_loops;
    const PairList *pairs;
    double *active, *degrees;  // weight of each pair at which the loss is curved, their sum for each document
    double threshold;          // of the squared hinge
    double width, ring;        // of the Huberized hinge, and of the margins at which it is curved
    bool smoothing;            // whether the loss smooths the hinge, so that excess and slack count
    int function;              // number of a function of the margin
    double factor;             // of the Laplacian

    // scores -> gradient; also writes `active` and `degrees`
    static LossSums squared_hinge(const void *context, int64_t first, int64_t last, const double *v_range, double *u_range) {
        const ListOperator &own = *static_cast<const ListOperator *>(context);
        return own.loops->squared_hinge(*own.pairs, first, last, v_range, own.threshold, own.active, own.degrees, u_range);
    }

    // scores -> gradient; also writes `active` and `degrees`
    static LossSums huber(const void *context, int64_t first, int64_t last, const double *v_range, double *u_range) {
        const ListOperator &own = *static_cast<const ListOperator *>(context);
        const LossSums sums =
            own.loops->huber(*own.pairs, first, last, v_range, own.width, own.ring, own.active, own.degrees, u_range);
        return own.smoothing ? sums : LossSums{sums.value, 0.0, 0.0};
    }

    // scores -> gradient; writes the second derivatives
    static LossSums smooth(const void *context, int64_t first, int64_t last, const double *v_range, double *u_range) {
        const ListOperator &own = *static_cast<const ListOperator *>(context);
        return own.loops->smooth(*own.pairs, first, last, v_range, own.function, own.active, own.degrees, u_range);
    }

    // v -> factor * L v
    static LossSums laplacian(const void *context, int64_t first, int64_t last, const double *v_range, double *u_range) {
        const ListOperator &own = *static_cast<const ListOperator *>(context);
        own.loops->laplacian(*own.pairs, first, last, own.active, v_range, u_range);
        const int64_t size = own.pairs->pointers[last] - own.pairs->pointers[first];
        for (int64_t t = 0; t < size; ++t) u_range[t] *= own.factor;
        return {0.0, 0.0, 0.0};
    }
    static int64_t rows(const void *context, int64_t first, int64_t last, double *X_range, int64_t n, double *out) {
        const ListOperator &own = *static_cast<const ListOperator *>(context);
        return own.row_loops->hessian_rows(*own.pairs, first, last, own.active, own.degrees, X_range, n, own.factor, out);
    }
    static int64_t rows_single(const void *context, int64_t first, int64_t last, float *X_range, int64_t n, float *out) {
        const ListOperator &own = *static_cast<const ListOperator *>(context);
        return own.single_row_loops->hessian_rows(*own.pairs, first, last, own.active, own.degrees, X_range, n, own.factor,
                                                  out);
    }
    static bool product(const void *context, int64_t first, int64_t last, const Columns<double> &columns) {
        const ListOperator &own = *static_cast<const ListOperator *>(context);
        return own.row_loops->laplacian_product(*own.pairs, first, last, own.active, own.degrees, columns, own.factor);
    }
    static bool product_single(const void *context, int64_t first, int64_t last, const Columns<float> &columns) {
        const ListOperator &own = *static_cast<const ListOperator *>(context);
        return own.single_row_loops->laplacian_product(*own.pairs, first, last, own.active, own.degrees, columns, own.factor);
    }
};

}  // namespace ranksvm

#endif
