"""Threads: order, errors, nesting, and how many."""

import concurrent.futures
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest.mock import Mock

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import ranksvm
from ranksvm._util import threads as parallel
from ranksvm._util.lazy import cached_property
from ranksvm._util.threads import available_cpus, effective_n_jobs, even_ranges, one_blas_thread, parallel_map
from ranksvm.exceptions import OptionError


@pytest.mark.parametrize("n_threads", [1, 2, 7])
def test_results_come_in_the_order_of_the_tasks(n_threads):
    assert parallel_map(lambda x: x * x, range(20), n_threads) == [x * x for x in range(20)]
    assert parallel_map(lambda x: x, iter([]), n_threads) == []


@pytest.mark.parametrize(
    ("start", "stop", "n_ranges", "lengths"),
    [(0, 10, 3, [3, 3, 4]), (5, 9, 2, [2, 2]), (2, 5, 8, [1, 1, 1]), (4, 4, 3, []), (0, 7, 1, [7])],
)
def test_even_ranges(start, stop, n_ranges, lengths):
    ranges = even_ranges(start, stop, n_ranges)
    assert sorted(last - first for first, last in ranges) == lengths
    assert [i for first, last in ranges for i in range(first, last)] == list(range(start, stop))


def test_errors_of_a_task_are_raised():
    with pytest.raises(ZeroDivisionError):
        parallel_map(lambda x: 1 // x, [1, 0, 2], 2)


@pytest.mark.parametrize("reason", ["a limit of the system", "Python is ending"])
def test_the_caller_does_all_tasks_where_no_thread_can_start(monkeypatch, reason):
    monkeypatch.setattr(parallel, "_pool", parallel._Pool())
    if reason == "Python is ending":
        monkeypatch.setattr(concurrent.futures.thread, "_shutdown", True)
    else:
        monkeypatch.setattr(threading.Thread, "start", Mock(side_effect=RuntimeError("can't start new thread")))
    assert parallel_map(lambda x: x * x, range(20), 4) == [x * x for x in range(20)]


def test_a_thread_that_helps_later_is_waited_for(monkeypatch):
    """No thread starts for a helper, but a thread that another call has used takes it."""
    monkeypatch.setattr(parallel, "_pool", parallel._Pool())
    monkeypatch.setattr(parallel, "available_cpus", lambda: 4)
    busy, free, taken = threading.Event(), threading.Event(), threading.Event()

    def in_pool():
        return threading.current_thread().name.startswith("ranksvm")

    def other(_):
        busy.set() if in_pool() else busy.wait()
        free.wait()

    def task(number):
        if in_pool():
            taken.set()
            time.sleep(0.2)
        else:
            free.set()
            taken.wait(20)
        return number

    caller = threading.Thread(target=parallel_map, args=(other, range(2), 2))
    caller.start()
    busy.wait()
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", Mock(side_effect=RuntimeError("can't start new thread")))
        assert parallel_map(task, range(2), 2) == [0, 1]
    caller.join()


def test_calls_within_tasks_do_not_wait_for_each_other():
    """Both threads of the pool waited for tasks that the same pool was to run: for ever."""
    found = []

    def outer(x):
        return sum(parallel_map(lambda y: x * y, range(4), 2))

    thread = threading.Thread(target=lambda: found.append(parallel_map(outer, range(4), 2)), daemon=True)
    thread.start()
    thread.join(20)
    assert found == [[0, 6, 12, 18]]


def test_n_jobs(monkeypatch):
    monkeypatch.setattr(parallel, "available_cpus", lambda: 4)
    assert [effective_n_jobs(n) for n in (None, 1, 3, -1, -2, -9)] == [4, 1, 3, 4, 3, 1]
    for bad in (0, 1.5, True, "2"):
        with pytest.raises(OptionError, match="n_jobs must be"):
            effective_n_jobs(bad)
    assert available_cpus() >= 1


def threads_of_pool():
    return sum(thread.name.startswith("ranksvm") for thread in threading.enumerate())


def test_one_pool_serves_any_number_of_threads():
    """1,087 values of n_jobs left 1,087 threads."""
    for n_threads in [*range(2, 40), 200, *range(40, 2, -1)]:
        assert parallel_map(lambda x: x, range(300), n_threads) == list(range(300))
    wait_until(lambda: threads_of_pool() <= 2 * max(2, available_cpus() - 1))


def test_a_pool_is_replaced_while_others_use_it():
    def call(n_threads):
        for _ in range(200):
            assert parallel_map(lambda x: x + 1, range(20), n_threads) == list(range(1, 21))

    failed = []
    threads = [threading.Thread(target=guarded(call, failed), args=(n,)) for n in (2, 3, 9, 30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failed


def guarded(function, failed):
    def run(*arguments):
        try:
            function(*arguments)
        except BaseException as error:
            failed.append(error)
            raise

    return run


def wait_until(condition):
    until = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_one_blas_thread_also_where_a_library_is_loaded_later():
    code = """
from ranksvm._util.threads import one_blas_thread
import numpy.linalg
with one_blas_thread():
    pass
import scipy.linalg
from threadpoolctl import ThreadpoolController
with one_blas_thread():
    print([library["num_threads"] for library in ThreadpoolController().info() if library["user_api"] == "blas"])
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(found.stdout.strip()) <= set("[1, ]")


def test_one_blas_thread_in_any_thread():
    """Threadpoolctl ignores threads that set numbers after another one: a path over a file took 13 times as long."""

    def threads():
        return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}

    def within():
        with one_blas_thread():
            return threads()

    with threadpool_limits(2, user_api="blas"):
        before = threads()
        assert within() == {1}
        with ThreadPoolExecutor(1) as other:
            assert other.submit(within).result() == {1}
            assert threads() == before
            context = one_blas_thread()
            other.submit(context.__enter__).result()
            assert threads() == {1}
            context.__exit__(None, None, None)  # not the thread that set them
        assert threads() == before


def test_the_last_context_of_one_blas_thread_restores_the_number_of_threads():
    """Contexts of several threads may end in any order."""

    def n_threads():
        return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]

    with threadpool_limits(2, user_api="blas"):
        before = n_threads()  # a library may have one thread at most
        first, second = one_blas_thread(), one_blas_thread()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert set(n_threads()) == {1}
        second.__exit__(None, None, None)
        assert n_threads() == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_children_forked_while_threads_work():
    """A child begins without threads and without locks that threads of its parent hold."""
    import numpy as np

    from ranksvm import RankSVM

    n = 10_000  # enough for threads of passes, too
    X, y, qid = np.random.default_rng(0).normal(size=(n, 30)), np.arange(n) % 3, np.arange(n) // 20
    expected, stop = RankSVM(n_jobs=1).fit(X, y, qid=qid).coef_, threading.Event()

    def work():
        while not stop.is_set():
            RankSVM(n_jobs=3).fit(X, y, qid=qid)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(15):
            child = os.fork()
            if child == 0:
                found = RankSVM(n_jobs=3).fit(X, y, qid=qid).coef_
                os._exit(0 if np.allclose(found, expected) else 3)
            wait_until(lambda: ended(child))  # noqa: B023
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def ended(child):
    found, status = os.waitpid(child, os.WNOHANG)
    assert status == 0, f"the child ended with status {status}"
    return found == child


def test_one_job_is_one_thread():
    """Newton's method used 1.3 processors: SciPy's BLAS was not limited where it had been loaded late."""
    code = """
import threading, time, numpy as np
from ranksvm import RankSVM
X = np.random.default_rng(0).normal(size=(4000, 400)); y = np.arange(4000) % 3; qid = np.arange(4000) // 20
started, wall, cpu = threading.active_count(), time.perf_counter(), time.process_time()
RankSVM(C=0.1, solver="newton", n_jobs=1).fit(X, y, qid=qid).predict(X)
print((time.process_time() - cpu) / (time.perf_counter() - wall), threading.active_count() - started)
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    processors, threads = map(float, found.stdout.split())
    assert threads == 0
    assert processors < 1.1


def test_all_processors_are_those_that_joblib_counts(monkeypatch):
    import joblib

    assert available_cpus() == joblib.cpu_count()
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "1")
    assert available_cpus() == joblib.cpu_count() == 1


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"cpu.max": "150000 100000\n"}, 2),
        ({"cpu.max": "max 100000\n"}, 64),
        ({"cpu/cpu.cfs_quota_us": "50000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 1),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, 64),
        ({"cpu.max": ""}, 64),
        ({}, 64),
    ],
)
def test_the_quota_of_a_control_group_limits_the_threads(monkeypatch, tmp_path, files, expected):
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
    monkeypatch.setattr(parallel, "_CGROUPS", str(tmp_path))
    monkeypatch.setattr(parallel.os, "cpu_count", lambda: 64)
    monkeypatch.setattr(parallel.os, "sched_getaffinity", lambda _: range(64), raising=False)
    monkeypatch.delenv("LOKY_MAX_CPU_COUNT", raising=False)
    assert effective_n_jobs(None) == effective_n_jobs(-1) == expected
    assert effective_n_jobs(5) == 5


