"""The description of the HTTP interface, generated from the types of requests."""

from typing import Any

import msgspec

import ranksvm
from ranksvm.serving.feedback import Feedback
from ranksvm.serving.requests import FLOAT32, JSON, NDJSON, PROBLEM_JSON, Activation, Ranking, RankRequest

__all__ = ["openapi"]

_PROBLEM = {
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
    },
}
_RECEIPT = {
    "type": "object",
    "required": ["event", "seq", "status"],
    "properties": {
        "event": {"type": "string"},
        "seq": {"type": "integer"},
        "status": {"enum": ["accepted", "duplicate"]},
    },
}
# Meaning of the fields of feedback, which the types do not express.
_OF_FEEDBACK = {
    "labels": "Relevance by document id, or a list in the order of the request. Documents that the object does not "
    "list have no label: the models learn nothing from them, and no metric counts them.",
    "clicks": "Ids of the documents that were clicked on. Documents that are not listed were shown and not clicked on.",
    "preferences": "Pairs of ids, the preferred document first, each pair once. Nothing is learned from documents in "
    "no pair.",
    "at": "When it was observed, by the clock of the client: seconds since 1970-01-01 UTC, or ISO 8601 text. It is "
    "stored, but neither checked nor used to learn.",
}
_OBJECT = {"type": "object"}
# Status codes that a response from any address may have.
_ALWAYS = (401, 403, 408, 429, 431, 503)
_REASONS = {
    400: "The body is malformed.",
    401: "An API key is needed.",
    403: "The API key lacks the scope, or the host or the origin is refused.",
    404: "There is no such event or version.",
    408: "The request did not arrive in time.",
    409: "The request contradicts what is stored.",
    410: "The time for feedback has passed, or the version is not stored any more.",
    413: "The body is too large, or has too many documents.",
    415: "The type or the encoding of the body is unknown.",
    422: "The content is invalid.",
    429: "There are too many requests or connections.",
    431: "The address and the headers are too large.",
    503: "The store does not answer: try again after Retry-After seconds.",
}


def openapi() -> dict[str, Any]:
    """The description, as OpenAPI 3.1."""
    types = (RankRequest, Ranking, Feedback, Activation)
    schemas, components = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    rank, ranking, feedback, activation = schemas
    for name, text in _OF_FEEDBACK.items():
        components["Feedback"]["properties"][name]["description"] = text
    query = _parameter("query", "query", "Name of the query, for bodies that are not JSON.", {"type": "string"})
    width = _parameter(
        "features",
        "query",
        "Features of each document. Refused unless it equals the model's; a binary body does not carry its own width.",
        {"type": "integer", "minimum": 1, "maximum": 10**9},
    )
    event = _parameter("event", "path", "Id of the event.", {"type": "string"})
    version = _parameter("version", "path", "Number of the version.", {"type": "integer", "minimum": 1})
    limit = _parameter("limit", "query", "Number of events.", {"type": "integer", "minimum": 1, "maximum": 200})
    bodies = {
        JSON: {"schema": rank},
        NDJSON: {"schema": {"type": "string", "description": "One document a line, as in documents."}},
        FLOAT32: {"schema": {"type": "string", "format": "binary", "description": "Little-endian rows of features."}},
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "ranksvm",
            "version": ranksvm.__version__,
            "summary": "Ranks documents, takes feedback, and learns from it.",
        },
        "paths": {
            "/v1/rank": {
                "post": _operation(
                    "rank",
                    "Rank documents.",
                    {200: ranking},
                    (400, 413, 415, 422),
                    parameters=[query, width],
                    bodies=bodies,
                )
            },
            "/v1/events": {"get": _operation("events", "The newest events.", {200: _OBJECT}, (422,), [limit])},
            "/v1/events/{event}/feedback": {
                "post": _operation(
                    "feedback",
                    "Give feedback on an event: 202 when it is on disk, 200 if the same feedback was stored before.",
                    {202: _RECEIPT, 200: _RECEIPT},
                    (400, 404, 409, 410, 413, 415, 422),
                    parameters=[event],
                    bodies={JSON: {"schema": feedback}},
                )
            },
            "/v1/events/{event}/explain": {
                "get": _operation("explain", "Why the event was ranked as it was.", {200: _OBJECT}, (404, 410), [event])
            },
            "/v1/models": {"get": _operation("models", "Versions of models, quality, weights.", {200: _OBJECT}, ())},
            "/v1/models/{version}/activate": {
                "post": _operation(
                    "activate",
                    "Make a model of an earlier version the champion.",
                    {202: _OBJECT},
                    (400, 404, 409, 410, 413, 415, 422),
                    parameters=[version],
                    bodies={JSON: {"schema": activation}},
                )
            },
            "/healthz": {"get": _operation("healthz", "Whether the process answers.", {200: _OBJECT}, ())},
            "/readyz": {"get": _operation("readyz", "Whether events can be stored.", {200: _OBJECT}, ())},
        },
        "components": {
            "schemas": {**components, "Problem": _PROBLEM},
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"key": []}],
    }


def _operation(
    name: str,
    summary: str,
    answers: dict[int, Any],
    problems: tuple[int, ...],
    parameters: list[Any] | None = None,
    bodies: dict[str, Any] | None = None,
) -> dict[str, Any]:
    problem = {PROBLEM_JSON: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    responses: dict[str, Any] = {
        str(status): {"description": summary, "content": {JSON: {"schema": schema}}}
        for status, schema in answers.items()
    }
    for status in sorted({*problems, *_ALWAYS}):
        responses[str(status)] = {"description": _REASONS[status], "content": problem}
    described: dict[str, Any] = {"operationId": name, "summary": summary, "responses": responses}
    if parameters:
        described["parameters"] = parameters
    if bodies:
        described["requestBody"] = {"required": True, "content": bodies}
    return described


def _parameter(name: str, place: str, text: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "in": place, "description": text, "required": place == "path", "schema": schema}
