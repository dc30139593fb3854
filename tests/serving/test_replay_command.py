"""The command ``ranksvm replay``."""

import json

import numpy as np
import pytest

import ranksvm
from command_runner import command_runner
from ranksvm.cli import main
from ranksvm.exceptions import StoreError
from ranksvm.serving.learner import Learner, Schedule, begin
from ranksvm.serving.learning import CHAMPION, Settings
from ranksvm.serving.replay import replay
from ranksvm.serving.store import open_store

from .conftest import event, feedback


def run(*arguments, code=0):
    result = command_runner().invoke(main, ["replay", *map(str, arguments)])
    assert result.exit_code == code, result.output
    return result


@pytest.fixture
def path(tmp_path):
    store = open_store(str(tmp_path / "events.db"))
    begin(store, {CHAMPION: ranksvm.SOLARRanker(order=2, gamma=1.0)}, Settings(["price", "age", "stock"]), at=0.0)
    for number in range(12):
        one = event(number)
        store.append([one, feedback(one.id)])
    learner = Learner(store, Schedule(1000, 0.5))
    learner.step()
    learner.close()
    store.close()
    return tmp_path / "events.db"


def test_a_past_model_is_written(path, tmp_path):
    report = json.loads(run(path, "--until", 7, "-o", tmp_path / "past.rsvm", "--json", "--quiet").stdout)
    assert (report["first"], report["last"], report["measures"]["champion"]["queries"]) == (1, 7, 7)
    expected = ranksvm.SOLARRanker(order=2, gamma=1.0, random_state=0)
    for number in range(7):
        expected.partial_fit(event(number).X, [2, 1, 0, 0])
    past = ranksvm.load(tmp_path / "past.rsvm")
    assert past.coef_.tobytes() == expected.coef_.tobytes()
    assert past.feature_names_in_.tolist() == ["price", "age", "stock"]
    assert np.array_equal(past.covariance_, expected.covariance_)


def test_a_log_is_checked(path):
    shown = run(path).output
    assert "1 to 12; every digest is right" in shown
    assert "1 on the way, with the same bytes" in shown
    assert "between 0 and 12, got 13" in run(path, "--until", 13, code=2).stderr
    store = open_store(str(path))
    with store._database.writing() as cursor:
        cursor.run("UPDATE entries SET at = 5, content = X'80' WHERE seq = 3")
    store.close()
    assert "altered: entry 3" in run(path, code=1).stderr


@pytest.mark.parametrize("removed_after", [4, 12])
def test_events_that_are_removed_during_a_replay_do_not_count_as_altered(path, monkeypatch, removed_after):
    monkeypatch.setattr("ranksvm.serving.replay._PART", 4)
    store = open_store(str(path))
    with pytest.raises(StoreError, match="removed old events during the replay"):
        replay(store, tell=lambda position, _: position == removed_after and store.remove_before(1e9))
    assert replay(store).first == 13
    store.close()


def test_what_is_no_store_is_refused(tmp_path):
    assert "does not exist" in run(tmp_path / "none.db", code=2).stderr
    assert not (tmp_path / "none.db").exists()


def test_the_store_is_not_overwritten(path):
    before = path.read_bytes()
    assert "-o would overwrite STORE" in run(path, "-o", path, code=2).stderr
    assert path.read_bytes() == before
