"""Databases of a store: a SQLite file, or PostgreSQL for services on several machines.

Each has as many connections as threads have used at the same time. SQLite is in WAL mode, so that readers never wait; a
transaction is safely on disk when it ends. A connection to PostgreSQL is reopened after it was lost.
"""

import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from ranksvm.exceptions import MissingDependencyError, StoreError

if TYPE_CHECKING:
    import psycopg

    from ranksvm.serving.store import Cursor, Value

__all__ = ["PostgresDatabase", "SQLiteDatabase"]

# "rsvm" in ASCII: application id of the SQLite file, by which the command `file` and this module recognize it, and
# number of the advisory lock that a writer of PostgreSQL holds
_RSVM = 0x7273766D
# If the write-ahead log is larger than this many bytes when the learner has saved its state, the log is copied into the
# file. This is about half the size at which SQLite makes the next writer copy the log.
_LARGE_LOG = 16 << 20


class _Closable(Protocol):
    def close(self) -> None: ...


C = TypeVar("C", bound=_Closable)


class _Connections(Generic[C]):
    """Connections that threads take in turns: the service starts and ends threads all the time."""

    def __init__(self, connect: Callable[[], C], is_usable: Callable[[C], bool] = lambda _: True):
        self._connect, self._is_usable = connect, is_usable
        self._idle: list[C] = []

    @contextmanager
    def one(self) -> Iterator[C]:
        """A connection that no other thread uses until the block ends."""
        idle = self._idle
        connection = self._taken(idle)
        try:
            yield connection
        finally:
            if idle is self._idle:
                idle.append(connection)
            else:  # the others were closed in the meantime
                connection.close()

    def remove(self) -> list[C]:
        """Remove and return all idle connections."""
        idle, self._idle = self._idle, []
        return idle

    def _taken(self, idle: list[C]) -> C:
        with suppress(IndexError):  # there is none left
            while not self._is_usable(connection := idle.pop()):
                pass
            return connection
        return self._connect()


class _SQLiteCursor:
    def __init__(self, connection: sqlite3.Connection):
        self._connection = connection

    def run(self, statement: str, *values: "Value") -> list[tuple[Any, ...]]:
        return self._connection.execute(statement, values).fetchall()


class SQLiteDatabase:
    """A SQLite file.

    Parameters
    ----------
    path : str
        The file.
    create : bool, default True
        Whether to create the file if it does not exist.
    patience : float, default 5.0
        Seconds for which a writer waits for writers of other processes.
    """

    blob = "BLOB"

    def __init__(self, path: str, *, create: bool = True, patience: float = 5.0):
        self.path, self._patience = path, patience
        self._connections = _Connections(self._connect)
        if path in ("", ":memory:"):  # SQLite would make a private database for each connection
            raise StoreError(f"the store is {path!r}: give the path of a file, or postgresql://USER@HOST/DATABASE.")
        if not create and not os.path.exists(path):
            raise StoreError(f"{path}: there is no such file.")
        with self._errors(), self._connections.one() as connection:
            ((application,),) = connection.execute("PRAGMA application_id").fetchall()
            ((tables,),) = connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchall()
            if application != _RSVM:
                if tables:
                    raise StoreError(f"{path} is an SQLite file of another program.")
                connection.execute(f"PRAGMA application_id = {_RSVM}")
            connection.execute("PRAGMA journal_mode = WAL")
            self._file = _identity(path)

    @contextmanager
    def reading(self) -> Iterator[_SQLiteCursor]:
        """A transaction whose statements all read the same state of the database."""
        with self._transaction("BEGIN") as cursor:
            yield cursor

    @contextmanager
    def writing(self) -> Iterator[_SQLiteCursor]:
        """A transaction that excludes other writers and is on disk when the block has ended."""
        with self._transaction("BEGIN IMMEDIATE") as cursor:
            yield cursor

    def has_tables(self, cursor: "Cursor") -> bool:
        """Whether the tables of a store exist."""
        return bool(cursor.run("SELECT 1 FROM sqlite_master WHERE name = 'meta'"))

    def now(self, cursor: "Cursor") -> float:
        """The time of this machine, which all processes that use the file share."""
        return time.time()

    def size(self) -> int:
        """Bytes of the file after the write-ahead log has been copied into it.

        The log itself is not counted: it may contain a page many times, and is empty after the last service ends.
        """
        with self.reading() as cursor:
            ((pages,),) = cursor.run("PRAGMA page_count")
            ((bytes_of_page,),) = cursor.run("PRAGMA page_size")
        return int(pages * bytes_of_page)

    def shrink_log(self) -> None:
        """Copy a large write-ahead log into the file, and empty it unless another connection is using it."""
        try:
            large = os.path.getsize(f"{self.path}-wal") > _LARGE_LOG
        except OSError:  # the log is absent until the first transaction
            return
        if not large:
            return
        # after an error the log stays unchanged until the next time
        with suppress(sqlite3.Error), self._connections.one() as connection:
            # most of it is copied while others write
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
            # with a timeout this would wait for readers while no writer can begin
            connection.execute("PRAGMA busy_timeout = 0")
            try:
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            finally:
                connection.execute(f"PRAGMA busy_timeout = {int(1000 * self._patience)}")

    def vacuum(self) -> None:
        """Return the space of removed rows to the file system."""
        with self._errors(), self._connections.one() as connection:
            connection.execute("VACUUM")
            # until now the smaller copy is only in the write-ahead log
            ((busy, _, _),) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        if busy:
            raise StoreError(f"another process is reading {self.path}, which stays as large: try again later.")

    def close(self) -> None:
        """Close all connections."""
        for connection in self._connections.remove():
            with suppress(sqlite3.Error):
                connection.close()

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=self._patience, isolation_level=None, check_same_thread=False)
        # FULL: the write-ahead log is synchronized at every commit
        connection.execute("PRAGMA synchronous = FULL")
        # the log is copied to the file less often, and more at a time, than with the default of 1,000 pages
        connection.execute("PRAGMA wal_autocheckpoint = 8000")
        connection.execute("PRAGMA journal_size_limit = 67108864")
        return connection

    def _check_file(self) -> None:
        """Refuse to use a file that is no longer at its path: its content would be lost when the process ends."""
        try:
            same = _identity(self.path) == self._file
        except OSError:
            same = False
        if not same:
            raise StoreError(
                f"{self.path} was deleted, renamed or replaced while it is in use: put it back, or restart the service."
            )

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[_SQLiteCursor]:
        with self._errors():
            self._check_file()  # first: a new connection must be to this file
            with self._connections.one() as connection:
                connection.execute(begin)
                try:
                    yield _SQLiteCursor(connection)
                    self._check_file()
                    connection.execute("COMMIT")
                except BaseException:
                    # SQLite itself rolls back after some errors
                    with suppress(sqlite3.Error):
                        connection.execute("ROLLBACK")
                    raise

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise StoreError(f"{self.path}: {_explained(error)}") from error


