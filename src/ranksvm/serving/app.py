"""The HTTP interface of a service, as a Starlette application."""

import asyncio
import contextlib
import logging
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from importlib import resources
from urllib.parse import urlsplit

import msgspec
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request as HTTPRequest
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from ranksvm.exceptions import DataError, StoreError
from ranksvm.serving.access import client_of, is_loopback
from ranksvm.serving.feedback import Feedback, content_of
from ranksvm.serving.openapi import openapi
from ranksvm.serving.records import Outcome, Receipt, is_event_id, time_of
from ranksvm.serving.requests import (
    JSON,
    Activation,
    Problem,
    check_repeated,
    check_width,
    decoded,
    parsed,
    response_of,
)
from ranksvm.serving.service import Service
from ranksvm.serving.writer import deliver

__all__ = ["make_app"]

logger = logging.getLogger("ranksvm.serving")

Handler = Callable[[HTTPRequest], Awaitable[Response]]

# Seconds between two checks for changes by other processes.
_REFRESH_SECONDS = 2.0
# Seconds for which feedback waits until its event is stored, because another process may still be storing the event;
# and seconds between two checks whether it is stored.
_EVENT_TIMEOUT, _POLL_SECONDS = 1.0, 0.05
# A body that is up to this many times as large as allowed is read before it is refused: clients that send a whole body
# before they read the response would only see that the connection was closed.
_DISCARDED = 8
_ASSETS = {"": "text/html", "page.css": "text/css", "page.js": "text/javascript"}
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
_feedback_decoder = msgspec.json.Decoder(Feedback)
_activation_decoder = msgspec.json.Decoder(Activation)
# Bounds, in seconds, of the histogram of the times that requests take, usually 0.5 to 25 ms.
_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)


def make_app(service: Service) -> ASGIApp:
    """Make the application; the service starts and ends with it."""
    api = _API(service)

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        loop = asyncio.get_running_loop()
        service.writer.deliver = lambda results: loop.call_soon_threadsafe(deliver, results)
        service.start()
        refreshing = asyncio.create_task(api.refresh_for_ever())
        yield
        refreshing.cancel()
        await run_in_threadpool(service.close)

    def route(path: str, handler: Handler, scope: str | None, method: str = "GET") -> Route:
        return Route(path, api.guarded(handler, scope, path), methods=[method])

    rank = api.guarded(api.rank, "rank", "/v1/rank")
    feedback = api.guarded(api.feedback, "feedback", "/v1/events/{event}/feedback")
    others = Starlette(
        routes=[
            Route("/v1/rank", rank, methods=["POST"]),
            route("/v1/events", api.events, "read"),
            Route("/v1/events/{event}/feedback", feedback, methods=["POST"]),
            route("/v1/events/{event}/explain", api.explain, "read"),
            route("/v1/models", api.models, "read"),
            route("/v1/models/{version}/activate", api.activate, "admin", "POST"),
            route("/healthz", api.healthz, None),
            route("/readyz", api.readyz, None),
            route("/metrics", api.metrics, "read"),
            route("/openapi.json", api.openapi, None),
            *(route(f"/{name}", partial(api.asset, name), None) for name in _ASSETS),
        ],
        lifespan=lifespan,
        exception_handlers={HTTPException: _router_problem},
    )
    # a redirect would use the Host header before it is checked
    others.router.redirect_slashes = False

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        # The two frequent requests bypass the layers of Starlette, which take a third of their time.
        handler = None
        if scope["type"] == "http" and scope["method"] == "POST":
            path = scope["path"]
            if path == "/v1/rank":
                handler = rank
            elif (parts := path.split("/"))[1:3] == ["v1", "events"] and parts[4:] == ["feedback"]:
                scope["path_params"], handler = {"event": parts[3]}, feedback
        if handler is None:
            await others(scope, receive, send)
            return
        response = await handler(HTTPRequest(scope, receive, send))
        await response(scope, receive, send)

    return app


async def _router_problem(_: HTTPRequest, error: Exception) -> Response:
    """Response to an unknown address or method, which the router refuses."""
    assert isinstance(error, HTTPException)
    text = "there is nothing at this address." if error.status_code == 404 else f"{error.detail}."
    return response_of(Problem(error.status_code, "address", text, error.headers))


