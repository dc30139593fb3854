// The pairs of a data set, and the state of a loss over them at one score vector.
//
// A query has m documents with scores s and label ranks (levels) 0 .. k-1. A pair (i, j) with level_i > level_j, i the
// preferred and j the other document, violates the margin t if fl(s_i - s_j) < t: all loops decide by this predicate, however
// they go through the pairs. The weight of a pair is a_i * b_j (a: as the preferred document, b: as the other), times g_i - g_j
// if documents have gains.
#ifndef RANKSVM_PAIRS_HPP
#define RANKSVM_PAIRS_HPP

#include <cstdint>

namespace ranksvm {

using std::int32_t;
using std::int64_t;
using std::uint8_t;

struct Pairs {
    const int64_t *pointers;    // (n_queries + 1,) first position of each query
    const int32_t *levels;      // (n_rows,) rank of the label in its query
    const int32_t *n_levels;    // (n_queries,)
    const int32_t *by_level;    // (n_rows,) documents of each query, numbered within it, the lowest level first
    const uint8_t *visited;     // (n_queries,) whether all pairs of the query are visited; it is swept otherwise
    const double *preferred;    // (n_rows,) a, or null for 1
    const double *other;        // (n_rows,) b, or null for 1
    const double *gain;         // (n_rows,) g, ascending with the level, or null; needs a and b
    int32_t adjacent;           // whether only the pairs of neighboring levels count
    int32_t direct_limit;       // sweeps over at most this number of levels take the direct form of window_sums.hpp
};

// The pairs at which a loss is curved: those that violate the outer threshold and, with a ring, not the inner one. For a query
// that is swept, its order and windows say which pairs these are (the inner window only with a ring); for another query, its
// scores do. A loss that is a function of margin_functions.hpp is curved at all pairs: every query is visited.
struct PairState {
    int32_t *order;   // (n_rows,) documents of each query by ascending score
    int32_t *outer;   // (n_rows,) in that order: see sorted_query.hpp
    int32_t *inner;
    double *scores;   // (n_rows,) by position; the scores of an evaluation may be there already
    double *degrees;  // (n_rows,) weight of the curved pairs of each document
    double outer_threshold, inner_threshold;
    int32_t ring;
    int32_t function;  // number of the function of the margin, or 0
};

}  // namespace ranksvm

#endif
