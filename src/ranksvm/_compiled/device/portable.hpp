// The differences between g++ and NVRTC, in one place: the bodies of all kernels are the same text for a GPU and for the host.
//
// A kernel is a function of only pointers, int64_t and double (8 bytes each), run by blocks of threads. Its work is cut into
// phases: between two of them all threads of the block wait for each other, and what a later phase needs of an earlier one is
// in the block's shared memory. A thread's variables end with the phase. On the host a phase is a loop over the threads.
#ifndef RANKSVM_DEVICE_PORTABLE_HPP
#define RANKSVM_DEVICE_PORTABLE_HPP

#if defined(__CUDACC__)

#define RANKSVM_DEVICE __device__ __forceinline__
// A function that is not inlined, and loops of which no copies are made, or two: copies of either would take long to compile.
#define RANKSVM_CALLED __device__ __noinline__
#define RANKSVM_ROLLED _Pragma("unroll 1")
#define RANKSVM_TWICE _Pragma("unroll 2")
#define RANKSVM_KERNEL(name) extern "C" __global__ void name
// A kernel that keeps rows in shared memory: a multiprocessor has registers for RANKSVM_LARGE_BLOCKS of its blocks, which
// have at most 256 threads.
#define RANKSVM_LARGE_KERNEL(name) extern "C" __global__ void __launch_bounds__(256, RANKSVM_LARGE_BLOCKS) name
#define RANKSVM_PHASE(thread) for (int thread = (__syncthreads(), static_cast<int>(threadIdx.x)); thread >= 0; thread = -1)

#else

#define RANKSVM_DEVICE inline
#define RANKSVM_CALLED inline
#define RANKSVM_ROLLED
#define RANKSVM_TWICE
#define RANKSVM_KERNEL(name) inline void name
#define RANKSVM_LARGE_KERNEL(name) inline void name
// The loop may run backwards: the result of a phase must not depend on the order of its threads, and a test runs both orders.
#define RANKSVM_PHASE(thread)                                                                          \
    for (int thread##_turn = 0, thread = ranksvm::device::thread_in_turn(0);                            \
         thread##_turn < ranksvm::device::current_block.n_threads;                                      \
         ++thread##_turn, thread = ranksvm::device::thread_in_turn(thread##_turn))

#endif

#if defined(__CUDACC_RTC__)  // NVRTC has no headers
namespace ranksvm {
typedef int int32_t;
typedef long long int64_t;
}  // namespace ranksvm
#else
#include <cstdint>
#include <vector>

namespace ranksvm {
using std::int32_t;
using std::int64_t;
}  // namespace ranksvm
#endif

namespace ranksvm::device {

struct Block {
    int64_t index, count;  // of this block, of all blocks
    int n_threads;
    double *shared;
    bool backwards;  // whether threads run in the opposite order, on the host only
};

#if defined(__CUDACC__)

extern __shared__ __align__(16) double shared_memory[];

RANKSVM_DEVICE Block this_block() {
    return {static_cast<int64_t>(blockIdx.x), static_cast<int64_t>(gridDim.x), static_cast<int>(blockDim.x), shared_memory,
            false};
}

#else

static thread_local Block current_block;

inline const Block &this_block() { return current_block; }

inline int thread_in_turn(int turn) { return current_block.backwards ? current_block.n_threads - 1 - turn : turn; }

#endif

// A value for each thread of a block, kept from one phase to the next.
template <class T>
class OfThread {
public:
#if defined(__CUDACC__)
    RANKSVM_DEVICE explicit OfThread(const Block &) {}
    RANKSVM_DEVICE T &operator[](int) { return value_; }

private:
    T value_;
#else
    explicit OfThread(const Block &block) : values_(block.n_threads) {}
    T &operator[](int thread) { return values_[thread]; }

private:
    std::vector<T> values_;
#endif
};

// Number of threads that go through a row, or a range of entries, together. (8 float32 values are a sector, the unit in which a
// GPU reads memory.) The number of threads in a block is a multiple of kLanes.
constexpr int kLanes = 8;

#if defined(__CUDACC__)
// The sum of the values of kLanes threads: all of them get the same bits.
RANKSVM_DEVICE double sum_of_lanes(double value) {
    const unsigned own = 0xffu << (threadIdx.x & 31 & ~(kLanes - 1));
    for (int apart = kLanes / 2; apart > 0; apart /= 2) value += __shfl_xor_sync(own, value, apart);
    return value;
}
#endif

// The sum of term(k) over first <= k < last, by kLanes threads together, each with its number as `lane`: all of them get the
// same bits. On the host each lane does the work of all.
template <class Term>
RANKSVM_DEVICE double sum_by_lanes(int lane, int64_t first, int64_t last, const Term &term) {
#if defined(__CUDACC__)
    double sum = 0.0;
    for (int64_t k = first + lane; k < last; k += kLanes) sum += term(k);
    return sum_of_lanes(sum);
#else
    static_cast<void>(lane);
    double sums[kLanes] = {};
    for (int each = 0; each < kLanes; ++each)
        for (int64_t k = first + each; k < last; k += kLanes) sums[each] += term(k);
    for (int apart = kLanes / 2; apart > 0; apart /= 2)
        for (int each = 0; each < apart; ++each) sums[each] += sums[each + apart];
    return sums[0];
#endif
}

// The sum of part(lane, sums) over kLanes threads, each with its number as `lane`; what a part adds to `sums` stays with the
// thread. On the host the first lane does the work of all, and only it has the result.
template <class Part>
RANKSVM_DEVICE double add_lanes(int lane, double *sums, const Part &part) {
#if defined(__CUDACC__)
    return sum_of_lanes(part(lane, sums));
#else
    if (lane != 0) return 0.0;
    double sum = 0.0;
    for (int each = 0; each < kLanes; ++each) sum += part(each, sums);
    return sum;
#endif
}

// The number of bytes that `begin_copy` copies at a time: 16 or 8 if all rows of n values begin at multiples of it.
template <class Real>
RANKSVM_DEVICE int64_t bytes_at_a_time(const Real *X, int64_t n) {
#if defined(__CUDACC__)
    const int64_t ends = static_cast<int64_t>(reinterpret_cast<unsigned long long>(X)) | n * static_cast<int64_t>(sizeof(Real));
    for (int64_t wide = 16; wide > static_cast<int64_t>(sizeof(Real)); wide /= 2)
        if (ends % wide == 0) return wide;
#else
    static_cast<void>(X);
    static_cast<void>(n);
#endif
    return sizeof(Real);
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
template <int kBytes>
RANKSVM_DEVICE void begin_copy_of_bytes(unsigned to, const char *from, int64_t n_bytes, int lane, int lanes) {
    for (int64_t byte = kBytes * lane; byte < n_bytes; byte += kBytes * lanes)
        if constexpr (kBytes == 16)  // not through the L1 cache
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to + static_cast<unsigned>(byte)), "l"(from + byte)
                         : "memory");
        else
            asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to + static_cast<unsigned>(byte)), "l"(from + byte),
                         "n"(kBytes)
                         : "memory");
}
#endif

