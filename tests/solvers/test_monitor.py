"""Ctrl-C becomes an event, and the handler before it comes back; steps that only round-off moves end a run."""

import os
import signal
import threading

import numpy as np
import pytest

from ranksvm import RankSVM
from ranksvm.solvers import Status, interruptible
from ranksvm.solvers.monitor import MAX_STALLED, Monitor
from solver_problems import Hinges


def test_the_signal_sets_the_event_and_the_handler_is_put_back():
    before = signal.getsignal(signal.SIGINT)
    with interruptible() as event:
        assert not event.is_set()
        os.kill(os.getpid(), signal.SIGINT)
        assert event.wait(5)
    assert signal.getsignal(signal.SIGINT) is before
    with pytest.raises(ZeroDivisionError), interruptible():
        _ = 1 / 0
    assert signal.getsignal(signal.SIGINT) is before


def test_other_threads_leave_signals_alone():
    before, seen = signal.getsignal(signal.SIGINT), []

    def run():
        with interruptible() as event:
            seen.append((event.is_set(), signal.getsignal(signal.SIGINT)))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert seen == [(False, before)]


def records(monitor, first, second, n):
    """The first status of a run that alternates between two points, and its iteration; None without one."""
    for step in range(n):
        if (status := monitor.record((first, second)[step % 2])) is not None:
            return status, monitor.n_iter
    return None


def test_a_run_that_alternates_between_two_points_ends():
    objective = Hinges([[3.0, 1.0]], 1e3)
    first, second = (objective.evaluate(np.array(w)) for w in ([0.1, 0.0], [0.1, 1e-7]))
    assert second.value < first.value
    assert records(Monitor(objective, 1e-6, 1000, label=None), first, second, 1000) == (
        Status.PRECISION,
        MAX_STALLED + 1,
    )
    assert records(Monitor(objective, 1e-6, 1000, label=None), second, first, 1000) == (Status.PRECISION, MAX_STALLED)
    dual = Monitor(objective, 1e-6, 1000, label=None, descends=False)
    assert records(dual, first, second, 1000) is None


@pytest.mark.parametrize("seed", range(3))
def test_steps_of_the_dual_that_change_no_weight_are_progress(seed):
    """The dual variables of two contradictory pairs grow together, and leave the weights where they are."""
    X = np.random.default_rng(seed).normal(size=(4, 7))
    pairs = [(0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2), (0, 3)]
    ranker = RankSVM(C=100.0, loss="hinge", solver="dual", tol=1e-6).fit(X, pairs=pairs)
    assert ranker.converged_
    assert ranker.objective_ == pytest.approx(600.0, rel=1e-3)


def test_less_smoothing_begins_a_new_count():
    objective = Hinges([[3.0, 1.0]], 1e3)
    first, second = (objective.evaluate(np.array(w)) for w in ([0.1, 0.0], [0.1, 1e-7]))
    monitor = Monitor(objective, 1e-6, 1000, label=None)
    assert records(monitor, first, second, MAX_STALLED) is None
    objective.reduce_smoothing = lambda point, tol, by_inverse: (second, 0)
    assert monitor.reduce_smoothing(first) is second
    assert records(monitor, first, second, MAX_STALLED) is None
