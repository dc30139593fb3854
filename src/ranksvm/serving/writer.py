"""The writer of a process: one thread that stores waiting events and entries, many in one transaction."""

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from ranksvm.exceptions import StoreError
from ranksvm.serving.records import Entry, Event, Outcome, Receipt
from ranksvm.serving.store import Store

__all__ = ["Done", "Writer", "deliver"]

logger = logging.getLogger("ranksvm.serving")

# Maximum number of entries in one transaction, and of events if it has no entries: larger transactions are hardly
# faster.
_MAX_GROUP = 256
# Seconds for which an event may wait, to be stored together with later events; no client waits until it is stored. An
# entry ends the wait.
_BATCH_WAIT_SECONDS = 0.02
# Seconds between two attempts to store events while the store refuses them.
_RETRY_SECONDS = 1.0


class Done(Protocol):
    """A future, of asyncio or of threads."""

    def done(self) -> bool:
        """Whether it has a result or an error, or was cancelled."""

    def set_result(self, result: Receipt) -> None:
        """Set its result."""

    def set_exception(self, error: StoreError) -> None:
        """Set its error."""


PendingEntry = tuple[Entry, Done]
Results = list[tuple[Done, Receipt | StoreError]]


class Writer:
    """Stores events and entries in groups: first the events of a group, then its entries, each in order of arrival.

    No one waits until an event is on disk, but it is stored before any later item, such as its feedback. While the
    store fails, up to ``max_events`` events wait in memory, and entries are refused. Items that would exceed
    ``max_bytes`` are refused.

    Parameters
    ----------
    store : Store
        Where they are stored.
    on_entries : callable, optional
        Called in the writer's thread after a transaction that stored at least one new entry, when the receipts have
        been delivered.
    max_events : int, default 10000
        Maximum number of waiting events; if there are more, the oldest are dropped, and counted in ``dropped``.
    max_bytes : int, default 268435456
        Maximum bytes of waiting events and entries.
    """

    def __init__(
        self,
        store: Store,
        *,
        on_entries: Callable[[], None] | None = None,
        max_events: int = 10_000,
        max_bytes: int = 256 << 20,
    ):
        self._store, self._on_entries, self._max_events = store, on_entries, max_events
        self._bytes, self._max_bytes = 0, max_bytes
        self._news = threading.Condition()
        self._events: deque[Event] = deque()
        self._entries: deque[PendingEntry] = deque()
        self._idle, self._ended = False, False
        self.dropped = 0
        self.refused: str | None = None  # why the store refused the last transaction
        # called in the writer's thread: futures of asyncio have to be completed in the thread of their loop
        self.deliver: Callable[[Results], object] = deliver
        self._thread = threading.Thread(target=self._run, name="ranksvm-writer", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """Number of items that have not been stored."""
        return len(self._events) + len(self._entries)

    def put_event(self, event: Event) -> None:
        """Queue an event for storage.

        Raises
        ------
        StoreError
            When too many bytes already wait.
        """
        with self._news:
            self._take(_size_of(event))
            self._events.append(event)
            if self._idle:
                self._news.notify()

    def put(self, entry: Entry, done: Done) -> None:
        """Queue an entry for storage; the future ``done`` gets the receipt when the entry is on disk, or a StoreError.

        Raises
        ------
        StoreError
            When too many bytes already wait.
        """
        with self._news:
            self._take(_size_of(entry))
            self._entries.append((entry, done))
            self._news.notify()

    def _take(self, size: int) -> None:
        """Add the bytes of a new waiting item."""
        if self._bytes + size > self._max_bytes:
            raise StoreError(f"{self._bytes >> 20} MB of events and answers wait for the store already.")
        self._bytes += size

    def close(self) -> None:
        """Store all waiting items, and end the thread."""
        with self._news:
            self._ended = True
            self._news.notify()
        self._thread.join()

    def _run(self) -> None:
        while True:
            events, entries = self._next_group()
            if events or entries:
                self._store_group(events, entries)
            elif self._ended:
                return
            else:
                self._probe()

    def _probe(self) -> None:
        """Check whether the store works again: while the service is not ready, it may get no items to try it with."""
        try:
            self._store.probe()
        except Exception as error:
            self.refused = str(error)
        else:
            self.refused = None

    def _next_group(self) -> tuple[list[Event], list[PendingEntry]]:
        """Wait for items and return them; no items after `close`, or after a pause while the store does not work."""
        with self._news:
            if not self._events and not self._entries and not self._ended:
                self._idle = True
                self._news.wait(None if self.refused is None else _RETRY_SECONDS)
                self._idle = False
            if not self._events and not self._entries:
                return [], []
            if not self._entries and len(self._events) < _MAX_GROUP and not self._ended:
                self._news.wait(_BATCH_WAIT_SECONDS if self.refused is None else _RETRY_SECONDS)
            # all events, if there is an entry: it may answer any of them
            n_events = len(self._events) if self._entries else min(_MAX_GROUP, len(self._events))
            events = [self._events.popleft() for _ in range(n_events)]
            return events, [self._entries.popleft() for _ in range(min(_MAX_GROUP, len(self._entries)))]

    def _store_group(self, events: list[Event], entries: list[PendingEntry]) -> None:
        try:
            receipts = self._store.append([*events, *(entry for entry, _ in entries)])
        except Exception as error:  # the writer continues after any error, and no client waits forever
            self._refuse(events, entries, error)
            return
        self.refused = None
        self._release([*events, *(entry for entry, _ in entries)])
        if entries:
            futures = [done for _, done in entries]
            self.deliver(list(zip(futures, receipts[len(events) :], strict=True)))
            stored = any(receipt.outcome is Outcome.STORED for receipt in receipts[len(events) :])
            if stored and self._on_entries is not None:
                self._on_entries()
        self._drop()

    def _refuse(self, events: list[Event], entries: list[PendingEntry], error: Exception) -> None:
        if self.refused != str(error):
            logger.warning("nothing can be stored: %s", error)
        self.refused = str(error)
        refusal = error if isinstance(error, StoreError) else StoreError(f"the store failed: {error}.")
        self._release([entry for entry, _ in entries])
        self.deliver([(done, refusal) for _, done in entries])
        with self._news:
            self._events.extendleft(reversed(events))
            if self._ended and self._events:
                logger.warning("events that were not stored before the end: %d", len(self._events))
                self.dropped += len(self._events)
                self._events.clear()
        self._drop()

    def _drop(self) -> None:
        """Drop the oldest events beyond the maximum number."""
        with self._news:
            while len(self._events) > self._max_events:
                self._bytes -= _size_of(self._events.popleft())
                self.dropped += 1

    def _release(self, items: Sequence[Event | Entry]) -> None:
        """Subtract the bytes of items that no longer wait."""
        with self._news:
            self._bytes -= sum(map(_size_of, items))


def _size_of(item: Event | Entry) -> int:
    """Bytes of a waiting item, without the overhead of Python objects."""
    return len(item.content) + (len(item.features) if isinstance(item, Event) else 0)


def deliver(results: Results) -> None:
    """Complete futures, except cancelled ones."""
    for done, result in results:
        if done.done():
            continue
        if isinstance(result, StoreError):
            done.set_exception(result)
        else:
            done.set_result(result)
