// Explicit Hessians X' H X, from rows of a design matrix and an operator of H (passes.hpp), a few queries at a time.
#ifndef RANKSVM_HESSIAN_PASS_HPP
#define RANKSVM_HESSIAN_PASS_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "hessian_loops.hpp"
#include "passes.hpp"

namespace ranksvm {

// Limits for every instruction set. kTogether: the distance between two rows is a multiple of this many numbers. kBehind: a
// tile of a product C = A'B reads or writes up to this many rows of C, or numbers of A and B, after the last one.
constexpr int64_t kTogether = 16, kBehind = 16;
// This many rows are summed up in their own precision, and these sums in float64.
constexpr int64_t kRowsOfSums = 1024;

// How far apart rows of n numbers are. At a distance of a power of two, all rows would compete for a few places in the cache.
template <class Real>
int64_t hessian_stride(int64_t n) {
    const int64_t stride = (n + kTogether - 1) / kTogether * kTogether;
    return stride * static_cast<int64_t>(sizeof(Real)) % 512 == 0 ? stride + kTogether : stride;
}

// Scratch memory, which grows as needed and is not cleared.
template <class Real>
class Room {
   public:
    Real *of(int64_t size) {
        if (size > size_) {
            memory_.reset(new Real[static_cast<std::size_t>(size)]);
            size_ = size;
        }
        return memory_.get();
    }

   private:
    std::unique_ptr<Real[]> memory_;
    int64_t size_ = 0;
};

// Adds up (A'B + B'A) / 2, in the precision of the rows and, after kRowsOfSums rows, in float64; only one half of A'A is
// computed.
template <class Real>
class ProductSum {
   public:
    ProductSum(const HessianLoops<Real> &loops, int64_t n, double *total)
        : loops_(loops), n_(n), stride_(hessian_stride<Real>(n)), total_(total) {}

    void add(const Real *A, const Real *B, int64_t n_rows) {
        const bool upper = A == B;
        for (int64_t t = 0; t < n_rows; t += kRowsOfSums) {
            const int64_t size = std::min(kRowsOfSums, n_rows - t);
            if (n_added_ + size > kRowsOfSums) flush();
            loops_.add_product(A + t * stride_, B + t * stride_, size, stride_, n_, upper, sums(upper), stride_);
            n_added_ += size;
        }
    }

    // Adds the sums since the last call to the upper half of the total.
    void flush() {
        for (int64_t i = 0; squares_ && i < n_; ++i)
            for (int64_t j = i; j < n_; ++j) total_[i * n_ + j] += static_cast<double>(squares_[i * stride_ + j]);
        for (int64_t i = 0; products_ && i < n_; ++i)
            for (int64_t j = i; j < n_; ++j)
                total_[i * n_ + j] += 0.5 * (static_cast<double>(products_[i * stride_ + j]) +
                                             static_cast<double>(products_[j * stride_ + i]));
        squares_ = products_ = nullptr;
        n_added_ = 0;
    }

   private:
    Real *sums(bool upper) {
        Real *&sums = upper ? squares_ : products_;
        if (sums == nullptr) {
            const int64_t size = (n_ + kBehind) * stride_;
            sums = (upper ? squares_room_ : products_room_).of(size);
            std::fill_n(sums, size, Real(0));
        }
        return sums;
    }

    const HessianLoops<Real> &loops_;
    int64_t n_, stride_;
    double *total_;
    Real *squares_ = nullptr, *products_ = nullptr;  // null: nothing was added
    Room<Real> squares_room_, products_room_;
    int64_t n_added_ = 0;
};

// Adds up the diagonal of (A'B + B'A) / 2 in float64.
template <class Real>
class DiagonalSum {
   public:
    DiagonalSum(const HessianLoops<Real> &loops, int64_t n, double *total)
        : loops_(loops), n_(n), stride_(hessian_stride<Real>(n)), total_(total) {}

    void add(const Real *A, const Real *B, int64_t n_rows) { loops_.add_diagonal(A, B, n_rows, stride_, n_, total_); }
    void flush() {}

