"""Threads: compiled loops release the GIL and take a range of the work; this runs the ranges."""

import contextlib
import math
import os
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

from ranksvm._checks import is_integer
from ranksvm.exceptions import OptionError

Task = TypeVar("Task")
Result = TypeVar("Result")

_CGROUPS = "/sys/fs/cgroup"

_blas: ThreadpoolController | None = None
_pools: dict[tuple[int, int], ThreadPoolExecutor] = {}
_local = threading.local()


def available_cpus() -> int:
    """Number of processors for this thread: all that its process may use, but one in a worker of joblib.

    The number is that of ``joblib.cpu_count()``: processors, affinity, quota of the control group, and the environment
    variable LOKY_MAX_CPU_COUNT. Importing joblib for it would take as long as importing NumPy.
    """
    return 1 if _in_joblib_worker() else _process_cpus()


def _process_cpus() -> int:
    limits = [os.cpu_count() or 1]
    if hasattr(os, "sched_getaffinity"):
        limits.append(len(os.sched_getaffinity(0)))
    if (quota := _quota(_CGROUPS)) is not None:
        limits.append(math.ceil(quota))
    with contextlib.suppress(KeyError, ValueError):
        limits.append(int(os.environ["LOKY_MAX_CPU_COUNT"]))
    return max(1, min(limits))


def _quota(folder: str) -> float | None:
    """Processors' worth of time that the control group (version 2, or 1) allows; None without a limit."""
    for names in (("cpu.max",), ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us")):
        try:
            words = " ".join(Path(folder, name).read_text() for name in names).split()
            quota, period = (float(word) for word in words)
        except (OSError, ValueError):  # no such file, or "max"
            continue
        if quota > 0 and period > 0:
            return quota / period
    return None


def _in_joblib_worker() -> bool:
    """Whether joblib runs this thread as one of several workers, which share the processors already."""
    joblib = sys.modules.get("joblib.parallel")
    if joblib is None:
        return False
    backend, _ = joblib.get_active_backend()
    return (getattr(backend, "nesting_level", 0) or 0) > 0


def effective_n_jobs(n_jobs: int | None) -> int:
    """Number of threads for ``n_jobs``: None and -1 mean all processors, -2 all but one, ...

    In a worker of joblib, such as those of a search with ``n_jobs=4``, all processors are one.

    Raises
    ------
    OptionError
        When ``n_jobs`` is 0 or not an integer.
    """
    if n_jobs is None:
        return available_cpus()
    if not is_integer(n_jobs) or n_jobs == 0:
        raise OptionError(f"n_jobs must be None or an integer other than 0, got {n_jobs!r}.")
    n_jobs = int(n_jobs)
    return n_jobs if n_jobs > 0 else max(1, available_cpus() + 1 + n_jobs)


def parallel_map(function: Callable[[Task], Result], tasks: Iterable[Task], n_threads: int) -> list[Result]:
    """``[function(task) for task in tasks]``, on up to ``n_threads`` threads, results in order.

    The calling thread takes tasks like the others. Within a task of another call everything runs in the task's own
    thread: the pool's threads are busy, and tasks that wait for tasks of the same pool would wait forever.
    """
    work: Sequence[Task] = tasks if isinstance(tasks, Sequence) else list(tasks)
    if n_threads <= 1 or len(work) <= 1 or getattr(_local, "worker", False):
        return [function(task) for task in work]
    results: dict[int, Result] = {}
    left = SimpleQueue[int]()
    for place in range(len(work)):
        left.put(place)

    def take_tasks() -> None:
        try:
            while True:
                place = left.get_nowait()
                results[place] = function(work[place])
        except Empty:
            return
        except BaseException:
            _drain(left)
            raise

    helpers = [_pool(n_threads).submit(take_tasks) for _ in range(min(n_threads, len(work)) - 1)]
    _local.worker = True
    try:
        take_tasks()
    finally:
        _local.worker = False
        # A helper that has not started by now has nothing left to do.
        begun = [helper for helper in helpers if not helper.cancel()]
        wait(begun)
    for helper in begun:
        helper.result()
    return [results[place] for place in range(len(work))]


def _drain(queue: SimpleQueue) -> None:
    try:
        while True:
            queue.get_nowait()
    except Empty:
        return


def one_blas_thread() -> Any:
    """Context in which BLAS uses one thread, because its threads would compete with ours."""
    global _blas
    if _blas is None:
        _blas = ThreadpoolController()
    return _blas.limit(limits=1, user_api="blas")


def _pool(n_threads: int) -> ThreadPoolExecutor:
    # Keyed by process: threads do not survive a fork, so a child creates its own pool.
    key = (os.getpid(), n_threads)
    pool = _pools.get(key)
    if pool is None:
        pool = _pools[key] = ThreadPoolExecutor(n_threads, thread_name_prefix="ranksvm", initializer=_mark_worker)
    return pool


def _mark_worker() -> None:
    _local.worker = True
