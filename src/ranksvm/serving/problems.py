"""Errors of the HTTP interface, as problem details (RFC 9457)."""

import http
from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.responses import Response

__all__ = ["Problem", "TYPE", "response_of"]

TYPE = "application/problem+json"


class Problem(Exception):  # noqa: N818 (the name of RFC 9457)
    """An error that is reported in the response to a request.

    Parameters
    ----------
    status : int
        HTTP status code.
    code : str
        What happened, for programs: ``urn:ranksvm:problem:CODE``.
    detail : str
        What happened, and what to do, for people.
    headers : mapping of str to str, optional
        Additional headers of the response.
    """

    def __init__(self, status: int, code: str, detail: str, headers: Mapping[str, str] | None = None):
        super().__init__(detail)
        self.status, self.code, self.detail, self.headers = status, code, detail, headers


def response_of(problem: Problem) -> Response:
    """The HTTP response that reports a problem."""
    content: dict[str, Any] = {
        "type": f"urn:ranksvm:problem:{problem.code}",
        "title": http.HTTPStatus(problem.status).phrase,
        "status": problem.status,
        "detail": problem.detail,
    }
    return Response(msgspec.json.encode(content), problem.status, problem.headers, TYPE)
