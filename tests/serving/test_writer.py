"""The writer against a slow, obvious one: every item in a transaction of its own, events first."""

import threading
import time
from concurrent.futures import Future

import numpy as np
import pytest

from ranksvm.exceptions import StoreError
from ranksvm.serving.records import Entry, Kind, Outcome, Receipt
from ranksvm.serving.store import open_store
from ranksvm.serving.writer import Writer, _size_of, deliver

from .conftest import event, feedback


class Gate:
    """A store that waits before it appends, notes what it was given, and fails when it is told to."""

    def __init__(self, store=None):
        self.store, self.groups, self.error = store, [], None
        self.entered, self.open = threading.Semaphore(0), threading.Semaphore(0)

    def append(self, items):
        self.entered.release()
        assert self.open.acquire(timeout=20)
        self.groups.append(list(items))
        if self.error is not None:
            raise self.error
        return self.store.append(items) if self.store else [Receipt(Outcome.STORED, 1) for _ in items]

    def probe(self):
        if self.error is not None:
            raise self.error

    def wait(self):
        """Until the writer is about to append."""
        assert self.entered.acquire(timeout=20)

    def let(self, times=1):
        """Let it append."""
        self.open.release(times)


@pytest.fixture
def gate():
    return Gate()


def put(writer, entry):
    done = Future()
    writer.put(entry, done)
    return done


def one_by_one(store, events, entries):
    """The oracle: a transaction for each item."""
    for one in events:
        store.append([one])
    return [store.append([entry])[0] for entry in entries]


@pytest.mark.parametrize("seed", range(5))
def test_equals_a_transaction_for_each_item(tmp_path, seed):
    random = np.random.default_rng(seed)
    events = [event(number) for number in range(20)]
    said = [{"labels": [1, 0, 0, 0]}, {"clicks": ["d1"]}, {"clicks": ["d9"]}]
    # known and unknown events, said once or more often, the same or something else, fitting or not
    entries = [feedback(f"e{random.integers(25):06d}", said[random.integers(3)], at=float(i)) for i in range(60)]
    oracle = open_store(str(tmp_path / "oracle.db"))
    expected = one_by_one(oracle, events, entries)
    assert {receipt.outcome for receipt in expected} == {
        *(Outcome.STORED, Outcome.DUPLICATE, Outcome.CONFLICT, Outcome.MISMATCH, Outcome.UNKNOWN)
    }
    store = open_store(str(tmp_path / "events.db"))
    writer = Writer(store)
    for one in events:
        writer.put_event(one)
    found = [put(writer, entry) for entry in entries]
    assert [done.result(20) for done in found] == expected
    writer.close()
    assert store.head == oracle.head  # the digest of the whole log, in order
    assert store.entries(0, 100) == oracle.entries(0, 100)
    store.close()
    oracle.close()


def test_what_waits_is_one_transaction_with_events_first(gate):
    writer = Writer(gate)
    first = put(writer, feedback("e000000"))
    gate.wait()
    entries = [feedback(f"e{number:06d}") for number in range(300)]
    events = [event(number) for number in range(3)]
    found = [put(writer, entries[0])]
    for one in events:
        writer.put_event(one)
    found += [put(writer, entry) for entry in entries[1:]]
    assert writer.waiting == 303
    gate.let(3)
    for done in (first, *found):
        assert done.result(20).outcome is Outcome.STORED
    assert [len(group) for group in gate.groups] == [1, 3 + 256, 44]
    assert [*gate.groups[1], *gate.groups[2]] == [*events, *entries]
    assert writer.waiting == 0
    writer.close()


def test_events_alone_are_stored_in_groups(gate):
    writer = Writer(gate)
    done = put(writer, feedback("e000000"))
    gate.wait()
    events = [event(number, 1, 1) for number in range(600)]
    for one in events:
        writer.put_event(one)
    gate.let(4)
    done.result(20)
    writer.close()
    assert [len(group) for group in gate.groups] == [1, 256, 256, 88]
    assert [one for group in gate.groups[1:] for one in group] == events


def test_on_entries_is_called_when_an_entry_was_stored(tmp_path):
    store, calls = open_store(str(tmp_path / "events.db")), []
    writer = Writer(store, on_entries=lambda: calls.append(threading.current_thread().name))

    def calls_after(*entries):
        for entry in entries:
            put(writer, entry).result(20)
        # the next transaction begins after the call for the one before
        put(writer, feedback("unknown")).result(20)
        return len(calls)

    writer.put_event(event(1))
    assert calls_after(feedback("unknown")) == 0
    assert calls_after(feedback("e000001", {"clicks": ["d9"]})) == 0
    assert calls_after(feedback("e000001")) == 1
    assert calls == ["ranksvm-writer"]
    assert calls_after(feedback("e000001"), feedback("e000001", {"clicks": ["d1"]})) == 1
    writer.close()
    store.close()


def test_one_stored_entry_among_refused_ones_is_news(tmp_path):
    store, calls = open_store(str(tmp_path / "events.db")), []
    gate = Gate(store)
    writer = Writer(gate, on_entries=lambda: calls.append((len(gate.groups), [done.done() for done in found])))
    put(writer, feedback("unknown"))
    gate.wait()
    writer.put_event(event(1))
    found = [put(writer, feedback(id)) for id in ("unknown", "e000001", "unknown")]
    gate.let(2)
    writer.close()
    outcomes = [done.result(0).outcome for done in found]
    assert outcomes == [Outcome.UNKNOWN, Outcome.STORED, Outcome.UNKNOWN]
    assert calls == [(2, [True] * 3)]  # once, and those who wait know before
    store.close()


