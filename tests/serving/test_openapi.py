"""The description of the interface is true: schemathesis finds no answer that it does not declare, and no 5xx."""

import os

import hypothesis
import numpy as np
import pytest

import ranksvm

from .http_service import Running

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed: the API is not fuzzed")
pytest.importorskip("starlette", reason="starlette is not installed: no service is tested")
pytest.importorskip("uvicorn", reason="uvicorn is not installed: no service is tested")

# requests go to an address of this machine, whatever proxies the environment names
os.environ.setdefault("NO_PROXY", "127.0.0.1")


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    """A service with an event."""
    service = Running(str(tmp_path_factory.mktemp("api") / "events.db"), ranksvm.SOLARRanker(order=2, random_state=0))
    client = service.client()
    client.rank(np.eye(3).tolist())
    client.close()
    yield service
    service.stop()


def test_every_answer_is_declared(running):
    from schemathesis import checks
    from schemathesis.specs.openapi import checks as openapi_checks

    wanted = [
        checks.not_a_server_error,
        openapi_checks.status_code_conformance,
        openapi_checks.content_type_conformance,
        openapi_checks.response_schema_conformance,
    ]

    @schemathesis.serializer("application/x-ndjson")
    def lines(_, value):
        return str(value).encode(errors="replace")

    schema = schemathesis.openapi.from_url(f"http://127.0.0.1:{running.port}/openapi.json")
    seen = set()
    for found in schema.get_all_operations():
        seen |= fuzzed(found.ok(), wanted)
    assert {label for label, _ in seen} >= {"POST /v1/rank", "POST /v1/events/{event}/feedback", "GET /v1/models"}
    assert not [status for _, status in seen if status >= 500]


def fuzzed(operation, wanted):
    """The answers to made requests of one operation, which are checked."""
    seen = set()

    @hypothesis.settings(max_examples=20, derandomize=True, suppress_health_check=list(hypothesis.HealthCheck))
    @hypothesis.given(case=operation.as_strategy())
    def one(case):
        answer = case.call()
        case.validate_response(answer, checks=wanted)
        seen.add((operation.label, answer.status_code))

    one()
    return seen
