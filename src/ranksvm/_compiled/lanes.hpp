// Vectors of doubles beyond portable.hpp: choices lane by lane.
#ifndef RANKSVM_LANES_HPP
#define RANKSVM_LANES_HPP

#include <cstdint>

#include "portable.hpp"

namespace ranksvm::RANKSVM_VARIANT {

// x where a < b, else y; a comparison with NaN is false.
RANKSVM_INLINE Lanes where_less(const Lanes &a, const Lanes &b, const Lanes &x, const Lanes &y) {
#if defined(__GNUC__)
    return a < b ? x : y;
#else
    Lanes out;
    for (int c = 0; c < kWidth; ++c) out.v[c] = a.v[c] < b.v[c] ? x.v[c] : y.v[c];
    return out;
#endif
}

#if !defined(__GNUC__)
RANKSVM_INLINE Lanes &operator+=(Lanes &a, const Lanes &b) { return a = a + b; }
#endif

RANKSVM_INLINE Lanes all_lanes(double x) {
    double all[kWidth];
    for (int c = 0; c < kWidth; ++c) all[c] = x;
    return lanes_at(all);
}

// The first `n` lanes of x, `rest` in the others.
RANKSVM_INLINE Lanes first_lanes(const Lanes &x, int64_t n, double rest) {
    double numbers[kWidth];
    for (int c = 0; c < kWidth; ++c) numbers[c] = static_cast<double>(c);
    return where_less(lanes_at(numbers), all_lanes(static_cast<double>(n)), x, all_lanes(rest));
}

}  // namespace ranksvm::RANKSVM_VARIANT

#endif
