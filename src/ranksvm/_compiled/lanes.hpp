// A few doubles at a time: a vector register of the instruction set that this is compiled for.
#ifndef RANKSVM_LANES_HPP
#define RANKSVM_LANES_HPP

#include <cstdint>

#include "portable.hpp"

namespace ranksvm::RANKSVM_VARIANT {

// (Eight lanes of AVX-512 were no faster than four, and the ends of short lists fill fewer of them.)
#if defined(__AVX__)
constexpr int kLaneCount = 4;
#else
constexpr int kLaneCount = 2;
#endif

#if defined(__GNUC__)

typedef double Lanes __attribute__((vector_size(8 * kLaneCount), aligned(8), may_alias));

// x where a < b, else y; a comparison with NaN is false.
RANKSVM_INLINE Lanes where_less(Lanes a, Lanes b, Lanes x, Lanes y) { return a < b ? x : y; }

RANKSVM_INLINE Lanes lanes_at(const double *p) { return *reinterpret_cast<const Lanes *>(p); }
RANKSVM_INLINE void put_lanes(double *p, Lanes a) { *reinterpret_cast<Lanes *>(p) = a; }

#else

struct Lanes {
    double v[kLaneCount];
    double operator[](int c) const { return v[c]; }
    double &operator[](int c) { return v[c]; }
};
#define RANKSVM_LANES_OPERATOR(op)                                        \
    RANKSVM_INLINE Lanes operator op(const Lanes &a, const Lanes &b) {    \
        Lanes out;                                                        \
        for (int c = 0; c < kLaneCount; ++c) out.v[c] = a.v[c] op b.v[c]; \
        return out;                                                       \
    }
RANKSVM_LANES_OPERATOR(+)
RANKSVM_LANES_OPERATOR(-)
RANKSVM_LANES_OPERATOR(*)
#undef RANKSVM_LANES_OPERATOR
RANKSVM_INLINE Lanes &operator+=(Lanes &a, const Lanes &b) { return a = a + b; }

RANKSVM_INLINE Lanes where_less(const Lanes &a, const Lanes &b, const Lanes &x, const Lanes &y) {
    Lanes out;
    for (int c = 0; c < kLaneCount; ++c) out.v[c] = a.v[c] < b.v[c] ? x.v[c] : y.v[c];
    return out;
}

RANKSVM_INLINE Lanes lanes_at(const double *p) {
    Lanes out;
    for (int c = 0; c < kLaneCount; ++c) out.v[c] = p[c];
    return out;
}
RANKSVM_INLINE void put_lanes(double *p, const Lanes &a) {
    for (int c = 0; c < kLaneCount; ++c) p[c] = a.v[c];
}

#endif

RANKSVM_INLINE Lanes all_lanes(double x) {
    Lanes out;
    for (int c = 0; c < kLaneCount; ++c) out[c] = x;
    return out;
}

// The first `n` lanes of x, `rest` in the others.
RANKSVM_INLINE Lanes first_lanes(const Lanes &x, int64_t n, double rest) {
    Lanes number;
    for (int c = 0; c < kLaneCount; ++c) number[c] = static_cast<double>(c);
    return where_less(number, all_lanes(static_cast<double>(n)), x, all_lanes(rest));
}

RANKSVM_INLINE double sum_of_lanes(const Lanes &a) {
    double total = a[0] + a[1];
    for (int c = 2; c < kLaneCount; c += 2) total += a[c] + a[c + 1];
    return total;
}

}  // namespace ranksvm::RANKSVM_VARIANT

#endif
