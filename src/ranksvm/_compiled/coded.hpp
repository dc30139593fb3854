// X stored as one-byte codes of the levels of features: the product with weights looks up each code in a table of its column's
// levels, and the transposed product adds up a sum for each level.
#ifndef RANKSVM_CODED_HPP
#define RANKSVM_CODED_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "coded_loops.hpp"
#include "portable.hpp"

namespace ranksvm::RANKSVM_VARIANT {

// kRowsTogether: number of rows that are looked up together. kPartialSums: number of partial sums that are added to by turns.
// With several, an addition need not wait for the one before.
constexpr int kRowsTogether = 4;
constexpr int kPartialSums = 4;
// Tables with kTileEntries numbers in total stay in the nearest cache while they are used for kTileRows rows. (A look-up of 136
// columns of 33 levels takes 0.36 ns a code on one core of an EPYC whose nearest cache has 32 KiB, 0.37 without tiles, and 0.61
// if the first entries are read from `columns` instead of `places`.)
constexpr int64_t kTileEntries = 2048;
constexpr int64_t kTileRows = 256;
// Sums are added up for this many columns and rows at a time: the addresses of the tables stay in registers, and the codes in
// the nearest cache. (Products with Hessians of these columns take 0.9 of the time that they would take with kTileRows rows and
// kTileEntries numbers at a time, as for look-ups.)
constexpr int kAddedColumns = 6;
constexpr int64_t kAddedRows = 64;
// A cell is a combination of the levels of two columns. The cells are found for kPairedRows rows at a time, in vectors of
// kPairsTogether pairs of columns.
constexpr int64_t kPairedRows = 128, kPairsTogether = 8;
// Number of different codes of one byte.
constexpr int64_t kCodes = 256;

RANKSVM_INLINE const uint8_t *codes_of(const CodedColumns &own, const uint8_t *codes, const int64_t *rows, int64_t position) {
    return codes + (rows ? rows[position] : position) * own.n_columns;
}

// Writes the value of every level (or cell) of a column under the weights w to `values`.
RANKSVM_INLINE void column_values(const CodedColumns &own, int64_t c, const double *w, double *values) {
    const CodedColumn &column = own.columns[c];
    const LevelAxis &a = column.first, &b = column.second;
    const double *scales = own.scales + column.variable, *weights = w + column.variable;
    if (!column.is_pair) {
        values[0] = 0.0;
        for (int64_t k = 1; k < a.levels(); ++k)
            values[k] = scales[k - 1] * weights[k - 1] + (k <= a.steps ? values[k - 1] : 0.0);
        return;
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

// The transpose of column_values: maps `sums`, which has the sum over the rows of each level of a column, to the column's
// variables, and adds the result to `total`. Overwrites `sums`.
RANKSVM_INLINE void gather_column_sums(const CodedColumns &own, int64_t c, double *sums, double *total) {
    const CodedColumn &column = own.columns[c];
    const LevelAxis &a = column.first, &b = column.second;
    const double *scales = own.scales + column.variable;
    double *out = total + column.variable;
    if (!column.is_pair) {
        for (int64_t k = a.steps - 1; k > 0; --k) sums[k] += sums[k + 1];
        for (int64_t k = 1; k < a.levels(); ++k) out[k - 1] += scales[k - 1] * sums[k];
        return;
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

// Calls `alone(column)` for each column that is looked up by itself, and `both(column, its number of levels, the next column's
// number of levels)` for each column that is looked up together with the next one.
template <class Alone, class Both>
RANKSVM_INLINE void each_place(const CodedColumns &own, Alone alone, Both both) {
    for (int64_t i = 0; i < own.n_tiles; ++i) {
        const ColumnTile &tile = own.tiles[i];
        if (!tile.paired)
            for (int64_t c = tile.first; c < tile.beyond; ++c) alone(c);
        else
            for (int64_t c = tile.first; c < tile.beyond; c += 2)
                both(c, own.columns[c].first.levels(), own.columns[c + 1].first.levels());
    }
}

RANKSVM_INLINE void coded_values(const CodedColumns &own, const double *w, double *table) {
    double first[kCodes], second[kCodes];
    each_place(
        own, [&](int64_t c) { column_values(own, c, w, table + own.places[c]); },
        [&](int64_t c, int64_t n_first, int64_t n_second) {
            column_values(own, c, w, first);
            column_values(own, c + 1, w, second);
            double *cells = table + own.places[c];
            for (int64_t j = 0; j < n_second; ++j)
                for (int64_t i = 0; i < n_first; ++i) cells[j * n_first + i] = first[i] + second[j];
        });
}

RANKSVM_INLINE void coded_gather_sums(const CodedColumns &own, double *table, double *total) {
    double first[kCodes], second[kCodes];
    each_place(
        own, [&](int64_t c) { gather_column_sums(own, c, table + own.places[c], total); },
        [&](int64_t c, int64_t n_first, int64_t n_second) {
            const double *cells = table + own.places[c];
            std::fill_n(first, n_first, 0.0);
            for (int64_t j = 0; j < n_second; ++j) {
                double sum = 0.0;
                for (int64_t i = 0; i < n_first; ++i) {
                    first[i] += cells[j * n_first + i];
                    sum += cells[j * n_first + i];
                }
                second[j] = sum;
            }
            gather_column_sums(own, c, first, total);
            gather_column_sums(own, c + 1, second, total);
        });
}

#if defined(__GNUC__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
typedef std::uint16_t Cells __attribute__((vector_size(2 * kPairsTogether), aligned(1), may_alias));
RANKSVM_INLINE Cells cells_at(const void *p) { return *static_cast<const Cells *>(p); }
#endif

// Finds the cells of `n` pairs of columns of a tile, in one row.
RANKSVM_INLINE void row_cells(const uint8_t *codes, const std::uint16_t *bases, const std::uint16_t *factors, int64_t n,
                              std::uint16_t *cells) {
    int64_t k = 0;
#if defined(__GNUC__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    while (n >= kPairsTogether) {
        const Cells both = cells_at(codes + 2 * k);
        const Cells found = cells_at(bases + k) + (both & 255) + (both >> 8) * cells_at(factors + k);
        *reinterpret_cast<Cells *>(cells + k) = found;
        if (k + kPairsTogether == n) return;
        k = std::min(k + kPairsTogether, n - kPairsTogether);  // the last ones may overlap those before
    }
#endif
    for (; k < n; ++k) cells[k] = static_cast<std::uint16_t>(bases[k] + codes[2 * k] + factors[k] * codes[2 * k + 1]);
}

// Calls `work(row, cells of its pairs, their number)` for the rows of a tile of pairs. The number is a constant, so that loops
// over the pairs can be unrolled. Then they take half the time, because a processor predicts separately for each instruction
// which earlier instruction it has to wait for.
template <int n, class Work>
RANKSVM_INLINE void each_row_of_pairs(const CodedColumns &own, const ColumnTile &tile, const uint8_t *codes,
                                      const int64_t *rows, int64_t start, int64_t stop, Work work) {
    if constexpr (n > 1)
        if (tile.beyond - tile.first < 2 * n)
            return each_row_of_pairs<n - 1>(own, tile, codes, rows, start, stop, work);
    std::uint16_t cells[kPairedRows * n];
    const std::uint16_t *bases = own.bases + tile.first / 2, *factors = own.factors + tile.first / 2;
    for (int64_t begin = start; begin < stop; begin += kPairedRows) {
        const int64_t end = std::min(begin + kPairedRows, stop);
        for (int64_t t = begin; t < end; ++t)
            row_cells(codes_of(own, codes, rows, t) + tile.first, bases, factors, n, cells + (t - begin) * n);
        for (int64_t t = begin; t < end; ++t) work(t, cells + (t - begin) * n, std::integral_constant<int, n>());
    }
}

// Calls `work(first row, end, first column, end)` for rows and columns of a tile whose tables stay in the nearest cache.
template <class Work>
RANKSVM_INLINE void each_block(const CodedColumns &own, const ColumnTile &tile, int64_t start, int64_t stop, Work work) {
    for (int64_t begin = start; begin < stop; begin += kTileRows) {
        const int64_t end = std::min(begin + kTileRows, stop);
        for (int64_t first = tile.first, beyond; first < tile.beyond; first = beyond) {
            beyond = first + 1;
            while (beyond < tile.beyond && own.places[beyond + 1] - own.places[first] <= kTileEntries) ++beyond;
            work(begin, end, first, beyond);
        }
    }
}

RANKSVM_INLINE void look_up_columns(const CodedColumns &own, const ColumnTile &tile, const uint8_t *codes, const int64_t *rows,
                                    int64_t start, int64_t stop, const double *table, double *out_range) {
    const int64_t last = stop - 1;
    const std::int32_t *places = own.places;
    each_block(own, tile, start, stop, [&](int64_t begin, int64_t end, int64_t first, int64_t beyond) {
        for (int64_t t = begin; t < end; t += kRowsTogether) {
            const uint8_t *at[kRowsTogether];
            double sums[kRowsTogether] = {};
            for (int r = 0; r < kRowsTogether; ++r) at[r] = codes_of(own, codes, rows, std::min(t + r, last));
            for (int64_t c = first; c < beyond; ++c) {
                const double *values = table + places[c];
                for (int r = 0; r < kRowsTogether; ++r) sums[r] += values[at[r][c]];
            }
            for (int64_t r = 0; r < std::min<int64_t>(kRowsTogether, end - t); ++r) out_range[t - start + r] += sums[r];
        }
    });
}

RANKSVM_INLINE void coded_look_up(const CodedColumns &own, const uint8_t *codes, const int64_t *rows, int64_t start,
                                  int64_t stop, const double *table, double *out_range) {
    for (int64_t i = 0; i < own.n_tiles; ++i) {
        const ColumnTile &tile = own.tiles[i];
        if (!tile.paired) {
            look_up_columns(own, tile, codes, rows, start, stop, table, out_range);
            continue;
        }
        const double *values = table + own.places[tile.first];
        each_row_of_pairs<kTilePairs>(own, tile, codes, rows, start, stop, [&](int64_t t, const std::uint16_t *cells, auto n) {
            double sums[kPartialSums] = {};
#pragma GCC unroll 16
            for (int k = 0; k < n; ++k) sums[k % kPartialSums] += values[cells[k]];
            out_range[t - start] += (sums[0] + sums[1]) + (sums[2] + sums[3]);
        });
    }
}

// Adds u to the tables of the `n` columns from `first` on; the addresses of these tables stay in registers.
template <int n>
RANKSVM_INLINE void add_up_columns(const CodedColumns &own, const uint8_t *codes, const int64_t *rows, int64_t begin,
                                   int64_t end, int64_t first, const double *u, double *sums) {
    double *tables[n];
    for (int k = 0; k < n; ++k) tables[k] = sums + own.places[first + k];
    for (int64_t t = begin; t < end; ++t) {
        const double value = u[t - begin];
        if (value == 0.0) continue;
        const uint8_t *at = codes_of(own, codes, rows, t) + first;
        for (int k = 0; k < n; ++k) tables[k][at[k]] += value;
    }
}

RANKSVM_INLINE void coded_add_up(const CodedColumns &own, const uint8_t *codes, const int64_t *rows, int64_t start,
                                 int64_t stop, const double *u_range, double *sums) {
    for (int64_t i = 0; i < own.n_tiles; ++i) {
        const ColumnTile &tile = own.tiles[i];
        if (tile.paired) {
            double *table = sums + own.places[tile.first];
            each_row_of_pairs<kTilePairs>(
                own, tile, codes, rows, start, stop, [&](int64_t t, const std::uint16_t *cells, auto n) {
                    const double value = u_range[t - start];
                    if (value == 0.0) return;
#pragma GCC unroll 16
                    for (int k = 0; k < n; ++k) table[cells[k]] += value;
                });
            continue;
        }
        for (int64_t begin = start; begin < stop; begin += kAddedRows) {
            const int64_t end = std::min(begin + kAddedRows, stop);
            const double *u = u_range + (begin - start);
            int64_t c = tile.first;
            for (; c + kAddedColumns <= tile.beyond; c += kAddedColumns)
                add_up_columns<kAddedColumns>(own, codes, rows, begin, end, c, u, sums);
            for (; c + 2 <= tile.beyond; c += 2) add_up_columns<2>(own, codes, rows, begin, end, c, u, sums);
            if (c < tile.beyond) add_up_columns<1>(own, codes, rows, begin, end, c, u, sums);
        }
    }
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

// Whether no code is larger than the largest code of its column.
RANKSVM_INLINE bool codes_within(const uint8_t *codes, int64_t n_rows, int64_t n_columns, const uint8_t *lasts) {
    uint8_t beyond = 0;
    for (int64_t t = 0; t < n_rows; ++t) {
        const uint8_t *at = codes + t * n_columns;
        for (int64_t c = 0; c < n_columns; ++c) beyond = static_cast<uint8_t>(beyond | (at[c] > lasts[c] ? 1 : 0));
    }
    return beyond == 0;
}

// Adds the number of rows at each level to `counts`. The counts of column c begin at pointers[c]; all codes must be levels of
// their column.
RANKSVM_INLINE void coded_counts(const uint8_t *codes, int64_t n_columns, int64_t start, int64_t stop, const int64_t *pointers,
                                 int64_t *counts) {
    for (int64_t begin = start; begin < stop; begin += kAddedRows) {
        const int64_t end = std::min(begin + kAddedRows, stop);
        int64_t c = 0;
        for (; c + 4 <= n_columns; c += 4) {
            int64_t *tables[4];
            for (int k = 0; k < 4; ++k) tables[k] = counts + pointers[c + k];
            for (int64_t t = begin; t < end; ++t)
                for (int k = 0; k < 4; ++k) ++tables[k][codes[t * n_columns + c + k]];
        }
        for (; c < n_columns; ++c)
            for (int64_t t = begin; t < end; ++t) ++counts[pointers[c] + codes[t * n_columns + c]];
    }
}

// Number of values of one feature whose levels are found together, so that comparisons with a cut fill vectors.
constexpr int64_t kLevelRows = 64;
// With more cuts, a binary search takes less time than comparisons with all of them.
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

// The levels of the values of one feature in up to kLevelRows rows, by comparisons with all cuts or a binary search. Returns
// whether the values are finite.
template <class Real>
RANKSVM_INLINE bool column_levels(const Real *x, int64_t n_rows, int64_t stride, const Real *cuts, int64_t n, uint8_t *codes) {
    using Count = typename std::conditional<sizeof(Real) == 4, std::int32_t, int64_t>::type;
    Real values[kLevelRows];
    Count counts[kLevelRows];
    for (int64_t t = 0; t < n_rows; ++t) values[t] = x[t * stride];
    for (int64_t t = n_rows; t < kLevelRows; ++t) values[t] = 0;
    if (n <= kComparedCuts) {
        for (int64_t t = 0; t < kLevelRows; ++t) counts[t] = 0;
        for (int64_t k = 0; k < n; ++k)
            for (int64_t t = 0; t < kLevelRows; ++t) counts[t] += cuts[k] <= values[t] ? 1 : 0;
    } else {
        for (int64_t t = 0; t < kLevelRows; ++t) counts[t] = static_cast<Count>(cuts_below(cuts, n, values[t]));
    }
    Real sum = 0;  // x * 0 is 0 for finite x only
    for (int64_t t = 0; t < kLevelRows; ++t) sum += values[t] * Real(0);
    if (sum != Real(0))
        for (int64_t t = 0; t < n_rows; ++t)
            if (values[t] != values[t]) counts[t] = static_cast<Count>(n + 1);
    for (int64_t t = 0; t < n_rows; ++t) codes[t * stride] = static_cast<uint8_t>(counts[t]);
    return sum == Real(0);
}

#if defined(__AVX512F__) && defined(__GNUC__) && !defined(__clang__)
// A binary search over cuts in two registers, for kSquare rows of kSquare features at a time. The values are transposed in
// registers.
constexpr int64_t kSquare = 16, kSearchedCuts = 2 * kSquare - 1;
typedef std::int32_t SingleBits __attribute__((vector_size(64), aligned(4), may_alias));

// One step of a transposition: for rows `distance` apart, exchanges the entries that are `distance` apart.
template <int distance>
RANKSVM_INLINE void exchange(SingleLanes *square, const SingleBits &low, const SingleBits &high) {
#pragma GCC unroll 8
    for (int k = 0; k < kSquare / 2; ++k) {
        const int i = 2 * (k & ~(distance - 1)) + (k & (distance - 1));
        const SingleLanes a = square[i], b = square[i + distance];
        square[i] = __builtin_shuffle(a, b, low);
        square[i + distance] = __builtin_shuffle(a, b, high);
    }
}

RANKSVM_INLINE void transpose(SingleLanes *square) {
    exchange<8>(square, SingleBits{0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23},
                SingleBits{8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31});
    exchange<4>(square, SingleBits{0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27},
                SingleBits{4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31});
    exchange<2>(square, SingleBits{0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29},
                SingleBits{2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31});
    exchange<1>(square, SingleBits{0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30},
                SingleBits{1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31});
}

// The number of cuts, of the kSearchedCuts in a table, that are at most each value; 0 for NaN.
RANKSVM_INLINE SingleBits searched(const SingleLanes &v, const float *cuts) {
    const SingleLanes low = single_lanes_at(cuts), high = single_lanes_at(cuts + kSquare);
    SingleBits below = (v >= cuts[kSquare - 1]) & 16;
    below += (v >= __builtin_shuffle(low, high, below + 7)) & 8;
    below += (v >= __builtin_shuffle(low, high, below + 3)) & 4;
    below += (v >= __builtin_shuffle(low, high, below + 1)) & 2;
    below += (v >= __builtin_shuffle(low, high, below)) & 1;
    return below;
}

// Codes of kSquare rows of kSquare features. The table of each feature has kSearchedCuts + 1 numbers: its cuts, then infinity.
// Returns sums that are 0 if all values are finite; the codes are right only then.
RANKSVM_INLINE SingleLanes square_levels(const float *x, int64_t stride, const float *tables, uint8_t *codes) {
    SingleLanes values[kSquare], spoilt = single_lanes_at(x) * 0.0f;
#pragma GCC unroll 16
    for (int t = 0; t < kSquare; ++t) {
        values[t] = single_lanes_at(x + t * stride);
        spoilt += values[t] * 0.0f;
    }
    transpose(values);
    // packed[g] has a number for each row, whose four bytes are the codes of four features
    SingleBits packed[4];
#pragma GCC unroll 4
    for (int g = 0; g < 4; ++g) {
        const float *own = tables + 4 * g * (kSearchedCuts + 1);
        packed[g] = searched(values[4 * g], own);
#pragma GCC unroll 3
        for (int k = 1; k < 4; ++k) packed[g] |= searched(values[4 * g + k], own + k * (kSearchedCuts + 1)) << (8 * k);
    }
    // four numbers of each row side by side: rows 0, 4, 8, 12, then 1, 5, 9, 13, ...
    constexpr SingleBits kLow{0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29};
    constexpr SingleBits kHigh{2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31};
    constexpr SingleBits kLowPairs{0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29};
    constexpr SingleBits kHighPairs{2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31};
    const SingleBits a = __builtin_shuffle(packed[0], packed[1], kLow), b = __builtin_shuffle(packed[2], packed[3], kLow);
    const SingleBits c = __builtin_shuffle(packed[0], packed[1], kHigh), d = __builtin_shuffle(packed[2], packed[3], kHigh);
    const SingleBits rows[4] = {__builtin_shuffle(a, b, kLowPairs), __builtin_shuffle(a, b, kHighPairs),
                                __builtin_shuffle(c, d, kLowPairs), __builtin_shuffle(c, d, kHighPairs)};
    uint8_t bytes[sizeof rows];
    std::memcpy(bytes, rows, sizeof rows);
    for (int t = 0; t < kSquare; ++t)
        std::memcpy(codes + t * stride, bytes + (t % 4) * static_cast<int>(sizeof(SingleBits)) + (t / 4) * kSquare, kSquare);
    return spoilt;
}

// Groups of kSquare features, none of which has more than kSearchedCuts cuts: the first feature of each group, and the tables
// of cuts that `square_levels` takes. The last group may overlap the one before.
struct Squares {
    Vector<int64_t> firsts;
    Vector<float> tables;

    RANKSVM_INLINE_METHOD void add(const float *cuts, const int64_t *pointers, int64_t first) {
        for (int64_t j = first; j < first + kSquare; ++j)
            if (pointers[j + 1] - pointers[j] > kSearchedCuts) return;
        firsts.push_back(first);
        for (int64_t j = first; j < first + kSquare; ++j) {
            const std::size_t end = tables.size() + kSearchedCuts + 1;
            tables.insert(tables.end(), cuts + pointers[j], cuts + pointers[j + 1]);
            tables.resize(end, std::numeric_limits<float>::infinity());
        }
    }

    RANKSVM_INLINE_METHOD Squares(const float *cuts, const int64_t *pointers, int64_t n_features) {
        for (int64_t j = 0; j + kSquare <= n_features; j += kSquare) add(cuts, pointers, j);
        if (n_features > kSquare && n_features % kSquare != 0) add(cuts, pointers, n_features - kSquare);
    }

    // Values in float64 are not searched.
    RANKSVM_INLINE_METHOD Squares(const double *, const int64_t *, int64_t) {}
    RANKSVM_INLINE_METHOD void levels(const double *, int64_t, int64_t, uint8_t *, uint8_t *) const {}

    // The levels of kLevelRows rows in these features; marks the features whose levels it has found. The next `ahead` rows are
    // prefetched: processors do not predict reads that are a row apart.
    RANKSVM_INLINE_METHOD void levels(const float *x, int64_t n_features, int64_t ahead, uint8_t *codes, uint8_t *found) const {
        for (std::size_t g = 0; g < firsts.size(); ++g) {
            const float *own = tables.data() + static_cast<int64_t>(g) * kSquare * (kSearchedCuts + 1);
            for (int64_t t = 0; t < ahead; ++t) RANKSVM_PREFETCH_LATER(x + (kLevelRows + t) * n_features + firsts[g]);
            SingleLanes spoilt = square_levels(x + firsts[g], n_features, own, codes + firsts[g]);
            for (int64_t t = kSquare; t < kLevelRows; t += kSquare)
                spoilt += square_levels(x + t * n_features + firsts[g], n_features, own, codes + t * n_features + firsts[g]);
            float sum = 0.0f;
            for (int k = 0; k < kSquare; ++k) sum += spoilt[k];
            if (sum == 0.0f) std::fill_n(found + firsts[g], kSquare, uint8_t{1});
        }
    }
};
#else
// Without AVX-512 no levels are found in this way.
struct Squares {
    template <class Real>
    RANKSVM_INLINE_METHOD Squares(const Real *, const int64_t *, int64_t) {}
    template <class Real>
    RANKSVM_INLINE_METHOD void levels(const Real *, int64_t, int64_t, uint8_t *, uint8_t *) const {}
};
#endif

template <class Real>
RANKSVM_INLINE bool feature_levels(const Real *X, int64_t n_features, const double *cuts, const int64_t *pointers,
                                   int64_t start, int64_t stop, uint8_t *codes) {
    Vector<Real> rounded(static_cast<std::size_t>(pointers[n_features]));
    for (int64_t k = 0; k < pointers[n_features]; ++k) rounded[static_cast<std::size_t>(k)] = not_below<Real>(cuts[k]);
    Vector<uint8_t> found(static_cast<std::size_t>(n_features));
    const Squares squares(rounded.data(), pointers, n_features);
    bool finite = true;
    for (int64_t first = start; first < stop; first += kLevelRows) {
        const int64_t n_rows = std::min(kLevelRows, stop - first);
        const Real *x = X + first * n_features;
        uint8_t *out = codes + first * n_features;
        std::fill(found.begin(), found.end(), uint8_t{0});
        const int64_t ahead = std::min(kLevelRows, stop - first - n_rows);
        if (n_rows == kLevelRows) squares.levels(x, n_features, ahead, out, found.data());
        for (int64_t j = 0; j < n_features; ++j) {
            if (found[static_cast<std::size_t>(j)]) continue;
            const Real *own = rounded.data() + pointers[j];
            finite &= column_levels(x + j, n_rows, n_features, own, pointers[j + 1] - pointers[j], out + j);
        }
    }
    return finite;
}

// The sum of numbers, each of them capped, added up in NumPy's order, so that the cuts are those that additive/bins.py finds
// with NumPy from the counts.
static double sum_of_capped(const double *numbers, int64_t n, double cap) {
    constexpr int64_t kTogether = 8, kFew = 128;
    if (n > kFew) {
        const int64_t half = n / 2 - n / 2 % kTogether;
        return sum_of_capped(numbers, half, cap) + sum_of_capped(numbers + half, n - half, cap);
    }
    double sum = 0.0, sums[kTogether] = {};
    int64_t i = 0;
    for (; i + kTogether <= n; i += kTogether)
        for (int64_t k = 0; k < kTogether; ++k) sums[k] += std::min(numbers[i + k], cap);
    if (i > 0) sum = ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
    for (; i < n; ++i) sum += std::min(numbers[i], cap);
    return sum;
}

// Cuts ascending values, without NaN, into at most `max_bins` bins with about equal numbers of values. Writes to `cuts` the
// position of the first value of each bin but the first. If there are at most `max_bins` distinct values, each has a bin of its
// own. Otherwise, the count of a very frequent value is lowered to the average count of a bin, so that the other values still
// spread over the other bins. (Neighboring values may share its bin.) Returns the number of cuts.
template <class Real>
RANKSVM_INLINE int64_t cuts_of(const Real *values, int64_t n, int64_t max_bins, int64_t *cuts, Vector<int64_t> &starts,
                               Vector<double> &counts) {
    if (starts.size() <= static_cast<std::size_t>(n)) starts.resize(static_cast<std::size_t>(n) + 1);
    std::size_t n_distinct = n > 0 ? 1 : 0;
    for (int64_t i = 1; i < n; ++i) {
        starts[n_distinct] = i;
        n_distinct += values[i] != values[i - 1] ? 1 : 0;
    }
    starts[n_distinct] = n;
    if (static_cast<int64_t>(n_distinct) <= max_bins) {
        for (std::size_t k = 1; k < n_distinct; ++k) cuts[k - 1] = starts[k];
        return std::max<int64_t>(static_cast<int64_t>(n_distinct) - 1, 0);
    }
    if (counts.size() < n_distinct) counts.resize(n_distinct);
    int64_t largest = 0;
    for (std::size_t k = 0; k < n_distinct; ++k) {
        const int64_t count = starts[k + 1] - starts[k];
        counts[k] = static_cast<double>(count);
        largest = std::max(largest, count);
    }
    double cap = static_cast<double>(largest), share = 0.0;
    // capping the counts at the share lowers their sum, and so the share
    for (int64_t round = 0; round < max_bins; ++round) {
        share = sum_of_capped(counts.data(), static_cast<int64_t>(n_distinct), cap) / static_cast<double>(max_bins);
        if (cap <= share * (1.0 + 1e-12)) break;
        cap = share;
    }
    constexpr std::size_t kTogether = 32;
    int64_t n_cuts = 0, bin = 0;
    double sum = 0.0;
    for (std::size_t first = 0; first < n_distinct; first += kTogether) {
        const std::size_t last = std::min(first + kTogether, n_distinct);
        const double together = sum_of_capped(counts.data() + first, static_cast<int64_t>(last - first), cap);
        if (sum + together < share * static_cast<double>(bin + 1) * (1.0 - 1e-9)) {  // all in the same bin
            sum += together;
            continue;
        }
        for (std::size_t k = first; k < last; ++k) {
            const double count = std::min(counts[k], cap);
            sum += count;
            if (sum - count / 2.0 < share * static_cast<double>(bin + 1) * (1.0 - 1e-9)) continue;  // the same bin
            const int64_t own = std::min(static_cast<int64_t>((sum - count / 2.0) / share), max_bins - 1);
            if (own > bin && k > 0) cuts[n_cuts++] = starts[k];
            bin = std::max(bin, own);
        }
    }
    return n_cuts;
}

// Finds the cuts of each of several arrays. Only the first lengths[k] values of array k count.
template <class Real>
RANKSVM_INLINE void value_cuts(const Real *values, int64_t n_arrays, int64_t n, const int64_t *lengths, int64_t max_bins,
                               int64_t *cuts, int64_t *n_cuts) {
    Vector<int64_t> starts;
    Vector<double> counts;
    for (int64_t k = 0; k < n_arrays; ++k)
        n_cuts[k] = cuts_of(values + k * n, lengths[k], max_bins, cuts + k * (max_bins - 1), starts, counts);
}

// sums[k] = the sum of the values from starts[k] to the next start; the last sum goes to the end of the values.
template <class Real>
RANKSVM_INLINE void range_sums(const Real *values, int64_t n, const int64_t *starts, int64_t n_starts, double *sums) {
    for (int64_t k = 0; k < n_starts; ++k) {
        const int64_t stop = k + 1 < n_starts ? starts[k + 1] : n;
        Lanes sum = {};
        int64_t i = starts[k];
        for (; i + kWidth <= stop; i += kWidth) sum = sum + lanes_at(values + i);
        double rest = 0.0;
        for (; i < stop; ++i) rest += static_cast<double>(values[i]);
        sums[k] = sum_of(sum) + rest;
    }
}

// Copies the features first .. last: `out` has each of them in a row.
template <class Real>
RANKSVM_INLINE void copy_columns(const Real *X, int64_t n_features, int64_t n_rows, int64_t first, int64_t last, Real *out) {
    constexpr int64_t kSide = 16;  // rows and features of a tile, whose cache lines stay in the nearest cache
    for (int64_t begin = 0; begin < n_rows; begin += kSide)
        for (int64_t f = first; f < last; f += kSide)
            for (int64_t j = f; j < std::min(f + kSide, last); ++j)
                for (int64_t t = begin; t < std::min(begin + kSide, n_rows); ++t)
                    out[(j - first) * n_rows + t] = X[t * n_features + j];
}

}  // namespace ranksvm::RANKSVM_VARIANT

#endif
