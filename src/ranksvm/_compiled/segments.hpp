// Segments of long lists, and the working memory for lists.
#ifndef RANKSVM_SEGMENTS_HPP
#define RANKSVM_SEGMENTS_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

#include "portable.hpp"
#include "scratch.hpp"
#include "workers.hpp"

namespace ranksvm::RANKSVM_VARIANT {

// Room for `size` values; what was in the buffer may be lost. (Not set to zero, as a vector would be.)
template <class T>
RANKSVM_INLINE T *room_for(Buffer &buffer, int64_t size) {
    const std::size_t bytes = static_cast<std::size_t>(size) * sizeof(T);
    if (buffer.bytes < bytes || buffer.memory == nullptr) {
        std::free(buffer.memory);
        buffer.bytes = 0;
        buffer.memory = std::malloc(std::max<std::size_t>(bytes, 64));
        if (buffer.memory == nullptr) throw std::bad_alloc();
        buffer.bytes = bytes;
    }
    return static_cast<T *>(buffer.memory);
}

// The same compiled code of a task, not inlined, runs on one thread and on several: two copies could round differently.
template <class Task>
struct Call {
    RANKSVM_NOINLINE static void task(const void *argument, int64_t k) { (*static_cast<const Task *>(argument))(k); }
};

template <class Task>
RANKSVM_INLINE void for_each(const Workers &workers, int64_t n, const Task &task) {
    if (workers.run == nullptr || n < 2)
        for (int64_t k = 0; k < n; ++k) Call<Task>::task(&task, k);
    else
        workers.run(workers.n_threads, n, &Call<Task>::task, &task);
}

// A list is worked on in segments of about kSegmentDocuments documents, at most kMostSegments of them. They depend on the
// length alone: sums are then the same to the last bit for any number of threads.
constexpr int64_t kSegmentDocuments = 8192, kMostSegments = 32;

struct Segments {
    int64_t m, n;

    RANKSVM_INLINE_METHOD explicit Segments(int64_t size)
        : m(size), n(std::min(std::max<int64_t>(size / kSegmentDocuments, 1), kMostSegments)) {}
    RANKSVM_INLINE_METHOD int64_t begin(int64_t k) const { return m * k / n; }
    RANKSVM_INLINE_METHOD int64_t end(int64_t k) const { return m * (k + 1) / n; }
};

// task(k, begin, end) for the segments of a list of m documents
template <class Task>
RANKSVM_INLINE void for_segments(const Workers &workers, int64_t m, const Task &task) {
    const Segments segments(m);
    for_each(workers, segments.n, [&](int64_t k) { task(k, segments.begin(k), segments.end(k)); });
}

}  // namespace ranksvm::RANKSVM_VARIANT

#endif
