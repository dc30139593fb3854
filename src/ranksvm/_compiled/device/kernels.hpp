// All kernels, for one variant of the data: the compilation must define RANKSVM_REAL (float or double), RANKSVM_SPARSE (0 or 1)
// and RANKSVM_LISTED (0 or 1). Arguments are only pointers, int64_t and double, 8 bytes each. This file may be included for
// several variants, in a namespace each, after bodies.hpp.
//
// RANKSVM_PART chooses a part of the kernels. NVRTC compiles the parts in parallel, and only those that are needed: 1, pairs;
// 2, rows and vectors; 3, rows and pairs of whole queries; 4, arrays that lie on a device; 5, documents with documents; 6,
// calibration; 7, Cholesky factors; 8, codes of levels. Without it, all kernels are compiled. PARTS of device/cuda.py has the
// names of the kernels.
#include "bodies.hpp"

#undef RANKSVM_HAS
#ifdef RANKSVM_PART
#define RANKSVM_HAS(part) (RANKSVM_PART == part)
#else
#define RANKSVM_HAS(part) 1
#endif

using ranksvm::int32_t;
using ranksvm::int64_t;

#undef RANKSVM_PAIRS
#undef RANKSVM_OF_PAIRS
#if RANKSVM_LISTED
#define RANKSVM_PAIRS const int64_t *list_begin, const int32_t *partner, const double *pair_weight, const int32_t *origin
#define RANKSVM_OF_PAIRS \
    ranksvm::device::ListedPairs { list_begin, partner, pair_weight, origin }
#else
#define RANKSVM_PAIRS                                                                                           \
    const int32_t *level, const int32_t *level_begin, const int32_t *level_query, const int32_t *pointers,       \
        const double *preferred, const double *other, const double *gain, int64_t adjacent
#define RANKSVM_OF_PAIRS \
    ranksvm::device::LevelPairs { level, level_begin, level_query, pointers, preferred, other, gain, adjacent != 0 }
#endif

#undef RANKSVM_ROWS
#undef RANKSVM_OF_ROWS
#if RANKSVM_SPARSE
#define RANKSVM_ROWS \
    const RANKSVM_REAL *data, const int32_t *indices, const int64_t *indptr, const int32_t *rows, int64_t n_features
#define RANKSVM_OF_ROWS \
    ranksvm::device::SparseRows<RANKSVM_REAL> { data, indices, indptr, rows, n_features }
#else
#define RANKSVM_ROWS const RANKSVM_REAL *X, const int32_t *rows, int64_t n_features, int64_t first_row
#define RANKSVM_OF_ROWS \
    ranksvm::device::DenseRows<RANKSVM_REAL> { X, rows, n_features, first_row }
#endif

#if RANKSVM_HAS(1)
// ---------------------------------------------------------------------------------------------------------------------
// Pairs: the loss (of width 0: the squared hinge) and its curvature

RANKSVM_KERNEL(loss)
(RANKSVM_PAIRS, int64_t start, int64_t stop, const double *scores, double width, double *gradient, const double *from,
 const double *to, double *block_sums) {
    const auto pairs = RANKSVM_OF_PAIRS;
    if (width > 0.0)
        ranksvm::device::evaluate_loss(pairs, ranksvm::device::HuberHinge{width, 1.0 / width}, start, stop, scores, gradient,
                                       from, to, block_sums);
    else
        ranksvm::device::evaluate_loss(pairs, ranksvm::device::SquaredHinge{}, start, stop, scores, gradient, from, to,
                                       block_sums);
}

RANKSVM_KERNEL(degrees)
(RANKSVM_PAIRS, int64_t n_rows, const double *scores, double inner, double outer, double factor, double *degrees,
 double *block_sums) {
    ranksvm::device::sum_degrees(RANKSVM_OF_PAIRS, ranksvm::device::Ring{inner, outer}, n_rows, scores, factor, degrees,
                                 block_sums);
}

RANKSVM_KERNEL(laplacian)
(RANKSVM_PAIRS, int64_t start, int64_t stop, const double *scores, double inner, double outer, double factor, const double *v,
 double *out) {
    ranksvm::device::multiply_laplacian(RANKSVM_OF_PAIRS, ranksvm::device::Ring{inner, outer}, start, stop, scores, factor, v,
                                        out);
}

RANKSVM_KERNEL(laplacian_rows)
(RANKSVM_PAIRS, int64_t start, int64_t stop, const double *scores, double inner, double outer, double factor, int64_t n,
 const double *A, double *Z) {
    ranksvm::device::laplacian_rows(RANKSVM_OF_PAIRS, ranksvm::device::Ring{inner, outer}, start, stop, scores, factor, n, A, Z);
}

#endif

#if RANKSVM_HAS(2)
// ---------------------------------------------------------------------------------------------------------------------
// Rows

RANKSVM_KERNEL(scores)(RANKSVM_ROWS, int64_t start, int64_t stop, const double *w, double *out) {
    ranksvm::device::multiply_rows(RANKSVM_OF_ROWS, start, stop, w, out);
}

