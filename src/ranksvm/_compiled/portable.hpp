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
#define RANKSVM_RESTRICT __restrict
#define RANKSVM_PREFETCH(address) static_cast<void>(address)
#else
#define RANKSVM_INLINE static inline __attribute__((always_inline))
#define RANKSVM_INLINE_METHOD inline __attribute__((always_inline))
#define RANKSVM_RESTRICT __restrict__
#define RANKSVM_PREFETCH(address) __builtin_prefetch(address)
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

// Four doubles at a time. GCC 12 makes a loop over eight of them, floats converted, twice as slow as its vectors are.
namespace ranksvm::RANKSVM_VARIANT {
#if defined(__GNUC__)
typedef double Four __attribute__((vector_size(32), aligned(8), may_alias));
typedef float FourFloats __attribute__((vector_size(16), aligned(4), may_alias));
RANKSVM_INLINE Four four_at(const double *p) { return *reinterpret_cast<const Four *>(p); }
RANKSVM_INLINE Four four_at(const float *p) {
    return __builtin_convertvector(*reinterpret_cast<const FourFloats *>(p), Four);
}
RANKSVM_INLINE void put_four(double *p, Four v) { *reinterpret_cast<Four *>(p) = v; }
#else
struct Four {
    double v[4];
    double operator[](int c) const { return v[c]; }
};
template <class Real>
RANKSVM_INLINE Four four_at(const Real *p) {
    return Four{{static_cast<double>(p[0]), static_cast<double>(p[1]), static_cast<double>(p[2]), static_cast<double>(p[3])}};
}
RANKSVM_INLINE void put_four(double *p, const Four &a) {
    for (int c = 0; c < 4; ++c) p[c] = a.v[c];
}
RANKSVM_INLINE Four operator+(const Four &a, const Four &b) {
    return Four{{a.v[0] + b.v[0], a.v[1] + b.v[1], a.v[2] + b.v[2], a.v[3] + b.v[3]}};
}
RANKSVM_INLINE Four operator-(const Four &a, const Four &b) {
    return Four{{a.v[0] - b.v[0], a.v[1] - b.v[1], a.v[2] - b.v[2], a.v[3] - b.v[3]}};
}
RANKSVM_INLINE Four operator*(const Four &a, const Four &b) {
    return Four{{a.v[0] * b.v[0], a.v[1] * b.v[1], a.v[2] * b.v[2], a.v[3] * b.v[3]}};
}
#endif
RANKSVM_INLINE double sum_of(const Four &a) { return (a[0] + a[1]) + (a[2] + a[3]); }
}  // namespace ranksvm::RANKSVM_VARIANT

#endif
