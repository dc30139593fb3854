// The working memory of a sorted query. The Cython modules own it, and keep it from one call to the next (scratch_pool.hpp).
// The loops only ask for room (segments.hpp).
#ifndef RANKSVM_SCRATCH_HPP
#define RANKSVM_SCRATCH_HPP

#include <cstddef>
#include <cstdint>

#include "workers.hpp"

namespace ranksvm {

using std::int32_t;

struct Buffer {
    void *memory;
    std::size_t bytes;
};

struct SortMemory {
    Buffer keyed, spread, stretch, counts, bucket, next;
};

// One query, its documents sorted by score.
struct SortedQuery {
    int64_t m;
    int32_t n_levels;
    bool weighted, gaps;
    double *s, *z, *a, *b, *g;  // sorted: scores, the same centered, weights and gains
    int32_t *level, *start[2];  // sorted levels; first document of lower(i): see sorted_query.hpp
    const int32_t *window[2];   // the outer and the inner window of each document, sorted
    Workers workers;
    SortMemory sorting;
    Buffer documents, values, weighed, partial;      // scratch
    Buffer table, split[2], places, parts, totals;   // scratch of window sums
    Buffer columns, sums;                            // window sums and pair sums
};

}  // namespace ranksvm

#endif
