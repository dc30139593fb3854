"""CUDA GPUs: memory, copies and launches through cuda-core, kernels compiled by NVRTC on first use."""

import logging
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from ranksvm._util.memory import in_words
from ranksvm.device.protocol import Argument, DeviceArray, Variant, words
from ranksvm.device.source import PARTS_OF_FITS, kernel_source, part_of
from ranksvm.exceptions import DeviceError, DeviceMemoryError, MissingDependencyError

__all__ = ["CudaDevice", "compile_kernels", "gpu_names"]

logger = logging.getLogger("ranksvm.device")

INSTALL = "pip install 'ranksvm[cuda]'"
# Threads of a block, and blocks of this size that a multiprocessor has at a time. Not yet measured.
N_THREADS = 256
BLOCKS_PER_MULTIPROCESSOR = 8
# Shared memory of a block unless a launch requests more: 48 KB on every GPU.
SHARED_BYTES = 48 << 10


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
        When there is no such GPU, or no driver for it.
    """

    n_threads = N_THREADS

    def __init__(self, number: int = 0):
        core, self._driver = _cuda()
        self.name = f"cuda:{number}"
        n_devices = len(_all_devices(core, f"device={self.name!r}"))
        if number >= n_devices:
            there = "none" if not n_devices else f"{n_devices}, numbered from 0"
            raise DeviceError(f"device={self.name!r}: the number of CUDA GPUs here is {there}. Use device='cpu'.")
        _check_compiler()
        self._device = core.Device(number)
        self._core = core
        self._device.set_current()
        self._stream, self._copies = self._device.create_stream(), self._device.create_stream()
        self.n_blocks = BLOCKS_PER_MULTIPROCESSOR * self._device.properties.multiprocessor_count
        self.shared_bytes = int(self._device.properties.max_shared_memory_per_block_optin)
        self._code: dict[tuple[Variant, int], Future] = {}
        self._kernels: dict[tuple[Variant, str], Any] = {}
        # bytes of shared memory that each kernel may use
        self._shared: dict[tuple[Variant, str], int] = {}

    @property
    def free_bytes(self) -> int:
        self._device.set_current()
        free, _total = self._checked(self._driver.cuMemGetInfo())
        # freed memory is kept for the next arrays: a pool of cuda-core returns nothing to the driver
        pool = getattr(self._device.memory_resource, "attributes", None)
        kept = 0 if pool is None else pool.reserved_mem_current - pool.used_mem_current
        return int(free) + int(kept)

    def empty(self, shape: tuple[int, ...], dtype: Any) -> DeviceArray:
        dtype = np.dtype(dtype)
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        self._device.set_current()
        try:
            memory = self._device.allocate(max(1, size), stream=self._stream)
        except Exception as error:
            if "OUT_OF_MEMORY" not in str(error):
                raise
            raise DeviceMemoryError(
                f"{self.name} is out of memory: {in_words(size)} were asked for and {in_words(self.free_bytes)} are "
                "free. Free memory that other programs or arrays take there, or use device='cpu'."
            ) from error
        return DeviceArray(int(memory.handle), tuple(shape), dtype, memory)

    def copy_in(self, values: np.ndarray, into: DeviceArray | None = None) -> DeviceArray:
        values = np.ascontiguousarray(values)
        array = self.empty(values.shape, values.dtype) if into is None else into
        if values.nbytes:
            self._device.set_current()
            there = array.pointer, values.ctypes.data, values.nbytes, self._stream.handle
            # pageable memory: the values have been read when the call returns
            self._checked(self._driver.cuMemcpyHtoDAsync(*there))
        return array

    def copy_out(self, array: DeviceArray) -> np.ndarray:
        values = np.empty(array.shape, dtype=array.dtype)
        if values.nbytes:
            self._device.set_current()
            here = values.ctypes.data, array.pointer, values.nbytes, self._stream.handle
            self._checked(self._driver.cuMemcpyDtoHAsync(*here))
        self._wait(self._stream.sync)
        return values

    def pin(self, values: np.ndarray) -> Any:
        self._device.set_current()
        flags = 0 if values.flags.writeable else self._driver.CU_MEMHOSTREGISTER_READ_ONLY
        status, *_ = self._driver.cuMemHostRegister(values.ctypes.data, values.nbytes, flags)
        if status != self._driver.CUresult.CUDA_SUCCESS:  # copies are slower, but correct
            logger.info("%s: X on the host cannot be pinned (%s): copies of it are slower", self.name, status.name)
            return None
        return _Pinned(self, values)

    def copy_ahead(self, values: np.ndarray, into: DeviceArray) -> Any:
        self._device.set_current()
        self._copies.wait(self._stream.record())
        there = into.pointer, values.ctypes.data, values.nbytes, self._copies.handle
        self._checked(self._driver.cuMemcpyHtoDAsync(*there))
        return self._copies.record()

    def await_copy(self, copy: Any) -> None:
        self._device.set_current()
        self._stream.wait(copy)

    def compile(self, variant: Variant) -> None:
        for part in PARTS_OF_FITS:
            self._compiled(variant, part)

    def compiled(self, variant: Variant, kernel: str) -> bool:
        code = self._code.get((variant, part_of(kernel)))
        return code is not None and code.done()

    def launch(
        self, variant: Variant, kernel: str, arguments: tuple[Argument, ...], *, n_blocks: int, shared: int = 0
    ) -> None:
        self._device.set_current()
        if (variant, kernel) not in self._kernels:
            found = self._compiled(variant, part_of(kernel)).result().get_kernel(kernel)
            self._kernels[variant, kernel] = found
        found = self._kernels[variant, kernel]
        if 8 * shared > self._shared.get((variant, kernel), SHARED_BYTES):
            most = self._driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            self._checked(self._driver.cuKernelSetAttribute(most, 8 * shared, found.handle, self._device.device_id))
            self._shared[variant, kernel] = 8 * shared
        config = self._core.LaunchConfig(grid=n_blocks, block=self.n_threads, shmem_size=8 * shared)
        values = (word[()] for word in words(arguments))
        self._core.launch(self._stream, config, found, *values)

    def _compiled(self, variant: Variant, part: int) -> Future:
        """Machine code that is compiled in the background."""
        if (variant, part) not in self._code:
            worker = ThreadPoolExecutor(1, thread_name_prefix="ranksvm-nvrtc")
            self._code[variant, part] = worker.submit(compile_kernels, variant, part, f"sm_{self._device.arch}")
            worker.shutdown(wait=False)
        return self._code[variant, part]

    def synchronise(self) -> None:
        self._device.set_current()
        self._wait(self._device.sync)

    def _wait(self, sync: Callable[[], None]) -> None:
        try:
            sync()
        except Exception as error:
            raise DeviceError(f"{self.name} failed: {_first_line(error)}") from error

    def _checked(self, result: tuple[Any, ...]) -> Any:
        """The results of a driver function without its status."""
        status, *values = result
        if status != self._driver.CUresult.CUDA_SUCCESS:
            raise DeviceError(f"{self.name} failed: {status.name}")
        return values


def gpu_names() -> list[str]:
    """Names of the GPUs of this machine, in the order of their numbers.

    Returns
    -------
    list of str
        Such as ["cuda:0 (NVIDIA H200)"]; empty without a GPU.

    Raises
    ------
    MissingDependencyError
        When cuda-core or cuda-bindings is not installed.
    DeviceError
        When there is no driver, or it is too old.
    """
    core, _ = _cuda()
    return [f"cuda:{number} ({device.name})" for number, device in enumerate(_all_devices(core, "device='cuda'"))]


def _all_devices(core: Any, asked_for: str) -> tuple[Any, ...]:
    try:
        return tuple(core.Device.get_all_devices())
    except Exception as error:  # the driver is absent or too old: cuda-core has several classes of error for that
        raise DeviceError(
            f"{asked_for} needs an NVIDIA GPU and its driver (580 or newer), but the CUDA driver does not "
            f"start here: {_first_line(error)} Use device='cpu'."
        ) from error


def compile_kernels(variant: Variant, part: int, arch: str) -> Any:
    """Compile the kernels of a variant for an architecture, or load the result of an earlier process.

    A GPU is not needed.

    Parameters
    ----------
    variant : Variant
        What they are for.
    part : int
        The part of them, from 1: see `part_of`.
    arch : str
        Such as "sm_90".

    Returns
    -------
    cuda.core.ObjectCode
        The machine code.
    """
    core, _ = _cuda()
    macros = [*variant.macros(), ("RANKSVM_PART", str(part))]
    options = core.ProgramOptions(name="ranksvm", arch=arch, std="c++17", define_macro=macros)
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
        self.device._copies.sync()
        self.device._device.set_current()
        self.device._driver.cuMemHostUnregister(self.values.ctypes.data)


def _cuda() -> tuple[Any, Any]:
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
