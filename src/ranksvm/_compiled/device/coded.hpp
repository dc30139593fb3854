// Products with rows that are stored as one-byte codes of the levels of features: each code is looked up in its column's table.
#ifndef RANKSVM_DEVICE_CODED_HPP
#define RANKSVM_DEVICE_CODED_HPP

#include "portable.hpp"
#include "rows.hpp"

namespace ranksvm::device {

// Row-major codes of n columns; position t has the row rows[t] (null: t). The values of column c are the entries begin[c] to
// begin[c + 1] of a table.
struct CodedRows {
    const unsigned char *codes;
    const int32_t *rows;
    int64_t n;
    const int64_t *begin;

    RANKSVM_DEVICE const unsigned char *row(int64_t position) const {
        return codes + n * (rows != nullptr ? rows[position] : position);
    }
};

// Adds to out[t] the sum of the table's values for the codes of row t. The values of a few columns at a time are in shared
// memory, at most `capacity` values, which is enough for any one column.
RANKSVM_DEVICE void add_values(const CodedRows &X, int64_t n_rows, const double *table, int64_t capacity, double *out) {
    const Block block = this_block();
    const int64_t n_teams = block.n_threads / kLanes;
    for (int64_t first = 0, last; first < X.n; first = last) {
        const int64_t from = X.begin[first];
        for (last = first + 1; last < X.n && X.begin[last + 1] - from <= capacity;) ++last;
        RANKSVM_PHASE(thread) {
            for (int64_t k = thread; k < X.begin[last] - from; k += block.n_threads) block.shared[k] = table[from + k];
        }
        RANKSVM_PHASE(thread) {
            const double *values = block.shared;
            const int64_t *begin = X.begin;
            for (int64_t t = block.index * n_teams + thread / kLanes; t < n_rows; t += block.count * n_teams) {
                const unsigned char *codes = X.row(t);
                const double sum = sum_by_lanes(thread % kLanes, first, last,
                                                [=](int64_t c) { return values[begin[c] - from + codes[c]]; });
                if (thread % kLanes == 0) out[t] += sum;
            }
        }
    }
}

// The rows are divided into n_parts parts. parts[part, e] = the sum of u over the rows of that part whose code stands for entry
// e of the table. A thread adds up one column of one part, in shared memory. Only `width` threads of a block work, each with
// room for `most` sums.
RANKSVM_DEVICE void sum_by_code(const CodedRows &X, int64_t n_rows, const double *u, int64_t n_parts, int64_t width,
                                int64_t most, double *parts) {
    const Block block = this_block();
    const int64_t share = (n_rows + n_parts - 1) / n_parts;
    RANKSVM_PHASE(thread) {
        double *sums = block.shared + thread;
        for (int64_t k = block.index * width + thread; thread < width && k < X.n * n_parts; k += block.count * width) {
            const int64_t part = k / X.n, c = k % X.n;
            const int64_t first = part * share, last = first + share < n_rows ? first + share : n_rows;
            for (int64_t e = 0; e < most; ++e) sums[e * width] = 0.0;
            for (int64_t t = first; t < last; t += kRowsAtOnce) {
                double added[kRowsAtOnce];
                int places[kRowsAtOnce];
                for (int each = 0; each < kRowsAtOnce; ++each) {
                    const int64_t own = t + each < last ? t + each : last - 1;
                    added[each] = t + each < last ? u[own] : 0.0;
                    places[each] = static_cast<int>(width) * X.row(own)[c];
                }
                for (int each = 0; each < kRowsAtOnce; ++each) sums[places[each]] += added[each];
            }
            double *out = parts + part * X.begin[X.n] + X.begin[c];
            for (int64_t e = 0; e < X.begin[c + 1] - X.begin[c]; ++e) out[e] = sums[e * width];
        }
    }
}

}  // namespace ranksvm::device

#endif