RANKSVM_KERNEL(gather)(RANKSVM_PAIRS, RANKSVM_ROWS, int64_t start, int64_t stop, double *out) {
    ranksvm::device::gather(RANKSVM_OF_PAIRS, RANKSVM_OF_ROWS, start, stop, out);
}

#if RANKSVM_SPARSE
RANKSVM_KERNEL(accumulate_columns)
(const RANKSVM_REAL *data, const int32_t *positions, const int64_t *pieces, int64_t n_pieces, const double *u, int64_t squares,
 double *sums) {
    ranksvm::device::accumulate_columns(data, positions, pieces, n_pieces, u, squares != 0, sums);
}
#else
RANKSVM_KERNEL(accumulate_rows)(RANKSVM_ROWS, int64_t start, int64_t stop, const double *u, double *block_sums) {
    ranksvm::device::accumulate_rows(RANKSVM_OF_ROWS, start, stop, u, block_sums);
}
#endif

// ---------------------------------------------------------------------------------------------------------------------
// Matrices and vectors of float64

RANKSVM_KERNEL(multiply_tiles)
(const double *A, const double *Z, int64_t n_rows, int64_t n, int64_t n_parts, double *parts) {
    ranksvm::device::multiply_tiles(A, Z, n_rows, n, n_parts, parts);
}

RANKSVM_KERNEL(multiply_columns)(const double *A, const double *Z, int64_t n_rows, int64_t n, double *block_sums) {
    ranksvm::device::multiply_columns(A, Z, n_rows, n, block_sums);
}

RANKSVM_KERNEL(add_rows)(const double *parts, int64_t n_rows, int64_t n_columns, double *out) {
    ranksvm::device::add_rows(parts, n_rows, n_columns, out);
}

RANKSVM_KERNEL(add_pieces)(const double *parts, const int64_t *begin, int64_t n, double *out) {
    ranksvm::device::add_pieces(parts, begin, n, out);
}

RANKSVM_KERNEL(step_between)(const double *a, const double *b, double alpha, int64_t n, double *out) {
    ranksvm::device::step_between(a, b, alpha, n, out);
}

RANKSVM_KERNEL(take)(const double *values, const int32_t *places, int64_t n, double *out) {
    ranksvm::device::take(values, places, n, out);
}
#endif

#if RANKSVM_HAS(3) && !RANKSVM_SPARSE
// ---------------------------------------------------------------------------------------------------------------------
// Rows and pairs of whole queries

RANKSVM_LARGE_KERNEL(fused_loss)
(RANKSVM_PAIRS, RANKSVM_ROWS, const int32_t *begin, int64_t n_tasks, int64_t shared, const double *w, double width,
 double *scores, double *block_sums) {
    using namespace ranksvm::device;
    const auto pairs = RANKSVM_OF_PAIRS;
    pass_over_queries(pairs, RANKSVM_OF_ROWS, Tasks{begin, n_tasks, shared}, w, LossOfScores<decltype(pairs)>{pairs, width},
                      nullptr, scores, block_sums);
}

RANKSVM_LARGE_KERNEL(fused_laplacian)
(RANKSVM_PAIRS, RANKSVM_ROWS, const int32_t *begin, int64_t n_tasks, int64_t shared, const double *v, const double *scores,
 double inner, double outer, double factor, double *block_sums) {
    using namespace ranksvm::device;
    const auto pairs = RANKSVM_OF_PAIRS;
    const Ring ring = {inner, outer};
    pass_over_queries(pairs, RANKSVM_OF_ROWS, Tasks{begin, n_tasks, shared}, v,
                      FlowOfScores<decltype(pairs)>{pairs, ring, factor}, scores, nullptr, block_sums);
}
#endif

// ---------------------------------------------------------------------------------------------------------------------
// Arrays that lie on a device

#if RANKSVM_HAS(4) && !RANKSVM_SPARSE && !RANKSVM_LISTED
RANKSVM_KERNEL(convert)
(const char *values, int64_t type, int64_t row_stride, int64_t column_stride, const int32_t *rows, int64_t n_rows, int64_t n,
 RANKSVM_REAL *out) {
    ranksvm::device::convert(values, type, row_stride, column_stride, rows, n_rows, n, out);
}

RANKSVM_KERNEL(largest_values)(const RANKSVM_REAL *X, int64_t n_rows, int64_t n, double *block_largest) {
    ranksvm::device::largest_values(X, n_rows, n, block_largest);
}
#endif

// ---------------------------------------------------------------------------------------------------------------------
// Documents with documents: kernel matrices, and features that approximate a kernel, stored as RANKSVM_REAL

#if RANKSVM_HAS(5) && !RANKSVM_SPARSE && !RANKSVM_LISTED
RANKSVM_KERNEL(pair_values)
(const double *X, int64_t n_X, const int32_t *rows, int64_t start, int64_t stop, const double *Z, int64_t n_Z,
 int64_t n_features, int64_t kind, double factor, double constant, int64_t degree, int64_t row_stride, int64_t column_stride,
 RANKSVM_REAL *out) {
    ranksvm::device::all_pair_values(ranksvm::device::DenseDocuments{X, n_X, n_features}, rows, start, stop,
                                     ranksvm::device::DenseDocuments{Z, n_Z, n_features},
                                     ranksvm::device::Function{kind, factor, constant, degree},
                                     ranksvm::device::Target<RANKSVM_REAL>{out, row_stride, column_stride});
}

