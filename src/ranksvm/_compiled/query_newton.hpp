// Newton steps that maximize the dual of a RankSVM over all pairs of a query together.
#ifndef RANKSVM_QUERY_NEWTON_HPP
#define RANKSVM_QUERY_NEWTON_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "dual_descent_loops.hpp"
#include "portable.hpp"

namespace ranksvm::RANKSVM_VARIANT {

// A query gets Newton steps if it has at least kPairsPerDocument pairs for each document, and at least one pair for kSquare
// pairs of documents. With fewer pairs, steps of single pairs converge as fast, or take less time.
constexpr int64_t kPairsPerDocument = 2, kSquare = 16;
// Maximum number of Newton steps in a visit. They end earlier once the largest residual is at most kNewtonEnough times the
// largest one so far.
constexpr int kNewtonSteps = 10;
constexpr double kNewtonEnough = 1e-5;
// A step is halved until the objective falls by at least kDecrease times what its slope promises. If that takes less than
// kLeastPart of the step, round-off allows no progress.
constexpr double kDecrease = 1e-4, kLeastPart = 1e-10;

// Maximizes the dual over the alphas of one query. Steps of single pairs are slow if alphas must change along cycles of pairs,
// such as (1, 2), (2, 3), (1, 3), because then w hardly changes. The coefficients of the documents do not have this problem.
//
// The primal problem of the query is: minimize c'Gc / 2 plus the losses of its pairs, over the coefficients c of its documents.
// Their scores are G c plus what other queries add to them. At its margin, each pair has a best alpha. If the best alphas add
// up to the coefficients b, the gradient is G (c - b), so that c = b at the solution. A Newton step solves
// (I + L G) step = b - c, where L is the Laplacian of the pairs whose alpha is between its bounds, each with the weight
// 1 / ridge.
class QueryNewton {
public:
    explicit QueryNewton(const DualPairs &pairs) : pairs_(pairs) {}

    // Whether to take Newton steps for a query of m documents: it has enough pairs, and all have a ridge.
    RANKSVM_INLINE_METHOD bool suits(int64_t q, int64_t m) const {
        const int64_t first = pairs_.pair_pointers[q], last = pairs_.pair_pointers[q + 1];
        if (last - first < kPairsPerDocument * m || m * m > kSquare * (last - first)) return false;
        for (int64_t p = first; p < last; ++p)
            if (pairs_.ridge[p] == 0.0 && pairs_.upper[p] != 0.0) return false;
        return true;
    }

    // Updates alpha and b as `maximize_query` does, and returns the sum of the absolute changes of alpha. If the dual would not
    // grow, it returns -1 and changes nothing.
    RANKSVM_NOINLINE double maximize(int64_t q, int64_t m, double *alpha, const double *s, double *b) {
        begin(q, m, alpha, s);
        double value = 0.0, largest = 0.0;
        for (int count = 0; count < kNewtonSteps; ++count) {
            // For the first step, alpha itself says which pairs are between their bounds: the best alphas at the first margins
            // may be far away. (With 600 x 1,800, 20 documents per query, this halves the time of fits.)
            prepare_step(count == 0 ? alpha : nullptr);
            const double size = largest_residual();
            largest = std::max(largest, size);
            if ((count > 0 && size <= kNewtonEnough * largest) || !compute_step()) break;
            const double part = count == 0 ? 1.0 : part_of_step(value);
            if (part == 0.0) break;
            value = losses(part);
            for (int64_t i = 0; i < m_; ++i) {
                coefficients_[i] += part * step_[i];
                scores_[i] += part * step_scores_[i];
            }
        }
        return move_alpha(alpha, s, b);
    }

private:
    const DualPairs &pairs_;
    const double *gram_ = nullptr;
    int64_t m_ = 0, first_ = 0, last_ = 0;
    Vector<double> coefficients_, scores_, residual_, step_, step_scores_, best_, matrix_;

    RANKSVM_INLINE_METHOD void begin(int64_t q, int64_t m, const double *alpha, const double *s) {
        const size_t size = static_cast<size_t>(m);
        gram_ = pairs_.grams + pairs_.gram_pointers[q];
        m_ = m;
        first_ = pairs_.pair_pointers[q];
        last_ = pairs_.pair_pointers[q + 1];
        scores_.assign(s, s + m);
        coefficients_.assign(size, 0.0);
        step_.assign(size, 0.0);
        step_scores_.assign(size, 0.0);
        for (int64_t p = first_; p < last_; ++p) {
            coefficients_[pairs_.preferred[p]] += alpha[p];
            coefficients_[pairs_.other[p]] -= alpha[p];
        }
    }

    // 1 minus the margin of a pair, at the scores plus `part` of the scores of the step.
    RANKSVM_INLINE_METHOD double shortfall(int64_t p, double part) const {
        const int64_t i = pairs_.preferred[p], j = pairs_.other[p];
        return 1.0 - (scores_[i] - scores_[j]) - part * (step_scores_[i] - step_scores_[j]);
    }

    RANKSVM_INLINE_METHOD double best_alpha(int64_t p, double shortfall) const {
        return std::min(std::max(shortfall / pairs_.ridge[p], 0.0), pairs_.upper[p]);
    }

    // The sum of the losses, at the scores plus `part` of the scores of the step.
    RANKSVM_INLINE_METHOD double losses(double part) const {
        double sum = 0.0;
        for (int64_t p = first_; p < last_; ++p) {
            if (pairs_.upper[p] == 0.0) continue;
            const double short_by = shortfall(p, part), best = best_alpha(p, short_by);
            sum += best * (short_by - 0.5 * pairs_.ridge[p] * best);
        }
        return sum;
    }

