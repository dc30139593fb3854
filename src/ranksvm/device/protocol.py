"""The interface of a device: six calls, three for copies beside them, and how large it is."""

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

__all__ = ["Argument", "Device", "DeviceArray", "Variant", "words"]


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
        What holds the memory, which is free once nothing refers to it.
    """

    pointer: int
    shape: tuple[int, ...]
    dtype: np.dtype
    owner: Any

    @property
    def size(self) -> int:
        """Number of values."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def nbytes(self) -> int:
        """Their bytes."""
        return self.size * self.dtype.itemsize

    def part(self, start: int, stop: int) -> "DeviceArray":
        """The values from ``start`` to ``stop`` of the array seen as a vector, in the same memory."""
        return DeviceArray(self.pointer + start * self.dtype.itemsize, (stop - start,), self.dtype, self.owner)


class Variant(NamedTuple):
    """What kernels are compiled for.

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

    def macros(self) -> list[tuple[str, str]]:
        """The definitions that ``kernels.hpp`` asks for."""
        values = (("LISTED", int(self.listed)), ("SPARSE", int(self.sparse)), ("REAL", self.real))
        return [(f"RANKSVM_{name}", str(value)) for name, value in values]


# An argument of a kernel: an array, None for no array, a whole number or a number of float64.
Argument = DeviceArray | int | float | None


class Device(Protocol):
    """Memory, kernels by name, and a queue of what to do: launches are in order and need not have ended on return.

    Attributes
    ----------
    name : str
        Name of the device, such as "cuda:0".
    n_blocks : int
        Number of blocks that use all of it.
    n_threads : int
        Number of threads of a block, a power of 2.
    shared_bytes : int
        Bytes of shared memory that a block can have.
    free_bytes : int
        Bytes of memory that are free.
    """

    name: str
    n_blocks: int
    n_threads: int
    shared_bytes: int

    @property
    def free_bytes(self) -> int: ...

    def empty(self, shape: tuple[int, ...], dtype: Any) -> DeviceArray:
        """A new array; raises DeviceMemoryError if there is too little memory."""

    def copy_in(self, values: np.ndarray, into: DeviceArray | None = None) -> DeviceArray:
        """A copy of an array of the host on the device, in a new array or an existing one."""

    def copy_out(self, array: DeviceArray) -> np.ndarray:
        """A copy of an array on the host, when all launches before have ended."""

    def pin(self, values: np.ndarray) -> Any:
        """Pin an array of the host, for copies at full speed, as long as the result lives; None: it cannot be."""

    def copy_ahead(self, values: np.ndarray, into: DeviceArray) -> Any:
        """Begin a copy to the device beside launches that follow, once those before have ended."""

    def await_copy(self, copy: Any) -> None:
        """Let launches that follow wait for a copy that `copy_ahead` has begun."""

    def compile(self, variant: Variant) -> None:
        """Begin to make the kernels of fits ready for a variant, if they are not yet; others are made when launched."""

    def compiled(self, variant: Variant, kernel: str) -> bool:
        """Whether a kernel is ready for a variant, so that its first launch does not wait for a compiler."""

    def launch(
        self, variant: Variant, kernel: str, arguments: tuple[Argument, ...], *, n_blocks: int, shared: int = 0
    ) -> None:
        """Run a kernel by so many blocks with ``shared`` numbers of float64 of shared memory each."""

    def synchronise(self) -> None:
        """Wait for whatever is launched there, by other libraries, too; raises DeviceError if something has failed."""


def words(arguments: tuple[Argument, ...]) -> list[np.ndarray]:
    """The arguments of a kernel, 8 bytes each: addresses, whole numbers and numbers of float64.

    Parameters
    ----------
    arguments : tuple
        The arguments.

    Returns
    -------
    list of ndarray
        One scalar array of uint64, int64 or float64 for each.
    """
    found = []
    for value in arguments:
        if value is None or isinstance(value, DeviceArray):
            found.append(np.asarray(0 if value is None else value.pointer, dtype=np.uint64))
        elif isinstance(value, float):
            found.append(np.asarray(value, dtype=np.float64))
        else:
            found.append(np.asarray(value, dtype=np.int64))
    return found
