"""Requests to rank in JSON, lines of JSON, or float32 numbers, the responses to them, and errors as problem details."""

import http
import json
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, TypeVar

import msgspec
import numpy as np
from starlette.responses import Response

import ranksvm._compiled.json_matrix as json_matrix
import ranksvm._compiled.linear as linear
from ranksvm._util.checks import first_repeated

__all__ = [
    "FLOAT32",
    "JSON",
    "NDJSON",
    "PROBLEM_JSON",
    "Activation",
    "Document",
    "Limits",
    "Problem",
    "RankRequest",
    "Ranking",
    "Request",
    "check_repeated",
    "check_width",
    "parsed",
    "response_of",
]

JSON, NDJSON, FLOAT32 = "application/json", "application/x-ndjson", "application/octet-stream"
PROBLEM_JSON = "application/problem+json"

Number = int | float
T = TypeVar("T")


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
    return Response(msgspec.json.encode(content), problem.status, problem.headers, PROBLEM_JSON)


class Document(msgspec.Struct, forbid_unknown_fields=True):
    """A document to rank.

    Parameters
    ----------
    id : str
        Its id, distinct within the request.
    features : dict of str to float, or list of float
        Its features, by name or in the order of the model.
    """

    id: str
    features: dict[str, Number] | list[Number]


