// Decimal text to binary and back. A number is rounded once, to the type asked for: never to double and then to float.
#pragma once

#include <cfloat>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <system_error>
#include <type_traits>

#if !defined(__cpp_lib_to_chars)
#include <locale.h>
#if defined(__APPLE__)
#include <xlocale.h>
#endif
#endif
#if defined(_MSC_VER)
#include <intrin.h>
#endif

namespace letor {

#if defined(_MSC_VER) || (defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
constexpr bool little_endian = true;
#else
constexpr bool little_endian = false;
#endif

inline int trailing_zeros(uint64_t bits) {
#if defined(_MSC_VER)
    unsigned long index;
    _BitScanForward64(&index, bits);
    return static_cast<int>(index);
#else
    return __builtin_ctzll(bits);
#endif
}

constexpr double powers_of_ten[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
constexpr uint64_t integer_powers_of_ten[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};

// (+|-) mantissa * 10^exponent, exact when `held`: every significant digit is in the mantissa.
struct Decimal {
    uint64_t mantissa;
    int exponent;
    int digits;  // digits written before the exponent, leading zeros included
    bool negative;
    bool held;
};

// Eight digit values (0..9, first one in the lowest byte) as one number.
inline uint64_t join_eight_digits(uint64_t v) {
    v = v * 10 + (v >> 8);
    return (((v & 0x000000FF000000FFULL) * 0x000F424000000064ULL) +
            (((v >> 16) & 0x000000FF000000FFULL) * 0x0000271000000001ULL)) >> 32;
}

// Reads the digits at p into m. Eight at a time if the machine's byte order allows it. May look 8 bytes ahead of p.
inline const char* scan_digits(const char* p, uint64_t& m) {
    if constexpr (little_endian) {
        for (;;) {
            uint64_t v;
            std::memcpy(&v, p, 8);
            v ^= 0x3030303030303030ULL;
            // Highest bit of each byte that is no digit. A carry out of a byte >= 0x80 spoils only later bytes.
            const uint64_t other = ((v + 0x7676767676767676ULL) | v) & 0x8080808080808080ULL;
            if (other == 0) {
                m = m * 100000000 + join_eight_digits(v);
                p += 8;
                continue;
            }
            const int bits = trailing_zeros(other) & ~7;  // 8 * number of digits
            if (bits) {
                m = m * integer_powers_of_ten[bits >> 3] + join_eight_digits(v << (64 - bits));
                p += bits >> 3;
            }
            return p;
        }
    } else {
        for (unsigned c; (c = static_cast<unsigned char>(*p) - '0') <= 9; ++p) m = m * 10 + c;
        return p;
    }
}

// Scans [+-] digits [. digits] [e [+-] digits]; returns the end, or null if there is no such number. Some byte after the number
// must be no digit, and 8 bytes after it must be readable.
inline const char* scan_decimal(const char* p, Decimal& d) {
    d.negative = *p == '-';
    if (*p == '-' || *p == '+') ++p;
    uint64_t m = 0;
    const char* first = p;
    for (unsigned c; (c = static_cast<unsigned char>(*p) - '0') <= 9; ++p) m = m * 10 + c;
    int64_t digits = p - first;
    int64_t fraction = 0;
    if (*p == '.') {
        const char* start = ++p;
        p = scan_digits(p, m);
        fraction = p - start;
        digits += fraction;
    }
    if (digits == 0) return nullptr;
    d.exponent = fraction > 1000000 ? -1000000 : -static_cast<int>(fraction);
    d.digits = digits > 1000000 ? 1000000 : static_cast<int>(digits);
    d.held = digits <= 19;
    d.mantissa = m;
    if ((*p | 0x20) == 'e') {
        ++p;
        const bool down = *p == '-';
        if (*p == '-' || *p == '+') ++p;
        const char* start = p;
        int exponent = 0;
        for (unsigned c; (c = static_cast<unsigned char>(*p) - '0') <= 9; ++p)
            if (exponent < 10000000) exponent = exponent * 10 + static_cast<int>(c);
        if (p == start) return nullptr;
        d.exponent += down ? -exponent : exponent;
    }
    return p;
}

#if defined(__cpp_lib_to_chars)
template <class T>
inline bool convert_slowly(const char* first, const char* last, T& value) {
    return std::from_chars(first, last, value).ec == std::errc();
}
#else
inline locale_t c_locale() {
    static locale_t locale = newlocale(LC_ALL_MASK, "C", static_cast<locale_t>(0));
    return locale;
}
template <class T>
inline bool convert_slowly(const char* first, const char* last, T& value) {
    const std::string copy(first, last);
    if constexpr (std::is_same<T, float>::value)
        value = strtof_l(copy.c_str(), nullptr, c_locale());
    else
        value = strtod_l(copy.c_str(), nullptr, c_locale());
    return value <= (std::numeric_limits<T>::max)() && value >= -(std::numeric_limits<T>::max)();
}
#endif

// Whether a number is below 1. This tells a number that is too small for its type (and is rounded to zero) from one that is too
// large.
inline bool is_tiny(const char* p, const Decimal& d) {
    if (*p == '-' || *p == '+') ++p;
    int64_t leading = 0;
    for (; *p == '0' || *p == '.'; ++p) leading += *p == '0';
    return static_cast<int64_t>(d.digits) - leading + d.exponent < 0;
}

// Rounds the number that was scanned from [first, last) once, to T. Returns false if its magnitude is above T's largest number.
template <class T>
inline bool to_binary(const Decimal& d, const char* first, const char* last, T& value) {
#if FLT_EVAL_METHOD == 0
    // Clinger 1990: an integer up to 2^53 that is multiplied or divided by an exact power of ten is rounded once.
    if (d.held && d.mantissa <= (1ULL << 53) && d.exponent >= -22 && d.exponent <= 22) {
        const double m = static_cast<double>(static_cast<int64_t>(d.mantissa));
        double v = d.exponent < 0 ? m / powers_of_ten[-d.exponent] : m * powers_of_ten[d.exponent];
        if (d.negative) v = -v;
        if constexpr (std::is_same<T, double>::value) {
            value = v;
            return true;
        } else {
            // v is a rounded number; rounding it again to float can go wrong only if v lies half way between two floats. (Here
            // v is 0 or from 1e-22 to 1e38, where floats have full precision.)
            uint64_t bits;
            std::memcpy(&bits, &v, 8);
            if ((bits & 0x1FFFFFFF) != 0x10000000) {
                value = static_cast<float>(v);
                return true;
            }
        }
    }
#endif
    if (*first == '+') ++first;
    if (convert_slowly(first, last, value)) return true;
    if (!is_tiny(first, d)) return false;
    value = d.negative ? -T(0) : T(0);
    return true;
}

constexpr int longest_number = 32;

// Shortest text that reads back as the same number; returns its end.
template <class T>
inline char* write_number(char* out, T value) {
#if defined(__cpp_lib_to_chars)
    return std::to_chars(out, out + longest_number, value).ptr;
#else
    constexpr int most = std::numeric_limits<T>::max_digits10;
    int length = 0;
    for (int digits = std::numeric_limits<T>::digits10; digits <= most; ++digits) {
        length = std::snprintf(out, longest_number, "%.*g", digits, static_cast<double>(value));
        for (int i = 0; i < length; ++i)  // the decimal point of the process's locale
            if (out[i] == ',') out[i] = '.';
        T back;
        if (convert_slowly(out, out + length, back) && back == value) break;
    }
    return out + length;
#endif
}

inline char* write_integer(char* out, int64_t value) { return std::to_chars(out, out + 24, value).ptr; }

}  // namespace letor
