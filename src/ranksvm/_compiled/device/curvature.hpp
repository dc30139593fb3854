// Explicit Hessians X' L X: kernels that gather rows A of whole queries in float64, compute Z = L A with the Laplacian L, and
// multiply A' by Z.
#ifndef RANKSVM_DEVICE_CURVATURE_HPP
#define RANKSVM_DEVICE_CURVATURE_HPP

#include "losses.hpp"
#include "rows.hpp"
#include "tiles.hpp"

namespace ranksvm::device {

// out = the rows at the positions start .. stop, minus a reference row of their query. This does not change L times the rows,
// and no digits are lost to an offset that all rows of a query share.
template <class Pairs, class Real>
RANKSVM_DEVICE void gather(const Pairs &pairs, const DenseRows<Real> &X, int64_t start, int64_t stop, double *out) {
    const Block block = this_block();
    const int64_t n = X.n;
    RANKSVM_PHASE(thread) {
        for (int64_t t = start + block.index; t < stop; t += block.count) {
            const Real *x = X.row(t), *x0 = X.row(pairs.reference(t));
            for (int64_t f = thread; f < n; f += block.n_threads)
                out[(t - start) * n + f] = static_cast<double>(x[f]) - static_cast<double>(x0[f]);
        }
    }
}

template <class Pairs, class Real>
RANKSVM_DEVICE void gather(const Pairs &pairs, const SparseRows<Real> &X, int64_t start, int64_t stop, double *out) {
    const Block block = this_block();
    const int64_t n = X.n;
    RANKSVM_PHASE(thread) {
        for (int64_t t = start + block.index; t < stop; t += block.count)
            for (int64_t f = thread; f < n; f += block.n_threads) out[(t - start) * n + f] = 0.0;
    }
    RANKSVM_PHASE(thread) {
        // one thread for each row, because a column may repeat in it
        for (int64_t t = start + block.index + thread * block.count; t < stop; t += block.count * block.n_threads) {
            const int64_t own = X.row(t), reference = X.row(pairs.reference(t));
            double *row = out + (t - start) * n;
            for (int64_t e = X.indptr[own]; e < X.indptr[own + 1]; ++e) row[X.indices[e]] += static_cast<double>(X.data[e]);
            for (int64_t e = X.indptr[reference]; e < X.indptr[reference + 1]; ++e)
                row[X.indices[e]] -= static_cast<double>(X.data[e]);
        }
    }
}

// Computes row i of L A for one document i, for kFeatures features at a time. The k-th of these is `apart[k]` columns after the
// first.
struct RowVisit {
    static constexpr int kFeatures = 4;
    const Ring &ring;
    const double *scores, *column;  // `column`: the values of the first feature, beginning with the first gathered row
    int64_t start, n, apart[kFeatures];
    double own, own_x[kFeatures], sums[kFeatures];

    RANKSVM_DEVICE void below(int64_t j, double weight) { add(own - scores[j], j, weight); }
    RANKSVM_DEVICE void above(int64_t j, double weight) { add(scores[j] - own, j, weight); }

private:
    // rows are read whether they count or not: a GPU reads them together with the score
    RANKSVM_DEVICE void add(double margin, int64_t j, double weight) {
        const double *x = column + (j - start) * n;
        const bool counts = ring.has(margin);
        for (int k = 0; k < kFeatures; ++k) {
            const double difference = own_x[k] - x[apart[k]];
            sums[k] += counts ? weight * difference : 0.0;
        }
    }
};

// Z = factor * L A of gathered rows A. A block takes as many rows at a time as it has threads for.
template <class Pairs>
RANKSVM_DEVICE void laplacian_rows(const Pairs &pairs, const Ring &ring, int64_t start, int64_t stop, const double *scores,
                                   double factor, int64_t n, const double *A, double *Z) {
    const Block block = this_block();
    const int64_t quarter = (n + RowVisit::kFeatures - 1) / RowVisit::kFeatures;
    const int64_t width = quarter < block.n_threads ? quarter : block.n_threads, at_a_time = block.n_threads / width;
    RANKSVM_PHASE(thread) {
        const int64_t own = block.index * at_a_time + thread / width;
        RANKSVM_ROLLED
        for (int64_t i = start + own; thread < at_a_time * width && i < stop; i += block.count * at_a_time) {
            const int64_t row = (i - start) * n;
            const auto partners = pairs.partners(i);
            RANKSVM_ROLLED
            for (int64_t f = thread % width; f < quarter; f += width) {
                RowVisit visit = {ring, scores, A + f, start, n, {}, scores[i], {}, {}};
                for (int k = 0; k < RowVisit::kFeatures; ++k) {
                    visit.apart[k] = f + k * quarter < n ? k * quarter : 0;
                    visit.own_x[k] = A[row + f + visit.apart[k]];
                }
                pairs.visit(i, partners, visit);
                for (int k = 0; k < RowVisit::kFeatures; ++k)
                    if (f + k * quarter < n) Z[row + f + k * quarter] = factor * visit.sums[k];
            }
        }
    }
}

// The rows are divided into n_parts parts. parts[part, :, :] = A' Z over the rows of that part. One block computes one tile of
// the product over one part.
RANKSVM_DEVICE void multiply_tiles(const double *A, const double *Z, int64_t n_rows, int64_t n, int64_t n_parts, double *parts) {
    const Block block = this_block();
    const int64_t tiles = (n + kTile - 1) / kTile, share = (n_rows + n_parts - 1) / n_parts;
    for (int64_t task = block.index; task < tiles * tiles * n_parts; task += block.count) {
        const int64_t part = task / (tiles * tiles), tile = task % (tiles * tiles);
        const int64_t first = part * share, last = first + share < n_rows ? first + share : n_rows;
        const int64_t i0 = tile / tiles * kTile, j0 = tile % tiles * kTile;
        sum_tile<Products>(
            block, first, last, [=](int64_t r, int i) { return i0 + i < n ? A[r * n + i0 + i] : 0.0; },
            [=](int64_t r, int j) { return j0 + j < n ? Z[r * n + j0 + j] : 0.0; },
            [=](int i, int j, double sum) {
                if (i0 + i < n && j0 + j < n) parts[(part * n + i0 + i) * n + j0 + j] = sum;
            });
    }
}

// block_sums[block, f] = the sum of A[r, f] Z[r, f] over the block's rows r. Added up over the blocks, this is the diagonal of
// A' Z.
RANKSVM_DEVICE void multiply_columns(const double *A, const double *Z, int64_t n_rows, int64_t n, double *block_sums) {
    const Block block = this_block();
    RANKSVM_PHASE(thread) {
        for (int64_t f = thread; f < n; f += block.n_threads) {
            double sum = 0.0;
            for (int64_t r = block.index; r < n_rows; r += block.count) sum += A[r * n + f] * Z[r * n + f];
            block_sums[block.index * n + f] = sum;
        }
    }
}

}  // namespace ranksvm::device

#endif
