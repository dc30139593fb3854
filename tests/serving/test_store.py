"""The log in SQLite and PostgreSQL: durable, in order, each feedback once, and verifiable."""

import os
import sqlite3
import threading

import msgspec
import pytest

from ranksvm.exceptions import StoreError
from ranksvm.serving.records import Entry, Kind, Outcome, next_digest
from ranksvm.serving.store import GENESIS, Store, open_store

from .conftest import event, feedback


def outcomes(store, *items):
    return [receipt.outcome for receipt in store.append(items)]


def test_what_is_appended_is_read_back(store, url):
    one = event(1)
    assert [receipt.seq for receipt in store.append([one, feedback(one.id)])] == [0, 1]
    again = open_store(url)
    assert again.event(one.id) == one
    (entry,) = again.entries(0, 10)
    assert (entry.seq, entry.answered, entry.entry.decoded) == (1, one, {"labels": [2, 1, 0, 0]})
    assert again.event("other") is None
    again.close()


def test_feedback_counts_once(store):
    assert outcomes(store, feedback("e000001")) == [Outcome.UNKNOWN]
    one = event(1)
    assert outcomes(store, one, feedback(one.id), feedback(one.id)) == [
        Outcome.STORED,
        Outcome.STORED,
        Outcome.DUPLICATE,
    ]
    assert outcomes(store, feedback(one.id, at=5.0)) == [Outcome.DUPLICATE]
    assert outcomes(store, feedback(one.id, {"clicks": ["d1"]})) == [Outcome.CONFLICT]
    assert store.head[0] == 1


def test_feedback_that_does_not_fit_its_event_is_not_stored(store):
    one = event(1)
    wrong = feedback(one.id, {"clicks": ["d1", "d9"]}), feedback(one.id, {"labels": [1.0]})
    receipts = store.append([one, *wrong, feedback(one.id), wrong[0]])
    assert [receipt.outcome for receipt in receipts[1:]] == [
        Outcome.MISMATCH,
        Outcome.MISMATCH,
        Outcome.STORED,
        Outcome.MISMATCH,  # what is wrong with it, rather than that it differs from what is stored
    ]
    assert receipts[1].reason == "the event has no document 'd9'."
    assert receipts[2].reason == "there are 1 labels for 4 documents."
    assert store.head[0] == 1


def test_sequence_numbers_have_no_gaps_and_digests_form_a_chain(store):
    events = [event(number) for number in range(5)]
    store.append(events)
    store.append([feedback(events[3].id), feedback("unknown"), feedback(events[0].id)])
    store.append([feedback(events[2].id)])
    entries = store.entries(0, 10)
    assert [entry.seq for entry in entries] == [1, 2, 3]
    assert [entry.entry.event for entry in entries] == [events[i].id for i in (3, 0, 2)]
    digest = GENESIS
    for entry in entries:
        digest = next_digest(digest, entry.seq, entry.entry, entry.answered.digest)
        assert entry.digest == digest
    assert store.head == (3, digest)
    assert [entry.seq for entry in store.entries(1, 10, until=2)] == [2]


def test_no_more_entries_are_read_at_a_time_than_fit_into_memory(store, monkeypatch):
    events = [event(number, n_documents) for number, n_documents in enumerate((4, 4, 300, 4, 4))]
    store.append([item for one in events for item in (one, feedback(one.id, {"clicks": []}))])
    monkeypatch.setattr("ranksvm.serving.store._MAX_BYTES", 1000)
    parts, last = [], 0
    while part := store.entries(last, 10):
        parts.append([entry.seq for entry in part])
        last = parts[-1][-1]
    assert parts == [[1, 2], [3], [4, 5]]
    assert [entry.seq for entry in store.entries(0, 10, until=1)] == [1]
    assert [entry.seq for entry in store.entries(3, 1)] == [4]


def test_the_newest_events_are_read_one_by_one(store):
    store.append([event(number) for number in range(3)])
    found = store.recent_events(10)
    assert next(found)[0] == "e000002"
    store.append([event(3)])  # no transaction is open in between
    store.remove_before(2000.0)
    assert list(found) == []  # they were removed


