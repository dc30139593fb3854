"""PostgreSQL is restarted while rankings and feedback come in: nothing acknowledged is lost or counted twice."""

import threading
import time

import numpy as np
import pytest

import ranksvm
from ranksvm.serving.learning import CHAMPION
from ranksvm.serving.replay import replay
from ranksvm.serving.store import open_store

from .http_service import Running

pytest.importorskip("starlette", reason="starlette is not installed: no service is tested")
pytest.importorskip("uvicorn", reason="uvicorn is not installed: no service is tested")

N_CLIENTS = 3


def solar():
    return ranksvm.SOLARRanker(order=2, gamma=1.0, random_state=0)


class User(threading.Thread):
    """Has queries ranked, and sends feedback on each until it is acknowledged."""

    def __init__(self, client, seed, ended):
        super().__init__(daemon=True)
        self._client, self._random, self._ended = client, np.random.default_rng(seed), ended
        self.acknowledged, self.refused, self.wrong = [], 0, None

    def run(self):
        try:
            while not self._ended.is_set():
                # it ranks whether the store answers or not
                event = self._client.rank(self._random.normal(size=(4, 3)).tolist())["event"]
                self._answer(event, self._random.integers(3, size=4).tolist())
        except BaseException as error:  # the test says which
            self.wrong = error

    def _answer(self, event, labels):
        while True:
            status, content, headers = self._client.post(f"/v1/events/{event}/feedback", {"labels": labels})
            if status in (200, 202):  # 200: it was stored, but the answer of the store was lost
                self.acknowledged.append((content["seq"], event, labels))
                return
            assert (status, headers["retry-after"]) == (503, "1"), content
            self.refused += 1
            time.sleep(0.05)


def test_a_database_that_restarts_under_load_loses_nothing(postgres):
    url, ended = postgres.new_database(), threading.Event()
    running = Running(url, solar(), process=True)
    users = [User(running.client(), seed, ended) for seed in range(N_CLIENTS)]
    for user in users:
        user.start()
    for _ in range(2):
        before = sum(len(user.acknowledged) for user in users)
        until(lambda before=before: sum(len(user.acknowledged) for user in users) > before + 20 or wrong(users))
        postgres.stop()
        time.sleep(0.3)
        postgres.start()
    before = [len(user.acknowledged) for user in users]
    until(lambda: all(len(user.acknowledged) > n for user, n in zip(users, before, strict=True)) or wrong(users))
    ended.set()
    for user in users:
        user.join(30)
    assert not wrong(users)
    assert any(user.refused for user in users)
    acknowledged = sorted(one for user in users for one in user.acknowledged)
    client = running.client()
    until(lambda: client.get("/v1/models")[1]["learning"]["position"] == len(acknowledged))
    running.stop()

    store = open_store(url, create=False)
    found = store.entries(0, 1_000_000)
    assert [(one.seq, one.entry.event, one.entry.says["labels"]) for one in found] == acknowledged
    rebuilt = replay(store)
    assert rebuilt.learning.to_bytes() == store.checkpoint().state
    uninterrupted = solar()
    for one in found:
        uninterrupted.partial_fit(one.answered.X, one.entry.says["labels"])
    assert rebuilt.learning.models[CHAMPION].coef_.tobytes() == uninterrupted.coef_.tobytes()
    store.close()


def wrong(users):
    return [user.wrong for user in users if user.wrong is not None]


def until(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)
