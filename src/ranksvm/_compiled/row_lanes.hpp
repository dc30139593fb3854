// Vectors of the features of a row, which may be shorter than a vector. Also sums over the lanes of several vectors, one for
// each of a few rows that are read together.
#ifndef RANKSVM_ROW_LANES_HPP
#define RANKSVM_ROW_LANES_HPP

#include <cstdint>

#include "portable.hpp"

#if defined(__AVX2__) && defined(__GNUC__)
#include <immintrin.h>
#endif

namespace ranksvm::RANKSVM_VARIANT {

// Number of rows that are taken together: they share each read of w, or each write of a sum, and have one vector of sums each.
// As many as the registers hold. Measured with float32 and float64 in the cache of a core: eight rows with AVX2 take 0.4 of the
// time of four rows with four vectors each at 20 and 46 features, 0.6 at 136, 0.7 to 0.85 at 1,024. Sixteen rows with AVX-512
// are no faster than eight.
constexpr int kTogether = kWidth == 2 ? 4 : 8;

// The first n numbers at p, fewer than a vector holds, and zeros.
#if defined(__AVX512F__) && defined(__GNUC__)
RANKSVM_INLINE Lanes short_lanes(const double *p, std::int64_t n) {
    return reinterpret_cast<Lanes>(_mm512_maskz_loadu_pd(static_cast<__mmask8>((1 << n) - 1), p));
}
RANKSVM_INLINE Lanes short_lanes(const float *p, std::int64_t n) {
    return reinterpret_cast<Lanes>(_mm512_cvtps_pd(_mm256_maskz_loadu_ps(static_cast<__mmask8>((1 << n) - 1), p)));
}
#else
template <class Real>
RANKSVM_INLINE Lanes short_lanes(const Real *p, std::int64_t n) {
    double lanes[kWidth] = {};
    for (std::int64_t f = 0; f < n; ++f) lanes[f] = static_cast<double>(p[f]);
    return lanes_at(lanes);
}
#endif

// out[r] = the sum over the lanes of sums[r]. Several at a time take a third less than one after the other: with 46 features
// these sums are a quarter of the work.
RANKSVM_INLINE void sums_of(const Lanes *sums, double *out) {
#if defined(__AVX512F__) && defined(__GNUC__)
    static_assert(kTogether == 8, "eight vectors of eight lanes");
    __m512d twos[4];  // the lanes of two rows in turn, then of four and of eight rows
    for (int r = 0; r < 4; ++r) {
        const __m512d a = reinterpret_cast<__m512d>(sums[2 * r]), b = reinterpret_cast<__m512d>(sums[2 * r + 1]);
        twos[r] = _mm512_add_pd(_mm512_unpacklo_pd(a, b), _mm512_unpackhi_pd(a, b));
    }
    const auto halved = [](__m512d a, __m512d b) __attribute__((always_inline)) {
        return _mm512_add_pd(_mm512_shuffle_f64x2(a, b, 0x88), _mm512_shuffle_f64x2(a, b, 0xdd));
    };
    _mm512_storeu_pd(out, halved(halved(twos[0], twos[1]), halved(twos[2], twos[3])));
#elif defined(__AVX2__) && defined(__GNUC__)
    for (int r = 0; r < kTogether; r += 4) {
        const __m256d first = _mm256_hadd_pd(reinterpret_cast<__m256d>(sums[r]), reinterpret_cast<__m256d>(sums[r + 1]));
        const __m256d second = _mm256_hadd_pd(reinterpret_cast<__m256d>(sums[r + 2]), reinterpret_cast<__m256d>(sums[r + 3]));
        const __m256d crossed = _mm256_permute2f128_pd(first, second, 0x21);
        _mm256_storeu_pd(out + r, _mm256_add_pd(_mm256_blend_pd(first, second, 0xc), crossed));
    }
#else
    for (int r = 0; r < kTogether; ++r) out[r] = sum_of(sums[r]);
#endif
}

RANKSVM_INLINE void sums_of(const SingleLanes *sums, double *out) {
    Lanes halves[kTogether];
    for (int r = 0; r < kTogether; ++r) {
        float values[kSingleWidth];
        put_lanes(values, sums[r]);
        halves[r] = lanes_at(values) + lanes_at(values + kWidth);
    }
    sums_of(halves, out);
}

// Vectors of the features of a row in float64, whatever the storage, or in float32. `kInTurn`: whether rows that lie in memory
// in order are best read one after the other, and not fetched ahead. (700,080 x 136 float32, EPYC, AVX2: passes in float32 take
// 0.88 of the time then, in float64 1.08.)
struct InDouble {
    using Number = double;
    using Vector = Lanes;
    static constexpr int kNumbers = kWidth;
    static constexpr bool kInTurn = false;
    template <class Real>
    RANKSVM_INLINE_METHOD static Lanes at(const Real *p) {
        return lanes_at(p);
    }
};
struct InSingle {
    using Number = float;
    using Vector = SingleLanes;
    static constexpr int kNumbers = kSingleWidth;
    static constexpr bool kInTurn = true;
    RANKSVM_INLINE_METHOD static SingleLanes at(const float *p) { return single_lanes_at(p); }
};

}  // namespace ranksvm::RANKSVM_VARIANT

#endif
