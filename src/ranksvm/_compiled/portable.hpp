// What differs between compilers, in one place.
#ifndef RANKSVM_PORTABLE_HPP
#define RANKSVM_PORTABLE_HPP

#include <cstdint>

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

// One source, one wheel, the widest vectors of the processor at hand: GCC on glibc picks a clone at load time.
// Everything that such a function calls in its loops is RANKSVM_INLINE, so that it is compiled along with it.
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC__)
#define RANKSVM_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define RANKSVM_CLONES
#endif

#endif
