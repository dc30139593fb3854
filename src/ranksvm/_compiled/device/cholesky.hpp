// Overwrites a positive definite matrix A, stored row by row, with its Cholesky factor L, and solves systems of equations with
// L. Values above the diagonal are neither read nor written. Each block on the diagonal has kTile rows, but the last one may
// have fewer. Values may be float32; products and sums are float64.
#ifndef RANKSVM_DEVICE_CHOLESKY_HPP
#define RANKSVM_DEVICE_CHOLESKY_HPP

#include "portable.hpp"
#include "tiles.hpp"

#if !defined(__CUDACC__)
#include <cmath>
#endif

namespace ranksvm::device {

// A tile on or below the diagonal of a square of tiles, which are numbered row by row.
struct LowerTile {
    int64_t row, column;

    RANKSVM_DEVICE explicit LowerTile(int64_t number)
        : row(static_cast<int64_t>((sqrt(8.0 * static_cast<double>(number) + 1.0) - 1.0) / 2.0)),
          column(number - row * (row + 1) / 2) {}
};

// A matrix with one stretch of values in each row: row r has values[begin[r] .. begin[r + 1]], from column first[r] on.
// In later rows, stretches neither begin nor end earlier.
struct Stretches {
    const double *values;
    const int64_t *begin;
    const int32_t *first;
    int64_t n_rows;

