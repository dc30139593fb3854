// Loops over ranked lists: sorting, running sums, the expected reciprocal rank at which a user stops, and counts of pairs.
//
// A list is a range of positions pointers[q] .. pointers[q + 1]. "tied[p]" says that position p has the score of
// position p - 1 of the same list.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

namespace ranksvm {

// order[p]: the position that comes p-th when every list is put in descending order of key; equal keys keep their order.
inline void descending_order(const double* keys, const int64_t* pointers, int64_t n_queries, int64_t* order) {
    std::vector<std::pair<double, int64_t>> list;
    for (int64_t q = 0; q < n_queries; ++q) {
        const int64_t begin = pointers[q], end = pointers[q + 1];
        list.clear();
        for (int64_t p = begin; p < end; ++p) list.emplace_back(keys[p], p);
        std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) {
            return a.first > b.first || (a.first == b.first && a.second < b.second);
        });
        for (int64_t p = begin; p < end; ++p) order[p] = list[static_cast<size_t>(p - begin)].second;
    }
}

// out[p]: sum of values from the beginning of the list of p up to and including p.
inline void running_sums(const double* values, const int64_t* pointers, int64_t n_queries, double* out) {
    for (int64_t q = 0; q < n_queries; ++q) {
        double sum = 0.0;
        for (int64_t p = pointers[q]; p < pointers[q + 1]; ++p) out[p] = sum += values[p];
    }
}

// Sum over c = 1 .. depth of P(a user passes c - 1 documents and stops at the c-th) / (before + c), where n documents
// come in random order and document i stops the user with probability stop[i].
//
// P(the first c documents are all passed) is the normalized elementary symmetric polynomial
// m_c = e_c(1 - stop) / binomial(n, c). Adding one document to t - 1 others is a convex combination,
// m_c <- ((t - c) m_c + c (1 - stop) m_{c-1}) / t, so no digits are lost. Documents with stop = 0 leave m_c = 1: they
// are put in first, at no cost. Maclaurin's inequality, m_c <= (m_1)^c, says from which c on the rest is below
// round-off, so the work is O(n) for any length of the list.
inline double stop_in_tied_documents(const double* stop, int64_t n, int64_t before, int64_t depth,
                                     std::vector<double>& m) {
    double total = 0.0;
    int64_t t = 0;
    for (int64_t i = 0; i < n; ++i) {
        total += stop[i];
        t += stop[i] == 0.0;
    }
    if (total == 0.0) return 0.0;
    int64_t degree = std::min(n, depth);
    const double log_pass = std::log1p(-std::min(1.0, total / static_cast<double>(n)));
    const double enough = std::ceil(-42.0 / log_pass);  // exp(-42) < 1e-18
    if (enough < static_cast<double>(degree)) degree = std::max<int64_t>(1, static_cast<int64_t>(enough));
    m.assign(static_cast<size_t>(degree) + 1, 1.0);
    for (int64_t i = 0; i < n; ++i) {
        if (stop[i] == 0.0) continue;
        ++t;
        const double pass = 1.0 - stop[i], scale = 1.0 / static_cast<double>(t);
        for (int64_t c = std::min(t, degree); c >= 1; --c) {
            m[c] = (static_cast<double>(t - c) * m[c] + static_cast<double>(c) * pass * m[c - 1]) * scale;
        }
    }
    double sum = 0.0;
    for (int64_t c = 1; c <= degree; ++c) sum += (m[c - 1] - m[c]) / static_cast<double>(before + c);
    return sum;
}

// out[q]: expected 1 / rank at which a user who goes down list q stops, ranks beyond depth counting 0; documents of
// equal score are met in random order.
inline void expected_reciprocal_rank(const double* stop, const uint8_t* tied, const int64_t* pointers,
                                     int64_t n_queries, int64_t depth, double* out) {
    std::vector<double> buffer;
    for (int64_t q = 0; q < n_queries; ++q) {
        const int64_t begin = pointers[q], end = pointers[q + 1];
        double value = 0.0, passed = 1.0;
        for (int64_t p = begin; p < end && p - begin < depth && passed > 1e-18;) {
            const int64_t before = p - begin;
            int64_t next = p + 1;
            while (next < end && tied[next]) ++next;
            value += passed * (next == p + 1
                                   ? stop[p] / static_cast<double>(before + 1)
                                   : stop_in_tied_documents(stop + p, next - p, before, depth - before, buffer));
            for (; p < next; ++p) passed *= 1.0 - stop[p];
        }
        out[q] = value;
    }
}

inline int64_t pairs_of(int64_t n) { return n * (n - 1) / 2; }

