// Tables of pointers to the loops of coded.hpp; each instruction set has its own tables. `rows` maps positions to rows (null if
// they are the same); arrays named *_range hold the positions start .. stop only.
#ifndef RANKSVM_CODED_LOOPS_HPP
#define RANKSVM_CODED_LOOPS_HPP

#include <cstdint>

#include "instruction_set.hpp"

namespace ranksvm {

using std::int64_t;
using std::uint8_t;

// The levels of a feature: level 0 has the value 0; the value of level k from 1 to `steps` is the sum of the first k
// increments; each of the other `extra` levels has a value of its own.
struct LevelAxis {
    int64_t steps, extra;
    int64_t variables() const { return steps + extra; }
    int64_t levels() const { return steps + extra + 1; }
};

// A column of codes: the levels of one feature, or the cells (level of the first, level of the second) of two. Its variables
// begin at `variable`. Its values begin at `entry` in a table of the levels of all columns.
struct CodedColumn {
    LevelAxis first, second;
    int64_t is_pair, variable, entry;
};

// Consecutive columns first .. beyond that are looked up together. If `paired`, two neighbors are looked up at once, in a table
// of the cells (level of the first, level of the second): that takes half as many steps.
struct ColumnTile {
    int64_t first, beyond, paired;
};

// Columns with the scales of their variables. The arrays `table` and `sums` below have, tile by tile, one number for each
// level (or cell) of each column. In a paired tile, they have one number for each cell of two neighboring columns instead.
// The numbers of column c (or of the columns c and c + 1 together) begin at places[c]. In the table of a paired tile, the
// columns c = 2k and c + 1 have the cell bases[k] + (level of c) + factors[k] * (level of c + 1).
struct CodedColumns {
    const CodedColumn *columns;
    int64_t n_columns, n_variables, n_numbers;
    const double *scales;
    const std::int32_t *places;  // n_columns + 1 of them
    const ColumnTile *tiles;
    int64_t n_tiles;
    const std::uint16_t *bases, *factors;
};

// kTilePairs: maximum number of pairs of columns in a tile. kPairCells: maximum number of cells of a pair. With these, the
// number of a cell within a tile fits into 16 bits.
constexpr int kTilePairs = 12, kPairCells = 2048;

struct CodedLoops {
    // the value of every level or cell under the weights of the variables
    void (*values)(const CodedColumns &, const double *w, double *table);
    // the transpose of the function `values`: converts what `add_up` summed by level or cell in `sums` to the variables,
    // and adds it to `total`; overwrites `sums`
    void (*gather_sums)(const CodedColumns &, double *sums, double *total);
    // out += the values of each row's levels
    void (*look_up)(const CodedColumns &, const uint8_t *codes, const int64_t *rows, int64_t start, int64_t stop,
                    const double *table, double *out_range);
    // sums of u over the rows of each level, added to what is there
    void (*add_up)(const CodedColumns &, const uint8_t *codes, const int64_t *rows, int64_t start, int64_t stop,
                   const double *u_range, double *sums);
    // writes the variables from `offset` on into rows of `n_out` numbers, which must be 0 before
    void (*fill)(const CodedColumns &, const uint8_t *codes, const int64_t *rows, int64_t start, int64_t stop, double *out_range,
                 int64_t n_out, int64_t offset);
    void (*fill_single)(const CodedColumns &, const uint8_t *codes, const int64_t *rows, int64_t start, int64_t stop,
                        float *out_range, int64_t n_out, int64_t offset);
    // sums of u over the rows with each combination (cell) of the levels of two features
    void (*cells)(const uint8_t *first, const uint8_t *second, int64_t n_rows, const double *u, int64_t n_levels, double *sums);
    // counts += the number of rows at each level; codes beyond the levels of their column are not allowed
    void (*counts)(const uint8_t *codes, int64_t n_columns, int64_t start, int64_t stop, const int64_t *pointers,
                   int64_t *counts);
    // whether each code in column c is at most lasts[c], the largest valid code of that column
    bool (*within)(const uint8_t *codes, int64_t n_rows, int64_t n_columns, const uint8_t *lasts);
};

template <class Real>
struct LevelLoops {
    // codes: the number of cuts that are at most x, and for NaN one more than the number of cuts. Returns whether all values
    // are finite.
    bool (*levels)(const Real *X, int64_t n_features, const double *cuts, const int64_t *pointers, int64_t start, int64_t stop,
                   uint8_t *codes);
    // where to cut the first lengths[k] values of each array k, which ascend and have no NaN, into at most max_bins bins;
    // n_cuts[k] receives the number of cuts
    void (*cuts)(const Real *values, int64_t n_arrays, int64_t n, const int64_t *lengths, int64_t max_bins, int64_t *cuts,
                 int64_t *n_cuts);
    // the sums of the values from each start to the next
    void (*sums)(const Real *values, int64_t n, const int64_t *starts, int64_t n_starts, double *sums);
    // the features first .. last, each in a row of `out`
    void (*columns)(const Real *X, int64_t n_features, int64_t n_rows, int64_t first, int64_t last, Real *out);
};

RANKSVM_DECLARE_LOOPS(CodedLoops)
RANKSVM_DECLARE_LOOPS(LevelLoops<float>)
RANKSVM_DECLARE_LOOPS(LevelLoops<double>)

}  // namespace ranksvm

#endif
