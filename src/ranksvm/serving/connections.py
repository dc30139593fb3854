"""Connections to a service: limits on a request's time to arrive, the size of its head, and connections per client."""

import asyncio
import ipaddress
import logging
import math
from collections import Counter, deque
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from ranksvm.serving.access import client_of
from ranksvm.serving.requests import Limits, Problem, response_of

__all__ = ["Connection", "Connections"]

logger = logging.getLogger("ranksvm.serving")

# Seconds between two checks for late requests.
_CHECK_SECONDS = 0.25
# Maximum number of late clients that one check names in the log; it only counts additional ones.
_MAX_NAMED = 20


class Connections:
    """State shared by the connections to a service.

    Parameters
    ----------
    limits : Limits
        Limits on the size and time of requests, and on the connections of each client.
    proxies : sequence of str
        Addresses or networks of proxies, which may have any number of connections.
    """

    def __init__(self, limits: Limits, proxies: tuple[str, ...] = ()):
        self.limits = limits
        self._max_connections = _find_max_connections()
        self._of_client: Counter[str] = Counter()
        self._proxies = [ipaddress.ip_network(proxy) for proxy in proxies]
        self._open: set[Connection] = set()
        self._cut: Counter[tuple[str, str]] = Counter()

    def opened(self, connection: "Connection", address: str) -> Problem | None:
        """Count a new connection; return a Problem if there are too many."""
        self._open.add(connection)
        client = client_of(address)
        self._of_client[client] += 1
        # one client may use at most half of the connections, even if the process may open few files
        most = min(self.limits.connections, self._max_connections // 2)
        if self._of_client[client] > most and not self._is_proxy(address):
            return Problem(429, "connections", f"the client has more than {most} connections.")
        if len(self._open) > self._max_connections:
            return Problem(503, "connections", f"the service has more than {self._max_connections} connections.")
        return None

    def closed(self, connection: "Connection", address: str) -> None:
        """Stop counting a connection."""
        if connection not in self._open:  # its client had left before it was counted
            return
        self._open.discard(connection)
        client = client_of(address)
        self._of_client[client] -= 1
        if not self._of_client[client]:
            del self._of_client[client]

    def note(self, address: str, why: str) -> None:
        """Record that a client was cut off, for the log."""
        self._cut[address, why] += 1

    async def watch(self) -> None:
        """Cut off late clients, and log them, in an endless loop."""
        loop = asyncio.get_running_loop()
        try:
            while True:
                await asyncio.sleep(_CHECK_SECONDS)
                now = loop.time()
                for connection in list(self._open):
                    connection.check(now)
                self._log()
        finally:
            self._log()

    def _log(self) -> None:
        for (address, why), count in self._cut.most_common(_MAX_NAMED):
            logger.warning("cut off %s%s: %s", address, f" ({count} connections)" if count > 1 else "", why)
        if len(self._cut) > _MAX_NAMED:
            logger.warning("cut off %d other clients", len(self._cut) - _MAX_NAMED)
        self._cut.clear()

    def _is_proxy(self, address: str) -> bool:
        return any(ipaddress.ip_address(address) in network for network in self._proxies)


class Connection(HttpToolsProtocol):
    """A connection, which is closed if a client takes too long to send a request or to read the response.

    Parameters
    ----------
    connections : Connections
        What all connections have in common.
    **given
        Arguments that uvicorn passes to a protocol.
    """

    def __init__(self, connections: Connections, **given: Any):
        super().__init__(**given)
        self._all, self._limits = connections, connections.limits
        self._due, self._part = math.inf, ""
        # bytes received since the last complete part of a request, and whether the newest bytes completed a part
        self._waiting, self._completed = 0, False
        self._in_body = False
        # requests without a complete response: uvicorn tells only the last one, `cycle`, that the connection was lost
        self._unanswered: deque[RequestResponseCycle] = deque()
        # bytes that the client has not received, and the time since which their number has not changed
        self._left, self._moved = 0, 0.0

    # -- what asyncio calls --------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._address = "" if self.client is None else self.client[0]
        if self.client is None:  # the client has left already
            transport.abort()
            return
        problem = self._all.opened(self, self._address)
        self._expect("the head of a request", self._limits.head_seconds)
        if problem is not None:
            self._cut(problem)

    def connection_lost(self, exc: Exception | None) -> None:
        self._all.closed(self, self._address)
        for cycle in self._unanswered:
            cycle.disconnected = True
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._due == math.inf:
            self._expect("the head of a request", self._limits.head_seconds)
        self._completed = False
        super().data_received(data)
        self._waiting = 0 if self._completed else self._waiting + len(data)
        if self._waiting > self._limits.head:
            self._cut(self._too_large())

    # -- what the parser and the application call ----------------------------------------------------------------------

    def on_message_begin(self) -> None:
        self._expect("the head of a request", self._limits.head_seconds)
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._completed = True
        self._expect("the body of a request", self._limits.body_seconds)
        if len(self.url) + sum(len(name) + len(value) for name, value in self.headers) > self._limits.head:
            self._cut(self._too_large())
            raise ValueError("too large")  # stops the parser
        self._in_body = True
        super().on_headers_complete()
        self._unanswered.append(self.cycle)

    def on_body(self, body: bytes) -> None:
        self._completed = True
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._completed, self._in_body = True, False
        self._due = math.inf
        super().on_message_complete()

    def on_response_complete(self) -> None:
        self._unanswered.popleft()
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        """Respond to data that are not HTTP; uvicorn calls this method by its name."""
        self._cut(Problem(400, "malformed", "this is not a request of HTTP/1.1."))

    # -- limits --------------------------------------------------------------------------------------------------------

    def check(self, now: float) -> None:
        """Cut the connection off if its client is late."""
        unsent = self.transport.get_write_buffer_size()
        if unsent == 0 or unsent != self._left:
            self._left, self._moved = unsent, now
        elif now - self._moved > self._limits.body_seconds:
            self._all.note(self._address, f"a response was not read for {self._limits.body_seconds:g} seconds")
            self.transport.abort()
        if now < self._due or self.transport.is_closing():
            return
        if self.flow.read_paused:  # this service is late, not the client
            self._due = now + self._limits.head_seconds
            return
        self._cut(Problem(408, "late", f"{self._part}."))

    def _expect(self, what: str, seconds: float) -> None:
        self._due = self.loop.time() + seconds
        self._part = f"{what} did not arrive in {seconds:g} seconds"

    def _cut(self, problem: Problem) -> None:
        """Close the connection; first send the problem, unless the response to an earlier request is incomplete."""
        if self.transport.is_closing():
            return
        self._all.note(self._address, str(problem).removesuffix("."))
        idle = self.cycle is None or self.cycle.response_complete
        if idle or (self._in_body and not self.pipeline and not self.cycle.response_started):
            response = response_of(problem)
            headers = [*response.raw_headers, (b"connection", b"close")]
            lines = b"".join(b"%s: %s\r\n" % header for header in headers)
            self.transport.write(STATUS_LINE[response.status_code] + lines + b"\r\n" + bytes(response.body))
        self.transport.close()

    def _too_large(self) -> Problem:
        return Problem(431, "head", f"the head of the request is larger than {self._limits.head} bytes.")


def _find_max_connections() -> int:
    """Maximum number of connections that leaves file descriptors for the store and other files."""
    try:
        import resource
    except ImportError:  # Windows
        return 1 << 16
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    files = 1 << 16 if files == resource.RLIM_INFINITY else files
    return files - min(128, files // 4)