class _API:
    """The methods that respond to requests."""

    def __init__(self, service: Service):
        self._service = service
        self._meters = _Meters(service)
        self._openapi = msgspec.json.encode(openapi())

    def guarded(self, handler: Handler, scope: str | None, path: str) -> Handler:
        """Add checks of access and rate to a handler; the response reports an error that they or the handler raise."""
        meters = self._meters

        async def answer(request: HTTPRequest) -> Response:
            start = time.perf_counter()
            try:
                self._check(request, scope)
                response = await handler(request)
            except Problem as problem:
                response = response_of(problem)
            except StoreError as error:
                response = response_of(_unavailable(error))
            except MemoryError:
                response = response_of(Problem(503, "memory", "the request needs more memory than there is now."))
            except asyncio.CancelledError:  # the service shuts down before the request has arrived
                text = "the service is shutting down: send the request again later."
                response = response_of(Problem(503, "ending", text, {"Connection": "close"}))
            except Exception:  # unexpected errors also get a response
                logger.exception("%s %s failed", request.method, path)
                response = response_of(Problem(500, "internal", "the service failed; its log says why."))
            meters.count(path, response.status_code, time.perf_counter() - start)
            return response

        return answer

    def _check(self, request: HTTPRequest, scope: str | None) -> None:
        """Refuse requests that are not allowed."""
        service, headers = self._service, request.headers
        host = headers.get("host", "")
        if not service.keys and not service.options.insecure and not self._is_own(_host_name(host)):
            # against DNS rebinding: another site can make its name resolve to this machine, and then its page could
            # send requests here
            text = "without API keys only requests to localhost, or to a name given with --allowed-host, are answered."
            raise Problem(403, "host", text)
        origin = headers.get("origin")
        if request.method == "POST" and origin is not None and origin.partition("//")[2] != host:
            raise Problem(403, "origin", "requests from pages of other sites are refused.")
        if scope is None:
            return
        name = service.keys.check(headers.get("authorization"), scope)
        service.rate.check(name or (client_of(request.client.host) if request.client else ""))

    def _is_own(self, name: str) -> bool:
        return is_loopback(name) or name.lower() in self._service.options.allowed_hosts

    async def refresh_for_ever(self) -> None:
        """Read changes by other processes periodically."""
        while True:
            with contextlib.suppress(StoreError):
                await run_in_threadpool(self._service.refresh)
            await asyncio.sleep(_REFRESH_SECONDS)

    # -- ranking and feedback ------------------------------------------------------------------------------------------

    async def rank(self, request: HTTPRequest) -> Response:
        """``POST /v1/rank``."""
        service, query = self._service, request.query_params.get("query")
        width = request.query_params.get("features")
        if width is not None:
            check_width(_number(width, "features", 1, 10**9), "the body", service.settings.names)
        body = await self._body(request)
        given = parsed(_media_type(request), body, query, service.settings.names, service.options.limits)
        return _json(service.rank(given))

    async def feedback(self, request: HTTPRequest) -> Response:
        """``POST /v1/events/{event}/feedback``."""
        event = _event(request)
        body = await self._json_body(request)
        given = decoded(_feedback_decoder, body)
        check_repeated(body)
        try:
            receipt = await self._stored(event, content_of(given))
        except DataError as error:
            raise Problem(422, "feedback", str(error)) from None
        if receipt.outcome is Outcome.MISMATCH:
            raise Problem(422, "feedback", str(receipt.reason))
        if receipt.outcome is Outcome.CONFLICT:
            raise Problem(409, "conflict", f"the event {event} has other feedback already, entry {receipt.seq}.")
        if receipt.outcome is Outcome.EXPIRED:
            limit = self._service.options.reward_wait
            wait = f"{limit:g} seconds" if limit else "a limited time"
            raise Problem(410, "expired", f"the event {event} took feedback for {wait}, and that time has passed.")
        if receipt.outcome is Outcome.UNKNOWN:
            raise _unknown(event)
        new = receipt.outcome is Outcome.STORED
        answer = {"event": event, "seq": receipt.seq, "status": "accepted" if new else "duplicate"}
        return _json(answer, 202 if new else 200)

    async def _stored(self, event: str, content: bytes) -> Receipt:
        """Store feedback and return the receipt; wait for the event if another process may be about to store it."""
        receipt = await self._put(event, content)
        if receipt.outcome is Outcome.UNKNOWN and _is_new(event) and await self._appears(event):
            return await self._put(event, content)
        return receipt

    async def _put(self, event: str, content: bytes) -> Receipt:
        """Queue feedback for storage, and wait for its receipt."""
        done: asyncio.Future[Receipt] = asyncio.get_running_loop().create_future()
        self._service.put_feedback(event, content, done)
        return await done

    async def _appears(self, event: str) -> bool:
        """Wait a short time for an event, and return whether it was stored; the checks do not use the writer."""
        end = time.monotonic() + _EVENT_TIMEOUT
        while time.monotonic() < end:
            await asyncio.sleep(_POLL_SECONDS)
            if await run_in_threadpool(self._service.store.event, event) is not None:
                return True
        return False

    # -- events, models and state --------------------------------------------------------------------------------------

    async def events(self, request: HTTPRequest) -> Response:
        """``GET /v1/events``."""
        limit = _number(request.query_params.get("limit", "20"), "limit", 1, 200)
        return _json({"events": await run_in_threadpool(self._service.recent, limit)})

    async def explain(self, request: HTTPRequest) -> Response:
        """``GET /v1/events/{event}/explain``."""
        event = _event(request)
        found = await run_in_threadpool(self._service.explanation, event)
        if found is None and _is_new(event) and await self._appears(event):
            found = await run_in_threadpool(self._service.explanation, event)
        if found is None:
            raise _unknown(event)
        return _json(found)

    async def models(self, _: HTTPRequest) -> Response:
        """``GET /v1/models``."""
        return _json(await run_in_threadpool(self._service.overview))

    async def activate(self, request: HTTPRequest) -> Response:
        """``POST /v1/models/{version}/activate``."""
        version = _number(request.path_params["version"], "version", 1, 2**62)
        body = await self._json_body(request) or b"{}"
        given = decoded(_activation_decoder, body)
        check_repeated(body)
        done = asyncio.get_running_loop().create_future()
        await run_in_threadpool(self._service.put_activation, version, given.model, done)
        receipt = await done
        if receipt.outcome is Outcome.UNKNOWN:
            raise Problem(410, "version", f"version {version} is not stored any more.")
        return _json({"version": version, "model": given.model, "seq": receipt.seq}, 202)

    async def healthz(self, _: HTTPRequest) -> Response:
        """``GET /healthz``: a response shows that the process is running."""
        return _json({"status": "ok"})

    async def readyz(self, _: HTTPRequest) -> Response:
        """``GET /readyz``: whether requests can be answered and stored, and whether learning keeps up."""
        try:
            if self._service.writer.refused is not None:
                raise StoreError(self._service.writer.refused)
            learning = await run_in_threadpool(self._service.learning)
        except StoreError:
            if not self._service.keys:
                raise
            # this address needs no key, and the reason may name files and hosts
            raise _unavailable(StoreError("the store cannot be used now; the log of the service says why.")) from None
        return _json({"status": "ready", "learning": learning["state"], "lag": learning["lag"]})

    async def metrics(self, _: HTTPRequest) -> Response:
        """``GET /metrics``: for Prometheus."""
        content, kind = await run_in_threadpool(self._meters.text)
        return Response(content, media_type=kind)

    async def openapi(self, _: HTTPRequest) -> Response:
        """``GET /openapi.json``."""
        return Response(self._openapi, media_type=JSON)

    async def asset(self, name: str, _: HTTPRequest) -> Response:
        """The page for people, or one of its files; the path of a file is never built from the request."""
        content = resources.files("ranksvm.serving").joinpath("assets", name or "page.html").read_bytes()
        return Response(content, headers=_HEADERS, media_type=f"{_ASSETS[name]}; charset=utf-8")

    # -- bodies --------------------------------------------------------------------------------------------------------

    async def _json_body(self, request: HTTPRequest) -> bytes:
        # without a preflight request, forms and scripts of other sites can send some media types, but not JSON
        body = await self._body(request)
        if _media_type(request) != JSON:
            raise Problem(415, "media-type", f"the type of the body must be {JSON}.")
        return body

    async def _body(self, request: HTTPRequest) -> bytes:
        """The body; no more than the allowed size is kept."""
        most = self._service.options.limits.body
        too_large = Problem(413, "body", f"the body is larger than {most} bytes.", {"Connection": "close"})
        length = request.headers.get("content-length", "0")
        if not length.isdecimal():
            raise too_large
        expected = int(length.lstrip("0") or 0)  # 0 if the body comes in chunks; int() refuses thousands of digits
        waits = "expect" in request.headers  # for a response before it sends the body
        if expected > most and (waits or expected > _DISCARDED * most):
            raise too_large
        parts, size = [], 0
        try:
            async for part in request.stream():
                size += len(part)
                if size <= most:
                    parts.append(part)
                elif expected <= most:
                    raise too_large
        except ClientDisconnect:
            raise Problem(400, "malformed", "the body ended early: the connection was closed.") from None
        if size > most:
            raise too_large
        encoding = ", ".join(request.headers.getlist("content-encoding"))
        if encoding.lower() not in ("", "identity"):
            text = f"the body has the encoding {encoding!r}: send it as it is, without compression."
            raise Problem(415, "encoding", text, {"Accept-Encoding": "identity"})
        return b"".join(parts)


