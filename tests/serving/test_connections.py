"""Clients that send too slowly, too much or over too many connections, on real sockets."""

import contextlib
import json
import os
import socket
import struct
import subprocess
import sys
import time

import pytest

import ranksvm

pytest.importorskip("starlette", reason="starlette is not installed: no service is tested")
pytest.importorskip("uvicorn", reason="uvicorn is not installed: no service is tested")
pytest.importorskip("httptools", reason="httptools is not installed: no service is tested")

from ranksvm.serving import http_server
from ranksvm.serving.access import client_of
from ranksvm.serving.connections import Connections
from ranksvm.serving.requests import Limits

from .http_service import Running

HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
RANK = b"POST /v1/rank HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
LIMITS = Limits(head=8192, head_seconds=0.5, body_seconds=1.0, connections=8)


@pytest.fixture
def start(tmp_path):
    """Start a service with limits that are soon reached; it is stopped in the end."""
    started = []

    def start_service(**options):
        options = {"limits": LIMITS} | options
        started.append(Running(str(tmp_path / "events.db"), ranksvm.SOLARRanker(random_state=0), **options))
        return started[-1]

    yield start_service
    for running in started:
        running.stop()


@pytest.fixture
def opened():
    """Open a connection; it is closed in the end."""
    with contextlib.ExitStack() as stack:

        def connect(port, source="127.0.0.1"):
            return stack.enter_context(socket.create_connection(("127.0.0.1", port), 10, (source, 0)))

        yield connect


def all_of(connection):
    """What is received until the connection is closed, and the seconds that takes."""
    received, begin = b"", time.monotonic()
    with contextlib.suppress(ConnectionError):
        while part := connection.recv(1 << 16):
            received += part
    return received, time.monotonic() - begin


def problem_of(answer):
    """Status and code of the last answer of some bytes."""
    head, _, body = answer[answer.rindex(b"HTTP/1.1 ") :].partition(b"\r\n\r\n")
    assert b"content-type: application/problem+json" in head
    assert head.lower().count(b"connection: close") == 1
    return int(head.split()[1]), json.loads(body)["type"].removeprefix("urn:ranksvm:problem:")


def answers(connection, request=HEALTH):
    """Whether a request is answered."""
    connection.sendall(request)
    return connection.recv(1 << 16).startswith(b"HTTP/1.1 200")


def can_use(address):
    with contextlib.suppress(OSError), socket.socket() as tried:
        tried.bind((address, 0))
        return True
    return False


other_address = pytest.mark.skipif(not can_use("127.0.0.2"), reason="this machine has one loopback address")


# -- time --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sent", [b"", b"\r\n", HEALTH[:-2], HEALTH + HEALTH[:20]], ids=repr)
def test_a_head_that_does_not_arrive_is_cut_off(start, opened, caplog, sent):
    connection = opened(start().port)
    connection.sendall(sent)
    answer, seconds = all_of(connection)
    assert problem_of(answer) == (408, "late")
    assert 0.4 < seconds < 3
    time.sleep(0.3)
    assert "cut off 127.0.0.1: the head of a request did not arrive in 0.5 seconds" in caplog.messages


def test_empty_lines_do_not_keep_an_idle_connection(start, opened):
    connection = opened(start().port)
    assert answers(connection)
    connection.sendall(b"\r\n")
    answer, seconds = all_of(connection)
    assert problem_of(answer) == (408, "late")
    assert seconds < 3


def test_a_head_that_trickles_in_is_cut_off(start, opened):
    connection, begin = opened(start().port), time.monotonic()
    with contextlib.suppress(ConnectionError):
        for byte in HEALTH[:-2] + b"X-Long: " + b"x" * 1000:
            connection.send(bytes([byte]))
            time.sleep(0.05)
    assert time.monotonic() - begin < 3


@pytest.mark.parametrize("framing", [b"Content-Length: 100", b"Transfer-Encoding: chunked"])
def test_a_body_that_does_not_arrive_is_cut_off(start, opened, caplog, framing):
    connection = opened(start().port)
    connection.sendall(RANK + framing + b'\r\n\r\n2\r\n{"\r\n')
    answer, seconds = all_of(connection)
    assert problem_of(answer) == (408, "late")
    assert 0.9 < seconds < 4
    time.sleep(0.3)
    assert "cut off 127.0.0.1: the body of a request did not arrive in 1 seconds" in caplog.messages


def test_a_client_that_reads_no_answers_is_cut_off(start, opened, caplog):
    running = start()
    connection = opened(running.port)
    connection.sendall(b"GET /page.js HTTP/1.1\r\nHost: localhost\r\n\r\n" * 2000)
    end = time.monotonic() + 10
    while not caplog.messages and time.monotonic() < end:
        time.sleep(0.05)
    time.sleep(0.5)
    assert not running._server.server_state.connections
    assert caplog.messages == ["cut off 127.0.0.1: a response was not read for 1 seconds"]


