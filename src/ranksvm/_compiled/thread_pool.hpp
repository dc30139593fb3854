// The threads of this process that run compiled work. They need no interpreter lock. A second thread starts 1 us after a call
// if another call came shortly before, and 40 us after it otherwise; a thread that runs Python starts after 80 to 140 us. (An
// evaluation of 10,000 x 46 takes 180 us on one thread, 115 on two.)
#ifndef RANKSVM_THREAD_POOL_HPP
#define RANKSVM_THREAD_POOL_HPP

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#if !defined(_WIN32)
#include <pthread.h>
#include <signal.h>
#endif

#include "workers.hpp"

namespace ranksvm {

// A thread without work ends after this time.
constexpr std::chrono::seconds kIdle{20};
// A thread that has nothing to do keeps looking for work for this time before it sleeps, and a caller keeps checking for this
// time whether the other threads have ended: waking one up takes 40 us, and the passes of a small fit are 30 to 100 us apart.
constexpr std::chrono::microseconds kAwake{400};
constexpr int64_t kMostThreads = 256;

// Whether this thread is at work on a task: if such a task shares out work, its own thread does all of it.
inline thread_local bool in_task = false;

class ThreadPool {
   public:
    // task(argument, k) for k = 0 .. n - 1 in any order, on up to `n_threads` threads, of which the caller is one; returns when
    // all are done. Throws the first error of a task, after which no further ones are begun.
    void run(int64_t n_threads, int64_t n, Task task, const void *argument) {
        const int64_t places = in_task ? 0 : std::min({n_threads, n, kMostThreads}) - 1;
        if (places < 1) {
            for (int64_t k = 0; k < n; ++k) task(argument, k);
            return;
        }
        Job job(n, task, argument, places);
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            if (n_threads_ < places) grow(places);
            jobs_.push_back(&job);
            ++n_posted_;
        }
        for (int64_t k = 0; k < places; ++k) work_.notify_one();
        in_task = true;
        job.take(0);
        in_task = false;
        {
            std::unique_lock<std::mutex> lock(mutex_);
            job.places = 0;
            jobs_.erase(std::find(jobs_.begin(), jobs_.end(), &job));
            if (job.n_inside > 0) {
                lock.unlock();
                look_for([&] { return job.n_inside == 0; });
                lock.lock();  // (threads leave a job under the lock: after this wait, no thread uses this job)
                ended_.wait(lock, [&] { return job.n_inside == 0; });
            }
        }
        if (job.error) std::rethrow_exception(job.error);
    }

   private:
    // The tasks, cut into as many stretches as threads may join. Each thread begins with a stretch of its own, then takes what
    // is left of the others. With two threads each has the same stretch in every call, so that it finds in its caches what it
    // had there.
    struct Job {
        struct Stretch {
            alignas(64) std::atomic<int64_t> next;
            int64_t end;
        };
        int64_t n_stretches;
        Stretch stretches[kMostThreads];
        Task task;
        const void *argument;
        int64_t places;  // threads that may still join
        std::atomic<int64_t> n_inside{0};
        std::exception_ptr error;
        std::mutex error_mutex;

        Job(int64_t n, Task task, const void *argument, int64_t places)
            : n_stretches(places + 1), task(task), argument(argument), places(places) {
            for (int64_t i = 0; i < n_stretches; ++i) {
                stretches[i].next = n * i / n_stretches;
                stretches[i].end = n * (i + 1) / n_stretches;
            }
        }
        void take(int64_t own) {
            try {
                for (int64_t i = 0; i < n_stretches; ++i) {
                    Stretch &stretch = stretches[(own + i) % n_stretches];
                    for (int64_t k = stretch.next++; k < stretch.end; k = stretch.next++) task(argument, k);
                }
            } catch (...) {
                for (int64_t i = 0; i < n_stretches; ++i) stretches[i].next = stretches[i].end;
                const std::lock_guard<std::mutex> lock(error_mutex);
                if (!error) error = std::current_exception();
            }
        }
    };

    template <class Seen>
    static void look_for(const Seen &seen) {
        const auto until = std::chrono::steady_clock::now() + kAwake;
        while (!seen() && std::chrono::steady_clock::now() < until) pause();
    }

    static void pause() {
#if defined(__x86_64__) && defined(__GNUC__)
        __builtin_ia32_pause();
#else
        std::this_thread::yield();
#endif
    }

    Job *open_job() {
        for (Job *job : jobs_)
            if (job->places > 0) return job;
        return nullptr;
    }

    // Starts threads until there are at least `wanted`, or as many as the system gives. These threads block all signals, which
    // are left to other threads.
    void grow(int64_t wanted) {
#if !defined(_WIN32)
        sigset_t all, before;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
#endif
        try {
            for (; n_threads_ < wanted; ++n_threads_) std::thread([this] { serve(); }).detach();
        } catch (const std::exception &) {
        }
#if !defined(_WIN32)
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
#endif
    }

    void serve() {
        in_task = true;
        std::unique_lock<std::mutex> lock(mutex_);
        while (work_.wait_for(lock, kIdle, [&] { return open_job() != nullptr; })) {
            Job *job = open_job();
            const int64_t stretch = job->places--;
            ++job->n_inside;
            lock.unlock();
            job->take(stretch);
            lock.lock();
            if (--job->n_inside == 0) ended_.notify_all();
            if (open_job() != nullptr) continue;
            const int64_t posted = n_posted_;
            lock.unlock();
            look_for([&] { return n_posted_ != posted; });
            lock.lock();
        }
        --n_threads_;
    }

    std::mutex mutex_;
    std::condition_variable work_, ended_;
    std::vector<Job *> jobs_;
    int64_t n_threads_ = 0;
    std::atomic<int64_t> n_posted_{0};
};

// The pool of this process. It is never destroyed: threads may wait in it until the process ends.
inline ThreadPool *pool = new ThreadPool;

inline void run_in_pool(int64_t n_threads, int64_t n, Task task, const void *argument) {
    pool->run(n_threads, n, task, argument);
}

// In the child of a fork: threads of the parent are not there, and locks may be held.
inline void begin_anew() {
    pool = new ThreadPool;
    in_task = false;
}

}  // namespace ranksvm

#endif
