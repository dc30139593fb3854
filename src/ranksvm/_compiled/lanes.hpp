// More functions for the vectors of doubles of portable.hpp: choices lane by lane, exponentials and logarithms.
#ifndef RANKSVM_LANES_HPP
#define RANKSVM_LANES_HPP

#include <cstdint>
#include <cstring>

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
RANKSVM_INLINE Lanes operator/(const Lanes &a, const Lanes &b) {
    Lanes out;
    for (int c = 0; c < kWidth; ++c) out.v[c] = a.v[c] / b.v[c];
    return out;
}
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

// 2^n for a whole number n from -1022 to 1023, given as `shifted` = n + 1.5 * 2^52, whose last bits are those of n.
RANKSVM_INLINE Lanes power_of_two(const Lanes &shifted) {
    constexpr int64_t kExponentOfOne = 1023;
#if defined(__GNUC__)
    typedef int64_t Bits __attribute__((vector_size(8 * kWidth)));
    return (Lanes)(((Bits)shifted + kExponentOfOne) << 52);
#else
    Lanes out;
    for (int c = 0; c < kWidth; ++c) {
        uint64_t bits;
        std::memcpy(&bits, &shifted.v[c], sizeof bits);
        bits = (bits + static_cast<uint64_t>(kExponentOfOne)) << 52;
        std::memcpy(&out.v[c], &bits, sizeof bits);
    }
    return out;
#endif
}

// c[0] + c[1] x + ... + c[n - 1] x^(n - 1)
template <int n>
RANKSVM_INLINE Lanes polynomial(const double (&c)[n], const Lanes &x) {
    Lanes sum = all_lanes(c[n - 1]);
    for (int k = n - 2; k >= 0; --k) sum = sum * x + all_lanes(c[k]);
    return sum;
}

// exp(x) for x <= 0, to a few units in the last place; 0 for x below -708, because exp(x) is then not a normal number; NaN for
// NaN.
RANKSVM_INLINE Lanes exp_of_negative(const Lanes &x) {
    // x = n log(2) + r with |r| <= log(2) / 2, log(2) in two parts, and the Taylor series of exp(r)
    constexpr double kSeries[] = {1.0, 1.0, 1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040, 1.0 / 40320,
                                  1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800};
    constexpr double kShift = 6755399441055744.0;  // 1.5 * 2^52: a sum with it is rounded to a whole number
    const Lanes shifted = x * all_lanes(1.4426950408889634) + all_lanes(kShift), n = shifted - all_lanes(kShift);
    const Lanes r = (x - n * all_lanes(6.93147180369123816490e-01)) - n * all_lanes(1.90821492927058770002e-10);
    return where_less(x, all_lanes(-708.0), all_lanes(0.0), polynomial(kSeries, r) * power_of_two(shifted));
}

// log(1 + t) for 0 <= t <= 1, to a few units in the last place.
RANKSVM_INLINE Lanes log_of_one_plus(const Lanes &t) {
    // 1 + t, or half of it, is (1 + s) / (1 - s) with |s| <= 0.1716: its logarithm is 2 s (1 + s^2 / 3 + s^4 / 5 + ...)
    constexpr double kSeries[] = {2.0,      2.0 / 3,  2.0 / 5,  2.0 / 7,  2.0 / 9,
                                  2.0 / 11, 2.0 / 13, 2.0 / 15, 2.0 / 17, 2.0 / 19};
    const Lanes small = all_lanes(0.41421356237309503), zero = all_lanes(0.0), one = all_lanes(1.0);
    const Lanes s = where_less(t, small, t, t - one) / (t + where_less(t, small, all_lanes(2.0), all_lanes(3.0)));
    return s * polynomial(kSeries, s * s) + where_less(t, small, zero, all_lanes(0.69314718055994531));
}

}  // namespace ranksvm::RANKSVM_VARIANT

#endif
