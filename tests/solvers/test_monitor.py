"""Ctrl-C becomes an event, and the handler before it comes back."""

import os
import signal
import threading

import pytest

from ranksvm.solvers import interruptible


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
