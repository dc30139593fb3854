// The Huberized hinge with a margin of its own for each pair. The pairs of a query form a block, which has a row for each
// preferred document and a column for each other document.
#ifndef RANKSVM_BLOCKS_HPP
#define RANKSVM_BLOCKS_HPP

#include <algorithm>
#include <cstdint>

#include "blocks_loops.hpp"
#include "portable.hpp"

namespace ranksvm::RANKSVM_VARIANT {

using std::int64_t;

// Copies the values of some documents, in the order of the rows or columns of a block.
struct Gathered {
    Vector<double> memory;
    // values[0] belongs to the position `origin`
    const double *take(const double *values, int64_t origin, const int64_t *positions, int64_t n) {
        if (static_cast<int64_t>(memory.size()) < n) memory.resize(n);
        for (int64_t t = 0; t < n; ++t) memory[t] = values[positions[t] - origin];
        return memory.data();
    }
};

// Returns the losses of the pairs of one row. Column by column, minus the derivative of each loss is added to `pull`, and 1 to
// `bend` if the loss is curved.
static double shifted_row(const double *RANKSVM_RESTRICT scores, const double *RANKSVM_RESTRICT target, int64_t n,
                          double score, double raise, double width, double *RANKSVM_RESTRICT pull,
                          double *RANKSVM_RESTRICT bend, double *row_pull, double *row_bend) {
    double value = 0.0, pulled = 0.0, bent = 0.0;
    const double inverse = 1.0 / width;
    for (int64_t j = 0; j < n; ++j) {
        const double h = 1.0 - (score - scores[j]) + raise * target[j];
        const double scaled = h * inverse;
        const double part = scaled < 0.0 ? 0.0 : (scaled > 1.0 ? 1.0 : scaled);
        const double bends = part == scaled ? 1.0 : 0.0;
        value += part * (h - 0.5 * width * part);
        pulled += part;
        bent += bends;
        pull[j] += part;
        bend[j] += bends;
    }
    *row_pull = pulled;
    *row_bend = bent;
    return value;
}

// Value of the losses of a range of queries; writes the gradient with respect to the scores and, for each document, the number
// of its pairs whose loss is curved.
static double shifted_hinge(const Blocks &blocks, int64_t first_query, int64_t last_query, const double *scores,
                            const ShiftedHinge &loss, double *counts, double *gradient_range) {
    const int64_t origin = blocks.pointers[first_query], end = blocks.pointers[last_query];
    std::fill_n(gradient_range, end - origin, 0.0);
    std::fill_n(counts + origin, end - origin, 0.0);
    double value = 0.0;
    Gathered others;
    Vector<double> pull, bend;
    for (int64_t q = first_query; q < last_query; ++q) {
        const int64_t n_columns = blocks.columns[q + 1] - blocks.columns[q];
        const int64_t *other = blocks.other + blocks.columns[q];
        const double *s = others.take(scores, 0, other, n_columns);
        pull.assign(n_columns, 0.0);
        bend.assign(n_columns, 0.0);
        const double *target = loss.target + blocks.offsets[q];
        for (int64_t row = blocks.rows[q]; row < blocks.rows[q + 1]; ++row, target += n_columns) {
            const int64_t i = blocks.preferred[row], from = blocks.first[row];
            double row_pull, row_bend;
            value += shifted_row(s + from, target + from, n_columns - from, scores[i], loss.raise, loss.width,
                                 pull.data() + from, bend.data() + from, &row_pull, &row_bend);
            gradient_range[i - origin] -= row_pull;
            counts[i] += row_bend;
        }
        for (int64_t t = 0; t < n_columns; ++t) {
            gradient_range[other[t] - origin] += pull[t];
            counts[other[t]] += bend[t];
        }
    }
    return value;
}

static double flow_of_row(const double *RANKSVM_RESTRICT scores, const double *RANKSVM_RESTRICT target, int64_t n,
                          double score, double raise, double width, double own, const double *RANKSVM_RESTRICT v,
                          double *RANKSVM_RESTRICT out) {
    double total = 0.0;
    const double inverse = 1.0 / width;
    for (int64_t j = 0; j < n; ++j) {
        const double scaled = (1.0 - (score - scores[j]) + raise * target[j]) * inverse;
        const double flow = scaled >= 0.0 && scaled <= 1.0 ? own - v[j] : 0.0;
        total += flow;
        out[j] -= flow;
    }
    return total;
}

// L v, where L is the Laplacian of the graph of the pairs whose loss is curved at these scores.
static void shifted_laplacian(const Blocks &blocks, int64_t first_query, int64_t last_query, const double *scores,
                              const ShiftedHinge &loss, const double *v_range, double *out_range) {
    const int64_t origin = blocks.pointers[first_query];
    std::fill_n(out_range, blocks.pointers[last_query] - origin, 0.0);
    Gathered others, values;
    Vector<double> out;
    for (int64_t q = first_query; q < last_query; ++q) {
        const int64_t n_columns = blocks.columns[q + 1] - blocks.columns[q];
        const int64_t *other = blocks.other + blocks.columns[q];
        const double *s = others.take(scores, 0, other, n_columns), *v = values.take(v_range, origin, other, n_columns);
        out.assign(n_columns, 0.0);
        const double *target = loss.target + blocks.offsets[q];
        for (int64_t row = blocks.rows[q]; row < blocks.rows[q + 1]; ++row, target += n_columns) {
            const int64_t i = blocks.preferred[row], from = blocks.first[row];
            out_range[i - origin] += flow_of_row(s + from, target + from, n_columns - from, scores[i], loss.raise,
                                                 loss.width, v_range[i - origin], v + from, out.data() + from);
        }
        for (int64_t t = 0; t < n_columns; ++t) out_range[other[t] - origin] += out[t];
    }
}

// The values of `of_pair` at h / d for each pair of one query; 0 for the entries that are not pairs.
template <class OfPair>
RANKSVM_INLINE void fill_block(const Blocks &blocks, int64_t q, const double *scores, const ShiftedHinge &loss,
                               OfPair of_pair, double *out) {
    const int64_t n_columns = blocks.columns[q + 1] - blocks.columns[q];
    const double inverse = 1.0 / loss.width;
    Gathered others;
    const double *s = others.take(scores, 0, blocks.other + blocks.columns[q], n_columns);
    const double *target = loss.target + blocks.offsets[q];
    for (int64_t row = blocks.rows[q]; row < blocks.rows[q + 1]; ++row, target += n_columns, out += n_columns) {
        const double score = scores[blocks.preferred[row]];
        std::fill_n(out, blocks.first[row], 0.0);
        for (int64_t j = blocks.first[row]; j < n_columns; ++j)
            out[j] = of_pair((1.0 - (score - s[j]) + loss.raise * target[j]) * inverse);
    }
}

// Minus the derivative of the loss with respect to the margin: clip(h / d, 0, 1).
static void shifted_pulls(const Blocks &blocks, int64_t q, const double *scores, const ShiftedHinge &loss, double *out) {
    fill_block(blocks, q, scores, loss, [](double scaled) { return std::min(std::max(scaled, 0.0), 1.0); }, out);
}

// 1 for each pair whose loss is curved, else 0.
static void shifted_bends(const Blocks &blocks, int64_t q, const double *scores, const ShiftedHinge &loss, double *out) {
    fill_block(blocks, q, scores, loss, [](double scaled) { return scaled >= 0.0 && scaled <= 1.0 ? 1.0 : 0.0; }, out);
}

}  // namespace ranksvm::RANKSVM_VARIANT

#endif
