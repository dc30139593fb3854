"""The writer of a process: one thread that stores what waits, many items in one transaction."""

import logging
import queue
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future

from ranksvm.exceptions import StoreError
from ranksvm.serving.records import Entry, Event, Receipt
from ranksvm.serving.store import Store

__all__ = ["Writer"]

logger = logging.getLogger("ranksvm.serving")

# Items in one transaction, as measured: more per transaction gain little over one wait for the disk.
_GROUP = 256
# Seconds between two attempts to store events while the store refuses them.
_PAUSE = 1.0


class Writer:
    """Stores events and entries in the order in which they were given.

    An event does not wait for the disk: it is stored before anything that is given later, such as its feedback. Where
    the store refuses them, up to ``most_events`` events are kept in memory and tried again; entries are refused.

    Parameters
    ----------
    store : Store
        Where to.
    on_stored : callable, optional
        Called in the writer's thread after entries were stored.
    most_events : int, default 10000
        Number of events that wait at most; those beyond are dropped, and counted in ``dropped``.
    """

    def __init__(self, store: Store, *, on_stored: Callable[[], None] | None = None, most_events: int = 10_000):
        self._store, self._on_stored, self._most = store, on_stored, most_events
        self._given: queue.SimpleQueue[tuple[Event | Entry, Future[Receipt]] | None] = queue.SimpleQueue()
        self._late: deque[Event] = deque()
        self.dropped = 0
        self.refused: str | None = None  # why the store refused the last transaction
        self._thread = threading.Thread(target=self._run, name="ranksvm-writer", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """Number of items that have not been stored."""
        return self._given.qsize() + len(self._late)

    def put(self, item: Event | Entry) -> "Future[Receipt]":
        """Store an item in turn; the future has its receipt when it is on disk, or StoreError."""
        done: Future[Receipt] = Future()
        self._given.put((item, done))
        return done

    def close(self) -> None:
        """Store what waits, and end the thread."""
        self._given.put(None)
        self._thread.join()

    def _run(self) -> None:
        while True:
            group, last = self._next_group()
            if group or self._late:
                self._store_group(group)
            if last:
                return

    def _next_group(self) -> tuple[list[tuple[Event | Entry, "Future[Receipt]"]], bool]:
        """What waits, after something does, and whether it is the last."""
        group: list[tuple[Event | Entry, Future[Receipt]]] = []
        try:
            while len(group) < _GROUP:
                given = self._given.get(block=not group, timeout=_PAUSE if self._late else None)
                if given is None:
                    return group, True
                group.append(given)
        except queue.Empty:
            pass
        return group, False

    def _store_group(self, group: list[tuple[Event | Entry, "Future[Receipt]"]]) -> None:
        late = list(self._late)
        try:
            receipts = self._store.append([*late, *(item for item, _ in group)])
        except Exception as error:  # whatever it is, the writer goes on, and nobody waits for ever
            self._refuse(group, error)
            return
        self.refused = None
        self._late.clear()
        for (_, done), receipt in zip(group, receipts[len(late) :], strict=True):
            done.set_result(receipt)
        if self._on_stored is not None and any(isinstance(item, Entry) for item, _ in group):
            self._on_stored()

    def _refuse(self, group: list[tuple[Event | Entry, "Future[Receipt]"]], error: Exception) -> None:
        if self.refused != str(error):
            logger.warning("nothing can be stored: %s", error)
        self.refused = str(error)
        refusal = error if isinstance(error, StoreError) else StoreError(f"the store failed: {error}.")
        for item, done in group:
            if isinstance(item, Event):
                self._late.append(item)
            done.set_exception(refusal)
        while len(self._late) > self._most:
            self._late.popleft()
            self.dropped += 1