   private:
    const HessianLoops<Real> &loops_;
    int64_t n_, stride_;
    double *total_;
};

inline void gather(const RowProducts &products, int64_t start, int64_t stop, double *out, int64_t n_columns) {
    products.gather(products.context, start, stop, out, n_columns);
}
inline void gather(const RowProducts &products, int64_t start, int64_t stop, float *out, int64_t n_columns) {
    products.gather_single(products.context, start, stop, out, n_columns);
}
inline int64_t rows_of(const QueryOperator &hessian, int64_t first, int64_t last, double *X_range, int64_t n, double *out) {
    return hessian.rows(hessian.context, first, last, X_range, n, out);
}
inline int64_t rows_of(const QueryOperator &hessian, int64_t first, int64_t last, float *X_range, int64_t n, float *out) {
    return hessian.rows_single(hessian.context, first, last, X_range, n, out);
}

// Converts rows to another precision, if it differs.
template <class Rows, class Real>
const Real *converted(const Rows *rows, int64_t size, Room<Real> &room) {
    Real *out = room.of(size + kBehind);
    for (int64_t i = 0; i < size; ++i) out[i] = static_cast<Real>(rows[i]);
    return out;
}
template <class Real>
const Real *converted(const Real *rows, int64_t, Room<Real> &) {
    return rows;
}

// X' H X, or its diagonal, for shares of the queries (see Pass in passes.hpp). H times the rows has the precision `Rows`,
// products have the precision `Real`.
template <class Rows, class Real>
struct HessianPass {
    RowProducts products;
    QueryOperator hessian;
    const HessianLoops<Real> *loops;
    const int64_t *pointers, *ranges, *ends;
    int64_t rows_at_once;  // rows that are taken at a time, unless a single query has more
    int64_t n_features;
    bool diagonal;
    double *totals;  // of each share: a matrix, or its diagonal, of zeros on entry

    // Adds up the totals of all shares in place of the first one.
    void run(const Workers &workers, int64_t n_shares) const {
        if (workers.run == nullptr || n_shares < 2)
            for (int64_t k = 0; k < n_shares; ++k) take_share(this, k);
        else
            workers.run(workers.n_threads, n_shares, take_share, this);
        const int64_t n = n_features, size = diagonal ? n : n * n;
        for (int64_t k = 1; k < n_shares; ++k)
            for (int64_t e = 0; e < size; ++e) totals[e] += totals[k * size + e];
        for (int64_t i = 0; i < n && !diagonal; ++i)
            for (int64_t j = 0; j < i; ++j) totals[i * n + j] = totals[j * n + i];
    }

   private:
    static void take_share(const void *context, int64_t k) {
        const HessianPass &pass = *static_cast<const HessianPass *>(context);
        const int64_t n = pass.n_features;
        if (pass.diagonal)
            pass.add_share(k, DiagonalSum<Real>(*pass.loops, n, pass.totals + k * n));
        else
            pass.add_share(k, ProductSum<Real>(*pass.loops, n, pass.totals + k * n * n));
    }

    template <class Sum>
    void add_share(int64_t k, Sum sum) const {
        const int64_t stride = hessian_stride<Real>(n_features);
        Room<Rows> X_room, out_room;
        Room<Real> A_room, B_room;
        for (int64_t i = k > 0 ? ends[k - 1] : 0; i < ends[k]; ++i) {
            int64_t first = ranges[2 * i];
            const int64_t last = ranges[2 * i + 1];
            while (first < last) {
                int64_t end = first + 1;
                while (end < last && pointers[end + 1] - pointers[first] <= rows_at_once) ++end;
                const int64_t start = pointers[first], size = pointers[end] - start;
                if (size > 0) {
                    // room for rows_at_once, so that a somewhat larger block takes no new memory
                    const int64_t room = std::max(size, rows_at_once) * stride;
                    Rows *X = X_room.of(room + kBehind), *out = out_room.of(2 * room + kBehind);
                    gather(products, start, start + size, X, stride);
                    const int64_t n_squares = rows_of(hessian, first, end, X, stride, out);
                    const int64_t n_rows = n_squares == kNotSquared ? size : n_squares;
                    const Real *B = converted(out, n_rows * stride, B_room);
                    sum.add(n_squares == kNotSquared ? converted(X, n_rows * stride, A_room) : B, B, n_rows);
                }
                first = end;
            }
        }
        sum.flush();
    }
};

// total += (A'B + B'A) / 2 for given matrices A and B, and a symmetric total.
template <class Real>
void add_to_hessian(const HessianLoops<Real> &loops, const Real *A, const Real *B, int64_t n_rows, int64_t n, double *total) {
    const int64_t stride = hessian_stride<Real>(n);
    Room<Real> A_room, B_room;
    ProductSum<Real> sum(loops, n, total);
    const auto spread = [&](const Real *rows, int64_t begin, int64_t size, Room<Real> &room) {
        Real *out = room.of(kRowsOfSums * stride + kBehind);
        for (int64_t t = 0; t < size; ++t) std::copy_n(rows + (begin + t) * n, n, out + t * stride);
        return const_cast<const Real *>(out);
    };
    for (int64_t t = 0; t < n_rows; t += kRowsOfSums) {
        const int64_t size = std::min(kRowsOfSums, n_rows - t);
        const Real *spread_A = spread(A, t, size, A_room);
        sum.add(spread_A, A == B ? spread_A : spread(B, t, size, B_room), size);
    }
    sum.flush();
    for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j < i; ++j) total[i * n + j] = total[j * n + i];
}

}  // namespace ranksvm

#endif
