"""The click log of a store: what was shown and clicked on, and what `position_bias` and the commands make of it."""

import json
import tracemalloc

import msgspec
import numpy as np
import pytest

from command_runner import command_runner
from ranksvm import RankingData, make_ranking, write_letor
from ranksvm.cli import main
from ranksvm.clicks import ClickLog, click_pairs, compare_credits, interleaving_credits, position_bias, simulate_clicks
from ranksvm.exceptions import DataError, StoreError
from ranksvm.serving.clicks import click_log
from ranksvm.serving.records import Event, Kind, Shown
from ranksvm.serving.store import open_store

from .conftest import feedback


def event(number, shown, at=1000.0):
    return Event(f"e{number:06d}", at + number, shown, b"")


def shown(documents, order, query="q", version=1, **more):
    return Shown(documents, order, version, 0, "<f8", query, **more)


def fill(store):
    """One event of every kind."""
    policies = {
        1: shown(["a", "b"], [1, 0]),
        2: shown(["a", "b"], [0, 1], query=None, version=2),  # no feedback: no click
        3: shown(["a", "b", "c"], [2, 0, 1], policy="team-draft", teams=["champion", "challenger", "champion"]),
        4: shown(["a", "b"], [1, 0], policy="epsilon", propensities=[0.05, 0.05]),
        5: shown(["a", "b"], [0, 1], policy="epsilon", propensities=[0.95, 0.95]),
        6: shown(["a", "b"], [0, 1]),  # labels say nothing about clicks
        7: shown(["a", "b"], [0, 1]),  # not answered in time
    }
    store.append([event(number, one) for number, one in policies.items()])
    says = {1: ["a"], 3: ["c", "b"], 4: [], 5: ["b"]}
    answers = [feedback(f"e{number:06d}", {"clicks": clicks}) for number, clicks in says.items()]
    store.append([*answers, feedback("e000006", {"labels": [1, 0]})])
    return store


def test_only_the_ranks_that_are_asked_for_are_held_in_memory(store, monkeypatch):
    monkeypatch.setattr("ranksvm.serving.store._MAX_BYTES", 200_000)
    documents = [f"{row:0200}" for row in range(500)]  # 100 kB an event
    for number in range(60):
        store.append([event(number, shown(documents, list(range(500))))])
    tracemalloc.start()
    log = click_log(store, n_ranks=3)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (log.n_impressions, len(log.rank)) == (60, 180)
    assert peak < 2_000_000


def test_events_become_impressions(store, monkeypatch):
    monkeypatch.setattr("ranksvm.serving.clicks._EVENTS", 2)
    fill(store)
    log = click_log(store)
    rows = list(
        zip(
            log.query_ids[log.query].tolist(),
            log.document_ids[log.document].tolist(),
            log.rank.tolist(),
            log.clicked.tolist(),
            [log.ranker_names[code] for code in log.ranker],
            log.time.tolist(),
            strict=True,
        )
    )
    assert rows == [
        ("q", "b", 1, False, "v1", 1001.0),
        ("q", "a", 2, True, "v1", 1001.0),
        ("e000002", "a", 1, False, "v2", 1002.0),
        ("e000002", "b", 2, False, "v2", 1002.0),
        ("q", "c", 1, True, "champion", 1003.0),
        ("q", "a", 2, False, "challenger", 1003.0),
        ("q", "b", 3, True, "champion", 1003.0),
        ("q", "b", 1, False, "random", 1004.0),
        ("q", "a", 2, False, "random", 1004.0),
        ("q", "a", 1, False, "v1", 1005.0),
        ("q", "b", 2, True, "v1", 1005.0),
        ("q", "a", 1, False, "v1", 1007.0),
        ("q", "b", 2, False, "v1", 1007.0),
    ]


def test_one_policy(store):
    with pytest.raises(DataError, match="the store has no ranking with feedback by clicks, or without feedback"):
        click_log(store)
    fill(store)
    log = click_log(store, policy="team-draft")
    credits = interleaving_credits(log, names=("challenger", "champion"))
    assert credits.tolist() == [-1.0]
    assert compare_credits(credits).wins_b == 1
    with pytest.raises(DataError, match="no ranking by the policy 'shuffled'"):
        click_log(store, policy="shuffled")


def test_late_answers_are_impressions_without_clicks(tmp_path):
    store = open_store(str(tmp_path / "events.db"), reward_wait=0.0)
    store.append([event(1, shown(["a", "b"], [0, 1]))])
    store.append([feedback("e000001", {}, Kind.UNANSWERED)])
    assert click_log(store).clicked.tolist() == [False, False]
    store.close()


