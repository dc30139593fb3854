"""Threads that run Python code, and their number; `ranksvm._compiled.threads` has the threads of compiled loops."""

import contextlib
import math
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

import ranksvm._compiled.threads as threads
from ranksvm._util.checks import is_integer
from ranksvm.exceptions import OptionError

Task = TypeVar("Task")
Result = TypeVar("Result")

_CGROUPS = "/sys/fs/cgroup"


def available_cpus() -> int:
    """Number of processors for this thread: those that its process may use, or 1 in a worker of joblib.

    It equals ``joblib.cpu_count()``, which depends on the processors, the affinity, the quota of the control group, and
    the environment variable LOKY_MAX_CPU_COUNT. Importing joblib for it would take as long as importing NumPy.
    """
    return 1 if _in_joblib_worker() else _process_cpus()


def _process_cpus() -> int:
    # os.cpu_count only if necessary: it takes 20 us, as long as scoring a thousand rows
    limits = [len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1]
    if (quota := _quota(_CGROUPS)) is not None:
        limits.append(math.ceil(quota))
    with contextlib.suppress(KeyError, ValueError):
        limits.append(int(os.environ["LOKY_MAX_CPU_COUNT"]))
    return max(1, min(limits))


@cache  # reading it takes as long as scoring a hundred rows, and every parallel call needs it
def _quota(folder: str) -> float | None:
    """Number of processors, maybe a fraction, that the control group (version 2 or 1) allows; None without a limit."""
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

    In a worker of joblib (of a search with ``n_jobs=4``, for instance), "all processors" means one.

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
    if n_threads <= 1 or len(work) <= 1 or threads.in_task():
        return list(map(function, work))
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

    errors = np.geterr()  # of this thread

    def help_out() -> None:
        with np.errstate(**errors):
            take_tasks()

    helpers = _pool.submit(help_out, min(n_threads, len(work)) - 1)
    try:
        threads.set_in_task(True)
        take_tasks()
    finally:
        threads.set_in_task(False)
        # A helper that has not started by now has nothing left to do.
        begun = [helper for helper in helpers if not helper.cancel()]
        wait(begun)
    for helper in begun:
        helper.result()
    return [results[place] for place in range(len(work))]


def even_ranges(start: int, stop: int, n_ranges: int) -> list[tuple[int, int]]:
    """Divide ``start`` to ``stop - 1`` into up to ``n_ranges`` ranges of nearly the same length, none of them empty."""
    size, n_ranges = stop - start, min(n_ranges, stop - start)
    return list(pairwise(start + k * size // n_ranges for k in range(n_ranges + 1))) if n_ranges > 0 else []


def _drain(queue: SimpleQueue) -> None:
    try:
        while True:
            queue.get_nowait()
    except Empty:
        return


def _run(helper: Future, function: Callable[[], None]) -> None:
    """Run a function, unless its helper was canceled."""
    if not helper.set_running_or_notify_cancel():
        return
    try:
        function()
    except BaseException as error:
        helper.set_exception(error)
    else:
        helper.set_result(None)


class _Pool:
    """Threads that help the calling threads: one less than there are processors, or as many as a call needs if more."""

    lock: threading.Lock
    _executor: ThreadPoolExecutor | None
    _size: int

    def __init__(self) -> None:
        self.forget()

    def submit(self, function: Callable[[], None], times: int) -> list[Future]:
        """Run a function up to ``times`` times, side by side."""
        with self.lock:
            wanted = max(times, available_cpus() - 1)
            # A pool that is too small, or was made for far more threads, is replaced; the threads of the old pool end
            # when they have finished its tasks.
            if self._executor is None or not wanted <= self._size <= 2 * wanted:
                if self._executor is not None:
                    self._executor.shutdown(wait=False)
                self._executor = ThreadPoolExecutor(
                    wanted, thread_name_prefix="ranksvm", initializer=partial(threads.set_in_task, True)
                )
                self._size = wanted
            helpers: list[Future] = []
            # At a limit of the system, or when Python is ending, no thread starts, and the caller has fewer helpers.
            # The executor keeps the last one, and a thread may run it later: the caller must cancel it or wait for it.
            with contextlib.suppress(RuntimeError):
                for _ in range(times):
                    helpers.append(Future())
                    self._executor.submit(_run, helpers[-1], function)
            return helpers

    def forget(self) -> None:
        """Begin without threads: those of the parent process do not survive a fork."""
        self.lock, self._executor, self._size = threading.Lock(), None, 0


class _Blas:
    """The BLAS libraries that are loaded: SciPy has one of its own, which may be loaded later than NumPy's.

    Their numbers of threads are settings of the process. The first context that is opened changes them, and the last
    one that is closed restores them. Both happen under the lock, and a fork waits for it. Otherwise a child could begin
    with a lock of a library that another thread of its parent was holding.
    """

    lock: threading.Lock
    _controller: ThreadpoolController | None
    _limiter: Any
    _loaded: int
    _open: int

    def __init__(self) -> None:
        self.lock, self._controller, self._limiter, self._loaded, self._open = threading.Lock(), None, None, 0, 0

    @contextlib.contextmanager
    def one_thread(self) -> Iterator[None]:
        """Context in which every BLAS library uses one thread."""
        with self.lock:
            loaded = len(_BLAS_MODULES & sys.modules.keys())
            if self._controller is None or self._loaded != loaded:
                self._restore()
                self._controller, self._loaded = ThreadpoolController(), loaded
            if self._limiter is None:
                _take_control(self._controller)
                self._limiter = self._controller.limit(limits=1, user_api="blas")
            self._open += 1
        try:
            yield
        finally:
            with self.lock:
                self._open = max(0, self._open - 1)
                if self._open == 0:
                    self._restore()

    def after_fork(self) -> None:
        """Begin with a lock that is free, and without the contexts of the parent's other threads."""
        self.lock, self._open = threading.Lock(), 0

    def _restore(self) -> None:
        if self._limiter is not None:
            _take_control(self._controller)
            self._limiter.restore_original_limits()
            self._limiter = None
            _take_control(self._controller)  # whoever sets them next may be another thread


def _take_control(controller: ThreadpoolController) -> None:
    """Let any thread set the BLAS threads next: threadpoolctl 3.8 ignores all threads but the first that set them."""
    for library in controller.lib_controllers:
        if (clear := getattr(library, "clear_controlling_thread", None)) is not None:
            clear(force=True)


# Modules whose extensions load a BLAS.
_BLAS_MODULES = {"numpy.linalg", "scipy.linalg", "scipy.sparse.linalg"}
_pool = _Pool()
_blas = _Blas()


def one_blas_thread() -> contextlib.AbstractContextManager[None]:
    """Context in which BLAS uses one thread, because its threads would compete with ours."""
    return _blas.one_thread()


# The locks taken for the current fork; none if another thread imported this module after the fork began.
_held: list[threading.Lock] = []


def _before_fork() -> None:
    # a child must not begin with a lock that a thread of its parent holds
    for lock in (_pool.lock, _blas.lock):
        lock.acquire()
        _held.append(lock)


def _after_fork_in_parent() -> None:
    while _held:
        _held.pop().release()


def _after_fork_in_child() -> None:
    _held.clear()
    _pool.forget()
    _blas.after_fork()
    threads.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
