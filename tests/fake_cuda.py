"""What `ranksvm.device.cuda` uses of cuda-core and of the driver, played by the host: tests of its lines without a GPU.

Memory of a device is memory of the host, a stream runs everything at once, and a kernel is the one compiled for the
host. Arguments are checked as strictly as the real functions need them.
"""

import ctypes
import enum
import sys
import threading
import types
from typing import ClassVar

import numpy as np
import ranksvm._compiled.host_device as host_device

# the device of each thread
_current = threading.local()


class CUresult(enum.IntEnum):
    CUDA_SUCCESS = 0
    CUDA_ERROR_INVALID_VALUE = 1
    CUDA_ERROR_OUT_OF_MEMORY = 2
    CUDA_ERROR_ILLEGAL_ADDRESS = 700


class CUDAError(Exception):
    """The class of cuda-core's errors."""


class Stream:
    def __init__(self, device):
        self.device = device
        self.handle = object()

    def sync(self):
        if self.device.failure is not None:
            raise CUDAError(self.device.failure)


class Buffer:
    def __init__(self, device, size):
        self.values = np.full(size // 8 + 1, np.nan)
        self.handle = self.values.ctypes.data
        self.device, self.size = device, size
        device.used += size

    def __del__(self):
        self.device.used -= self.size


class Properties:
    multiprocessor_count = 2


class Device:
    """One of `count` devices, the same object for a number every time."""

    count, memory = 2, 1 << 30
    made: ClassVar = {}

    def __new__(cls, number=0):
        if number not in cls.made:
            cls.made[number] = super().__new__(cls)
            cls.made[number].used, cls.made[number].failure = 0, None
        return cls.made[number]

    arch = "90"
    properties = Properties()

    @classmethod
    def get_all_devices(cls):
        return tuple(cls(number) for number in range(cls.count))

    def set_current(self):
        _current.device = self

    def create_stream(self):
        assert _current.device is self
        return Stream(self)

    def sync(self):
        assert _current.device is self
        if self.failure is not None:
            raise CUDAError(self.failure)

    def allocate(self, size, *, stream):
        assert _current.device is self
        assert stream.device is self
        assert size > 0
        if self.used + size > self.memory:
            raise CUDAError("CUDA_ERROR_OUT_OF_MEMORY: The API call failed because it was unable to allocate memory.")
        return Buffer(self, size)


class LaunchConfig:
    def __init__(self, grid=None, block=None, shmem_size=0):
        assert min(grid, block) > 0
        self.grid, self.block, self.shmem_size = grid, block, shmem_size


def launch(stream, config, kernel, *arguments):
    assert _current.device is stream.device
    if any(not isinstance(value, np.uint64 | np.int64 | np.float64) for value in arguments):
        raise TypeError(f"arguments of {kernel} are no scalars of 8 bytes: {arguments}")
    packed = np.array([np.asarray(value).view(np.uint64)[()] for value in arguments], dtype=np.uint64)
    host_device.launch(kernel, config.grid, config.block, config.shmem_size // 8, packed)


class ProgramOptions:
    def __init__(self, *, name, arch, std, define_macro):
        assert (name, arch, std) == ("ranksvm", "sm_90", "c++17")
        self.macros = dict(define_macro)


class Code:
    def __init__(self, variant):
        self.variant = variant

    def get_kernel(self, name):
        return f"{self.variant}/{name}"


class Program:
    compiled: ClassVar = []

    def __init__(self, code, code_type, options):
        assert "RANKSVM_KERNEL(loss)" in code
        assert code_type == "c++"
        self.macros = options.macros

    def compile(self, target_type):
        assert target_type == "cubin"
        form = "listed" if int(self.macros["RANKSVM_LISTED"]) else "levels"
        storage = "sparse" if int(self.macros["RANKSVM_SPARSE"]) else "dense"
        self.compiled.append(f"{form}_{storage}_{self.macros['RANKSVM_REAL']}")
        return Code(self.compiled[-1])


def copy_to_device(there, here, size, stream):
    assert _current.device is stream_device(stream)
    ctypes.memmove(there, here, size)
    return (CUresult.CUDA_SUCCESS,)


def copy_to_host(here, there, size, stream):
    assert _current.device is stream_device(stream)
    ctypes.memmove(here, there, size)
    return (CUresult.CUDA_SUCCESS,)


def stream_device(handle):
    return next(stream.device for stream in _streams if stream.handle is handle)


_streams = []


def install(monkeypatch):
    """Put the modules in the place of the real ones."""
    Device.made.clear()
    Device.count, Device.memory = 2, 1 << 30
    Program.compiled.clear()
    _streams.clear()
    monkeypatch.setattr(Device, "create_stream", _kept(Device.create_stream))
    core = types.ModuleType("cuda.core")
    for name in (Device, LaunchConfig, Program, ProgramOptions, launch):
        setattr(core, name.__name__, name)
    driver = types.ModuleType("cuda.bindings.driver")
    driver.CUresult = CUresult
    driver.cuMemcpyHtoDAsync, driver.cuMemcpyDtoHAsync = copy_to_device, copy_to_host
    driver.cuMemGetInfo = lambda: (CUresult.CUDA_SUCCESS, Device.memory - _current.device.used, Device.memory)
    bindings, cuda = types.ModuleType("cuda.bindings"), types.ModuleType("cuda")
    bindings.driver, cuda.core, cuda.bindings = driver, core, bindings
    for module in (cuda, core, bindings, driver):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    return driver


def _kept(create):
    def create_and_keep(device):
        _streams.append(create(device))
        return _streams[-1]

    return create_and_keep
