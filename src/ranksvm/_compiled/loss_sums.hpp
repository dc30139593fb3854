// The sums of a loss over the pairs of some queries.
#ifndef RANKSVM_LOSS_SUMS_HPP
#define RANKSVM_LOSS_SUMS_HPP

namespace ranksvm {

// `value` is the loss. If it smooths another loss, `excess` is that loss minus this one, and the duality gap of the problem
// with that loss is |gradient|^2 / 2 + C * `slack`.
struct LossSums {
    double value, excess, slack;
};

}  // namespace ranksvm

#endif
