"""Gets results from a Dask cluster, and raises an error if it does not respond for too long."""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import CancelledError, Future as Answer, TimeoutError as NotYet
from contextlib import suppress
from importlib.metadata import version
from typing import Any, TypeVar

from distributed import Client, Future
from distributed.client import FutureCancelledError, FuturesCancelledError
from distributed.comm import CommClosedError

from ranksvm import __version__
from ranksvm._util.lazy import cached_property
from ranksvm.exceptions import ClusterError

__all__ = ["Cluster", "LostError"]

logger = logging.getLogger("ranksvm.dask")

T = TypeVar("T")

# Seconds between two checks for a result, and between two requests to the scheduler.
POLL_SECONDS = 0.5
REQUEST_SECONDS = 5.0


class LostError(ClusterError):
    """Futures were cancelled, by the user or by a restart of the scheduler; their data may be computed again."""


class Cluster:
    """The client of a cluster; waiting ends with an error if the cluster is silent for too long.

    Parameters
    ----------
    client : distributed.Client
        The client.
    timeout : float
        Seconds to wait for a scheduler that does not answer, or a cluster without workers, before ClusterError.
    """

    def __init__(self, client: Client, timeout: float):
        # Any, because attributes of a closed client may be None in Dask's annotations
        self.client: Any = client
        self.timeout = timeout
        self._workers: list[str] = []
        self._asked_workers = float("-inf")
        self.address = str(getattr(client.scheduler, "address", client))

    def mapped(
        self,
        function: Callable[..., Any],
        parts: Sequence[Any],
        *constants: Any,
        second_arguments: Sequence[Any] | None = None,
        look: bool = True,
        key: str | None = None,
    ) -> list[Future]:
        """Call a function for each part, on its worker, with the part, its item of ``second_arguments``, and constants.

        Dask may move a task that looks like the root of a graph, together with its part, to any idle worker; tasks look
        like roots if there are few parts. Dask does not move a task that names workers, even if it also allows others.

        The list of workers is updated every few seconds only, because a request to the scheduler takes a tenth of the
        time of a round. Without ``look`` there is no request, so that a lost scheduler cannot block the call.
        """
        if look and time.monotonic() - self._asked_workers > REQUEST_SECONDS:
            self._workers = list(self._run(self.client.scheduler.ncores(workers=None)))
            self._asked_workers = time.monotonic()
        where = {"workers": self._workers or None, "allow_other_workers": bool(self._workers)}
        by_part = [parts] if second_arguments is None else [parts, second_arguments]
        arguments = [*by_part, *([value] * len(parts) for value in constants)]
        return self.client.map(function, *arguments, pure=False, key=key, **where)

    @cached_property
    def n_threads(self) -> int:
        """Number of threads of all workers at the first call, at least 1; later calls return the same number."""
        return max(1, int(self._identity()["total_threads"]))

    def memory(self) -> int:
        """The smallest memory limit of a worker in bytes; 0 if no worker has a limit."""
        limits = [int(worker["memory_limit"] or 0) for worker in self._identity()["workers"].values()]
        return min(filter(None, limits), default=0)

    def check_workers(self) -> None:
        """Raise ClusterError if a worker has no ranksvm, or another version."""
        for worker, found in self.run_on_workers(version, "ranksvm").items():
            # any other error comes from a worker that is about to leave
            if isinstance(found, ImportError) or (isinstance(found, str) and found != __version__):
                what = "cannot import ranksvm" if isinstance(found, ImportError) else f"has ranksvm {found}"
                raise ClusterError(
                    f"the worker {worker} {what}, and this process has ranksvm {__version__}: install that version "
                    'on every worker (pip install "ranksvm[dask]").'
                )

    def run_on_workers(self, function: Callable[..., object], *arguments: Any) -> dict[str, Any]:
        """Run a function on each worker; return its result, or the error that it raises, by address of the worker."""

        async def run() -> dict[str, Any]:
            return await self.client.run(function, *arguments, on_error="return")

        return self._run(run())

    def computed(self, delayed: Sequence[Any]) -> list[Any]:
        """The values of delayed objects."""
        return self.results(self.client.compute(list(delayed)))

    def run_on_scheduler(self, function: Callable[..., T], *arguments: object) -> T:
        """The result of a function that runs on the scheduler, which it receives as ``dask_scheduler``."""

        async def run() -> T:
            return await self.client.run_on_scheduler(function, *arguments)

        return self._run(run())

    def _identity(self) -> dict[str, Any]:
        return self._run(self.client.scheduler.identity())

    def results(self, futures: Sequence[Future]) -> list[Any]:
        """The results of futures, in their order.

        Parameters
        ----------
        futures : sequence of Future
            The futures.

        Returns
        -------
        list
            Their results.

        Raises
        ------
        ClusterError
            When the scheduler did not answer, or there were no workers, for ``timeout`` seconds.
        LostError
            When the futures were cancelled.
        """
        if not futures:
            return []
        try:
            return self._run(self.client.gather(list(futures), asynchronous=True))
        except (Exception, asyncio.CancelledError) as error:
            # a failed future keeps its error, and the traceback of the error would keep all futures of the fit
            for future in futures:
                future.release()
            if isinstance(
                error, FutureCancelledError | FuturesCancelledError | CancelledError | asyncio.CancelledError
            ):
                self._wait_for_scheduler()
                raise LostError(f"the cluster has cancelled results that a fit needs: {error}") from error
            raise

    # -- private methods ---------------------------------------------------------------------------------------------

    def _run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """The result of a coroutine of the client; ClusterError if the cluster is silent for too long."""

        async def kept() -> tuple[Any, BaseException | None]:
            try:
                return await coroutine, None
            except BaseException as error:
                return None, error

        loop = self.client.loop.asyncio_loop
        running = asyncio.run_coroutine_threadsafe(kept(), loop)
        watch = _Watch(self)
        while True:
            try:
                found, error = running.result(POLL_SECONDS)
            except NotYet:
                watch.look()
                continue
            except BaseException:
                running.cancel()
                raise
            if isinstance(error, OSError) and (isinstance(error, CommClosedError) or not watch.answers()):
                self._wait_for_scheduler()
                raise LostError(f"the connection to the cluster was closed during a fit: {error}") from error
            if error is not None:
                raise error
            return found

    def _wait_for_scheduler(self) -> None:
        """Return once the scheduler answers again."""
        watch = _Watch(self)
        time.sleep(POLL_SECONDS)  # by then the client has noticed a closed connection
        while not watch.answers():
            watch.look()
            time.sleep(POLL_SECONDS)


