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
