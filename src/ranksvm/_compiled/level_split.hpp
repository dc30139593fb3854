// Window sums over many levels or long lists, O(m log k): the documents are split by level into 8 groups, each in score order.
// Running sums of the groups, read at the ends of the windows, give the sums over all pairs between different groups. Then each
// group is split in the same way, its windows renumbered, until a group has one level or a few documents, which are summed pair
// by pair.
//
// The windows ascend, so the running sums are read in order. The sums of a block of positions fit into the nearest cache. No
// branch depends on the data.
#ifndef RANKSVM_LEVEL_SPLIT_HPP
#define RANKSVM_LEVEL_SPLIT_HPP

#include <algorithm>
#include <cstdint>

#include "lanes.hpp"
#include "portable.hpp"
#include "sorted_query.hpp"

namespace ranksvm::RANKSVM_VARIANT {

constexpr int kGroups = 8;
// kBlock: number of positions whose running sums are kept at a time. kPairwise: maximum number of documents that are summed
// pair by pair.
constexpr int64_t kBlock = 64, kPairwise = 16;
// A part (the documents of a range of levels) that is longer than this is divided among all threads. A shorter one is left to a
// single thread.
constexpr int64_t kSharedPart = 65536;

// A document of a part: its place in the query, its level.
struct SplitDocument {
    int32_t id, level;
};

// One window of a document within its part, and the sums over it so far.
template <int kSums>
struct SplitSide {
    int32_t at;
    double sums[kSums];
};

// Memory for the documents of parts. Without weights, a document has the same values as the preferred and as the other
// document, and they are stored once.
template <int kSums, int kWindows>
struct SplitMemory {
    SplitDocument *documents;
    double *as_preferred, *as_other;
    SplitSide<kSums> *upper[kWindows], *lower[kWindows];

    RANKSVM_INLINE_METHOD SplitMemory from(int64_t first) const {
        SplitMemory part = *this;
        part.documents += first, part.as_preferred += first * kSums, part.as_other += first * kSums;
        for (int which = 0; which < kWindows; ++which) part.upper[which] += first, part.lower[which] += first;
        return part;
    }
};

// The documents of a range of levels or, before the first split, of all levels: the same loops serve both.
template <int kSums, int kWindows>
struct SplitPart {
    const int32_t *ids, *levels;
    int64_t document_step;
    const double *as_preferred, *as_other;
    const int32_t *windows[kWindows], *starts[kWindows];
    int64_t window_step;
    const double *upper_sums[kWindows], *lower_sums[kWindows];
    int64_t sum_step;

    RANKSVM_INLINE_METHOD explicit SplitPart(const SplitMemory<kSums, kWindows> &memory)
        : ids(&memory.documents->id), levels(&memory.documents->level), document_step(sizeof(SplitDocument) / sizeof(int32_t)),
          as_preferred(memory.as_preferred), as_other(memory.as_other),
          window_step(sizeof(SplitSide<kSums>) / sizeof(int32_t)), sum_step(sizeof(SplitSide<kSums>) / sizeof(double)) {
        for (int which = 0; which < kWindows; ++which) {
            windows[which] = &memory.upper[which]->at, upper_sums[which] = memory.upper[which]->sums;
            starts[which] = &memory.lower[which]->at, lower_sums[which] = memory.lower[which]->sums;
        }
    }
    // the part that is a whole query; `numbers` has 0, 1, ..., and `zeros` has kSums zeros
    RANKSVM_INLINE_METHOD SplitPart(const SortedQuery &query, const double *preferred, const double *other,
                                    const int32_t *numbers, const double *zeros)
        : ids(numbers), levels(query.level), document_step(1), as_preferred(preferred), as_other(other), window_step(1),
          sum_step(0) {
        for (int which = 0; which < kWindows; ++which) {
            windows[which] = query.window[which], starts[which] = query.start[which];
            upper_sums[which] = lower_sums[which] = zeros;
        }
    }

