"""The HTTP server of a service: uvicorn, without TLS, which a proxy in front of it can add."""

import asyncio
import ipaddress
from collections.abc import Callable
from functools import partial
from socket import AF_INET, AF_INET6, IPPROTO_TCP, SO_REUSEADDR, SOL_SOCKET, TCP_NODELAY, socket
from typing import TYPE_CHECKING

from ranksvm.exceptions import MissingDependencyError
from ranksvm.serving.service import Service

if TYPE_CHECKING:
    import uvicorn

__all__ = ["bound_server", "serve"]

# Seconds for which requests are still answered after the process is asked to end.
_SHUTDOWN_SECONDS = 10


def serve(service: Service, host: str, port: int, *, tell: Callable[[str], object]) -> None:
    """Answer requests until the process is asked to end; for the parameters see `bound_server`."""
    server, listener = bound_server(service, host, port, tell=tell)
    server.run([listener])


def bound_server(
    service: Service, host: str, port: int, *, tell: Callable[[str], object]
) -> "tuple[uvicorn.Server, socket]":
    """Make a uvicorn server for a service, and the socket that it listens on.

    Parameters
    ----------
    service : Service
        The service; it is closed when the server ends.
    host : str
        Address to listen on.
    port : int
        Port; 0 for any that is free.
    tell : callable
        Called once with a line of text, when the server begins to answer requests.

    Returns
    -------
    tuple of uvicorn.Server and socket
        The server, which runs on the socket.

    Raises
    ------
    MissingDependencyError
        When a package that the server needs is not installed.
    OSError
        When the address is in use, or is not one of this machine.
    """
    try:
        import uvicorn

        from ranksvm.serving.app import make_app
        from ranksvm.serving.connections import Connection, Connections
    except ImportError as error:
        service.close()
        text = f'a learning service needs {error.name}: pip install "ranksvm[serve]"'
        raise MissingDependencyError(text) from None

    options = service.options
    proxies = _as_peers(options.trusted_proxies)
    connections = Connections(options.limits, proxies)

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket] | None = None) -> None:
            self._watching = asyncio.create_task(connections.watch())
            await super().startup(sockets)
            name = f"[{host}]" if ":" in host else host
            tell(f"Serving at http://{name}:{listener.getsockname()[1]}")

    config = uvicorn.Config(
        make_app(service),
        host,
        port,
        http=partial(Connection, connections),  # type: ignore[arg-type]
        ws="none",
        proxy_headers=bool(proxies),
        forwarded_allow_ips=list(proxies),
        log_level="error",  # Connections logs clients that send data other than HTTP
        access_log=False,
        server_header=False,
        lifespan="on",
        timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
    )
    try:
        listener = _bound(host, port)
    except BaseException:
        service.close()
        raise
    return Server(config), listener


def _as_peers(networks: tuple[str, ...]) -> tuple[str, ...]:
    """The networks, and IPv4 networks also in the form that an IPv6 socket gives its peers, such as ::ffff:10.0.0.5."""
    of_ipv4 = [network for network in map(ipaddress.ip_network, networks) if network.version == 4]
    mapped = [f"::ffff:{network.network_address}/{96 + network.prefixlen}" for network in of_ipv4]
    return (*networks, *mapped)


def _bound(host: str, port: int) -> socket:
    """A socket bound to an address, like `uvicorn.Config.bind_socket`, but an error does not end the process."""
    listener = socket(AF_INET6 if ":" in host else AF_INET)
    try:
        listener.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)
        # asyncio sets this option only on sockets that it creates; without the option, responses wait 40 ms for an ACK
        listener.setsockopt(IPPROTO_TCP, TCP_NODELAY, 1)
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        reason = error.strerror or error
        raise OSError(f"cannot listen at {host}, port {port} ({reason}): name another --port or --host") from error
    return listener