def _identity(path: str) -> tuple[int, int]:
    """Device and inode number of a file."""
    found = os.stat(path)
    return found.st_dev, found.st_ino


def _explained(error: sqlite3.Error) -> str:
    name = getattr(error, "sqlite_errorname", "")
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return "the store is locked by another process."
    if name.startswith("SQLITE_FULL"):
        return "the disk of the store is full."
    if name.startswith("SQLITE_NOTADB"):
        return "it is not an SQLite file."
    if name.startswith("SQLITE_CORRUPT"):
        return f"the store is damaged ({error}): restore it from a backup; `sqlite3 FILE .recover` reads what is left."
    if name.startswith("SQLITE_CANTOPEN"):
        return "the file cannot be opened: it is a folder, or its folder does not exist or is not writable."
    return f"the store failed: {error}."


class _PostgresCursor:
    def __init__(self, connection: "psycopg.Connection"):
        self._connection = connection

    def run(self, statement: str, *values: "Value") -> list[tuple[Any, ...]]:
        cursor = self._connection.execute(statement.replace("?", "%s"), values)
        return cursor.fetchall() if cursor.description else []


class PostgresDatabase:
    """A database of PostgreSQL.

    Parameters
    ----------
    url : str
        ``postgresql://user:password@host/database``.
    """

    blob = "BYTEA"

    def __init__(self, url: str):
        try:
            import psycopg
        except ImportError:
            raise MissingDependencyError(
                'a store in PostgreSQL needs psycopg: pip install "ranksvm[serve,postgres]"'
            ) from None
        self._errors_of = psycopg.Error
        self._url = url
        self._connections = _Connections(self._connect, self._is_usable)

    @contextmanager
    def reading(self) -> Iterator[_PostgresCursor]:
        """A transaction whose statements all read the same state of the database."""
        with self._transaction() as connection:
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield _PostgresCursor(connection)

    @contextmanager
    def writing(self) -> Iterator[_PostgresCursor]:
        """A transaction that excludes other writers and is on disk when the block has ended."""
        with self._transaction() as connection:
            # this overrides the default of the server or the role
            connection.execute("SET LOCAL synchronous_commit = on")
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (_RSVM,))
            yield _PostgresCursor(connection)

    def has_tables(self, cursor: "Cursor") -> bool:
        """Whether the tables of a store exist."""
        ((found,),) = cursor.run("SELECT to_regclass('meta') IS NOT NULL")
        return found

    def now(self, cursor: "Cursor") -> float:
        """The time of the server."""
        ((now,),) = cursor.run("SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) AS DOUBLE PRECISION)")
        return now

    def size(self) -> int:
        """Bytes of the tables and indices."""
        tables = "'meta'", "'events'", "'entries'", "'checkpoints'"
        with self.reading() as cursor:
            ((size,),) = cursor.run(f"SELECT {' + '.join(f'pg_total_relation_size({name})' for name in tables)}")
        return int(size)

    def shrink_log(self) -> None:
        """Do nothing: the server does this itself."""

    def vacuum(self) -> None:
        """Return the space of removed rows; each table is locked while it is copied, and its queries wait."""
        with self._errors(), self._connections.one() as connection:
            # without FULL the tables would keep the space
            connection.execute("VACUUM (FULL) events, entries, checkpoints")

    def close(self) -> None:
        """Close all connections."""
        for connection in self._connections.remove():
            with suppress(self._errors_of):
                connection.close()

    def _connect(self) -> "psycopg.Connection":
        import psycopg

        # without autocommit a transaction would begin outside the blocks that end it
        return psycopg.connect(self._url, connect_timeout=5, autocommit=True)

    @staticmethod
    def _is_usable(connection: "psycopg.Connection") -> bool:
        """Whether the server still answers through a connection."""
        import psycopg

        with suppress(psycopg.OperationalError):
            connection.execute("SELECT 1")
        return not connection.closed

    @contextmanager
    def _transaction(self) -> "Iterator[psycopg.Connection]":
        with self._errors(), self._connections.one() as connection, connection.transaction():
            yield connection

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except self._errors_of as error:
            # not the URL, which may hold a password
            reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            raise StoreError(f"PostgreSQL: {reason.rstrip('.')}.") from error