    RANKSVM_INLINE_METHOD int32_t id(int64_t i) const { return ids[i * document_step]; }
    RANKSVM_INLINE_METHOD int32_t level(int64_t i) const { return levels[i * document_step]; }
    RANKSVM_INLINE_METHOD const double *preferred(int64_t i) const { return as_preferred + i * kSums; }
    RANKSVM_INLINE_METHOD const double *other(int64_t i) const { return as_other + i * kSums; }
    RANKSVM_INLINE_METHOD int32_t window(int which, int64_t i) const { return windows[which][i * window_step]; }
    RANKSVM_INLINE_METHOD int32_t start(int which, int64_t i) const { return starts[which][i * window_step]; }
    RANKSVM_INLINE_METHOD double upper_sum(int which, int64_t i, int sum) const {
        return upper_sums[which][i * sum_step + sum];
    }
    RANKSVM_INLINE_METHOD double lower_sum(int which, int64_t i, int sum) const {
        return lower_sums[which][i * sum_step + sum];
    }
};

// For each group: the number of its documents before a segment, the sums over the documents of higher groups before the
// segment, and the sums over the documents of lower groups after the segment.
template <int kSums>
struct SplitTotals {
    int32_t count[kGroups];
    double above[kSums][kGroups], below[kSums][kGroups];
};

// The running sums at the positions of a block.
template <int kSums>
struct SplitBlock {
    double sums[kBlock][kSums][kGroups];
    int32_t count[kBlock][kGroups];
};

// Running sums of every group, in registers. (GCC 12 compiles a plain loop over the groups to scalar code.)
template <int kSums>
struct GroupSums {
    static constexpr int kVectors = kGroups / kWidth;
    Lanes total[kSums][kVectors], number[kVectors];

    RANKSVM_INLINE_METHOD explicit GroupSums(const double (*first)[kGroups]) {
        double numbers[kGroups];
        for (int c = 0; c < kGroups; ++c) numbers[c] = static_cast<double>(c);
        for (int v = 0; v < kVectors; ++v) {
            number[v] = lanes_at(numbers + v * kWidth);
            for (int sum = 0; sum < kSums; ++sum) total[sum][v] = lanes_at(first[sum] + v * kWidth);
        }
    }
    // adds a document of group `own` to the sums of the groups below it
    RANKSVM_INLINE_METHOD void add_above(int own, const double *x) {
        const Lanes group = all_lanes(static_cast<double>(own)), zero = all_lanes(0.0);
        for (int v = 0; v < kVectors; ++v)
            for (int sum = 0; sum < kSums; ++sum)
                total[sum][v] += where_less(number[v], group, all_lanes(x[sum]), zero);
    }
    // adds it to the sums of the groups above it
    RANKSVM_INLINE_METHOD void add_below(int own, const double *x) {
        const Lanes group = all_lanes(static_cast<double>(own)), zero = all_lanes(0.0);
        for (int v = 0; v < kVectors; ++v)
            for (int sum = 0; sum < kSums; ++sum)
                total[sum][v] += where_less(group, number[v], all_lanes(x[sum]), zero);
    }
    RANKSVM_INLINE_METHOD void put(double (*sums)[kGroups]) const {
        for (int sum = 0; sum < kSums; ++sum)
            for (int v = 0; v < kVectors; ++v) put_lanes(sums[sum] + v * kWidth, total[sum][v]);
    }
};

// One split: the part, its levels, and where its documents go.
template <int kSums, int kWindows>
struct Split {
    const SplitPart<kSums, kWindows> &from;
    SplitMemory<kSums, kWindows> to;
    int64_t m;
    int32_t low;
    int shift;
    int32_t *place;  // new place of each document, in `to`
    double *out;

    RANKSVM_INLINE_METHOD int group(int64_t i) const { return (from.level(i) - low) >> shift; }

    RANKSVM_INLINE_METHOD void count_groups(int64_t begin, int64_t end, int32_t *count) const {
        int32_t even[kGroups] = {0}, odd[kGroups] = {0};  // two, because an addition to a count waits for the one before it
        int64_t i = begin;
        for (; i + 1 < end; i += 2) ++even[group(i)], ++odd[group(i + 1)];
        for (; i < end; ++i) ++even[group(i)];
        for (int c = 0; c < kGroups; ++c) count[c] = even[c] + odd[c];
    }

    RANKSVM_INLINE_METHOD void sum_groups(int64_t begin, int64_t end, SplitTotals<kSums> &totals) const {
        GroupSums<kSums> above(totals.above), below(totals.below);
        for (int64_t p = begin; p < end; ++p) {
            above.add_above(group(p), from.preferred(p));
            below.add_below(group(p), from.other(p));
        }
        above.put(totals.above);
        below.put(totals.below);
    }

    // Moves the documents of a segment to their groups, in the order of the part.
    RANKSVM_INLINE_METHOD void move(int64_t begin, int64_t end, const int32_t *first, const int32_t *count) const {
        int32_t next[kGroups];
        for (int c = 0; c < kGroups; ++c) next[c] = first[c] + count[c];
        const bool both = to.as_other != to.as_preferred;
        for (int64_t i = begin; i < end; ++i) {
            const int32_t moved = place[i] = next[group(i)]++;
            to.documents[moved] = {from.id(i), from.level(i)};
            std::copy_n(from.preferred(i), kSums, to.as_preferred + moved * kSums);
            if (both) std::copy_n(from.other(i), kSums, to.as_other + moved * kSums);
        }
    }

