// Tables of pointers to the loops of linear.hpp; each instruction set has its own tables. `rows` maps positions to rows of X
// (null if they are the same); `out_range` and `u_range` hold the positions start .. stop only.
#ifndef RANKSVM_LINEAR_LOOPS_HPP
#define RANKSVM_LINEAR_LOOPS_HPP

#include <cstdint>

#include "dense_matrix.hpp"
#include "instruction_set.hpp"

namespace ranksvm {

using std::int32_t;
using std::int64_t;

template <class Matrix>
struct DenseLoops {
    void (*scores)(Matrix X, int64_t n, const int64_t *rows, int64_t start, int64_t stop, Where where, const double *w,
                   double *out_range);
    void (*accumulate)(Matrix X, int64_t n, const int64_t *rows, int64_t start, int64_t stop, int64_t fetch_stop,
                       const double *u_range, double *out);
    // the same in float32 if X is float32 and its rows are long enough to fill a vector
    void (*single_scores)(Matrix X, int64_t n, const int64_t *rows, int64_t start, int64_t stop, Where where,
                          const double *w, double *out_range);
    void (*single_accumulate)(Matrix X, int64_t n, const int64_t *rows, int64_t start, int64_t stop, int64_t fetch_stop,
                              const double *u_range, double *out);
    void (*gather)(Matrix X, int64_t n, const int64_t *rows, int64_t start, int64_t stop, double *out_range,
                   int64_t n_columns);
    void (*gather_single)(Matrix X, int64_t n, const int64_t *rows, int64_t start, int64_t stop, float *out_range,
                          int64_t n_columns);
};

template <class Real>
struct ArrayLoops {
    bool (*finite)(const Real *X, int64_t size);
    // of all rows start .. stop; on entry `out` has the largest values so far
    void (*largest)(const Real *X, int64_t n, int64_t start, int64_t stop, double *out);
};

template <class Real, class Index>
struct SparseLoops {
    void (*scores)(const Real *data, const Index *indices, const Index *indptr, const int64_t *rows, int64_t start,
                   int64_t stop, const double *w, double *out_range);
    void (*accumulate)(const Real *data, const Index *indices, const Index *indptr, const int64_t *rows, int64_t start,
                       int64_t stop, const double *u_range, bool squares, double *out);
    void (*gather)(const Real *data, const Index *indices, const Index *indptr, int64_t n, const int64_t *rows,
                   int64_t start, int64_t stop, double *out_range);
    void (*gather_single)(const Real *data, const Index *indices, const Index *indptr, int64_t n, const int64_t *rows,
                          int64_t start, int64_t stop, float *out_range);
    // `out`: n times n zeros on entry
    void (*gram)(const Real *data, const Index *indices, const Index *indptr, int64_t n_features, const int64_t *rows,
                 int64_t n, double *out);
    // takes the entries start .. stop
    void (*largest)(const Real *data, const Index *indices, int64_t start, int64_t stop, double *out);
};

template <class Real>
struct CenterLoops {
    void (*center_queries)(const int64_t *pointers, int64_t first_query, int64_t last_query, int64_t n, Real *X_range);
};

RANKSVM_DECLARE_LOOPS(DenseLoops<OneBlock<float>>)
RANKSVM_DECLARE_LOOPS(DenseLoops<OneBlock<double>>)
RANKSVM_DECLARE_LOOPS(DenseLoops<TwoBlocks<float>>)
RANKSVM_DECLARE_LOOPS(DenseLoops<TwoBlocks<double>>)
RANKSVM_DECLARE_LOOPS(ArrayLoops<float>)
RANKSVM_DECLARE_LOOPS(ArrayLoops<double>)
RANKSVM_DECLARE_LOOPS(SparseLoops<float, int32_t>)
RANKSVM_DECLARE_LOOPS(SparseLoops<float, int64_t>)
RANKSVM_DECLARE_LOOPS(SparseLoops<double, int32_t>)
RANKSVM_DECLARE_LOOPS(SparseLoops<double, int64_t>)
RANKSVM_DECLARE_LOOPS(CenterLoops<double>)
RANKSVM_DECLARE_LOOPS(CenterLoops<float>)

}  // namespace ranksvm

#endif
