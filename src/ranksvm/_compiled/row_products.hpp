// The products of linear.hpp, in the form that a pass over the rows calls (passes.hpp).
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
    Where where;

    static void scores(const void *context, int64_t start, int64_t stop, const double *w, double *v_range) {
        const DenseRows &own = *static_cast<const DenseRows *>(context);
        own.loops->scores(own.X, own.n, own.rows, start, stop, own.where, w, v_range);
    }
    static void accumulate(const void *context, int64_t start, int64_t stop, const double *u_range, double *total) {
        const DenseRows &own = *static_cast<const DenseRows *>(context);
        const int64_t fetch_stop = own.where == Where::kNear ? stop : own.n_positions;
        own.loops->accumulate(own.X, own.n, own.rows, start, stop, fetch_stop, u_range, total);
    }
    static void single_scores(const void *context, int64_t start, int64_t stop, const double *w, double *v_range) {
        const DenseRows &own = *static_cast<const DenseRows *>(context);
        own.loops->single_scores(own.X, own.n, own.rows, start, stop, own.where, w, v_range);
    }
    static void single_accumulate(const void *context, int64_t start, int64_t stop, const double *u_range, double *total) {
        const DenseRows &own = *static_cast<const DenseRows *>(context);
        const int64_t fetch_stop = own.where == Where::kScattered ? own.n_positions : stop;
        own.loops->single_accumulate(own.X, own.n, own.rows, start, stop, fetch_stop, u_range, total);
    }
    static void gather(const void *context, int64_t start, int64_t stop, double *out, int64_t n_columns) {
        const DenseRows &own = *static_cast<const DenseRows *>(context);
        own.loops->gather(own.X, own.n, own.rows, start, stop, out, n_columns);
    }
    static void gather_single(const void *context, int64_t start, int64_t stop, float *out, int64_t n_columns) {
        const DenseRows &own = *static_cast<const DenseRows *>(context);
        own.loops->gather_single(own.X, own.n, own.rows, start, stop, out, n_columns);
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
    static void gather(const void *context, int64_t start, int64_t stop, double *out, int64_t n_columns) {
        const SparseRows &own = *static_cast<const SparseRows *>(context);
        own.loops->gather(own.data, own.indices, own.indptr, n_columns, own.rows, start, stop, out);
    }
    static void gather_single(const void *context, int64_t start, int64_t stop, float *out, int64_t n_columns) {
        const SparseRows &own = *static_cast<const SparseRows *>(context);
        own.loops->gather_single(own.data, own.indices, own.indptr, n_columns, own.rows, start, stop, out);
    }
};

}  // namespace ranksvm

#endif
