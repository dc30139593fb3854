"""The host in place of a GPU: the same kernels, compiled for the host."""

import ctypes
import struct
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

import ranksvm._compiled.host_device as host_device
from ranksvm.device.protocol import Argument, DeviceArray, Variant, words
from ranksvm.exceptions import DeviceError, DeviceMemoryError

__all__ = ["HostDevice"]

# a copy that has begun: its values, and the array that it fills
_Pending = tuple[np.ndarray, DeviceArray]


class HostDevice:
    """Runs kernels on one thread of the host, slowly, for tests: see `Device` for the methods.

    Parameters
    ----------
    n_blocks, n_threads : int
        As in `Device`. They are small, so that small data give work to several blocks, and each thread's loop runs
        several times.
    backwards : bool
        Whether threads and blocks run in the opposite order: no result may depend on it.
    large_block_bytes, cached_bytes : int
        As in `Device`.
    memory : int, optional
        Bytes that all arrays may take together; None: no limit.
    name : str
        Name of the device, which a test may choose.
    """

    def __init__(
        self,
        n_blocks: int = 3,
        n_threads: int = 16,
        backwards: bool = False,
        large_block_bytes: int = 1 << 15,
        cached_bytes: int = 0,
        memory: int | None = None,
        name: str = "host:0",
    ):
        self.name = name
        self.n_blocks = n_blocks
        self.n_threads = n_threads
        self.backwards = backwards
        self.shared_bytes = 1 << 16
        self.n_large_blocks = max(1, n_blocks // 4)
        self.large_block_bytes = large_block_bytes
        self.cached_bytes = cached_bytes
        self._memory = memory
        self._used = 0

    @property
    def free_bytes(self) -> int:
        return (1 << 40 if self._memory is None else self._memory) - self._used

    def empty(self, shape: tuple[int, ...], dtype: DTypeLike) -> DeviceArray:
        size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
        if size > self.free_bytes:
            raise DeviceMemoryError(
                f"{self.name}: an array of {size} bytes is more than the {self.free_bytes} that are free."
            )
        owner = _Owned(self, size)
        return DeviceArray(owner.values.ctypes.data, tuple(shape), np.dtype(dtype), owner)

    def copy_in(self, values: np.ndarray, into: DeviceArray | None = None, n_threads: int = 1) -> DeviceArray:
        array = self.empty(values.shape, values.dtype) if into is None else into
        if values.nbytes:
            _view(array)[...] = values
        return array

    def copy_out(self, array: DeviceArray) -> np.ndarray:
        if not array.nbytes:
            return np.empty(array.shape, array.dtype)
        return _view(array).copy()

    def pin(self, values: np.ndarray) -> None:
        return None

    def copy_ahead(self, values: np.ndarray, into: DeviceArray) -> list[_Pending]:
        # The copy is made only in `await_copy`, as late as a GPU may make it; a kernel that reads earlier sees NaN.
        _view(into)[...] = np.nan
        return [(values, into)]

    def await_copy(self, copy: list[_Pending]) -> None:
        if copy:
            self.copy_in(*copy.pop())

    def compile(self, variant: Variant) -> None:
        pass

    def compiled(self, variant: Variant, kernel: str) -> bool:
        return True

    def launch(
        self, variant: Variant, kernel: str, arguments: tuple[Argument, ...], *, n_blocks: int, shared: int = 0
    ) -> None:
        if 8 * shared > self.shared_bytes:
            raise DeviceError(f"{self.name}: {kernel} asks for {8 * shared} bytes of shared memory.")
        given = words(arguments)
        types = "".join("d" if isinstance(word, float) else "q" for word in given)
        packed = np.frombuffer(struct.pack(f"={types}", *given), dtype=np.uint64)
        host_device.launch(f"{variant}/{kernel}", n_blocks, self.n_threads, shared, packed, self.backwards)

    def synchronise(self) -> None:
        pass


class _Owned:
    """Memory of a host device, counted while it is in use; it holds NaN at first."""

    def __init__(self, device: HostDevice, size: int):
        self.device = device
        self.size = size
        # NaN makes a read before the first write visible
        self.values = np.full(size // 8 + 1, np.nan)
        device._used += size

    def __del__(self):
        self.device._used -= self.size


def _view(array: DeviceArray) -> np.ndarray:
    """The values of an array, whatever object owns its memory."""
    memory: Any = (ctypes.c_char * array.nbytes).from_address(array.pointer)
    return np.frombuffer(memory, dtype=np.uint8).view(array.dtype).reshape(array.shape)