def _json(content: object, status: int = 200) -> Response:
    return Response(msgspec.json.encode(content), status, media_type=JSON)


def _host_name(host: str) -> str:
    """The name or address in a header Host, without its port; "" if it is malformed."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _media_type(request: HTTPRequest) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def _number(text: str, name: str, minimum: int, maximum: int) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 20 and minimum <= int(text) <= maximum):
        raise Problem(422, name, f"{name} must be a whole number from {minimum} to {maximum}.")
    return int(text)


def _event(request: HTTPRequest) -> str:
    """The id of an event in the address."""
    event = request.path_params["event"]
    if not is_event_id(event):
        raise _unknown(event)
    return event


def _is_new(event: str) -> bool:
    """Whether the id of an event was created in the last few seconds."""
    return abs(time.time() - time_of(event)) < 5.0


def _unknown(event: str) -> Problem:
    return Problem(404, "event", f"there is no event {event!r}: it was never ranked here, or was removed since.")


def _unavailable(error: StoreError) -> Problem:
    return Problem(503, "store", f"{error} Nothing was stored; try again.", {"Retry-After": "1"})


class _Meters:
    """Counters of requests, and gauges that are evaluated when they are read."""

    def __init__(self, service: Service):
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "ranksvm_requests", "Requests by address and status.", ["path", "status"], registry=self._registry
        )
        self._seconds = Histogram(
            "ranksvm_request_seconds", "Time of requests.", ["path"], buckets=_BUCKETS, registry=self._registry
        )
        self._known: dict[tuple[str, int], tuple[Counter, Histogram]] = {}
        self._gauge("ranksvm_version", "Version of the model that ranks.", lambda: service.learner.served.version)
        self._gauge("ranksvm_learnt", "Entries learned from.", lambda: service.learner.served.position)
        self._gauge("ranksvm_stored", "Entries of the log.", lambda: service.store.head[0])
        self._gauge("ranksvm_learns", "Whether this process learns.", lambda: service.learner.learns)
        self._gauge("ranksvm_waiting", "Items that are not stored yet.", lambda: service.writer.waiting)
        self._gauge("ranksvm_dropped", "Events that could not be stored.", lambda: service.writer.dropped)
        self._gauge(
            "ranksvm_outside",
            "Requests with features outside their range, clipped or refused.",
            lambda: service.outside,
        )
        self._gauge("ranksvm_store_bytes", "Size of the store.", service.store.size)

    def count(self, path: str, status: int, seconds: float) -> None:
        """Count a request."""
        key = path, status
        if key not in self._known:
            self._known[key] = self._requests.labels(path, str(status)), self._seconds.labels(path)
        counter, histogram = self._known[key]
        counter.inc()
        histogram.observe(seconds)

    def text(self) -> tuple[bytes, str]:
        """The values of all counters and gauges as text for Prometheus, and its media type."""
        return generate_latest(self._registry), CONTENT_TYPE_LATEST

    def _gauge(self, name: str, text: str, value: Callable[[], float]) -> None:
        def known() -> float:
            with contextlib.suppress(StoreError):  # the other gauges and counters matter most while the store fails
                return value()
            return math.nan

        Gauge(name, text, registry=self._registry).set_function(known)
