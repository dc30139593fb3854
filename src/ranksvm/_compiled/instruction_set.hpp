// The instruction sets that the hot loops are compiled for. Each loop is written once, in a header whose namespace is
// RANKSVM_VARIANT; meson.build compiles it once for every set. Nothing that a unit defines has a name outside its own
// namespace, so that a linker cannot put code for a newer processor where an older one will run it.
#ifndef RANKSVM_INSTRUCTION_SET_HPP
#define RANKSVM_INSTRUCTION_SET_HPP

#if defined(_MSC_VER) && defined(RANKSVM_X86)
#include <immintrin.h>
#include <intrin.h>
#endif

namespace ranksvm {

// In ascending order: a processor that has one has those before it.
enum InstructionSet { kBaseline, kAvx2, kAvx512 };

// A table of pointers to loops, as compiled for one instruction set. Each unit defines those of its own namespace.
namespace baseline {
template <class Loops> const Loops &loops();
}
namespace avx2 {
template <class Loops> const Loops &loops();
}
namespace avx512 {
template <class Loops> const Loops &loops();
}

#define RANKSVM_DECLARE_LOOPS(...)                                      \
    namespace baseline {                                                \
    template <> const __VA_ARGS__ &loops<__VA_ARGS__>();                \
    }                                                                   \
    namespace avx2 {                                                    \
    template <> const __VA_ARGS__ &loops<__VA_ARGS__>();                \
    }                                                                   \
    namespace avx512 {                                                  \
    template <> const __VA_ARGS__ &loops<__VA_ARGS__>();                \
    }

template <class Loops>
inline const Loops &loops_of(int set) {
#if defined(RANKSVM_X86)
    if (set == kAvx512) return avx512::loops<Loops>();
    if (set == kAvx2) return avx2::loops<Loops>();
#else
    static_cast<void>(set);
#endif
    return baseline::loops<Loops>();
}

#if defined(RANKSVM_X86)
constexpr bool kVariants = true;
#else
constexpr bool kVariants = false;
#endif

// Whether the processor has what meson.build lets the compiler use for a set, and the operating system saves the registers.
#if !defined(RANKSVM_X86)
inline bool processor_has(int set) { return set == kBaseline; }
#elif defined(_MSC_VER)
inline bool processor_has(int set) {
    int leaf1[4], leaf7[4], extended[4];
    __cpuid(leaf1, 0);
    if (leaf1[0] < 7) return set == kBaseline;
    __cpuid(leaf1, 1);
    __cpuidex(leaf7, 7, 0);
    __cpuid(extended, 0x80000001);
    const auto bit = [](int word, int position) { return ((static_cast<unsigned>(word) >> position) & 1u) != 0; };
    const bool saves = bit(leaf1[2], 27);  // OSXSAVE
    const unsigned long long saved = saves ? _xgetbv(0) : 0;
    const bool has_avx2 = (saved & 0x6) == 0x6 && bit(leaf1[2], 12) && bit(leaf1[2], 28) && bit(leaf7[1], 5) &&  // FMA, AVX, AVX2
                          bit(leaf7[1], 3) && bit(leaf7[1], 8) && bit(leaf1[2], 22) && bit(extended[2], 5);  // BMI 1 and 2, MOVBE, LZCNT
    const bool has_avx512 = has_avx2 && (saved & 0xe6) == 0xe6 && bit(leaf7[1], 16) && bit(leaf7[1], 17) &&  // F, DQ
                            bit(leaf7[1], 28) && bit(leaf7[1], 30) && bit(leaf7[1], 31);                     // CD, BW, VL
    return set == kBaseline || (set == kAvx2 && has_avx2) || (set == kAvx512 && has_avx512);
}
#else
inline bool processor_has(int set) {
    __builtin_cpu_init();
    const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                          __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
    const bool has_avx512 = has_avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                            __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                            __builtin_cpu_supports("avx512vl");
    return set == kBaseline || (set == kAvx2 && has_avx2) || (set == kAvx512 && has_avx512);
}
#endif

}  // namespace ranksvm

#endif
