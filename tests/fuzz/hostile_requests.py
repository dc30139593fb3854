"""Requests to a service as bytes: ordinary ones, and any that an attacker may send."""

import json
import struct
from dataclasses import dataclass

import numpy as np

from fuzz.mutations import FLOATS, changed_bytes, changed_json, pick

RANK = "/v1/rank"
JSON, NDJSON, FLOAT32 = "application/json", "application/x-ndjson", "application/octet-stream"
# Text in place of numbers: invalid numbers, and valid ones that look odd.
LITERALS = (
    *("NaN", "Infinity", "-Infinity", "nan", "inf", "-", "+1", "01", "-01", "1.", ".5", "1e", "1e+", "0x10", "1_000"),
    *("9" * 309, "-" + "9" * 400, "9" * 4300, "9" * 4301, "9" * 20000),
    *("1e400", "-1e400", "1e-400", "1E5", "-0", "-0.0", "0e0", "1e00000001", "0.1" + "0" * 800 + "1", "1" + "0" * 700),
    *("true", "null", '"1"', "[]", "[1]", "{}", "", " 1 ", "9223372036854775808", "18446744073709551616", "1,", "\0"),
)
FINITE = [value for value in FLOATS if np.isfinite(value)]
TEXTS = (
    *(
        "",
        " ",
        "0",
        "a",
        "matrix",
        "documents",
        "query",
        "ids",
        "labels",
        "\0",
        "\n",
        '"',
        "\\",
        "é",
        "\U0001f600",
        "\u202e",
    ),
    *("x" * 256, "x" * 257, "x" * 5000, "../../etc/passwd", "<script>", "'; DROP TABLE events; --", "{id}", "%s"),
)
PATHS = (
    *("/", "/page.css", "/page.js", "/healthz", "/readyz", "/metrics", "/openapi.json", "/v1/models", "/v1/events"),
    *("/%0a", "/page.css%0a", "/page.js%0A", "/page%2ehtml", "//", "/.", "/..", "/../page.html", "/assets/page.html"),
    *("/v1", "/v1/", "/v1/rank", "/v1/rank/", "/v1/rank%0a", "/v1//rank", "/V1/RANK", "/v1/rank;x", "/v1/events/"),
    *("/v1/events//feedback", "/v1/events/%2e%2e/explain", "/v1/events/%ff/explain", "/v1/events/%00/feedback"),
    *("/v1/events/a%2fb/explain", "/v1/models//activate", "/v1/models/1%0a/activate", "/healthz%00", "*", "x", ""),
    *("http://other.example/", "http://[/", "//other.example/v1/models", "/%", "/%zz", "/%e2%80%ae", "/é", "/" * 4000),
)
QUERIES = (
    *("", "", "", "?", "?limit=1", "?limit=200", "?limit=0", "?limit=-1", "?limit=1e3", "?limit=%D9%A1", "?limit=²"),
    *("?limit=" + "9" * 5000, "?limit=1&limit=2", "?query=a", "?query=", "?query=%ff", "?query=" + "q" * 300, "?%"),
    *("?features=3", "?features=4", "?features=x", "?features=" + "1" * 4500, "?&&&==&", "?" + "a=b&" * 300, "?é=é"),
)
HOSTS = (
    *("localhost", "LOCALHOST", "127.0.0.1", "[::1]", "127.attacker.example", "evil.example", "[", "]", "[::", "", " "),
    *("localhost/../../dev/zero?", "localhost:99999", "localhost:x", "a@localhost", "localhost@evil", "127.1", "é"),
    *("localhost\t", "127.0.0.1.evil", "%00", "a" * 2000),
)
ORIGINS = ("null", "//[", "http://[", "http://evil.example", "http://", "", "//", "http://localhost", "é")
TYPES = (
    *(JSON, JSON, NDJSON, FLOAT32, f"{JSON}; charset=utf-16", JSON.upper(), f" {JSON}", f"{JSON};" * 200, "text/plain"),
    *("multipart/form-data; boundary=x", "application/x-www-form-urlencoded", "", "é", ";"),
)
METHODS = ("GET", "POST", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "CONNECT", "get", "BREW", "", "G T")
KEYS = ("", "Bearer", "Bearer ", "Basic eDp5", "Bearer x", "Bearer é", "bearer  \t", "Bearer " + "k" * 3000, "rsvm_")
OTHERS = (
    *(("Expect", "100-continue"), ("Expect", "x"), ("Upgrade", "websocket"), ("Upgrade", "h2c")),
    *(("Connection", "Upgrade"), ("Connection", "close"), ("Content-Encoding", "gzip"), ("Transfer-Encoding", "gzip")),
    *(("X-Forwarded-For", "1.2.3.4, é"), ("X-Forwarded-Proto", "x"), ("X-Http-Method", "PUT"), ("Range", "bytes=0-1")),
    *(("Accept", "*/*" * 500), ("Cookie", "a=b;" * 500), ("X-Long", "v" * 4000)),
    *(("X-Odd", "\x01"), ("X Odd", "x"), ("X-Folded", "a\r\n b"), ("", "x")),
)
LENGTHS = (b"-1", b"+1", b"x", b"1 1", b"", b"0x5", b"9" * 30, b"9" * 5000, b"99999999999", b"\xb2", b"1,1", b"0")
# Sizes of bodies in bytes: from LONG on, the answer may come before the body is sent; above MOST, it is too large.
LONG, MOST = 50_000, 8 << 20
ENCODINGS = (b"chunked", b"chunked, chunked", b"Chunked", b"gzip, chunked")


