// One long list shared out among threads: who does the parts of it.
#ifndef RANKSVM_WORKERS_HPP
#define RANKSVM_WORKERS_HPP

#include <cstdint>

namespace ranksvm {

using std::int64_t;

using Task = void (*)(const void *argument, int64_t k);

// `run` calls task(argument, k) for k = 0 .. n - 1 in any order, on several threads, and returns when all are done; not 0 if
// one of them failed or the user interrupted. Without it the caller does everything.
struct Workers {
    int (*run)(void *context, int64_t n, Task task, const void *argument);
    void *context;
};

}  // namespace ranksvm

#endif