def test_writers_of_several_connections_share_one_order(store, url):
    others = [open_store(url) for _ in range(3)]

    def write(place, opened):
        for number in range(10):
            one = event(100 * place + number)
            opened.append([one, feedback(one.id)])

    threads = [threading.Thread(target=write, args=item) for item in enumerate(others)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [entry.seq for entry in store.entries(0, 100)] == list(range(1, 31))
    for opened in others:
        opened.close()


def test_a_checkpoint_follows_the_one_it_continued_from(store):
    first = store.save_checkpoint(0, b"a", at=1.0, after=0, kept=True)
    assert (first.version, first.digest) == (1, GENESIS)
    one = event(1)
    store.append([one, feedback(one.id)])
    second = store.save_checkpoint(1, b"b", at=2.0, after=1)
    assert second.version == 2
    assert store.save_checkpoint(1, b"c", at=3.0, after=1) is None  # another learner was faster
    assert store.checkpoint() == second
    assert store.checkpoint(until=0) == first == store.first_checkpoint() == store.checkpoint(1)
    assert [(found.version, found.state) for found in store.checkpoints()] == [(2, b""), (1, b"")]
    with pytest.raises(StoreError, match="no entry 9"):
        store.save_checkpoint(9, b"", at=3.0, after=2)


def test_old_checkpoints_are_removed_but_one_a_day_and_those_in_use(store):
    store.save_checkpoint(0, b"", at=0.0, after=0, kept=True)
    for version in range(1, 10):
        store.save_checkpoint(0, b"", at=20_000.0 * version, after=version, newest=3)
    # versions 6 and 10 are the first of their days
    assert [found.version for found in store.checkpoints()] == [10, 9, 8, 6, 1]
    store.append([Entry(Kind.ACTIVATION, None, msgspec.msgpack.encode({"version": 8}), 0.0)])
    for version in range(10, 14):
        store.save_checkpoint(0, b"", at=200_000.0, after=version, newest=2)
    assert [found.version for found in store.checkpoints()] == [14, 13, 10, 8, 6, 1]


def test_one_learns_and_another_takes_over(store, monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(store._database, "now", lambda cursor: now[0])
    assert store.lease("one", 5.0)
    assert not store.lease("two", 5.0)
    now[0] += 4.0
    assert store.lease("one", 5.0)
    now[0] += 6.0  # it was killed
    assert store.lease("two", 5.0)
    assert not store.lease("one", 5.0)
    store.release("two")
    assert store.lease("one", 5.0)
    now[0] -= 86_400.0  # the clock was set back: nobody waits for a day
    assert store.lease("two", 5.0)


def test_events_expire(url, monkeypatch):
    store = open_store(url, reward_wait=60.0)
    monkeypatch.setattr(store._database, "now", lambda cursor: 1061.0)
    old, new = event(1, at=1000.0), event(2, at=1002.0)
    store.append([old, new])
    assert store.unanswered(10) == [old.id]
    none = b"\x80"
    assert outcomes(store, feedback(old.id), Entry(Kind.UNANSWERED, new.id, none, 1061.0)) == [
        Outcome.EXPIRED,
        Outcome.NOT_DUE,
    ]
    assert outcomes(store, Entry(Kind.UNANSWERED, old.id, none, 1061.0)) == [Outcome.STORED]
    assert outcomes(store, feedback(old.id)) == [Outcome.EXPIRED]
    assert outcomes(store, Entry(Kind.UNANSWERED, old.id, none, 1061.0)) == [Outcome.NOT_DUE]
    monkeypatch.setattr(store._database, "now", lambda cursor: 0.0)  # a clock that went back expires nothing
    assert store.unanswered(10) == []
    assert outcomes(store, feedback(new.id)) == [Outcome.STORED]
    store.close()


def test_retention_keeps_a_log_that_can_be_replayed(store):
    store.save_checkpoint(0, b"start", at=0.0, after=0, kept=True)
    events = [event(number, at=float(number)) for number in range(1, 9)]
    store.append(events)
    for number in range(1, 7):
        store.append([feedback(events[number - 1].id, at=float(number))])
        if number % 2 == 0:
            store.save_checkpoint(number, b"state %d" % number, at=float(number), after=number // 2)
    assert store.remove_before(5.5, spare=1) == 3  # entries 1 to 5 are old; a replay begins at checkpoint 4
    assert [entry.seq for entry in store.entries(0, 10)] == [4, 5, 6]
    assert store.first_checkpoint().position == 4
    assert store.event(events[0].id) is None
    assert outcomes(store, feedback(events[0].id)) == [Outcome.UNKNOWN]
    assert store.event(events[7].id) is not None
    assert store.remove_before(100.0) == 3 + 2  # answered ones up to 6, and those without an answer
    assert store.head[0] == 6
    assert store.save_checkpoint(6, b"", at=9.0, after=4).digest == store.head[1]
    store.vacuum()
    assert store.size() > 0


def test_vacuum_gives_back_the_space_of_what_was_removed(store, url):
    events = [event(number, n_documents=100, n_features=30, at=float(number)) for number in range(60)]
    store.append(events)
    store.append([feedback(one.id, {"clicks": ["d1"]}, at=one.at) for one in events])
    kept = store.entries(50, 100)
    store.save_checkpoint(50, b"state", at=100.0, after=0)
    store.vacuum()
    full = store.size()
    assert full > 60 * 100 * 30 * 8
    assert store.remove_before(50.0) == 50
    assert store.size() >= full  # what was removed leaves its space to the store
    store.vacuum()
    assert store.size() < full / 3  # a sixth of the events is left
    assert store.entries(50, 100) == kept
    assert store.event(events[0].id) is None
    again = open_store(url)
    assert (again.size(), again.head) == (store.size(), store.head)
    again.close()
    assert outcomes(store, event(99), feedback("e000099")) == [Outcome.STORED, Outcome.STORED]


def test_feedback_waits_while_postgresql_copies_a_table(postgres):
    import psycopg

    url = postgres.new_database()
    store = open_store(url)
    assert outcomes(store, event(1)) == [Outcome.STORED]
    found = []
    with psycopg.connect(url) as other:
        other.execute("LOCK TABLE events IN ACCESS EXCLUSIVE MODE")  # as VACUUM FULL does
        writer = threading.Thread(target=lambda: found.extend(outcomes(store, feedback("e000001"))))
        writer.start()
        writer.join(0.3)
        assert writer.is_alive()
        assert found == []
    writer.join()
    assert found == [Outcome.STORED]


def test_an_activated_version_stays_as_long_as_a_replay_needs_it(store):
    assert outcomes(store, activation(9)) == [Outcome.UNKNOWN]
    store.save_checkpoint(0, b"start", at=0.0, after=0, kept=True)
    events = [event(number, at=float(number)) for number in range(1, 5)]
    store.append(events)
    for number, one in enumerate(events, 1):
        store.append([feedback(one.id, at=float(number))])
        store.save_checkpoint(number, b"", at=float(number), after=number)
    assert outcomes(store, activation(2), activation(4)) == [Outcome.STORED] * 2
    store.save_checkpoint(6, b"", at=6.0, after=5)
    store.remove_before(4.5)
    assert [found.version for found in store.checkpoints()] == [6, 5, 4, 2]
    assert store.first_checkpoint().version == 5
    store.remove_before(100.0)
    assert [found.version for found in store.checkpoints()] == [6]


def test_a_longer_retention_does_not_move_the_start_of_a_replay_back(store):
    store.save_checkpoint(0, b"start", at=0.0, after=0, kept=True)
    for number in range(1, 5):
        one = event(number, at=float(number))
        store.append([one, feedback(one.id, at=float(number))])
        store.save_checkpoint(number, b"", at=float(number), after=number)
    store.append([activation(2)])  # so that version 2 is not removed
    assert store.remove_before(4.5, spare=1) == 3
    assert store.remove_before(2.5, spare=1) == 0
    assert [found.version for found in store.checkpoints()] == [5, 2]
    assert store.first_checkpoint().position == 4  # entries 2 and 3, which follow version 2, were removed


def activation(version):
    return Entry(Kind.ACTIVATION, None, msgspec.msgpack.encode({"version": version, "model": "champion"}), 5.0)


def test_keys_are_stored_by_name(store):
    assert store.add_key("shop", b"hash", "rank")
    assert not store.add_key("shop", b"other", "rank")
    assert store.api_keys() == [("shop", b"hash", "rank")]
    assert store.remove_key("shop")
    assert not store.remove_key("shop")


def test_a_failed_transaction_leaves_nothing(store, monkeypatch):
    one = event(1)
    monkeypatch.setattr(Store, "_mark", staticmethod(lambda cursor, _: cursor.run("SELECT no_such_column")))
    with pytest.raises(StoreError):
        store.append([one, feedback(one.id)])
    monkeypatch.undo()
    assert store.event(one.id) is None
    assert store.head[0] == 0
    assert outcomes(store, one, feedback(one.id)) == [Outcome.STORED] * 2


def test_another_schema_is_refused(store, url):
    with store._database.writing() as cursor:
        cursor.run("UPDATE meta SET number = 99 WHERE name = 'schema'")
    with pytest.raises(StoreError, match=r"schema version 99, .* version 1. Upgrade it: pip install"):
        open_store(url)


@pytest.mark.parametrize("url", ["", ":memory:"])
def test_a_store_without_a_file_is_refused(url):
    with pytest.raises(StoreError, match=f"the store is '{url}': give the path of a file"):
        open_store(url)


def test_files_that_are_no_stores_are_refused(tmp_path):
    with pytest.raises(StoreError, match="no such file"):
        open_store(str(tmp_path / "none.db"), create=False)
    (tmp_path / "text").write_text("text" * 100)
    with pytest.raises(StoreError, match="not an SQLite file"):
        open_store(str(tmp_path / "text"))
    connection = sqlite3.connect(tmp_path / "other.db")
    connection.execute("CREATE TABLE other (x)")
    connection.close()
    with pytest.raises(StoreError, match="of another program"):
        open_store(str(tmp_path / "other.db"))
    with pytest.raises(StoreError, match="cannot be opened"):
        open_store(str(tmp_path / "no" / "folder.db"))


def test_a_damaged_store_is_refused(tmp_path):
    path = tmp_path / "events.db"
    store = open_store(str(path))
    store.append([event(number, 50) for number in range(20)])
    store.close()
    content = path.read_bytes()
    path.write_bytes(content[:100] + b"\xff" * 8000 + content[8100:])
    with pytest.raises(StoreError, match="damaged"):
        open_store(str(path))


def test_a_full_disk_and_a_lock_are_told(tmp_path):
    store = open_store(str(tmp_path / "events.db"))
    store._database._patience = 0.0
    store._database.close()
    with store._database._connections.one() as connection:
        ((pages,),) = connection.execute("PRAGMA page_count").fetchall()
        connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StoreError, match="disk of the store is full"):
        store.append([event(number, 100) for number in range(20)])
    connection.execute("PRAGMA max_page_count = 1000000")
    other = sqlite3.connect(tmp_path / "events.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match="locked by another process"):
        store.append([event(1)])
    assert store.event("e000001") is None  # readers do not wait
    other.execute("COMMIT")
    assert outcomes(store, event(1)) == [Outcome.STORED]
    other.execute("BEGIN")
    other.execute("SELECT count(*) FROM events").fetchall()
    with pytest.raises(StoreError, match=r"another process is reading .*events\.db"):
        store.vacuum()
    other.execute("COMMIT")
    store.vacuum()


def test_a_commit_is_synchronised(tmp_path):
    store = open_store(str(tmp_path / "events.db"))
    with store._database._connections.one() as connection:
        assert connection.execute("PRAGMA synchronous").fetchall() == [(2,)]
        assert connection.execute("PRAGMA journal_mode").fetchall() == [("wal",)]


def log_size(tmp_path):
    """Bytes of the write-ahead log, 0 if there is none."""
    path = tmp_path / "events.db-wal"
    return path.stat().st_size if path.exists() else 0


def test_the_write_ahead_log_is_emptied_by_checkpoints_and_not_counted(tmp_path, monkeypatch):
    monkeypatch.setattr("ranksvm.serving.databases._LARGE_LOG", 1 << 20)
    store = open_store(str(tmp_path / "events.db"))
    state = bytes(400_000)
    for version in range(2):
        store.save_checkpoint(0, state, at=1.0, after=version)
    assert 0 < log_size(tmp_path) < 1 << 20  # a small one stays
    for version in range(2, 8):
        store.save_checkpoint(0, state, at=1.0, after=version)
    assert log_size(tmp_path) <= (1 << 20) + 500_000
    size = store.size()
    store.close()
    assert log_size(tmp_path) == 0
    assert (tmp_path / "events.db").stat().st_size == size


def test_a_log_that_another_connection_reads_is_emptied_later(tmp_path, monkeypatch):
    monkeypatch.setattr("ranksvm.serving.databases._LARGE_LOG", 0)
    store = open_store(str(tmp_path / "events.db"))
    assert outcomes(store, event(1)) == [Outcome.STORED]
    other = sqlite3.connect(tmp_path / "events.db", isolation_level=None)
    other.execute("BEGIN")
    other.execute("SELECT count(*) FROM events").fetchall()
    store.append([event(2)])
    store.save_checkpoint(0, b"state", at=1.0, after=0)
    assert log_size(tmp_path) > 0
    with store._database._connections.one() as connection:
        ((patience,),) = connection.execute("PRAGMA busy_timeout").fetchall()
    assert patience == 5000
    other.execute("COMMIT")
    other.close()
    store.save_checkpoint(0, b"state", at=1.0, after=1)
    assert log_size(tmp_path) == 0
    store.close()


def test_a_server_that_restarts_is_found_again(postgres):
    store = open_store(postgres.new_database())
    assert outcomes(store, event(1)) == [Outcome.STORED]
    postgres.stop()
    with pytest.raises(StoreError, match="PostgreSQL"):
        store.append([event(2), feedback("e000001")])
    postgres.start()
    receipts = store.append([event(2), feedback("e000001")])
    assert [receipt.seq for receipt in receipts] == [0, 1]
    store.close()


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="the system does not list the files of a process")
def test_threads_that_ended_leave_no_connection(store):
    both, n_open = threading.Barrier(2), []
    for _ in range(5):
        threads = [threading.Thread(target=hold_a_reader, args=(store, both)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        n_open.append(len(os.listdir("/proc/self/fd")))
    assert len(set(n_open)) == 1


def hold_a_reader(store, both):
    """Read the store at the same time as another thread."""
    with store._database.reading() as cursor:
        both.wait()
        cursor.run("SELECT number FROM meta")


@pytest.mark.skipif(os.name == "nt", reason="a file in use cannot be removed on Windows")
@pytest.mark.parametrize("how", ["deleted", "renamed", "replaced"])
def test_a_file_that_is_gone_takes_nothing(tmp_path, how):
    path = tmp_path / "events.db"
    store = open_store(str(path))
    store.append([event(1)])
    if how == "deleted":
        path.unlink()
    else:
        path.rename(tmp_path / "moved.db")
    if how == "replaced":
        open_store(str(path)).close()
    for attempt in (lambda: store.append([event(2)]), lambda: store.head):
        with pytest.raises(StoreError, match="was deleted, renamed or replaced while it is in use"):
            attempt()
    if how == "renamed":
        (tmp_path / "moved.db").rename(path)
        store.append([event(2)])
        assert len(list(store.recent_events(10))) == 2
    store.close()
