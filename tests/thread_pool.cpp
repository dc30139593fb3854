// What test_threads.py asks of the pool of threads; prints "passed" at the end.
#include "thread_pool.hpp"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
#include <sys/wait.h>
#include <unistd.h>

using namespace ranksvm;

static void need(bool holds, const char *what) {
    if (holds) return;
    std::printf("not so: %s\n", what);
    std::exit(1);
}

struct Squares {
    std::vector<int64_t> found;
    static void task(const void *argument, int64_t k) {
        const_cast<Squares *>(static_cast<const Squares *>(argument))->found[static_cast<std::size_t>(k)] = k * k;
    }
};

static void check_squares(int64_t n_threads, int64_t n) {
    Squares squares{std::vector<int64_t>(static_cast<std::size_t>(n), -1)};
    run_in_pool(n_threads, n, Squares::task, &squares);
    for (int64_t k = 0; k < n; ++k) need(squares.found[static_cast<std::size_t>(k)] == k * k, "every task is done once");
}

static void nested(const void *, int64_t) {
    need(in_task, "a task knows that it is one");
    check_squares(4, 50);
}

static void fail_at_seven(const void *argument, int64_t k) {
    ++*static_cast<std::atomic<int64_t> *>(const_cast<void *>(argument));
    if (k == 7) throw std::runtime_error("seven");
}

// Waits for the other one of two tasks.
static void meet(const void *argument, int64_t) {
    auto &n_there = *static_cast<std::atomic<int64_t> *>(const_cast<void *>(argument));
    ++n_there;
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (n_there < 2) {
        need(std::chrono::steady_clock::now() < until, "two threads are at work at the same time");
        std::this_thread::yield();
    }
}

int main() {
    for (int pause : {0, 0, 5, 0, 5}) {  // for threads that are new, still looking for work, or asleep
        std::this_thread::sleep_for(std::chrono::milliseconds(pause));
        std::atomic<int64_t> n_there{0};
        run_in_pool(2, 2, meet, &n_there);
    }

    for (int64_t n_threads : {1, 2, 3, 8})
        for (int64_t n : {0, 1, 2, 100}) check_squares(n_threads, n);
    need(!in_task, "a caller is no task afterwards");

    run_in_pool(3, 20, nested, nullptr);

    for (int repeated = 0; repeated < 50; ++repeated) {
        std::atomic<int64_t> n_begun{0};
        bool failed = false;
        try {
            run_in_pool(3, 1000000000, fail_at_seven, &n_begun);
        } catch (const std::runtime_error &error) {
            failed = std::string(error.what()) == "seven";
        }
        need(failed && n_begun < 1000000000 && !in_task, "an error is thrown, and ends the work");
    }

    std::vector<std::thread> callers;
    for (int64_t caller = 0; caller < 6; ++caller)
        callers.emplace_back([caller] {
            for (int repeated = 0; repeated < 300; ++repeated) check_squares(2 + caller % 3, 5 + caller);
        });
    for (std::thread &caller : callers) caller.join();

    const pid_t child = fork();
    if (child == 0) {
        begin_anew();
        check_squares(3, 100);
        _exit(0);
    }
    int status = 1;
    waitpid(child, &status, 0);
    need(status == 0, "a child has threads of its own");
    check_squares(3, 100);
    std::puts("passed");
}
