// Values of a kernel function, or of another function of a sum over features, for pairs of documents. They are computed in
// float64, and rounded once if they are stored in float32.
#ifndef RANKSVM_DEVICE_DOCUMENTS_HPP
#define RANKSVM_DEVICE_DOCUMENTS_HPP

#include "portable.hpp"
#include "tiles.hpp"

#if !defined(__CUDACC__)
#include <cmath>
#endif

namespace ranksvm::device {

// The term that is summed over the features of two documents: `of` takes both values; `of_one` takes one value if the other is
// not stored, and so is 0. Two documents give the same bits in either order. `Products` of tiles.hpp is another such function.
struct Squares {
    static RANKSVM_DEVICE double of(double x, double z) { return (x - z) * (x - z); }
    static RANKSVM_DEVICE double of_one(double x) { return x * x; }
};

struct Absolutes {
    static RANKSVM_DEVICE double of(double x, double z) { return x < z ? z - x : x - z; }
    static RANKSVM_DEVICE double of_one(double x) { return x < 0.0 ? -x : x; }
};

// The function of the sum. KINDS of kernels/device_values.py has the number of each kind.
struct Function {
    int64_t kind;
    double factor, constant;
    int64_t degree;

    RANKSVM_CALLED double operator()(double sum) const {
        switch (kind) {
            case 1:  // rbf (of a sum of squares) or laplacian (of a sum of absolute values)
            case 2:
                return exp(-factor * sum);
            case 3:  // poly
                return power(factor * sum + constant);
            case 4:  // Fourier features
                return factor * cos(sum);
            case 5:
                return factor * sin(sum);
            default:
                return sum;
        }
    }

private:
    RANKSVM_DEVICE double power(double base) const {
        double result = 1.0;
        RANKSVM_ROLLED
        for (int64_t left = degree; left > 0; left /= 2) {
            if (left % 2 == 1) result *= base;
            base *= base;
        }
        return result;
    }
};

// Documents by features: value f of document i is values[f * n_rows + i].
struct DenseDocuments {
    const double *values;
    int64_t n_rows, n_features;
};

// CSR with ascending columns, each once in a row.
struct SparseDocuments {
    const double *data;
    const int32_t *indices;
    const int64_t *indptr;
    int64_t n_rows;
};

// Where to put the value of left document i and right document j. The first left document that is wanted has i = 0.
template <class Real>
struct Target {
    Real *out;
    int64_t row_stride, column_stride;

    RANKSVM_DEVICE void put(int64_t i, int64_t j, double value) const {
        out[i * row_stride + j * column_stride] = static_cast<Real>(value);
    }
};

// Computes the values of the documents rows[start .. stop] of X (start .. stop if `rows` is null) with all documents of Z. One
// block computes one tile.
template <class Terms, class Real>
RANKSVM_DEVICE void pair_values(const DenseDocuments &X, const int32_t *rows, int64_t start, int64_t stop,
                                const DenseDocuments &Z, const Function &function, const Target<Real> &target) {
    const Block block = this_block();
    const int64_t n_left = stop - start, across = (Z.n_rows + kTile - 1) / kTile;
    const int64_t n_tasks = (n_left + kTile - 1) / kTile * across;
    for (int64_t task = block.index; task < n_tasks; task += block.count) {
        const int64_t i0 = task / across * kTile, j0 = task % across * kTile;
        sum_tile<Terms>(
            block, 0, X.n_features,
            [&](int64_t f, int i) {
                if (i0 + i >= n_left) return 0.0;
                return X.values[f * X.n_rows + (rows != nullptr ? rows[start + i0 + i] : start + i0 + i)];
            },
            [&](int64_t f, int j) { return j0 + j < Z.n_rows ? Z.values[f * Z.n_rows + j0 + j] : 0.0; },
            [&](int i, int j, double sum) {
                if (i0 + i < n_left && j0 + j < Z.n_rows) target.put(i0 + i, j0 + j, function(sum));
            });
    }
}

// The same for sparse documents: one thread for each value.
template <class Terms, class Real>
RANKSVM_DEVICE void pair_values(const SparseDocuments &X, const int32_t *rows, int64_t start, int64_t stop,
                                const SparseDocuments &Z, const Function &function, const Target<Real> &target) {
    const Block block = this_block();
    RANKSVM_PHASE(thread) {
        const int64_t n_values = (stop - start) * Z.n_rows;
        for (int64_t t = block.index * block.n_threads + thread; t < n_values; t += block.count * block.n_threads) {
            const int64_t j = t % Z.n_rows, i = rows != nullptr ? rows[start + t / Z.n_rows] : start + t / Z.n_rows;
            int64_t a = X.indptr[i], b = Z.indptr[j];
            const int64_t end = X.indptr[i + 1], stop_b = Z.indptr[j + 1];
            double sum = 0.0;
            while (a < end && b < stop_b) {
                const int32_t left = X.indices[a], right = Z.indices[b];
                if (left == right)
                    sum += Terms::of(X.data[a++], Z.data[b++]);
                else
                    sum += Terms::of_one(left < right ? X.data[a++] : Z.data[b++]);
            }
            for (; a < end; ++a) sum += Terms::of_one(X.data[a]);
            for (; b < stop_b; ++b) sum += Terms::of_one(Z.data[b]);
            target.put(t / Z.n_rows, j, function(sum));
        }
    }
}

template <class Documents, class Real>
RANKSVM_DEVICE void all_pair_values(const Documents &X, const int32_t *rows, int64_t start, int64_t stop, const Documents &Z,
                                    const Function &function, const Target<Real> &target) {
    if (function.kind == 1)
        pair_values<Squares>(X, rows, start, stop, Z, function, target);
    else if (function.kind == 2)
        pair_values<Absolutes>(X, rows, start, stop, Z, function, target);
    else
        pair_values<Products>(X, rows, start, stop, Z, function, target);
}

// out[i - start, i] = diagonal[i] for the rows start .. stop of a square matrix.
template <class Real>
RANKSVM_DEVICE void put_diagonal(const double *diagonal, int64_t start, int64_t stop, int64_t n, Real *out) {
    const Block block = this_block();
    RANKSVM_PHASE(thread) {
        for (int64_t i = start + block.index * block.n_threads + thread; i < stop; i += block.count * block.n_threads)
            out[(i - start) * n + i] = static_cast<Real>(diagonal[i]);
    }
}

}  // namespace ranksvm::device

#endif
