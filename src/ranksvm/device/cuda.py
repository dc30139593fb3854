"""CUDA GPUs as devices: cuda-core and the driver manage memory, copies and launches; NVRTC compiles the kernels."""

import contextlib
import logging
import re
import threading
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from importlib import resources
from queue import SimpleQueue
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike

from ranksvm._util.memory import in_words
from ranksvm._util.threads import parallel_map
from ranksvm.device.protocol import Argument, DeviceArray, Variant, words
from ranksvm.exceptions import DeviceError, DeviceMemoryError, MissingDependencyError, RankSVMError

if TYPE_CHECKING:
    from cuda.core import Event, Kernel, ObjectCode

__all__ = [
    "LARGE_BLOCKS",
    "PARTS_OF_FITS",
    "CudaDevice",
    "cached_bytes",
    "compile_kernels",
    "gpu_names",
    "kernel_source",
    "large_block_bytes",
    "macros_of",
    "part_of",
]

logger = logging.getLogger("ranksvm.device")

INSTALL = 'pip install "ranksvm[cuda]"'
# N_THREADS: number of threads in a block. BLOCKS_PER_MULTIPROCESSOR: number of blocks that a multiprocessor runs at a
# time. If blocks keep rows in shared memory, a multiprocessor runs only LARGE_BLOCKS of them at a time.
N_THREADS = 256
BLOCKS_PER_MULTIPROCESSOR = 8
# A GPU assigns shared memory to blocks in units of this number of bytes, or in smaller units that divide it.
SHARED_UNIT = 1024
# The share of the L2 cache that may hold rows until they are read a second time. If this share is less than
# MIN_CACHED_BYTES, the cache is not used: to launch kernels for many small pieces would take longer than to read all
# rows from memory twice. Not yet measured.
CACHE_SHARE, MIN_CACHED_BYTES = 0.5, 8 << 20
# The oldest driver and GPU for which NVRTC 13 compiles: driver 580, and Turing.
DRIVER_VERSION, CAPABILITY = 13000, (7, 5)
# CUDA may still read an array of the host after the call that copies it has returned. So a copy of an array of up to
# KEPT_BYTES is kept until CUDA has read it. The call waits if the array is larger, or if all kept copies take more than
# ALL_KEPT_BYTES. Not yet measured.
KEPT_BYTES, ALL_KEPT_BYTES = 1 << 20, 64 << 20
# Up to MAX_COPYING_THREADS threads copy an array of STAGED_BYTES or more to the GPU, through pinned buffers of
# PINNED_BYTES, up to two for each thread. (The driver would use a single thread for memory that is not pinned. It would
# copy 9 GB/s, although an H200 can take 55 GB/s. With 8 threads, parts of 2 MB were copied at 17 GB/s, of 4 MB at 29,
# of 8 MB at 41, and of 16 MB at 34.)
STAGED_BYTES, PINNED_BYTES, MAX_COPYING_THREADS = 16 << 20, 8 << 20, 8
# Number of blocks with rows in shared memory that a multiprocessor runs at a time. On an H100, 3 were faster than 2 and
# 4, most of all for lists of up to 100 documents.
LARGE_BLOCKS = 3

# Part of kernels.hpp (a group of kernels that are compiled together) -> names of its kernels. Part 2 is not listed: it
# has all other kernels.
PARTS = {
    1: ("loss", "degrees", "laplacian", "laplacian_rows"),
    3: ("fused_loss", "fused_laplacian"),
    4: ("convert", "largest_values"),
    5: ("pair_values", "sparse_pair_values", "put_diagonal", "multiply_chosen"),
    6: ("read_values", "visit_others"),
    7: ("form_inner", "factorize_block", "divide_panel", "update_rest", "solve_forward", "solve_backward"),
    8: ("add_values", "sum_by_code"),
}
# Parts with the kernels that a fit launches.
PARTS_OF_FITS = (3, 1, 2)

_INCLUDE = re.compile(r'^#include "([a-z_]+\.hpp)"$', re.MULTILINE)


