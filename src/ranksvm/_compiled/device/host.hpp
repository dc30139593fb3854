// The kernels compiled for the host, by name.
#ifndef RANKSVM_DEVICE_HOST_HPP
#define RANKSVM_DEVICE_HOST_HPP

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bodies.hpp"

#define RANKSVM_LISTED 0
#define RANKSVM_SPARSE 0
#define RANKSVM_REAL float
namespace ranksvm::device::levels_dense_float {
#include "kernels.hpp"
}
#undef RANKSVM_LISTED
#undef RANKSVM_SPARSE
#undef RANKSVM_REAL

#define RANKSVM_LISTED 0
#define RANKSVM_SPARSE 0
#define RANKSVM_REAL double
namespace ranksvm::device::levels_dense_double {
#include "kernels.hpp"
}
#undef RANKSVM_LISTED
#undef RANKSVM_SPARSE
#undef RANKSVM_REAL

#define RANKSVM_LISTED 0
#define RANKSVM_SPARSE 1
#define RANKSVM_REAL float
namespace ranksvm::device::levels_sparse_float {
#include "kernels.hpp"
}
#undef RANKSVM_LISTED
#undef RANKSVM_SPARSE
#undef RANKSVM_REAL

#define RANKSVM_LISTED 0
#define RANKSVM_SPARSE 1
#define RANKSVM_REAL double
namespace ranksvm::device::levels_sparse_double {
#include "kernels.hpp"
}
#undef RANKSVM_LISTED
#undef RANKSVM_SPARSE
#undef RANKSVM_REAL

#define RANKSVM_LISTED 1
#define RANKSVM_SPARSE 0
#define RANKSVM_REAL float
namespace ranksvm::device::listed_dense_float {
#include "kernels.hpp"
}
#undef RANKSVM_LISTED
#undef RANKSVM_SPARSE
#undef RANKSVM_REAL

#define RANKSVM_LISTED 1
#define RANKSVM_SPARSE 0
#define RANKSVM_REAL double
namespace ranksvm::device::listed_dense_double {
#include "kernels.hpp"
}
#undef RANKSVM_LISTED
#undef RANKSVM_SPARSE
#undef RANKSVM_REAL

#define RANKSVM_LISTED 1
#define RANKSVM_SPARSE 1
#define RANKSVM_REAL float
namespace ranksvm::device::listed_sparse_float {
#include "kernels.hpp"
}
#undef RANKSVM_LISTED
#undef RANKSVM_SPARSE
#undef RANKSVM_REAL

#define RANKSVM_LISTED 1
#define RANKSVM_SPARSE 1
#define RANKSVM_REAL double
namespace ranksvm::device::listed_sparse_double {
#include "kernels.hpp"
}
#undef RANKSVM_LISTED
#undef RANKSVM_SPARSE
#undef RANKSVM_REAL

