// Losses of the margin over all pairs, one thread for each document. Every pair is visited twice, by the threads of its two
// documents, so that no two threads write the same number, sums are in a fixed order, and one loop serves any number of levels
// and any weights.
//
// A pair violates the margin t if fl(s_i - s_j) < t, where i is the preferred document: both threads use this test.
#ifndef RANKSVM_DEVICE_LOSSES_HPP
#define RANKSVM_DEVICE_LOSSES_HPP

#include "pairs.hpp"

namespace ranksvm::device {

// Number of sums that each block writes: value, excess and slack of the loss (see LossSums), and its slope along a step.
constexpr int kLossColumns = 4;

// Sum of a_ij max(0, 1 - m)^2.
struct SquaredHinge {
    // minus the derivative of a pair's loss is slope() * pull(margin), times the pair's weight
    RANKSVM_DEVICE double slope() const { return 2.0; }
    RANKSVM_DEVICE double pull(double margin) const { return margin < 1.0 ? 1.0 - margin : 0.0; }
    RANKSVM_DEVICE void add(double margin, double weight, double *sums) const {
        const double h = pull(margin);
        sums[0] += weight * h * h;
    }
};

// The Huberized hinge of width d: a parabola for margins m with 1 - d <= m < 1 (the ring), linear below. Also computes the
// hinge minus this loss (excess), and the sum of h (1 - h / d) over the ring with h = 1 - m (slack).
struct HuberHinge {
    double width, steepness;

    RANKSVM_DEVICE double slope() const { return 1.0; }
    RANKSVM_DEVICE double pull(double margin) const {
        if (!(margin < 1.0)) return 0.0;
        const double scaled = (1.0 - margin) * steepness;
        return margin < 1.0 - width || !(scaled < 1.0) ? 1.0 : scaled;
    }
    RANKSVM_DEVICE void add(double margin, double weight, double *sums) const {
        if (!(margin < 1.0)) return;
        const double h = 1.0 - margin, alpha = pull(margin), part = alpha * h, square = 0.5 * width * alpha * alpha;
        sums[0] += weight * (part - square);
        sums[1] += weight * (h - part + square);
        sums[2] += weight * (h - part);
    }
};

// An array with one value for each document from `first` on.
struct FromFirst {
    const double *values;
    int64_t first;
    RANKSVM_DEVICE double operator[](int64_t j) const { return values[j - first]; }
};

// Sums over the pairs of one document: the pulls of the pairs in which it is preferred (won) and of its other pairs (lost), and
// the loss of the pairs in which it is preferred.
template <class Loss, class Scores>
struct LossVisit {
    const Loss &loss;
    Scores scores;
    double own, won, lost;
    double sums[3];

    RANKSVM_DEVICE void below(int64_t j, double weight) {
        const double margin = own - scores[j];
        won += weight * loss.pull(margin);
        loss.add(margin, weight, sums);
    }
    RANKSVM_DEVICE void above(int64_t j, double weight) { lost += weight * loss.pull(scores[j] - own); }
};

// Evaluates a loss at `scores` over the documents start .. stop: its value, its gradient (unless null), and its slope along the
// step from `from` to `to` (unless null). Each block writes a row of kLossColumns sums.
template <class Pairs, class Loss>
RANKSVM_DEVICE void evaluate_loss(const Pairs &pairs, const Loss &loss, int64_t start, int64_t stop, const double *scores,
                                  double *gradient, const double *from, const double *to, double *block_sums) {
    const Block block = this_block();
    RANKSVM_PHASE(thread) {
        double sums[kLossColumns] = {0.0, 0.0, 0.0, 0.0};
        RANKSVM_ROLLED
        for (int64_t i = start + block.index * block.n_threads + thread; i < stop; i += block.count * block.n_threads) {
            LossVisit<Loss, const double *> visit = {loss, scores, scores[i], 0.0, 0.0, {0.0, 0.0, 0.0}};
            pairs.visit(i, pairs.partners(i), visit);
            for (int c = 0; c < 3; ++c) sums[c] += visit.sums[c];
            if (visit.own != visit.own) sums[0] = visit.own;  // NaN violates no margin, but must show in the result
            const double slope = loss.slope() * (visit.lost - visit.won);
            if (gradient != nullptr) gradient[i] = slope;
            if (from != nullptr) sums[3] += slope * (to[i] - from[i]);
        }
        for (int c = 0; c < kLossColumns; ++c) block.shared[c * block.n_threads + thread] = sums[c];
    }
    add_threads(block, kLossColumns, block_sums + block.index * kLossColumns);
}

// The margins at which the loss is curved: those below the outer threshold and not below the inner one.
struct Ring {
    double inner, outer;
    RANKSVM_DEVICE bool has(double margin) const { return margin < outer && !(margin < inner); }
};

struct DegreeVisit {
    const Ring &ring;
    const double *scores;
    double own, sum;

    RANKSVM_DEVICE void below(int64_t j, double weight) { sum += ring.has(own - scores[j]) ? weight : 0.0; }
    RANKSVM_DEVICE void above(int64_t j, double weight) { sum += ring.has(scores[j] - own) ? weight : 0.0; }
};

// degrees[i] (unless null) = factor * the weight of the curved pairs of document i. Each block writes the sum over its
// documents.
template <class Pairs>
RANKSVM_DEVICE void sum_degrees(const Pairs &pairs, const Ring &ring, int64_t n_rows, const double *scores, double factor,
                                double *degrees, double *block_sums) {
    const Block block = this_block();
    RANKSVM_PHASE(thread) {
        double sum = 0.0;
        RANKSVM_ROLLED
        for (int64_t i = block.index * block.n_threads + thread; i < n_rows; i += block.count * block.n_threads) {
            DegreeVisit visit = {ring, scores, scores[i], 0.0};
            pairs.visit(i, pairs.partners(i), visit);
            sum += factor * visit.sum;
            if (degrees != nullptr) degrees[i] = factor * visit.sum;
        }
        block.shared[thread] = sum;
    }
    add_threads(block, 1, block_sums + block.index);
}

template <class Scores, class Vector>
struct FlowVisit {
    const Ring &ring;
    Scores scores;
    Vector v;
    double own, own_v, sum;

    RANKSVM_DEVICE void below(int64_t j, double weight) { add(own - scores[j], weight, v[j]); }
    RANKSVM_DEVICE void above(int64_t j, double weight) { add(scores[j] - own, weight, v[j]); }

private:
    // v is read whether it counts or not: a GPU reads it together with the score
    RANKSVM_DEVICE void add(double margin, double weight, double other_v) {
        sum += ring.has(margin) ? weight * (own_v - other_v) : 0.0;
    }
};

// out = factor * L v for the documents start .. stop, where L is the Laplacian of the graph of the curved pairs.
template <class Pairs>
RANKSVM_DEVICE void multiply_laplacian(const Pairs &pairs, const Ring &ring, int64_t start, int64_t stop, const double *scores,
                                       double factor, const double *v, double *out) {
    const Block block = this_block();
    RANKSVM_PHASE(thread) {
        RANKSVM_ROLLED
        for (int64_t i = start + block.index * block.n_threads + thread; i < stop; i += block.count * block.n_threads) {
            FlowVisit<const double *, const double *> visit = {ring, scores, v, scores[i], v[i], 0.0};
            pairs.visit(i, pairs.partners(i), visit);
            out[i] = factor * visit.sum;
        }
    }
}

}  // namespace ranksvm::device

#endif