def test_what_is_no_store(tmp_path):
    with pytest.raises(StoreError):
        click_log(tmp_path / "absent.db")


@pytest.fixture(scope="module")
def traffic(tmp_path_factory):
    """Data with document ids, the log of two versions of a model, and the same in a store."""
    folder = tmp_path_factory.mktemp("traffic")
    made = make_ranking(n_queries=20, n_docs=8, n_features=3, random_state=0)
    data = RankingData(made.X, made.y, made.qid, np.array([f"d{row}" for row in range(made.n_rows)]))
    write_letor(folder / "data.txt", data.X, data.y, data.qid, docid=data.docid)
    log = simulate_clicks(data, {"v1": data.X[:, 0], "v2": data.X[:, 1]}, 1_500, n_ranks=4, random_state=0)
    store = open_store(str(folder / "events.db"))
    events, answers = [], []
    for number, start in enumerate(log.pointers[:-1].tolist()):
        rows = slice(start, log.pointers[number + 1])
        documents, clicked = log.document_ids[log.document[rows]], log.clicked[rows]
        version = int(log.ranker_names[log.ranker[start]][1:])
        query = str(log.query_ids[log.query[start]])
        events.append(event(number, shown(documents.tolist(), list(range(len(documents))), query, version)))
        if clicked.any():
            answers.append(feedback(events[-1].id, {"clicks": documents[clicked].tolist()}))
    store.append(events)
    store.append(answers)
    store.close()
    log.save(folder / "log.parquet")
    return folder, data, log


def test_a_store_teaches_what_its_log_teaches(traffic):
    folder, data, log = traffic
    found = click_log(folder / "events.db")
    expected, bias = position_bias(log, n_bootstrap=0), position_bias(found, n_bootstrap=0)
    np.testing.assert_allclose(bias.propensity, expected.propensity)
    for one, other in zip(click_pairs(found, data, bias), click_pairs(log, data, expected), strict=True):
        np.testing.assert_allclose(one, other)


def test_commands_read_a_store(traffic, tmp_path):
    folder, _, _ = traffic
    found = {}
    for name in ("events.db", "log.parquet"):
        bias = tmp_path / f"{name}.json"
        clicks = ["--clicks", folder / name, "--bias", bias]
        for arguments in (
            ["bias", folder / name, "--bootstrap", "0", "-o", bias],
            ["train", folder / "data.txt", *clicks, "-C", "0.01", "-o", tmp_path / "model.rsvm"],
            ["evaluate", folder / "data.txt", *clicks, "-m", tmp_path / "model.rsvm"],
        ):
            done = command_runner().invoke(main, [*map(str, arguments), "--json", "--quiet"])
            assert done.exit_code == 0, done.output
        found[name] = json.loads(done.stdout)["systems"][0]["means"]
    assert found["events.db"] == pytest.approx(found["log.parquet"], rel=1e-4)


def test_swaps_of_a_store_are_estimated_by_the_command(tmp_path):
    path = tmp_path / "events.db"
    store = open_store(str(path))
    orders = [[number % 2, 1 - number % 2] for number in range(40)]
    swaps = [shown(["a", "b"], order, policy="fair-pairs", base_rank=order) for order in orders]
    store.append([event(number, one) for number, one in enumerate([*swaps, shown(["a", "b"], [0, 1])])])
    clicked = [["ab"[orders[number][number % 3 == 2]]] for number in range(40)]  # two thirds at rank 1
    store.append([feedback(f"e{number:06d}", {"clicks": clicks}) for number, clicks in enumerate(clicked)])
    store.close()
    arguments = ["bias", path, "--method", "swap", "--bootstrap", "0", "--json", "--quiet"]
    done = command_runner().invoke(main, list(map(str, arguments)))
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["propensity"] == pytest.approx([1.0, 13 / 27])


def test_the_log_of_a_store_can_be_written(traffic, tmp_path):
    folder, _, log = traffic
    click_log(folder / "events.db").save(tmp_path / "log.parquet")
    assert ClickLog.read(tmp_path / "log.parquet").n_rows == log.n_rows


def test_features_are_not_read(store):
    """A log of a million events fits into memory without their features."""
    fill(store)
    (first, *_) = store.answers("", 1)
    assert first[0] == "e000001"
    assert msgspec.msgpack.encode(first[2])
    assert first[3].decoded == {"clicks": ["a"]}
