"""The interface of all devices, which hold arrays and run kernels: GPUs and, in tests, the host."""

import operator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import DTypeLike

__all__ = ["Argument", "Device", "DeviceArray", "StoredArray", "Variant", "words"]


@dataclass(frozen=True, eq=False)
class DeviceArray:
    """A C-contiguous array in the memory of a device.

    Parameters
    ----------
    pointer : int
        Address of the first value.
    shape : tuple of int
        Its shape.
    dtype : dtype
        Type of its values.
    owner : object
        Owner of the memory, which is freed once nothing refers to the owner.
    """

    pointer: int
    shape: tuple[int, ...]
    dtype: np.dtype
    owner: object

    @property
    def size(self) -> int:
        """Number of values."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def nbytes(self) -> int:
        """Number of bytes of the values."""
        return self.size * self.dtype.itemsize

    def part(self, start: int, stop: int) -> "DeviceArray":
        """View of the values from ``start`` to ``stop`` of the flattened array."""
        return DeviceArray(self.pointer + start * self.dtype.itemsize, (stop - start,), self.dtype, self.owner)


class StoredArray(NamedTuple):
    """An array, and the device where it is stored.

    Attributes
    ----------
    device : Device
        The device.
    values : DeviceArray
        The array.
    """

    device: "Device"
    values: DeviceArray


class Variant(NamedTuple):
    """Properties of the data; kernels are compiled for each combination of them.

    Attributes
    ----------
    listed : bool
        Whether pairs are listed, and not implied by labels.
    sparse : bool
        Whether X is sparse.
    real : str
        Type of its values, "float" or "double".
    """

    listed: bool
    sparse: bool
    real: str

    def __str__(self) -> str:
        return f"{'listed' if self.listed else 'levels'}_{'sparse' if self.sparse else 'dense'}_{self.real}"


# An argument of a kernel: an array, None for no array, an integer or a float64 number.
Argument = DeviceArray | int | float | None


class Device(Protocol):
    """Holds arrays, and runs kernels in the order of their launches; a launch may return before its kernel ends.

    Attributes
    ----------
    name : str
        Name of the device, such as "cuda:0".
    n_blocks : int
        Number of blocks that together occupy the whole device.
    n_threads : int
        Number of threads of a block, a power of 2.
    shared_bytes : int
        Maximum bytes of shared memory of a block.
    n_large_blocks, large_block_bytes : int
        How many blocks that keep rows in shared memory run at a time on the whole device, and how many bytes of shared
        memory each of them may take.
    cached_bytes : int
        How many bytes of rows a kernel may read so that the next kernels still find them in the cache; 0 if the cache
        is too small to save time.
    free_bytes : int
        Bytes of memory that are free.
    """

    name: str
    n_blocks: int
    n_threads: int
    shared_bytes: int
    n_large_blocks: int
    large_block_bytes: int
    cached_bytes: int

    @property
    def free_bytes(self) -> int: ...

    def empty(self, shape: tuple[int, ...], dtype: DTypeLike) -> DeviceArray:
        """A new array; raises DeviceMemoryError if there is too little memory."""

    def copy_in(self, values: np.ndarray, into: DeviceArray | None = None, n_threads: int = 1) -> DeviceArray:
        """Copy a host array to a new array, or to ``into``; up to ``n_threads`` threads copy a large array."""

    def copy_out(self, array: DeviceArray) -> np.ndarray:
        """Copy an array to the host, after all earlier launches have ended."""

    def pin(self, values: np.ndarray) -> object:
        """Pin a host array, for fast copies, until the result is deleted; return None if it cannot be pinned."""

    def copy_ahead(self, values: np.ndarray, into: DeviceArray) -> object:
        """Begin a copy to the device, which waits for earlier launches and runs in parallel with later ones."""

    def await_copy(self, copy: Any) -> None:
        """Make later launches wait for a copy that `copy_ahead` has begun."""

    def compile(self, variant: Variant) -> None:
        """Begin to compile the kernels of fits for a variant if necessary; other kernels are compiled when launched."""

    def compiled(self, variant: Variant, kernel: str) -> bool:
        """Whether a kernel is compiled for a variant, so that its first launch does not wait for the compiler."""

    def launch(
        self, variant: Variant, kernel: str, arguments: tuple[Argument, ...], *, n_blocks: int, shared: int = 0
    ) -> None:
        """Run a kernel on ``n_blocks`` blocks, each with ``shared`` float64 numbers of shared memory."""

    def synchronise(self) -> None:
        """Wait for all launched work, also of other libraries; raises DeviceError if something has failed."""


def words(arguments: tuple[Argument, ...]) -> list[int | float]:
    """The arguments of a kernel, 8 bytes each: addresses, integers and float64 numbers.

    Parameters
    ----------
    arguments : tuple
        The arguments.

    Returns
    -------
    list of int or float
        The arguments, with the address of each array in place of the array, and 0 for None.

    Raises
    ------
    TypeError
        When an argument is anything else, such as a float32 number.
    """
    found: list[int | float] = []
    for value in arguments:
        if isinstance(value, DeviceArray):
            found.append(value.pointer)
        elif value is None:
            found.append(0)
        else:
            found.append(float(value) if isinstance(value, float) else int(operator.index(value)))
    return found
