# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""The GPU kernels of `device/`, compiled for the host, so that tests can run them without a GPU.

Arguments are 8 bytes each, addresses among them: callers (`ranksvm.device.HostDevice`) make sure that the addresses are those
of large enough arrays.
"""

from libc.stdint cimport int64_t, uint64_t
from libcpp.string cimport string
from libcpp.vector cimport vector

import numpy as np

from ranksvm._compiled.border cimport need

cdef extern from "device/host.hpp" namespace "ranksvm::device" nogil:
    cdef cppclass HostKernel:
        const char *name
        size_t n_arguments

    const HostKernel &host_kernel(const string &) except +
    vector[string] host_kernel_names() except +
    void run_on_host(const HostKernel &, int64_t, int, double *, bint, const uint64_t *) except +


def kernel_names(str variant):
    """The kernels of a variant, as "levels_dense_float/loss"."""
    return [name.decode() for name in host_kernel_names() if name.startswith(f"{variant}/".encode())]


def n_arguments(str name):
    """Number of arguments of a kernel."""
    return host_kernel(name.encode()).n_arguments


def launch(str name, int64_t n_blocks, int n_threads, int64_t shared_size, const uint64_t[::1] arguments, bint backwards=False):
    """Run a kernel without the GIL; the shared memory of a block has ``shared_size`` float64 numbers.

    With ``backwards`` the threads of a block, and the blocks, run in the opposite order: no result may depend on it.
    """
    cdef const HostKernel *kernel = &host_kernel(name.encode())
    cdef double[::1] shared = np.full(max(1, shared_size), np.nan)  # NaN makes a read before the first write visible
    need(f"arguments of {name}", arguments.shape[0], kernel.n_arguments)
    if n_threads < 8 or n_threads & (n_threads - 1):
        raise ValueError(f"n_threads must be a power of 2 from 8 on, got {n_threads}")
    with nogil:
        run_on_host(kernel[0], n_blocks, n_threads, &shared[0], backwards, &arguments[0])
