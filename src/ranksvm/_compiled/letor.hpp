// LETOR / SVMlight text, line by line: `label [qid:id] feature:value ... [# comment]`.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "letor_number.hpp"

namespace letor {

// Why a line is refused. ranksvm/datasets/letor/text.py has the sentence for each.
enum Reason : int {
    NONE = 0,
    MISSING_LABEL,
    BAD_LABEL,
    NAN_LABEL,
    INFINITE_LABEL,
    LABEL_OUT_OF_RANGE,
    MISSING_QID,
    UNEXPECTED_QID,
    EMPTY_QID,
    MISPLACED_QID,
    MISSING_COLON,
    BAD_ID,
    NEGATIVE_ID,
    ID_TOO_LARGE,
    ID_OVER_N_FEATURES,
    ZERO_ID,
    DUPLICATE_ID,
    MISSING_VALUE,
    BAD_VALUE,
    NAN_VALUE,
    INFINITE_VALUE,
    VALUE_OUT_OF_RANGE,
    NUL_IN_ID,
};

// What the reader assumes about the file. `columns`: room for features. An id beyond them is an error if `declared`, and is
// only noted otherwise.
struct Layout {
    int64_t columns;
    bool declared;
    bool zero_based;
    bool base_known;  // whether an id 0 in a file read as 1-based is an error; it is only noted otherwise
    bool has_qid;
};

struct Report {
    int64_t rows = 0;
    int64_t entries = 0;
    int64_t largest_id = -1;
    bool zero_id = false;
    bool string_qid = false;
    bool docid = false;
    int reason = NONE;
    int64_t line = 0, at = 0, stop = 0;  // offsets of the refused line and of what is wrong in it
};

struct Count {
    int64_t lines = 0, rows = 0, colons = 0;
};

// A carriage return is a blank: so lines may end in \r\n.
inline bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
inline const char* skip_blanks(const char* p) {
    while (is_blank(*p)) ++p;
    return p;
}
inline bool is_end(char c) { return c == '\n' || c == '#'; }
inline bool is_delimiter(char c) { return is_blank(c) || is_end(c); }

inline const char* find(const char* p, const char* end, char c) {
    const void* hit = p < end ? std::memchr(p, c, static_cast<size_t>(end - p)) : nullptr;
    return hit ? static_cast<const char*>(hit) : end;
}

// Does the line [p, eol) hold data: anything before a comment?
inline bool is_data(const char* p, const char* eol) {
    while (p < eol && is_blank(*p)) ++p;
    return p < eol && *p != '#';
}

inline Count count(const char* text, int64_t start, int64_t stop) {
    Count total;
    for (const char *p = text + start, *end = text + stop; p < end;) {
        const char* eol = find(p, end, '\n');
        ++total.lines;
        if (is_data(p, eol)) {
            ++total.rows;
            total.colons += std::count(p, find(p, eol, '#'), ':');
        }
        p = eol + 1;
    }
    return total;
}

// Writes the values of lines to dense rows.
template <class T>
struct DenseRows {
    using value_type = T;
    T* row;
    int64_t columns;
    void begin() {
        if (columns) std::memset(row, 0, static_cast<size_t>(columns) * sizeof(T));
    }
    void put(int64_t column, T value) { row[column] = value; }
    void sort() {}
    int64_t end() { row += columns; return 0; }
};

template <class T>
struct SparseRows {
    using value_type = T;
    int32_t* indices;
    T* values;
    int64_t capacity;
    int64_t size = 0, first = 0;
    void begin() { first = size; }
    void put(int64_t column, T value) {
        if (size == capacity) return;  // cannot happen: an entry has a colon, and colons were counted
        indices[size] = static_cast<int32_t>(column);
        values[size++] = value;
    }
    void sort() {
        std::vector<std::pair<int32_t, T>> entries;
        for (int64_t i = first; i < size; ++i) entries.emplace_back(indices[i], values[i]);
        std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
        for (int64_t i = first; i < size; ++i)
            std::tie(indices[i], values[i]) = entries[static_cast<size_t>(i - first)];
    }
    int64_t end() { return size; }
};

// Where the labels, ids and numbers of entries of the lines go; a null pointer means that they are not wanted. A span is
// (offset in the text, length).
struct RowInfo {
    double* label;
    int64_t* qid;
    int64_t* docid_offset;
    int32_t* docid_length;
    int64_t* entries_so_far;
};

template <class Sink>
class LineParser {
    using T = typename Sink::value_type;

public:
    LineParser(const Layout& layout, Sink sink, const RowInfo& info) : layout_(layout), sink_(sink), info_(info) {}

