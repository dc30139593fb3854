// One pass over the rows, a few queries at a time: multiplies their rows by w, applies an operator to the products, and
// multiplies X' by its result while the rows are still in the nearest cache. Modules pass rows and operators to each other as
// tables of functions, also for the Hessians of hessian_pass.hpp.
#ifndef RANKSVM_PASSES_HPP
#define RANKSVM_PASSES_HPP

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hessian_rows.hpp"
#include "loss_sums.hpp"
#include "workers.hpp"

namespace ranksvm {

using std::int64_t;

// Products of a design matrix at the positions start .. stop; arrays named *_range hold these only.
struct RowProducts {
    const void *context;
    void (*scores)(const void *context, int64_t start, int64_t stop, const double *w, double *v_range);  // v = X w
    void (*accumulate)(const void *context, int64_t start, int64_t stop, const double *u_range, double *total);  // total += X' u
    // the rows themselves, with zeros after them up to `n_columns` columns
    void (*gather)(const void *context, int64_t start, int64_t stop, double *out, int64_t n_columns);
    void (*gather_single)(const void *context, int64_t start, int64_t stop, float *out, int64_t n_columns);
};

// A map of vectors over rows that treats queries one by one: u = f(v) for the queries first .. last, and sums over them.
struct QueryOperator {
    const void *context;
    LossSums (*apply)(const void *context, int64_t first, int64_t last, const double *v_range, double *u_range);
    // of a Hessian with respect to the scores, else null: see hessian_rows.hpp
    int64_t (*rows)(const void *context, int64_t first, int64_t last, double *X_range, int64_t n, double *out);
    int64_t (*rows_single)(const void *context, int64_t first, int64_t last, float *X_range, int64_t n, float *out);
    // false if V does not have a row for each document at which H is not 0
    bool (*product)(const void *context, int64_t first, int64_t last, const Columns<double> &columns);
    bool (*product_single)(const void *context, int64_t first, int64_t last, const Columns<float> &columns);
};

inline void add(LossSums &sums, const LossSums &more) {
    sums.value += more.value;
    sums.excess += more.excess;
    sums.slack += more.slack;
}

// Computes X' f(X w) and the sums of f, for shares of the queries. Each share adds up in memory of its own, so that the result
// depends on the shares, and not on the threads that take them. Share k has the ranges ends[k - 1] .. ends[k] of queries, with
// ends[-1] = 0.
struct Pass {
    RowProducts products;
    QueryOperator query_operator;
    const int64_t *pointers;
    const int64_t *ranges;  // first and last query of each range
    const int64_t *ends;
    int64_t rows_at_once;  // rows that are taken at a time, unless a single query has more
    const double *w;       // null: v is used in place of X w
    double *v;             // over all rows; receives X w unless it is null
    int64_t n_features;
    double *totals;  // X' u of each share, added to what is there
    LossSums *sums;  // of each share

    LossSums run(const Workers &workers, int64_t n_shares) const {
        if (workers.run == nullptr || n_shares < 2)
            for (int64_t k = 0; k < n_shares; ++k) take_share(this, k);
        else
            workers.run(workers.n_threads, n_shares, take_share, this);
        for (int64_t k = 1; k < n_shares; ++k) {
            add(sums[0], sums[k]);
            for (int64_t j = 0; j < n_features; ++j) totals[j] += totals[k * n_features + j];
        }
        return sums[0];
    }

   private:
    static void take_share(const void *context, int64_t k) {
        const Pass &pass = *static_cast<const Pass *>(context);
        std::vector<double> u, scores;
        for (int64_t i = k > 0 ? pass.ends[k - 1] : 0; i < pass.ends[k]; ++i)
            pass.take_range(pass.ranges[2 * i], pass.ranges[2 * i + 1], u, scores, pass.totals + k * pass.n_features,
                            pass.sums[k]);
    }

    void take_range(int64_t first, int64_t last, std::vector<double> &u, std::vector<double> &scores, double *total,
                    LossSums &found) const {
        while (first < last) {
            int64_t end = first + 1;
            while (end < last && pointers[end + 1] - pointers[first] <= rows_at_once) ++end;
            const int64_t start = pointers[first], stop = pointers[end];
            if (stop > start) {
                const std::size_t size = static_cast<std::size_t>(stop - start);
                if (u.size() < size) u.resize(size);
                if (v == nullptr && scores.size() < size) scores.resize(size);
                double *v_range = v == nullptr ? scores.data() : v + start;
                if (w != nullptr) products.scores(products.context, start, stop, w, v_range);
                add(found, query_operator.apply(query_operator.context, first, end, v_range, u.data()));
                products.accumulate(products.context, start, stop, u.data(), total);
            }
            first = end;
        }
    }
};

}  // namespace ranksvm

#endif
