// Products of a Laplacian L with a matrix V that has a row for each document in an active pair (one at which the loss is
// curved), and one column for each vector: many vectors at once take far less time than one after another.
#ifndef RANKSVM_ACTIVE_ROWS_HPP
#define RANKSVM_ACTIVE_ROWS_HPP

#include <algorithm>
#include <cstdint>

#include "hessian_rows.hpp"
#include "portable.hpp"

namespace ranksvm::RANKSVM_VARIANT {

// The rows of the documents of one query: `of[i]` is the row of document i, or -1 if it is in no active pair.
struct ActiveRows {
    Vector<int64_t> of;
    int64_t n_rows = 0;  // of the queries so far

    void find(const double *degrees, int64_t m) {
        of.resize(static_cast<size_t>(m));
        for (int64_t i = 0; i < m; ++i) of[static_cast<size_t>(i)] = degrees[i] > 0.0 ? n_rows++ : -1;
    }
    int64_t operator[](int64_t document) const { return of[static_cast<size_t>(document)]; }
};

// Number of documents in active pairs.
inline int64_t count_active(const double *degrees, int64_t m) {
    return std::count_if(degrees, degrees + m, [](double degree) { return degree > 0.0; });
}

// U_i = factor * degree_i V_i for the documents of one query: the part of the product on the diagonal of L.
template <class Real>
RANKSVM_INLINE void multiply_diagonal(const ActiveRows &rows, const double *degrees, int64_t m, const Columns<Real> &columns,
                                      double factor) {
    for (int64_t i = 0; i < m; ++i) {
        if (rows[i] < 0) continue;
        const Real degree = static_cast<Real>(factor * degrees[i]), *v = columns.V + rows[i] * columns.stride;
        Real *RANKSVM_RESTRICT u = columns.U + rows[i] * columns.stride;
        for (int64_t f = 0; f < columns.n; ++f) u[f] = degree * v[f];
    }
}

}  // namespace ranksvm::RANKSVM_VARIANT

#endif
