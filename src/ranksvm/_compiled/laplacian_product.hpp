// Products of the Laplacian of the pairs of pairs.hpp with a matrix: see active_rows.hpp.
//
// Without a function of the margin, sweeps in the order of the scores go through the documents in both directions, with a
// running vector for each level (or, beyond a few levels, a binary indexed tree of vectors). Documents that are in no active
// pair are left out: while they are in a window, no document is compared with their level.
#ifndef RANKSVM_LAPLACIAN_PRODUCT_HPP
#define RANKSVM_LAPLACIAN_PRODUCT_HPP

#include <algorithm>
#include <cstdint>

#include "active_rows.hpp"
#include "level_vectors.hpp"
#include "pairs.hpp"
#include "portable.hpp"
#include "query_order.hpp"
#include "smooth_pairs.hpp"
#include "sorted_query.hpp"

namespace ranksvm::RANKSVM_VARIANT {

// Running vectors of one side of the pairs: of the other documents, or of the preferred ones, whose levels are counted from
// above. With gains there is a second sum, in which each document counts with its gain.
template <class Real>
class Side {
   public:
    Side(const SortedQuery &query, bool adjacent, bool preferred, int64_t n, Vector<Real> &plain, Vector<Real> &times_gain)
        : query_(query), preferred_(preferred), plain_(query.n_levels, adjacent, n, plain),
          gains_(query.gaps ? query.n_levels : 0, adjacent, n, times_gain) {}

    RANKSVM_INLINE_METHOD void add(int64_t p, double sign, const Real *v) {
        const double weight = query_.weighted ? sign * (preferred_ ? query_.a[p] : query_.b[p]) : sign;
        plain_.add(level_of(p), static_cast<Real>(weight), v);
        if (query_.gaps) gains_.add(level_of(p), static_cast<Real>(weight * query_.g[p]), v);
    }

    // u -= factor * (sum of the pairs' weights times the vectors of this side) for the document i of the other side
    RANKSVM_INLINE_METHOD void subtract(int64_t i, double factor, Real *u) const {
        const int32_t level = level_of(i);
        if (level == 0) return;
        const double scale = query_.weighted ? factor * (preferred_ ? query_.b[i] : query_.a[i]) : factor;
        if (!query_.gaps) return plain_.add_below(level, static_cast<Real>(-scale), u);
        const double sign = preferred_ ? -1.0 : 1.0;
        plain_.add_below(level, static_cast<Real>(-sign * scale * query_.g[i]), u);
        gains_.add_below(level, static_cast<Real>(sign * scale), u);
    }

   private:
    RANKSVM_INLINE_METHOD int32_t level_of(int64_t i) const {
        return preferred_ ? query_.n_levels - 1 - query_.level[i] : query_.level[i];
    }

    const SortedQuery &query_;
    bool preferred_;
    LevelVectors<Real> plain_, gains_;
};

template <class Real>
RANKSVM_INLINE void subtract_swept(const SortedQuery &query, bool adjacent, const int32_t *order, const ActiveRows &rows,
                                   const Columns<Real> &columns, double factor, Vector<Real> &plain, Vector<Real> &times_gain) {
    const bool ring = query.window[1] != nullptr;
    const auto add = [&](Side<Real> &side, int64_t p, double sign) {
        if (rows[order[p]] >= 0) side.add(p, sign, columns.V + rows[order[p]] * columns.stride);
    };
    const auto subtract = [&](const Side<Real> &side, int64_t i) {
        if (rows[order[i]] >= 0) side.subtract(i, factor, columns.U + rows[order[i]] * columns.stride);
    };
    Side<Real> others(query, adjacent, false, columns.n, plain, times_gain);
    for (int64_t i = query.m - 1, entering = i, leaving = i; i >= 0; --i) {
        for (; entering >= query.start[0][i]; --entering) add(others, entering, 1.0);
        for (; ring && leaving >= query.start[1][i]; --leaving) add(others, leaving, -1.0);
        subtract(others, i);
    }
    Side<Real> preferred(query, adjacent, true, columns.n, plain, times_gain);
    for (int64_t i = 0, entering = 0, leaving = 0; i < query.m; ++i) {
        for (; entering < query.window[0][i]; ++entering) add(preferred, entering, 1.0);
        for (; ring && leaving < query.window[1][i]; ++leaving) add(preferred, leaving, -1.0);
        subtract(preferred, i);
    }
}

// The pairs of a function of the margin: all of them are active, unless a second derivative is rounded to 0.
template <class Real>
RANKSVM_INLINE void subtract_smooth(const Pairs &pairs, const PairState &state, int64_t first, const ActiveRows &rows,
                                    const Columns<Real> &columns, double factor, LabeledQuery &query) {
    const int32_t *documents = pairs.by_level + first;
    gather_labeled(pairs, first, query);
    gather_scores(state.scores + first, documents, query);
    Vector<int32_t> places(static_cast<size_t>(query.m));
    for (int64_t r = 0; r < query.m; ++r)  // of a document in no active pair, any row: it gets the weight 0
        places[static_cast<size_t>(r)] = static_cast<int32_t>(std::max<int64_t>(rows[documents[r]], 0));
    Vector<double> bends(static_cast<size_t>(query.m + kWidth));
    visit_bends(state.function, query, bends, [&](int64_t i, int64_t from, int64_t below) {
        if (rows[documents[i]] < 0) return;
        const int64_t own = rows[documents[i]] * columns.stride;
        subtract_rows(bends.data(), factor, places.data(), from, below, columns.V, columns.n, columns.stride,
                      columns.U + own);
        for (int64_t j = from; j < below; ++j)
            add_scaled(columns.U + places[static_cast<size_t>(j)] * columns.stride,
                       static_cast<Real>(-factor * bends[static_cast<size_t>(j)]), columns.V + own, columns.n);
    });
}

// U = factor * L V for a range of queries; false if V does not have a row for each document in an active pair.
template <class Real>
static bool laplacian_product(const Pairs &pairs, const PairState &state, int64_t first_query, int64_t last_query,
                              const Columns<Real> &columns, double factor, SortedQuery &query) {
    const int64_t origin = pairs.pointers[first_query];
    if (count_active(state.degrees + origin, pairs.pointers[last_query] - origin) != columns.n_rows) return false;
    QueryOrder sorted;
    LabeledQuery labeled;
    Vector<Real> plain, times_gain;
    ActiveRows rows;
    for (int64_t q = first_query; q < last_query; ++q) {
        const int64_t first = pairs.pointers[q], m = pairs.pointers[q + 1] - first, before = rows.n_rows;
        rows.find(state.degrees + first, m);
        if (rows.n_rows == before) continue;
        multiply_diagonal(rows, state.degrees + first, m, columns, factor);
        if (state.function) {
            labeled.resize(m);
            subtract_smooth(pairs, state, first, rows, columns, factor, labeled);
            continue;
        }
        sorted.find(pairs, state, q, query);
        subtract_swept(query, pairs.adjacent != 0, sorted.order, rows, columns, factor, plain, times_gain);
    }
    return true;
}

}  // namespace ranksvm::RANKSVM_VARIANT

#endif
