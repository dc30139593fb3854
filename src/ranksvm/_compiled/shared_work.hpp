// What the modules do for workers.hpp and scratch.hpp: work taken by several threads, and memory given back.
#ifndef RANKSVM_SHARED_WORK_HPP
#define RANKSVM_SHARED_WORK_HPP

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "scratch.hpp"

namespace ranksvm {

// task(argument, k) for k = 0 .. n - 1, each taken by the thread that is free.
class SharedWork {
   public:
    SharedWork(int64_t n, Task task, const void *argument) : n_(n), task_(task), argument_(argument) {}
    void take() {
        for (int64_t k = next_++; k < n_; k = next_++) task_(argument_, k);
    }
    // Nothing is taken any more.
    void stop() { next_ = n_; }

   private:
    std::atomic<int64_t> next_{0};
    int64_t n_;
    Task task_;
    const void *argument_;
};

inline void pause_briefly() { std::this_thread::sleep_for(std::chrono::microseconds(50)); }

inline void release(SortedQuery &query) {
    SortMemory &sorting = query.sorting;
    for (Buffer *buffer : {&sorting.keyed, &sorting.spread, &sorting.stretch, &sorting.counts, &sorting.bucket, &sorting.next,
                           &query.documents, &query.values, &query.weighed, &query.partial, &query.table, &query.split[0],
                           &query.split[1], &query.places, &query.parts, &query.totals, &query.columns, &query.sums})
        std::free(buffer->memory);
}

// Memory to sort and sweep queries in, of which each thread takes one while it is at work.
class ScratchPool {
   public:
    ~ScratchPool() {
        for (auto &query : spare_) release(*query);
    }
    std::unique_ptr<SortedQuery> take() {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (spare_.empty()) return std::make_unique<SortedQuery>();
        std::unique_ptr<SortedQuery> query = std::move(spare_.back());
        spare_.pop_back();
        return query;
    }
    void give(std::unique_ptr<SortedQuery> query) {
        const std::lock_guard<std::mutex> lock(mutex_);
        spare_.push_back(std::move(query));
    }

   private:
    std::mutex mutex_;
    std::vector<std::unique_ptr<SortedQuery>> spare_;
};

// The memory of one thread, given back at the end.
class Scratch {
   public:
    explicit Scratch(ScratchPool &pool) : pool_(pool), query_(pool.take()) {}
    ~Scratch() { pool_.give(std::move(query_)); }
    SortedQuery &query() { return *query_; }

   private:
    ScratchPool &pool_;
    std::unique_ptr<SortedQuery> query_;
};

}  // namespace ranksvm

#endif
