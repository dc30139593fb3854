"""Odd bodies of requests: what is wrong and where, never an error of the service."""

import http.client
import json

import numpy as np
import pytest

import ranksvm
from counted_list import CountedList

from .http_service import Running

pytest.importorskip("starlette", reason="starlette is not installed: no service is tested")
pytest.importorskip("uvicorn", reason="uvicorn is not installed: no service is tested")

from ranksvm.serving.requests import JSON, NDJSON, Limits, Problem, parsed

HUGE, ENDLESS = 10**30, 10**400


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    path = tmp_path_factory.mktemp("bodies") / "events.db"
    running = Running(str(path), ranksvm.SOLARRanker(random_state=0))
    client = running.client()
    yield client
    client.close()
    running.stop()


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (b'{"labels": [%d, 0]}' % HUGE, 422, "a label is an integer beyond 64 bits"),
        (b'{"labels": {"0": %d}}' % ENDLESS, 422, "a label is an integer beyond 64 bits"),
        (b'{"clicks": ["0"], "at": %d}' % HUGE, 422, "at is an integer beyond 64 bits"),
        (b'{"clicks": ["0"], "at": 1e400}', 422, "out of range"),
        (b'{"labels": [NaN, 0]}', 400, "NaN is not a valid JSON number"),
        (b'{"labels": [-Infinity, 0]}', 400, "-Infinity is not a valid JSON number"),
        (b'{"labels": [1, 0], "labels": [0, 1]}', 422, "the name 'labels' occurs twice"),
        (b'{"labels": {"0": 1, "0": 2}}', 422, "the name '0' occurs twice"),
        (b'{"clicks": ["\xff"]}', 400, "not JSON"),
        (b'{"clicks": ["\\ud800"]}', 400, "not JSON"),
        (b'{"preferences": [["0"]]}', 422, "length 2"),
        (b"[]", 422, "object"),
        (b"", 400, "not JSON"),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_odd_feedback(client, body, status, words):
    event = client.rank([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])["event"]
    found, problem, _ = client.send("POST", f"/v1/events/{event}/feedback", body)
    assert (found, words in problem["detail"]) == (status, True), problem


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (b'{"matrix": [[%d, 0, 0]]}' % ENDLESS, 422, "beyond the range"),
        (b'{"matrix": [[1, 0, 0]], "matrix": [[0, 1, 0]]}', 422, "the name 'matrix' occurs twice"),
        (b'{"matrix": [[1, 0, 0]], "m\\u0061trix": [[0, 1, 0]]}', 422, "the name 'matrix' occurs twice"),
        (b'{"matri\\u0078": [[1, 0, 0]], "matrix": [[0, 1, 0]]}', 422, "the name 'matrix' occurs twice"),
        (b'{"matrix": [[1, 0, 0]], "query": "a", "query": "b"}', 422, "the name 'query' occurs twice"),
        (b'{"matrix": [[Infinity, 0, 0]]}', 400, "Infinity is not a valid JSON number"),
        (b'{"documents": [{"id": "a", "features": [%d, 0, 0]}]}' % ENDLESS, 422, "beyond the range"),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_odd_requests(client, body, status, words):
    found, problem, _ = client.send("POST", "/v1/rank", body)
    assert (found, words in problem["detail"]) == (status, True), problem


@pytest.mark.parametrize(
    ("document", "name"),
    [
        ('{"id": "a", "features": {"f1": 1, "f1": 7}}', "f1"),
        ('{"id": "a", "features": {"f1": 1, "\\u00661" : 7}}', "f1"),
        ('{"id": "a", "id": "b", "features": [1]}', "id"),
        ('{"id": "a", "features": [1], "features": [7]}', "features"),
    ],
)
@pytest.mark.parametrize("kind", [JSON, NDJSON])
def test_a_name_that_is_twice_in_a_document_is_refused(document, name, kind):
    body = f'{{"documents": [{document}]}}' if kind == JSON else f"\n{document}\n"
    with pytest.raises(Problem, match=f"the name '{name}' occurs twice in one object"):
        parsed(kind, body.encode(), None, ["f1"], Limits())


@pytest.mark.parametrize("id", ["a", 'a"b', "http://a/b", ""])
@pytest.mark.parametrize("kind", [JSON, NDJSON])
def test_documents_with_any_ids_have_each_name_once(id, kind):
    documents = [{"id": id, "features": {"f1": 2**64}}, {"id": "c", "features": [-(2**70)]}]
    lines = [json.dumps(each) for each in documents]
    body = json.dumps({"documents": documents, "query": 'q"', "ids": None}) if kind == JSON else "\n".join(lines)
    found = parsed(kind, body.encode(), None, ["f1"], Limits())
    assert (found.documents, found.X.tolist()) == ([id, "c"], [[2.0**64], [-(2.0**70)]])


def test_a_wrong_name_among_many_is_found_in_linear_time():
    names = CountedList(f"f{number}" for number in range(1, 201))
    features = dict.fromkeys([*names[:-1], "other"], 1.0)
    body = json.dumps({"documents": [{"id": "a", "features": features}]}).encode()
    names.n_iterations = 0
    with pytest.raises(Problem, match="'other', which the model lacks"):
        parsed(JSON, body, None, names, Limits())
    assert names.n_iterations <= 5  # 200 if each name is looked for in a new set of all names


def test_names_of_fields_may_be_ids_and_queries(client):
    body = {"matrix": np.eye(3).tolist(), "ids": ["matrix", "ids", "query"], "query": "documents"}
    assert sorted(client.post("/v1/rank", body)[1]["order"]) == ["ids", "matrix", "query"]


def test_a_name_that_is_twice_in_an_activation_is_refused(client):
    status, problem, _ = client.post("/v1/models/1/activate", b'{"model": "champion", "model": "champion"}')
    assert (status, problem["detail"]) == (422, "the name 'model' occurs twice in one object of the body.")


def test_a_second_header_with_an_encoding_counts(client):
    connection = http.client.HTTPConnection("127.0.0.1", client.port)
    connection.putrequest("POST", "/v1/rank")
    for name, value in (("Type", "application/octet-stream"), ("Length", "12"), ("Encoding", "identity")):
        connection.putheader(f"Content-{name}", value)
    connection.putheader("Content-Encoding", "gzip")
    connection.endheaders(bytes(12))
    answer = connection.getresponse()
    assert (answer.status, b"'identity, gzip'" in answer.read()) == (415, True)
    connection.close()


def test_a_length_may_have_leading_zeros(client):
    body = b'{"matrix": [[1, 0, 0]]}'
    assert client.post("/v1/rank", body, Content_Length=f"{len(body):05000}")[0] == 200


def test_numbers_at_the_edge_are_taken(client):
    for labels in ([2**63 - 1, -(2**63)], [1.7e308, -1.7e308], [0.5, -0.0]):
        event = client.rank([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])["event"]
        assert client.feedback(event, labels=labels)[0] == 202


def test_too_little_memory_is_not_the_end_of_the_service(client, monkeypatch):
    def lacking(*_, **__):
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr("ranksvm._compiled.json_matrix.read", lacking)
        status, problem, _ = client.send("POST", "/v1/rank", b'{"matrix": [[1, 0, 0]]}')
    assert (status, problem["type"]) == (503, "urn:ranksvm:problem:memory")
    assert client.rank([[1.0, 0.0, 0.0]])
