// Vectors on the device: sums of the results of blocks, steps between two vectors, and selected values.
#ifndef RANKSVM_DEVICE_VECTORS_HPP
#define RANKSVM_DEVICE_VECTORS_HPP

#include "portable.hpp"

namespace ranksvm::device {

// out[c] = the sum of parts[r, c] over the rows r, in a fixed order; a block takes kLanes columns at a time.
RANKSVM_DEVICE void add_rows(const double *parts, int64_t n_rows, int64_t n_columns, double *out) {
    const Block block = this_block();
    const int64_t strides = block.n_threads / kLanes;
    for (int64_t begin = block.index * kLanes; begin < n_columns; begin += block.count * kLanes) {
        RANKSVM_PHASE(thread) {
            const int64_t c = begin + thread % kLanes;
            double sum = 0.0;
            if (c < n_columns)
                for (int64_t r = thread / kLanes; r < n_rows; r += strides) sum += parts[r * n_columns + c];
            block.shared[thread] = sum;
        }
        RANKSVM_PHASE(thread) {
            const int64_t c = begin + thread;
            if (thread < kLanes && c < n_columns) {
                double sum = 0.0;
                for (int64_t k = 0; k < strides; ++k) sum += block.shared[k * kLanes + thread];
                out[c] = sum;
            }
        }
    }
}

// out[c] = the sum of parts[begin[c] .. begin[c + 1]].
RANKSVM_DEVICE void add_pieces(const double *parts, const int64_t *begin, int64_t n, double *out) {
    const Block block = this_block();
    RANKSVM_PHASE(thread) {
        const int64_t own = block.index * (block.n_threads / kLanes) + thread / kLanes;
        for (int64_t c = own; c < n; c += block.count * (block.n_threads / kLanes)) {
            const double sum = sum_by_lanes(thread % kLanes, begin[c], begin[c + 1], [=](int64_t k) { return parts[k]; });
            if (thread % kLanes == 0) out[c] = sum;
        }
    }
}

// out = a + alpha (b - a).
RANKSVM_DEVICE void step_between(const double *a, const double *b, double alpha, int64_t n, double *out) {
    const Block block = this_block();
    RANKSVM_PHASE(thread) {
        for (int64_t t = block.index * block.n_threads + thread; t < n; t += block.count * block.n_threads)
            out[t] = a[t] + alpha * (b[t] - a[t]);
    }
}

// out[t] = values[places[t]], or 0 if `values` is null.
RANKSVM_DEVICE void take(const double *values, const int32_t *places, int64_t n, double *out) {
    const Block block = this_block();
    RANKSVM_PHASE(thread) {
        for (int64_t t = block.index * block.n_threads + thread; t < n; t += block.count * block.n_threads)
            out[t] = values == nullptr ? 0.0 : values[places[t]];
    }
}

}  // namespace ranksvm::device

#endif
