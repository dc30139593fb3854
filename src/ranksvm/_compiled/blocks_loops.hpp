// Tables of pointers to the loops of blocks.hpp; each instruction set has its own table.
#ifndef RANKSVM_BLOCKS_LOOPS_HPP
#define RANKSVM_BLOCKS_LOOPS_HPP

#include <cstdint>

#include "instruction_set.hpp"

namespace ranksvm {

using std::int64_t;

struct Blocks {
    const int64_t *pointers;   // (n_queries + 1,) first position of each query
    const int64_t *rows;       // (n_queries + 1,) first row of each block, among the rows of all blocks
    const int64_t *columns;    // (n_queries + 1,) first column of each block
    const int64_t *offsets;    // (n_queries + 1,) first entry of each block
    const int64_t *preferred;  // position of the document of each row
    const int64_t *other;      // position of the document of each column
    const int64_t *first;      // of each row: the column of its block at which its pairs begin
};

// A pair's hinge is h = 1 - (s_i - s_j) + raise * target_ij. Its loss is 0 if h < 0, h^2 / (2 d) if h is at most the width d,
// and h - d / 2 if h is larger. `target` has the entries of all blocks.
struct ShiftedHinge {
    const double *target;
    double raise, width;
};

struct BlockLoops {
    double (*hinge)(const Blocks &blocks, int64_t first_query, int64_t last_query, const double *scores,
                    const ShiftedHinge &loss, double *counts, double *gradient_range);
    void (*laplacian)(const Blocks &blocks, int64_t first_query, int64_t last_query, const double *scores,
                      const ShiftedHinge &loss, const double *v_range, double *out_range);
    void (*pulls)(const Blocks &blocks, int64_t q, const double *scores, const ShiftedHinge &loss, double *out);
    void (*bends)(const Blocks &blocks, int64_t q, const double *scores, const ShiftedHinge &loss, double *out);
};
RANKSVM_DECLARE_LOOPS(BlockLoops)

}  // namespace ranksvm

#endif
