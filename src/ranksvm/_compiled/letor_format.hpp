// Rows as lines of LETOR / SVMlight text.
#pragma once

#include <cstdint>
#include <string>

#include "letor.hpp"
#include "letor_number.hpp"

namespace letor {

// Words separated by '\n', taken one after the other.
struct Words {
    const char* p;
    const char* end;
    void append_next(std::string& out) {
        const char* stop = find(p, end, '\n');
        out.append(p, stop);
        p = stop < end ? stop + 1 : end;
    }
    bool next_is_empty() const { return p == end || *p == '\n'; }
};

// The text before and after the features of a row. `qid_words` has the query ids if they are strings; words of `docids` may be
// empty.
struct RowText {
    const double* label;
    const int64_t* qid;
    Words qid_words;
    bool has_qid_words;
    Words docids;
    bool has_docids;

    void before(int64_t row, std::string& out) {
        char buffer[longest_number];
        out.append(buffer, write_number(buffer, label[row]));
        if (qid || has_qid_words) out.append(" qid:");
        if (qid)
            out.append(buffer, write_integer(buffer, qid[row]));
        else if (has_qid_words)
            qid_words.append_next(out);
    }
    void after(std::string& out) {
        if (has_docids) {
            const bool empty = docids.next_is_empty();
            if (!empty) out.append(" #docid = ");
            docids.append_next(out);
        }
        out.push_back('\n');
    }
};

template <class T>
inline void append_entry(std::string& out, int64_t id, T value) {
    char buffer[2 * longest_number];
    char* p = buffer;
    *p++ = ' ';
    p = write_integer(p, id);
    *p++ = ':';
    out.append(buffer, write_number(p, value));
}

template <class T>
inline void write_dense(const T* values, int64_t rows, int64_t columns, int64_t base, RowText text, std::string& out) {
    for (int64_t row = 0; row < rows; ++row, values += columns) {
        text.before(row, out);
        for (int64_t column = 0; column < columns; ++column) append_entry(out, column + base, values[column]);
        text.after(out);
    }
}

// `pads`: columns to write as zeros in the first row if it lacks them (below 0: none), in ascending order.
template <class T, class Index>
inline void write_sparse(const Index* pointers, const Index* indices, const T* values, int64_t rows, int64_t base,
                         const int64_t* pads, RowText text, std::string& out) {
    for (int64_t row = 0; row < rows; ++row) {
        text.before(row, out);
        const Index first = pointers[row], last = pointers[row + 1];
        if (row == 0 && pads[0] >= 0 && (first == last || indices[first] != pads[0]))
            append_entry(out, pads[0] + base, T(0));
        for (Index i = first; i < last; ++i) append_entry(out, static_cast<int64_t>(indices[i]) + base, values[i]);
        if (row == 0 && pads[1] >= 0 && (first == last || indices[last - 1] != pads[1]))
            append_entry(out, pads[1] + base, T(0));
        text.after(out);
    }
}

}  // namespace letor