// Sorts values[0 .. n) in descending order and returns how many pairs were in ascending order.
inline int64_t count_ascending_pairs(double* values, double* buffer, int64_t n) {
    int64_t count = 0;
    constexpr int64_t run = 16;  // insertion sort below this length
    for (int64_t begin = 0; begin < n; begin += run) {
        const int64_t end = std::min(n, begin + run);
        for (int64_t i = begin + 1; i < end; ++i) {
            const double value = values[i];
            int64_t j = i;
            for (; j > begin && values[j - 1] < value; --j) values[j] = values[j - 1];
            values[j] = value;
            count += i - j;
        }
    }
    for (int64_t width = run; width < n; width *= 2) {
        for (int64_t begin = 0; begin < n; begin += 2 * width) {
            const int64_t middle = std::min(n, begin + width), end = std::min(n, begin + 2 * width);
            int64_t left = begin, right = middle;
            for (int64_t out = begin; out < end; ++out) {
                if (left < middle && (right == end || values[left] >= values[right])) {
                    buffer[out] = values[left++];
                } else {
                    buffer[out] = values[right++];
                    count += middle - left;
                }
            }
        }
        std::copy(buffer, buffer + n, values);
    }
    return count;
}

// Counts for each list, by Knight's algorithm (JASA 61, 1966): pairs with different labels, how many of these are in the right
// order and in the wrong order, and pairs with different scores. `labels` are in rank order.
inline void pair_counts(const double* labels, const uint8_t* tied, const int64_t* pointers, int64_t n_queries,
                        int64_t* comparable, int64_t* concordant, int64_t* discordant, int64_t* different_scores) {
    std::vector<double> values, buffer;
    const auto equal_pairs = [](const double* begin, const double* end) {
        int64_t count = 0;
        for (const double* p = begin; p < end;) {
            const double* next = p + 1;
            while (next < end && *next == *p) ++next;
            count += pairs_of(next - p);
            p = next;
        }
        return count;
    };
    for (int64_t q = 0; q < n_queries; ++q) {
        const int64_t begin = pointers[q], n = pointers[q + 1] - begin;
        values.assign(labels + begin, labels + begin + n);
        if (static_cast<int64_t>(buffer.size()) < n) buffer.resize(static_cast<size_t>(n));
        int64_t equal_scores = 0, equal_both = 0;
        for (int64_t p = 0; p < n;) {
            int64_t next = p + 1;
            while (next < n && tied[begin + next]) ++next;
            if (next - p > 1) {
                std::sort(values.data() + p, values.data() + next, [](double a, double b) { return a > b; });
                equal_scores += pairs_of(next - p);
                equal_both += equal_pairs(values.data() + p, values.data() + next);
            }
            p = next;
        }
        discordant[q] = count_ascending_pairs(values.data(), buffer.data(), n);
        comparable[q] = pairs_of(n) - equal_pairs(values.data(), values.data() + n);
        concordant[q] = comparable[q] - discordant[q] - (equal_scores - equal_both);
        different_scores[q] = pairs_of(n) - equal_scores;
    }
}

// Counts for each list, for Harrell's concordance: pairs whose smaller label is that of an observed event, and how many of
// these the scores put in the right order and in the wrong order. `labels` are in rank order, the highest score first.
inline void concordance_counts(const double* labels, const uint8_t* observed, const uint8_t* tied,
                               const int64_t* pointers, int64_t n_queries, int64_t* comparable, int64_t* concordant,
                               int64_t* discordant) {
    std::vector<double> distinct;
    // Fenwick trees over the labels of the documents of higher scores: of all, and of those whose event was observed
    std::vector<int64_t> all, events;
    const auto add = [](std::vector<int64_t>& tree, size_t place) {
        for (; place < tree.size(); place += place & (~place + 1)) ++tree[place];
    };
    const auto up_to = [](const std::vector<int64_t>& tree, size_t place) {
        int64_t sum = 0;
        for (; place > 0; place -= place & (~place + 1)) sum += tree[place];
        return sum;
    };
    for (int64_t q = 0; q < n_queries; ++q) {
        const int64_t begin = pointers[q], end = pointers[q + 1];
        distinct.assign(labels + begin, labels + end);
        std::sort(distinct.begin(), distinct.end());
        distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
        all.assign(distinct.size() + 1, 0);
        events.assign(distinct.size() + 1, 0);
        const auto place_of = [&](int64_t p) {
            const auto at = std::lower_bound(distinct.begin(), distinct.end(), labels[p]);
            return static_cast<size_t>(at - distinct.begin()) + 1;
        };
        comparable[q] = concordant[q] = discordant[q] = 0;
        for (int64_t p = begin; p < end;) {
            int64_t next = p + 1;
            while (next < end && tied[next]) ++next;
            for (int64_t t = p; t < next; ++t) {
                const size_t place = place_of(t);
                if (observed[t]) concordant[q] += (p - begin) - up_to(all, place);
                discordant[q] += up_to(events, place - 1);
            }
            for (; p < next; ++p) {
                const size_t place = place_of(p);
                add(all, place);
                if (observed[p]) add(events, place);
            }
        }
        for (int64_t p = begin; p < end; ++p)
            if (observed[p]) comparable[q] += (end - begin) - up_to(all, place_of(p));
    }
}

}  // namespace ranksvm
