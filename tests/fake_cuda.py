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

from ranksvm.device.source import part_of

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

    def record(self):
        assert _current.device is self.device
        return Event(self)

    def wait(self, event):
        assert event.stream is not self, "a stream waits for another one"

    def sync(self):
        if self.device.failure is not None:
            raise CUDAError(self.device.failure)


class Event:
    def __init__(self, stream):
        self.stream = stream


class Buffer:
    def __init__(self, device, size):
        self.values = np.full(size // 8 + 1, np.nan)
        self.handle = self.values.ctypes.data
        self.device, self.size = device, size
        device.used += size
        device.reserved = max(device.reserved, device.used)

    def __del__(self):
        self.device.used -= self.size


class Pool:
    """Memory of a device that the driver has given away, and gets back from no array."""

    def __init__(self, device):
        self.device = device

    @property
    def attributes(self):
        assert _current.device is self.device
        return types.SimpleNamespace(reserved_mem_current=self.device.reserved, used_mem_current=self.device.used)


class Properties:
    multiprocessor_count = 2
    max_shared_memory_per_block_optin = 227 << 10


class Device:
    """One of `count` devices, the same object for a number every time."""

    count, memory = 2, 1 << 30
    made: ClassVar = {}

    def __new__(cls, number=0):
        if number not in cls.made:
            cls.made[number] = super().__new__(cls)
            cls.made[number].used, cls.made[number].reserved, cls.made[number].failure = 0, 0, None
            cls.made[number].memory_resource = Pool(cls.made[number])
            cls.made[number].device_id = number
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
    assert config.shmem_size <= max(48 << 10, kernel.allowed.get(_current.device.device_id, 0)), (
        "more was not asked for"
    )
    packed = np.array([np.asarray(value).view(np.uint64)[()] for value in arguments], dtype=np.uint64)
    host_device.launch(kernel.name, config.grid, config.block, config.shmem_size // 8, packed)


class FunctionAttribute(enum.IntEnum):
    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8


def set_kernel_attribute(attribute, value, kernel, device_id):
    assert value <= Properties.max_shared_memory_per_block_optin
    kernel.allowed[device_id] = value
    return (CUresult.CUDA_SUCCESS,)


_pinned = set()


def register(pointer, size, flags):
    _pinned.add(pointer)
    return (CUresult.CUDA_SUCCESS,)


def unregister(pointer):
    _pinned.remove(pointer)
    return (CUresult.CUDA_SUCCESS,)


class ProgramOptions:
    def __init__(self, *, name, arch, std, define_macro):
        assert (name, arch, std) == ("ranksvm", "sm_90", "c++17")
        self.macros = dict(define_macro)


class Kernel:
    """A kernel, which is its own handle; ``allowed``: bytes of shared memory that each device lets it have."""

    def __init__(self, name):
        self.name = name
        self.handle = self
        self.allowed = {}


class Code:
    def __init__(self, variant, part):
        self.variant, self.part = variant, part

    def get_kernel(self, name):
        assert str(part_of(name)) == self.part, f"{name} is in another part"
        return Kernel(f"{self.variant}/{name}")


class Program:
    compiled: ClassVar = []

    def __init__(self, code, code_type, options):
        assert "RANKSVM_KERNEL(loss)" in code
        assert code_type == "c++"
        self.macros = options.macros

    def compile(self, target_type, cache=None):
        assert target_type == "cubin"
        assert cache is None, "a release without such a cache"
        form = "listed" if int(self.macros["RANKSVM_LISTED"]) else "levels"
        storage = "sparse" if int(self.macros["RANKSVM_SPARSE"]) else "dense"
        variant, part = f"{form}_{storage}_{self.macros['RANKSVM_REAL']}", self.macros["RANKSVM_PART"]
        self.compiled.append(f"{variant}, part {part}")
        return Code(variant, part)


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
    _pinned.clear()
    monkeypatch.setattr(Device, "create_stream", _kept(Device.create_stream))
    core = types.ModuleType("cuda.core")
    for name in (Device, LaunchConfig, Program, ProgramOptions, launch):
        setattr(core, name.__name__, name)
    driver = types.ModuleType("cuda.bindings.driver")
    driver.CUresult, driver.CUfunction_attribute = CUresult, FunctionAttribute
    driver.CU_MEMHOSTREGISTER_READ_ONLY = 8
    driver.cuKernelSetAttribute = set_kernel_attribute
    driver.cuMemHostRegister, driver.cuMemHostUnregister = register, unregister
    driver.cuMemcpyHtoDAsync, driver.cuMemcpyDtoHAsync = copy_to_device, copy_to_host
    driver.cuMemGetInfo = lambda: (CUresult.CUDA_SUCCESS, Device.memory - _current.device.reserved, Device.memory)
    bindings, cuda = types.ModuleType("cuda.bindings"), types.ModuleType("cuda")
    nvrtc = types.ModuleType("cuda.bindings.nvrtc")
    nvrtc.nvrtcVersion = lambda: (0, 13, 0)
    bindings.driver, bindings.nvrtc, cuda.core, cuda.bindings = driver, nvrtc, core, bindings
    # an older release, without a cache of programs
    monkeypatch.setitem(sys.modules, "cuda.core.utils", None)
    for module in (cuda, core, bindings, driver, nvrtc):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    return driver


def _kept(create):
    def create_and_keep(device):
        _streams.append(create(device))
        return _streams[-1]

    return create_and_keep
