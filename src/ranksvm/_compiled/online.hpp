// Updates of linear models by one pair of documents after another, each in closed form.
#ifndef RANKSVM_ONLINE_HPP
#define RANKSVM_ONLINE_HPP

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <numeric>

#include "online_loops.hpp"
#include "portable.hpp"

namespace ranksvm::RANKSVM_VARIANT {

// ---------------------------------------------------------------------------------------------------------------------
// Pairs that labels imply, shuffled

// SplitMix64 (Steele, Lea & Flood, OOPSLA 2014): a seed gives the same numbers on every machine.
struct SplitMix {
    uint64_t state;
    uint64_t operator()() {
        uint64_t z = (state += 0x9e3779b97f4a7c15ull);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
        return z ^ (z >> 31);
    }
    // a number below n, which fits into 32 bits; biased by less than n / 2^32
    uint64_t below(uint64_t n) { return ((*this)() >> 32) * n >> 32; }
};

static int64_t count_online_pairs(const double *y, int64_t n) {
    Vector<double> sorted(y, y + n);
    std::sort(sorted.begin(), sorted.end());
    int64_t pairs = 0, level_begin = 0;
    for (int64_t t = 0; t < n; ++t) {
        if (sorted[t] != sorted[level_begin]) level_begin = t;
        pairs += level_begin;
    }
    return pairs;
}

// Writes all pairs (preferred, other), sorted by the label and then the number of the documents, or with `shuffle` in a random
// order that depends on seed and stream.
static void fill_online_pairs(const double *y, int64_t n, bool shuffle, uint64_t seed, uint64_t stream,
                              int32_t *preferred, int32_t *other) {
    Vector<int32_t> order(n);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [y](int32_t a, int32_t b) { return y[a] > y[b]; });
    int64_t next = 0;
    for (int64_t a = 0; a < n; ++a) {
        int64_t b = a + 1;
        while (b < n && y[order[b]] == y[order[a]]) ++b;
        for (; b < n; ++b, ++next) preferred[next] = order[a], other[next] = order[b];
    }
    if (!shuffle) return;
    SplitMix random = {SplitMix{seed ^ (stream * 0xd1342543de82ef95ull)}()};
    for (int64_t t = next - 1; t > 0; --t) {
        const int64_t s = static_cast<int64_t>(random.below(static_cast<uint64_t>(t) + 1));
        std::swap(preferred[t], preferred[s]);
        std::swap(other[t], other[s]);
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// Rows of features, and z = x_i - x_j of two of them

template <class Real>
class DenseRows {
  public:
    DenseRows(const Real *X, int64_t n) : X_(X), n_(n), z_(n) {}

    // Sets z to the difference of two rows; also computes the margin w'z and the square z'z.
    RANKSVM_INLINE_METHOD void subtract(int32_t i, int32_t j, const double *RANKSVM_RESTRICT w, double *margin, double *square) {
        const Real *RANKSVM_RESTRICT x = X_ + i * n_, *RANKSVM_RESTRICT y = X_ + j * n_;
        double *RANKSVM_RESTRICT z = z_.data();
        Lanes m[2] = {}, s[2] = {};
        double total_m = 0.0, total_s = 0.0;
        int64_t f = 0;
        for (; f + 2 * kWidth <= n_; f += 2 * kWidth)
            for (int c = 0; c < 2; ++c) {
                const int64_t at = f + kWidth * c;
                const Lanes d = lanes_at(x + at) - lanes_at(y + at);
                put_lanes(z + at, d);
                m[c] = m[c] + d * lanes_at(w + at);
                s[c] = s[c] + d * d;
            }
        for (; f < n_; ++f) {
            const double d = static_cast<double>(x[f]) - static_cast<double>(y[f]);
            z[f] = d;
            total_m += d * w[f];
            total_s += d * d;
        }
        total_m += sum_of(m[0] + m[1]);
        total_s += sum_of(s[0] + s[1]);
        *margin = total_m;
        *square = total_s;
    }

    // Sets z to one row; returns w'z.
    RANKSVM_INLINE_METHOD double select(int32_t i, const double *RANKSVM_RESTRICT w) {
        const Real *RANKSVM_RESTRICT x = X_ + i * n_;
        double *RANKSVM_RESTRICT z = z_.data();
        double score = 0.0;
        for (int64_t f = 0; f < n_; ++f) {
            z[f] = static_cast<double>(x[f]);
            score += z[f] * w[f];
        }
        return score;
    }

    // Calls `work` with every feature f and z_f.
    template <class Work>
    RANKSVM_INLINE_METHOD void each(Work work) const {
        const double *RANKSVM_RESTRICT z = z_.data();
        for (int64_t f = 0; f < n_; ++f) work(f, z[f]);
    }

    const double *z() const { return z_.data(); }
    int64_t n() const { return n_; }

  private:
    const Real *X_;
    int64_t n_;
    Vector<double> z_;
};

// Sparse rows whose columns ascend: only features that either row of a pair has are visited.
template <class Real, class Index>
class SparseRows {
  public:
    SparseRows(const Real *data, const Index *indices, const Index *pointers)
        : data_(data), indices_(indices), pointers_(pointers), size_(0) {}

    void subtract(int32_t i, int32_t j, const double *w, double *margin, double *square) {
        Index a = pointers_[i], b = pointers_[j];
        const Index a_end = pointers_[i + 1], b_end = pointers_[j + 1];
        make_room(static_cast<std::size_t>((a_end - a) + (b_end - b)));
        double m = 0.0, s = 0.0;
        size_ = 0;
        while (a < a_end || b < b_end) {
            const bool from_a = b >= b_end || (a < a_end && indices_[a] <= indices_[b]);
            const bool from_b = a >= a_end || (b < b_end && indices_[b] <= indices_[a]);
            const int64_t f = from_a ? indices_[a] : indices_[b];
            double d = 0.0;
            if (from_a) d += static_cast<double>(data_[a++]);
            if (from_b) d -= static_cast<double>(data_[b++]);
            z_[size_] = d;
            at_[size_++] = f;
            m += d * w[f];
            s += d * d;
        }
        *margin = m;
        *square = s;
    }

    double select(int32_t i, const double *w) {
        const Index first = pointers_[i];
        size_ = pointers_[i + 1] - first;
        make_room(static_cast<std::size_t>(size_));
        double score = 0.0;
        for (int64_t t = 0; t < size_; ++t) {
            z_[t] = static_cast<double>(data_[first + t]);
            at_[t] = indices_[first + t];
            score += z_[t] * w[at_[t]];
        }
        return score;
    }

    template <class Work>
    RANKSVM_INLINE_METHOD void each(Work work) const {
        for (int64_t t = 0; t < size_; ++t) work(at_[t], z_[t]);
    }

  private:
    void make_room(std::size_t most) {
        if (z_.size() < most) z_.resize(most), at_.resize(most);
    }

    const Real *data_;
    const Index *indices_, *pointers_;
    int64_t size_;
    Vector<double> z_;
    Vector<int64_t> at_;
};

// ---------------------------------------------------------------------------------------------------------------------
// The learners

// Go through the pairs; `learn(h, square, weight)` changes the model for each pair with h = hinge_at - margin > 0 (for the
// perceptron, whose hinge_at is 0, also with h = 0).
template <class Rows, class Learn>
RANKSVM_INLINE OnlineSums go_through(Rows &rows, const OnlinePairs &pairs, OnlineModel &model, double hinge_at, Learn learn) {
    OnlineSums sums = {0, 0.0};
    for (int64_t t = 0; t < pairs.size; ++t, model.count += 1.0) {
        const double a = pairs.weight ? pairs.weight[t] : 1.0;
        double margin, square;
        rows.subtract(pairs.preferred[t], pairs.other[t], model.w, &margin, &square);
        const double h = hinge_at - margin;
        if (h < 0.0 || (h == 0.0 && hinge_at > 0.0) || !(a > 0.0)) continue;
        sums.loss += a * h * h;
        sums.updates += 1;
        learn(h, square, a);
    }
    return sums;
}

RANKSVM_INLINE void move(OnlineModel &model, int64_t f, double by) {
    model.w[f] += by;
    if (model.lag) model.lag[f] += model.count * by;
}

// SOLAR-I: w += z h / (|z|^2 + 1 / (2 C a)).
template <class Rows>
static OnlineSums solar_first(Rows &rows, const OnlinePairs &pairs, double C, OnlineModel &model) {
    return go_through(rows, pairs, model, 1.0, [&](double h, double square, double a) {
        const double length = h / (square + 0.5 / (C * a));
        rows.each([&](int64_t f, double z) { move(model, f, length * z); });
    });
}

// The perceptron: w += a z if the pair is not in order.
template <class Rows>
static OnlineSums perceptron(Rows &rows, const OnlinePairs &pairs, OnlineModel &model) {
    return go_through(rows, pairs, model, 0.0, [&](double, double, double a) {
        rows.each([&](int64_t f, double z) { move(model, f, a * z); });
    });
}

// SOLAR-II with the diagonal of the covariance only.
template <class Rows>
static OnlineSums solar_diagonal(Rows &rows, const OnlinePairs &pairs, double gamma, double *S, OnlineModel &model) {
    return go_through(rows, pairs, model, 1.0, [&](double h, double, double a) {
        double b = gamma / a;
        rows.each([&](int64_t f, double z) { b += S[f] * z * z; });
        rows.each([&](int64_t f, double z) {
            const double u = S[f] * z;
            move(model, f, h / b * u);
            S[f] -= u * u / b;
        });
    });
}

template <class Rows>
static OnlineSums committee_perceptron(Rows &rows, const OnlinePairs &pairs, int64_t n, const Committee &committee,
                                               OnlineModel &model) {
    double at_last_error = model.count - *committee.survival;
    const OnlineSums sums = go_through(rows, pairs, model, 0.0, [&](double, double, double a) {
        const double survived = model.count - at_last_error;
        double *worst = std::min_element(committee.survivals, committee.survivals + committee.size);
        if (survived > *worst) {
            *worst = survived;
            std::copy_n(model.w, n, committee.experts + (worst - committee.survivals) * n);
        }
        at_last_error = model.count + 1.0;
        rows.each([&](int64_t f, double z) { move(model, f, a * z); });
    });
    *committee.survival = model.count - at_last_error;
    return sums;
}

// S z for a symmetric matrix S, which is stored in full, but of which only the lower triangle is read.
RANKSVM_INLINE void symmetric_product(const double *S, const double *RANKSVM_RESTRICT z, int64_t n,
                                      double *RANKSVM_RESTRICT out) {
    for (int64_t i = 0; i < n; ++i) {
        const double *RANKSVM_RESTRICT row = S + i * n;
        const double zi = z[i];
        double s[8] = {0}, total = 0.0;
        int64_t j = 0;
        for (; j + 8 <= i; j += 8)
            for (int c = 0; c < 8; ++c) {
                s[c] += row[j + c] * z[j + c];
                out[j + c] += row[j + c] * zi;
            }
        for (; j < i; ++j) {
            total += row[j] * z[j];
            out[j] += row[j] * zi;
        }
        for (int c = 0; c < 8; ++c) total += s[c];
        out[i] = total + row[i] * zi;
    }
}

// SOLAR-II: b = z'Sz + gamma / a; w += (h / b) S z; S -= (S z)(S z)' / b, in the lower triangle of S only.
template <class Real>
static OnlineSums solar_second(DenseRows<Real> &rows, const OnlinePairs &pairs, double gamma, double *S,
                                       OnlineModel &model) {
    const int64_t n = rows.n();
    Vector<double> memory(n);
    return go_through(rows, pairs, model, 1.0, [&](double h, double, double a) {
        double *RANKSVM_RESTRICT u = memory.data();
        const double *RANKSVM_RESTRICT z = rows.z();
        symmetric_product(S, z, n, u);
        double b = gamma / a;
        for (int64_t f = 0; f < n; ++f) b += z[f] * u[f];
        for (int64_t f = 0; f < n; ++f) move(model, f, h / b * u[f]);
        for (int64_t i = 0; i < n; ++i) {
            double *RANKSVM_RESTRICT row = S + i * n;
            const double factor = u[i] / b;
            for (int64_t j = 0; j <= i; ++j) row[j] -= factor * u[j];
        }
    });
}

// PRank (Crammer & Singer, NIPS 2001): a document's level is the number of thresholds that its score is not below; if that is
// wrong, each threshold on the wrong side moves by 1, and w moves by x for each of these. Returns how many levels were wrong.
template <class Rows>
static int64_t prank(Rows &rows, const int32_t *documents, const int32_t *levels, int64_t size, double *thresholds,
                             int64_t n_thresholds, OnlineModel &model) {
    int64_t updates = 0;
    for (int64_t t = 0; t < size; ++t, model.count += 1.0) {
        const double score = rows.select(documents[t], model.w);
        double moved = 0.0;
        int64_t predicted = n_thresholds;
        for (int64_t r = n_thresholds - 1; r >= 0; --r)
            if (score - thresholds[r] < 0.0) predicted = r;
        if (predicted == levels[t]) continue;
        for (int64_t r = 0; r < n_thresholds; ++r) {
            const double side = levels[t] > r ? 1.0 : -1.0;
            if ((score - thresholds[r]) * side > 0.0) continue;
            thresholds[r] -= side;
            moved += side;
        }
        updates += 1;
        rows.each([&](int64_t f, double z) { move(model, f, moved * z); });
    }
    return updates;
}

// --------------------------------------------------------------------------------------------------------------------- One
// function for each kind of storage

// The methods of learning from pairs, and their names for Python, in the order of the numbers.
enum OnlineMethod : int { kSolarFirst, kSolarSecond, kSolarDiagonal, kPerceptron };
static constexpr const char *kOnlineMethods[] = {"solar_first", "solar_second", "solar_diagonal", "perceptron"};

// `parameter` is C for the first-order method and gamma for the second-order ones; S is the covariance (n x n, or its
// diagonal).
template <class Rows>
static OnlineSums learn(int method, Rows &rows, const OnlinePairs &pairs, double parameter, double *S,
                                OnlineModel &model) {
    if (method == kSolarFirst) return solar_first(rows, pairs, parameter, model);
    if (method == kSolarDiagonal) return solar_diagonal(rows, pairs, parameter, S, model);
    return perceptron(rows, pairs, model);
}

template <class Real>
static OnlineSums learn_dense(int method, const Real *X, int64_t n, const OnlinePairs &pairs, double parameter,
                              double *S, OnlineModel model) {
    DenseRows<Real> rows(X, n);
    if (method == kSolarSecond) return solar_second(rows, pairs, parameter, S, model);
    return learn(method, rows, pairs, parameter, S, model);
}

template <class Real, class Index>
static OnlineSums learn_sparse(int method, const Real *data, const Index *indices, const Index *pointers,
                               const OnlinePairs &pairs, double parameter, double *S, OnlineModel model) {
    SparseRows<Real, Index> rows(data, indices, pointers);
    return learn(method, rows, pairs, parameter, S, model);
}

template <class Real>
static OnlineSums committee_dense(const Real *X, int64_t n, const OnlinePairs &pairs, const Committee &committee,
                                  OnlineModel model) {
    DenseRows<Real> rows(X, n);
    return committee_perceptron(rows, pairs, n, committee, model);
}

template <class Real, class Index>
static OnlineSums committee_sparse(const Real *data, const Index *indices, const Index *pointers, int64_t n,
                                   const OnlinePairs &pairs, const Committee &committee, OnlineModel model) {
    SparseRows<Real, Index> rows(data, indices, pointers);
    return committee_perceptron(rows, pairs, n, committee, model);
}

template <class Real>
static int64_t prank_dense(const Real *X, int64_t n, const int32_t *documents, const int32_t *levels, int64_t size,
                           double *thresholds, int64_t n_thresholds, OnlineModel model) {
    DenseRows<Real> rows(X, n);
    return prank(rows, documents, levels, size, thresholds, n_thresholds, model);
}

template <class Real, class Index>
static int64_t prank_sparse(const Real *data, const Index *indices, const Index *pointers, const int32_t *documents,
                            const int32_t *levels, int64_t size, double *thresholds, int64_t n_thresholds,
                            OnlineModel model) {
    SparseRows<Real, Index> rows(data, indices, pointers);
    return prank(rows, documents, levels, size, thresholds, n_thresholds, model);
}

}  // namespace ranksvm::RANKSVM_VARIANT

#endif
