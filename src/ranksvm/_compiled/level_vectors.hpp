// A running sum of vectors for each level, and the sum of these sums over the levels below a given level.
#ifndef RANKSVM_LEVEL_VECTORS_HPP
#define RANKSVM_LEVEL_VECTORS_HPP

#include <cstdint>

#include "portable.hpp"

namespace ranksvm::RANKSVM_VARIANT {

template <class Real>
RANKSVM_NOINLINE static void add_scaled(Real *RANKSVM_RESTRICT y, Real scale, const Real *RANKSVM_RESTRICT x, int64_t n) {
    for (int64_t f = 0; f < n; ++f) y[f] += scale * x[f];
}

template <class Real>
class LevelVectors {
   public:
    LevelVectors(int32_t n_levels, bool adjacent, int64_t n, Vector<Real> &memory)
        : n_levels_(n_levels), adjacent_(adjacent), few_(n_levels <= kFewLevels), n_(n), memory_(memory) {
        memory_.assign(static_cast<size_t>(n_levels) * n, Real(0));
    }

    RANKSVM_INLINE_METHOD void add(int32_t level, Real weight, const Real *x) {
        if (level == n_levels_ - 1) return;  // preferred to all others, so never the other document of a pair
        if (few_ || adjacent_)
            add_scaled(memory_.data() + level * n_, weight, x, n_);
        else
            for (int32_t node = level + 1; node <= n_levels_; node += node & -node)
                add_scaled(memory_.data() + (node - 1) * n_, weight, x, n_);
    }

    // out += scale * (sum of the vectors of the levels that this one is compared with)
    RANKSVM_INLINE_METHOD void add_below(int32_t level, Real scale, Real *out) const {
        if (adjacent_)
            add_scaled(out, scale, memory_.data() + (level - 1) * n_, n_);
        else if (few_)
            for (int32_t below = 0; below < level; ++below) add_scaled(out, scale, memory_.data() + below * n_, n_);
        else
            for (int32_t node = level; node > 0; node -= node & -node)
                add_scaled(out, scale, memory_.data() + (node - 1) * n_, n_);
    }

   private:
    static constexpr int32_t kFewLevels = 8;
    int32_t n_levels_;
    bool adjacent_, few_;
    int64_t n_;
    Vector<Real> &memory_;
};

}  // namespace ranksvm::RANKSVM_VARIANT

#endif