class CudaDevice:
    """A CUDA GPU: see `Device` for the methods. Work runs in order on the object's own stream.

    Parameters
    ----------
    number : int
        Number of the GPU, from 0.

    Raises
    ------
    MissingDependencyError
        When cuda-core, cuda-bindings or NVRTC is not installed.
    DeviceError
        When there is no such GPU, it or its driver is too old, or there is no driver.
    """

    n_threads = N_THREADS

    def __init__(self, number: int = 0):
        core, self._driver = _cuda()
        self.name = f"cuda:{number}"
        n_devices = _n_gpus(self._driver, f"device={self.name!r}")
        if number >= n_devices:
            gpus = "none" if not n_devices else f"{n_devices}, numbered from 0"
            raise DeviceError(f"device={self.name!r}: the number of CUDA GPUs here is {gpus}. Use device='cpu'.")
        _check_compiler()
        self._device = core.Device(number)
        capability = tuple(self._device.compute_capability)
        if capability < CAPABILITY:
            found, required = (".".join(map(str, version)) for version in (capability, CAPABILITY))
            raise DeviceError(
                f"device={self.name!r}: {self._device.name} has compute capability {found}, and NVRTC compiles for "
                f"{required} and newer. Use device='cpu'."
            )
        self._core = core
        (self._context,) = self._checked(self._driver.cuDevicePrimaryCtxRetain(number))
        with self._current():
            self._device.set_current()
            self._stream, self._copies = self._device.create_stream(), self._device.create_stream()
        properties = self._device.properties
        self.n_blocks = BLOCKS_PER_MULTIPROCESSOR * int(properties.multiprocessor_count)
        self.shared_bytes = int(properties.max_shared_memory_per_block_optin)
        self.n_large_blocks = LARGE_BLOCKS * int(properties.multiprocessor_count)
        self.large_block_bytes = large_block_bytes(
            int(properties.max_shared_memory_per_multiprocessor),
            int(properties.reserved_shared_memory_per_block),
            self.shared_bytes,
        )
        self.cached_bytes = cached_bytes(int(properties.l2_cache_size))
        self._code: dict[tuple[Variant, int], Future[ObjectCode]] = {}
        self._kernels: dict[tuple[Variant, str], Kernel] = {}
        # arrays of the host that copies may still read, and their bytes
        self._kept: list[np.ndarray] = []
        self._kept_bytes = 0
        self._lock = threading.Lock()
        self._pins: weakref.WeakValueDictionary[tuple[int, int], _Pinned] = weakref.WeakValueDictionary()
        self._buffers = SimpleQueue[_Buffer]()
        self._n_buffers = 0

    @property
    def free_bytes(self) -> int:
        with self._current():
            free, _total = self._checked(self._driver.cuMemGetInfo())
            # freed memory is kept for the next arrays: a pool of cuda-core returns nothing to the driver
            pool = getattr(self._device.memory_resource, "attributes", None)
            kept = 0 if pool is None else pool.reserved_mem_current - pool.used_mem_current
        return int(free) + int(kept)

    def empty(self, shape: tuple[int, ...], dtype: DTypeLike) -> DeviceArray:
        dtype = np.dtype(dtype)
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        try:
            with self._current():
                memory = self._device.allocate(max(1, size), stream=self._stream)
        except Exception as error:
            if "OUT_OF_MEMORY" not in str(error):
                raise DeviceError(f"{self.name} failed: {_first_line(error)}") from error
            raise DeviceMemoryError(
                f"{self.name} is out of memory: {in_words(size)} were asked for and {in_words(self.free_bytes)} are "
                "free. Free memory that other programs or arrays take there, or use device='cpu'."
            ) from error
        return DeviceArray(int(memory.handle), tuple(shape), dtype, memory)

    def copy_in(self, values: np.ndarray, into: DeviceArray | None = None, n_threads: int = 1) -> DeviceArray:
        if n_threads > 1 and values.nbytes >= STAGED_BYTES:
            return self._copied_in_parts(np.ascontiguousarray(values), into, min(n_threads, MAX_COPYING_THREADS))
        small = values.nbytes <= KEPT_BYTES
        values = np.array(values, order="C") if small else np.ascontiguousarray(values)
        array = self.empty(values.shape, values.dtype) if into is None else into
        if values.nbytes:
            with self._current():
                arguments = array.pointer, values.ctypes.data, values.nbytes, self._stream.handle
                self._checked(self._driver.cuMemcpyHtoDAsync(*arguments))
            with self._lock:  # after the call, so that a `_wait` that takes the list also waits for this copy
                self._kept.append(values)
                self._kept_bytes += values.nbytes
            if not small or self._kept_bytes > ALL_KEPT_BYTES:
                self._wait_for_stream()
        return array

    def _copied_in_parts(self, values: np.ndarray, into: DeviceArray | None, n_threads: int) -> DeviceArray:
        """Copy through pinned buffers, which threads fill while the device still receives earlier parts."""
        array = self.empty(values.shape, values.dtype) if into is None else into
        content = values.reshape(-1).view(np.uint8)
        starts = range(0, len(content), PINNED_BYTES)
        with self._lock:
            for _ in range(min(2 * n_threads, len(starts)) - self._n_buffers):
                self._buffers.put(_Buffer(self))
                self._n_buffers += 1

        def copy(start: int) -> None:
            buffer = self._buffers.get()
            try:
                buffer.send(content[start : start + PINNED_BYTES], array.pointer + start)
            finally:
                self._buffers.put(buffer)

        parallel_map(copy, starts, n_threads)
        self._wait_for_stream()
        return array

    def copy_out(self, array: DeviceArray) -> np.ndarray:
        values = np.empty(array.shape, dtype=array.dtype)
        if values.nbytes:
            with self._current():
                arguments = values.ctypes.data, array.pointer, values.nbytes, self._stream.handle
                self._checked(self._driver.cuMemcpyDtoHAsync(*arguments))
        self._wait_for_stream()
        return values

    def pin(self, values: np.ndarray) -> "_Pinned | None":
        place = values.ctypes.data, values.nbytes
        found = self._pins.get(place)
        if found is not None:
            return found
        flags = 0 if values.flags.writeable else self._driver.CU_MEMHOSTREGISTER_READ_ONLY
        with self._current():
            status, *_ = self._driver.cuMemHostRegister(*place, flags)
        if status == self._driver.CUresult.CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED:  # the user has pinned it
            return None
        if status != self._driver.CUresult.CUDA_SUCCESS:  # copies are slower, but correct
            logger.info("%s: an array cannot be pinned (%s): copies of it are slower", self.name, status.name)
            return None
        found = self._pins[place] = _Pinned(self, values)
        return found

    def copy_ahead(self, values: np.ndarray, into: DeviceArray) -> "_Copy":
        with self._current(), self._failures():
            self._copies.wait(self._stream.record())
            arguments = into.pointer, values.ctypes.data, values.nbytes, self._copies.handle
            self._checked(self._driver.cuMemcpyHtoDAsync(*arguments))
            return _Copy(self, self._copies.record(), values)

    def await_copy(self, copy: "_Copy") -> None:
        with self._current(), self._failures():
            self._stream.wait(copy.end)

    def compile(self, variant: Variant) -> None:
        for part in PARTS_OF_FITS:
            self._compiled(variant, part)

    def compiled(self, variant: Variant, kernel: str) -> bool:
        code = self._code.get((variant, part_of(kernel)))
        return code is not None and code.done()

    def launch(
        self, variant: Variant, kernel: str, arguments: tuple[Argument, ...], *, n_blocks: int, shared: int = 0
    ) -> None:
        found = self._kernels.get((variant, kernel)) or self._loaded(variant, kernel)
        # int: NumPy's integers are refused
        config = self._core.LaunchConfig(grid=int(n_blocks), block=self.n_threads, shmem_size=int(8 * shared))
        with self._current(), self._failures(f", by the kernel {kernel}"):
            self._core.launch(self._stream, config, found, *words(arguments))

    def _loaded(self, variant: Variant, kernel: str) -> "Kernel":
        """Load a compiled kernel, and allow it to use all shared memory of a block: the default limit is 48 KB."""
        code = self._compiled(variant, part_of(kernel))
        with self._failures(", by the compiler of its kernels"):
            compiled = code.result()
        attribute = self._driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        with self._current(), self._failures(f", by the kernel {kernel}"):
            found = compiled.get_kernel(kernel)
            number = self._device.device_id
            self._checked(self._driver.cuKernelSetAttribute(attribute, self.shared_bytes, found.handle, number))
        self._kernels[variant, kernel] = found
        return found

    def _compiled(self, variant: Variant, part: int) -> Future["ObjectCode"]:
        """The machine code of a part of the kernels, which a background thread compiles."""
        if (variant, part) not in self._code:
            worker = ThreadPoolExecutor(1, thread_name_prefix="ranksvm-nvrtc")
            self._code[variant, part] = worker.submit(compile_kernels, variant, part, f"sm_{self._device.arch}")
            worker.shutdown(wait=False)
        return self._code[variant, part]

    def synchronise(self) -> None:
        self._wait(lambda: self._checked(self._driver.cuCtxSynchronize()))

    def _wait_for_stream(self) -> None:
        self._wait(self._stream.sync)

    def _wait(self, sync: Callable[[], object]) -> None:
        """Wait for all work of the stream so far, then free the arrays of the host that were kept for this work."""
        with self._lock:
            kept, self._kept, self._kept_bytes = self._kept, [], 0
        with self._current(), self._failures():
            sync()
        kept.clear()

    @contextlib.contextmanager
    def _current(self) -> Iterator[None]:
        """Make this device current, and restore the caller's current device (such as torch's) afterwards."""
        self._checked(self._driver.cuCtxPushCurrent(self._context))
        try:
            yield
        finally:
            self._driver.cuCtxPopCurrent()

    @contextlib.contextmanager
    def _failures(self, where: str = "") -> Iterator[None]:
        """Raise errors of the driver, of cuda-core and of NVRTC as `DeviceError`."""
        try:
            yield
        except (RankSVMError, TypeError, ValueError):
            raise
        except Exception as error:
            raise DeviceError(f"{self.name} failed{where}: {_first_line(error)}") from error

    def _checked(self, result: tuple[Any, ...]) -> list[Any]:
        """The results of a driver function without its status; raises DeviceError if the status is an error."""
        status, *values = result
        if status != self._driver.CUresult.CUDA_SUCCESS:
            raise DeviceError(f"{self.name} failed: {status.name}")
        return values


