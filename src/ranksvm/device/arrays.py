"""Arrays of other libraries on a GPU, recognized by their protocols without importing any of these libraries."""

import contextlib
import logging
import sys
from typing import Any, NamedTuple

import numpy as np

from ranksvm.device.launcher import Launcher, as_int32
from ranksvm.device.names import open_device
from ranksvm.device.protocol import Device, DeviceArray, Variant
from ranksvm.exceptions import DataError, DeviceError

__all__ = ["Foreign", "array_like", "as_rows", "foreign", "host_sparse", "host_values", "is_on_device"]

logger = logging.getLogger("ranksvm.device")

# DLPack's device types for arrays that a CUDA GPU can read: memory of the GPU, and managed memory.
_CUDA = (2, 13)
# Types that `convert` of storage.hpp reads. The position of a type here is its number there.
_TYPES = ("f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")


class Foreign(NamedTuple):
    """An array of another library on a GPU.

    Attributes
    ----------
    device : str
        Name of the GPU.
    pointer : int
        Address of the first value.
    shape, strides : tuple of int
        Its shape, and the bytes from one value to the next along each axis.
    dtype : dtype
        Type of its values.
    owner : object
        The object that keeps the memory alive.
    """

    device: str
    pointer: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype
    owner: object

    @property
    def contiguous(self) -> bool:
        """Whether the values are one after another, row by row."""
        return self.strides == _strides(self.shape, self.dtype.itemsize)


def is_on_device(values: object) -> bool:
    """Whether something is an array on a GPU.

    Parameters
    ----------
    values : object
        Anything.

    Returns
    -------
    bool
        True for an object with ``__cuda_array_interface__``, or with ``__dlpack_device__`` that names a GPU.
    """
    if isinstance(values, np.ndarray | list | tuple):
        return False
    try:  # a torch tensor in host memory also has the first attribute, but reading it raises AttributeError
        if hasattr(values, "__cuda_array_interface__"):
            return True
        return hasattr(values, "__dlpack_device__") and int(values.__dlpack_device__()[0]) in _CUDA
    except (TypeError, ValueError, RuntimeError, BufferError):
        return False


def foreign(values: Any) -> Foreign:
    """Describe an array on a GPU.

    Parameters
    ----------
    values : object
        An array for which `is_on_device` is True.

    Returns
    -------
    Foreign
        Its address, shape, strides and type.

    Raises
    ------
    DataError
        When it has a mask.
    """
    number = int(values.__dlpack_device__()[1]) if hasattr(values, "__dlpack_device__") else 0
    device = f"cuda:{number}"
    if not hasattr(values, "__cuda_array_interface__"):
        from cuda.core.utils import StridedMemoryView

        view = StridedMemoryView.from_dlpack(values, stream_ptr=-1)
        dtype = np.dtype(view.dtype)
        strides = view.strides
        steps = _strides(view.shape, dtype.itemsize) if strides is None else tuple(dtype.itemsize * s for s in strides)
        return Foreign(device, int(view.ptr), tuple(view.shape), steps, dtype, view)
    interface = values.__cuda_array_interface__
    dtype, shape = np.dtype(interface["typestr"]), tuple(interface["shape"])
    if interface.get("mask") is not None:
        raise DataError("X on a GPU has a mask: fill what is masked.")
    strides = interface.get("strides")
    steps = _strides(shape, dtype.itemsize) if strides is None else tuple(strides)
    return Foreign(device, int(interface["data"][0] or 0), shape, steps, dtype, values)


def as_rows(values: Foreign, rows: np.ndarray | None = None) -> tuple[Device, DeviceArray]:
    """An array on a GPU as rows of float32 or float64 on that GPU: the array itself if possible, or a copy.

    Parameters
    ----------
    values : Foreign
        The array, of two dimensions.
    rows : ndarray of int64, optional
        Row numbers. If given, the result is a copy of these rows, in this order.

    Returns
    -------
    device : Device
        The GPU of the array.
    rows : DeviceArray of float32 or float64, C-contiguous
        The values of the array: float32 as they are, all other types converted to float64.

    Raises
    ------
    DataError
        When the values are not real numbers.
    """
    device = open_device(values.device)
    device.synchronise()  # other streams may still write the array
    dtype = np.dtype(np.float32 if values.dtype == np.float32 else np.float64)
    if rows is None and values.dtype == dtype and values.contiguous:
        return device, DeviceArray(values.pointer, values.shape, dtype, values.owner)
    name = "u1" if values.dtype.kind == "b" else f"{values.dtype.kind}{values.dtype.itemsize}"
    if name not in _TYPES or not values.dtype.isnative:
        raise DataError(f"X on a GPU holds {values.dtype} values: features must be real numbers.")
    run = Launcher(device, Variant(False, False, "float" if dtype == np.float32 else "double"))
    n_rows, n = values.shape if rows is None else (len(rows), values.shape[1])
    out = device.empty((n_rows, n), dtype)
    places = None if rows is None else run.copy_in(as_int32(rows))
    foreign_array = DeviceArray(values.pointer, values.shape, values.dtype, values.owner)
    layout = _TYPES.index(name), *values.strides, places, n_rows, n
    run("convert", foreign_array, *layout, out, work=run.n_threads * n_rows)
    device.synchronise()  # the array may be gone after this
    return device, out


