"""The entry points of the stand-in for the CUDA driver, in which device memory is memory of the host.

A launch runs a host version of the kernel, which the C++ compiler made from the same source. The machine code that
NVRTC compiled identifies the kernel. A stream is a queue, and the mode says when its work runs: at once; as late as
possible, when the host waits for it; or late, except for the stream of copies (the second stream of each device), which
runs as early as possible. The results must be the same in all modes.

The stand-in refuses what a driver refuses. It also records faults that a driver does not notice, and then the test
fails: a host array that is changed or freed before a copy has read it, and a write past the end of a block of memory.
Memory holds NaN until it is written, so a result shows if it is read too early.
"""

import atexit
import ctypes
import functools
import hashlib
import itertools
import os
import shutil
import subprocess
import sys
import threading
import traceback
import zlib
from collections import Counter, deque
from pathlib import Path

import numpy as np

from ranksvm.device.cuda import part_of

MODES = ("at once", "late", "copies early")
# number of guard bytes before and after each block of memory, and their value
GUARD, FILLED = 64, 0xA5
# number of freed blocks that are kept, so that a late read finds NaN and not other data
QUARANTINE = 256

SUCCESS, INVALID_VALUE, OUT_OF_MEMORY, NO_DEVICE, INVALID_DEVICE = 0, 1, 2, 100, 101
INVALID_CONTEXT, NO_BINARY, INVALID_SOURCE, INVALID_HANDLE, NOT_FOUND, NOT_READY = 201, 209, 300, 400, 500, 600
ILLEGAL_ADDRESS, UNKNOWN = 700, 999

_int, _uint, _size, _u64, _pointer = ctypes.c_int, ctypes.c_uint, ctypes.c_size_t, ctypes.c_uint64, ctypes.c_void_p
_to = ctypes.POINTER
_entries = []


def entry(*types):
    """Make a method of `Driver` an entry point with these argument types; it returns a status, or None for success."""

    def noted(method):
        _entries.append((method.__name__, types))
        return method

    return noted


class RefusedError(Exception):
    """Raised in an entry point, which then returns this status."""

    def __init__(self, status):
        super().__init__(status)
        self.status = status


class Stream:
    """A queue of work that has not run yet."""

    def __init__(self, device, number):
        self.device = device
        self.copies = number % 2 == 1
        self.work = deque()


class Mark:
    """The position of an event in a stream."""

    def __init__(self, stream):
        self.stream = stream
        self.done = False


