// Losses that are curved at every margin, as functions of vectors of margins. For such a loss all pairs are visited. A new loss
// needs a struct and a number here, and a subclass of SmoothLoss in ranksvm/losses.
#ifndef RANKSVM_MARGIN_FUNCTIONS_HPP
#define RANKSVM_MARGIN_FUNCTIONS_HPP

#include "lanes.hpp"
#include "portable.hpp"

namespace ranksvm::RANKSVM_VARIANT {

// A function at some margins: its value, minus its derivative, and its second derivative. At a margin of +infinity all are 0.
struct AtMargins {
    Lanes value, pull, bend;
};

// log(1 + exp(-m)). With t = exp(-|m|), which neither overflows nor loses digits, it is log(1 + t) + max(-m, 0); minus the
// derivative is 1 / (1 + t) for a negative margin and t / (1 + t) for others, and the product of these two is the second
// derivative.
struct Logistic {
    RANKSVM_INLINE_METHOD AtMargins at(const Lanes &m) const {
        const Lanes zero = all_lanes(0.0), one = all_lanes(1.0), minus = zero - m;
        const Lanes t = exp_of_negative(where_less(m, zero, m, minus)), larger = one / (one + t), smaller = t * larger;
        return {where_less(m, zero, minus, zero) + log_of_one_plus(t), where_less(m, zero, larger, smaller),
                larger * smaller};
    }
};

// Calls visit(function) with the function that has this number.
template <class Visit>
RANKSVM_INLINE auto with_margin_function(int number, const Visit &visit) {
    switch (number) {
        default: return visit(Logistic());  // 1
    }
}

}  // namespace ranksvm::RANKSVM_VARIANT

#endif