RANKSVM_KERNEL(sparse_pair_values)
(const double *data, const int32_t *indices, const int64_t *indptr, const int32_t *rows, int64_t start, int64_t stop,
 const double *Z_data, const int32_t *Z_indices, const int64_t *Z_indptr, int64_t n_Z, int64_t kind, double factor,
 double constant, int64_t degree, int64_t row_stride, int64_t column_stride, RANKSVM_REAL *out) {
    ranksvm::device::all_pair_values(ranksvm::device::SparseDocuments{data, indices, indptr, 0}, rows, start, stop,
                                     ranksvm::device::SparseDocuments{Z_data, Z_indices, Z_indptr, n_Z},
                                     ranksvm::device::Function{kind, factor, constant, degree},
                                     ranksvm::device::Target<RANKSVM_REAL>{out, row_stride, column_stride});
}

RANKSVM_KERNEL(put_diagonal)(const double *diagonal, int64_t start, int64_t stop, int64_t n, RANKSVM_REAL *out) {
    ranksvm::device::put_diagonal(diagonal, start, stop, n, out);
}

RANKSVM_KERNEL(multiply_chosen)
(const RANKSVM_REAL *Q, int64_t n, const int32_t *chosen, int64_t n_chosen, const double *values, const int64_t *begin,
 const int32_t *first, int64_t n_rows, double *out) {
    ranksvm::device::multiply_chosen(Q, n, chosen, n_chosen, ranksvm::device::Stretches{values, begin, first, n_rows}, out);
}
#endif

// ---------------------------------------------------------------------------------------------------------------------
// Codes of levels

#if RANKSVM_HAS(8) && !RANKSVM_SPARSE && !RANKSVM_LISTED
RANKSVM_KERNEL(add_values)
(const unsigned char *codes, const int32_t *rows, int64_t n, const int64_t *begin, int64_t n_rows, const double *table,
 int64_t capacity, double *out) {
    ranksvm::device::add_values(ranksvm::device::CodedRows{codes, rows, n, begin}, n_rows, table, capacity, out);
}

RANKSVM_KERNEL(sum_by_code)
(const unsigned char *codes, const int32_t *rows, int64_t n, const int64_t *begin, int64_t n_rows, const double *u,
 int64_t n_parts, int64_t width, int64_t most, double *parts) {
    ranksvm::device::sum_by_code(ranksvm::device::CodedRows{codes, rows, n, begin}, n_rows, u, n_parts, width, most, parts);
}
#endif

// ---------------------------------------------------------------------------------------------------------------------
// Calibration

#if RANKSVM_HAS(6) && !RANKSVM_SPARSE && !RANKSVM_LISTED
RANKSVM_KERNEL(read_values)(const RANKSVM_REAL *values, int64_t n, double *out) {
    ranksvm::device::read_values(values, n, out);
}

RANKSVM_KERNEL(visit_others)(const double *scores, int64_t n, double *out) { ranksvm::device::visit_others(scores, n, out); }
#endif

// ---------------------------------------------------------------------------------------------------------------------
// Cholesky factors of matrices of RANKSVM_REAL

#if RANKSVM_HAS(7) && !RANKSVM_SPARSE && !RANKSVM_LISTED
RANKSVM_KERNEL(form_inner)
(const double *values, const int64_t *begin, const int32_t *first, int64_t n_rows, const double *T, double C, RANKSVM_REAL *A) {
    ranksvm::device::form_inner(ranksvm::device::Stretches{values, begin, first, n_rows}, T, C, A);
}

RANKSVM_KERNEL(factorize_block)(RANKSVM_REAL *A, int64_t n, int64_t first, double *inverse, double *positive) {
    ranksvm::device::factorize_block(A, n, first, inverse, positive);
}

RANKSVM_KERNEL(divide_panel)(const RANKSVM_REAL *A, int64_t n, int64_t first, const double *inverse, RANKSVM_REAL *panel) {
    ranksvm::device::divide_panel(A, n, first, inverse, panel);
}

RANKSVM_KERNEL(update_rest)(const RANKSVM_REAL *panel, int64_t n, int64_t first, RANKSVM_REAL *A) {
    ranksvm::device::update_rest(panel, n, first, A);
}

RANKSVM_KERNEL(solve_forward)
(const RANKSVM_REAL *L, int64_t n, int64_t first, const double *inverse, double *b, double *y) {
    ranksvm::device::solve_forward(L, n, first, inverse, b, y);
}

RANKSVM_KERNEL(solve_backward)
(const RANKSVM_REAL *L, int64_t n, int64_t first, const double *inverse, double *y, double *x) {
    ranksvm::device::solve_backward(L, n, first, inverse, y, x);
}
#endif
