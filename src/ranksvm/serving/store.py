"""Stores the log of a service (events and entries), checkpoints of learning, the lease of the learner, and API keys."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import accumulate
from typing import Any, Protocol

import msgspec

from ranksvm.exceptions import StoreError
from ranksvm.serving.feedback import mismatch
from ranksvm.serving.records import Checkpoint, Entry, Event, Kind, LogEntry, Outcome, Receipt, Shown, next_digest

__all__ = ["SCHEMA_VERSION", "Cursor", "Database", "Store", "open_store"]

SCHEMA_VERSION = 1
# Digest of an empty log.
GENESIS = bytes(32)

_TABLES = (
    "CREATE TABLE meta (name TEXT PRIMARY KEY, number BIGINT NOT NULL, bytes {blob})",
    "CREATE TABLE events (id TEXT PRIMARY KEY, at DOUBLE PRECISION NOT NULL, answered BIGINT NOT NULL DEFAULT 0, "
    "digest {blob} NOT NULL, content {blob} NOT NULL, features {blob} NOT NULL)",
    "CREATE INDEX events_unanswered ON events (at) WHERE answered = 0",
    "CREATE TABLE entries (seq BIGINT PRIMARY KEY, kind TEXT NOT NULL, event TEXT, at DOUBLE PRECISION NOT NULL, "
    "content {blob} NOT NULL, digest {blob} NOT NULL)",
    "CREATE TABLE checkpoints (version BIGINT PRIMARY KEY, position BIGINT NOT NULL, at DOUBLE PRECISION NOT NULL, "
    "digest {blob} NOT NULL, state {blob} NOT NULL, kept BIGINT NOT NULL)",
    "CREATE INDEX checkpoints_position ON checkpoints (position)",
    "CREATE TABLE lease (id BIGINT PRIMARY KEY, owner TEXT NOT NULL, until DOUBLE PRECISION NOT NULL)",
    "CREATE TABLE keys (name TEXT PRIMARY KEY, hash {blob} NOT NULL, scopes TEXT NOT NULL)",
)
# A row of the table meta whose name begins like this has the number of an entry that learners skip.
_SKIPPED = "passed over "
_EVENT = "events.id, events.at, events.content, events.features"
# SQL for the bytes of an entry with its event, and of an event (without features) with the entry that answers it;
# maximum bytes of one read.
_SIZE = "LENGTH(entries.content) + COALESCE(LENGTH(events.content) + LENGTH(events.features), 0)"
_SIZE_OF_ANSWER = "LENGTH(events.content) + COALESCE(LENGTH(entries.content), 0)"
_MAX_BYTES = 32 << 20
# Maximum number of entries that `Store.entries_between` reads at a time.
_PART = 256
_CHECKPOINT = "version, position, at, digest, {state}, kept"
_STORED = Receipt(Outcome.STORED)

# A value in a row of a table.
Value = str | bytes | int | float | None


class Cursor(Protocol):
    """Runs statements within a transaction; parameters are written as ``?``."""

    def run(self, statement: str, *values: Value) -> list[tuple[Any, ...]]:
        """Run a statement and fetch all rows that it returns."""


class Database(Protocol):
    """A database that any thread can use; an error rolls back its transaction, and becomes a `StoreError`."""

    blob: str

    def reading(self) -> AbstractContextManager[Cursor]:
        """A transaction whose statements all read the same state of the database."""

    def writing(self) -> AbstractContextManager[Cursor]:
        """A transaction that excludes other writers, of all processes, and is on disk when the block has ended."""

    def has_tables(self, cursor: Cursor) -> bool:
        """Whether the tables of a store exist."""

    def now(self, cursor: Cursor) -> float:
        """The time in seconds since 1970, by a clock that all processes share."""

    def size(self) -> int:
        """Bytes of the database on disk."""

    def shrink_log(self) -> None:
        """Free the disk space of the database's own log, if it is large; no one waits for this."""

    def vacuum(self) -> None:
        """Free the space of removed rows."""

    def close(self) -> None:
        """Close all connections."""


