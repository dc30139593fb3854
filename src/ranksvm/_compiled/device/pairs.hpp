// The pairs of each document, which labels imply (LevelPairs) or a user has listed (ListedPairs). Documents are numbered by
// position: query by query, and within a query in the order of their labels, the lowest first, so that the documents below a
// given one are contiguous, and so are those above it.
#ifndef RANKSVM_DEVICE_PAIRS_HPP
#define RANKSVM_DEVICE_PAIRS_HPP

#include "portable.hpp"

namespace ranksvm::device {

// Pairs that labels imply. A level is the documents of one query with one label. The weight of a pair is a_i * b_j, times
// g_i - g_j if documents have gains.
struct LevelPairs {
    const int32_t *level;       // (n_rows,) number of the level of each document, counted over all queries
    const int32_t *begin;       // (n_levels + 1,) first document of each level
    const int32_t *query;       // (n_levels,) query of each level
    const int32_t *pointers;    // (n_queries + 1,) first document of each query
    const double *preferred;    // a, or null for 1
    const double *other;        // b, or null for 1
    const double *gain;         // g, or null
    bool adjacent;              // whether only the pairs of neighboring levels count

    // The documents with which document i forms pairs: lowest .. start have lower levels, stop .. end have higher levels.
    struct Partners {
        int32_t lowest, start, stop, end;
    };

    RANKSVM_DEVICE Partners partners(int64_t i) const {
        const int32_t own = level[i], q = query[own];
        const int32_t first = pointers[q], last = pointers[q + 1], start = begin[own], stop = begin[own + 1];
        return {adjacent && start > first ? begin[own - 1] : first, start, stop, adjacent && stop < last ? begin[own + 2] : last};
    }

    // Calls visit.below(j, weight) for the pairs in which document i is preferred to j, and visit.above(j, weight) for
    // those in which j is preferred to it; every `lanes`-th of them from number `lane` on.
    template <class Visit>
    RANKSVM_DEVICE void visit(int64_t i, const Partners &of, Visit &visit, int lane = 0, int lanes = 1) const {
        if (gain != nullptr)
            go_through<true, true>(i, of, visit, lane, lanes);
        else if (preferred != nullptr)
            go_through<true, false>(i, of, visit, lane, lanes);
        else
            go_through<false, false>(i, of, visit, lane, lanes);
    }

    // A document of the query of document i: the same one for all documents of the query.
    RANKSVM_DEVICE int64_t reference(int64_t i) const { return pointers[query[level[i]]]; }

private:
    template <bool kWeighted, bool kGaps, class Visit>
    RANKSVM_DEVICE void go_through(int64_t i, const Partners &of, Visit &visit, int lane, int lanes) const {
        const double a = kWeighted ? preferred[i] : 1.0, b = kWeighted ? other[i] : 1.0, g = kGaps ? gain[i] : 0.0;
        RANKSVM_TWICE
        for (int32_t j = of.lowest + lane; j < of.start; j += lanes)
            visit.below(j, kGaps ? a * other[j] * (g - gain[j]) : kWeighted ? a * other[j] : 1.0);
        RANKSVM_TWICE
        for (int32_t j = of.stop + lane; j < of.end; j += lanes)
            visit.above(j, kGaps ? preferred[j] * b * (gain[j] - g) : kWeighted ? preferred[j] * b : 1.0);
    }
};

// Pairs that a user has listed. Each document has the partners in its pairs and the weights of these pairs; a weight is
// negative if the partner is the preferred document.
struct ListedPairs {
    const int64_t *begin;     // (n_rows + 1,)
    const int32_t *partner;   // (2 * n_pairs,)
    const double *weight;     // (2 * n_pairs,)
    const int32_t *origin;    // (n_rows,) first document of the document's connected component

    // The entries of document i.
    struct Partners {
        int64_t begin, end;
    };

    RANKSVM_DEVICE Partners partners(int64_t i) const { return {begin[i], begin[i + 1]}; }

    template <class Visit>
    RANKSVM_DEVICE void visit(int64_t, const Partners &of, Visit &visit, int lane = 0, int lanes = 1) const {
        RANKSVM_ROLLED
        for (int64_t e = of.begin + lane; e < of.end; e += lanes) {
            const double own = weight[e];
            if (own > 0.0)
                visit.below(partner[e], own);
            else if (own < 0.0)
                visit.above(partner[e], -own);
        }
    }

    RANKSVM_DEVICE int64_t reference(int64_t i) const { return origin[i]; }
};

}  // namespace ranksvm::device

#endif
