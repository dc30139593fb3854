// Products with the rows of X: float32 or float64 storage, float64 sums in a fixed order.
#ifndef RANKSVM_DEVICE_ROWS_HPP
#define RANKSVM_DEVICE_ROWS_HPP

#include "portable.hpp"

namespace ranksvm::device {

// Number of rows, or of values of a row, that a thread reads before it adds any of them: it then waits for the memory once for
// all of these.
constexpr int kRowsAtOnce = 8, kValuesAtOnce = 6;

// The dot product of a row of n values and w, summed as by `sum_by_lanes`.
template <class Real>
RANKSVM_DEVICE double dot_by_lanes(int lane, const Real *x, const double *w, int64_t n) {
#if defined(__CUDACC__)
    double sum = 0.0;
    for (int64_t f = lane; f < n; f += kValuesAtOnce * kLanes) {
        Real values[kValuesAtOnce];
        for (int each = 0; each < kValuesAtOnce; ++each)
            values[each] = f + each * kLanes < n ? x[f + each * kLanes] : static_cast<Real>(0);
        for (int each = 0; each < kValuesAtOnce; ++each)
            if (f + each * kLanes < n) sum += static_cast<double>(values[each]) * w[f + each * kLanes];
    }
    return sum_of_lanes(sum);
#else
    return sum_by_lanes(lane, 0, n, [=](int64_t f) { return static_cast<double>(x[f]) * w[f]; });
#endif
}

// Row-major rows of n values. With `rows`, position t has the row rows[t]; without it, X holds the rows of the positions from
// `first_row` on.
template <class Real>
struct DenseRows {
    const Real *X;
    const int32_t *rows;
    int64_t n, first_row;

    RANKSVM_DEVICE const Real *row(int64_t position) const {
        return X + n * (rows != nullptr ? rows[position] : position - first_row);
    }

    RANKSVM_DEVICE double dot(int lane, int64_t position, const double *w) const {
        return dot_by_lanes(lane, row(position), w, n);
    }
};

// CSR; columns of a row may repeat and are added up.
template <class Real>
struct SparseRows {
    const Real *data;
    const int32_t *indices;
    const int64_t *indptr;
    const int32_t *rows;
    int64_t n;

    RANKSVM_DEVICE int64_t row(int64_t position) const { return rows != nullptr ? rows[position] : position; }

    RANKSVM_DEVICE double dot(int lane, int64_t position, const double *w) const {
        const Real *values = data;
        const int32_t *columns = indices;
        const int64_t own = row(position);
        return sum_by_lanes(lane, indptr[own], indptr[own + 1],
                            [=](int64_t e) { return static_cast<double>(values[e]) * w[columns[e]]; });
    }
};

// out = X w for the positions start .. stop.
template <class Rows>
RANKSVM_DEVICE void multiply_rows(const Rows &X, int64_t start, int64_t stop, const double *w, double *out) {
    const Block block = this_block();
    RANKSVM_PHASE(thread) {
        const int64_t own = block.index * (block.n_threads / kLanes) + thread / kLanes;
        for (int64_t t = start + own; t < stop; t += block.count * (block.n_threads / kLanes)) {
            const double product = X.dot(thread % kLanes, t, w);
            if (thread % kLanes == 0) out[t] = product;
        }
    }
}

// block_sums[block, :] = X' u over the block's share of the positions start .. stop. A block takes consecutive rows, and
// divides them into as many parts as it has threads for. Each thread adds up one feature over one part.
template <class Real>
RANKSVM_DEVICE void accumulate_rows(const DenseRows<Real> &X, int64_t start, int64_t stop, const double *u,
                                    double *block_sums) {
    const Block block = this_block();
    const int64_t share = (stop - start + block.count - 1) / block.count;
    const int64_t first = start + block.index * share, last = first + share < stop ? first + share : stop;
    const int64_t width = X.n < block.n_threads ? X.n : block.n_threads, parts = block.n_threads / width;
    double *out = block_sums + block.index * X.n;
    for (int64_t begin = 0; begin < X.n; begin += width) {
        RANKSVM_PHASE(thread) {
            const int64_t part = thread / width, f = begin + thread % width;
            double sum = 0.0;
            if (part < parts && f < X.n)
                for (int64_t t = first + part; t < last; t += kRowsAtOnce * parts) {
                    double factors[kRowsAtOnce], values[kRowsAtOnce];
                    for (int each = 0; each < kRowsAtOnce; ++each)
                        factors[each] = t + each * parts < last ? u[t + each * parts] : 0.0;
                    for (int each = 0; each < kRowsAtOnce; ++each)
                        values[each] = factors[each] != 0.0 ? static_cast<double>(X.row(t + each * parts)[f]) : 0.0;
                    for (int each = 0; each < kRowsAtOnce; ++each) sum += factors[each] * values[each];
                }
            block.shared[thread] = sum;
        }
        RANKSVM_PHASE(thread) {
            const int64_t f = begin + thread;
            if (thread < width && f < X.n) {
                double sum = 0.0;
                for (int64_t part = 0; part < parts; ++part) sum += block.shared[part * width + thread];
                out[f] = sum;
            }
        }
    }
}

// sums[k] = the sum of u times x (or x^2) over the entries pieces[k] .. pieces[k + 1], a part of one column. X is stored by
// columns, so that the order of the sums is fixed.
template <class Real>
RANKSVM_DEVICE void accumulate_columns(const Real *data, const int32_t *positions, const int64_t *pieces, int64_t n_pieces,
                                       const double *u, bool squares, double *sums) {
    const Block block = this_block();
    RANKSVM_PHASE(thread) {
        const int64_t own = block.index * (block.n_threads / kLanes) + thread / kLanes;
        for (int64_t k = own; k < n_pieces; k += block.count * (block.n_threads / kLanes)) {
            const double sum = sum_by_lanes(thread % kLanes, pieces[k], pieces[k + 1], [=](int64_t e) {
                const double x = static_cast<double>(data[e]);
                return u[positions[e]] * (squares ? x * x : x);
            });
            if (thread % kLanes == 0) sums[k] = sum;
        }
    }
}

}  // namespace ranksvm::device

#endif