    Report report;

    // Parses the line at p, whose first byte has the given offset in the text. The line ends in '\n', and 16 more bytes are
    // readable.
    bool parse(const char* p, int64_t offset) {
        line_ = p;
        offset_ = offset;
        double label;
        if (!(p = parse_label(skip_blanks(p), label))) return false;
        if (!(p = parse_qid(skip_blanks(p)))) return false;
        sink_.begin();
        if (!(p = parse_features(p))) return false;
        if (info_.label) info_.label[report.rows] = label;
        if (info_.docid_offset && !parse_docid(p)) return false;
        const int64_t size = sink_.end();
        if (info_.entries_so_far) info_.entries_so_far[report.rows] = size;
        ++report.rows;
        return true;
    }

private:
    Layout layout_;
    Sink sink_;
    RowInfo info_;
    const char* line_ = nullptr;
    int64_t offset_ = 0;

    const char* refuse(int reason, const char* at, const char* stop = nullptr) {
        if (!stop)
            for (stop = at; !is_delimiter(*stop);) ++stop;
        report.reason = reason;
        report.line = offset_;
        report.at = offset_ + (at - line_);
        report.stop = offset_ + (stop - line_);
        return nullptr;
    }

    // nan, inf, infinity in any case and with any sign: 1 for nan, 2 for infinities, 0 for anything else
    static int special(const char* p) {
        if (*p == '-' || *p == '+') ++p;
        std::string word;
        for (; !is_delimiter(*p); ++p) word.push_back(static_cast<char>(*p | 0x20));
        return word == "nan" ? 1 : word == "inf" || word == "infinity" ? 2 : 0;
    }

    const char* parse_label(const char* p, double& label) {
        Decimal d;
        const char* end = scan_decimal(p, d);
        if (!end || !is_delimiter(*end)) {
            const char* stop = p;
            for (; !is_delimiter(*stop); ++stop)
                if (*stop == ':') return refuse(MISSING_LABEL, p);
            const int kind = special(p);
            return refuse(kind == 1 ? NAN_LABEL : kind == 2 ? INFINITE_LABEL : BAD_LABEL, p);
        }
        return to_binary(d, p, end, label) ? end : refuse(LABEL_OUT_OF_RANGE, p);
    }

    const char* parse_qid(const char* p) {
        if (std::memcmp(p, "qid:", 4) != 0) return layout_.has_qid ? refuse(MISSING_QID, p) : p;
        if (!layout_.has_qid) return refuse(UNEXPECTED_QID, p);
        const char* first = p + 4;
        const char* last = first;
        while (!is_delimiter(*last)) ++last;
        if (first == last) return refuse(EMPTY_QID, p);
        if (find(first, last, '\0') != last) return refuse(NUL_IN_ID, p);
        int64_t value = 0;
        if (!read_integer(first, last, value)) report.string_qid = true;
        if (info_.qid) info_.qid[report.rows] = value;
        return skip_blanks(last);
    }

    // Reads only the usual form of an integer: 7 and "07" may be different queries.
    static bool read_integer(const char* first, const char* last, int64_t& value) {
        const char* digits = first + (*first == '-');
        if (digits == last || (*digits == '0' && (last - digits > 1 || digits != first))) return false;
        const auto end = std::from_chars(first, last, value);
        return end.ec == std::errc() && end.ptr == last;
    }

