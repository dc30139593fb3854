"""Counters and gauges of a service, for Prometheus."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from ranksvm.serving.service import Service

__all__ = ["Meters"]

# Seconds; requests usually take 0.5 to 25 ms.
_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)


class Meters:
    """Counters of requests, and gauges that are evaluated when they are read.

    Parameters
    ----------
    service : Service
        The service.
    """

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
        """All values, and their media type."""
        return generate_latest(self._registry), CONTENT_TYPE_LATEST

    def _gauge(self, name: str, text: str, value: Callable[[], float]) -> None:
        Gauge(name, text, registry=self._registry).set_function(value)
