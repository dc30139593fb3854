// Rows that have features and codes, for a pass over the rows. A weight vector has a number for each feature,
// then the value of every level; X'u has the sums for the features, then the sums over the rows of each level. Rows themselves
// (gather) have the features times their scales, then the variables of the levels.
#ifndef RANKSVM_CODED_ROWS_HPP
#define RANKSVM_CODED_ROWS_HPP

#include <algorithm>
#include <cstdint>

#include "coded_loops.hpp"
#include "passes.hpp"

namespace ranksvm {

struct CodedRows {
    const CodedLoops *loops;
    RowProducts features;  // its context is null if there are no features
    int64_t n_features;
    const double *feature_scales;
    CodedColumns columns;
    const uint8_t *codes;
    const int64_t *rows;

    static void scores(const void *context, int64_t start, int64_t stop, const double *w, double *v_range) {
        const CodedRows &own = *static_cast<const CodedRows *>(context);
        if (own.n_features > 0)
            own.features.scores(own.features.context, start, stop, w, v_range);
        else
            std::fill_n(v_range, stop - start, 0.0);
        own.loops->look_up(own.columns, own.codes, own.rows, start, stop, w + own.n_features, v_range);
    }

    static void accumulate(const void *context, int64_t start, int64_t stop, const double *u_range, double *total) {
        const CodedRows &own = *static_cast<const CodedRows *>(context);
        if (own.n_features > 0) own.features.accumulate(own.features.context, start, stop, u_range, total);
        own.loops->add_up(own.columns, own.codes, own.rows, start, stop, u_range, total + own.n_features);
    }

    static void gather(const void *context, int64_t start, int64_t stop, double *out, int64_t n_columns) {
        const CodedRows &own = *static_cast<const CodedRows *>(context);
        if (own.n_features > 0) own.features.gather(own.features.context, start, stop, out, n_columns);
        own.filled(start, stop, out, n_columns, own.loops->fill);
    }

    static void gather_single(const void *context, int64_t start, int64_t stop, float *out, int64_t n_columns) {
        const CodedRows &own = *static_cast<const CodedRows *>(context);
        if (own.n_features > 0) own.features.gather_single(own.features.context, start, stop, out, n_columns);
        own.filled(start, stop, out, n_columns, own.loops->fill_single);
    }

   private:
    template <class Out, class Fill>
    void filled(int64_t start, int64_t stop, Out *out, int64_t n_columns, Fill fill) const {
        if (n_features == 0) std::fill_n(out, (stop - start) * n_columns, Out(0));
        for (int64_t t = 0; t < stop - start; ++t)
            for (int64_t j = 0; j < n_features; ++j) out[t * n_columns + j] *= static_cast<Out>(feature_scales[j]);
        fill(columns, codes, rows, start, stop, out, n_columns, n_features);
    }
};

}  // namespace ranksvm

#endif
