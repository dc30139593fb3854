"""Threads: order, errors, nesting, and how many."""

import threading

import pytest

from ranksvm import _parallel
from ranksvm._parallel import available_cpus, effective_n_jobs, parallel_map
from ranksvm.exceptions import OptionError


@pytest.mark.parametrize("n_threads", [1, 2, 7])
def test_results_come_in_the_order_of_the_tasks(n_threads):
    assert parallel_map(lambda x: x * x, range(20), n_threads) == [x * x for x in range(20)]
    assert parallel_map(lambda x: x, iter([]), n_threads) == []


def test_errors_of_a_task_are_raised():
    with pytest.raises(ZeroDivisionError):
        parallel_map(lambda x: 1 // x, [1, 0, 2], 2)


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
    monkeypatch.setattr(_parallel, "available_cpus", lambda: 4)
    assert [effective_n_jobs(n) for n in (None, 1, 3, -1, -2, -9)] == [4, 1, 3, 4, 3, 1]
    for bad in (0, 1.5, True, "2"):
        with pytest.raises(OptionError, match="n_jobs must be"):
            effective_n_jobs(bad)
    assert available_cpus() >= 1


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
    monkeypatch.setattr(_parallel, "_CGROUPS", str(tmp_path))
    monkeypatch.setattr(_parallel.os, "cpu_count", lambda: 64)
    monkeypatch.setattr(_parallel.os, "sched_getaffinity", lambda _: range(64), raising=False)
    monkeypatch.delenv("LOKY_MAX_CPU_COUNT", raising=False)
    assert effective_n_jobs(None) == effective_n_jobs(-1) == expected
    assert effective_n_jobs(5) == 5


def threads_of_a_worker(_):
    return effective_n_jobs(None), effective_n_jobs(-1), effective_n_jobs(3)


@pytest.mark.parametrize(("backend", "n_workers"), [("loky", 2), ("threading", 2), ("loky", 1)])
def test_workers_of_joblib_have_one_thread_each(monkeypatch, backend, n_workers):
    from joblib import Parallel, delayed

    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "2")
    monkeypatch.setattr(_parallel, "_process_cpus", lambda: 2)
    found = Parallel(n_workers, backend=backend)(delayed(threads_of_a_worker)(place) for place in range(4))
    # one worker is this process, which has all processors
    assert found == [(1, 1, 3) if n_workers > 1 else (2, 2, 3)] * 4
    assert effective_n_jobs(None) == 2
