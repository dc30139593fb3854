// What a loss returns of the pairs of some queries.
#ifndef RANKSVM_LOSS_SUMS_HPP
#define RANKSVM_LOSS_SUMS_HPP

namespace ranksvm {

// The loss; of one that smooths another: how much more that is, and what the duality gap of the problem with it has, over C,
// beyond the gradient's part.
struct LossSums {
    double value, excess, slack;
};

}  // namespace ranksvm

#endif