class Block:
    """A block of device memory between guard bytes; it holds NaN at first, and again after it was freed."""

    def __init__(self, device, size):
        self.device, self.size = device, size
        self.memory = np.full(size + 2 * GUARD, FILLED, dtype=np.uint8)
        self.first = self.memory.ctypes.data + GUARD
        self.fill()

    def fill(self):
        inner = self.memory[GUARD : GUARD + self.size]
        inner[: self.size // 8 * 8].view(np.float64)[:] = np.nan

    def intact(self):
        return bool((self.memory[:GUARD] == FILLED).all() and (self.memory[GUARD + self.size :] == FILLED).all())


class Kernel:
    """A loaded kernel; ``allowed`` maps a device to the bytes of shared memory that the kernel may use there."""

    def __init__(self, name):
        self.name = name
        self.allowed = {}


class LaunchConfig(ctypes.Structure):
    """The structure CUlaunchConfig of the CUDA driver."""

    _fields_ = (
        *((f"{kind}_{axis}", _uint) for kind in ("grid", "block") for axis in "xyz"),
        ("shared", _uint),
        ("stream", _pointer),
        ("attributes", _pointer),
        ("n_attributes", _uint),
    )


class Driver:
    """The state of the stand-in. Tests may set its public attributes.

    Attributes
    ----------
    active : bool
        Whether the driver reports GPUs; if not, it reports that there is none.
    n_devices, memory : int
        Number of GPUs, and bytes of memory of each.
    mode : str
        One of MODES.
    failures : dict of str to int
        Name of an entry point -> the status that it returns.
    faults : list of str
        Errors of the caller that a real driver would not report.
    calls : Counter
        Number of calls by name of the entry point.
    compiled : list of str
        Variants and parts that NVRTC has compiled.
    launches : list of (str, int, int)
        Variant and name of each kernel, its number of blocks, and bytes of shared memory of each.
    foreign : bool
        Whether memory that the stand-in did not allocate is accepted: arrays of other libraries.
    """

    def __init__(self):
        from cuda.bindings import driver

        self._enum = driver.CUdevice_attribute
        self._handles = itertools.count(0x10000, 16)
        self._lock = threading.RLock()
        self._thread = threading.local()
        self._codes, self._libraries, self._kernels = {}, {}, {}
        self._streams, self._events, self._blocks = {}, {}, {}
        self._quarantine = deque(maxlen=QUARANTINE)
        self._memory = os.open("/proc/self/mem", os.O_RDONLY)
        self.pinned = {}
        self.active = False
        self.reset()

    def reset(self):
        """Restore the settings with which every test begins."""
        self.n_devices, self.memory, self.mode, self.driver_version = 4, 1 << 30, MODES[0], 13000
        self.version, self.failures, self.faults, self.calls, self.compiled = (9, 0), {}, [], Counter(), []
        self.launches, self.foreign, self.cache_bytes = [], False, 50 << 20
        # bytes in use and bytes reserved, by device; reserved bytes never decrease, as the pool returns no memory
        live = Counter({d: sum(b.size for b in self._blocks_now() if b.device == d) for d in range(self.n_devices)})
        self.used, self.reserved = live, Counter(live)

    @property
    def context(self):
        """Number of the current device of this thread, or None."""
        stack = self._stack()
        return stack[-1] if stack else None

    @context.setter
    def context(self, device):
        self._stack()[:] = [] if device is None else [device]

    def noting(self, compile_kernels):
        """Wrap `cuda.compile_kernels` to remember which kernels each compiled code contains."""

        def noted(variant, part, arch):
            code = compile_kernels(variant, part, arch)
            self.note(code, variant, part, arch)
            return code

        return noted

    def note(self, code, variant, part, arch):
        """Remember which kernels a piece of machine code contains."""
        raw = bytes(code.code)
        self._codes[hashlib.sha256(raw).digest()] = str(variant), part, arch, raw
        self.compiled.append(f"{variant}, part {part}")

    # -- private methods ---------------------------------------------------------------------------------------------

    def _stack(self):
        if not hasattr(self._thread, "stack"):
            self._thread.stack = []
        return self._thread.stack

    def _device(self):
        if self.context is None:
            raise RefusedError(INVALID_CONTEXT)
        return self.context

    def _new(self, kind, value):
        handle = next(self._handles)
        kind[handle] = value
        return handle

    def _stream(self, handle):
        """The stream of a handle; it must belong to the current device."""
        stream = self._streams.get(handle or 0)
        if stream is None or stream.device != self._device():
            raise RefusedError(INVALID_HANDLE)
        return stream

    def _fault(self, what):
        """Record a fault and discard all queued work, as a driver does after an illegal address."""
        self.faults.append(what)
        for stream in list(self._streams.values()):
            stream.work.clear()
        raise RefusedError(ILLEGAL_ADDRESS)

    def _blocks_now(self):
        """A copy of the list of blocks, because garbage collection may free some at any time."""
        return list(self._blocks.values())

    def _inside(self, first, size):
        """Check that an address range lies in one block of memory."""
        blocks = self._blocks_now()
        if not self.foreign and not any(b.first <= first and first + size <= b.first + b.size for b in blocks):
            self._fault(f"{size} bytes at {first:#x} are not memory of a device")

    def _add(self, stream, work):
        """Add work to a stream: a function, a `Mark` to record, or a tuple with a `Mark` to wait for."""
        stream.work.append(work)
        if self.mode == MODES[0]:
            self._run(stream)
        elif self.mode == MODES[2]:
            self._run_copies()

    def _run(self, stream, until=None):
        """Run all work of a stream, or the work before a mark, and the work of other streams that it waits for."""
        while stream.work and not (until is not None and until.done):
            work = stream.work.popleft()
            if isinstance(work, tuple):
                (mark,) = work
                if not mark.done:
                    self._run(mark.stream, mark)
            elif isinstance(work, Mark):
                work.done = True
                self._run_copies()
            else:
                work()

    def _run_copies(self):
        """In mode "copies early", run the work of streams of copies up to the next mark that they must wait for."""
        if self.mode != MODES[2]:
            return
        for stream in list(self._streams.values()):
            while stream.copies and stream.work:
                first = stream.work[0]
                if isinstance(first, tuple) and not first[0].done:
                    break
                stream.work.popleft()
                if isinstance(first, Mark):
                    first.done = True
                elif not isinstance(first, tuple):
                    first()

    def _read(self, first, size):
        """Read bytes of the host; the result is shorter if the memory was freed."""
        try:
            return os.pread(self._memory, size, first)
        except OSError:
            return b""

    # -- devices and contexts ----------------------------------------------------------------------------------------

    @entry(_uint)
    def cuInit(self, flags):
        return SUCCESS if self.active and self.n_devices else NO_DEVICE

    @entry(_to(_int))
    def cuDriverGetVersion(self, out):
        out[0] = self.driver_version

    @entry(_to(_int))
    def cuDeviceGetCount(self, out):
        out[0] = self.n_devices

    @entry(_to(_int), _int)
    def cuDeviceGet(self, out, device):
        if device >= self.n_devices:
            raise RefusedError(INVALID_DEVICE)
        out[0] = device

    @entry(_pointer, _int, _int)
    def cuDeviceGetName(self, out, size, device):
        ctypes.memmove(out, b"stand-in\0", 9)

    @entry(_to(_int), _int, _int)
    def cuDeviceGetAttribute(self, out, attribute, device):
        name = self._enum(attribute).name.removeprefix("CU_DEVICE_ATTRIBUTE_")
        values = {
            "COMPUTE_CAPABILITY_MAJOR": self.version[0],
            "COMPUTE_CAPABILITY_MINOR": self.version[1],
            "MULTIPROCESSOR_COUNT": 2,
            "MAX_THREADS_PER_BLOCK": 1024,
            "WARP_SIZE": 32,
            "MAX_SHARED_MEMORY_PER_BLOCK": 48 << 10,
            "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": 227 << 10,
            "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR": 228 << 10,
            "RESERVED_SHARED_MEMORY_PER_BLOCK": 1 << 10,
            "L2_CACHE_SIZE": self.cache_bytes,
        }
        out[0] = values.get(name, 1)

    @entry(_to(_pointer), _int)
    def cuDevicePrimaryCtxRetain(self, out, device):
        out[0] = 0x100 + device

    @entry(_int)
    def cuDevicePrimaryCtxRelease(self, device):
        pass

    @entry(_pointer)
    def cuCtxSetCurrent(self, context):
        stack = self._stack()
        del stack[-1:]
        if context:
            stack.append(context - 0x100)

    @entry(_to(_pointer))
    def cuCtxGetCurrent(self, out):
        out[0] = None if self.context is None else 0x100 + self.context

    @entry(_pointer)
    def cuCtxPushCurrent(self, context):
        self._stack().append(context - 0x100)

    @entry(_to(_pointer))
    def cuCtxPopCurrent(self, out):
        out[0] = 0x100 + self._device()
        self._stack().pop()

    @entry(_to(_int))
    def cuCtxGetDevice(self, out):
        out[0] = self._device()

    @entry(_to(_int), _to(_int))
    def cuCtxGetStreamPriorityRange(self, least, greatest):
        least[0], greatest[0] = 0, -5

    @entry()
    def cuCtxSynchronize(self):
        for stream in list(self._streams.values()):
            if stream.device == self._device():
                self._run(stream)

    # -- streams and events ------------------------------------------------------------------------------------------

    @entry(_to(_pointer), _uint, _int)
    def cuStreamCreateWithPriority(self, out, flags, priority):
        device = self._device()
        number = sum(stream.device == device for stream in list(self._streams.values()))
        out[0] = self._new(self._streams, Stream(device, number))

    @entry(_pointer)
    def cuStreamDestroy(self, handle):
        self._run(self._streams.pop(handle))

    @entry(_pointer)
    def cuStreamSynchronize(self, handle):
        self._run(self._stream(handle))

    @entry(_pointer, _pointer, _uint)
    def cuStreamWaitEvent(self, handle, event, flags):
        mark = self._events[event]
        if mark is not None:
            self._add(self._stream(handle), (mark,))

    @entry(_pointer, _to(_int))
    def cuStreamIsCapturing(self, handle, out):
        out[0] = 0

    @entry(_to(_pointer), _uint)
    def cuEventCreate(self, out, flags):
        self._device()
        out[0] = self._new(self._events, None)

    @entry(_pointer)
    def cuEventDestroy(self, event):
        del self._events[event]

    @entry(_pointer, _pointer)
    def cuEventRecord(self, event, handle):
        stream = self._stream(handle)
        self._events[event] = mark = Mark(stream)
        self._add(stream, mark)

    @entry(_pointer)
    def cuEventSynchronize(self, event):
        mark = self._events[event]
        if mark is not None:
            self._run(mark.stream, mark)

    @entry(_pointer)
    def cuEventQuery(self, event):
        mark = self._events[event]
        return SUCCESS if mark is None or mark.done else NOT_READY

    # -- memory ------------------------------------------------------------------------------------------------------

    @entry(_to(_size), _to(_size))
    def cuMemGetInfo(self, free, total):
        free[0], total[0] = self.memory - self.reserved[self._device()], self.memory

    @entry(_to(_pointer), _int)
    def cuDeviceGetMemPool(self, out, device):
        out[0] = 0x200 + device

    @entry(_to(_pointer), _int)
    def cuDeviceGetDefaultMemPool(self, out, device):
        out[0] = 0x200 + device

    @entry(_pointer, _int, _to(_u64))
    def cuMemPoolGetAttribute(self, pool, attribute, out):
        # reserved memory, and memory in use
        out[0] = {5: self.reserved, 7: self.used}.get(attribute, Counter())[pool - 0x200]

    @entry(_pointer, _int, _pointer)
    def cuMemPoolSetAttribute(self, pool, attribute, value):
        pass

    @entry(_to(_u64), _size, _pointer, _pointer)
    def cuMemAllocFromPoolAsync(self, out, size, pool, handle):
        stream = self._stream(handle)
        device = pool - 0x200
        if stream.device != device:
            raise RefusedError(INVALID_VALUE)
        if self.used[device] + size > self.memory:
            raise RefusedError(OUT_OF_MEMORY)
        block = Block(device, size)
        self._blocks[block.first] = block
        self.used[device] += size
        self.reserved[device] = max(self.reserved[device], self.used[device])
        out[0] = block.first

    @entry(_u64, _pointer)
    def cuMemFreeAsync(self, first, handle):
        # accepted whatever the current context is, because destructors run in any thread
        block = self._blocks.pop(first)
        self.used[block.device] -= block.size
        self._add(self._streams[handle], functools.partial(self._freed, block))

    def _freed(self, block):
        if not block.intact():
            self._fault(f"something was written beyond {block.size} bytes of memory")
        block.fill()
        self._quarantine.append(block)

    @entry(_u64, _pointer, _size, _pointer)
    def cuMemcpyHtoDAsync(self, there, here, size, handle):
        stream = self._stream(handle)
        self._inside(there, size)
        checksum = zlib.crc32(ctypes.string_at(here, size))

        def copy():
            data = self._read(here, size)
            if len(data) != size or zlib.crc32(data) != checksum:
                self._fault(f"{size} bytes of the host were changed or freed before a copy had read them")
            ctypes.memmove(there, data, size)

        self._add(stream, copy)

    @entry(_pointer, _u64, _size, _pointer)
    def cuMemcpyDtoHAsync(self, here, there, size, handle):
        stream = self._stream(handle)
        self._inside(there, size)
        self._add(stream, lambda: ctypes.memmove(here, there, size))

    @entry(_pointer, _size, _uint)
    def cuMemHostRegister(self, first, size, flags):
        self._device()
        self.pinned[first] = size, flags

    @entry(_pointer)
    def cuMemHostUnregister(self, first):
        self._device()
        del self.pinned[first]

    # -- kernels -----------------------------------------------------------------------------------------------------

    @entry(_to(_pointer), _pointer, _pointer, _pointer, _uint, _pointer, _pointer, _uint)
    def cuLibraryLoadData(self, out, code, *options):
        header = np.frombuffer(ctypes.string_at(code, 64), dtype=np.uint8)
        # the length is unknown: an ELF file ends with its table of sections or its table of segments
        sections, segments = (int(header[at : at + 8].view(np.uint64)[0]) for at in (0x28, 0x20))
        sizes = header[0x36:0x3E].view(np.uint16).astype(int)
        size = max(sections + sizes[2] * sizes[3], segments + sizes[0] * sizes[1])
        known = self._codes.get(hashlib.sha256(ctypes.string_at(code, size)).digest())
        if known is None:
            raise RefusedError(INVALID_SOURCE)
        if known[2] != "sm_{}{}".format(*self.version):
            raise RefusedError(NO_BINARY)
        out[0] = self._new(self._libraries, known)

    @entry(_pointer)
    def cuLibraryUnload(self, library):
        del self._libraries[library]

    @entry(_to(_pointer), _pointer, ctypes.c_char_p)
    def cuLibraryGetKernel(self, out, library, name):
        variant, part, _, raw = self._libraries[library]
        if b".text." + name + b"\0" not in raw or part_of(name.decode()) != part:
            raise RefusedError(NOT_FOUND)
        out[0] = self._new(self._kernels, Kernel(f"{variant}/{name.decode()}"))

    @entry(_int, _int, _pointer, _int)
    def cuKernelSetAttribute(self, attribute, value, kernel, device):
        if value > 227 << 10:
            raise RefusedError(INVALID_VALUE)
        self._kernels[kernel].allowed[device] = value

    @entry(_to(LaunchConfig), _pointer, _to(_pointer), _pointer)
    def cuLaunchKernelEx(self, config, kernel, arguments, extra):
        from ranksvm._compiled import host_device

        c, kernel = config[0], self._kernels[kernel]
        stream = self._stream(c.stream)
        sizes = c.grid_x, c.block_x
        if min(sizes) < 1 or c.block_x > 1024 or (c.grid_y, c.grid_z, c.block_y, c.block_z) != (1, 1, 1, 1):
            raise RefusedError(INVALID_VALUE)
        if c.shared > max(48 << 10, kernel.allowed.get(stream.device, 0)):
            raise RefusedError(INVALID_VALUE)
        n_arguments = host_device.n_arguments(kernel.name)
        words = [ctypes.cast(arguments[k], _to(_u64))[0] for k in range(n_arguments)]
        packed = np.array(words, dtype=np.uint64)
        self.launches.append((kernel.name, c.grid_x, c.shared))
        shared = c.shared // 8
        self._add(stream, lambda: host_device.launch(kernel.name, *sizes, shared, packed))

    # -- errors ------------------------------------------------------------------------------------------------------

    @entry(_int, _to(ctypes.c_char_p))
    def cuGetErrorName(self, status, out):
        out[0] = _name(status)

    @entry(_int, _to(ctypes.c_char_p))
    def cuGetErrorString(self, status, out):
        out[0] = b"a sentence of the driver"


@functools.cache
def _name(status):
    from cuda.bindings.driver import CUresult

    return CUresult(status).name.encode()


def _served(driver, name, types):
    """An entry point as a C function."""
    method = getattr(driver, name)

    def call(*arguments):
        with driver._lock:
            driver.calls[name] += 1
            if name in driver.failures:
                return driver.failures[name]
            try:
                return method(*arguments) or SUCCESS
            except RefusedError as failure:
                return failure.status
            except Exception:
                driver.faults.append(traceback.format_exc())
                return UNKNOWN

    return ctypes.CFUNCTYPE(_int, *types)(call)


def missing():
    """The reason why the stand-in cannot be used here, as a sentence; None if it can."""
    if not sys.platform.startswith("linux"):
        return "The stand-in for the CUDA driver needs Linux."
    if os.environ.get("RANKSVM_TEST_CUDA"):
        return "RANKSVM_TEST_CUDA asks for tests on a real GPU, not on the stand-in."
    if shutil.which("cc") is None:
        return "There is no C compiler for the stand-in for the CUDA driver."
    maps = Path("/proc/self/maps").read_text(encoding="utf-8")
    if any("/libcuda.so" in line for line in maps.splitlines()):
        return "The driver of this machine is loaded in this process: no other can be."
    try:
        import cuda.core  # noqa: F401
        from cuda.bindings import nvrtc

        nvrtc.nvrtcVersion()
    except (ImportError, RuntimeError):
        return 'cuda-core, cuda-bindings or NVRTC is not installed: pip install "ranksvm[cuda]".'
    return None


@functools.cache
def stand_in(folder):
    """The stand-in of this process; the first call compiles and loads it, and must come before the driver is loaded.

    Parameters
    ----------
    folder : path
        Folder to which the library is written.

    Returns
    -------
    Driver
        The driver.
    """
    path = Path(folder, f"libcuda-{os.getpid()}.so.1")
    source = Path(__file__).with_name("libcuda.c")
    # after the library is loaded, the dynamic linker finds it by this name, whatever its folder
    command = ["cc", "-shared", "-fPIC", "-O1", "-Wl,-soname,libcuda.so.1", "-o", path, source]
    subprocess.run(command, check=True)
    library = ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
    driver = Driver()
    driver._functions = []
    for name, types in _entries:
        function = _served(driver, name, types)
        driver._functions.append(function)
        assert library.serve(name.encode(), function) == 0
    atexit.register(library.close_driver)
    return driver


def active_stand_in(folder):
    """Load the stand-in and let it report GPUs; for processes other than the test process."""
    from ranksvm.device import cuda

    driver = stand_in(folder)
    cuda.compile_kernels, driver.active = driver.noting(cuda.compile_kernels), True
    return driver
