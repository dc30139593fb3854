"""CUDA GPUs: memory, copies and launches through cuda-core, kernels compiled by NVRTC on first use."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ranksvm._memory import in_words
from ranksvm.device.protocol import Argument, DeviceArray, Variant, words
from ranksvm.device.source import kernel_source
from ranksvm.exceptions import DeviceError, MissingDependencyError

__all__ = ["CudaDevice", "compile_kernels", "gpu_names"]

INSTALL = "pip install 'ranksvm[cuda]'"
# Threads of a block, and blocks of this size that a multiprocessor has at a time. Not yet measured.
N_THREADS = 256
BLOCKS_PER_MULTIPROCESSOR = 8


class CudaDevice:
    """A CUDA GPU: see `Device` for the methods. Work is in order on one stream of its own.

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
        self._device = core.Device(number)
        self._core = core
        self._device.set_current()
        self._stream = self._device.create_stream()
        self.n_blocks = BLOCKS_PER_MULTIPROCESSOR * self._device.properties.multiprocessor_count
        self._code: dict[Variant, Any] = {}
        self._kernels: dict[tuple[Variant, str], Any] = {}

    @property
    def free_bytes(self) -> int:
        self._device.set_current()
        free, _total = self._checked(self._driver.cuMemGetInfo())
        return int(free)

    def empty(self, shape: tuple[int, ...], dtype: Any) -> DeviceArray:
        dtype = np.dtype(dtype)
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        self._device.set_current()
        try:
            memory = self._device.allocate(max(1, size), stream=self._stream)
        except Exception as error:
            if "OUT_OF_MEMORY" not in str(error):
                raise
            raise DeviceError(
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
            # pageable memory: the values have been read on return
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

    def compile(self, variant: Variant) -> None:
        if variant not in self._code:
            self._code[variant] = compile_kernels(variant, f"sm_{self._device.arch}")

    def launch(
        self, variant: Variant, kernel: str, arguments: tuple[Argument, ...], *, n_blocks: int, shared: int = 0
    ) -> None:
        if (variant, kernel) not in self._kernels:
            self.compile(variant)
            self._kernels[variant, kernel] = self._code[variant].get_kernel(kernel)
        config = self._core.LaunchConfig(grid=n_blocks, block=self.n_threads, shmem_size=8 * shared)
        self._device.set_current()
        values = (word[()] for word in words(arguments))
        self._core.launch(self._stream, config, self._kernels[variant, kernel], *values)

    def synchronise(self) -> None:
        self._device.set_current()
        self._wait(self._device.sync)

    def _wait(self, sync: Callable[[], None]) -> None:
        try:
            sync()
        except Exception as error:
            raise DeviceError(f"{self.name} failed: {_first_line(error)}") from error

    def _checked(self, result: tuple[Any, ...]) -> Any:
        """What a function of the driver returned beside its status."""
        status, *values = result
        if status != self._driver.CUresult.CUDA_SUCCESS:
            raise DeviceError(f"{self.name} failed: {status.name}")
        return values


def gpu_names() -> list[str]:
    """What the GPUs of this machine are called, in the order of their numbers.

    Returns
    -------
    list of str
        Such as ["cuda:0 (NVIDIA H200)"]; empty without a GPU.

    Raises
    ------
    MissingDependencyError
        When cuda-core or cuda-bindings is not installed.
    DeviceError
        When there is no driver, or one that is too old.
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


def compile_kernels(variant: Variant, arch: str) -> Any:
    """The kernels of a variant compiled for an architecture; a GPU is not needed.

    Parameters
    ----------
    variant : Variant
        What they are for.
    arch : str
        Such as "sm_90".

    Returns
    -------
    cuda.core.ObjectCode
        The machine code.

    Raises
    ------
    MissingDependencyError
        When cuda-core or NVRTC is not installed.
    """
    core, _ = _cuda()
    options = core.ProgramOptions(name="ranksvm", arch=arch, std="c++17", define_macro=variant.macros())
    try:
        return core.Program(kernel_source(), "c++", options).compile("cubin")
    except RuntimeError as error:
        if "nvrtc" not in str(error).lower():
            raise
        raise MissingDependencyError(f"device='cuda' needs NVRTC, which is not installed: {INSTALL}") from error


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
