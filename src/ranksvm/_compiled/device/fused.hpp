// One pass over X for whole queries: a block reads the rows of some queries, and computes their scores. From the scores it
// computes, pair by pair, the slopes of the loss (or the Laplacian times the scores), and then X' times the result. It keeps
// rows in shared memory; rows that do not fit are read again, soon enough to be in the cache.
#ifndef RANKSVM_DEVICE_FUSED_HPP
#define RANKSVM_DEVICE_FUSED_HPP

#include "losses.hpp"
#include "rows.hpp"

namespace ranksvm::device {

// Number of threads, a warp, that take neighboring features when rows are added up, and maximum number of features that each of
// these threads adds up at a time.
constexpr int kGroup = 32;
constexpr int kFeaturesAtOnce = 5;

// Evaluates the loss at the scores X w: returns the slope for document i, and adds to the sums that `evaluate_loss` computes. A
// width of 0 stands for the squared hinge.
template <class Pairs>
struct LossOfScores {
    const Pairs &pairs;
    double width;

    RANKSVM_DEVICE double operator()(int lane, int64_t i, const typename Pairs::Partners &partners, const FromFirst &scores,
                                     const FromFirst &, double *sums) const {
        return width > 0.0 ? visited(HuberHinge{width, 1.0 / width}, lane, i, partners, scores, sums)
                           : visited(SquaredHinge{}, lane, i, partners, scores, sums);
    }

private:
    template <class Loss>
    RANKSVM_DEVICE double visited(const Loss &loss, int lane, int64_t i, const typename Pairs::Partners &partners,
                                  const FromFirst &scores, double *sums) const {
        return add_lanes(lane, sums, [&](int own, double *own_sums) {
            LossVisit<Loss, FromFirst> visit = {loss, scores, scores[i], 0.0, 0.0, {0.0, 0.0, 0.0}};
            pairs.visit(i, partners, visit, own, kLanes);
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

    RANKSVM_DEVICE double operator()(int lane, int64_t i, const typename Pairs::Partners &partners, const FromFirst &v,
                                     const FromFirst &scores, double *sums) const {
        return add_lanes(lane, sums, [&](int own, double *) {
            FlowVisit<FromFirst, FromFirst> visit = {ring, scores, v, scores[i], v[i], 0.0};
            pairs.visit(i, partners, visit, own, kLanes);
            return factor * visit.sum;
        });
    }
};

// Tasks for blocks, the shortest first. Each task is a few consecutive queries.
struct Tasks {
    const int32_t *begin;  // (n_tasks + 1,) first position of each task
    int64_t n_tasks;
    int64_t shared;  // size of the shared memory of a block, in units of 8 bytes
};

// The rows of a task by number: the first n_kept are in the shared memory of the block; the others are only in X, where the
// task begins at position `first`.
template <class Real>
struct TaskRows {
    const DenseRows<Real> &X;
    const Real *kept;
    int64_t first, n_kept, n_rows;
};

// Adds to out[f] the sum of slopes[t] * x[t, f] over every `step`-th row t from row `part` on, for kFeatures features f =
// feature, feature + group, ...; the last of them may be beyond the end of the row.
template <int kFeatures, class Real>
RANKSVM_DEVICE void add_features(const TaskRows<Real> &rows, const double *slopes, int64_t feature, int group, int64_t part,
                                 int64_t step, double *out) {
    const int64_t n = rows.X.n;
    const bool all = feature + (kFeatures - 1) * group < n;
    double sums[kFeatures] = {};
    const auto add = [&](const Real *row, double slope) {
        for (int c = 0; c < kFeatures; ++c)
            if (c + 1 < kFeatures || all) sums[c] += slope * static_cast<double>(row[feature + c * group]);
    };
    int64_t t = part;
    for (; t < rows.n_kept; t += step) add(rows.kept + t * n, slopes[t]);
    for (; t < rows.n_rows; t += step) add(rows.X.row(rows.first + t), slopes[t]);
    for (int c = 0; c < kFeatures; ++c)
        if (c + 1 < kFeatures || all) out[feature + c * group] += sums[c];
}

// The same for up to kFeatures features from `begin` on, of which this thread takes number `lane` of each group.
template <int kFeatures, class Real>
RANKSVM_DEVICE void add_features_from(int64_t begin, const TaskRows<Real> &rows, const double *slopes, int lane, int group,
                                      int64_t part, int64_t step, double *out) {
    if (begin + (kFeatures - 1) * group < rows.X.n)
        add_features<kFeatures>(rows, slopes, begin + lane, group, part, step, out);
    else if constexpr (kFeatures > 1)
        add_features_from<kFeatures - 1>(begin, rows, slopes, lane, group, part, step, out);
}

// Writes X w for the rows of the tasks to `scores` (unless null). Writes to block_sums[block, :] the sums of `work`, then X'
// times the results of `work`. For each row, `work` receives X w and `given` (unless null).
//
// Shared memory: w, and sums for X' of each group of threads; for each row of a task, three numbers and its partners; as many
// rows as still fit. In the end, the sums of each thread.
template <class Pairs, class Real, class Work>
RANKSVM_DEVICE void pass_over_queries(const Pairs &pairs, const DenseRows<Real> &X, const Tasks &tasks, const double *w,
                                      const Work &work, const double *given, double *scores, double *block_sums) {
    using Partners = typename Pairs::Partners;
    constexpr int64_t kPerRow = 3 + sizeof(Partners) / sizeof(double);
    const Block block = this_block();
    const int64_t n = X.n;
    const int group = block.n_threads < kGroup ? block.n_threads : kGroup, n_groups = block.n_threads / group;
    double *weights = block.shared, *columns = weights + n, *products = columns + n_groups * n;
    const int64_t wide = bytes_at_a_time(X.X, n);
    struct Sums {
        double of_loss[kLossColumns];
    };
    OfThread<Sums> sums(block);
    RANKSVM_PHASE(thread) {
        sums[thread] = {};
        RANKSVM_ROLLED
        for (int64_t f = thread; f < n; f += block.n_threads) weights[f] = w[f];
        RANKSVM_ROLLED
        for (int64_t k = thread; k < n_groups * n; k += block.n_threads) columns[k] = 0.0;
    }
    // The longest tasks come first. Blocks take turns in alternating order, so that all have about as much work.
    RANKSVM_ROLLED
    for (int64_t before = 0; before < tasks.n_tasks; before += block.count) {
        const int64_t own = before / block.count % 2 == 0 ? block.index : block.count - 1 - block.index;
        const int64_t task = tasks.n_tasks - 1 - before - own;
        if (task < 0) continue;
        const int64_t first = tasks.begin[task], n_rows = tasks.begin[task + 1] - first;
        double *slopes = products + n_rows, *beside = slopes + n_rows;
        Partners *partners = reinterpret_cast<Partners *>(beside + n_rows);
        // at an even index, so that 16 bytes can be copied at a time
        int64_t taken = (n_groups + 1) * n + kPerRow * n_rows;
        taken += taken % 2;
        Real *rows = reinterpret_cast<Real *>(block.shared + taken);
        const int64_t fit = (tasks.shared - taken) * 8 / (n * static_cast<int64_t>(sizeof(Real)));
        const int64_t n_kept = n_rows < fit ? n_rows : fit;
        const auto score = [&](int64_t t, int lane, const Real *row) {
            const double product = dot_by_lanes(lane, row, weights, n);
            if (lane != 0) return;
            products[t] = product;
            if (scores != nullptr) scores[first + t] = product;
        };
        const int at_a_time = block.n_threads / kLanes;
        RANKSVM_PHASE(thread) {
            RANKSVM_ROLLED
            for (int64_t t = thread / kLanes; t < n_kept; t += at_a_time)
                begin_copy(rows + t * n, X.row(first + t), n, wide, thread % kLanes, kLanes);
            RANKSVM_ROLLED
            for (int64_t t = thread; t < n_rows; t += block.n_threads) {
                partners[t] = pairs.partners(first + t);
                if (given != nullptr) beside[t] = given[first + t];
            }
            RANKSVM_ROLLED
            for (int64_t t = n_kept + thread / kLanes; t < n_rows; t += at_a_time)
                score(t, thread % kLanes, X.row(first + t));
            await_copies();
        }
        RANKSVM_PHASE(thread) {
            RANKSVM_ROLLED
            for (int64_t t = thread / kLanes; t < n_kept; t += at_a_time) score(t, thread % kLanes, rows + t * n);
        }
        RANKSVM_PHASE(thread) {
            RANKSVM_ROLLED
            for (int64_t t = thread / kLanes; t < n_rows; t += at_a_time) {
                const double slope = work(thread % kLanes, first + t, partners[t], FromFirst{products, first},
                                          FromFirst{beside, first}, sums[thread].of_loss);
                if (thread % kLanes == 0) slopes[t] = slope;
            }
        }
        RANKSVM_PHASE(thread) {
            const TaskRows<Real> of_task = {X, rows, first, n_kept, n_rows};
            const int part = thread / group;
            RANKSVM_ROLLED
            for (int64_t begin = 0; begin < n; begin += kFeaturesAtOnce * group)
                add_features_from<kFeaturesAtOnce>(begin, of_task, slopes, thread % group, group, part, n_groups,
                                                   columns + part * n);
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
    RANKSVM_PHASE(thread) {
        for (int c = 0; c < kLossColumns; ++c) block.shared[c * block.n_threads + thread] = sums[thread].of_loss[c];
    }
    add_threads(block, kLossColumns, out);
}

}  // namespace ranksvm::device

#endif