    const char* parse_features(const char* p) {
        const char* features = p;
        int64_t largest = -1;
        const int64_t base = layout_.zero_based ? 0 : 1;
        const uint64_t columns = static_cast<uint64_t>(layout_.columns);
        bool sorted = true;
        for (; !is_end(*p); p = skip_blanks(p)) {
            const char* token = p;
            uint64_t digits = 0;
            for (unsigned c; (c = static_cast<unsigned char>(*p) - '0') <= 9; ++p) digits = digits * 10 + c;
            if (*p != ':' || p == token) return refuse_id(token);
            if (p - token > 10 || digits > 2147483647) return refuse(ID_TOO_LARGE, token, p);
            const int64_t id = static_cast<int64_t>(digits);
            const char* number = ++p;
            Decimal d;
            T value;
            p = scan_decimal(p, d);
            if (!p || !is_delimiter(*p)) return refuse_value(number, token);
            if (!to_binary(d, number, p, value)) return refuse(VALUE_OUT_OF_RANGE, number);
            if (id <= largest) {
                if (id == largest) return refuse(DUPLICATE_ID, token);
                sorted = false;
            } else {
                largest = id;
            }
            const int64_t column = id - base;
            if (static_cast<uint64_t>(column) < columns) {
                sink_.put(column, value);
                ++report.entries;
            } else if (!note_outside(id, token)) {
                return nullptr;
            }
        }
        if (!sorted) {
            if (const char* twice = find_duplicate(features)) return refuse(DUPLICATE_ID, twice);
            sink_.sort();
        }
        if (largest > report.largest_id) report.largest_id = largest;
        return p;
    }

    // An id that has no column: refused or, if the layout was a guess, noted, so that the file is read again.
    bool note_outside(int64_t id, const char* token) {
        const char* colon = token;
        while (*colon != ':') ++colon;
        if (id == 0 && !layout_.zero_based) {
            if (layout_.base_known) return refuse(ZERO_ID, token, colon) != nullptr;
            report.zero_id = true;
        } else if (layout_.declared) {
            return refuse(ID_OVER_N_FEATURES, token, colon) != nullptr;
        }
        return true;
    }

    const char* refuse_id(const char* token) {
        const char* stop = token;
        while (!is_delimiter(*stop) && *stop != ':') ++stop;
        if (*stop != ':') return refuse(MISSING_COLON, token);
        if (!std::memcmp(token, "qid:", 4)) return refuse(MISPLACED_QID, token);
        const char* p = token + (*token == '-');
        while (p > token && p < stop && *p >= '0' && *p <= '9') ++p;
        return refuse(p == stop && stop - token > 1 ? NEGATIVE_ID : BAD_ID, token, stop);
    }

    const char* refuse_value(const char* number, const char* token) {
        if (is_delimiter(*number)) return refuse(MISSING_VALUE, token);
        const int kind = special(number);
        return refuse(kind == 1 ? NAN_VALUE : kind == 2 ? INFINITE_VALUE : BAD_VALUE, number);
    }

    // Second occurrence of an id in a well-formed line whose ids are not ascending.
    static const char* find_duplicate(const char* p) {
        std::vector<std::pair<int64_t, const char*>> ids;
        for (; !is_end(*p); p = skip_blanks(p)) {
            const char* token = p;
            int64_t id = 0;
            for (; *p != ':'; ++p) id = id * 10 + (*p - '0');
            ids.emplace_back(id, token);
            while (!is_delimiter(*p)) ++p;
        }
        std::sort(ids.begin(), ids.end());
        const char* earliest = nullptr;
        for (size_t i = 1; i < ids.size(); ++i)
            if (ids[i].first == ids[i - 1].first && (!earliest || ids[i].second < earliest)) earliest = ids[i].second;
        return earliest;
    }

