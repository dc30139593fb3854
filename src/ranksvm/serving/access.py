"""Access control: API keys with scopes, stored only as hashes, and a limit on the rate of requests."""

import hashlib
import hmac
import ipaddress
import secrets
import threading
import time
from collections import OrderedDict
from functools import lru_cache

from ranksvm.exceptions import OptionError
from ranksvm.serving.requests import Problem
from ranksvm.serving.store import Store

__all__ = ["SCOPES", "Keys", "Rate", "add_key", "client_of", "is_loopback"]

SCOPES = ("rank", "feedback", "read", "admin")
# Maximum number of clients whose requests are counted at a time.
_MAX_CLIENTS = 10_000


def is_loopback(host: str) -> bool:
    """Whether a host is this machine: "localhost" or a loopback address. Another name may resolve to any host."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


@lru_cache(_MAX_CLIENTS)
def client_of(address: str) -> str:
    """The client at an address: the IPv4 address itself, or the /64 network of an IPv6 address, which has one owner."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(ip, ipaddress.IPv4Address) or ip.ipv4_mapped is not None:
        return address
    return str(ipaddress.ip_network((ip, 64), strict=False))


def add_key(store: Store, name: str, scopes: list[str]) -> str:
    """Create an API key.

    Parameters
    ----------
    store : Store
        Where its hash is stored.
    name : str
        Its name.
    scopes : list of str
        What it allows: any of "rank", "feedback", "read" and "admin".

    Returns
    -------
    str
        The key, which cannot be shown again.

    Raises
    ------
    OptionError
        When the name is taken, or has nothing that can be read, or a scope is unknown.
    """
    if not name.strip() or not name.isprintable():
        raise OptionError(f"{name!r} cannot name a key: write at least one letter or digit, in one line.")
    for scope in scopes:
        if scope not in SCOPES:
            raise OptionError(f"{scope!r} is not a scope: choose from {', '.join(SCOPES)}.")
    key = f"rsvm_{secrets.token_urlsafe(32)}"
    if not store.add_key(name, _hash(key), ",".join(scopes)):
        raise OptionError(f"there is a key {name!r} already: revoke it first.")
    return key


def _hash(key: str) -> bytes:
    # 256 random bits cannot be guessed, so a slow hash would add nothing
    return hashlib.sha256(key.encode()).digest()


class Keys:
    """The API keys of a store. Until the first key is created, everything is allowed, but only from this machine.

    Parameters
    ----------
    store : Store
        The store.
    insecure : bool, default False
        Whether everything is allowed from any machine and under any host name while there are no keys, even if there
        were keys before and all were revoked. While there are keys, it has no effect.
    """

    def __init__(self, store: Store, insecure: bool = False):
        self._store, self._insecure = store, insecure
        self._known: list[tuple[str, bytes, frozenset[str]]] = []
        self._reloading = threading.Lock()
        self.reload()

    def reload(self) -> None:
        """Read the keys again."""
        with self._reloading:  # an older list must not replace a newer one
            self._known = [(name, hash, frozenset(scopes.split(","))) for name, hash, scopes in self._store.api_keys()]
            self._ever = bool(self._known) or self._store.had_keys()

    def __bool__(self) -> bool:
        """Whether requests need a key."""
        return bool(self._known) or (self._ever and not self._insecure)

    def check(self, authorization: str | None, scope: str) -> str | None:
        """Check that the API key of a request allows a scope, and return its name; None if no key is needed.

        Parameters
        ----------
        authorization : str or None
            The header ``Authorization`` of the request.
        scope : str
            What the request needs.

        Returns
        -------
        str or None
            The name of the key.

        Raises
        ------
        Problem
            When there is no key, it is unknown, or it lacks the scope.
        """
        if not self:
            return None
        kind, _, key = (authorization or "").partition(" ")
        given, found = _hash(key.strip()), None
        for name, hash, scopes in self._known:  # always compare all keys
            if hmac.compare_digest(hash, given):
                found = name, scopes
        if found is None or kind.lower() != "bearer":
            text = "an API key is needed: Authorization: Bearer KEY."
            if kind.lower() == "bearer" and key.strip():
                text = "the API key is not known: it is mistyped, or was revoked."
            if not self._known:
                text = "all API keys were revoked, so that nobody has access: ranksvm keys STORE --add NAME makes one."
            raise Problem(401, "no-key", text, {"WWW-Authenticate": "Bearer"})
        name, scopes = found
        if scope not in scopes:
            raise Problem(403, "scope", f"the key {name!r} lacks the scope {scope!r}.")
        return name


class Rate:
    """A limit on the requests of each client: a token bucket that is filled at a constant rate.

    Parameters
    ----------
    per_second : float or None
        Requests per second and client; None: no limit. A client may send two seconds' worth of requests at once.
    """

    def __init__(self, per_second: float | None):
        self._rate = per_second
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def check(self, client: str, now: float | None = None) -> None:
        """Count a request; raise Problem if there were too many."""
        if self._rate is None:
            return
        now = time.monotonic() if now is None else now
        most = max(1.0, 2.0 * self._rate)
        tokens, before = self._left.pop(client, (most, now))
        tokens = min(most, tokens + (now - before) * self._rate)
        self._left[client] = (tokens - 1.0 if tokens >= 1.0 else tokens), now
        if len(self._left) > _MAX_CLIENTS:
            self._left.popitem(last=False)
        if tokens < 1.0:
            wait = str(max(1, round((1.0 - tokens) / self._rate)))
            raise Problem(429, "rate", f"more than {self._rate:g} requests a second.", {"Retry-After": wait})
