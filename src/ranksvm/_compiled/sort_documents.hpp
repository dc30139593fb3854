// Sorts documents by score, stably unless std::sort takes over (see sort_stretch).
#ifndef RANKSVM_SORT_DOCUMENTS_HPP
#define RANKSVM_SORT_DOCUMENTS_HPP

#include <algorithm>
#include <cstdint>
#include <limits>

#include "portable.hpp"
#include "segments.hpp"

namespace ranksvm::RANKSVM_VARIANT {

struct Keyed {
    double score;
    int32_t index;
};

// Straight insertion, given up after `moves_left` moves. Returns whether it came to the end.
RANKSVM_INLINE bool insertion_sort(Keyed *keyed, int64_t m, int64_t moves_left) {
    for (int64_t i = 1; i < m; ++i) {
        const Keyed item = keyed[i];
        int64_t j = i;
        for (; j > 0 && item.score < keyed[j - 1].score; --j) keyed[j] = keyed[j - 1];
        keyed[j] = item;
        if ((moves_left -= i - j) < 0) return false;
    }
    return true;
}

// Distribute the documents over as many buckets of equal width as there are documents. The documents are then nearly sorted,
// unless scores cluster.
RANKSVM_INLINE void bucket_sort(const Keyed *keyed, int64_t m, double low, double high, int32_t *bucket, int32_t *next,
                                Keyed *out) {
    const double scale = static_cast<double>(m - 1) / (high - low);
    std::fill_n(next, m, 0);
    for (int64_t i = 0; i < m; ++i) bucket[i] = static_cast<int32_t>((keyed[i].score - low) * scale);
    for (int64_t i = 0; i < m; ++i) ++next[bucket[i]];
    int32_t position = 0;
    for (int64_t c = 0; c < m; ++c) {
        const int32_t size = next[c];
        next[c] = position;
        position += size;
    }
    for (int64_t i = 0; i < m; ++i) out[next[bucket[i]]++] = keyed[i];
}

// Sort in O(m) if scores are nearly in order or evenly spread, in O(m log m) at worst; bucket and next are scratch of m numbers
// each. Returns which of `keyed` and `spread` holds the result.
RANKSVM_NOINLINE static const Keyed *sort_stretch(Keyed *keyed, Keyed *spread, int64_t m, int32_t *bucket,
                                                  int32_t *next) {
    int64_t descents = 0;
    double low = std::numeric_limits<double>::infinity(), high = -low, last = high;
    for (int64_t i = 0; i < m; ++i) {
        const double score = keyed[i].score;
        descents += score < last;
        low = std::min(low, score);
        high = std::max(high, score);
        last = score;
    }
    if (descents == 0 || (descents * 4 <= m && insertion_sort(keyed, m, 4 * m))) return keyed;
    const double range = high - low;
    // (a range so small or so large that positions in it overflow is left to std::sort)
    if (range > 1e-290 && range < 1e290) {
        bucket_sort(keyed, m, low, high, bucket, next, spread);
        keyed = spread;
        if (insertion_sort(keyed, m, 8 * m)) return keyed;
    }
    std::sort(keyed, keyed + m, [](const Keyed &x, const Keyed &y) { return x.score < y.score; });
    return keyed;
}

// Scores that divide a list into stretches of about equal length, as many as it has segments. They are chosen from a sample.
struct Splitters {
    static constexpr int64_t kSampled = 32;  // number of sampled scores for each stretch
    double score[kMostSegments];             // infinity beyond those needed

    // False if the sample has a NaN.
    template <class Item>
    RANKSVM_INLINE_METHOD bool choose(const Segments &segments, const Item &item) {
        double sample[kSampled * kMostSegments];
        const int64_t size = kSampled * segments.n;
        for (int64_t k = 0; k < size; ++k) {
            sample[k] = item(segments.m * (2 * k + 1) / (2 * size)).score;
            if (sample[k] != sample[k]) return false;
        }
        std::sort(sample, sample + size);
        std::fill_n(score, kMostSegments, std::numeric_limits<double>::infinity());
        for (int64_t k = 1; k < segments.n; ++k) score[k - 1] = sample[kSampled * k];
        return true;
    }

    // The number of splitters that are less than a score, so that equal scores share a stretch.
    RANKSVM_INLINE_METHOD int stretch_of(double own) const {
        static_assert(kMostSegments == 32, "as many halvings as follow");
        int less = 0;
        for (int step = 16; step > 0; step /= 2) less += step & -static_cast<int>(score[less + step - 1] < own);
        return less;
    }
};

// Sort item(0) .. item(m - 1), and call put(begin, sorted, size) for stretches of the result. A long list is distributed over
// stretches of scores, and every stretch sorted by itself. Returns false, without a call of `put`, if a score is NaN.
template <class Item, class Put>
RANKSVM_INLINE bool sort_documents(const Workers &workers, SortMemory &memory, int64_t m, const Item &item,
                                   const Put &put) {
    const Segments segments(m);
    const int64_t n = segments.n;
    Keyed *keyed = room_for<Keyed>(memory.keyed, m), *spread = room_for<Keyed>(memory.spread, m);
    uint8_t *stretch = room_for<uint8_t>(memory.stretch, m);
    // of each segment: how many documents go to every stretch, number of descents, whether no score is NaN
    struct Counts {
        int64_t to[kMostSegments];
        int64_t descents;
        bool numbers;
    };
    Counts *counts = room_for<Counts>(memory.counts, n);
    Splitters splitters;
    if (n > 1 && !splitters.choose(segments, item)) return false;
    for_segments(workers, m, [&](int64_t segment, int64_t begin, int64_t end) {
        Counts found = {};
        found.numbers = true;
        double last = begin > 0 ? item(begin - 1).score : -std::numeric_limits<double>::infinity();
        for (int64_t i = begin; i < end; ++i) {
            keyed[i] = item(i);
            const double score = keyed[i].score;
            found.descents += score < last;
            found.numbers = found.numbers && score == score;
            last = score;
            if (n > 1) ++found.to[stretch[i] = static_cast<uint8_t>(splitters.stretch_of(score))];
        }
        counts[segment] = found;
    });
    int64_t descents = 0;
    bool numbers = true;
    for (int64_t segment = 0; segment < n; ++segment) {
        descents += counts[segment].descents;
        numbers = numbers && counts[segment].numbers;
    }
    if (!numbers) return false;
    if (descents == 0) {
        for_segments(workers, m, [&](int64_t, int64_t begin, int64_t end) { put(begin, keyed + begin, end - begin); });
        return true;
    }
    int64_t first[kMostSegments + 1] = {0, m};
    if (n > 1) {
        int64_t position = 0;
        for (int64_t c = 0; c < n; ++c) {
            first[c] = position;
            for (int64_t segment = 0; segment < n; ++segment) {
                const int64_t size = counts[segment].to[c];
                counts[segment].to[c] = position;
                position += size;
            }
        }
        first[n] = m;
        for_segments(workers, m, [&](int64_t segment, int64_t begin, int64_t end) {
            int64_t *to = counts[segment].to;
            for (int64_t i = begin; i < end; ++i) spread[to[stretch[i]]++] = keyed[i];
        });
        std::swap(keyed, spread);
    }
    int32_t *bucket = room_for<int32_t>(memory.bucket, m), *next = room_for<int32_t>(memory.next, m);
    for_each(workers, n, [&](int64_t c) {
        const int64_t begin = first[c], size = first[c + 1] - begin;
        put(begin, sort_stretch(keyed + begin, spread + begin, size, bucket + begin, next + begin), size);
    });
    return true;
}

}  // namespace ranksvm::RANKSVM_VARIANT

#endif