    // Sums over the windows that end in a segment, front to back. For the last segment, `limit` is one beyond the end of the
    // list.
    template <bool kMoves>
    RANKSVM_INLINE_METHOD void sum_upper(int64_t begin, int64_t limit, const SplitTotals<kSums> &before,
                                         SplitBlock<kSums> &block) const {
        GroupSums<kSums> total(before.above);
        int32_t count[kGroups];
        std::copy_n(before.count, kGroups, count);
        int64_t next[kWindows];
        for (int which = 0; which < kWindows; ++which)
            next[which] = first_from([&](int64_t i) { return from.window(which, i); }, m, begin);
        for (int64_t p = begin; p < limit;) {
            const int64_t base = p, stop = std::min(p + kBlock, limit);
            for (; p < stop; ++p) {
                total.put(block.sums[p - base]);
                if (kMoves) std::copy_n(count, kGroups, block.count[p - base]);
                if (p == m) continue;
                const int own = group(p);
                total.add_above(own, from.preferred(p));
                if (kMoves)
                    for (int c = 0; c < kGroups; ++c) count[c] += own == c;
            }
            for (int which = 0; which < kWindows; ++which) {
                int64_t i = next[which];
                for (; i < m && from.window(which, i) < stop; ++i) {
                    const int64_t row = from.window(which, i) - base;
                    const int own = group(i);
                    double *sums = kMoves ? to.upper[which][place[i]].sums : out + (2 * from.id(i) * kWindows + which) * kSums;
                    if (kMoves) to.upper[which][place[i]].at = block.count[row][own];
                    for (int sum = 0; sum < kSums; ++sum)
                        sums[sum] = from.upper_sum(which, i, sum) + block.sums[row][sum][own];
                }
                next[which] = i;
            }
        }
    }

