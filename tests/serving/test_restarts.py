"""PostgreSQL is restarted while rankings and feedback come in: nothing acknowledged is lost or counted twice."""

import shutil
import sys
import threading
import time
import types

import numpy as np
import pytest

import ranksvm
from ranksvm.serving import learner_process
from ranksvm.serving.learner import Learner, Schedule, begin
from ranksvm.serving.learner_process import LearnerProcess
from ranksvm.serving.learning import CHAMPION, Settings
from ranksvm.serving.replay import replay
from ranksvm.serving.store import open_store

from .conftest import event, feedback
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
    assert [(one.seq, one.entry.event, one.entry.decoded["labels"]) for one in found] == acknowledged
    rebuilt = replay(store)
    assert rebuilt.learning.to_bytes() == store.checkpoint().state
    uninterrupted = solar()
    for one in found:
        uninterrupted.partial_fit(one.answered.X, one.entry.decoded["labels"])
    assert rebuilt.learning.models[CHAMPION].coef_.tobytes() == uninterrupted.coef_.tobytes()
    store.close()


def wrong(users):
    return [user.wrong for user in users if user.wrong is not None]


def until(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_an_entry_at_which_learning_fails_again_and_again_is_skipped(tmp_path, monkeypatch):
    store = open_store(str(tmp_path / "events.db"))
    begin(store, {CHAMPION: ranksvm.SOLARRanker(random_state=0)}, Settings(["f1", "f2", "f3"]), at=0.0)
    for number in range(5):
        one = event(number)
        store.append([one, feedback(one.id)])
    lesson_of = ranksvm.serving.learning.lesson_of

    def fails(found, click_learning):
        if found.seq == 3:
            raise MemoryError("not foreseen")
        return lesson_of(found, click_learning)

    monkeypatch.setattr("ranksvm.serving.learning.lesson_of", fails)
    learner = Learner(store, Schedule(2, 0.01))
    learner.start()
    end = time.monotonic() + 20
    while learner.served.position < 5:
        assert time.monotonic() < end
        time.sleep(0.01)
    learner.close()
    assert store.skipped_entries() == {3: "MemoryError: not foreseen"}
    monkeypatch.undo()
    again = replay(store).learning  # without the fault, too: the same entries teach the same
    assert (again.position, again.skipped) == (5, 1)
    assert again.reason == "entry 3 was skipped: MemoryError: not foreseen"
    assert again.to_bytes() == store.checkpoint().state
    store.close()


def test_an_entry_at_which_process_after_process_ends_is_skipped(tmp_path, monkeypatch):
    path = str(tmp_path / "events.db")
    store = open_store(path)
    begin(store, {CHAMPION: ranksvm.SOLARRanker(random_state=0)}, Settings(["f1", "f2", "f3"]), at=0.0)
    monkeypatch.setattr("ranksvm.serving.learner_process._RESTART_SECONDS", 0.01)
    monkeypatch.setattr(sys, "executable", shutil.which("false"))
    process = LearnerProcess(store, path, Schedule(1000, 0.5), None, "zero")
    assert process._next_schedule().every == 1000
    one = event(1)
    store.append([one, feedback(one.id)])
    monkeypatch.setattr(store, "release", lambda owner: None)
    process.start()
    time.sleep(0.5)
    assert store.skipped_entries() == {}  # these processes never had the lease
    process._owner = "mine"
    store.lease("mine", 60.0)
    end = time.monotonic() + 20
    while not store.skipped_entries():
        assert time.monotonic() < end
        time.sleep(0.01)
    process.close()
    assert store.skipped_entries() == {1: "the learning process ended with code 1."}
    assert not store.mark_skipped(2, "there is no such entry", "mine")
    assert not store.mark_skipped(1, "another learns", "other")
    store.close()


def test_the_learner_imports_what_the_service_imports(monkeypatch):
    monkeypatch.setattr(sys, "flags", types.SimpleNamespace(no_site=1))
    assert learner_process._command() == [sys.executable, "-S", "-m", "ranksvm.serving.learner_process"]
    monkeypatch.undo()
    assert "-S" not in learner_process._command()


def test_readiness_says_when_learning_stands_still(tmp_path, monkeypatch):
    monkeypatch.setattr("ranksvm.serving.service._STALLED_SECONDS", 0.3)
    running = Running(str(tmp_path / "events.db"), ranksvm.SOLARRanker(random_state=0))
    client = running.client()
    assert client.get("/readyz")[1] == {"status": "ready", "learning": "keeps up", "lag": 0}
    stopped = threading.Event()
    monkeypatch.setattr(running.service.learner, "step", stopped.set)
    running.service.learner.wake()
    assert stopped.wait(20)  # the last step that learns has ended
    ranking = client.rank([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    assert client.feedback(ranking["event"], labels=[1, 0])[0] == 202
    end = time.monotonic() + 20
    while (answer := client.get("/readyz")[1])["learning"] != "stands still":
        assert time.monotonic() < end
        time.sleep(0.05)
    assert answer["lag"] == 1
    assert client.get("/v1/models")[1]["learning"]["state"] == "stands still"
    client.close()
    monkeypatch.undo()
    running.stop()


@pytest.mark.parametrize("renamed", [False, True])
def test_feedback_is_refused_while_the_file_of_the_store_is_gone(tmp_path, monkeypatch, renamed):
    path = tmp_path / "events.db"
    running = Running(str(path), ranksvm.SOLARRanker(random_state=0))
    client = running.client()
    event = client.rank([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])["event"]
    assert client.feedback(event, labels=[1, 0])[0] == 202
    path.rename(tmp_path / "moved.db")
    if not renamed:
        (tmp_path / "moved.db").unlink()
    status, problem = client.feedback(event, labels=[0, 1])
    assert status == 503
    assert "deleted, renamed or replaced" in problem["detail"]
    status, problem, _ = client.get("/readyz")
    assert status == 503
    assert "deleted, renamed or replaced" in str(problem)
    status, text, _ = client.get("/metrics")
    assert status == 200
    assert b"ranksvm_stored NaN" in text
    assert b"ranksvm_dropped 0.0" in text
    if renamed:
        monkeypatch.setattr(type(running.service.keys), "__bool__", lambda keys: True)
        status, problem, _ = client.get("/readyz")  # it needs no key
        assert status == 503
        assert str(tmp_path) not in problem["detail"]
        monkeypatch.undo()
        (tmp_path / "moved.db").rename(path)
        end = time.monotonic() + 20
        while (answer := client.get("/readyz"))[0] != 200:
            assert time.monotonic() < end, answer
            time.sleep(0.05)
        assert client.feedback(event, labels=[1, 0])[0] == 200  # stored before
    client.close()
    running.stop()
