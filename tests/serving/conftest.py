"""Stores of each kind, and events and feedback to put in them."""

import glob
import os
import pwd
import shutil
import subprocess
import tempfile

import msgspec
import numpy as np
import pytest

pytest.importorskip("msgspec", reason="msgspec is not installed: no service is tested")

from ranksvm.serving.records import Entry, Event, Kind, Shown
from ranksvm.serving.store import open_store


def event(number, n_documents=4, n_features=3, at=1000.0):
    """An event whose random features depend on its number."""
    X = np.random.default_rng(number).normal(size=(n_documents, n_features))
    shown = Shown([f"d{row}" for row in range(n_documents)], list(range(n_documents)), 1, n_features, X.dtype.str)
    return Event(f"e{number:06d}", at, shown, X.tobytes())


def feedback(id, says=None, kind=Kind.FEEDBACK, at=1000.0):
    """A log entry with feedback on an event."""
    return Entry(kind, id, msgspec.msgpack.encode({"labels": [2, 1, 0, 0]} if says is None else says), at)


def _programs():
    """The folder of PostgreSQL's programs, or None."""
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))
    path = found[-1] if found else shutil.which("initdb")
    return None if path is None else os.path.dirname(path)


def _other_user():
    users = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in users else "nobody"


def _run_as_nobody_special(command, **options):
    """Run a program of PostgreSQL as another user if this process is root: it refuses to run as root."""
    if os.getuid() == 0:
        options["user"] = _other_user()
    return subprocess.run(command, check=True, capture_output=True, cwd="/", **options)


class PostgresServer:
    """A new PostgreSQL server in a new folder; it listens at a Unix socket in this folder."""

    def __init__(self, programs):
        self._programs = programs
        self.folder = tempfile.mkdtemp(prefix="ranksvm-pg-")
        if os.getuid() == 0:
            shutil.chown(self.folder, _other_user())
        self._run("initdb", "-D", f"{self.folder}/data", "-U", "tester", "-A", "trust", "--no-sync", "-E", "UTF8")
        self.start()
        self._databases = 0

    def _run(self, program, *arguments):
        _run_as_nobody_special([f"{self._programs}/{program}", *arguments])

    def start(self):
        options = f"-k {self.folder} -c listen_addresses='' -c fsync=off"
        log = f"{self.folder}/log"
        self._run("pg_ctl", "-D", f"{self.folder}/data", "-w", "-o", options, "-l", log, "start")

    def stop(self):
        self._run("pg_ctl", "-D", f"{self.folder}/data", "-w", "-m", "immediate", "stop")

    def url(self, database="postgres"):
        return f"postgresql://tester@/{database}?host={self.folder}"

    def new_database(self):
        import psycopg

        self._databases += 1
        name = f"store{self._databases}"
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self.url(name)


@pytest.fixture(scope="session")
def postgres():
    """A PostgreSQL server; tests that need it are skipped if it is not installed."""
    pytest.importorskip("psycopg", reason="psycopg is not installed: no store in PostgreSQL is tested")
    programs = _programs()
    if programs is None:
        pytest.skip("PostgreSQL is not installed (apt-get install postgresql): no store in it is tested")
    server = PostgresServer(programs)
    yield server
    server.stop()
    shutil.rmtree(server.folder)


@pytest.fixture(params=["sqlite", "postgres"])
def url(request, tmp_path):
    """The path or URL for a new store."""
    if request.param == "sqlite":
        return str(tmp_path / "events.db")
    return request.getfixturevalue("postgres").new_database()


@pytest.fixture
def store(url):
    """A new, open store."""
    opened = open_store(url)
    yield opened
    opened.close()