def test_requests_that_arrive_in_time_are_answered(start, opened):
    running = start()
    connection = opened(running.port)
    for part in (HEALTH[:10], HEALTH[10:30], HEALTH[30:]):
        connection.sendall(part)
        time.sleep(0.1)
    assert connection.recv(1 << 16).startswith(b"HTTP/1.1 200")
    # an idle connection is kept for longer than a head may take
    time.sleep(1.5)
    assert answers(connection)
    many = 500
    connection.sendall(HEALTH * many)
    received = b""
    while received.count(b'{"status":"ok"}') < many:
        received += connection.recv(1 << 16)
    assert received.count(b"HTTP/1.1 200") == many


def test_the_service_ends_while_a_request_is_half_sent(start, opened, monkeypatch, caplog):
    """It is answered. The log had the traceback of a request that was cancelled."""
    monkeypatch.setattr(http_server, "_SHUTDOWN_SECONDS", 1)
    running = start(limits=Limits())
    connection = opened(running.port)
    connection.sendall(RANK + b"Content-Length: 100\r\n\r\n{")
    time.sleep(0.2)
    begin = time.monotonic()
    running.stop()
    assert time.monotonic() - begin < 8
    assert problem_of(all_of(connection)[0]) == (503, "ending")
    assert not [record for record in caplog.records if record.exc_info]


# -- size --------------------------------------------------------------------------------------------------------------


def endless(first, more):
    yield first
    while True:
        yield more


@pytest.mark.parametrize(
    "parts",
    [
        (HEALTH[:-2] + b"X-Long: ", b"x" * 65536),
        (HEALTH[:-2], b"X-Many: x\r\n" * 6000),
        (b"GET /", b"x" * 65536),
        (b"", b"\r\n" * 32768),
        (RANK + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n0\r\nX-Long: ", b"x" * 65536),
        (RANK + b"Transfer-Encoding: chunked\r\n\r\n1;long=", b"x" * 65536),
    ],
    ids=["header", "headers", "address", "empty lines", "trailer", "chunk"],
)
def test_a_head_without_end_is_cut_off(start, opened, caplog, parts):
    connection, sent = opened(start(limits=Limits()).port), 0
    with contextlib.suppress(ConnectionError):
        for part in endless(*parts):
            connection.sendall(part)
            sent += len(part)
            assert sent < 20e6
    time.sleep(0.5)
    assert "cut off 127.0.0.1: the head of the request is larger than 65536 bytes" in caplog.messages


@pytest.mark.parametrize("first", [b"", HEALTH], ids=["first", "later"])
def test_a_head_that_is_too_large_is_refused(start, opened, caplog, first):
    running = start()
    connection = opened(running.port)
    connection.sendall(first + HEALTH[:-2] + b"X-Long: " + b"x" * 7000 + b"\r\n\r\n")
    assert connection.recv(1 << 16).startswith(b"HTTP/1.1 200")
    connection = opened(running.port)
    connection.sendall(HEALTH[:-2] + b"X-Long: " + b"x" * 9000 + b"\r\n\r\n")
    assert problem_of(all_of(connection)[0]) == (431, "head")
    time.sleep(0.3)
    assert "cut off 127.0.0.1: the head of the request is larger than 8192 bytes" in caplog.messages


def test_a_long_body_in_small_chunks_is_not_a_head(start, opened):
    connection = opened(start().port)
    body = json.dumps({"matrix": [[1.25, 2.5, 3.75]] * 1000}).encode()
    chunks = b"".join(b"3\r\n%s\r\n" % body[i : i + 3] for i in range(0, len(body) - len(body) % 3, 3))
    rest = body[len(body) - len(body) % 3 :]
    last = b"%x\r\n%s\r\n" % (len(rest), rest) if rest else b""
    assert answers(connection, RANK + b"Transfer-Encoding: chunked\r\n\r\n" + chunks + last + b"0\r\n\r\n")


def test_what_is_not_http_is_refused_and_logged(start, opened, caplog):
    connection = opened(start().port)
    connection.sendall(b"\x16\x03\x01 hello\r\n\r\n")
    assert problem_of(all_of(connection)[0]) == (400, "malformed")
    time.sleep(0.3)
    assert "cut off 127.0.0.1: this is not a request of HTTP/1.1" in caplog.messages


def test_an_upgrade_to_another_protocol_is_no_way_around_the_limits(start, opened):
    connection = opened(start().port)
    request = HEALTH[:-2] + b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\r\n"
    assert answers(connection, request)
    connection.sendall(b"GET")
    assert all_of(connection)[1] < 3


# -- connections -------------------------------------------------------------------------------------------------------


@other_address
def test_a_client_has_a_limited_number_of_connections(start, opened, caplog):
    port = start(limits=Limits(connections=8)).port
    first = [opened(port) for _ in range(8)]
    assert all(answers(connection) for connection in first)
    for _ in range(3):
        assert problem_of(all_of(opened(port))[0]) == (429, "connections")
    assert answers(opened(port, "127.0.0.2"))
    time.sleep(0.4)
    assert any(
        text.startswith("cut off 127.0.0.1") and text.endswith("the client has more than 8 connections")
        for text in caplog.messages
    )
    first[0].close()
    time.sleep(0.2)
    assert answers(opened(port))


@other_address
def test_half_sent_heads_do_not_lock_others_out_of_a_small_process(tmp_path):
    pytest.importorskip("resource", reason="this system has no limits of resources")
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256)); from ranksvm.cli import main; main()"
    )
    command = [sys.executable, "-c", code, "serve", "--learner", "solar2", "--n-features", "3", "--port", "0"]
    log, half_sent = tmp_path / "log", []
    with log.open("w") as stderr:
        process = subprocess.Popen([*command, "--store", tmp_path / "events.db"], stderr=stderr)
    try:
        while "Serving at" not in log.read_text():
            assert process.poll() is None
            time.sleep(0.05)
        port = int(log.read_text().split("Serving at ")[1].splitlines()[0].rpartition(":")[2])
        for _ in range(300):
            half_sent.append(socket.create_connection(("127.0.0.1", port), 10))
            with contextlib.suppress(ConnectionError):
                half_sent[-1].sendall(HEALTH[:-2])
        begin = time.monotonic()
        with socket.create_connection(("127.0.0.1", port), 10, ("127.0.0.2", 0)) as other:
            assert answers(other)
        assert time.monotonic() - begin < 5
    finally:
        for connection in half_sent:
            connection.close()
        process.terminate()
        process.wait()
    assert "the client has more than 96 connections" in log.read_text()


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="the system does not list the files of a process")
def test_clients_that_left_before_they_were_accepted_keep_no_socket_open(start, opened, caplog):
    port = start().port
    assert answers(opened(port))
    n_open = n_sockets()
    for _ in range(200):
        with socket.create_connection(("127.0.0.1", port), 10) as client:
            # closing sends a reset, as health checks of load balancers do
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    until = time.monotonic() + 10
    while n_sockets() > n_open and time.monotonic() < until:
        time.sleep(0.05)
    assert n_sockets() <= n_open
    assert not caplog.messages
    assert answers(opened(port))