def host_values(values: Any) -> Any:
    """Values on the host: a copy of an array on a GPU, anything else unchanged.

    Parameters
    ----------
    values : object
        Any values, such as labels, query ids or weights.

    Returns
    -------
    object
        An ndarray if ``values`` is an array on a GPU, otherwise ``values``.
    """
    if values is None or not is_on_device(values):
        return values
    for method in ("get", "to_numpy"):  # CuPy, cuDF
        if callable(getattr(values, method, None)):
            return getattr(values, method)()
    if callable(getattr(values, "cpu", None)):  # torch
        return values.detach().cpu().numpy()
    found = foreign(values)
    if not found.contiguous:
        raise DataError("an array on a GPU is not contiguous: copy it first, or pass one of the host.")
    device = open_device(found.device)
    device.synchronise()
    return device.copy_out(DeviceArray(found.pointer, found.shape, found.dtype, found.owner))


def host_sparse(values: Any) -> Any:
    """Convert a sparse matrix on a GPU to a SciPy matrix; anything else is unchanged.

    A fit on a GPU needs the matrix by rows and by columns. The fit sorts the host's matrix by columns, and then copies
    both forms to the GPU.

    Parameters
    ----------
    values : object
        Any object, such as a matrix of ``cupyx.scipy.sparse`` or a sparse tensor of torch.

    Returns
    -------
    object
        A CSR matrix on the host if ``values`` is a sparse matrix on a GPU, otherwise ``values``.
    """
    library = type(values).__module__.partition(".")[0]
    if library == "cupyx" and hasattr(values, "get"):
        logger.info("X is sparse and on a GPU: it is copied to the host")
        return values.get().tocsr()
    if library == "torch" and getattr(values, "is_cuda", False) and not str(values.layout).endswith("strided"):
        from scipy import sparse

        logger.info("X is sparse and on a GPU: it is copied to the host")
        rows = values.detach().to_sparse_csr().cpu()
        parts = (part.numpy() for part in (rows.values(), rows.col_indices(), rows.crow_indices()))
        return sparse.csr_array(tuple(parts), shape=tuple(rows.shape))
    return values


class _View:
    """A view of an array on a GPU for other libraries, which may read it in streams of their own."""

    def __init__(self, array: DeviceArray, device: Device):
        self._array = array
        self._device = device
        self._number = _number(device)
        self.shape, self.dtype = array.shape, array.dtype
        self.__cuda_array_interface__ = {
            "shape": array.shape,
            "typestr": array.dtype.str,
            "data": (array.pointer, False),
            "strides": None,
            "version": 3,
        }

    def __dlpack_device__(self) -> tuple[int, int]:
        return _CUDA[0], self._number

    def __del__(self) -> None:
        # Without this, the memory could be reused while other streams still read it: reuse waits for our stream only.
        with contextlib.suppress(DeviceError):
            self._device.synchronise()


def array_like(array: DeviceArray, device: Device, original: Any) -> Any:
    """Convert an array on a GPU to the library of another array on that GPU.

    Parameters
    ----------
    array : DeviceArray
        The array; all work that writes it has ended.
    device : Device
        Its device.
    original : object
        The other array.

    Returns
    -------
    object
        A tensor of torch or an array of CuPy over the same memory; for other libraries an object with
        ``__cuda_array_interface__``.
    """
    number = _number(device)
    view, library = _View(array, device), type(original).__module__.partition(".")[0]
    module = sys.modules.get(library)
    if library == "torch" and module is not None:
        return module.as_tensor(view, device=original.device)
    if library == "cupy" and module is not None:
        with module.cuda.Device(number):
            return module.asarray(view)
    return view


def _number(device: Device) -> int:
    return int(device.name.rpartition(":")[2])


def _strides(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """The strides of a C-contiguous array."""
    strides = [itemsize]
    for size in reversed(shape[1:]):
        strides.append(strides[-1] * max(1, size))
    return tuple(reversed(strides))
