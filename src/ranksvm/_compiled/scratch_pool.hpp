// Owns the memory of scratch.hpp: keeps it from one call to the next, and frees it at the end.
#ifndef RANKSVM_SCRATCH_POOL_HPP
#define RANKSVM_SCRATCH_POOL_HPP

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "scratch.hpp"

namespace ranksvm {

inline void release(SortedQuery &query) {
    SortMemory &sorting = query.sorting;
    for (Buffer *buffer : {&sorting.keyed, &sorting.spread, &sorting.stretch, &sorting.counts, &sorting.bucket, &sorting.next,
                           &query.documents, &query.values, &query.weighed, &query.partial, &query.table, &query.split[0],
                           &query.split[1], &query.places, &query.parts, &query.totals, &query.columns, &query.sums})
        std::free(buffer->memory);
}

// Working memory for sorting and sweeping queries: each thread takes one object while it is at work.
class ScratchPool {
   public:
    ~ScratchPool() {
        for (auto &query : spare_) release(*query);
    }
    std::unique_ptr<SortedQuery> take() {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (spare_.empty()) {
            // reserves room for `give`, which a destructor calls and which must not throw
            if (spare_.capacity() <= n_made_) spare_.reserve(2 * n_made_ + 1);
            std::unique_ptr<SortedQuery> made = std::make_unique<SortedQuery>();
            ++n_made_;
            return made;
        }
        std::unique_ptr<SortedQuery> query = std::move(spare_.back());
        spare_.pop_back();
        return query;
    }
    void give(std::unique_ptr<SortedQuery> query) noexcept {
        const std::lock_guard<std::mutex> lock(mutex_);
        spare_.push_back(std::move(query));
    }

   private:
    std::mutex mutex_;
    std::vector<std::unique_ptr<SortedQuery>> spare_;
    std::size_t n_made_ = 0;
};

// The memory of one thread, which is given back to the pool at the end.
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