@dataclass
class Sent:
    """A request, and the answer that is expected.

    Parameters
    ----------
    data : bytes
        The whole request.
    body : bytes
        Its body.
    expected : frozenset of int, or None
        Allowed statuses of the answer; None: any except server errors.
    ids : list of str, or None
        Documents of a ranking, in the order of the request.
    event : Known or None
        Event to which the request gives feedback.
    ends : bool
        Whether the connection cannot be used afterwards.
    framed : bool
        Whether the length of the request is unambiguous, so that it must be answered.
    cut : bool
        Whether the client disconnects before the answer.
    """

    data: bytes
    body: bytes
    expected: frozenset | None = None
    ids: list | None = None
    event: "Known | None" = None
    ends: bool = False
    framed: bool = True
    cut: bool = False

    @property
    def method(self):
        """The HTTP method, which determines whether the answer has a body."""
        return self.data[:20].partition(b" ")[0].decode("latin-1")


@dataclass
class Known:
    """A ranked event: id, documents, accepted feedback, whether this feedback is certain, and its number in the log."""

    event: str
    ids: list
    answered: bytes | None = None
    certain: bool = True
    seq: int | None = None


class Requests:
    """Generate random requests.

    Parameters
    ----------
    random : Generator
        The source of all choices.
    names : list of str
        Names of the features.
    key : str or None
        An API key that allows everything.
    may_expire : bool
        Whether feedback may arrive too late to be accepted.
    """

    def __init__(self, random, names, key=None, may_expire=False):
        self._random, self._names, self._key = random, names, key
        self._late = {410} if may_expire else set()
        self.known = []  # events, the newest last

    def next(self, port):
        """Generate the next request."""
        chance = self._random.random()
        if chance < 0.40:
            return self._rank(port)
        if chance < 0.84 and self.known:
            return self._feedback(port)
        if chance < 0.93:
            return self._address(port)
        return self._odd_frame(port)

    # -- values --------------------------------------------------------------------------------------------------------

    def _double(self):
        """Any finite double, each pattern of bits as likely as any other."""
        while True:
            (value,) = struct.unpack("<d", self._random.bytes(8))
            if np.isfinite(value):
                return value

    def _style(self):
        """The style of the numbers of a request; None: ordinary numbers; "any": other parts may be odd, too."""
        return pick(self._random, [None, None, None, None, None, "double", "double", "integer", "edge", "any"])

    def _number(self, style):
        """The text of a number; with an odd style, half of the numbers are still ordinary."""
        random = self._random
        if style is None or random.random() < 0.5:
            return repr(float(random.normal()))
        style = pick(random, ["double", "integer", "edge", "literal"]) if style == "any" else style
        if style == "double":
            return repr(self._double())
        if style == "integer":
            return pick(random, ["", "-"]) + "9" * int(10.0 ** random.uniform(0.0, 2.48))  # up to 302 digits
        if style == "edge":
            return repr(pick(random, FINITE))
        return pick(random, LITERALS)

    def _text(self, odd):
        random = self._random
        return pick(random, TEXTS) if odd else f"{'dq'[random.integers(2)]}{random.integers(30)}"

    # -- rankings ------------------------------------------------------------------------------------------------------

    def _rank(self, port):
        """A request for a ranking, with a body of any accepted type."""
        random, style = self._random, self._style()
        odd = style == "any"
        n_documents = int(random.integers(1, 9)) if random.random() < 0.98 else int(random.integers(50, 2100))
        width = int(random.integers(9)) if odd and random.random() < 0.1 else len(self._names)
        kind, query = int(random.integers(4)), ""
        if kind == 0:
            body, ids = self._matrix(n_documents, width, style)
            media = JSON
        elif kind == 3:
            body, ids, media = self._rows(n_documents, width, style), [str(row) for row in range(n_documents)], FLOAT32
            query = pick(random, ["?query=q1", f"?features={width}", ""])
        else:
            body, ids, media = self._documents(n_documents, width, style, lines=kind == 2)
        if odd and random.random() < 0.15:
            body = changed_bytes(random, body)
        ordinary = style is None and n_documents <= 2000
        return self._request(port, "POST", RANK + query, body, media, {200} if ordinary else None, ids=ids)

    def _rows(self, n_documents, width, style):
        """A body of float32 numbers: ordinary ones, any finite ones, or arbitrary bytes."""
        random = self._random
        X = random.normal(size=(n_documents, width)).astype("<f4")
        if style == "any":
            return random.bytes(X.nbytes + int(random.integers(0, 2)))
        if style is not None:
            bits = np.frombuffer(random.bytes(X.nbytes), "<f4").reshape(X.shape)
            X = np.where(np.isfinite(bits), bits, X)
        return X.astype("<f4").tobytes()

    def _id(self, row, odd):
        return self._text(odd) + ("" if odd and self._random.random() < 0.2 else f"-{row}")

    def _matrix(self, n_documents, width, style):
        random, odd = self._random, style == "any"
        rows = ", ".join("[" + ", ".join(self._number(style) for _ in range(width)) + "]" for _ in range(n_documents))
        given, ids = {}, [str(row) for row in range(n_documents)]
        if random.random() < 0.4:
            given["ids"] = ids = [self._id(row, odd) for row in range(n_documents)]
        if random.random() < 0.6:
            given["query"] = self._text(odd)
        if odd and random.random() < 0.1:
            given = changed_json(random, {"x": 1, **given})
        parts = [f'"matrix": [{rows}]', *(f"{json.dumps(name)}: {json.dumps(value)}" for name, value in given.items())]
        if odd and random.random() < 0.1:
            parts.append(pick(random, parts))  # a duplicate name
        padding = " " * (4_000_000 if odd and random.random() < 0.05 else 0)
        parts = [parts[place] for place in random.permutation(len(parts))]
        return ("{" + padding + ", ".join(parts) + "}").encode(), ids

    def _documents(self, n_documents, width, style, lines):
        random, odd, ids, documents = self._random, style == "any", [], []
        by_name = random.random() < 0.6
        for row in range(n_documents):
            ids.append(self._id(row, odd))
            numbers = [self._number(style) for _ in range(width)]
            names = [self._names[column] if column < len(self._names) else f"x{column}" for column in range(width)]
            if odd and random.random() < 0.03:
                names = [pick(random, [*names, self._text(True)]) for _ in names]
            features = ", ".join(f"{json.dumps(name)}: {one}" for name, one in zip(names, numbers, strict=True))
            features = "{" + features + "}" if by_name else "[" + ", ".join(numbers) + "]"
            documents.append(f'{{"id": {json.dumps(ids[-1])}, "features": {features}}}')
        if lines:
            return "\n".join(documents).encode(), ids, NDJSON
        query = f', "query": {json.dumps(self._text(odd))}' if random.random() < 0.7 else ""
        return f'{{"documents": [{", ".join(documents)}]{query}}}'.encode(), ids, JSON

    # -- feedback ------------------------------------------------------------------------------------------------------

    def _feedback(self, port):
        """Feedback on an event, mostly a recent one; sometimes a repeated or a second, different feedback."""
        random, style = self._random, self._style()
        open_ones = [known for known in self.known[-20:] if known.answered is None]
        known = pick(random, open_ones if open_ones and random.random() < 0.85 else self.known)
        path = f"/v1/events/{known.event}/feedback"
        if known.answered is not None and random.random() < 0.3:
            return self._request(port, "POST", path, known.answered, JSON, {200}, event=known)
        body = self._answer(known.ids, style)
        if style == "any" and random.random() < 0.15:
            body = changed_bytes(random, body)
        if random.random() < 0.04:
            others = ["0" * 32, "f" * 32, known.event[::-1], known.event.upper(), known.event[:-1], "é", "%0a"]
            return self._request(port, "POST", f"/v1/events/{pick(random, others)}/feedback", body, JSON)
        expected = None
        if known.certain and style is None:
            expected = {202} | self._late if known.answered is None else {200, 409} | self._late
        return self._request(port, "POST", path, body, JSON, expected, event=known)

    def _answer(self, ids, style):
        random, odd = self._random, style == "any"
        own = [json.dumps(id) for id in ids]
        own += [json.dumps(self._text(True))] if odd and random.random() < 0.1 else []
        some = [one for one in own if random.random() < 0.3]
        labels = [str(int(random.integers(3))) if style is None else self._number(style) for _ in own]
        kind = int(random.integers(4))
        if kind == 0:
            said = f'"labels": [{", ".join(labels)}]'
        elif kind == 1:
            said = '"labels": {' + ", ".join(f"{one}: {label}" for one, label in zip(own, labels, strict=True)) + "}"
        elif kind == 2:
            said = f'"clicks": [{", ".join(some * (3 if odd else 1))}]'
        else:
            pairs = [(one, pick(random, own)) for one in some]
            said = f'"preferences": [{", ".join(f"[{a}, {b}]" for a, b in pairs if odd or a != b)}]'
        if style is not None and random.random() < 0.3:
            said += f', "at": {self._number(style)}'
        if odd and random.random() < 0.05:
            said += f", {said}"
        return ("{" + said + "}").encode()

    # -- other requests ------------------------------------------------------------------------------------------------

    def _address(self, port):
        """A request to any path, with any method, host and origin."""
        random = self._random
        path, query = pick(random, PATHS), pick(random, QUERIES)
        if random.random() < 0.3:
            event = pick(random, self.known).event if self.known else "0" * 32
            path = f"/v1/events/{event}/explain"
        elif random.random() < 0.15:
            version = pick(random, ["1", "2", "9", "0", "-1", "9" * 19, "4611686018427387904", "x", "9" * 5000, "%31"])
            body = pick(random, [b"", b"{}", b'{"model": "challenger"}', b'{"model": "\\u0000"}', b"[" * 9999, b"nul"])
            return self._request(port, "POST", f"/v1/models/{version}/activate", body, pick(random, TYPES))
        method = pick(random, METHODS) if random.random() < 0.4 else "GET"
        if path + query in ("/healthz", "/v1/models", "/v1/events", "/metrics", "/readyz") and method == "GET":
            return self._request(port, "GET", path, b"", None, {200})
        headers = self._hostile_headers()
        return self._request(port, method, path + query, b"", None, headers=headers, ends=True)

    def _hostile_headers(self):
        random, headers = self._random, {}
        if random.random() < 0.5:
            headers["Host"] = pick(random, HOSTS)
        if random.random() < 0.3:
            headers["Origin"] = pick(random, ORIGINS)
        if random.random() < 0.3:
            headers["Authorization"] = pick(random, KEYS)
        for _ in range(int(random.integers(0, 3))):
            name, value = pick(random, OTHERS)
            headers[name] = value
        return headers

    def _odd_frame(self, port):
        """A request for a ranking or a feedback with wrong headers, length or chunks, or one that ends early."""
        random = self._random
        sent = self._feedback(port) if self.known and random.random() < 0.5 else self._rank(port)
        head, _, body = sent.data.partition(b"\r\n\r\n")
        lines = [line for line in head.split(b"\r\n") if not line.startswith(b"Content-Length")]
        kind, length = int(random.integers(8)), b"Content-Length: %d" % len(body)
        cut = False
        if kind == 0:
            cut, body = True, body[: int(random.integers(len(body) + 1))]  # half-sent
        elif kind == 1:
            cut, length = True, b"Content-Length: %d" % (len(body) + int(random.integers(1, 1000)))
        elif kind == 2:
            length = b"Content-Length: " + pick(random, LENGTHS)
        elif kind == 3:
            length += b"\r\nContent-Length: %d" % (len(body) + int(random.integers(2)))
        elif kind == 4:
            length = b"Transfer-Encoding: " + pick(random, ENCODINGS)
            body = self._chunks(body)
        elif kind == 5:
            media = pick(random, TYPES).encode("latin-1", "replace")
            lines = [b"Content-Type: " + media if line.startswith(b"Content-Type") else line for line in lines]
        elif kind == 6:
            extra = self._hostile_headers().items()
            lines += [f"{name}: {value}".encode() for name, value in extra]
        else:
            data = changed_bytes(random, sent.data)
            return Sent(data, sent.body, event=sent.event, ends=True, framed=False)
        data = b"\r\n".join([*lines, length]) + b"\r\n\r\n" + body
        # a client that is still sending a long body may miss the answer to a wrong header
        framed = kind in (5, 6) and len(body) < LONG
        return Sent(data, sent.body, event=sent.event, ends=True, framed=framed, cut=cut)

    def _chunks(self, body):
        random, size = self._random, int(self._random.integers(1, 200))
        parts = [body[at : at + size] for at in range(0, len(body), size)]
        chunks = [b"%x%s\r\n%s\r\n" % (len(part), pick(random, [b"", b"", b";x=y"]), part) for part in parts]
        return b"".join(chunks) + b"0\r\n\r\n"

    def _request(self, port, method, path, body, media, expected=None, *, headers=None, ends=False, **known):
        given = {"Host": f"127.0.0.1:{port}"}
        if self._key is not None:
            given["Authorization"] = f"Bearer {self._key}"
        if media is not None:
            given["Content-Type"] = media
        if body or method == "POST":
            given["Content-Length"] = str(len(body))
        lines = [f"{name}: {value}" for name, value in (given | (headers or {})).items()]
        head = "\r\n".join([f"{method} {path} HTTP/1.1", *lines]) + "\r\n\r\n"
        expected = None if expected is None else frozenset(expected)
        framed = len(body) <= MOST
        return Sent(head.encode() + body, body, expected, ends=ends or not framed, framed=framed, **known)