    // Sums over the windows that start in a segment, back to front.
    template <bool kMoves>
    RANKSVM_INLINE_METHOD void sum_lower(int64_t begin, int64_t limit, const SplitTotals<kSums> &after,
                                         SplitBlock<kSums> &block) const {
        GroupSums<kSums> total(after.below);
        int32_t count[kGroups];
        std::copy_n(after.count, kGroups, count);
        int64_t next[kWindows];
        for (int which = 0; which < kWindows; ++which)
            next[which] = first_from([&](int64_t i) { return from.start(which, i); }, m, limit) - 1;
        for (int64_t p = limit - 1; p >= begin;) {
            const int64_t base = p, stop = std::max(p - kBlock, begin - 1);
            for (; p > stop; --p) {
                if (p < m) {
                    const int own = group(p);
                    total.add_below(own, from.other(p));
                    if (kMoves)
                        for (int c = 0; c < kGroups; ++c) count[c] -= own == c;
                }
                total.put(block.sums[base - p]);
                if (kMoves) std::copy_n(count, kGroups, block.count[base - p]);
            }
            for (int which = 0; which < kWindows; ++which) {
                int64_t i = next[which];
                for (; i >= 0 && from.start(which, i) > stop; --i) {
                    const int64_t row = base - from.start(which, i);
                    const int own = group(i);
                    double *sums =
                        kMoves ? to.lower[which][place[i]].sums : out + ((2 * from.id(i) + 1) * kWindows + which) * kSums;
                    if (kMoves) to.lower[which][place[i]].at = block.count[row][own];
                    for (int sum = 0; sum < kSums; ++sum)
                        sums[sum] = from.lower_sum(which, i, sum) + block.sums[row][sum][own];
                }
                next[which] = i;
            }
        }
    }
};

// Replaces the totals of each segment by the totals of all segments before it or, for `below`, after it. Returns the sizes of
// the groups in `size`.
template <int kSums>
RANKSVM_NOINLINE static void scan_totals(SplitTotals<kSums> *totals, int64_t n, int32_t *size) {
    for (int c = 0; c < kGroups; ++c) {
        int32_t count = 0;
        for (int64_t k = 0; k < n; ++k) {
            const int32_t own = totals[k].count[c];
            totals[k].count[c] = count;
            count += own;
        }
        totals[n].count[c] = size[c] = count;
        for (int sum = 0; sum < kSums; ++sum) {
            double above = 0.0, below = 0.0;
            for (int64_t k = 0; k < n; ++k) {
                const double own = totals[k].above[sum][c];
                totals[k].above[sum][c] = above;
                above += own;
            }
            for (int64_t k = n - 1; k >= 0; --k) {
                const double own = totals[k].below[sum][c];
                totals[k].below[sum][c] = below;
                below += own;
            }
        }
    }
}

// One split; size[c] receives the size of group c.
template <bool kMoves, int kSums, int kWindows>
RANKSVM_INLINE void split_part(const Workers &workers, const Split<kSums, kWindows> &split,
                               SplitTotals<kSums> *totals, int32_t *size) {
    const Segments segments(split.m);
    const int64_t n = segments.n;
    for_segments(workers, split.m, [&](int64_t k, int64_t begin, int64_t end) {
        totals[k] = SplitTotals<kSums>();
        if (kMoves) split.count_groups(begin, end, totals[k].count);
        if (n > 1) split.sum_groups(begin, end, totals[k]);
    });
    scan_totals(totals, n, size);
    if (kMoves) {
        int32_t first[kGroups], position = 0;
        for (int c = 0; c < kGroups; ++c) {
            first[c] = position;
            position += size[c];
        }
        for_segments(workers, split.m, [&](int64_t k, int64_t begin, int64_t end) {
            split.move(begin, end, first, totals[k].count);
        });
    }
    for_segments(workers, split.m, [&](int64_t k, int64_t begin, int64_t end) {
        SplitBlock<kSums> block;
        const int64_t limit = end == split.m ? end + 1 : end;
        split.template sum_upper<kMoves>(begin, limit, totals[k], block);
        SplitTotals<kSums> after = totals[k];
        if (kMoves) std::copy_n(totals[k + 1].count, kGroups, after.count);
        split.template sum_lower<kMoves>(begin, limit, after, block);
    });
}

// The last step of a part: writes its sums so far plus the sums over all of its pairs.
template <int kSums, int kWindows>
RANKSVM_INLINE void sum_pairwise(const SplitPart<kSums, kWindows> &part, int64_t m, double *out) {
    double level[kPairwise] = {0.0}, window[kWindows][kPairwise] = {{0.0}}, place[kPairwise];
    double upper[kWindows][kSums][kPairwise] = {{{0.0}}}, lower[kWindows][kSums][kPairwise] = {{{0.0}}};
    for (int64_t i = 0; i < kPairwise; ++i) place[i] = static_cast<double>(i);
    for (int64_t i = 0; i < m; ++i) {
        level[i] = part.level(i);
        for (int which = 0; which < kWindows; ++which) {
            window[which][i] = part.window(which, i);
            for (int sum = 0; sum < kSums; ++sum) {
                upper[which][sum][i] = part.upper_sum(which, i, sum);
                lower[which][sum][i] = part.lower_sum(which, i, sum);
            }
        }
    }
    for (int64_t p = 0; p < m; ++p) {
        const double own = level[p], position = place[p];
        for (int which = 0; which < kWindows; ++which) {
            const double end = window[which][p];
            for (int sum = 0; sum < kSums; ++sum) {
                const double x = part.preferred(p)[sum], y = part.other(p)[sum];
                for (int64_t i = 0; i < kPairwise; ++i) {
                    upper[which][sum][i] += (own > level[i]) & (position < window[which][i]) ? x : 0.0;
                    lower[which][sum][i] += (own < level[i]) & (place[i] < end) ? y : 0.0;
                }
            }
        }
    }
    for (int64_t i = 0; i < m; ++i)
        for (int which = 0; which < kWindows; ++which) {
            double *own = out + (2 * part.id(i) * kWindows + which) * kSums;
            for (int sum = 0; sum < kSums; ++sum) {
                own[sum] = upper[which][sum][i];
                own[kWindows * kSums + sum] = lower[which][sum][i];
            }
        }
}

// The last step of a part of one level, which has no pairs: writes its sums so far.
template <int kSums, int kWindows>
RANKSVM_INLINE void put_sums(const SplitPart<kSums, kWindows> &part, int64_t m, double *out) {
    for (int64_t i = 0; i < m; ++i)
        for (int which = 0; which < kWindows; ++which) {
            double *own = out + (2 * part.id(i) * kWindows + which) * kSums;
            for (int sum = 0; sum < kSums; ++sum) {
                own[sum] = part.upper_sum(which, i, sum);
                own[kWindows * kSums + sum] = part.lower_sum(which, i, sum);
            }
        }
}

// A part that is still to be summed: where it is, and its levels.
struct PartRange {
    int64_t first, size;
    int32_t low, n_levels;
    int memory;  // in which of the two memories it lies
};

template <int kSums, int kWindows>
class LevelSplit {
    using Memory = SplitMemory<kSums, kWindows>;
    using Part = SplitPart<kSums, kWindows>;

