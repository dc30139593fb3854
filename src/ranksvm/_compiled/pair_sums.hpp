// Pair sums: for every document i, the sums of a_pi x_p over the pairs (p, i) that it loses and of a_ij x_j over the pairs
// (i, j) that it wins. Here a is the weight of a pair, and x has kValues values for each document. Weights are products, or
// differences of two products, of numbers of the two documents, so that pair sums can be computed from window sums.
#ifndef RANKSVM_PAIR_SUMS_HPP
#define RANKSVM_PAIR_SUMS_HPP

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "portable.hpp"
#include "sorted_query.hpp"
#include "window_sums.hpp"

namespace ranksvm::RANKSVM_VARIANT {

// Splits each number of a column into head + tail. The heads are multiples of one power of two, so coarse that their running
// sums are exact: the difference of two of these is then as good as a sum over the documents between them.
template <int kColumns>
RANKSVM_INLINE void separate(SortedQuery &query, const double *columns, double *heads_and_tails) {
    const int64_t m = query.m;
    double *found = room_for<double>(query.partial, kMostSegments * kColumns), coarse[kColumns];
    for_segments(query.workers, m, [&](int64_t segment, int64_t begin, int64_t end) {
        for (int c = 0; c < kColumns; ++c) {
            double largest = 0.0;
            for (int64_t i = begin; i < end; ++i) largest = std::max(largest, std::fabs(columns[i * kColumns + c]));
            found[segment * kColumns + c] = largest;
        }
    });
    for (int c = 0; c < kColumns; ++c) {
        double largest = 0.0;
        for (int64_t k = 0; k < Segments(m).n; ++k) largest = std::max(largest, found[k * kColumns + c]);
        // adding this number and subtracting it again rounds to multiples of its last place
        coarse[c] = largest > 0.0 ? 1.5 * std::exp2(std::ceil(std::log2(largest) + std::log2(static_cast<double>(m))) + 1.0)
                                  : 0.0;
    }
    for_segments(query.workers, m, [&](int64_t, int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
            for (int c = 0; c < kColumns; ++c) {
                const double value = columns[i * kColumns + c], head = (value + coarse[c]) - coarse[c];
                heads_and_tails[(2 * i) * kColumns + c] = head;
                heads_and_tails[(2 * i + 1) * kColumns + c] = value - head;
            }
    });
}

// x (or x as heads and tails) times a weight of each document
template <int kValues, bool kExact>
RANKSVM_INLINE const double *weigh(SortedQuery &query, const double *x, const double *weight, const double *gain,
                                   double *scratch, double *out) {
    double *weighed = kExact ? scratch : out;
    for_segments(query.workers, query.m, [&](int64_t, int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            const double factor = gain == nullptr ? weight[i] : weight[i] * gain[i];
            for (int value = 0; value < kValues; ++value) weighed[i * kValues + value] = factor * x[i * kValues + value];
        }
    });
    if (kExact) separate<kValues>(query, weighed, out);
    return out;
}

// The pair sums of the outer window (kWindows = 1), or of the ring and of the inner window (kWindows = 2), in query.sums as
// [document][lost, won][ring, inner][value]. With kExact the sums of the ring have no cancellation, however narrow it is.
template <int kValues, int kWindows, bool kExact>
RANKSVM_INLINE const double *pair_sums(const Pairs &pairs, SortedQuery &query, const double *x) {
    static_assert(kWindows == 2 || !kExact, "a single window has nothing to cancel");
    constexpr int kColumns = kExact ? 2 * kValues : kValues, kSide = kWindows * kValues;
    const int64_t m = query.m;
    if (!query.weighted && kWindows == 1 && !kExact) return window_sums<kColumns, kWindows>(pairs, query, x, x);
    double *sums = room_for<double>(query.sums, 2 * kSide * m);
    double *scratch = room_for<double>(query.weighed, (2 * kColumns + kValues) * m);
    double *as_preferred = scratch + kValues * m, *as_other = as_preferred + kColumns * m;
    // if the weight is a difference of two products: first the product with the preferred document's gain, then the other
    // product
    for (int product = 0; product < (query.gaps ? 2 : 1); ++product) {
        const double *preferred = x, *other = x;
        if (query.weighted) {
            const double *gain = query.gaps ? query.g : nullptr;
            preferred = weigh<kValues, kExact>(query, x, query.a, product == 0 ? gain : nullptr, scratch, as_preferred);
            other = weigh<kValues, kExact>(query, x, query.b, product == 1 ? gain : nullptr, scratch, as_other);
        } else if (kExact) {
            separate<kValues>(query, x, as_preferred);
            preferred = other = as_preferred;
        }
        const double *columns = window_sums<kColumns, kWindows>(pairs, query, preferred, other);
        const auto put = [&](int64_t i, int side) {
            // with gains, lost: b_i ((sum of a g x) - g_i (sum of a x)), won: a_i (g_i (sum of b x) - (sum of b g x))
            double factor = 1.0;
            if (query.weighted) factor = side == 0 ? query.b[i] : query.a[i];
            if (query.gaps && side != product) factor *= query.g[i];
            if (product == 1) factor = -factor;
            const double *outer = columns + (2 * i + side) * kWindows * kColumns, *inner = outer + kColumns;
            double *own = sums + (2 * i + side) * kSide;
            for (int value = 0; value < kValues; ++value) {
                double ring = outer[value];
                if (kWindows == 2) {
                    double within = inner[value];
                    ring -= within;
                    if (kExact) {
                        ring += outer[kValues + value] - inner[kValues + value];
                        within += inner[kValues + value];
                    }
                    own[kValues + value] = factor * within + (product ? own[kValues + value] : 0.0);
                }
                own[value] = factor * ring + (product ? own[value] : 0.0);
            }
        };
        for_segments(query.workers, m, [&](int64_t, int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i)
                for (int side = 0; side < 2; ++side) put(i, side);
        });
    }
    return sums;
}

}  // namespace ranksvm::RANKSVM_VARIANT

#endif
