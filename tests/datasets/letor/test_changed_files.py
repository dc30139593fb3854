"""A text file that another process changes while it is read: an error that names it, and the process lives on."""

import gzip
import os
import subprocess
import sys

import numpy as np
import pytest

from ranksvm._util import compression
from ranksvm.datasets import csv, iter_data, iter_letor, read_letor, streams
from ranksvm.datasets.letor import reader, source, text as letor_text
from ranksvm.exceptions import DataError

LINES = [f"{i % 3} qid:{i // 10} 1:{i} 2:0.5 # docid = d{i}\n" for i in range(2000)]


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.setattr(letor_text, "_RANGE", 1 << 12)
    path = tmp_path / "data.txt"
    path.write_text("".join(LINES))
    return path


def call_at_part(monkeypatch, number, change):
    """Call ``change`` before a part of the file is read."""
    read, calls = source.FileText.part, iter(range(1 << 20))

    def part(self, start, stop):
        if next(calls) == number:
            change()
        return read(self, start, stop)

    monkeypatch.setattr(source.FileText, "part", part)


def call_between_passes(monkeypatch, change):
    """Call ``change`` when the lines have been counted but not parsed."""
    count = reader.split

    def split(*arguments):
        ranges = count(*arguments)
        change()
        return ranges

    monkeypatch.setattr(reader, "split", split)


def written_in_place(path, content):
    state = path.stat()
    with open(path, "r+b") as file:
        file.write(content)
    # Clocks of file systems are coarse: here the new time must not be that of the first writing.
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns + 10**9))


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("size", [0, 3000, 40000])
@pytest.mark.parametrize("number", [0, 2, 10, 30, 100, 160])
def test_truncated_in_the_middle(path, monkeypatch, number, size, n_jobs):
    before = path.stat().st_size
    call_at_part(monkeypatch, number, lambda: os.truncate(path, size))
    with pytest.raises(DataError, match=rf"data\.txt was changed .* \(it had {before} bytes, now it has {size}\)"):
        read_letor(path, n_jobs=n_jobs)


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("sparse", [None, True])
def test_truncated_between_the_passes(path, monkeypatch, n_jobs, sparse):
    call_between_passes(monkeypatch, lambda: os.truncate(path, 20000))
    with pytest.raises(DataError, match=r"data\.txt was changed by another process while it was read"):
        read_letor(path, n_jobs=n_jobs, sparse=sparse)


