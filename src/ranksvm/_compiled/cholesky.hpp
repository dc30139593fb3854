// Cholesky factors of small dense matrices, also of singular Laplacians, and solutions with them. LAPACK does the same for
// large matrices. For small ones it is not used: loading SciPy's takes longer than most fits, and calling it takes longer than
// solving a system in a few variables.
#pragma once

#include <cmath>
#include <cstdint>

namespace ranksvm {

// The dot product of two rows: four partial sums, so that additions do not wait for each other.
inline double dot(const double *a, const double *b, int64_t n) {
    double sums[4] = {0.0, 0.0, 0.0, 0.0};
    int64_t i = 0;
    for (; i + 4 <= n; i += 4)
        for (int lane = 0; lane < 4; ++lane) sums[lane] += a[i + lane] * b[i + lane];
    for (; i < n; ++i) sums[0] += a[i] * b[i];
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

// Overwrites the lower triangle of an n x n matrix A by L with L L' = A, row by row; false if A is not positive definite.
inline bool cholesky_factorize(double *matrix, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
        double *row = matrix + i * n;
        for (int64_t j = 0; j < i; ++j) {
            const double *other = matrix + j * n;
            row[j] = (row[j] - dot(row, other, j)) / other[j];
        }
        const double pivot = row[i] - dot(row, row, i);
        if (!(pivot > 0.0) || std::isinf(pivot)) return false;
        row[i] = std::sqrt(pivot);
    }
    return true;
}

// x becomes the solution of L L' x = b.
inline void cholesky_solve(const double *factor, int64_t n, double *x) {
    for (int64_t i = 0; i < n; ++i) x[i] = (x[i] - dot(factor + i * n, x, i)) / factor[i * n + i];
    for (int64_t i = n - 1; i >= 0; --i) {
        const double *row = factor + i * n;
        const double value = x[i] / row[i];
        x[i] = value;
        for (int64_t j = 0; j < i; ++j) x[j] -= value * row[j];
    }
}

// The Laplacian L of a graph, n x n, becomes an upper triangular U with U'U = L; only the entries right of the diagonal
// are read. A step of the elimination leaves the Laplacian of a graph with one node less, so the pivot is the sum of the
// node's weights, as in the algorithm of Grassmann, Taksar & Heyman (1985): nothing is subtracted, and the last node of
// each component has a pivot of exactly 0 and a row of zeros.
inline void laplacian_factorize(double *matrix, int64_t n) {
    double largest = 0.0;
    for (int64_t i = 0; i < n; ++i) {
        double *row = matrix + i * n;
        double degree = 0.0;
        for (int64_t j = 0; j < i; ++j) row[j] = 0.0;
        for (int64_t j = i + 1; j < n; ++j) {
            row[j] = row[j] < 0.0 ? row[j] : 0.0;  // a positive entry is round-off
            degree -= row[j];
        }
        if (degree > largest) largest = degree;
        if (!(degree > 1e-14 * largest)) {  // what is left of the entries is only round-off
            for (int64_t j = i; j < n; ++j) row[j] = 0.0;
            continue;
        }
        for (int64_t j = i + 1; j < n; ++j) {
            if (row[j] == 0.0) continue;
            double *other = matrix + j * n;
            const double share = row[j] / degree;
            for (int64_t k = j + 1; k < n; ++k) other[k] -= share * row[k];
        }
        const double pivot = std::sqrt(degree);
        row[i] = pivot;
        for (int64_t j = i + 1; j < n; ++j) row[j] /= pivot;
    }
}

}  // namespace ranksvm
