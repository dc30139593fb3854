// One pass over X for whole queries: a block reads the rows of some queries, and computes their scores. From the scores it
// computes, pair by pair, the slopes of the loss (or the Laplacian times the scores), and then X' times the result. It keeps
// rows in shared memory; rows that do not fit are read again, soon enough to be in the cache.
#ifndef RANKSVM_DEVICE_FUSED_HPP
#define RANKSVM_DEVICE_FUSED_HPP

#include "losses.hpp"
#include "rows.hpp"

namespace ranksvm::device {

// Number of threads, a warp, that take neighboring features when rows are added up.
constexpr int kGroup = 32;

// Evaluates the loss at the scores X w: returns the slope for document i, and adds to the sums that `evaluate_loss` computes. A
// width of 0 stands for the squared hinge.
template <class Pairs>
struct LossOfScores {
    const Pairs &pairs;
    double width;

    RANKSVM_DEVICE double operator()(int lane, int64_t i, const FromFirst &scores, const FromFirst &, double *sums) const {
        return width > 0.0 ? visited(HuberHinge{width, 1.0 / width}, lane, i, scores, sums)
                           : visited(SquaredHinge{}, lane, i, scores, sums);
    }

private:
    template <class Loss>
    RANKSVM_DEVICE double visited(const Loss &loss, int lane, int64_t i, const FromFirst &scores, double *sums) const {
        return add_lanes(lane, sums, [&](int own, double *own_sums) {
            LossVisit<Loss, FromFirst> visit = {loss, scores, scores[i], 0.0, 0.0, {0.0, 0.0, 0.0}};
            pairs.visit(i, visit, own, kLanes);
            for (int c = 0; c < 3; ++c) own_sums[c] += visit.sums[c];
            if (visit.own != visit.own) own_sums[0] = visit.own;
            return loss.slope() * (visit.lost - visit.won);
        });
    }
};

// Multiplies X v by the Laplacian at given scores: returns the product's value for document i.
template <class Pairs>
struct FlowOfScores {
    const Pairs &pairs;
    const Ring &ring;
    double factor;

    RANKSVM_DEVICE double operator()(int lane, int64_t i, const FromFirst &v, const FromFirst &scores, double *sums) const {
        return add_lanes(lane, sums, [&](int own, double *) {
            FlowVisit<FromFirst, FromFirst> visit = {ring, scores, v, scores[i], v[i], 0.0};
            pairs.visit(i, visit, own, kLanes);
            return factor * visit.sum;
        });
    }
};

// Tasks for blocks: each task is a few consecutive queries. The first n_kept rows of a task are kept in shared memory.
struct Tasks {
    const int32_t *begin;  // (n_tasks + 1,) first position of each task
    int64_t n_tasks, most_rows, n_kept;
};

// Writes X w for the rows of the tasks to `scores` (unless null). Writes to block_sums[block, :] the sums of `work`, then X'
// times the results of `work`. For each row, `work` receives X w and `given` (unless null). Shared memory: the sums of each
// thread, w, sums for X' of each group of threads, three numbers for each row, and the rows that are kept.
template <class Real, class Work>
RANKSVM_DEVICE void pass_over_queries(const DenseRows<Real> &X, const Tasks &tasks, const double *w, const Work &work,
                                      const double *given, double *scores, double *block_sums) {
    const Block block = this_block();
    const int64_t n = X.n;
    const int group = block.n_threads < kGroup ? block.n_threads : kGroup, n_groups = block.n_threads / group;
    double *sums = block.shared, *weights = sums + kLossColumns * block.n_threads, *columns = weights + n;
    double *products = columns + n_groups * n, *slopes = products + tasks.most_rows, *beside = slopes + tasks.most_rows;
    // at an even index, so that 16 bytes can be copied at a time
    const int64_t before = kLossColumns * block.n_threads + (n_groups + 1) * n + 3 * tasks.most_rows;
    Real *rows = reinterpret_cast<Real *>(block.shared + before + before % 2);
    const int64_t wide = bytes_at_a_time(X.X, n);
    RANKSVM_PHASE(thread) {
        for (int c = 0; c < kLossColumns; ++c) sums[c * block.n_threads + thread] = 0.0;
        RANKSVM_ROLLED
        for (int64_t f = thread; f < n; f += block.n_threads) weights[f] = w[f];
        RANKSVM_ROLLED
        for (int64_t k = thread; k < n_groups * n; k += block.n_threads) columns[k] = 0.0;
    }
    RANKSVM_ROLLED
    for (int64_t task = tasks.n_tasks - 1 - block.index; task >= 0; task -= block.count) {  // the longest queries first
        const int64_t first = tasks.begin[task], n_rows = tasks.begin[task + 1] - first;
        const int64_t n_kept = n_rows < tasks.n_kept ? n_rows : tasks.n_kept;
        RANKSVM_PHASE(thread) {
            RANKSVM_ROLLED
            for (int64_t t = thread / kLanes; t < n_kept; t += block.n_threads / kLanes)
                begin_copy(rows + t * n, X.row(first + t), n, wide, thread % kLanes, kLanes);
            RANKSVM_ROLLED
            for (int64_t t = thread; given != nullptr && t < n_rows; t += block.n_threads) beside[t] = given[first + t];
            await_copies();
        }
        RANKSVM_PHASE(thread) {
            RANKSVM_ROLLED
            for (int64_t t = thread / kLanes; t < n_rows; t += block.n_threads / kLanes) {
                const Real *row = t < n_kept ? rows + t * n : X.row(first + t);
                const double product = sum_by_lanes(
                    thread % kLanes, 0, n, [=](int64_t f) { return static_cast<double>(row[f]) * weights[f]; });
                if (thread % kLanes != 0) continue;
                products[t] = product;
                if (scores != nullptr) scores[first + t] = product;
            }
        }
        RANKSVM_PHASE(thread) {
            double own[3] = {0.0, 0.0, 0.0};
            RANKSVM_ROLLED
            for (int64_t t = thread / kLanes; t < n_rows; t += block.n_threads / kLanes) {
                const double slope =
                    work(thread % kLanes, first + t, FromFirst{products, first}, FromFirst{beside, first}, own);
                if (thread % kLanes == 0) slopes[t] = slope;
            }
            for (int c = 0; c < 3; ++c) sums[c * block.n_threads + thread] += own[c];
        }
        RANKSVM_PHASE(thread) {
            RANKSVM_ROLLED
            for (int64_t f = thread % group; f < n; f += group) {
                double sum = 0.0;
                int64_t t = thread / group;
                for (; t < n_kept; t += n_groups) sum += slopes[t] * static_cast<double>(rows[t * n + f]);
                for (; t < n_rows; t += n_groups) sum += slopes[t] * static_cast<double>(X.row(first + t)[f]);
                columns[thread / group * n + f] += sum;
            }
        }
    }
    double *out = block_sums + block.index * (kLossColumns + n);
    RANKSVM_PHASE(thread) {
        RANKSVM_ROLLED
        for (int64_t f = thread; f < n; f += block.n_threads) {
            double sum = 0.0;
            RANKSVM_ROLLED
            for (int part = 0; part < n_groups; ++part) sum += columns[part * n + f];
            out[kLossColumns + f] = sum;
        }
    }
    add_threads(block, kLossColumns, out);
}

}  // namespace ranksvm::device

#endif