    // Computes the residual b - c and the matrix I + L G. Pairs are between their bounds if their best alpha is or, with
    // `alpha`, if this is. The others have the alpha of their bound.
    RANKSVM_INLINE_METHOD void prepare_step(const double *alpha) {
        const size_t size = static_cast<size_t>(m_);
        residual_.resize(size);
        matrix_.assign(size * size, 0.0);
        for (int64_t i = 0; i < m_; ++i) {
            residual_[i] = -coefficients_[i];
            matrix_[i * m_ + i] = 1.0;
        }
        for (int64_t p = first_; p < last_; ++p) {
            const double upper = pairs_.upper[p];
            if (upper == 0.0) continue;
            const double weight = 1.0 / pairs_.ridge[p];
            const double unbounded = shortfall(p, 0.0) * weight, place = alpha == nullptr ? unbounded : alpha[p];
            if (place <= 0.0) continue;
            const int64_t i = pairs_.preferred[p], j = pairs_.other[p];
            const double taken = place < upper ? unbounded : upper;
            residual_[i] += taken;
            residual_[j] -= taken;
            if (place >= upper) continue;
            const double *RANKSVM_RESTRICT g = gram_ + i * m_, *RANKSVM_RESTRICT h = gram_ + j * m_;
            double *RANKSVM_RESTRICT row = matrix_.data() + i * m_, *RANKSVM_RESTRICT other = matrix_.data() + j * m_;
            for (int64_t k = 0; k < m_; ++k) {
                const double product = weight * (g[k] - h[k]);
                row[k] += product;
                other[k] -= product;
            }
        }
    }

    RANKSVM_INLINE_METHOD double largest_residual() const {
        double found = 0.0;
        for (int64_t i = 0; i < m_; ++i) found = std::max(found, std::fabs(residual_[i]));
        return found;
    }

    // Computes the step and its scores by Gaussian elimination with row exchanges. Returns false if a pivot is 0 or not finite.
    RANKSVM_INLINE_METHOD bool compute_step() {
        double *A = matrix_.data();
        step_ = residual_;
        for (int64_t k = 0; k < m_; ++k) {
            int64_t pivot = k;
            for (int64_t i = k + 1; i < m_; ++i)
                if (std::fabs(A[i * m_ + k]) > std::fabs(A[pivot * m_ + k])) pivot = i;
            if (A[pivot * m_ + k] == 0.0 || !std::isfinite(A[pivot * m_ + k])) return false;
            if (pivot != k) {
                std::swap_ranges(A + k * m_ + k, A + (k + 1) * m_, A + pivot * m_ + k);
                std::swap(step_[k], step_[pivot]);
            }
            const double *RANKSVM_RESTRICT row = A + k * m_;
            for (int64_t i = k + 1; i < m_; ++i) {
                double *RANKSVM_RESTRICT other = A + i * m_;
                const double factor = other[k] / row[k];
                if (factor == 0.0) continue;
                for (int64_t c = k + 1; c < m_; ++c) other[c] -= factor * row[c];
                step_[i] -= factor * step_[k];
            }
        }
        for (int64_t k = m_ - 1; k >= 0; --k) {
            for (int64_t c = k + 1; c < m_; ++c) step_[k] -= A[k * m_ + c] * step_[c];
            step_[k] /= A[k * m_ + k];
        }
        compute_step_scores();
        return true;
    }

    RANKSVM_INLINE_METHOD void compute_step_scores() {
        std::fill(step_scores_.begin(), step_scores_.end(), 0.0);
        for (int64_t i = 0; i < m_; ++i) {
            const double *RANKSVM_RESTRICT g = gram_ + i * m_;
            for (int64_t j = 0; j < m_; ++j) step_scores_[j] += step_[i] * g[j];
        }
    }

    // The part of the step to take from a point where the losses sum up to `before`; 0 if none lowers the objective.
    RANKSVM_INLINE_METHOD double part_of_step(double before) const {
        double fall = 0.0, linear = 0.0, square = 0.0;
        for (int64_t i = 0; i < m_; ++i) {
            fall += residual_[i] * step_scores_[i];
            linear += coefficients_[i] * step_scores_[i];
            square += step_[i] * step_scores_[i];
        }
        for (double part = 1.0; part >= kLeastPart; part *= 0.5)
            if (losses(part) - before + part * (linear + 0.5 * part * square) <= -kDecrease * part * fall) return part;
        return 0.0;
    }

    // Sets alpha to the best alphas, and updates b.
    RANKSVM_INLINE_METHOD double move_alpha(double *alpha, const double *s, double *b) {
        double distance = 0.0, gain = 0.0;
        best_.resize(static_cast<size_t>(last_ - first_));
        std::fill(step_.begin(), step_.end(), 0.0);  // from here on, the change of the coefficients of the documents
        for (int64_t p = first_; p < last_; ++p) {
            if (pairs_.upper[p] == 0.0) continue;
            const double before = alpha[p], best = best_alpha(p, shortfall(p, 0.0)), change = best - before;
            best_[p - first_] = best;
            gain += change * (1.0 - 0.5 * pairs_.ridge[p] * (before + best));
            distance += std::fabs(change);
            step_[pairs_.preferred[p]] += change;
            step_[pairs_.other[p]] -= change;
        }
        compute_step_scores();
        for (int64_t i = 0; i < m_; ++i) gain -= step_[i] * (s[i] + 0.5 * step_scores_[i]);
        if (!(gain > 0.0 && std::isfinite(gain))) return -1.0;
        for (int64_t p = first_; p < last_; ++p)
            if (pairs_.upper[p] != 0.0) alpha[p] = best_[p - first_];
        for (int64_t i = 0; i < m_; ++i) b[i] += step_[i];
        return distance;
    }
};

}  // namespace ranksvm::RANKSVM_VARIANT

#endif
