"""The command ``ranksvm simulate`` against a running service."""

import json

import numpy as np
import pytest

import ranksvm
from command_runner import command_runner
from ranksvm.cli import main
from ranksvm.clicks import attractiveness
from ranksvm.serving.learner import Schedule
from ranksvm.serving.records import Kind
from ranksvm.serving.simulation import USERS, Connection, each_query, simulate

from .http_service import Running

pytest.importorskip("starlette", reason="starlette is not installed: no service is tested")
pytest.importorskip("uvicorn", reason="uvicorn is not installed: no service is tested")


def run(*arguments, code=0):
    result = command_runner().invoke(main, ["simulate", *map(str, arguments)])
    assert result.exit_code == code, result.output
    return result


def solar():
    return ranksvm.SOLARRanker(order=2, gamma=1.0, random_state=0)


@pytest.fixture
def data(tmp_path):
    made = ranksvm.make_ranking(n_queries=30, n_docs=8, n_features=3, random_state=0)
    ranksvm.write_letor(tmp_path / "data.txt", made.X, made.y, made.qid)
    return tmp_path / "data.txt"


@pytest.fixture
def service(tmp_path):
    running = Running(str(tmp_path / "events.db"), solar(), schedule=Schedule(1, 1.0))
    yield running
    running.stop()


@pytest.mark.parametrize("drift", ["none", "sudden", "gradual"])
def test_in_step_with_labels_it_is_progressive_validation_to_the_last_bit(data, service, drift):
    options = "--clicks", "none", "--in-step", "--drift", drift, "--json", "--quiet"
    report = json.loads(run(f"http://127.0.0.1:{service.port}", data, *options).stdout)
    queries = [(one.X, one.y) for one, _ in each_query(ranksvm.read_letor(data), passes=1, drift=drift)]
    expected = ranksvm.progressive_validation(solar(), queries, metrics="ndcg@10")
    client = service.client()
    found = client.get("/v1/models")[1]
    assert found["measures"]["champion"]["mean"] == expected["ndcg@10"]
    # before the first query was learnt from all scores are equal, and what was shown has one order of them
    first = ranksvm.metrics.CumulativeMetrics("ndcg@10")
    labels = queries[0][1]
    first.add(labels, -np.arange(len(labels), dtype=float))
    (values,) = expected.per_query["ndcg@10"]
    shown = np.cumsum([first.means["ndcg@10"], *values[1:]])[-1] / len(values)
    assert found["measures"]["shown"]["mean"] == report["metrics"]["ndcg@10"] == shown
    weights = {one["feature"]: one["weight"] for one in found["weights"]}
    assert [weights[f"f{j}"] for j in (1, 2, 3)] == expected.models[0].coef_.tolist()


def test_features_are_sent_in_their_own_precision(service):
    made = ranksvm.make_ranking(n_queries=1, n_docs=8, n_features=3, random_state=0)
    for dtype in (np.float32, np.float64):
        connection = Connection(f"127.0.0.1:{service.port}")
        one = ranksvm.RankingData(made.X.astype(dtype), made.y, made.qid)
        (found,) = simulate(connection, each_query(one, passes=1, drift="none"), feedback="labels", metrics="ndcg@10")
        connection.close()
        event = service.store.entries(found.last - 1, 1)[0].answered
        assert event.X.dtype == dtype
        assert np.array_equal(event.X, one.X)
        assert event.shown.query == str(made.qid[0])


@pytest.mark.parametrize("users", USERS)
def test_clicks_are_sent(data, service, users):
    address = f"127.0.0.1:{service.port}"
    shown = run(address, data, "--clicks", users, "--drift", "sudden", "--passes", 2).output
    assert "60 queries as they were shown, by their true labels" in shown
    assert f"clicks ({users} model)" in shown
    assert "Estimates of the service from clicks, corrected for position" in shown
    assert "dcg@10 [95 % interval]" in shown
    assert service.store.head[0] == 60
    clicks = service.client().get("/v1/models")[1]["clicks"]
    report = json.loads(run(address, data, "--clicks", users, "--json", "--quiet").stdout)
    assert report["by_clicks"]["estimates"]["shown"]["rankings"] == 90
    assert clicks["estimates"]["shown"]["rankings"] == 60


def test_what_is_no_service_is_told(data, service):
    for address in ("ftp://x", "http://localhost:99999", "http://[::1", "localhost:http"):
        assert "not the address" in run(address, data, code=2).stderr
    output = run("http://127.0.0.1:9", data, code=1).stderr
    assert "http://127.0.0.1:9 does not answer as a service does (" in output  # the system's words
    assert "): check the address" in output
    wide = ranksvm.make_ranking(n_queries=2, n_docs=3, n_features=4, random_state=0)
    ranksvm.write_letor(data, wide.X, wide.y, wide.qid)
    assert "the body has 4 features, but the model has 3" in run(f"127.0.0.1:{service.port}", data, code=1).stderr


def test_clicks_are_on_the_documents_that_users_like(data, service):
    one = ranksvm.read_letor(data)
    queries = (
        (query, (np.arange(query.n_rows) == 3).astype(float)) for query, _ in each_query(one, passes=9, drift="none")
    )
    connection = Connection(f"127.0.0.1:{service.port}")
    for found in simulate(connection, queries, feedback="cascade", metrics="ndcg@10"):
        last = found.last
    connection.close()
    entries = (found.entry for found in service.store.entries(0, last))
    clicked = [entry.decoded["clicks"] for entry in entries if entry.kind is Kind.FEEDBACK]
    assert max(map(len, clicked)) == 1  # the first click ends a cascade
    assert sum("3" in clicks for clicks in clicked) > 0.4 * len(clicked)


def test_drift_rotates_the_features():
    data = ranksvm.make_ranking(n_queries=10, n_docs=3, n_features=3, random_state=0)
    rotated = {}
    for drift in ("none", "sudden", "gradual"):
        found = list(each_query(data, passes=2, drift=drift))
        rotated[drift] = []
        for number, (query, gain) in enumerate(found):
            rows = data.queries.rows(number % 10)
            assert np.array_equal(gain, attractiveness(data, 0.0)[rows])
            rotated[drift].append(not np.array_equal(query.X, data.X[rows]))
            expected = np.roll(data.X[rows], 1, axis=1) if rotated[drift][-1] else data.X[rows]
            assert np.array_equal(query.X, expected)
    assert not any(rotated["none"])
    assert rotated["sudden"] == [False] * 10 + [True] * 10
    assert not rotated["gradual"][0]
    assert 3 < sum(rotated["gradual"]) < 17