@pytest.mark.parametrize("error", [StoreError("the disk is full."), ValueError("what nobody foresaw")])
def test_an_error_reaches_those_whose_entries_were_not_stored(gate, error):
    calls = []
    writer = Writer(gate, on_entries=lambda: calls.append(1))
    before = put(writer, feedback("e000000"))
    gate.wait()
    writer.put_event(event(1))
    writer.put_event(event(2))
    refused = [put(writer, feedback(f"e{number:06d}")) for number in (1, 2)]
    gate.let()
    assert before.result(20).outcome is Outcome.STORED
    gate.wait()
    gate.error = error
    gate.let()
    for done in refused:
        with pytest.raises(StoreError, match=str(error)):
            done.result(20)
    gate.error = None
    after = put(writer, feedback("e000003"))
    gate.let(2)
    assert after.result(20).outcome is Outcome.STORED
    writer.close()
    # events wait, in order; entries do not
    assert [item for group in gate.groups[2:] for item in group] == [event(1), event(2), feedback("e000003")]
    assert writer.refused is None
    assert (writer.dropped, len(calls)) == (0, 2)


def test_the_oldest_events_are_dropped_while_the_store_refuses(gate):
    writer = Writer(gate, max_events=3)
    done = put(writer, feedback("e000000"))
    gate.wait()
    for number in range(5):
        writer.put_event(event(number))
    gate.error = StoreError("the disk is full.")
    gate.let()
    with pytest.raises(StoreError, match="full"):
        done.result(20)
    gate.wait()
    gate.error = None
    gate.let()
    writer.close()
    assert writer.dropped == 2
    assert gate.groups[1:] == [[event(2), event(3), event(4)]]


def test_close_stores_what_waits(gate):
    writer = Writer(gate)
    found = [put(writer, feedback("e000000"))]
    gate.wait()
    writer.put_event(event(1))
    found.append(put(writer, feedback("e000001")))
    closing = threading.Thread(target=writer.close)
    closing.start()
    gate.let(2)
    closing.join(20)
    assert not closing.is_alive()
    assert [done.result(0).outcome for done in found] == [Outcome.STORED] * 2
    assert [len(group) for group in gate.groups] == [1, 2]
    assert writer.waiting == 0


def test_close_ends_while_the_store_refuses(gate, caplog):
    gate.error = StoreError("the disk is full.")
    writer = Writer(gate)
    writer.put_event(event(1))
    done = put(writer, feedback("e000001"))
    gate.let(10)
    closing = threading.Thread(target=writer.close)
    closing.start()
    closing.join(20)
    assert not closing.is_alive()
    with pytest.raises(StoreError, match="full"):
        done.result(0)
    assert (writer.dropped, writer.waiting) == (1, 0)
    assert caplog.messages[-1] == "events that were not stored before the end: 1"


def test_close_without_anything_to_store(gate):
    Writer(gate).close()
    assert gate.groups == []


def test_nobody_is_told_who_does_not_wait():
    cancelled, waiting, failed = Future(), Future(), Future()
    cancelled.cancel()
    receipt, error = Receipt(Outcome.STORED, 1), StoreError("the disk is full.")
    deliver([(cancelled, receipt), (waiting, receipt), (failed, error)])
    assert waiting.result(0) is receipt
    assert failed.exception(0) is error


def test_kinds_of_entries_share_the_order(gate):
    writer = Writer(gate)
    entries = [feedback("e000000"), Entry(Kind.ACTIVATION, None, b"", 0.0), feedback("e000001")]
    found = [put(writer, entry) for entry in entries]
    gate.let(3)
    for done in found:
        assert done.result(20).outcome is Outcome.STORED
    writer.close()
    assert [item for group in gate.groups for item in group] == entries


def test_what_waits_is_bounded_in_bytes(store):
    size, gate = _size_of(event(0)), Gate(store)
    gate.error = StoreError("the disk of the store is full.")
    writer = Writer(gate, max_bytes=3 * size + size // 2)
    for number in range(3):
        writer.put_event(event(number))
    with pytest.raises(StoreError, match="wait for the store already"):
        writer.put_event(event(3))
    with pytest.raises(StoreError, match="wait for the store already"):
        writer.put(feedback("e000000", {"clicks": ["d0"] * size}), Future())
    gate.error = None
    gate.open.release(100)
    end = time.monotonic() + 20
    while writer._bytes:
        assert time.monotonic() < end
        time.sleep(0.01)
    writer.put_event(event(3))
    writer.close()
    assert (len(list(store.recent_events(10))), writer._bytes) == (4, 0)


def test_a_store_that_works_again_is_noticed_without_new_items(gate, monkeypatch):
    monkeypatch.setattr("ranksvm.serving.writer._RETRY_SECONDS", 0.05)
    writer = Writer(gate)
    gate.error = StoreError("the disk of the store is full.")
    gate.let()
    with pytest.raises(StoreError):
        put(writer, feedback("e000001", {"labels": [1, 0, 0, 0]})).result(20)
    time.sleep(0.2)
    assert writer.refused == "the disk of the store is full."
    gate.error = None
    end = time.monotonic() + 20
    while writer.refused is not None:
        assert time.monotonic() < end
        time.sleep(0.02)
    writer.close()
