// The sums of a loss over the pairs of some queries.
#ifndef RANKSVM_LOSS_SUMS_HPP
#define RANKSVM_LOSS_SUMS_HPP

namespace ranksvm {

// The loss. If it smooths another loss: that loss minus this one, and the duality gap of the problem with that loss, divided by
// C, except the gradient's part.
struct LossSums {
    double value, excess, slack;
};

}  // namespace ranksvm

#endif