    RANKSVM_DEVICE double operator()(int64_t r, int64_t k) const {
        return r < n_rows && k >= first[r] && k < end(r) ? values[begin[r] + k - first[r]] : 0.0;
    }
    RANKSVM_DEVICE int64_t end(int64_t r) const { return first[r] + begin[r + 1] - begin[r]; }
    // the end of the values in the kTile rows from r on
    RANKSVM_DEVICE int64_t end_of_tile(int64_t r) const { return end(r + kTile < n_rows ? r + kTile - 1 : n_rows - 1); }
};

// out = S U', where S consists of the rows and columns of a symmetric n x n matrix Q that belong to the n_chosen documents
// `chosen`. Tiles of `out` that form_inner does not read are not written.
template <class Real>
RANKSVM_DEVICE void multiply_chosen(const Real *Q, int64_t n, const int32_t *chosen, int64_t n_chosen, const Stretches &U,
                                    double *out) {
    const Block block = this_block();
    const int64_t across = (U.n_rows + kTile - 1) / kTile, n_tasks = (n_chosen + kTile - 1) / kTile * across;
    for (int64_t task = block.index; task < n_tasks; task += block.count) {
        const int64_t i0 = task / across * kTile, r0 = task % across * kTile;
        if (i0 + kTile <= U.first[r0]) continue;
        sum_tile<Products>(
            block, U.first[r0], U.end_of_tile(r0),
            [&](int64_t k, int i) {
                return i0 + i < n_chosen ? static_cast<double>(Q[chosen[k] * n + chosen[i0 + i]]) : 0.0;
            },
            [&](int64_t k, int j) { return U(r0 + j, k); },
            [&](int i, int j, double sum) {
                if (i0 + i < n_chosen && r0 + j < U.n_rows) out[(i0 + i) * U.n_rows + r0 + j] = sum;
            });
    }
}

// A = I + C U T on and below the diagonal.
template <class Real>
RANKSVM_DEVICE void form_inner(const Stretches &U, const double *T, double C, Real *A) {
    const Block block = this_block();
    const int64_t n = U.n_rows, side = (n + kTile - 1) / kTile;
    for (int64_t task = block.index; task < side * (side + 1) / 2; task += block.count) {
        const LowerTile tile(task);
        const int64_t i0 = tile.row * kTile, j0 = tile.column * kTile;
        sum_tile<Products>(
            block, U.first[i0], U.end_of_tile(i0), [&](int64_t k, int i) { return U(i0 + i, k); },
            [&](int64_t k, int j) { return j0 + j < n ? T[k * n + j0 + j] : 0.0; },
            [&](int i, int j, double sum) {
                if (i0 + i < n && j0 + j <= i0 + i)
                    A[(i0 + i) * n + j0 + j] = static_cast<Real>(C * sum + (i0 + i == j0 + j ? 1.0 : 0.0));
            });
    }
}

// Replaces the block on the diagonal that begins at row `first` by its Cholesky factor. Writes the inverse of this factor
// (kTile x kTile), and to `positive` 1 if all pivots are positive and finite, else 0. Runs in one block of threads. Shared
// memory: kTile * (kTile + 1) numbers.
template <class Real>
RANKSVM_DEVICE void factorize_block(Real *A, int64_t n, int64_t first, double *inverse, double *positive) {
    const Block block = this_block();
    const int size = n - first < kTile ? static_cast<int>(n - first) : kTile;
    // on and below the diagonal: the factor before its columns are divided by the square roots of the pivots; above the
    // diagonal: the transpose of the inverse, before the rows of the inverse are divided by these roots (its diagonal is then
    // 1, and is not stored)
    double *values = block.shared;
    const auto at = [=](int i, int j) -> double & { return values[i * (kTile + 1) + j]; };
    RANKSVM_PHASE(thread) {
        for (int t = thread; t < size * kTile; t += block.n_threads)
            if (t % kTile <= t / kTile) at(t / kTile, t % kTile) = A[(first + t / kTile) * n + first + t % kTile];
    }
    RANKSVM_ROLLED
    for (int j = 0; j + 1 < size; ++j) {
        RANKSVM_PHASE(thread) {
            const double reciprocal = 1.0 / at(j, j);
            RANKSVM_ROLLED
            for (int t = thread; t < (size - j - 1) * kTile; t += block.n_threads) {
                const int i = j + 1 + t / kTile, k = t % kTile;
                const double factor = at(i, j) * reciprocal;
                if (k < j)
                    at(k, i) -= factor * at(k, j);
                else if (k == j)
                    at(j, i) = -factor;
                else if (k <= i)
                    at(i, k) -= factor * at(k, j);
            }
        }
    }
    RANKSVM_PHASE(thread) {
        RANKSVM_ROLLED
        for (int t = thread; t < kTile * kTile; t += block.n_threads) {
            const int i = t / kTile, j = t % kTile;
            const bool within = i < size && j <= i;
            inverse[t] = within ? (j < i ? at(j, i) : 1.0) / sqrt(at(i, i)) : 0.0;
            if (within) A[(first + i) * n + first + j] = static_cast<Real>(at(i, j) / sqrt(at(j, j)));
        }
        if (thread == 0) {
            bool all = true;
            for (int j = 0; j < size; ++j) all = all && at(j, j) > 0.0 && at(j, j) - at(j, j) == 0.0;
            *positive = all ? 1.0 : 0.0;
        }
    }
}

// Computes the columns of L below the block on the diagonal that begins at `first`: panel[k, i] = L[first + kTile + i, first +
// k].
template <class Real>
RANKSVM_DEVICE void divide_panel(const Real *A, int64_t n, int64_t first, const double *inverse, Real *panel) {
    const Block block = this_block();
    const int64_t begin = first + kTile, height = n - begin;
    for (int64_t i0 = block.index * kTile; i0 < height; i0 += block.count * kTile)
        sum_tile<Products>(
            block, 0, kTile,
            [&](int64_t k, int i) { return i0 + i < height ? static_cast<double>(A[(begin + i0 + i) * n + first + k]) : 0.0; },
            [&](int64_t k, int j) { return inverse[j * kTile + k]; },
            [&](int i, int j, double sum) {
                if (i0 + i < height) panel[j * height + i0 + i] = static_cast<Real>(sum);
            });
}

// Puts the panel into its place in A, and subtracts the product of the panel and its transpose from the part of A to the right
// of the panel.
template <class Real>
RANKSVM_DEVICE void update_rest(const Real *panel, int64_t n, int64_t first, Real *A) {
    const Block block = this_block();
    const int64_t begin = first + kTile, height = n - begin, side = (height + kTile - 1) / kTile;
    const auto of = [=](int64_t k, int64_t i) { return i < height ? static_cast<double>(panel[k * height + i]) : 0.0; };
    for (int64_t task = block.index; task < side * (side + 1) / 2; task += block.count) {
        const LowerTile tile(task);
        const int64_t i0 = tile.row * kTile, j0 = tile.column * kTile;
        sum_tile<Products>(
            block, 0, kTile, [&](int64_t k, int i) { return of(k, i0 + i); }, [&](int64_t k, int j) { return of(k, j0 + j); },
            [&](int i, int j, double sum) {
                if (i0 + i >= height || j0 + j > i0 + i) return;
                Real &value = A[(begin + i0 + i) * n + begin + j0 + j];
                value = static_cast<Real>(value - sum);
            });
        if (i0 == j0) {
            RANKSVM_PHASE(thread) {
                for (int t = thread; t < kTile * kTile; t += block.n_threads) {
                    const int64_t i = i0 + t / kTile, k = t % kTile;
                    if (i < height) A[(begin + i) * n + first + k] = panel[k * height + i];
                }
            }
        }
    }
}

// A step of the solution of L y = b. Every block of threads computes kTile values of y, from `first` on. Then the products of
// these values with the rows of L below are subtracted from b. Shared memory: kTile numbers.
template <class Real>
RANKSVM_DEVICE void solve_forward(const Real *L, int64_t n, int64_t first, const double *inverse, double *b, double *y) {
    const Block block = this_block();
    const int64_t size = n - first < kTile ? n - first : kTile, at_once = block.n_threads / kLanes;
    double *own = block.shared;
    RANKSVM_PHASE(thread) {
        for (int64_t i = thread / kLanes; i < size; i += at_once) {
            const auto term = [=](int64_t k) { return inverse[i * kTile + k] * b[first + k]; };
            const double sum = sum_by_lanes(thread % kLanes, 0, i + 1, term);
            if (thread % kLanes == 0) own[i] = sum;
            if (thread % kLanes == 0 && block.index == 0) y[first + i] = sum;
        }
    }
    RANKSVM_PHASE(thread) {
        for (int64_t i = first + kTile + block.index * at_once + thread / kLanes; i < n; i += block.count * at_once) {
            const Real *row = L + i * n + first;
            const double sum = sum_by_lanes(thread % kLanes, 0, kTile, [=](int64_t k) { return row[k] * own[k]; });
            if (thread % kLanes == 0) b[i] -= sum;
        }
    }
}

// A step of the solution of L' x = y, like solve_forward, but from the last block to the first one.
template <class Real>
RANKSVM_DEVICE void solve_backward(const Real *L, int64_t n, int64_t first, const double *inverse, double *y, double *x) {
    const Block block = this_block();
    const int64_t size = n - first < kTile ? n - first : kTile, at_once = block.n_threads / kLanes;
    double *own = block.shared;
    RANKSVM_PHASE(thread) {
        for (int64_t i = thread / kLanes; i < size; i += at_once) {
            const auto term = [=](int64_t k) { return inverse[k * kTile + i] * y[first + k]; };
            const double sum = sum_by_lanes(thread % kLanes, i, size, term);
            if (thread % kLanes == 0) own[i] = sum;
            if (thread % kLanes == 0 && block.index == 0) x[first + i] = sum;
        }
    }
    RANKSVM_PHASE(thread) {
        for (int64_t j = block.index * block.n_threads + thread; j < first; j += block.count * block.n_threads) {
            double sum = 0.0;
            for (int64_t k = 0; k < size; ++k) sum += L[(first + k) * n + j] * own[k];
            y[j] -= sum;
        }
    }
}

}  // namespace ranksvm::device

#endif
