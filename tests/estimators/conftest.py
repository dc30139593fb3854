"""Fixtures for several tests of estimators."""

import os
import signal
import threading

import pytest

from ranksvm.objectives import LinearObjective


@pytest.fixture
def interrupt_at(monkeypatch):
    """Send SIGINT from another thread while the given evaluation of an objective runs."""
    # install the default handler, because a process that was started in the background ignores SIGINT
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)

    def arm(number, objective=LinearObjective):
        count = 0
        original = objective.evaluate

        def evaluate(self, w, near=None):
            nonlocal count
            count += 1
            if count == number:
                thread = threading.Thread(target=os.kill, args=(os.getpid(), signal.SIGINT))
                thread.start()
                thread.join()
            return original(self, w, near)

        monkeypatch.setattr(objective, "evaluate", evaluate)

    yield arm
    signal.signal(signal.SIGINT, handler)