   public:
    LevelSplit(SortedQuery &query, const double *preferred, const double *other, double *out)
        : query_(query), out_(out), place_(room_for<int32_t>(query.places, 2 * query.m)), numbers_(place_ + query.m),
          whole_(query, preferred, other, numbers_, zeros_) {
        const int64_t m = query.m, side = sizeof(SplitSide<kSums>), values = kSums * sizeof(double);
        const int64_t document = sizeof(SplitDocument) + (preferred == other ? values : 2 * values);
        for (int which = 0; which < 2; ++which) {
            if (query.n_levels <= kGroups) continue;  // one split is enough, nothing moves
            char *memory = room_for<char>(query.split[which], m * (document + 2 * kWindows * side));
            memory_[which].documents = reinterpret_cast<SplitDocument *>(memory);
            memory_[which].as_preferred = reinterpret_cast<double *>(memory + m * sizeof(SplitDocument));
            memory_[which].as_other = memory_[which].as_preferred + (preferred == other ? 0 : m * kSums);
            memory += m * document;
            for (auto *sides : {memory_[which].upper, memory_[which].lower})
                for (int window = 0; window < kWindows; ++window, memory += m * side)
                    sides[window] = reinterpret_cast<SplitSide<kSums> *>(memory);
        }
        for (int64_t i = 0; i < m; ++i) numbers_[i] = static_cast<int32_t>(i);
    }

    void sum() {
        const int64_t m = query_.m;
        // parts too long for one thread, and all others; a part has at most 8 children, and at most 11 ancestors
        const int64_t most = kGroups * (11 * (m / kSharedPart) + 2);
        PartRange *shared = room_for<PartRange>(query_.parts, 2 * most), *own = shared + most;
        int64_t n_shared = 0, n_own = 0;
        SplitTotals<kSums> *totals = room_for<SplitTotals<kSums>>(query_.totals, kMostSegments + 1);
        PartRange children[kGroups];
        const auto put = [&](int n) {
            for (int c = 0; c < n; ++c)
                if (children[c].size > kSharedPart && children[c].n_levels > 1)
                    shared[n_shared++] = children[c];
                else
                    own[n_own++] = children[c];
        };
        put(split(query_.workers, whole_, {0, m, 0, query_.n_levels, 1}, totals, children));
        while (n_shared > 0) {
            const PartRange part = shared[--n_shared];
            put(split(query_.workers, Part(memory_[part.memory].from(part.first)), part, totals, children));
        }
        for_each(query_.workers, n_own, [&](int64_t k) { finish(own[k]); });
    }

   private:
    // One split of a part. Returns how many children it has.
    RANKSVM_NOINLINE int split(const Workers &workers, const Part &from, const PartRange &part, SplitTotals<kSums> *totals,
              PartRange *children) {
        int shift = 0;
        while ((kGroups << shift) < part.n_levels) ++shift;
        const int memory = 1 - part.memory;
        const Split<kSums, kWindows> step = {
            from, memory_[memory].from(shift > 0 ? part.first : 0), part.size, part.low, shift, place_ + part.first, out_};
        int32_t size[kGroups];
        if (shift == 0) {
            split_part<false>(workers, step, totals, size);
            return 0;
        }
        split_part<true>(workers, step, totals, size);
        int n = 0;
        int64_t first = part.first;
        for (int c = 0; c < kGroups && (c << shift) < part.n_levels; ++c) {
            const int32_t left = part.n_levels - (c << shift);
            if (size[c] > 0) children[n++] = {first, size[c], part.low + (c << shift), std::min(1 << shift, left), memory};
            first += size[c];
        }
        return n;
    }

    // Completes a part in one thread.
    void finish(const PartRange &all) {
        PartRange stack[kGroups * 11];
        SplitTotals<kSums> totals[kSharedPart / kSegmentDocuments + 1];
        int depth = 0;
        stack[depth++] = all;
        while (depth > 0) {
            const PartRange part = stack[--depth];
            const Part from(memory_[part.memory].from(part.first));
            if (part.n_levels == 1)
                put_sums(from, part.size, out_);
            else if (part.size <= kPairwise)
                sum_pairwise(from, part.size, out_);
            else
                depth += split(kCallerAlone, from, part, totals, stack + depth);
        }
    }

    SortedQuery &query_;
    double *out_;
    int32_t *place_, *numbers_;
    double zeros_[kSums] = {};
    Memory memory_[2] = {};
    Part whole_;
};

}  // namespace ranksvm::RANKSVM_VARIANT

#endif
