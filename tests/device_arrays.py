"""Arrays that claim to be on a GPU, as CuPy's are, but whose memory is that of a NumPy array."""

import numpy as np


class GpuArray:
    """An array with the protocols of a CuPy array; as with CuPy, implicit conversion to NumPy is an error."""

    def __init__(self, values, number=0, protocols=("cuda", "dlpack")):
        self.values = np.asarray(values)
        self._number = number
        if "cuda" in protocols:
            self.__cuda_array_interface__ = {
                "shape": self.values.shape,
                "typestr": self.values.dtype.str,
                "data": (self.values.ctypes.data, not self.values.flags.writeable),
                "strides": None if self.values.flags.c_contiguous else self.values.strides,
                "version": 3,
            }

    @property
    def shape(self):
        return self.values.shape

    @property
    def ndim(self):
        return self.values.ndim

    def __len__(self):
        return len(self.values)

    def __dlpack_device__(self):
        return 2, self._number

    def get(self):
        return self.values.copy()

    def __array__(self, *args, **kwargs):
        raise TypeError("Implicit conversion to a NumPy array is not allowed.")


def values_of(view):
    """The values of the array that `predict` returns, which claims to be on a GPU."""
    import ctypes

    interface = view.__cuda_array_interface__
    size = int(np.prod(interface["shape"])) * np.dtype(interface["typestr"]).itemsize
    memory = (ctypes.c_char * size).from_address(interface["data"][0])
    return np.frombuffer(memory, dtype=interface["typestr"]).reshape(interface["shape"]).copy()