    // `#docid = X ...`, or else the first word of the comment
    bool parse_docid(const char* p) {
        const char* first = p;
        const char* last = p;
        if (*p == '#') {
            first = skip_blanks(p + 1);
            if (!std::memcmp(first, "docid", 5)) {
                const char* equals = skip_blanks(first + 5);
                if (*equals == '=') first = skip_blanks(equals + 1);
            }
            for (last = first; !is_blank(*last) && *last != '\n';) ++last;
        }
        if (find(first, last, '\0') != last) return refuse(NUL_IN_ID, first, last) != nullptr;
        info_.docid_offset[report.rows] = offset_ + (first - line_);
        info_.docid_length[report.rows] = static_cast<int32_t>(last - first);
        report.docid |= last > first;
        return true;
    }
};

// Calls visit(line, offset, eol) for each data line of text[start:stop] until it returns false. Every line it sees ends in '\n'
// with 16 readable bytes after it: the last lines of a text are shown as a padded copy.
template <class Visit>
inline void for_each_data_line(const char* text, int64_t size, int64_t start, int64_t stop, Visit visit) {
    std::string copy;
    const char* safe = text + size - 17;
    for (const char *p = text + start, *end = text + stop; p < end;) {
        const char* eol = find(p, end, '\n');
        if (is_data(p, eol)) {
            const char* line = p;
            if (size < 17 || eol > safe || eol == end) {
                copy.assign(p, eol);
                copy.append("\n").append(17, '\0');
                line = copy.data();
            }
            if (!visit(line, p - text)) return;
        }
        p = eol + 1;
    }
}

template <class Sink>
inline Report parse(const char* text, int64_t size, int64_t start, int64_t stop, int64_t room, const Layout& layout,
                    const Sink& sink, const RowInfo& info) {
    LineParser<Sink> parser(layout, sink, info);
    for_each_data_line(text, size, start, stop, [&](const char* line, int64_t offset) {
        return parser.report.rows < room && parser.parse(line, offset);
    });
    return parser.report;
}

// Finds the spans of the query ids of well-formed lines.
inline void qid_spans(const char* text, int64_t size, int64_t start, int64_t stop, int64_t room, int64_t* offsets,
                      int32_t* lengths) {
    int64_t row = 0;
    for_each_data_line(text, size, start, stop, [&](const char* line, int64_t offset) {
        if (row == room) return false;
        const char* p = skip_blanks(line);
        while (!is_blank(*p)) ++p;
        const char* first = skip_blanks(p) + 4;
        const char* last = first;
        while (!is_delimiter(*last)) ++last;
        offsets[row] = offset + (first - line);
        lengths[row++] = static_cast<int32_t>(last - first);
        return true;
    });
}

// Writes spans of the text to `out`, one after another.
inline void joined_spans(const char* text, const int64_t* offsets, const int32_t* lengths, int64_t rows,
                         std::string& out) {
    size_t size = 0;
    for (int64_t row = 0; row < rows; ++row) size += static_cast<size_t>(lengths[row]);
    out.reserve(size);
    for (int64_t row = 0; row < rows; ++row) out.append(text + offsets[row], static_cast<size_t>(lengths[row]));
}

// Writes ASCII spans as NumPy's fixed-width UCS-4 text, zero padded. Returns false if some byte is not ASCII.
inline bool widen(const char* text, const int64_t* offsets, const int32_t* lengths, int64_t rows, int64_t width,
                  uint32_t* out) {
    unsigned char all = 0;
    for (int64_t row = 0; row < rows; ++row, out += width) {
        const unsigned char* p = reinterpret_cast<const unsigned char*>(text) + offsets[row];
        const int64_t length = lengths[row];
        for (int64_t i = 0; i < length; ++i) {
            all |= p[i];
            out[i] = p[i];
        }
        std::memset(out + length, 0, static_cast<size_t>(width - length) * sizeof(uint32_t));
    }
    return all < 0x80;
}

}  // namespace letor
