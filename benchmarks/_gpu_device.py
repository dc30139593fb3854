"""The name of the GPU, a device that times its kernels, and a measurement of the speed of its memory."""

import subprocess
import time
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ranksvm.device import Device, DeviceArray, Variant

VECTORS = Variant(listed=False, sparse=False, real="float")
# For the measurement of memory bandwidth: length of each of the three vectors, and number of rounds.
BANDWIDTH_VALUES, ROUNDS = 1 << 27, 10
# Kernels that read X.
READ_X = ("scores", "gather", "accumulate_rows", "fused_loss", "fused_laplacian")
# Kernels that process a range of rows, and the positions of its ends among their arguments.
RANGES = {"scores": (4, 5), "accumulate_rows": (4, 5)}


def gpu_name() -> str:
    """The name of the GPU and its driver, from nvidia-smi."""
    query = ["nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"]
    try:
        return subprocess.run(query, check=True, capture_output=True, text=True).stdout.strip().replace("\n", "; ")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


@dataclass
class Spent:
    """Number of launches of a kernel, their seconds, and a lower bound on the bytes that they read and write."""

    launches: int = 0
    seconds: float = 0.0
    n_bytes: int = 0


@dataclass
class TimedDevice:
    """A device that waits for every launch and times it; see `Device` for the methods.

    Parameters
    ----------
    device : Device
        The device that does the work.
    """

    device: Device
    spent: dict[str, Spent] = field(default_factory=lambda: defaultdict(Spent))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.device, name)

    def launch(self, variant: Variant, kernel: str, arguments: tuple, *, n_blocks: int, shared: int = 0) -> None:
        """Run a kernel, wait for it, and record its seconds and bytes."""
        self.device.synchronise()
        started = time.perf_counter()
        self.device.launch(variant, kernel, arguments, n_blocks=n_blocks, shared=shared)
        self.device.synchronise()
        found = self.spent[kernel]
        found.launches += 1
        found.seconds += time.perf_counter() - started
        found.n_bytes += bytes_of(arguments, RANGES.get(kernel))


def bytes_of(arguments: tuple, ends: tuple[int, int] | None = None) -> int:
    """Bytes of the arrays that a kernel is given; of X, only the bytes of the given rows, or of a range of them."""
    total, previous = 0, None
    for value in arguments:
        if isinstance(value, DeviceArray):
            total += value.nbytes
            if is_features(previous) and value.dtype == np.int32:
                n_rows = value.size if ends is None else arguments[ends[1]] - arguments[ends[0]]
                total += min(0, n_rows * previous.shape[1] * previous.dtype.itemsize - previous.nbytes)
        previous = value
    return total


def is_features(value: Any) -> bool:
    """Whether an argument is the array of features."""
    return isinstance(value, DeviceArray) and len(value.shape) == 2


def bandwidth(device: Device, values: int) -> float:
    """Bytes per second of ``out = a + alpha (b - a)`` in float64, which reads two vectors and writes one."""
    vectors = [device.empty((values,), np.float64) for _ in range(3)]
    for vector in vectors:
        device.launch(VECTORS, "take", (None, None, values, vector), n_blocks=device.n_blocks)
    a, b, out = vectors
    arguments = a, b, 0.5, values, out
    device.launch(VECTORS, "step_between", arguments, n_blocks=device.n_blocks)
    device.synchronise()
    started = time.perf_counter()
    for _ in range(ROUNDS):
        device.launch(VECTORS, "step_between", arguments, n_blocks=device.n_blocks)
    device.synchronise()
    return ROUNDS * 24 * values / (time.perf_counter() - started)


def launch_seconds(device: Device) -> float:
    """Seconds to launch a kernel with almost no work and to wait for it; every time in a profile includes this."""
    out = device.empty((8,), np.float64)
    times = []
    for _ in range(20 * ROUNDS):
        started = time.perf_counter()
        device.launch(VECTORS, "take", (None, None, 8, out), n_blocks=1)
        device.synchronise()
        times.append(time.perf_counter() - started)
    return float(np.median(times))
