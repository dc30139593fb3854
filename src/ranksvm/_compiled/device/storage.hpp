// Arrays that lie on a device when a fit begins: any real type and any strides, converted to rows as kernels read them.
#ifndef RANKSVM_DEVICE_STORAGE_HPP
#define RANKSVM_DEVICE_STORAGE_HPP

#if !defined(__CUDACC__)
#include <cmath>
#endif

#include "portable.hpp"

namespace ranksvm::device {

// The value of a 16-bit floating-point number (IEEE 754).
RANKSVM_DEVICE double half_value(unsigned short bits) {
    const int exponent = bits >> 10 & 31, digits = bits & 1023;
    double value = 1e308;
    if (exponent == 31) {  // an infinity, or NaN
        value *= 1e308;
        if (digits != 0) value -= value;
    } else {
        value = exponent == 0 ? ldexp(static_cast<double>(digits), -24) : ldexp(1024.0 + digits, exponent - 25);
    }
    return bits >> 15 ? -value : value;
}

template <class Number>
RANKSVM_DEVICE double number_at(const char *place) {
    return static_cast<double>(*reinterpret_cast<const Number *>(place));
}

// The value at an address. The number of its type is the position of the type in _TYPES of `device/arrays.py`.
RANKSVM_DEVICE double value_at(int64_t type, const char *place) {
    switch (type) {
        case 0: return half_value(*reinterpret_cast<const unsigned short *>(place));
        case 1: return number_at<float>(place);
        case 2: return number_at<double>(place);
        case 3: return number_at<signed char>(place);
        case 4: return number_at<short>(place);
        case 5: return number_at<int>(place);
        case 6: return number_at<long long>(place);
        case 7: return number_at<unsigned char>(place);
        case 8: return number_at<unsigned short>(place);
        case 9: return number_at<unsigned int>(place);
        default: return number_at<unsigned long long>(place);
    }
}

// out[t, f] = the value of row rows[t] (null: t) and column f, whose strides are in bytes.
template <class Real>
RANKSVM_DEVICE void convert(const char *values, int64_t type, int64_t row_stride, int64_t column_stride, const int32_t *rows,
                            int64_t n_rows, int64_t n, Real *out) {
    const Block block = this_block();
    RANKSVM_PHASE(thread) {
        for (int64_t t = block.index; t < n_rows; t += block.count) {
            const char *row = values + row_stride * (rows != nullptr ? rows[t] : t);
            for (int64_t f = thread; f < n; f += block.n_threads)
                out[t * n + f] = static_cast<Real>(value_at(type, row + f * column_stride));
        }
    }
}

// block_largest[block, f] = the largest |x| in column f of the block's rows; NaN if one of these x is not finite.
template <class Real>
RANKSVM_DEVICE void largest_values(const Real *X, int64_t n_rows, int64_t n, double *block_largest) {
    const Block block = this_block();
    RANKSVM_PHASE(thread) {
        for (int64_t f = thread; f < n; f += block.n_threads) {
            double largest = 0.0, spoilt = 0.0;
            for (int64_t t = block.index; t < n_rows; t += block.count) {
                const double x = static_cast<double>(X[t * n + f]), size = x < 0.0 ? -x : x;
                largest = largest < size ? size : largest;
                spoilt += x * 0.0;  // 0 for finite x only
            }
            block_largest[block.index * n + f] = largest + spoilt;
        }
    }
}

}  // namespace ranksvm::device

#endif
