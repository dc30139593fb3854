// Reads a matrix of numbers in JSON without making an object for each number.
#pragma once

#include <cstdint>
#include <vector>

#include "letor_number.hpp"

namespace json_matrix {

struct Found {
    int64_t rows = 0;  // 0: no matrix of numbers was found; another reader then says what is wrong
    int64_t columns = 0;
    int64_t start = 0;  // where the matrix begins in the text
    int64_t stop = 0;   // where the text after it begins
};

inline const char* skip_blanks(const char* p) {
    while (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t') ++p;
    return p;
}

inline bool is_digit(char c) { return static_cast<unsigned char>(c - '0') <= 9; }

// Whether the text at p begins as a number of JSON: no plus, no leading zeros, digits around the point.
inline bool is_number(const char* p) {
    if (*p == '-') ++p;
    if (!is_digit(*p) || (*p == '0' && is_digit(p[1]))) return false;
    while (is_digit(*p)) ++p;
    return *p != '.' || is_digit(p[1]);
}

// Reads the row at p, which is just after the row's opening bracket. Returns the end, or null if a value is not a number or is
// too large.
inline const char* read_row(const char* p, std::vector<double>& values) {
    for (;;) {
        p = skip_blanks(p);
        letor::Decimal decimal;
        if (!is_number(p)) return nullptr;
        const char* end = letor::scan_decimal(p, decimal);
        double value;
        if (end == nullptr || !letor::to_binary(decimal, p, end, value)) return nullptr;
        values.push_back(value);
        p = skip_blanks(end);
        if (*p == ']') return p + 1;
        if (*p++ != ',') return nullptr;
    }
}

// Reads a text such as ": [[1, 2], [3, 4]]" from `start` on; all rows must have the same length. The text ends with a zero
// byte, which 8 more bytes follow.
inline Found read(const char* text, int64_t start, std::vector<double>& values) {
    Found found;
    const char* p = skip_blanks(text + start);
    if (*p++ != ':') return Found();
    p = skip_blanks(p);
    found.start = p - text;
    if (*p++ != '[') return Found();
    for (;;) {
        const int64_t before = static_cast<int64_t>(values.size());
        p = skip_blanks(p);
        if (*p++ != '[' || (p = read_row(p, values)) == nullptr) return Found();
        const int64_t columns = static_cast<int64_t>(values.size()) - before;
        if (found.rows++ && columns != found.columns) return Found();
        found.columns = columns;
        p = skip_blanks(p);
        if (*p == ']') break;
        if (*p++ != ',') return Found();
    }
    found.stop = p + 1 - text;
    return found;
}

}  // namespace json_matrix
