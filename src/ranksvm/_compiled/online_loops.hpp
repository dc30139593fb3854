// Tables of pointers to the loops of online.hpp; each instruction set has its own tables.
#ifndef RANKSVM_ONLINE_LOOPS_HPP
#define RANKSVM_ONLINE_LOOPS_HPP

#include <cstdint>

#include "instruction_set.hpp"

namespace ranksvm {

using std::int32_t;
using std::int64_t;
using std::uint64_t;

// Pairs of documents of one query, numbered within it, in the order in which they are learnt from.
struct OnlinePairs {
    const int32_t *preferred;
    const int32_t *other;
    const double *weight;  // null: all 1
    int64_t size;
};

// The result of a stretch of pairs: how many changed the model, and the sum of weight times squared hinge before each update.
struct OnlineSums {
    int64_t updates;
    double loss;
};

// A model, and what its mean over all pairs needs: after T pairs the mean is w - lag / T. `lag` is null if no mean is asked
// for; `count` is the number of pairs before the next one.
struct OnlineModel {
    double *w;
    double *lag;
    double count;
};

// The committee perceptron (Elsas et al., 2008): a perceptron, and its earlier models that ordered the most pairs.
struct Committee {
    double *experts;    // (size, n)
    double *survivals;  // (size,) number of pairs in order before the first one in disorder; 0: no expert yet
    int64_t size;
    double *survival;   // (1,) the same number for the present model
};

struct OnlinePairLoops {
    int64_t (*count)(const double *y, int64_t n);
    void (*fill)(const double *y, int64_t n, bool shuffle, uint64_t seed, uint64_t stream, int32_t *preferred,
                 int32_t *other);
    const char *const *methods;  // names of the methods of `learn` below, by number
    int n_methods;
};

template <class Real>
struct DenseOnlineLoops {
    OnlineSums (*learn)(int method, const Real *X, int64_t n, const OnlinePairs &pairs, double parameter,
                        double *S, OnlineModel model);
    OnlineSums (*committee)(const Real *X, int64_t n, const OnlinePairs &pairs, const Committee &committee,
                            OnlineModel model);
    int64_t (*prank)(const Real *X, int64_t n, const int32_t *documents, const int32_t *levels, int64_t size,
                     double *thresholds, int64_t n_thresholds, OnlineModel model);
};

template <class Real, class Index>
struct SparseOnlineLoops {
    OnlineSums (*learn)(int method, const Real *data, const Index *indices, const Index *pointers,
                        const OnlinePairs &pairs, double parameter, double *S, OnlineModel model);
    OnlineSums (*committee)(const Real *data, const Index *indices, const Index *pointers, int64_t n,
                            const OnlinePairs &pairs, const Committee &committee, OnlineModel model);
    int64_t (*prank)(const Real *data, const Index *indices, const Index *pointers, const int32_t *documents,
                     const int32_t *levels, int64_t size, double *thresholds, int64_t n_thresholds, OnlineModel model);
};

RANKSVM_DECLARE_LOOPS(OnlinePairLoops)
RANKSVM_DECLARE_LOOPS(DenseOnlineLoops<float>)
RANKSVM_DECLARE_LOOPS(DenseOnlineLoops<double>)
RANKSVM_DECLARE_LOOPS(SparseOnlineLoops<float, int32_t>)
RANKSVM_DECLARE_LOOPS(SparseOnlineLoops<float, int64_t>)
RANKSVM_DECLARE_LOOPS(SparseOnlineLoops<double, int32_t>)
RANKSVM_DECLARE_LOOPS(SparseOnlineLoops<double, int64_t>)

}  // namespace ranksvm

#endif
