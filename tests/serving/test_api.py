"""The HTTP interface: rank, feedback once and for all, explain, roll back; clear answers to what is wrong."""

import gzip
import json
import socket
import sqlite3
import threading
import time

import numpy as np
import pytest

import ranksvm
from ranksvm.serving.access import Rate, add_key, is_loopback
from ranksvm.serving.learner import Schedule
from ranksvm.serving.records import Event, Shown, event_id
from ranksvm.serving.requests import Limits, Problem
from ranksvm.serving.store import open_store

from .http_service import Running

pytest.importorskip("starlette", reason="starlette is not installed: no service is tested")
pytest.importorskip("uvicorn", reason="uvicorn is not installed: no service is tested")

X = np.random.default_rng(0).normal(size=(6, 3))


def fitted():
    """A ranker whose weights are known."""
    ranker = ranksvm.SOLARRanker(order=2, gamma=1.0, random_state=0)
    return ranker.partial_fit_pairs(np.array([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]]), [[0, 1]])


@pytest.fixture
def service(tmp_path):
    running = Running(str(tmp_path / "events.db"), fitted())
    yield running
    running.stop()


@pytest.fixture
def client(service):
    opened = service.client()
    yield opened
    opened.close()


def until(condition, seconds=20.0):
    """Wait for something that another thread does."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_all_forms_of_a_request_give_the_same_ranking(service, client):
    scores = fitted().predict(X)
    order = np.argsort(-scores, kind="stable").astype(str).tolist()
    named = [
        {"id": str(i), "features": dict(zip(("f3", "f1", "f2"), x[[2, 0, 1]], strict=True))} for i, x in enumerate(X)
    ]
    lists = [{"id": str(i), "features": x.tolist()} for i, x in enumerate(X)]
    lines = "\n".join(json.dumps(document) for document in named).encode()
    answers = [
        client.post("/v1/rank", {"documents": named, "query": "shoes"}),
        client.post("/v1/rank", {"documents": lists}),
        client.post("/v1/rank", {"matrix": X.tolist(), "ids": [str(i) for i in range(6)]}),
        client.post("/v1/rank?query=shoes", lines, kind="application/x-ndjson"),
        client.post("/v1/rank?features=3&query=shoes", X.astype("<f4").tobytes(), kind="application/octet-stream"),
    ]
    for status, content, _ in answers:
        assert (status, content["order"], content["version"], content["policy"]) == (200, order, 1, "greedy")
        assert content["scores"] == pytest.approx(-np.sort(-scores), rel=1e-6)
    # JSON carries the bits
    assert answers[0][1]["scores"] == (-np.sort(-scores)).tolist()
    other = client.post("/v1/rank?features=2", X.astype("<f4").tobytes(), kind="application/octet-stream")
    assert (other[0], other[1]["detail"]) == (422, "the body has 2 features, but the model has 3.")
    until(lambda: client.get(f"/v1/events/{answers[4][1]['event']}/explain")[0] == 200)
    assert client.get(f"/v1/events/{answers[4][1]['event']}/explain")[1]["query"] == "shoes"


def test_feedback_is_taken_once_and_learnt_from(service, client):
    ranking = client.rank(X.tolist())
    event = ranking["event"]
    assert client.feedback(event, clicks=[ranking["order"][2]]) == (
        202,
        {"event": event, "seq": 1, "status": "accepted"},
    )
    assert client.feedback(event, clicks=[ranking["order"][2]])[1]["status"] == "duplicate"
    assert client.feedback(event, clicks=[ranking["order"][2]])[0] == 200
    status, problem = client.feedback(event, clicks=[ranking["order"][1]])
    assert (status, problem["type"]) == (409, "urn:ranksvm:problem:conflict")
    assert client.feedback("0" * 32, clicks=[])[0] == 404
    until(lambda: client.get("/v1/models")[1]["learning"]["lag"] == 0)
    overview = client.get("/v1/models")[1]
    assert overview["serving"] == 2
    assert overview["measures"] == {}  # nobody has sent labels
    assert overview["clicks"]["estimates"]["champion"]["rankings"] == 1
    pairs = ranksvm.pairs_from_clicks(None, _rank(ranking), _clicked(ranking, 2))
    expected = fitted().partial_fit_pairs(
        X, pairs, np.full(len(pairs), 3 / 20)
    )  # 1 / propensity of rank 3, of 20 at most
    weights = {one["feature"]: one["weight"] for one in overview["weights"]}
    assert weights == pytest.approx(dict(zip(("f1", "f2", "f3"), expected.coef_.tolist(), strict=True)), rel=1e-12)


def _rank(ranking):
    return [ranking["order"].index(str(row)) for row in range(6)]


def _clicked(ranking, place):
    return [ranking["order"][place] == str(row) for row in range(6)]


def test_many_clients_at_once_lose_nothing(service):
    def work(number):
        client = service.client()
        for _ in range(10):
            event = client.rank(X.tolist())["event"]
            found.append(client.feedback(event, labels=[1, 0, 0, 2, 0, number % 2])[1]["seq"])
        client.close()

    found = []
    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == list(range(1, 61))


def test_an_explanation_adds_up(client):
    ranking = client.rank(X.tolist(), "shoes")
    until(lambda: client.get(f"/v1/events/{ranking['event']}/explain")[0] == 200)
    found = client.get(f"/v1/events/{ranking['event']}/explain")[1]
    assert [one["id"] for one in found["documents"]] == ranking["order"]
    for one, score in zip(found["documents"], ranking["scores"], strict=True):
        assert one["score"] == score
        assert found["mean_score"] + sum(one["contributions"].values()) == pytest.approx(score)


def test_an_event_is_explained_at_once(client):
    for _ in range(3):
        event = client.rank(X.tolist())["event"]  # it is not stored yet
        assert client.get(f"/v1/events/{event}/explain")[0] == 200


def test_a_rollback_makes_an_earlier_model_the_champion(service, client):
    before = client.rank(X.tolist())
    assert client.feedback(before["event"], labels=[5, 4, 3, 2, 1, 0])[0] == 202
    until(lambda: client.get("/v1/models")[1]["serving"] == 2)
    status, content, _ = client.post("/v1/models/1/activate")
    assert (status, content) == (202, {"version": 1, "model": "champion", "seq": 2})
    until(lambda: client.get("/v1/models")[1]["serving"] == 3)
    assert client.rank(X.tolist())["scores"] == before["scores"]
    status, problem, _ = client.post("/v1/models/99/activate")
    assert (status, problem["detail"]) == (404, "there is no version 99: the newest version is 3.")
    assert client.post("/v1/models/1/activate", {"model": "other"})[0] == 409
    assert client.post("/v1/models/none/activate")[0] == 422


def test_an_earlier_version_is_found_even_if_another_thread_removes_it_at_once(service, client, monkeypatch):
    event = client.rank(X.tolist())["event"]
    client.feedback(event, clicks=["1"])
    until(lambda: client.get("/v1/models")[1]["serving"] == 2)
    monkeypatch.setattr("ranksvm.serving.service._VERSIONS", 0)
    assert client.get(f"/v1/events/{event}/explain")[1]["version"] == 1


def test_a_version_that_was_removed_cannot_become_the_champion(service, client, monkeypatch):
    monkeypatch.setattr(service.store, "checkpoint", lambda version: None)
    monkeypatch.setattr(service.store, "newest_version", lambda: 9)
    status, problem, _ = client.post("/v1/models/8/activate")
    assert (status, problem["detail"]) == (410, "version 8 is not stored any more.")


@pytest.mark.parametrize(
    ("body", "kind", "status", "words"),
    [
        (b"{", "application/json", 400, "not JSON"),
        (b"\xff\xfe", "application/json", 400, "not JSON"),
        ({}, "application/json", 422, "documents or a matrix"),
        ({"matrix": []}, "application/json", 422, "no documents"),
        ({"matrix": [[1, 2]]}, "application/json", 422, "row 0 of the matrix has 2 features, but the model has 3"),
        ({"matrix": [[1, 2, 3]], "ids": ["a", "b"]}, "application/json", 422, "2 ids for 1 rows"),
        ({"matrix": [[1, 2, 3]] * 2, "ids": ["a", "a"]}, "application/json", 422, "has document 'a' twice"),
        ({"matrix": [[1, 2, "x"]]}, "application/json", 422, "matrix"),
        ({"matrix": [[1, 2, 10**400]]}, "application/json", 422, ""),
        (b'{"matrix": [[1, 2, 1e999]]}', "application/json", 422, ""),
        (b'{"matrix": [[1, 2, NaN]]}', "application/json", 400, "not JSON"),
        ({"matrix": [[1e308, 1e308, 1e308]]}, "application/json", 422, "too large for float64"),
        ({"matrix": [[1, 2, 3]] * 51}, "application/json", 413, "51 documents are more than the limit of 50"),
        ({"matrix": [[1, 2, 3]], "path": "x"}, "application/json", 422, "unknown field"),
        ({"matrix": [[1, 2, 3]], "query": "q" * 300}, "application/json", 422, "256 characters"),
        ({"documents": [{"id": "a", "features": {"f1": 1, "f2": 2}}]}, "application/json", 422, "lacks 1 features"),
        (
            {"documents": [{"id": "a", "features": {"f1": 1, "f2": 2, "f3": 0, "f9": 1}}]},
            "application/json",
            422,
            "feature 'f9', which the model lacks",
        ),
        (b"12345", "application/octet-stream", 422, "whole number of rows"),
        (np.array([1, np.nan, 0], "<f4").tobytes(), "application/octet-stream", 422, "document '0', feature 'f2'"),
        (b'{"id": "a"}\n', "application/x-ndjson", 422, "features"),
        (b"", "application/x-ndjson", 422, "no documents"),
        (b"x", "text/plain", 415, "known are application/json"),
        (b"x" * 5000, "application/json", 413, "larger than 4000 bytes"),
    ],
    ids=str,
)
def test_bad_requests_are_answered_with_a_problem(bad, body, kind, status, words):
    client = bad.client()
    found, problem, headers = client.post("/v1/rank", body, kind=kind)
    client.close()
    assert (found, headers["content-type"]) == (status, "application/problem+json"), problem
    assert problem["status"] == status
    assert words in problem["detail"]
    assert list(bad.store.recent_events(1)) == []


def test_compressed_bodies_are_refused(client):
    """A compressed body of float32 could otherwise be read as numbers."""
    body, kind = np.zeros(3, "<f4").tobytes(), "application/octet-stream"
    status, problem, headers = client.post("/v1/rank", gzip.compress(body), kind=kind, Content_Encoding="gzip")
    assert (status, headers["accept-encoding"]) == (415, "identity")
    assert "without compression" in problem["detail"]
    assert client.post("/v1/rank", body, kind=kind, Content_Encoding="Identity")[0] == 200


@pytest.fixture(scope="module")
def bad(tmp_path_factory):
    """A service for requests that store nothing."""
    limits = Limits(body=4000, documents=50)
    model = fitted()
    model.weights_ *= 100.0
    running = Running(str(tmp_path_factory.mktemp("bad") / "events.db"), model, limits=limits)
    yield running
    running.stop()


def test_addresses_and_methods_that_do_not_exist(bad):
    client = bad.client()
    for method, path, status in (
        ("GET", "/v1/rank", 405),
        ("GET", "/nothing", 404),
        ("GET", "/../../etc/passwd", 404),
        ("GET", "/v1/events/..%2f..%2fx/explain", 404),
        ("GET", "/v1/events/%00/explain", 404),
        ("GET", "/v1/events?limit=x", 422),
        ("POST", "/v1/events/x/feedback", 404),
        ("POST", f"/v1/events/{'0' * 32}/feedback", 400),
    ):
        found, problem, headers = client.send(method, path, b"{" if method == "POST" else None)
        assert (found, headers["content-type"]) == (status, "application/problem+json")
        assert problem["detail"]


def test_an_address_that_ends_in_a_newline_or_a_slash_is_no_failure(bad):
    client = bad.client()
    for path in ("/page.css%0a", "/page.js%0A", "/%0a"):  # the router takes a newline at the end for the end
        assert client.get(path)[0] == 200, path
    for path in ("/v1/events/", "/healthz/"):  # a redirection would go to what the header Host says
        assert client.get(path)[0] == 404, path


def test_chunked_bodies_are_limited(bad):
    head = f"POST /v1/rank HTTP/1.1\r\nHost: localhost:{bad.port}\r\nContent-Type: application/json\r\n"
    chunk = b"bb8\r\n" + b"x" * 3000 + b"\r\n"
    with socket.create_connection(("127.0.0.1", bad.port)) as connection:
        # it never ends, and is answered nevertheless
        connection.sendall(head.encode() + b"Transfer-Encoding: chunked\r\n\r\n" + 2 * chunk)
        assert connection.recv(1000).startswith(b"HTTP/1.1 413")


def test_a_client_that_sends_a_whole_body_first_is_told_that_it_is_too_large(tmp_path):
    running = Running(str(tmp_path / "events.db"), fitted(), limits=Limits(body=1 << 20))
    try:
        for size in (2 << 20, 8 << 20):
            client = running.client()
            status, problem, _ = client.post("/v1/rank", b" " * size)
            assert (status, problem["detail"]) == (413, "the body is larger than 1048576 bytes.")
            client.close()
        with socket.create_connection(("127.0.0.1", running.port), timeout=30) as connection:
            head = f"POST /v1/rank HTTP/1.1\r\nHost: localhost:{running.port}\r\nContent-Type: application/json\r\n"
            connection.sendall(f"{head}Content-Length: 2000000\r\nExpect: 100-continue\r\n\r\n".encode())
            assert connection.recv(1000).startswith(b"HTTP/1.1 413")
    finally:
        running.stop()


def test_other_sites_are_refused(bad):
    client = bad.client()
    assert client.post("/v1/rank", {"matrix": [[1, 2, 3]]}, Origin="https://evil.example")[0] == 403
    rebound = bad.client(host="evil.example")
    assert rebound.get("/v1/models")[0] == 403
    assert "Access-Control-Allow-Origin" not in client.get("/v1/models")[2]


def test_keys_and_scopes(tmp_path):
    running = Running(str(tmp_path / "events.db"), fitted())
    keys = {scope: add_key(running.store, scope, [scope]) for scope in ("rank", "feedback", "read", "admin")}
    running.service.keys.reload()
    body = {"matrix": X.tolist()}
    paths = {
        "rank": ("POST", "/v1/rank", body),
        "feedback": ("POST", f"/v1/events/{'0' * 32}/feedback", {"clicks": []}),
        "read": ("GET", "/v1/models", None),
        "admin": ("POST", "/v1/models/9/activate", {}),
    }
    for scope, (method, path, sent) in paths.items():
        for name, key in [*keys.items(), ("none", None), ("wrong", "rsvm_wrong")]:
            client = running.client(key=key, host="any.example")
            status = client.send(method, path, sent)[0]
            expected = {"rank": 200, "feedback": 404, "read": 200, "admin": 404}[scope]
            assert status == (expected if name == scope else 401 if name in ("none", "wrong") else 403)
            client.close()
    stored = b"".join(hash for _, hash, _ in running.store.api_keys())
    assert not any(key.encode() in stored for key in keys.values())
    client = running.client()
    assert client.get("/healthz")[0] == client.get("/readyz")[0] == client.get("/")[0] == 200
    assert client.get("/metrics")[0] == 401
    running.stop()


def test_a_client_that_asks_too_often_has_to_wait():
    rate = Rate(2.0)
    for _ in range(4):
        rate.check("a", 10.0)
    with pytest.raises(Problem) as caught:
        rate.check("a", 10.0)
    assert (caught.value.status, caught.value.headers) == (429, {"Retry-After": "1"})
    rate.check("b", 10.0)
    rate.check("a", 10.6)
    for client in range(20_000):
        rate.check(str(client), 11.0)
    assert len(rate._left) == 10_000


def test_this_machine():
    assert all(map(is_loopback, ("localhost", "127.0.0.1", "::1", "[::1]", "127.1.2.3")))
    assert not any(map(is_loopback, ("0.0.0.0", "", "example.org", "10.0.0.1")))


def test_a_full_disk_stops_feedback_and_not_ranking(service, client):
    first = client.rank(X.tolist())["event"]
    assert client.feedback(first, labels=[1, 0, 0, 0, 0, 0])[0] == 202
    second = client.rank(X.tolist())["event"]
    append, full = service.store.append, sqlite3.OperationalError("database or disk is full")

    def refuse(items):
        with service.store._turn, service.store._database.writing():
            raise full

    service.store.append = refuse
    status, _, headers = client.post(f"/v1/events/{second}/feedback", {"labels": [0, 1, 0, 0, 0, 0]})
    assert (status, headers["retry-after"]) == (503, "1")
    assert client.get("/readyz")[0] == 503
    third = client.rank(X.tolist())["event"]
    assert client.feedback(third, clicks=[])[0] == 503
    service.store.append = append
    assert client.feedback(second, labels=[0, 1, 0, 0, 0, 0]) == (
        202,
        {"event": second, "seq": 2, "status": "accepted"},
    )
    assert client.feedback(third, clicks=[])[0] == 202  # its event was not lost
    assert client.get("/readyz")[0] == 200


def test_a_database_that_restarts_loses_nothing(postgres):
    running = Running(postgres.new_database(), fitted())
    client = running.client()
    labels = {"labels": [1, 0, 0, 0, 2, 0]}
    before = client.rank(X.tolist())["event"]
    assert client.feedback(before, **labels)[0] == 202
    postgres.stop()
    meanwhile = [client.rank(X.tolist())["event"] for _ in range(3)]
    assert client.feedback(meanwhile[0], **labels)[0] == 503
    postgres.start()
    until(lambda: client.feedback(meanwhile[0], **labels)[0] in (200, 202))
    for event in meanwhile[1:]:
        assert client.feedback(event, **labels)[0] == 202
    assert client.feedback(before, **labels)[1]["status"] == "duplicate"
    until(lambda: client.get("/v1/models")[1]["position"] == 4)
    running.stop()


def test_feedback_that_comes_too_late(tmp_path, monkeypatch):
    running = Running(str(tmp_path / "events.db"), fitted(), reward_wait=30.0)
    client = running.client()
    event = client.rank(X.tolist())["event"]
    until(lambda: running.service.writer.waiting == 0)
    now = time.time() + 31.0
    monkeypatch.setattr(running.store._database, "now", lambda cursor: now)
    status, problem = client.feedback(event, clicks=[])
    assert (status, problem["detail"]) == (
        410,
        f"the event {event} took feedback for 30 seconds, and that time has passed.",
    )
    until(lambda: client.get("/v1/models")[1]["learning"]["position"] == 1)
    assert client.get("/v1/events")[1]["events"][0]["feedback"] == "none in time"
    running.stop()


def test_two_processes_share_a_store(url):
    one = Running(url, fitted())
    two = Running(url)
    clients = one.client(), two.client()
    for client, other in (clients, clients[::-1]):
        event = client.rank(X.tolist())["event"]
        assert other.feedback(event, labels=[1, 0, 0, 0, 0, 0])[0] == 202  # it may not be stored yet
    for client in clients:
        until(lambda client=client: client.get("/v1/models")[1]["position"] == 2)
    assert sorted(running.service.learner.learns for running in (one, two)) == [False, True]
    assert clients[0].rank(X.tolist())["scores"] == clients[1].rank(X.tolist())["scores"]
    one.stop()
    two.stop()


def test_feedback_looks_for_a_new_event_without_writing(url):
    running = Running(url, fitted())
    client, other = running.client(), open_store(url)
    store, written, looked = running.store, [], []
    append, event = store.append, store.event
    store.append = lambda items: written.extend(items) or append(items)

    def look(id):
        looked.append(id)
        if stored is not None and len(looked) == 3:
            other.append([stored])  # by another process, while feedback waits
        return event(id)

    store.event = look
    shown = Shown(["a", "b"], [0, 1], 1, 3, "<f8")
    stored = Event(event_id(), time.time(), shown, np.zeros((2, 3)).tobytes())
    assert client.feedback(stored.id, labels=[1, 0])[0] == 202
    assert (len(looked), len(written)) == (3, 2)

    looked.clear(), written.clear()
    stored, id = None, event_id()
    start = time.monotonic()
    assert client.feedback(id, labels=[1, 0])[0] == 404
    assert time.monotonic() - start >= 1.0
    assert len(looked) > 1
    assert len(written) == 1

    looked.clear(), written.clear()
    assert client.feedback("0" * 32, labels=[1, 0])[0] == 404  # too old to be on its way
    assert (len(looked), len(written)) == (0, 1)
    other.close()
    running.stop()


def test_exploration_is_stored_with_the_event(tmp_path):
    running = Running(str(tmp_path / "a.db"), fitted(), explore="epsilon", epsilon=0.5)
    client = running.client()
    for _ in range(20):
        client.rank(X.tolist())
    until(lambda: len(list(running.store.recent_events(100))) == 20)
    best = np.argsort(-fitted().predict(X), kind="stable")
    for id, *_ in running.store.recent_events(100):
        event = running.store.event(id)
        expected = 0.5 / 6 + 0.5 * (np.array(event.shown.order) == best)
        assert event.shown.propensities == pytest.approx(expected)
    running.stop()
    running = Running(
        str(tmp_path / "b.db"),
        {"champion": fitted(), "challenger": ranksvm.PairwisePerceptronRanker()},
        explore="team-draft",
    )
    client = running.client()
    ranking = client.rank(X.tolist())
    assert ranking["policy"] == "team-draft"
    client.feedback(ranking["event"], clicks=ranking["order"][:1])
    until(lambda: client.get("/v1/models")[1]["position"] == 1)
    counts = client.get("/v1/models")[1]["team_draft"]
    assert counts["champion"] + counts["challenger"] == 1
    running.stop()


def test_metrics_and_description(client):
    client.rank(X.tolist())
    text = client.get("/metrics")[1].decode()
    assert 'ranksvm_requests_total{path="/v1/rank",status="200"} 1.0' in text
    assert "ranksvm_version 1.0" in text
    described = client.get("/openapi.json")[1]
    assert described["openapi"] == "3.1.0"
    feedback = described["components"]["schemas"]["Feedback"]["properties"]
    assert "seconds since 1970" in feedback["at"]["description"]
    assert "have no label" in feedback["labels"]["description"]
    assert set(described["paths"]["/v1/events/{event}/feedback"]["post"]["responses"]) >= {"202", "200", "404", "409"}


def test_a_restarted_service_continues(tmp_path):
    url = str(tmp_path / "events.db")
    running = Running(url, fitted(), schedule=Schedule(1000, 1000.0))
    client = running.client()
    for _ in range(3):
        client.feedback(client.rank(X.tolist())["event"], labels=[0, 0, 0, 1, 2, 3])
    client.close()
    running.stop()  # a checkpoint is written in the end
    running = Running(url)
    client = running.client()
    assert client.get("/v1/models")[1]["position"] == 3
    running.stop()


def test_a_learner_that_is_killed_alone_is_started_again(tmp_path):
    running = Running(str(tmp_path / "events.db"), fitted(), process=True)
    client = running.client()
    learner = running.service.learner

    def answer():
        event = client.rank(X.tolist())["event"]
        assert client.feedback(event, labels=[0, 0, 0, 1, 2, 3])[0] == 202

    answer()
    until(lambda: client.get("/v1/models")[1]["position"] == 1)
    killed = learner._process
    killed.kill()
    answer()  # ranking and feedback go on
    until(lambda: learner._process is not killed)
    until(lambda: client.get("/v1/models")[1]["position"] == 2)
    client.close()
    running.stop()
