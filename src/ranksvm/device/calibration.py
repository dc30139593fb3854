"""Measured costs of a device: a round of launches, copies from the host, reads, and visits of pairs."""

import threading
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ranksvm.device.protocol import Argument, Device, Variant

__all__ = ["DeviceCosts", "device_costs"]

# Take the minimum over this many repetitions.
REPETITIONS = 5
# Number of values that each thread reads and number of other documents that it visits: 140 MB and 3e8 visits on a GPU
# of 132 multiprocessors. Then bytes of the copy, and float64 numbers that an evaluation copies there and back.
READ_VALUES, VISITS = 128, 1024
COPIED_BYTES = 8 << 20
ROUND_NUMBERS = 64
# Maximum share of the free memory that is read.
READ_SHARE = 1 / 8

_VARIANT = Variant(listed=False, sparse=False, real="float")
_lock = threading.Lock()
_measured: dict[Device, "DeviceCosts | Exception"] = {}


class DeviceCosts(NamedTuple):
    """Seconds on a device.

    Attributes
    ----------
    round : float
        An evaluation with almost no work: a copy to the device, two launches, and a copy back.
    copy_byte : float
        Copy of a byte of X from the host.
    read_byte : float
        Read of a byte of X on the device.
    visit : float
        A visit of a pair, in float64.
    compilation : float
        The compilation of two small kernels: almost 0 if an earlier process has cached the result.
    """

    round: float
    copy_byte: float
    read_byte: float
    visit: float
    compilation: float


def device_costs(device: Device) -> DeviceCosts:
    """The costs of a device, measured at the first call in a process: this takes some milliseconds, and a compilation.

    Parameters
    ----------
    device : Device
        The device.

    Returns
    -------
    DeviceCosts
        The costs.

    Raises
    ------
    Exception
        What ended the measurement, the first time and from then on.
    """
    with _lock:
        if device not in _measured:
            try:
                _measured[device] = _measure(device)
            except Exception as error:
                _measured[device] = error.with_traceback(None)
        found = _measured[device]
    if isinstance(found, Exception):
        raise found
    return found


def _measure(device: Device) -> DeviceCosts:
    n_threads = device.n_blocks * device.n_threads
    n_values = min(READ_VALUES * n_threads, int(READ_SHARE * device.free_bytes / 4))
    n_visits = min(VISITS, n_threads)
    values = device.empty((n_values,), np.float32)
    scores, sums = (device.empty((n_threads,), np.float64) for _ in range(2))
    vector, block = np.zeros(ROUND_NUMBERS), np.ones(COPIED_BYTES, dtype=np.uint8)
    of_vector, of_block = (device.empty(array.shape, array.dtype) for array in (vector, block))

    def launch(kernel: str, *arguments: Argument) -> None:
        device.launch(_VARIANT, kernel, arguments, n_blocks=device.n_blocks)

    def evaluate() -> None:
        device.copy_in(vector, of_vector)
        launch("read_values", values, 0, scores)
        launch("visit_others", scores, 0, sums)
        device.copy_out(of_vector)

    first = _seconds(device, evaluate, 1)
    of_round = _seconds(device, evaluate)
    # a launch by itself is part of the round
    empty = _seconds(device, lambda: launch("read_values", values, 0, sums))
    read = _seconds(device, lambda: launch("read_values", values, n_values, sums))
    visited = _seconds(device, lambda: launch("visit_others", scores, n_visits, sums))
    copied = _seconds(device, lambda: device.copy_in(block, of_block))
    return DeviceCosts(
        round=of_round,
        copy_byte=copied / block.nbytes,
        read_byte=max(read - empty, 0.0) / (4 * n_values),
        visit=max(visited - empty, 0.0) / (n_visits * n_threads),
        compilation=max(first - of_round, 0.0),
    )


def _seconds(device: Device, work: Callable[[], object], repetitions: int = REPETITIONS) -> float:
    """Seconds that ``work`` takes on a device: the minimum over the repetitions."""
    times = []
    for _ in range(repetitions):
        device.synchronise()
        started = time.perf_counter()
        work()
        device.synchronise()
        times.append(time.perf_counter() - started)
    return min(times)