def open_store(url: str, *, create: bool = True, reward_wait: float | None = None, unanswered: str = "zero") -> "Store":
    """Open a store, and create its tables if there are none.

    Parameters
    ----------
    url : str
        Path of an SQLite file, or ``postgresql://...``.
    create : bool, default True
        Whether to create a store that does not exist.
    reward_wait : float, optional
        Seconds after which an event accepts no feedback; None: it always accepts it.
    unanswered : str, default "zero"
        What happens after this time to an event without feedback. "zero": an entry gives all its documents the label 0;
        "ignored": nothing.

    Returns
    -------
    Store
        The store.

    Raises
    ------
    StoreError
        When it cannot be opened, is not a store, or is of another version.
    """
    from ranksvm.serving.databases import PostgresDatabase, SQLiteDatabase

    database: Database
    if url.startswith(("postgresql://", "postgres://")):
        database = PostgresDatabase(url)
    else:
        database = SQLiteDatabase(url, create=create)
    try:
        return Store(database, name=url, create=create, reward_wait=reward_wait, unanswered=unanswered)
    except BaseException:
        database.close()
        raise


class Store:
    """The log of a learning service. The methods may be called from any thread.

    Parameters
    ----------
    database : Database
        Where it is.
    name : str
        Name of the store in messages.
    create : bool, default True
        Whether to create tables if there are none.
    reward_wait : float, optional
        Seconds after which an event takes no feedback.
    unanswered : str, default "zero"
        What becomes of it then: see `open_store`.
    """

    def __init__(
        self,
        database: Database,
        *,
        name: str,
        create: bool = True,
        reward_wait: float | None = None,
        unanswered: str = "zero",
    ):
        self._database = database
        self._reward_wait, self._ignored = reward_wait, unanswered == "ignored"
        # threads of a process write one at a time, in the order of arrival, so that the database need not retry
        self._turn = threading.Lock()
        with self._database.reading() as cursor:
            exists = self._database.has_tables(cursor)
        if not exists and not create:
            raise StoreError(f"{name} is not the store of a ranksvm service: it lacks the tables of one.")
        if not exists:
            self._create()
        with self._database.reading() as cursor:
            ((version,),) = cursor.run("SELECT number FROM meta WHERE name = 'schema'")
        if version != SCHEMA_VERSION:
            raise StoreError(
                f"{name} has schema version {version}, and this ranksvm works with version {SCHEMA_VERSION}. "
                'Upgrade it: pip install --upgrade "ranksvm[serve]".'
            )

    def _create(self) -> None:
        with self._turn, self._database.writing() as cursor:
            if self._database.has_tables(cursor):  # another process was faster
                return
            for table in _TABLES:
                cursor.run(table.format(blob=self._database.blob))
            cursor.run("INSERT INTO meta VALUES ('schema', ?, NULL)", SCHEMA_VERSION)
            cursor.run("INSERT INTO meta VALUES ('head', 0, ?)", GENESIS)
            cursor.run("INSERT INTO meta VALUES ('base', 1, NULL)")  # version from which a replay begins

    # -- events and entries --------------------------------------------------------------------------------------------

    def append(self, items: Sequence[Event | Entry]) -> list[Receipt]:
        """Store events, then entries in their order, in one transaction; they are on disk when this returns.

        Parameters
        ----------
        items : sequence of Event or Entry
            What to store.

        Returns
        -------
        list of Receipt
            A receipt for each item: whether it was stored, or why not.

        Raises
        ------
        StoreError
            When nothing was stored: the database is locked, full, damaged or out of reach.
        """
        events = [item for item in items if isinstance(item, Event)]
        entries = [item for item in items if isinstance(item, Entry)]
        receipts = {}
        with self._turn, self._database.writing() as cursor:
            # if something is stored twice, the first version stays
            rows = [_row(event) for event in events]
            _insert(cursor, "events (id, at, digest, content, features)", rows, "ON CONFLICT DO NOTHING")
            if entries:
                receipts = self._append_entries(cursor, entries)
        return [receipts.get(id(item), _STORED) for item in items]

    def probe(self) -> None:
        """Check that the store can be written, by writing the number of its last entry again.

        Raises
        ------
        StoreError
            When nothing can be stored.
        """
        with self._turn, self._database.writing() as cursor:
            cursor.run("UPDATE meta SET number = number WHERE name = 'head'")

    def _append_entries(self, cursor: Cursor, entries: list[Entry]) -> dict[int, Receipt]:
        """Store entries in a transaction; return the receipt of each by the ``id()`` of the entry object."""
        ((seq, digest),) = cursor.run("SELECT number, bytes FROM meta WHERE name = 'head'")
        head, now, receipts, rows = seq, self._database.now(cursor), {}, []
        known = _Known(cursor, [entry.event for entry in entries if entry.event is not None])
        for entry in entries:
            refusal, answered = self._refusal(cursor, entry, known, now)
            if refusal is None:
                seq += 1
                digest = next_digest(digest, seq, entry, answered)
                rows.append((seq, str(entry.kind), entry.event, entry.at, entry.content, digest))
                known.answer(entry, seq)
            receipts[id(entry)] = refusal or Receipt(Outcome.STORED, seq)
        if seq > head:
            _insert(cursor, "entries (seq, kind, event, at, content, digest)", rows)
            self._mark(cursor, [(row[2], row[0]) for row in rows if row[2] is not None])
            cursor.run("UPDATE meta SET number = ?, bytes = ? WHERE name = 'head'", seq, digest)
        return receipts

    def _refusal(
        self, cursor: Cursor, entry: Entry, known: "_Known", now: float
    ) -> tuple[Receipt | None, bytes | None]:
        """The receipt if an entry is not stored (None if it is), and the digest of its event."""
        if entry.kind in (Kind.CLICK_LEARNING, Kind.FEATURE_RANGE):
            return None, None
        if entry.event is None:
            statement = "UPDATE checkpoints SET kept = 1 WHERE version = ? RETURNING 1"
            found = cursor.run(statement, entry.decoded["version"])
            return (None if found else Receipt(Outcome.UNKNOWN)), None
        if entry.event not in known.events:
            return Receipt(Outcome.UNKNOWN), None
        at, answered, digest, shown = known.events[entry.event]
        late = self._reward_wait is not None and now - at > self._reward_wait
        if entry.kind is Kind.UNANSWERED:
            return (Receipt(Outcome.NOT_DUE), None) if answered or not late else (None, digest)
        if answered and known.entries[answered] == (entry.kind, entry.content):
            return Receipt(Outcome.DUPLICATE, answered), None
        if (reason := mismatch(entry.content, _documents_decoder.decode(shown).documents)) is not None:
            return Receipt(Outcome.MISMATCH, reason=reason), None
        if answered:
            waited = known.entries[answered][0] == Kind.UNANSWERED
            return (Receipt(Outcome.EXPIRED) if waited else Receipt(Outcome.CONFLICT, answered)), None
        return (Receipt(Outcome.EXPIRED), None) if late else (None, digest)

    @staticmethod
    def _mark(cursor: Cursor, answers: list[tuple[str, int]]) -> None:
        """Record the entries that answer events."""
        if answers:
            rows = ", ".join(["(CAST(? AS TEXT), CAST(? AS BIGINT))"] * len(answers))
            # both databases use these names for the columns of VALUES
            statement = f"UPDATE events SET answered = new.column2 FROM (VALUES {rows}) AS new WHERE id = new.column1"
            cursor.run(statement, *(value for answer in answers for value in answer))

    def event(self, id: str) -> Event | None:
        """The event with an id; None if there is none."""
        with self._database.reading() as cursor:
            found = cursor.run(f"SELECT {_EVENT} FROM events WHERE id = ?", id)
        return _event(*found[0]) if found else None

    def entries_between(self, after: int, until: int) -> Iterator[LogEntry]:
        """The entries that follow a sequence number, up to another one, in order; only a few are in memory at a time.

        Parameters
        ----------
        after, until : int
            The sequence numbers.

        Yields
        ------
        LogEntry
            The next entry, with the event that it answers.
        """
        while after < until and (part := self.entries(after, _PART, until=until)):
            yield from part
            after = part[-1].seq

    def entries(self, after: int, limit: int, *, until: int | None = None) -> list[LogEntry]:
        """Entries that follow a sequence number, with the events that they answer.

        Parameters
        ----------
        after : int
            The sequence number.
        limit : int
            Maximum number of entries. If the events are large, there are fewer, to fit into memory, but at least one.
        until : int, optional
            The last sequence number; None: the log's last one.

        Returns
        -------
        list of LogEntry
            In order.
        """
        own = (
            "FROM entries LEFT JOIN events ON events.id = entries.event WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ?"
        )
        with self._database.reading() as cursor:
            limits = after, 2**62 if until is None else until, limit
            limit = _number_within(cursor.run(f"SELECT {_SIZE} {own}", *limits), _MAX_BYTES)
            columns = "seq, kind, entries.at, entries.content, entries.digest, event"
            rows = cursor.run(f"SELECT {columns}, {_EVENT} {own}", *limits[:2], limit)
        return [
            LogEntry(
                seq,
                Entry(Kind(kind), event, bytes(content), at),
                bytes(digest),
                None if found[0] is None else _event(*found),
            )
            for seq, kind, at, content, digest, event, *found in rows
        ]

    def entry(self, seq: int) -> Entry | None:
        """The entry with a sequence number, without the event that it answers; None if there is none."""
        with self._database.reading() as cursor:
            rows = cursor.run("SELECT kind, event, content, at FROM entries WHERE seq = ?", seq)
        return Entry(Kind(rows[0][0]), rows[0][1], bytes(rows[0][2]), rows[0][3]) if rows else None

    def recent_events(self, limit: int) -> Iterator[tuple[str, float, Shown, int]]:
        """The newest events without their features, and the sequence number of their feedback, 0 if there is none.

        They are read one by one: all of them together may be larger than memory.
        """
        with self._database.reading() as cursor:
            ids = cursor.run("SELECT id FROM events ORDER BY id DESC LIMIT ?", limit)
        for (id,) in ids:
            with self._database.reading() as cursor:
                rows = cursor.run("SELECT at, content, answered FROM events WHERE id = ?", id)
            for at, content, answered in rows:  # none if it was removed in the meantime
                yield id, at, _shown_decoder.decode(bytes(content)), answered

    def answers(self, after: str, limit: int) -> list[tuple[str, float, Shown, Entry | None]]:
        """Events in the order of their ids, without features, each with the entry that answers it.

        Parameters
        ----------
        after : str
            Only events after this id; "" for all.
        limit : int
            Maximum number of events. If they are large, there are fewer, as in `entries`.

        Returns
        -------
        list of tuple (id, at, shown, entry)
            In the order of the ids, which is the order of time. The entry is None if no feedback arrived.
        """
        own = (
            "FROM events LEFT JOIN entries ON entries.seq = events.answered WHERE events.id > ? "
            "ORDER BY events.id LIMIT ?"
        )
        with self._database.reading() as cursor:
            limit = _number_within(cursor.run(f"SELECT {_SIZE_OF_ANSWER} {own}", after, limit), _MAX_BYTES)
            columns = "events.id, events.at, events.content, kind, entries.content, entries.at"
            rows = cursor.run(f"SELECT {columns} {own}", after, limit)
        return [
            (
                id,
                at,
                _shown_decoder.decode(bytes(shown)),
                None if kind is None else Entry(Kind(kind), id, bytes(content), answered),
            )
            for id, at, shown, kind, content, answered in rows
        ]

    def event_before(self, newest: int) -> str:
        """Id of the event just before the last ``newest`` events; "" if there are not more events."""
        with self._database.reading() as cursor:
            rows = cursor.run("SELECT id FROM events ORDER BY id DESC LIMIT 1 OFFSET ?", newest)
        return rows[0][0] if rows else ""

    def pending(self, kind: Kind, after: int) -> list[tuple[int, Any]]:
        """Sequence numbers and contents of the entries of a kind after a sequence number."""
        with self._database.reading() as cursor:
            statement = "SELECT seq, content FROM entries WHERE seq > ? AND kind = ? ORDER BY seq"
            rows = cursor.run(statement, after, str(kind))
        return [(seq, msgspec.msgpack.decode(bytes(content))) for seq, content in rows]

    def unanswered(self, limit: int) -> list[str]:
        """Ids of events that waited too long for feedback, the oldest first; empty if the store ignores such events."""
        if self._reward_wait is None or self._ignored:
            return []
        with self._database.reading() as cursor:
            before = self._database.now(cursor) - self._reward_wait
            rows = cursor.run("SELECT id FROM events WHERE answered = 0 AND at < ? ORDER BY at LIMIT ?", before, limit)
        return [id for (id,) in rows]

    @property
    def head(self) -> tuple[int, bytes]:
        """Sequence number and digest of the last entry."""
        with self._database.reading() as cursor:
            ((seq, digest),) = cursor.run("SELECT number, bytes FROM meta WHERE name = 'head'")
        return seq, bytes(digest)

    def mark_skipped(self, seq: int, reason: str, owner: str | None) -> bool:
        """Make every learner and replay skip an entry, because learning from it ends in an error.

        Parameters
        ----------
        seq : int
            The entry.
        reason : str
            The error.
        owner : str or None
            Who learns.

        Returns
        -------
        bool
            False if there is no such entry, or another owner has the lease and may have learned from it.
        """
        with self._turn, self._database.writing() as cursor:
            there = cursor.run("SELECT 1 FROM entries WHERE seq = ?", seq)
            if not there or not cursor.run("SELECT 1 FROM lease WHERE owner = ?", owner or ""):
                return False
            values = f"{_SKIPPED}{seq}", seq, reason.encode()
            cursor.run("INSERT INTO meta VALUES (?, ?, ?) ON CONFLICT DO NOTHING", *values)
        return True

    def skipped_entries(self) -> dict[int, str]:
        """Sequence numbers of the entries to skip, with reasons."""
        with self._database.reading() as cursor:
            rows = cursor.run("SELECT number, bytes FROM meta WHERE name LIKE ?", f"{_SKIPPED}%")
        return {seq: bytes(reason).decode() for seq, reason in rows}

    # -- checkpoints ---------------------------------------------------------------------------------------------------

    def save_checkpoint(
        self, position: int, state: bytes, *, at: float, after: int, kept: bool = False, newest: int = 50
    ) -> Checkpoint | None:
        """Store a state of learning in one transaction, unless another learner was faster.

        Parameters
        ----------
        position : int
            Sequence number of the last entry that was learned from.
        state : bytes
            What was learned.
        at : float
            The time, in seconds since 1970.
        after : int
            Version of the checkpoint that learning continued from; 0 for the first.
        kept : bool, default False
            Whether it is never removed.
        newest : int, default 50
            Number of checkpoints that are stored. Older ones are removed, except the first of each day and
            those with ``kept``.

        Returns
        -------
        Checkpoint or None
            What was stored; None if the newest one is not ``after`` any more.

        Raises
        ------
        StoreError
            When nothing was stored.
        """
        with self._turn, self._database.writing() as cursor:
            found = cursor.run("SELECT version, at FROM checkpoints ORDER BY version DESC LIMIT 1")
            version, before = found[0] if found else (0, 0.0)
            if version != after:
                return None
            digest = self._digest_at(cursor, position)
            kept = kept or int(before // 86_400) != int(at // 86_400)
            values = version + 1, position, at, digest, state, int(kept)
            cursor.run("INSERT INTO checkpoints VALUES (?, ?, ?, ?, ?, ?)", *values)
            cursor.run("DELETE FROM checkpoints WHERE kept = 0 AND version <= ?", version + 1 - newest)
        # done here because only the learner saves checkpoints: rarely, and usually in a process without requests
        self._database.shrink_log()
        return Checkpoint(version + 1, position, at, digest, state, kept)

    @staticmethod
    def _digest_at(cursor: Cursor, position: int) -> bytes:
        if position == 0:
            return GENESIS
        found = cursor.run("SELECT digest FROM entries WHERE seq = ?", position) or cursor.run(
            "SELECT digest FROM checkpoints WHERE position = ? LIMIT 1", position
        )
        if not found:
            raise StoreError(f"the log has no entry {position}, which a checkpoint was to follow.")
        return bytes(found[0][0])

    def checkpoint(self, version: int | None = None, *, until: int | None = None) -> Checkpoint | None:
        """The checkpoint of a version, or the newest, or the newest at or before a position; None if there is none."""
        with self._database.reading() as cursor:
            column, limit = ("position", until) if version is None else ("version", version)
            found = cursor.run(
                f"SELECT {_CHECKPOINT.format(state='state')} FROM checkpoints WHERE {column} <= ? "
                "ORDER BY version DESC LIMIT 1",
                2**62 if limit is None else limit,
            )
        if found and version not in (None, found[0][0]):
            return None
        return _checkpoint(*found[0]) if found else None

    def first_checkpoint(self) -> Checkpoint | None:
        """The checkpoint where a replay of the log begins; None if there is none."""
        with self._database.reading() as cursor:
            ((base,),) = cursor.run("SELECT number FROM meta WHERE name = 'base'")
        return self.checkpoint(base)

    def newest_version(self) -> int:
        """Version of the newest checkpoint; 0 if there is none."""
        with self._database.reading() as cursor:
            ((version,),) = cursor.run("SELECT MAX(version) FROM checkpoints")
        return version or 0

    def checkpoints(self) -> list[Checkpoint]:
        """All checkpoints without their states, the newest first."""
        columns = _CHECKPOINT.format(state=f"CAST('' AS {self._database.blob})")
        with self._database.reading() as cursor:
            rows = cursor.run(f"SELECT {columns} FROM checkpoints ORDER BY version DESC")
        return [_checkpoint(*row) for row in rows]

    # -- retention -----------------------------------------------------------------------------------------------------

    def remove_before(self, at: float, *, spare: int = 0) -> int:
        """Remove old events, and entries that no later model needs.

        Entries are removed up to a checkpoint, at which a replay then begins; earlier checkpoints are also removed.
        Events without answers are removed by their time alone.

        Parameters
        ----------
        at : float
            What is older than this time, in seconds since 1970, may be removed.
        spare : int, default 0
            Number of entries before that checkpoint that stay: a fit, or learning after drift, may read them again.

        Returns
        -------
        int
            Number of events removed.

        Raises
        ------
        StoreError
            When nothing was removed.
        """
        with self._turn, self._database.writing() as cursor:
            ((first_new,),) = cursor.run("SELECT MIN(seq) FROM entries WHERE at >= ?", at)
            ((last,),) = cursor.run("SELECT number FROM meta WHERE name = 'head'")
            old = last if first_new is None else first_new - 1
            # never before the checkpoint where a replay begins already: entries between the two may have been removed
            found = cursor.run(
                "SELECT MAX(version), MAX(position) FROM checkpoints "
                "WHERE position <= ? AND version >= (SELECT number FROM meta WHERE name = 'base')",
                old,
            )
            removed = cursor.run("DELETE FROM events WHERE answered = 0 AND at < ? RETURNING 1", at)
            ((version, position),) = found
            if version is not None:
                until = position - spare
                removed += cursor.run("DELETE FROM events WHERE answered > 0 AND answered <= ? RETURNING 1", until)
                cursor.run("DELETE FROM entries WHERE seq <= ?", until)
                cursor.run("UPDATE meta SET number = ? WHERE name = 'base'", version)
                self._remove_checkpoints(cursor, version, position)
        return len(removed)

    @staticmethod
    def _remove_checkpoints(cursor: Cursor, base: int, position: int) -> None:
        """Remove the checkpoints before the one where a replay begins, except those that the replay will activate."""
        rows = cursor.run("SELECT content FROM entries WHERE seq > ? AND kind = ?", position, str(Kind.ACTIVATION))
        activated = {msgspec.msgpack.decode(bytes(content))["version"] for (content,) in rows}
        for (version,) in cursor.run("SELECT version FROM checkpoints WHERE version < ?", base):
            if version not in activated:
                cursor.run("DELETE FROM checkpoints WHERE version = ?", version)
        cursor.run("UPDATE checkpoints SET kept = 1 WHERE version = ?", base)

    def vacuum(self) -> None:
        """Free the space of removed rows.

        SQLite refuses writers during this; PostgreSQL locks each table while it copies it, and its queries wait.
        """
        with self._turn:
            self._database.vacuum()

    # -- the learner, keys, sizes --------------------------------------------------------------------------------------

    def lease(self, owner: str, seconds: float) -> bool:
        """Lease learning to an owner for some seconds; False if another owner's lease has not expired."""
        with self._turn, self._database.writing() as cursor:
            now = self._database.now(cursor)
            found = cursor.run("SELECT owner, until FROM lease WHERE id = 1")
            # a lease that ends implausibly late was written before the clock was set back, and has expired
            if found and found[0][0] != owner and now < found[0][1] <= now + 10 * seconds:
                return False
            cursor.run("DELETE FROM lease")
            cursor.run("INSERT INTO lease VALUES (1, ?, ?)", owner, now + seconds)
        return True

    def release(self, owner: str) -> None:
        """End the lease of an owner."""
        with self._turn, self._database.writing() as cursor:
            cursor.run("DELETE FROM lease WHERE owner = ?", owner)

    def add_key(self, name: str, hash: bytes, scopes: str) -> bool:
        """Store the hash of an API key; False if the name is taken."""
        with self._turn, self._database.writing() as cursor:
            cursor.run("INSERT INTO meta VALUES ('keys', 1, NULL) ON CONFLICT DO NOTHING")
            statement = "INSERT INTO keys VALUES (?, ?, ?) ON CONFLICT DO NOTHING RETURNING 1"
            return bool(cursor.run(statement, name, hash, scopes))

    def remove_key(self, name: str) -> bool:
        """Remove an API key; False if none has that name."""
        with self._turn, self._database.writing() as cursor:
            cursor.run("INSERT INTO meta VALUES ('keys', 1, NULL) ON CONFLICT DO NOTHING")  # for an older store
            return bool(cursor.run("DELETE FROM keys WHERE name = ? RETURNING 1", name))

    def had_keys(self) -> bool:
        """Whether an API key was ever created."""
        with self._database.reading() as cursor:
            return bool(cursor.run("SELECT 1 FROM meta WHERE name = 'keys'"))

    def api_keys(self) -> list[tuple[str, bytes, str]]:
        """Names, hashes and scopes of the API keys."""
        with self._database.reading() as cursor:
            rows = cursor.run("SELECT name, hash, scopes FROM keys ORDER BY name")
        return [(name, bytes(hash), scopes) for name, hash, scopes in rows]

    def size(self) -> int:
        """Bytes on disk."""
        return self._database.size()

    def close(self) -> None:
        """Close all connections."""
        self._database.close()


class _Documents(msgspec.Struct):
    """Only the documents of a `Shown`, which is faster to decode than a whole `Shown`."""

    documents: list[str]


_shown_decoder = msgspec.msgpack.Decoder(Shown)
_documents_decoder = msgspec.msgpack.Decoder(_Documents)


class _Known:
    """State of the events that a transaction's entries answer, read in two statements."""

    def __init__(self, cursor: Cursor, ids: list[str]):
        rows = _found(cursor, "SELECT id, at, answered, digest, content FROM events WHERE id", ids)
        self.events = {id: (at, answered, bytes(digest), bytes(shown)) for id, at, answered, digest, shown in rows}
        numbers = [answered for _, answered, *_ in self.events.values() if answered]
        rows = _found(cursor, "SELECT seq, kind, content FROM entries WHERE seq", numbers)
        self.entries = {seq: (kind, bytes(content)) for seq, kind, content in rows}

    def answer(self, entry: Entry, seq: int) -> None:
        """Record that an entry answers its event."""
        if entry.event is not None:
            at, _, digest, shown = self.events[entry.event]
            self.events[entry.event] = at, seq, digest, shown
            self.entries[seq] = str(entry.kind), entry.content


# Maximum number of rows in one statement, for which SQLite takes at most 32,766 values. Few statements are faster:
# between two of them a thread may wait milliseconds for the interpreter, while another thread computes.
_ROWS = 512


def _insert(cursor: Cursor, columns: str, rows: list[tuple[Any, ...]], conflict: str = "") -> None:
    """Insert rows."""
    for start in range(0, len(rows), _ROWS):
        part = rows[start : start + _ROWS]
        places = ", ".join([f"({', '.join('?' * len(part[0]))})"] * len(part))
        cursor.run(f"INSERT INTO {columns} VALUES {places} {conflict}", *(value for row in part for value in row))


def _found(cursor: Cursor, statement: str, values: Sequence[Value]) -> list[tuple[Any, ...]]:
    """The rows that ``statement`` selects if it is completed by ``IN (values)``."""
    found = []
    for start in range(0, len(values), _ROWS):
        part = values[start : start + _ROWS]
        found += cursor.run(f"{statement} IN ({', '.join('?' * len(part))})", *part)
    return found


def _number_within(sizes: list[tuple[int]], max_bytes: int) -> int:
    """How many of the sizes, from the first one on, add up to at most ``max_bytes``; at least 1."""
    within = sum(total <= max_bytes for total in accumulate(size for (size,) in sizes))
    return max(1, within)


def _row(event: Event) -> tuple[Any, ...]:
    return event.id, event.at, event.digest, event.content, event.features


def _event(id: str, at: float, content: bytes, features: bytes) -> Event:
    return Event(id, at, _shown_decoder.decode(content), bytes(features))


def _checkpoint(version: int, position: int, at: float, digest: bytes, state: bytes, kept: int) -> Checkpoint:
    return Checkpoint(version, position, at, bytes(digest), bytes(state), bool(kept))
