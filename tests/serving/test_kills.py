"""A service that is killed at any moment, again and again: nothing acknowledged is lost or counted twice; same bits."""

import functools
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import ranksvm
from ranksvm.serving.learning import CHAMPION
from ranksvm.serving.replay import replay
from ranksvm.serving.store import open_store

from .http_service import Client

pytest.importorskip("starlette", reason="starlette is not installed: no service is tested")
pytest.importorskip("uvicorn", reason="uvicorn is not installed: no service is tested")

ROWS = np.random.default_rng(0).normal(size=(5, 3))
COMMAND = ["serve", "--learner", "solar2", "--gamma", "1", "--n-features", "3", "--every", "7"]


class Killed:
    """A process of ``ranksvm serve``."""

    def __init__(self, store, command=COMMAND):
        own = [*command, "--store", str(store), "--port", "0"]
        full = [sys.executable, "-m", "ranksvm", *own]
        # a process group of its own, which the learner is in, too
        self._process = subprocess.Popen(full, stderr=subprocess.PIPE, text=True, start_new_session=True)
        said = []
        for line in self._process.stderr:
            said.append(line)
            if found := re.search(r"Serving at http://[\d.]+:(\d+)", line):
                self.port = int(found[1])
                break
        else:
            raise AssertionError(f"it did not start: {''.join(said)}")

    def kill(self, how=signal.SIGKILL, learner=False):
        """Kill the process that ranks, which the learner notices and ends; or both at once."""
        (os.killpg if learner else os.kill)(self._process.pid, how)
        self._process.wait()
        self._process.stderr.close()


def send_until_killed(port, kill_after, kill, acknowledged, uncertain):
    """Rank and give feedback until the service is gone, which is killed some time after a number of answers."""
    client = Client(port)
    timer = None
    try:
        while True:
            if len(acknowledged) >= kill_after and timer is None:
                timer = threading.Timer(random.random() * 0.02, kill)
                timer.start()
            rows = ROWS * (len(acknowledged) % 7)  # within the range of features that the service learns
            event = client.rank(rows.tolist())["event"]
            uncertain.add(event)
            status, content = client.feedback(event, labels=[1, 0, 2, 0, len(acknowledged) % 3])
            assert status == 202, content
            acknowledged.append((content["seq"], event))
    except (OSError, http_error()):
        timer.join()


def http_error():
    import http.client

    return http.client.HTTPException


def check(path, acknowledged, uncertain):
    """Everything acknowledged is there once, in its place, and the model is that of an uninterrupted run."""
    store = open_store(str(path), create=False)
    found = store.entries(0, 1_000_000)
    by_seq = {entry.seq: entry.entry.event for entry in found}
    assert [by_seq[seq] for seq, _ in acknowledged] == [event for _, event in acknowledged]
    assert len(set(by_seq.values())) == len(by_seq)
    assert set(by_seq.values()) <= uncertain
    rebuilt = replay(store)  # compares the bytes of every checkpoint on the way
    assert rebuilt.learning.to_bytes() == store.checkpoint().state
    uninterrupted = ranksvm.SOLARRanker(order=2, gamma=1.0, random_state=0)
    for entry in found:
        uninterrupted.partial_fit(entry.answered.X, entry.entry.decoded["labels"])
    assert rebuilt.learning.models[CHAMPION].coef_.tobytes() == uninterrupted.coef_.tobytes()
    store.close()


def learn_all(path):
    """Wait until all that is left is learnt: the service learns once the lease of the one that was killed has ended."""
    store = open_store(str(path), create=False)
    until = time.monotonic() + 60
    while store.checkpoint().position < store.head[0]:
        assert time.monotonic() < until
        time.sleep(0.05)
    store.close()


def kills(path, n_kills, each):
    acknowledged, uncertain = [], set()
    for number in range(1, n_kills + 1):
        service = Killed(path)
        kill = functools.partial(service.kill, learner=number % 2 == 0)
        send_until_killed(service.port, number * each, kill, acknowledged, uncertain)
    service = Killed(path)
    learn_all(path)
    service.kill(signal.SIGTERM)
    check(path, acknowledged, uncertain)
    assert len(acknowledged) >= n_kills * each


def test_two_kills(tmp_path):
    kills(tmp_path / "events.db", 2, 25)


@pytest.mark.slow
def test_a_hundred_kills(tmp_path):
    kills(tmp_path / "events.db", 100, 20)