def large_block_bytes(of_multiprocessor: int, reserved: int, of_block: int) -> int:
    """Compute `Device.large_block_bytes` from the shared memory of a GPU.

    Parameters
    ----------
    of_multiprocessor, of_block : int
        Maximum bytes of shared memory of a multiprocessor, and of a block.
    reserved : int
        Bytes that the driver reserves for each block.

    Returns
    -------
    int
        Bytes.
    """
    share = of_multiprocessor // LARGE_BLOCKS // SHARED_UNIT * SHARED_UNIT
    return min(share - reserved, of_block)


def cached_bytes(cache: int) -> int:
    """Compute `Device.cached_bytes` from the size of the L2 cache.

    Parameters
    ----------
    cache : int
        Size of the L2 cache in bytes.

    Returns
    -------
    int
        Bytes.
    """
    share = int(CACHE_SHARE * cache)
    return share if share >= MIN_CACHED_BYTES else 0


def gpu_names() -> list[str]:
    """Names of the GPUs of this machine, in the order of their numbers.

    Returns
    -------
    list of str
        The names, such as ["cuda:0 (NVIDIA H200)"]; empty without a GPU.

    Raises
    ------
    MissingDependencyError
        When cuda-core or cuda-bindings is not installed.
    DeviceError
        When there is no driver, or it is too old.
    """
    core, driver = _cuda()
    return [f"cuda:{number} ({core.Device(number).name})" for number in range(_n_gpus(driver, "device='cuda'"))]


