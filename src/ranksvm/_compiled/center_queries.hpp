// Rows centered query by query, for Hessians.
#ifndef RANKSVM_CENTER_QUERIES_HPP
#define RANKSVM_CENTER_QUERIES_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "portable.hpp"

namespace ranksvm::RANKSVM_VARIANT {

using std::int64_t;

// Subtracts the mean of each query from its rows: L annihilates constants, so the Hessian stays the same, but it loses no
// digits to large means. The query's first row is subtracted first: a column that is constant in the query becomes 0 exactly,
// whatever its size.
template <class Real>
static void center_queries(const int64_t *pointers, int64_t first_query, int64_t last_query, int64_t n, Real *X_range) {
    Vector<Real> first_memory(static_cast<std::size_t>(n)), mean_memory(static_cast<std::size_t>(n));
    const int64_t origin = pointers[first_query];
    for (int64_t q = first_query; q < last_query; ++q) {
        const int64_t m = pointers[q + 1] - pointers[q];
        Real *X = X_range + (pointers[q] - origin) * n;
        Real *RANKSVM_RESTRICT first = first_memory.data(), *RANKSVM_RESTRICT mean = mean_memory.data();
        if (m > 0) std::copy_n(X, n, first);
        std::fill_n(mean, n, Real(0));
        for (int64_t i = 0; i < m; ++i)
            for (int64_t f = 0; f < n; ++f) {
                const Real difference = X[i * n + f] - first[f];
                X[i * n + f] = difference;
                mean[f] += difference;
            }
        for (int64_t f = 0; f < n; ++f) mean[f] /= static_cast<Real>(m);
        for (int64_t i = 0; i < m; ++i)
            for (int64_t f = 0; f < n; ++f) X[i * n + f] -= mean[f];
    }
}

}  // namespace ranksvm::RANKSVM_VARIANT

#endif
