// What differs between compilers, in one place.
#ifndef RANKSVM_PORTABLE_HPP
#define RANKSVM_PORTABLE_HPP

#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

#if defined(_MSC_VER)
#define RANKSVM_INLINE static __forceinline
#define RANKSVM_INLINE_METHOD __forceinline
#define RANKSVM_NOINLINE __declspec(noinline)
#define RANKSVM_RESTRICT __restrict
#define RANKSVM_PREFETCH(address) static_cast<void>(address)
#define RANKSVM_PREFETCH_LATER(address) static_cast<void>(address)
#else
#define RANKSVM_INLINE static inline __attribute__((always_inline))
#define RANKSVM_INLINE_METHOD inline __attribute__((always_inline))
#define RANKSVM_NOINLINE __attribute__((noinline))
#define RANKSVM_RESTRICT __restrict__
#define RANKSVM_PREFETCH(address) __builtin_prefetch(address)
#define RANKSVM_PREFETCH_LATER(address) __builtin_prefetch(address, 0, 2)  // not into the nearest cache
#endif

// A vector whose functions belong to this namespace (instruction_set.hpp says why).
namespace ranksvm::RANKSVM_VARIANT {
template <class T>
struct Allocator {
    using value_type = T;
    Allocator() = default;
    template <class U>
    Allocator(const Allocator<U> &) {}
    T *allocate(std::size_t n) { return static_cast<T *>(::operator new(n * sizeof(T))); }
    void deallocate(T *memory, std::size_t) { ::operator delete(memory); }
    friend bool operator==(const Allocator &, const Allocator &) { return true; }
    friend bool operator!=(const Allocator &, const Allocator &) { return false; }
};
template <class T>
using Vector = std::vector<T, Allocator<T>>;
}  // namespace ranksvm::RANKSVM_VARIANT

// Number of doubles in a vector of the instruction set. (Measured with AVX-512, relative to the time with vectors of four: the
// pairs of queries of 20, 120 and 240 documents take 1, 0.6 and 0.55, and scores of 46 features 0.6.)
namespace ranksvm::RANKSVM_VARIANT {
#if defined(__AVX512F__)
constexpr int kWidth = 8;
#elif defined(__AVX2__)
constexpr int kWidth = 4;
#else
constexpr int kWidth = 2;
#endif
// Number of floats in such a vector.
constexpr int kSingleWidth = 2 * kWidth;
#if defined(__GNUC__)
typedef double Lanes __attribute__((vector_size(8 * kWidth), aligned(8), may_alias));
RANKSVM_INLINE Lanes lanes_at(const double *p) { return *reinterpret_cast<const Lanes *>(p); }
// Initializer lists: GCC compiles each to one conversion, unlike __builtin_convertvector. Intrinsics would need <immintrin.h>,
// which takes as long to compile as most files that would include it.
RANKSVM_INLINE Lanes lanes_at(const float *p) {
#if defined(__AVX512F__)
    return Lanes{p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7]};
#elif defined(__AVX2__)
    return Lanes{p[0], p[1], p[2], p[3]};
#else
    return Lanes{p[0], p[1]};
#endif
}
RANKSVM_INLINE void put_lanes(double *p, const Lanes &a) { *reinterpret_cast<Lanes *>(p) = a; }
typedef float SingleLanes __attribute__((vector_size(4 * kSingleWidth), aligned(4), may_alias));
RANKSVM_INLINE SingleLanes single_lanes_at(const float *p) { return *reinterpret_cast<const SingleLanes *>(p); }
RANKSVM_INLINE void put_lanes(float *p, const SingleLanes &a) { *reinterpret_cast<SingleLanes *>(p) = a; }
#else
template <class Number, int n>
struct Values {
    Number v[n];
    Number operator[](int c) const { return v[c]; }
};
using Lanes = Values<double, kWidth>;
using SingleLanes = Values<float, kSingleWidth>;
template <class Real>
RANKSVM_INLINE Lanes lanes_at(const Real *p) {
    Lanes out;
    for (int c = 0; c < kWidth; ++c) out.v[c] = static_cast<double>(p[c]);
    return out;
}
RANKSVM_INLINE SingleLanes single_lanes_at(const float *p) {
    SingleLanes out;
    for (int c = 0; c < kSingleWidth; ++c) out.v[c] = p[c];
    return out;
}
template <class Number, int n>
RANKSVM_INLINE void put_lanes(Number *p, const Values<Number, n> &a) {
    for (int c = 0; c < n; ++c) p[c] = a.v[c];
}
template <class Number, int n>
RANKSVM_INLINE Values<Number, n> operator+(const Values<Number, n> &a, const Values<Number, n> &b) {
    Values<Number, n> out;
    for (int c = 0; c < n; ++c) out.v[c] = a.v[c] + b.v[c];
    return out;
}
template <class Number, int n>
RANKSVM_INLINE Values<Number, n> operator-(const Values<Number, n> &a, const Values<Number, n> &b) {
    Values<Number, n> out;
    for (int c = 0; c < n; ++c) out.v[c] = a.v[c] - b.v[c];
    return out;
}
template <class Number, int n>
RANKSVM_INLINE Values<Number, n> operator*(const Values<Number, n> &a, const Values<Number, n> &b) {
    Values<Number, n> out;
    for (int c = 0; c < n; ++c) out.v[c] = a.v[c] * b.v[c];
    return out;
}
template <class Number, int n>
RANKSVM_INLINE Values<Number, n> operator*(Number factor, const Values<Number, n> &a) {
    Values<Number, n> out;
    for (int c = 0; c < n; ++c) out.v[c] = factor * a.v[c];
    return out;
}
#endif
RANKSVM_INLINE double sum_of(const Lanes &a) {
#if defined(__AVX512F__) && (defined(__clang__) || (defined(__GNUC__) && __GNUC__ >= 12))
    // the same sums, in a third of the instructions
    const auto half = __builtin_shufflevector(a, a, 0, 1, 2, 3) + __builtin_shufflevector(a, a, 4, 5, 6, 7);
    const auto pair = __builtin_shufflevector(half, half, 0, 1) + __builtin_shufflevector(half, half, 2, 3);
    return pair[0] + pair[1];
#elif defined(__AVX512F__)
    return ((a[0] + a[4]) + (a[2] + a[6])) + ((a[1] + a[5]) + (a[3] + a[7]));
#elif defined(__AVX2__)
    return (a[0] + a[2]) + (a[1] + a[3]);
#else
    return a[0] + a[1];
#endif
}
}  // namespace ranksvm::RANKSVM_VARIANT

#endif