namespace ranksvm::device {

using Word = std::uint64_t;  // an argument: a pointer, an int64_t or a double

template <class T>
T from_word(Word word) {
    static_assert(sizeof(T) == sizeof(Word), "an argument of a kernel takes 8 bytes");
    T value;
    std::memcpy(&value, &word, sizeof value);
    return value;
}

template <class... Args, std::size_t... places>
void call_with(void (*kernel)(Args...), const Word *words, std::index_sequence<places...>) {
    kernel(from_word<Args>(words[places])...);
}

template <auto kernel>
struct Call;

template <class... Args, void (*kernel)(Args...)>
struct Call<kernel> {
    static constexpr std::size_t n_arguments = sizeof...(Args);
    static void run(const Word *words) { call_with(kernel, words, std::make_index_sequence<sizeof...(Args)>()); }
};

struct HostKernel {
    const char *name;
    std::size_t n_arguments;
    void (*run)(const Word *words);
};

#define RANKSVM_HOST_KERNEL(variant, name) \
    {#variant "/" #name, Call<&variant::name>::n_arguments, &Call<&variant::name>::run},
#define RANKSVM_HOST_KERNELS(variant, accumulate)                                                      \
    RANKSVM_HOST_KERNEL(variant, loss)                                                                 \
    RANKSVM_HOST_KERNEL(variant, degrees)                                                              \
    RANKSVM_HOST_KERNEL(variant, laplacian)                                                            \
    RANKSVM_HOST_KERNEL(variant, laplacian_rows)                                                       \
    RANKSVM_HOST_KERNEL(variant, scores)                                                               \
    RANKSVM_HOST_KERNEL(variant, gather)                                                               \
    RANKSVM_HOST_KERNEL(variant, accumulate)                                                           \
    RANKSVM_HOST_KERNEL(variant, multiply_tiles)                                                       \
    RANKSVM_HOST_KERNEL(variant, multiply_columns)                                                     \
    RANKSVM_HOST_KERNEL(variant, add_rows)                                                             \
    RANKSVM_HOST_KERNEL(variant, add_pieces)                                                           \
    RANKSVM_HOST_KERNEL(variant, step_between) RANKSVM_HOST_KERNEL(variant, take)

#define RANKSVM_HOST_FUSED_KERNELS(variant) \
    RANKSVM_HOST_KERNEL(variant, fused_loss) RANKSVM_HOST_KERNEL(variant, fused_laplacian)

#define RANKSVM_HOST_KERNELS_OF_DOCUMENTS(variant) \
    RANKSVM_HOST_KERNEL(variant, pair_values)      \
    RANKSVM_HOST_KERNEL(variant, sparse_pair_values) RANKSVM_HOST_KERNEL(variant, put_diagonal)      \
        RANKSVM_HOST_KERNEL(variant, multiply_chosen)

#define RANKSVM_HOST_KERNELS_OF_FACTORS(variant)                                                     \
    RANKSVM_HOST_KERNEL(variant, form_inner)                                                         \
    RANKSVM_HOST_KERNEL(variant, factorize_block)                                                    \
    RANKSVM_HOST_KERNEL(variant, divide_panel)                                                       \
    RANKSVM_HOST_KERNEL(variant, update_rest)                                                        \
    RANKSVM_HOST_KERNEL(variant, solve_forward) RANKSVM_HOST_KERNEL(variant, solve_backward)

#define RANKSVM_HOST_STORAGE_KERNELS(variant)        \
    RANKSVM_HOST_KERNEL(variant, convert)            \
    RANKSVM_HOST_KERNEL(variant, largest_values)     \
    RANKSVM_HOST_KERNEL(variant, read_values)        \
    RANKSVM_HOST_KERNEL(variant, visit_others)       \
    RANKSVM_HOST_KERNEL(variant, add_values) RANKSVM_HOST_KERNEL(variant, sum_by_code)

inline const std::vector<HostKernel> &host_kernels() {
    static const std::vector<HostKernel> kernels = {
        RANKSVM_HOST_FUSED_KERNELS(levels_dense_float) RANKSVM_HOST_FUSED_KERNELS(levels_dense_double)
        RANKSVM_HOST_FUSED_KERNELS(listed_dense_float) RANKSVM_HOST_FUSED_KERNELS(listed_dense_double)
        RANKSVM_HOST_STORAGE_KERNELS(levels_dense_float) RANKSVM_HOST_STORAGE_KERNELS(levels_dense_double)
        RANKSVM_HOST_KERNELS(levels_dense_float, accumulate_rows) RANKSVM_HOST_KERNELS(levels_dense_double, accumulate_rows)
            RANKSVM_HOST_KERNELS(levels_sparse_float, accumulate_columns)
                RANKSVM_HOST_KERNELS(levels_sparse_double, accumulate_columns)
                    RANKSVM_HOST_KERNELS(listed_dense_float, accumulate_rows)
                        RANKSVM_HOST_KERNELS(listed_dense_double, accumulate_rows)
                            RANKSVM_HOST_KERNELS(listed_sparse_float, accumulate_columns)
                                RANKSVM_HOST_KERNELS(listed_sparse_double, accumulate_columns)
                                    RANKSVM_HOST_KERNELS_OF_DOCUMENTS(levels_dense_float)
                                        RANKSVM_HOST_KERNELS_OF_DOCUMENTS(levels_dense_double)
                                            RANKSVM_HOST_KERNELS_OF_FACTORS(levels_dense_float)
                                                RANKSVM_HOST_KERNELS_OF_FACTORS(levels_dense_double)};
    return kernels;
}

inline std::vector<std::string> host_kernel_names() {
    std::vector<std::string> names;
    for (const HostKernel &kernel : host_kernels()) names.push_back(kernel.name);
    return names;
}

// A kernel by variant and name, such as "levels_dense_float/loss".
inline const HostKernel &host_kernel(const std::string &name) {
    for (const HostKernel &kernel : host_kernels())
        if (name == kernel.name) return kernel;
    throw std::invalid_argument("there is no kernel " + name);
}

// Runs all blocks of a kernel one after another. (A GPU runs them in an order that is not known.)
inline void run_on_host(const HostKernel &kernel, std::int64_t n_blocks, int n_threads, double *shared, bool backwards,
                        const Word *words) {
    for (std::int64_t turn = 0; turn < n_blocks; ++turn) {
        const std::int64_t index = backwards ? n_blocks - 1 - turn : turn;
        current_block = {index, n_blocks, n_threads, shared, backwards};
        kernel.run(words);
    }
}

}  // namespace ranksvm::device

#endif
