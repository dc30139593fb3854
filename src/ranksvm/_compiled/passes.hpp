// One pass over the rows, a few queries at a time: products of their rows with w, an operator on these, and the rows times
// what it gives, while the rows are still in the nearest cache. Modules hand each other these two parts as tables.
#ifndef RANKSVM_PASSES_HPP
#define RANKSVM_PASSES_HPP

#include <cstddef>
#include <cstdint>
#include <vector>

#include "loss_sums.hpp"

namespace ranksvm {

using std::int64_t;

// Products of a design matrix at the positions start .. stop; arrays named *_range hold these only.
struct RowProducts {
    const void *context;
    void (*scores)(const void *context, int64_t start, int64_t stop, const double *w, double *v_range);  // v = X w
    void (*accumulate)(const void *context, int64_t start, int64_t stop, const double *u_range, double *total);  // total += X' u
};

// A map of vectors over rows that treats queries one by one: u = f(v) on the queries first .. last, and sums of them.
struct QueryOperator {
    const void *context;
    LossSums (*apply)(const void *context, int64_t first, int64_t last, const double *v_range, double *u_range);
};

// total += X' f(X w) over the queries first .. last, `rows_at_once` rows or a whole query at a time. v_range receives X w
// unless it is null; where w is null it holds what takes the place of X w.
inline LossSums pass_over(const RowProducts &products, const QueryOperator &query_operator, const int64_t *pointers,
                          int64_t first, int64_t last, int64_t rows_at_once, const double *w, double *v_range,
                          double *total) {
    LossSums sums = {0.0, 0.0, 0.0};
    std::vector<double> u, scratch;
    const int64_t origin = pointers[first];
    while (first < last) {
        int64_t end = first + 1;
        while (end < last && pointers[end + 1] - pointers[first] <= rows_at_once) ++end;
        const int64_t start = pointers[first], stop = pointers[end];
        if (stop > start) {
            const std::size_t size = static_cast<std::size_t>(stop - start);
            if (u.size() < size) u.resize(size);
            if (v_range == nullptr && scratch.size() < size) scratch.resize(size);
            double *v = v_range == nullptr ? scratch.data() : v_range + (start - origin);
            if (w != nullptr) products.scores(products.context, start, stop, w, v);
            const LossSums more = query_operator.apply(query_operator.context, first, end, v, u.data());
            products.accumulate(products.context, start, stop, u.data(), total);
            sums.value += more.value;
            sums.excess += more.excess;
            sums.slack += more.slack;
        }
        first = end;
    }
    return sums;
}

}  // namespace ranksvm

#endif