CHANGES = {
    "bad text": b"no data\n" * 500,
    "fewer rows": b"#" * 4000,
    "more rows": b"1 qid:1\n" * 500,
    "more entries": b"1 qid:1 " + b" ".join(b"%d:1" % i for i in range(1, 900)) + b"\n",
    "words": b"1 qid:a" * 500 + b"\n",
    "NUL": bytes(4000),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("sparse", [True, False])
def test_overwritten_between_the_passes(path, monkeypatch, change, sparse):
    call_between_passes(monkeypatch, lambda: written_in_place(path, CHANGES[change]))
    with pytest.raises(DataError, match=r"was changed by another process while it was read: read it again") as caught:
        read_letor(path, sparse=sparse)
    assert "bytes, now" not in str(caught.value)


def test_longer_at_the_end(path, monkeypatch):
    def append():
        with open(path, "a") as file:
            file.write(LINES[0])

    call_between_passes(monkeypatch, append)
    with pytest.raises(DataError, match=r"was changed .* \(it had \d+ bytes, now it has \d+\)"):
        read_letor(path)


def test_replaced_file_is_not_changed(path, monkeypatch):
    # A writer that renames a new file over the old one leaves the old one, which is open, as it was.
    def replace():
        other = path.with_name("other.txt")
        other.write_text("1 qid:1 1:1\n")
        os.replace(other, path)

    if sys.platform == "win32":
        pytest.skip("an open file cannot be replaced")
    call_between_passes(monkeypatch, replace)
    assert len(read_letor(path).y) == len(LINES)


def test_an_interrupt_stays_one(path, monkeypatch):
    def interrupt():
        os.truncate(path, 0)
        raise KeyboardInterrupt

    call_between_passes(monkeypatch, interrupt)
    with pytest.raises(KeyboardInterrupt):
        read_letor(path)


def test_without_positioned_reads(path, monkeypatch):
    expected = read_letor(path)
    monkeypatch.delattr(os, "preadv", raising=False)
    data = read_letor(path, n_jobs=4)
    assert np.array_equal(data.X, expected.X)
    assert np.array_equal(data.docid, expected.docid)
    call_between_passes(monkeypatch, lambda: os.truncate(path, 20000))
    with pytest.raises(DataError, match="was changed by another process"):
        read_letor(path, n_jobs=4)


def test_query_ids_that_are_words_in_some_parts_only(path):
    lines = [line.replace("qid:5 ", "qid:05 ").replace("qid:199 ", "qid:né ") for line in LINES]
    path.write_text("".join(lines), encoding="utf-8")
    data = read_letor(path, n_jobs=2)
    assert data.qid.tolist() == [line.split()[1][4:] for line in lines]
    assert data.docid.tolist() == [line.split()[-1] for line in lines]


def test_the_process_lives(tmp_path):
    path = tmp_path / "data.txt"
    path.write_text("".join(LINES) * 50)
    code = """
import os, sys, threading
from ranksvm.datasets import read_letor
from ranksvm.exceptions import DataError
path, done = sys.argv[1], threading.Event()
size = os.path.getsize(path)
def truncate():
    while not done.is_set():
        os.truncate(path, size // 3)
        os.truncate(path, size)
thread = threading.Thread(target=truncate)
thread.start()
messages = set()
for _ in range(20):
    try:
        read_letor(path, n_jobs=2)
    except DataError as error:
        messages.add(str(error).partition(" (")[0].partition(": read")[0])
done.set()
thread.join()
print(messages)
"""
    result = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "data.txt was changed by another process while it was read" in result.stdout


CSV_LINES = ["label,qid,f1\n"] + [f"{i % 3},{i // 10},{i}.5\n" for i in range(20000)]


def stored(content: bytes) -> bytes:
    """In gzip's format, longer than the 128 KB that Python's gzip reads at a time."""
    return gzip.compress(content, compresslevel=0)


@pytest.mark.parametrize("pack", [bytes, stored], ids=["plain", "gzip"])
@pytest.mark.parametrize(("name", "lines"), [("data.txt", LINES * 40), ("data.csv", CSV_LINES)])
def test_a_stream_that_is_shortened(tmp_path, monkeypatch, name, lines, pack):
    monkeypatch.setattr(streams, "WINDOW", 1 << 12)
    monkeypatch.setattr(compression, "_CHUNK", 1 << 12)
    monkeypatch.setattr(csv, "HEAD", 1 << 12)
    monkeypatch.setattr(csv, "_BLOCK", 1 << 12)
    path = tmp_path / name
    content = pack("".join(lines).encode())
    path.write_bytes(content)
    queries = iter_data(path, batch_queries=5)
    next(queries)
    # in the middle of a line
    os.truncate(path, len(content) - 20)
    message = rf"{name} was shortened by another process while it was read \(it had {len(content)} bytes"
    with pytest.raises(DataError, match=message):
        list(queries)


def test_a_stream_that_grows(tmp_path, monkeypatch):
    monkeypatch.setattr(streams, "WINDOW", 1 << 12)
    path = tmp_path / "data.txt"
    path.write_text("".join(LINES))
    queries = iter_letor(path)
    first = next(queries)
    with open(path, "a") as file:
        file.write("1 qid:x 1:1\n" * 3)
    assert first.n_rows + sum(query.n_rows for query in queries) == len(LINES) + 3