// Copies a row of n values from the memory of the device to the shared memory of the block, by `lanes` threads, each with its
// number as `lane`. The copy is complete once these threads have called `await_copies`: on a GPU all copies of a phase run at
// the same time, and need no registers. `wide` is the result of `bytes_at_a_time`.
template <class Real>
RANKSVM_DEVICE void begin_copy(Real *to, const Real *from, int64_t n, int64_t wide, int lane, int lanes) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    const unsigned there = static_cast<unsigned>(__cvta_generic_to_shared(to));
    const char *here = reinterpret_cast<const char *>(from);
    const int64_t n_bytes = n * static_cast<int64_t>(sizeof(Real));
    if (wide == 16)
        begin_copy_of_bytes<16>(there, here, n_bytes, lane, lanes);
    else if (wide == 8)
        begin_copy_of_bytes<8>(there, here, n_bytes, lane, lanes);
    else
        begin_copy_of_bytes<4>(there, here, n_bytes, lane, lanes);
#else
    static_cast<void>(wide);
    for (int64_t f = lane; f < n; f += lanes) to[f] = from[f];
#endif
}

RANKSVM_DEVICE void await_copies() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

// Called at the end of a kernel. out[column] = the sum over the threads of shared[column * n_threads + thread], in an order
// that depends on the number of threads alone. The number of threads is a power of two.
RANKSVM_DEVICE void add_threads(const Block &block, int columns, double *out) {
    for (int apart = block.n_threads / 2; apart > 0; apart /= 2) {
        RANKSVM_PHASE(thread) {
            if (thread < apart)
                for (int column = 0; column < columns; ++column) {
                    double *sums = block.shared + column * block.n_threads;
                    sums[thread] += sums[thread + apart];
                }
        }
    }
    RANKSVM_PHASE(thread) {
        for (int column = thread; column < columns; column += block.n_threads) out[column] = block.shared[column * block.n_threads];
    }
}

}  // namespace ranksvm::device

#endif