def _n_gpus(driver: ModuleType, asked_for: str) -> int:
    """Number of GPUs, from the driver alone: cuda-core 1.0 and 1.1 use another library to count them."""
    try:
        (status,) = driver.cuInit(0)
        if status == driver.CUresult.CUDA_ERROR_NO_DEVICE:
            return 0
        why = "" if status == driver.CUresult.CUDA_SUCCESS else f"the CUDA driver does not start here: {status.name}."
        _, version = driver.cuDriverGetVersion()
        if not why and version < DRIVER_VERSION:
            why = f"the driver here is for CUDA {version // 1000}.{version % 1000 // 10}."
        _, n_devices = driver.cuDeviceGetCount()
    except Exception as error:  # there is no driver
        why, n_devices = f"the CUDA driver does not start here: {_first_line(error)}", 0
    if why:
        raise DeviceError(f"{asked_for} needs an NVIDIA GPU and its driver (580 or newer), but {why} Use device='cpu'.")
    return int(n_devices)


def compile_kernels(variant: Variant, part: int, arch: str) -> "ObjectCode":
    """Compile the kernels of a variant for an architecture, or load the result of an earlier process.

    A GPU is not needed.

    Parameters
    ----------
    variant : Variant
        The variant.
    part : int
        Number of the part of the kernels, from 1: see `part_of`.
    arch : str
        The architecture, such as "sm_90".

    Returns
    -------
    cuda.core.ObjectCode
        The machine code.
    """
    core, _ = _cuda()
    options = core.ProgramOptions(name="ranksvm", arch=arch, std="c++17", define_macro=macros_of(variant, part))
    try:  # cuda-core 1.1 and newer cache programs, in ~/.cache/cuda-python or the system's cache folder
        from cuda.core.utils import FileStreamProgramCache

        with FileStreamProgramCache() as cache:
            return core.Program(kernel_source(), "c++", options).compile("cubin", cache=cache)
    except (ImportError, OSError):  # an older version, or a folder that cannot be written to
        return core.Program(kernel_source(), "c++", options).compile("cubin")


