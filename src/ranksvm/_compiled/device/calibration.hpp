// Kernels that each do one part of a pass over the rows, so that `device/calibration.py` can measure the time of this part.
#ifndef RANKSVM_DEVICE_CALIBRATION_HPP
#define RANKSVM_DEVICE_CALIBRATION_HPP

#include "portable.hpp"

namespace ranksvm::device {

// out[t] = the sum of the values that thread t reads; all threads together read n values.
template <class Real>
RANKSVM_DEVICE void read_values(const Real *values, int64_t n, double *out) {
    const Block block = this_block();
    RANKSVM_PHASE(thread) {
        const int64_t own = block.index * block.n_threads + thread, n_threads = block.count * block.n_threads;
        double sum = 0.0;
        for (int64_t k = own; k < n; k += n_threads) sum += static_cast<double>(values[k]);
        out[own] = sum;
    }
}

// out[t] = the sum of the squared hinges of document t with each of the first n documents, in float64; thread t computes it.
RANKSVM_DEVICE void visit_others(const double *scores, int64_t n, double *out) {
    const Block block = this_block();
    RANKSVM_PHASE(thread) {
        const int64_t own = block.index * block.n_threads + thread;
        const double score = scores[own];
        double sum = 0.0;
        for (int64_t k = 0; k < n; ++k) {
            const double slack = 1.0 - (score - scores[k]);
            if (slack > 0.0) sum += slack * slack;
        }
        out[own] = sum;
    }
}

}  // namespace ranksvm::device

#endif
