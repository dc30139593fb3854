// Computes matrices whose entries are sums over a common dimension, such as products of two matrices, tile by tile. A block
// reads the parts of both operands that a tile needs into shared memory, and each thread computes kEach * kEach sums of the
// tile.
#ifndef RANKSVM_DEVICE_TILES_HPP
#define RANKSVM_DEVICE_TILES_HPP

#include "portable.hpp"

namespace ranksvm::device {

// kEach: number of sums of a thread in each direction. kSide: number of threads along a side of a tile. kTile: number of sums
// along a side. kDepth: number of terms that are added at a time.
constexpr int kEach = 4, kSide = 16, kTile = kEach * kSide, kDepth = 16;

// The terms of a product of matrices; `of_one` is the term if the other value is not stored, and so is 0.
struct Products {
    static RANKSVM_DEVICE double of(double x, double z) { return x * z; }
    static RANKSVM_DEVICE double of_one(double) { return 0.0; }
};

// put(i, j, the sum of Term::of(left(k, i), right(k, j)) over first <= k < last) for 0 <= i, j < kTile. Shared memory:
// kDepth numbers for each i and each j.
template <class Term, class Left, class Right, class Put>
RANKSVM_DEVICE void sum_tile(const Block &block, int64_t first, int64_t last, const Left &left, const Right &right,
                             const Put &put) {
    struct Sums {
        double of[kEach][kEach];
    };
    OfThread<Sums> all(block);
    double *lefts = block.shared, *rights = lefts + kDepth * kTile;
    // in several turns if the block has fewer threads than the kSide * kSide of a tile
    RANKSVM_ROLLED
    for (int turn = 0; turn < kSide * kSide; turn += block.n_threads) {
        RANKSVM_PHASE(thread) { all[thread] = {}; }
        RANKSVM_ROLLED
        for (int64_t begin = first; begin < last; begin += kDepth) {
            const int depth = last - begin < kDepth ? static_cast<int>(last - begin) : kDepth;
            RANKSVM_PHASE(thread) {
                RANKSVM_ROLLED
                for (int k = thread; k < depth * kTile; k += block.n_threads) {
                    lefts[k] = left(begin + k / kTile, k % kTile);
                    rights[k] = right(begin + k / kTile, k % kTile);
                }
            }
            RANKSVM_PHASE(thread) {
                const int place = turn + thread, i = place / kSide, j = place % kSide;
                if (place < kSide * kSide) {
                    RANKSVM_ROLLED
                    for (int d = 0; d < depth; ++d)
                        for (int k = 0; k < kEach; ++k)
                            for (int l = 0; l < kEach; ++l)
                                all[thread].of[k][l] +=
                                    Term::of(lefts[d * kTile + i + k * kSide], rights[d * kTile + j + l * kSide]);
                }
            }
        }
        RANKSVM_PHASE(thread) {
            const int place = turn + thread, i = place / kSide, j = place % kSide;
            if (place < kSide * kSide)
                for (int k = 0; k < kEach; ++k)
                    for (int l = 0; l < kEach; ++l) put(i + k * kSide, j + l * kSide, all[thread].of[k][l]);
        }
    }
}

}  // namespace ranksvm::device

#endif