def threads_of_a_worker(_):
    return effective_n_jobs(None), effective_n_jobs(-1), effective_n_jobs(3)


@pytest.mark.parametrize(("backend", "n_workers"), [("loky", 2), ("threading", 2), ("loky", 1)])
def test_workers_of_joblib_have_one_thread_each(monkeypatch, backend, n_workers):
    from joblib import Parallel, delayed

    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "2")
    monkeypatch.setattr(parallel, "_process_cpus", lambda: 2)
    found = Parallel(n_workers, backend=backend)(delayed(threads_of_a_worker)(place) for place in range(4))
    # one worker is this process, which has all processors
    assert found == [(1, 1, 3) if n_workers > 1 else (2, 2, 3)] * 4
    assert effective_n_jobs(None) == 2


def test_no_lock_of_the_standard_library_that_a_child_could_wait_for():
    """``functools.cached_property`` holds one for all objects of a class before Python 3.12; ours has none."""
    source = Path(ranksvm.__file__).parent
    assert not [path for path in source.rglob("*.py") if "functools import cached_property" in path.read_text()]

    class Counted:
        calls = 0

        @cached_property
        def value(self):
            """What it is."""
            self.calls += 1
            return 7

    one = Counted()
    assert (one.value, one.value, one.calls, Counted.value.__doc__) == (7, 7, 1, "What it is.")