def _check_compiler() -> None:
    """Raise an error if NVRTC is missing, before any work on a GPU."""
    from cuda.bindings import nvrtc

    try:
        nvrtc.nvrtcVersion()
    except RuntimeError as error:
        raise MissingDependencyError(f"device='cuda' needs NVRTC, which is not installed: {INSTALL}") from error


class _Pinned:
    """Host memory that is pinned for a device during the lifetime of this object."""

    def __init__(self, device: CudaDevice, values: np.ndarray):
        self.device = device
        self.values = values

    def __del__(self) -> None:
        with self.device._current():
            self.device._copies.sync()
            self.device._driver.cuMemHostUnregister(self.values.ctypes.data)


class _Buffer:
    """Memory of the host through which parts of arrays go to a device; it is pinned as long as the device is open."""

    def __init__(self, device: CudaDevice):
        self._device = weakref.proxy(device)
        self._values = np.empty(PINNED_BYTES, dtype=np.uint8)
        self._end: Event | None = None
        driver, pointer = device._driver, self._values.ctypes.data
        with device._current():
            status, *_ = driver.cuMemHostRegister(pointer, PINNED_BYTES, 0)
        if status == driver.CUresult.CUDA_SUCCESS:  # else copies are slower, but correct
            weakref.finalize(device, _unpin, driver, device._context, pointer).atexit = False

    def send(self, values: np.ndarray, pointer: int) -> None:
        """Begin to copy bytes to an address of the device, once the buffer's previous copy has ended."""
        device = self._device
        with device._current(), device._failures():
            if self._end is not None:
                self._end.sync()
            self._values[: len(values)] = values
            arguments = pointer, self._values.ctypes.data, len(values), device._stream.handle
            device._checked(device._driver.cuMemcpyHtoDAsync(*arguments))
            self._end = device._stream.record()


def _unpin(driver: ModuleType, context: object, pointer: int) -> None:
    driver.cuCtxPushCurrent(context)
    driver.cuMemHostUnregister(pointer)
    driver.cuCtxPopCurrent()


class _Copy:
    """A copy that may still run: this object keeps the host array, and deleting the object waits for the copy's end."""

    def __init__(self, device: CudaDevice, end: "Event", values: np.ndarray):
        self.device = device
        self.end = end
        self.values = values

    def __del__(self) -> None:
        with self.device._current():
            self.end.sync()


def _cuda() -> tuple[ModuleType, ModuleType]:
    """The modules ``cuda.core`` and ``cuda.bindings.driver``."""
    try:
        import cuda.core as core
        from cuda.bindings import driver
    except ImportError as error:
        raise MissingDependencyError(
            f"device='cuda' needs the packages cuda-core, cuda-bindings and NVRTC: {INSTALL}"
        ) from error
    return core, driver


def _first_line(error: BaseException) -> str:
    line = str(error).strip().partition("\n")[0] or type(error).__name__
    return line if line.endswith(".") else f"{line}."


@cache
def kernel_source() -> str:
    """``_compiled/device/kernels.hpp`` with the text of each included file in place of its include, once per file.

    Returns
    -------
    str
        CUDA C++.
    """
    folder = resources.files("ranksvm._compiled").joinpath("device")
    seen: set[str] = set()

    def text_of(name: str) -> str:
        if name in seen:
            return ""
        seen.add(name)
        text = folder.joinpath(name).read_text(encoding="utf-8")
        return _INCLUDE.sub(lambda match: text_of(match[1]), text)

    return text_of("kernels.hpp")


def macros_of(variant: Variant, part: int) -> list[tuple[str, str]]:
    """The macros that ``kernels.hpp`` needs.

    Parameters
    ----------
    variant : Variant
        The variant of the data.
    part : int
        The part of the kernels.

    Returns
    -------
    list of (str, str)
        Their names and values.
    """
    of_variant = ("LISTED", int(variant.listed)), ("SPARSE", int(variant.sparse)), ("REAL", variant.real)
    macros = (*of_variant, ("PART", part), ("LARGE_BLOCKS", LARGE_BLOCKS))
    return [(f"RANKSVM_{name}", str(value)) for name, value in macros]


def part_of(kernel: str) -> int:
    """The part of the source that contains a kernel: RANKSVM_PART of kernels.hpp.

    Parameters
    ----------
    kernel : str
        Its name.

    Returns
    -------
    int
        Number of the part.
    """
    return next((part for part, names in PARTS.items() if kernel in names), 2)
