"""Measure how long a device takes for small launches, copies from the host, reads of X, and losses of pairs."""

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ranksvm._util.threads import available_cpus
from ranksvm.device.names import device_names, open_device
from ranksvm.device.protocol import Argument, Device, Variant
from ranksvm.exceptions import OptionError

__all__ = ["DeviceCosts", "calibrate_device", "calibrated"]

# Take the minimum over this many repetitions.
REPETITIONS = 5
# READ_VALUES: number of values that each thread reads. VISITS: number of pairs of which each thread evaluates the
# loss: its own document with this many others. On a GPU of 132 multiprocessors, all threads together read 140 MB and
# make 3e8 visits.
READ_VALUES, VISITS = 128, 1024
# COPIED_BYTES: number of bytes in the timed copy from the host (32 MiB were copied at half the speed of 1 GB).
# ROUND_NUMBERS: number of float64 values that the timed round copies to the device and back.
COPIED_BYTES = 128 << 20
ROUND_NUMBERS = 64
# The values that are read take at most this share of the free memory.
READ_SHARE = 1 / 8

_VARIANT = Variant(listed=False, sparse=False, real="float")
# The last device that `calibrate_device` measured, and its costs.
_calibrated: "list[tuple[Device, DeviceCosts]]" = []


class DeviceCosts(NamedTuple):
    """Measured times on a device, in seconds.

    Attributes
    ----------
    round : float
        An evaluation with almost no work: a copy to the device, two launches, and a copy back.
    copy_byte : float
        Copy of a byte of X from the host.
    read_byte : float
        Read of a byte of X on the device.
    visit : float
        A visit of a pair: the evaluation of its loss, in float64.
    compilation : float
        The compilation of two small kernels: almost 0 if an earlier process has cached the result.

    Examples
    --------
    >>> import ranksvm
    >>> ranksvm.calibrate_device("cuda").copy_byte < 1e-9  # doctest: +SKIP
    True
    """

    round: float
    copy_byte: float
    read_byte: float
    visit: float
    compilation: float


def calibrate_device(device: str = "cuda") -> DeviceCosts:
    """Measure what work costs on a GPU. From then on, ``device="auto"`` may choose this GPU.

    This takes about 0.1 s, plus the time to compile two small kernels. The result holds for this process, until
    the next call.

    Parameters
    ----------
    device : str, default "cuda"
        Name of the GPU, such as "cuda:1".

    Returns
    -------
    DeviceCosts
        The costs.

    Raises
    ------
    OptionError
        When ``device`` is not the name of one GPU.
    MissingDependencyError
        When the packages of the extra ``cuda`` are not installed.
    DeviceError
        When there is no such GPU, or it fails.

    Examples
    --------
    >>> import ranksvm
    >>> ranksvm.calibrate_device("cuda")  # doctest: +SKIP
    >>> ranksvm.RankSVM(device="auto")
    RankSVM(device='auto')
    """
    named = device_names(device) if isinstance(device, str) else ()
    if not named:
        raise OptionError(f"device must name one GPU, such as 'cuda' or 'cuda:1', got {device!r}")
    gpu = open_device(named[0])
    costs = _measure(gpu)
    _calibrated[:] = [(gpu, costs)]
    return costs


def calibrated() -> tuple[Device, DeviceCosts] | None:
    """The device that `calibrate_device` measured last, and its costs; None before the first call.

    Returns
    -------
    tuple of Device and DeviceCosts, or None
        The device and its costs.
    """
    return _calibrated[0] if _calibrated else None


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
    # the cost of an empty launch is part of the round, and is subtracted below
    empty = _seconds(device, lambda: launch("read_values", values, 0, sums))
    read = _seconds(device, lambda: launch("read_values", values, n_values, sums))
    visited = _seconds(device, lambda: launch("visit_others", scores, n_visits, sums))
    copied = _seconds(device, lambda: device.copy_in(block, of_block, available_cpus()))
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