class RankRequest(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """Documents to rank: as `documents`, or as a `matrix`.

    Parameters
    ----------
    documents : list of Document, optional
        Documents with their features.
    matrix : list of list of float, optional
        Features of the documents, in the order of the model.
    ids : list of str, optional
        Ids of the rows of the matrix; None: the row numbers, from 0.
    query : str, optional
        Name of the query.
    """

    documents: list[Document] | None = None
    matrix: list[list[Number]] | None = None
    ids: list[str] | None = None
    query: str | None = None


class Ranking(msgspec.Struct):
    """The response to a request to rank.

    Parameters
    ----------
    event : str
        Id of the event, for feedback.
    version : int
        Version of the model.
    order : list of str
        Ids of the documents, best first.
    scores : list of float
        Scores of the champion, in this order.
    policy : str
        What chose the order.
    """

    event: str
    version: int
    order: list[str]
    scores: list[float]
    policy: str


class Activation(msgspec.Struct, forbid_unknown_fields=True):
    """The model of a version that becomes the champion.

    Parameters
    ----------
    model : str
        "champion" or "challenger".
    """

    model: str = "champion"


class Limits(msgspec.Struct, frozen=True):
    """Upper limits on the size and time of requests.

    Parameters
    ----------
    body : int
        Number of bytes of a body.
    documents : int
        Number of documents in a request.
    text : int
        Number of characters in an id or the name of a query.
    head : int
        Number of bytes of the address and the headers of a request.
    head_seconds, body_seconds : float
        Seconds in which the head of a request, and then its body, must arrive. The connection is also closed if the
        client reads nothing of a response for `body_seconds`.
    connections : int
        Number of connections of a client.
    """

    body: int = 8 << 20
    documents: int = 2_000
    text: int = 256
    head: int = 64 << 10
    head_seconds: float = 10.0
    body_seconds: float = 60.0
    connections: int = 256


class Request(msgspec.Struct):
    """Documents to rank, after checks.

    Parameters
    ----------
    documents : list of str
        Their ids.
    X : ndarray of float32 or float64, shape (n_documents, n_features)
        Their features.
    query : str or None
        Name of the query.
    """

    documents: list[str]
    X: np.ndarray
    query: str | None


# Names of the fields of a RankRequest in a body.
_NAMES = tuple(f'"{name}"'.encode() for name in RankRequest.__struct_fields__)
_rank_decoder = msgspec.json.Decoder(RankRequest)
_lines_decoder = msgspec.json.Decoder(Document)


def parsed(kind: str, body: bytes, query: str | None, names: list[str], limits: Limits) -> Request:
    """The documents of a request.

    Parameters
    ----------
    kind : str
        Media type of the body.
    body : bytes
        The body.
    query : str or None
        Name of the query, from the address, for bodies that have none.
    names : list of str
        Names of the features.
    limits : Limits
        Limits on the size of the request.

    Returns
    -------
    Request
        The documents.

    Raises
    ------
    Problem
        When the body is malformed, or does not fit the model.
    """
    if kind == JSON:
        given, X = _rank_request(body)
        check_repeated(body, _NAMES)
        if query is not None:
            raise Problem(422, "two-queries", "a JSON body names the query itself: leave ?query= out of the address.")
        if (given.documents is None) == (given.matrix is None):
            raise Problem(422, "documents", "a request must have either documents or a matrix.")
        if given.documents is not None:
            n_strings = 1 + 2 * (given.query is not None)
            if body.count(b'"') > 2 * (n_strings + _n_strings(given.documents)):
                check_repeated(body)
            if given.ids is not None:
                raise Problem(422, "documents", "ids belong to a matrix: documents have their own.")
            request = _of_documents(given.documents, given.query, names, limits)
        else:
            rows = given.matrix if X is None else X
            assert rows is not None
            request = _of_matrix(rows, given.ids, given.query, names, limits)
    elif kind == NDJSON:
        lines = [line for line in body.split(b"\n") if line.strip()]
        _check_count(len(lines), limits)
        documents = [decoded(_lines_decoder, line) for line in lines]
        if body.count(b'"') > 2 * _n_strings(documents):
            for line in lines:
                check_repeated(line)
        request = _of_documents(documents, query, names, limits)
    elif kind == FLOAT32:
        request = _of_float32(body, query, names, limits)
    else:
        kinds = ", ".join((JSON, NDJSON, FLOAT32))
        raise Problem(415, "media-type", f"the type of the body is {kind or 'not given'!r}; known are {kinds}.")
    _check_text(request, limits)
    if not linear.all_finite(request.X.reshape(-1)):  # takes half the time of np.isfinite
        row, column = np.argwhere(~np.isfinite(request.X))[0]
        where = f"document {request.documents[row]!r}, feature {names[column]!r}"
        raise Problem(422, "not-finite", f"a feature is not a finite number: {where}.")
    return request


def _rank_request(body: bytes) -> tuple[RankRequest, np.ndarray | None]:
    """The request in a JSON body; its matrix is returned separately if the fast reader can read it.

    msgspec would create an object for each number of the matrix, which takes three quarters of a request's time.
    """
    found = None if (at := body.find(b'"matrix"')) < 0 else json_matrix.read(body + json_matrix.PADDING, at + 8)
    if found is not None:
        n_rows, n_columns, start, stop, numbers = found
        # the reader of the whole body reports all other errors, and handles a body with two matrices
        with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            given = _rank_decoder.decode(body[:start] + b"[]" + body[stop:])
            if given.matrix == []:
                return given, np.frombuffer(numbers).reshape(n_rows, n_columns)
    return decoded(_rank_decoder, body), None


def decoded(decoder: msgspec.json.Decoder[T], body: bytes) -> T:
    """The content of a body of JSON."""
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise Problem(422, "content", f"{error}.") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        other = re.search(rb"[\[:,]\s*(-?(?:NaN|Infinity))\b", body)
        number = f" {other[1].decode()} is not a valid JSON number: omit it, or send another value." if other else ""
        raise Problem(400, "malformed", f"the body is not JSON: {error}.{number}") from None


def check_repeated(body: bytes, names: Iterable[bytes] | None = None) -> None:
    """Refuse a name that occurs twice in an object of a JSON body: JSON readers disagree about which one counts.

    Parameters
    ----------
    body : bytes
        The body, which is JSON.
    names : iterable of bytes, optional
        The names that must not be repeated, in quotation marks as in the body; None: all.

    Raises
    ------
    Problem
        When a name occurs twice.
    """
    # a letter of a name may be escaped: a is \u0061, z is \u007a
    escaped = b"\\u006" in body or b"\\u007" in body
    if names is None or escaped or any(body.count(name) > 1 for name in names):
        # integers as float, which may have any number of digits
        json.loads(body, object_pairs_hook=_pairs, parse_int=float)


def _n_strings(documents: list[Document]) -> int:
    """The number of strings in the JSON of documents if no name is repeated; each has two quotation marks.

    A body with more quotation marks is read again to find repeated names, which takes several times as long.
    """
    return sum(3 + (len(each.features) if isinstance(each.features, dict) else 0) for each in documents)


def _pairs(pairs: list[tuple[str, T]]) -> dict[str, T]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = first_repeated(name for name, _ in pairs)
        raise Problem(422, "repeated", f"the name {twice!r} occurs twice in one object of the body.")
    return found


def _check_count(n_documents: int, limits: Limits) -> None:
    if n_documents == 0:
        raise Problem(422, "documents", "there are no documents to rank.")
    if n_documents > limits.documents:
        raise Problem(413, "documents", f"{n_documents} documents are more than the limit of {limits.documents}.")


def _check_text(request: Request, limits: Limits) -> None:
    if len(set(request.documents)) < len(request.documents):
        twice = first_repeated(request.documents)
        raise Problem(422, "duplicate-document", f"the request has document {twice!r} twice.")
    longest = max(map(len, request.documents))
    if max(longest, len(request.query or "")) > limits.text:
        raise Problem(422, "too-long", f"ids and names of queries must not have more than {limits.text} characters.")


def _of_documents(documents: list[Document], query: str | None, names: list[str], limits: Limits) -> Request:
    _check_count(len(documents), limits)
    rows = []
    for document in documents:
        features = document.features
        if isinstance(features, dict):
            # the usual case in one pass; errors are located afterwards
            try:
                row = [features[name] for name in names]
            except KeyError:
                row = []
            if len(row) != len(features) or not row:
                raise _names_problem(document.id, features, names)
        else:
            row = features
            check_width(len(row), f"document {document.id!r}", names)
        rows.append(row)
    return Request([document.id for document in documents], _array(rows), query)


def _names_problem(id: str, features: dict[str, Number], names: list[str]) -> Problem:
    known = set(names)
    unknown = [name for name in features if name not in known]
    if unknown:
        return Problem(422, "unknown-feature", f"document {id!r} has a feature {unknown[0]!r}, which the model lacks.")
    missing = [name for name in names if name not in features]
    return Problem(422, "missing-feature", f"document {id!r} lacks {len(missing)} features, such as {missing[0]!r}.")


def check_width(width: int, what: str, names: list[str]) -> None:
    """Refuse documents whose number of features differs from the model's.

    Parameters
    ----------
    width : int
        Number of features.
    what : str
        What has these features, for the message.
    names : list of str
        Names of the model's features.

    Raises
    ------
    Problem
        When they differ.
    """
    if width != len(names):
        raise Problem(422, "features", f"{what} has {width} features, but the model has {len(names)}.")


def _of_matrix(
    matrix: list[list[Number]] | np.ndarray, ids: list[str] | None, query: str | None, names: list[str], limits: Limits
) -> Request:
    _check_count(len(matrix), limits)
    # all rows of an array have the same length
    for number, row in enumerate(matrix[:1] if isinstance(matrix, np.ndarray) else matrix):
        check_width(len(row), f"row {number} of the matrix", names)
    X = _array(matrix)
    return Request(_ids(ids, len(X)), X, query)


def _ids(ids: list[str] | None, n_rows: int) -> list[str]:
    if ids is None:
        return [str(row) for row in range(n_rows)]
    if len(ids) != n_rows:
        raise Problem(422, "ids", f"there are {len(ids)} ids for {n_rows} rows.")
    return ids


def _array(rows: list[list[Number]] | np.ndarray) -> np.ndarray:
    try:
        return np.asarray(rows, dtype=np.float64)
    except OverflowError:
        raise Problem(422, "not-finite", "a feature is an integer beyond the range of float64.") from None


def _of_float32(body: bytes, query: str | None, names: list[str], limits: Limits) -> Request:
    row = 4 * len(names)
    if len(body) % row:
        text = f"a body of {len(body)} bytes is not a whole number of rows: a row of {len(names)} float32 has {row}."
        raise Problem(422, "features", text)
    _check_count(len(body) // row, limits)
    X = np.frombuffer(body, "<f4").reshape(-1, len(names))
    return Request(_ids(None, len(X)), X, query)
