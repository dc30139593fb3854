// How loops share out work among threads, without knowing the threads.
#ifndef RANKSVM_WORKERS_HPP
#define RANKSVM_WORKERS_HPP

#include <cstdint>

namespace ranksvm {

using std::int64_t;

using Task = void (*)(const void *argument, int64_t k);

// `run` calls task(argument, k) for k = 0 .. n - 1 in any order, on up to `n_threads` threads, and returns when all are done;
// it throws what one of them throws. If `run` is null, the caller does everything.
struct Workers {
    void (*run)(int64_t n_threads, int64_t n, Task task, const void *argument);
    int64_t n_threads;
};

constexpr Workers kCallerAlone{nullptr, 1};

}  // namespace ranksvm

#endif