def n_sockets():
    """The number of open sockets of this process; its store may open files at any time."""
    n_found = 0
    for descriptor in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):  # closed in the meantime
            n_found += os.readlink(f"/proc/self/fd/{descriptor}").startswith("socket:")
    return n_found


# -- proxies -----------------------------------------------------------------------------------------------------------


def statuses(running, clients):
    client = running.client()
    found = [client.get("/v1/models", X_Forwarded_For=name)[0] for name in clients]
    client.close()
    return found


def test_a_client_cannot_name_itself_anew_for_every_request(start):
    running = start(limits=Limits(), rate=1.0)
    assert 429 in statuses(running, [f"10.0.0.{number}" for number in range(10)])


def test_a_trusted_proxy_names_its_clients_and_has_any_number_of_connections(start, opened):
    running = start(limits=Limits(connections=2), rate=1.0, trusted_proxies=("127.0.0.0/8",))
    assert set(statuses(running, [f"10.0.0.{number}" for number in range(10)])) == {200}
    assert 429 in statuses(running, ["10.0.0.99"] * 10)
    assert all(answers(opened(running.port)) for _ in range(5))


def test_a_trusted_proxy_may_have_an_address_of_ipv6():
    connections = Connections(Limits(connections=2), ("fd00::/8",))
    found = {address: [connections.opened(object(), address) for _ in range(3)] for address in ("fd00::1", "fe80::1")}
    assert [problem is None for problem in found["fd00::1"]] == [True, True, True]
    assert [problem is None for problem in found["fe80::1"]] == [True, True, False]


@pytest.mark.skipif(not socket.has_ipv6, reason="there is no IPv6")
def test_a_trusted_proxy_of_ipv4_is_known_to_a_service_that_listens_at_all_addresses(start):
    running = start(host="::", rate=1.0, trusted_proxies=("127.0.0.0/8",))
    assert set(statuses(running, [f"10.0.0.{number}" for number in range(10)])) == {200}
    assert 429 in statuses(running, ["10.0.0.99"] * 10)


def test_a_network_of_ipv6_is_one_client():
    assert client_of("2001:db8::1") == client_of("2001:db8::ffff:2") != client_of("2001:db8:0:1::1")
    assert client_of("10.0.0.1") != client_of("10.0.0.2")
    assert client_of("::ffff:10.0.0.1") != client_of("::ffff:10.0.0.2")
    assert client_of("") == ""