class _Watch:
    """Time for which a cluster has been silent."""

    def __init__(self, cluster: Cluster):
        self.cluster = cluster
        self.heard_at = self.had_workers_at = self.requested_at = time.monotonic()
        self.request: Answer[dict[str, Any]] | None = None

    def answers(self) -> bool:
        """Whether the client has a connection."""
        return self.cluster.client.status == "running"

    def look(self) -> None:
        """Raise ClusterError if there has been no answer, or no worker, for too long."""
        cluster, now = self.cluster, time.monotonic()
        if cluster.client.status == "closed":
            raise ClusterError(f"the client of the Dask cluster at {cluster.address} was closed during a fit.")
        if self.request is not None and self.request.done():
            self._take(self.request, now)
        elif self.request is None and self._is_due(now) and self.answers():
            identity = cluster.client.scheduler.identity()
            self.request = asyncio.run_coroutine_threadsafe(identity, cluster.client.loop.asyncio_loop)
            self.requested_at = now
        if now - self.heard_at > cluster.timeout:
            raise ClusterError(
                f"the Dask scheduler at {cluster.address} has not answered for {cluster.timeout:g} seconds: it was "
                "lost, or its machine cannot be reached. A fit with checkpoint= can continue from its last point."
            )
        if now - self.had_workers_at > cluster.timeout:
            raise ClusterError(
                f"the Dask cluster at {cluster.address} has had no worker for {cluster.timeout:g} seconds: add "
                "workers, or raise timeout=."
            )

    def _is_due(self, now: float) -> bool:
        """Whether the scheduler should be asked again."""
        return now - self.requested_at >= min(REQUEST_SECONDS, 0.2 * self.cluster.timeout)

    def _take(self, request: Answer[dict[str, Any]], now: float) -> None:
        identity: dict[str, Any] | None = None
        with suppress(BaseException):
            identity = request.result()
        self.request = None
        if identity is not None:
            self.heard_at = now
            if identity["workers"]:
                self.had_workers_at = now
