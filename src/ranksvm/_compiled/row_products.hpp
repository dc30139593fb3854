// The products of linear.hpp as a pass over the rows takes them.
#ifndef RANKSVM_ROW_PRODUCTS_HPP
#define RANKSVM_ROW_PRODUCTS_HPP

#include "linear_loops.hpp"
#include "passes.hpp"

namespace ranksvm {

template <class Matrix>
struct DenseRows {
    const DenseLoops<Matrix> *loops;
    Matrix X;
    int64_t n;
    const int64_t *rows;
    int64_t n_positions;
    bool far;  // larger than a core's cache

    static void scores(const void *context, int64_t start, int64_t stop, const double *w, double *v_range) {
        const DenseRows &own = *static_cast<const DenseRows *>(context);
        own.loops->scores(own.X, own.n, own.rows, start, stop, own.far, w, v_range);
    }
    static void accumulate(const void *context, int64_t start, int64_t stop, const double *u_range, double *total) {
        const DenseRows &own = *static_cast<const DenseRows *>(context);
        own.loops->accumulate(own.X, own.n, own.rows, start, stop, own.far ? own.n_positions : stop, u_range, total);
    }
};

template <class Real, class Index>
struct SparseRows {
    const SparseLoops<Real, Index> *loops;
    const Real *data;
    const Index *indices, *indptr;
    const int64_t *rows;

    static void scores(const void *context, int64_t start, int64_t stop, const double *w, double *v_range) {
        const SparseRows &own = *static_cast<const SparseRows *>(context);
        own.loops->scores(own.data, own.indices, own.indptr, own.rows, start, stop, w, v_range);
    }
    static void accumulate(const void *context, int64_t start, int64_t stop, const double *u_range, double *total) {
        const SparseRows &own = *static_cast<const SparseRows *>(context);
        own.loops->accumulate(own.data, own.indices, own.indptr, own.rows, start, stop, u_range, false, total);
    }
};

}  // namespace ranksvm

#endif
