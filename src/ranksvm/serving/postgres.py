"""PostgreSQL, for services on several machines; one connection per thread, reopened after it was lost."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from ranksvm.exceptions import MissingDependencyError, StoreError

if TYPE_CHECKING:
    import psycopg

    from ranksvm.serving.store import Cursor, Value

__all__ = ["PostgresDatabase"]

# "rsvm" in ASCII: number of the advisory lock that a writer holds
_WRITER = 0x7273766D


class _Cursor:
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
                "a store in PostgreSQL needs psycopg: pip install 'ranksvm[serve,postgres]'"
            ) from None
        self._errors_of = psycopg.Error
        self._url = url
        self._own = threading.local()
        self._all: list[psycopg.Connection] = []

    @contextmanager
    def reading(self) -> Iterator[_Cursor]:
        """A transaction whose statements all read the same state of the database."""
        with self._transaction() as connection:
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield _Cursor(connection)

    @contextmanager
    def writing(self) -> Iterator[_Cursor]:
        """A transaction that excludes other writers and is on disk when the block has ended."""
        with self._transaction() as connection:
            # this overrides the default of the server or the role
            connection.execute("SET LOCAL synchronous_commit = on")
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (_WRITER,))
            yield _Cursor(connection)

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
        with self._errors():
            # without FULL the tables would keep the space
            self._connection().execute("VACUUM (FULL) events, entries, checkpoints")

    def close(self) -> None:
        """Close all connections."""
        while self._all:
            with suppress(self._errors_of):
                self._all.pop().close()
        self._own = threading.local()

    def _connection(self) -> "psycopg.Connection":
        """The connection of this thread; it is replaced if the server does not answer through it any more."""
        import psycopg

        connection = getattr(self._own, "connection", None)
        if connection is not None:
            with suppress(psycopg.OperationalError):
                connection.execute("SELECT 1")
            if not connection.closed:
                return connection
            self._all.remove(connection)
            del self._own.connection
        # without autocommit a transaction would begin outside the blocks that end it
        connection = psycopg.connect(self._url, connect_timeout=5, autocommit=True)
        self._own.connection = connection
        self._all.append(connection)
        return connection

    @contextmanager
    def _transaction(self) -> "Iterator[psycopg.Connection]":
        with self._errors():
            connection = self._connection()
            with connection.transaction():
                yield connection

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except self._errors_of as error:
            # not the URL, which may hold a password
            reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            raise StoreError(f"PostgreSQL: {reason.rstrip('.')}.") from error
