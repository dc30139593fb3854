// Rows as codes of one byte: the product with weights is a look-up in the table of each column's levels, the transposed one a
// histogram over them.
#ifndef RANKSVM_CODED_HPP
#define RANKSVM_CODED_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "coded_loops.hpp"
#include "portable.hpp"

namespace ranksvm::RANKSVM_VARIANT {

// Number of rows that are looked up together, and of partial histograms of cells, so that an addition need not wait for the
// one before.
constexpr int kRowsTogether = 4;
constexpr int kPartialSums = 4;
// Tables of this many numbers stay in the nearest cache while they are used for this many rows. (136 columns of 33 levels, one
// core of an EPYC with 32 KiB: 0.36 ns a code for a look-up and 0.66 for an addition, 0.37 and 0.71 without tiles, and 0.61 and
// 0.81 if entries are read from the columns.)
constexpr int64_t kTileEntries = 2048;
constexpr int64_t kTileRows = 256;

RANKSVM_INLINE const uint8_t *codes_of(const CodedColumns &own, const uint8_t *codes, const int64_t *rows, int64_t position) {
    return codes + (rows ? rows[position] : position) * own.n_columns;
}

RANKSVM_INLINE void coded_values(const CodedColumns &own, const double *w, double *table) {
    for (int64_t c = 0; c < own.n_columns; ++c) {
        const CodedColumn &column = own.columns[c];
        const LevelAxis &a = column.first, &b = column.second;
        const double *scales = own.scales + column.variable, *weights = w + column.variable;
        double *values = table + column.entry;
        if (!column.is_pair) {
            values[0] = 0.0;
            for (int64_t k = 1; k < a.levels(); ++k)
                values[k] = scales[k - 1] * weights[k - 1] + (k <= a.steps ? values[k - 1] : 0.0);
            continue;
        }
        const int64_t width = b.levels(), n = b.variables();
        std::fill_n(values, width, 0.0);
        for (int64_t i = 1; i < a.levels(); ++i) {
            double *row = values + i * width;
            row[0] = 0.0;
            for (int64_t j = 1; j < width; ++j) {
                const int64_t v = (i - 1) * n + j - 1;
                row[j] = scales[v] * weights[v] + (j <= b.steps ? row[j - 1] : 0.0);
            }
        }
        for (int64_t i = 2; i <= a.steps; ++i)
            for (int64_t j = 1; j < width; ++j) values[i * width + j] += values[(i - 1) * width + j];
    }
}

RANKSVM_INLINE void coded_gather_sums(const CodedColumns &own, double *table, double *total) {
    for (int64_t c = 0; c < own.n_columns; ++c) {
        const CodedColumn &column = own.columns[c];
        const LevelAxis &a = column.first, &b = column.second;
        const double *scales = own.scales + column.variable;
        double *sums = table + column.entry, *out = total + column.variable;
        if (!column.is_pair) {
            for (int64_t k = a.steps - 1; k > 0; --k) sums[k] += sums[k + 1];
            for (int64_t k = 1; k < a.levels(); ++k) out[k - 1] += scales[k - 1] * sums[k];
            continue;
        }
        const int64_t width = b.levels(), n = b.variables();
        for (int64_t i = a.steps - 1; i > 0; --i)
            for (int64_t j = 1; j < width; ++j) sums[i * width + j] += sums[(i + 1) * width + j];
        for (int64_t i = 1; i < a.levels(); ++i) {
            double *row = sums + i * width;
            for (int64_t j = b.steps - 1; j > 0; --j) row[j] += row[j + 1];
            for (int64_t j = 1; j < width; ++j) {
                const int64_t v = (i - 1) * n + j - 1;
                out[v] += scales[v] * row[j];
            }
        }
    }
}

// Calls `work(first row, end, first column, end)` for tiles of rows and columns.
template <class Work>
RANKSVM_INLINE void each_tile(const CodedColumns &own, int64_t start, int64_t stop, Work work) {
    for (int64_t begin = start; begin < stop; begin += kTileRows) {
        const int64_t end = std::min(begin + kTileRows, stop);
        for (int64_t first = 0, beyond; first < own.n_columns; first = beyond) {
            beyond = first + 1;
            while (beyond < own.n_columns && own.entries[beyond + 1] - own.entries[first] <= kTileEntries) ++beyond;
            work(begin, end, first, beyond);
        }
    }
}

RANKSVM_INLINE void coded_look_up(const CodedColumns &own, const uint8_t *codes, const int64_t *rows, int64_t start,
                                  int64_t stop, const double *table, double *out_range) {
    const int64_t last = stop - 1;
    const std::int32_t *entries = own.entries;
    each_tile(own, start, stop, [&](int64_t begin, int64_t end, int64_t first, int64_t beyond) {
        for (int64_t t = begin; t < end; t += kRowsTogether) {
            const uint8_t *at[kRowsTogether];
            double sums[kRowsTogether] = {};
            for (int r = 0; r < kRowsTogether; ++r) at[r] = codes_of(own, codes, rows, std::min(t + r, last));
            for (int64_t c = first; c < beyond; ++c) {
                const double *values = table + entries[c];
                for (int r = 0; r < kRowsTogether; ++r) sums[r] += values[at[r][c]];
            }
            for (int64_t r = 0; r < std::min<int64_t>(kRowsTogether, end - t); ++r) out_range[t - start + r] += sums[r];
        }
    });
}

RANKSVM_INLINE void coded_add_up(const CodedColumns &own, const uint8_t *codes, const int64_t *rows, int64_t start, int64_t stop,
                                 const double *u_range, double *RANKSVM_RESTRICT sums) {
    const std::int32_t *entries = own.entries;
    each_tile(own, start, stop, [&](int64_t begin, int64_t end, int64_t first, int64_t beyond) {
        for (int64_t t = begin; t < end; ++t) {
            const double u = u_range[t - start];
            if (u == 0.0) continue;
            const uint8_t *at = codes_of(own, codes, rows, t);
            for (int64_t c = first; c < beyond; ++c) sums[entries[c] + at[c]] += u;
        }
    });
}

// Calls `put(variable)` for each variable of a feature that is 1 at a level.
template <class Put>
RANKSVM_INLINE void each_variable(const LevelAxis &axis, int64_t level, Put put) {
    if (level > axis.steps) return put(level - 1);
    for (int64_t k = 0; k < level; ++k) put(k);
}

template <class Out>
RANKSVM_INLINE void coded_fill(const CodedColumns &own, const uint8_t *codes, const int64_t *rows, int64_t start, int64_t stop,
                               Out *out_range, int64_t n_out, int64_t offset) {
    for (int64_t t = start; t < stop; ++t) {
        const uint8_t *at = codes_of(own, codes, rows, t);
        Out *out = out_range + (t - start) * n_out + offset;
        for (int64_t c = 0; c < own.n_columns; ++c) {
            const CodedColumn &column = own.columns[c];
            const double *scales = own.scales;
            const int64_t first = column.variable;
            if (!column.is_pair) {
                each_variable(column.first, at[c], [&](int64_t k) { out[first + k] = static_cast<Out>(scales[first + k]); });
                continue;
            }
            const int64_t width = column.second.levels(), n = column.second.variables();
            each_variable(column.first, at[c] / width, [&](int64_t i) {
                each_variable(column.second, at[c] % width, [&](int64_t j) {
                    const int64_t v = first + i * n + j;
                    out[v] = static_cast<Out>(scales[v]);
                });
            });
        }
    }
}

RANKSVM_INLINE void coded_cells(const uint8_t *first, const uint8_t *second, int64_t n_rows, const double *u, int64_t n_levels,
                                double *sums) {
    const int64_t n_cells = n_levels * n_levels;
    Vector<double> memory(static_cast<std::size_t>(kPartialSums * n_cells), 0.0);
    double *RANKSVM_RESTRICT partial = memory.data();
    int64_t t = 0;
    for (; t + kPartialSums <= n_rows; t += kPartialSums)
        for (int r = 0; r < kPartialSums; ++r) partial[r * n_cells + first[t + r] * n_levels + second[t + r]] += u[t + r];
    for (; t < n_rows; ++t) partial[first[t] * n_levels + second[t]] += u[t];
    for (int r = 0; r < kPartialSums; ++r)
        for (int64_t cell = 0; cell < n_cells; ++cell) sums[cell] += partial[r * n_cells + cell];
}

// Number of values of one feature whose levels are found together, so that comparisons with a cut fill vectors.
constexpr int64_t kLevelRows = 64;
// With more cuts, a search in halves takes less time than comparisons with all of them.
constexpr int64_t kComparedCuts = 48;

// The smallest number of the type that is not below a cut: a value of the type is at least this number if, and only if, it is
// at least the cut.
template <class Real>
RANKSVM_INLINE Real not_below(double cut) {
    Real rounded = static_cast<Real>(cut);
    if (static_cast<double>(rounded) < cut) rounded = std::nextafter(rounded, std::numeric_limits<Real>::infinity());
    return rounded;
}

// Binary search without branches: the number of cuts that are at most x.
template <class Real>
RANKSVM_INLINE int64_t cuts_below(const Real *cuts, int64_t n, Real x) {
    const Real *at = cuts;
    while (n > 1) {
        const int64_t half = n / 2;
        at += at[half - 1] <= x ? half : 0;
        n -= half;
    }
    return (at - cuts) + (n == 1 && *at <= x ? 1 : 0);
}

template <class Real>
RANKSVM_INLINE bool feature_levels(const Real *X, int64_t n_features, const double *cuts, const int64_t *pointers, int64_t start,
                                   int64_t stop, uint8_t *codes) {
    using Count = typename std::conditional<sizeof(Real) == 4, std::int32_t, int64_t>::type;
    Vector<Real> rounded(static_cast<std::size_t>(pointers[n_features]));
    for (int64_t k = 0; k < pointers[n_features]; ++k) rounded[static_cast<std::size_t>(k)] = not_below<Real>(cuts[k]);
    Real values[kLevelRows];
    Count counts[kLevelRows];
    Real spoilt = 0;  // x * 0 is 0 for finite x only
    for (int64_t first = start; first < stop; first += kLevelRows) {
        const int64_t n_rows = std::min(kLevelRows, stop - first);
        for (int64_t j = 0; j < n_features; ++j) {
            const Real *x = X + first * n_features + j;
            for (int64_t t = 0; t < n_rows; ++t) values[t] = x[t * n_features];
            for (int64_t t = n_rows; t < kLevelRows; ++t) values[t] = 0;
            const Real *own = rounded.data() + pointers[j];
            const int64_t n = pointers[j + 1] - pointers[j];
            if (n <= kComparedCuts) {
                for (int64_t t = 0; t < kLevelRows; ++t) counts[t] = 0;
                for (int64_t k = 0; k < n; ++k)
                    for (int64_t t = 0; t < kLevelRows; ++t) counts[t] += own[k] <= values[t] ? 1 : 0;
            } else {
                for (int64_t t = 0; t < kLevelRows; ++t) counts[t] = static_cast<Count>(cuts_below(own, n, values[t]));
            }
            Real sum = 0;
            for (int64_t t = 0; t < kLevelRows; ++t) sum += values[t] * Real(0);
            spoilt += sum;
            if (sum != Real(0))
                for (int64_t t = 0; t < n_rows; ++t)
                    if (values[t] != values[t]) counts[t] = static_cast<Count>(n + 1);
            uint8_t *out = codes + first * n_features + j;
            for (int64_t t = 0; t < n_rows; ++t) out[t * n_features] = static_cast<uint8_t>(counts[t]);
        }
    }
    return spoilt == Real(0);
}

}  // namespace ranksvm::RANKSVM_VARIANT

#endif
