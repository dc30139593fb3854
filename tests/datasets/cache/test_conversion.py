"""Conversion of files to caches, some rows at a time: what the cache holds is what reading the whole file gives."""

import gc
import gzip
import os
import subprocess
import sys
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from ranksvm import make_ranking
from ranksvm.datasets import RankingData, convert_to_cache, csv, parquet, read_data, write_data
from ranksvm.datasets.cache import conversion, layout, writer
from ranksvm.datasets.letor import reader
from ranksvm.exceptions import DataError, OptionError, ParseError


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Every block boundary is crossed by the smallest data."""
    monkeypatch.setattr(reader, "_TEXT", 300)
    monkeypatch.setattr(reader, "WINDOW", 200)
    monkeypatch.setattr(layout, "BLOCK", 256)
    monkeypatch.setattr(writer, "_ROOM", 600)
    monkeypatch.setattr(writer, "_COPIED", 128)
    monkeypatch.setattr(parquet, "_STREAM_ROWS", 7)
    monkeypatch.setattr(csv, "_BLOCK", 500)
    monkeypatch.setattr(conversion, "_CACHE_VALUES", 20)


def data(n_rows=60, n_features=5, *, sparse=False, qid="number", docid=False, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features)).astype(np.float32)
    if sparse:
        X = sp.csr_matrix(X * (rng.random(X.shape) < 0.15))
    ids = {"number": np.arange(n_rows) // 4, "text": np.array([f"q{row // 4}" for row in range(n_rows)]), None: None}
    mixed = [str(row // 4) if row < 30 else f"q{row // 4}" for row in range(n_rows)]
    ids |= {"mixed": np.array(mixed), "long": np.array([*mixed[:-1], "x" * 500], dtype=object)}
    documents = np.array([f"d{row}" if row > 20 else "" for row in range(n_rows)]) if docid else None
    return RankingData(X, rng.integers(0, 3, n_rows).astype(float), ids[qid], documents)


def assert_same(found, expected):
    dense = [each.X.toarray() if sp.issparse(each.X) else each.X for each in (found, expected)]
    np.testing.assert_array_equal(*dense)
    assert sp.issparse(found.X) == sp.issparse(expected.X)
    assert found.X.dtype == expected.X.dtype
    if sp.issparse(found.X):
        assert found.X.indptr.dtype == expected.X.indptr.dtype
        np.testing.assert_array_equal(found.X.indices, expected.X.indices)
    np.testing.assert_array_equal(found.y, expected.y)
    assert found.y.dtype == expected.y.dtype
    for name in ("qid", "docid"):
        one, other = getattr(found, name), getattr(expected, name)
        assert (one is None) == (other is None)
        if one is not None:
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other)
    assert found.feature_names == expected.feature_names


@pytest.mark.parametrize("suffix", [".txt", ".txt.gz", ".txt.zst", ".parquet", ".csv", ".tsv.gz", ".rsd"])
@pytest.mark.parametrize("qid", ["number", "text", "mixed", "long", None])
@pytest.mark.parametrize("sparse", [False, True])
def test_the_cache_is_that_of_the_whole_file(tmp_path, suffix, qid, sparse):
    if sparse and suffix in (".csv", ".tsv.gz"):
        pytest.skip("tables are dense")
    source, target = tmp_path / f"data{suffix}", tmp_path / "data.rsd2"
    write_data(data(sparse=sparse, qid=qid, docid=qid == "text"), source)
    seen = []
    found = convert_to_cache(source, target, progress=lambda done, total: seen.append((done, total)))
    expected = read_data(source)
    if suffix in (".parquet", ".csv", ".tsv.gz") and qid == "long":
        expected.qid = expected.qid.astype(object)  # text of very different lengths
    assert_same(RankingData.load(target), expected)
    assert (found.n_rows, found.n_features, found.sparse) == (60, 5, sparse)
    assert found.n_queries == expected.queries.n_queries
    assert found.has_qid == (qid is not None)
    assert found.feature_names == expected.feature_names
    assert seen[-1][0] == seen[-1][1] == source.stat().st_size
    assert seen == sorted(seen)
    assert len(seen) > 1 or suffix in (".csv", ".tsv.gz")
    assert sorted(os.listdir(tmp_path)) == sorted([source.name, target.name])


@pytest.mark.parametrize("suffix", ["txt", "txt.gz", "csv", "csv.gz", "parquet", "rsd"])
def test_a_source_that_changes_while_it_is_read_is_refused(tmp_path, suffix):
    """A cache could hold a part of the rows of a table that was written in place."""
    if suffix.startswith(("csv", "parquet")):
        pytest.importorskip("pyarrow")
    source, target = tmp_path / f"data.{suffix}", tmp_path / "data.rsd2"
    write_data(data(), source)
    with pytest.raises(DataError, match="was changed by another process while it was read"):
        convert_to_cache(source, target, progress=lambda *_: os.utime(source, (1, 1)))
    assert os.listdir(tmp_path) == [source.name]
    expected, other = read_data(source), tmp_path / f"other.{suffix}"
    write_data(data(seed=1), other)
    convert_to_cache(source, target, progress=lambda *_: other.exists() and other.replace(source))
    assert_same(RankingData.load(target), expected)


LATE = {
    "a larger feature id": ["1 qid:1 1:1 2:2"] * 30 + ["0 qid:1 1:1 7:2"] + ["2 qid:2 1:3 2:1"] * 30,
    "an id 0": ["1 qid:1 1:1 2:2"] * 30 + ["0 qid:1 0:1 2:2"] + ["2 qid:2 1:3 2:1"] * 30,
    "both": ["1 qid:1 1:1 2:2"] * 30 + ["0 qid:1 0:1 2:2"] + ["2 qid:2 1:3 9:1"] * 30,
    "sparse in the end": ["1 qid:1 1:1 2:2"] * 5 + ["0 qid:1 1:1 200:2"] * 40,
    "dense in the end": ["0 qid:1 100:2"] * 6 + ["1 qid:1 " + " ".join(f"{i}:1" for i in range(1, 101))] * 40,
    "text ids in the end": ["1 qid:1 1:1 2:2"] * 30 + ["0 qid:a 1:1 2:2"] * 10,
    "documents in the end": ["1 qid:1 1:1 2:2"] * 30 + ["0 qid:2 1:1 2:2 # b"] * 10,
}


def test_temporary_files_are_closed(tmp_path):
    write_data(data(qid="text", docid=True), tmp_path / "source.txt")
    (tmp_path / "bad.txt").write_text((tmp_path / "source.txt").read_text() + "bad\n")
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        convert_to_cache(tmp_path / "source.txt", tmp_path / "target.rsd")
        with pytest.raises(ParseError):
            convert_to_cache(tmp_path / "bad.txt", tmp_path / "target.rsd")
        gc.collect()
    assert not found


@pytest.mark.parametrize("lines", LATE.values(), ids=LATE)
@pytest.mark.parametrize("suffix", [".txt", ".txt.gz"])
def test_lines_that_contradict_the_beginning_of_a_file(tmp_path, lines, suffix):
    source, target = tmp_path / f"data{suffix}", tmp_path / "data.rsd"
    text = "\n".join(lines).encode()
    source.write_bytes(gzip.compress(text) if suffix == ".txt.gz" else text)
    convert_to_cache(source, target)
    assert_same(RankingData.load(target), read_data(source))


def test_options_of_text(tmp_path):
    source, target = tmp_path / "data.txt", tmp_path / "data.rsd"
    write_data(data(sparse=True), source)
    for options in ({"n_features": 9}, {"sparse": False}, {"sparse": True}, {"dtype": np.float64}, {"docids": False}):
        convert_to_cache(source, target, **options)
        assert_same(RankingData.load(target), read_data(source, **options))
    with pytest.raises(OptionError, match="unknown option 'color'"):
        convert_to_cache(source, target, color="red")


def test_labels_may_be_replaced(tmp_path):
    source, target = tmp_path / "data.txt", tmp_path / "data.rsd"
    write_data(data(), source)

    def relabel(blocks):
        for block in blocks:
            block.y = block.qid.astype(float)
            yield block
        if refuse:
            raise DataError("not these")

    refuse = False
    convert_to_cache(source, target, relabel=relabel)
    loaded = RankingData.load(target)
    np.testing.assert_array_equal(loaded.y, loaded.qid)
    refuse, before = True, target.read_bytes()
    with pytest.raises(DataError, match="not these"):
        convert_to_cache(source, target, relabel=relabel)
    assert target.read_bytes() == before


@pytest.mark.parametrize("room", [600, 700, 1000, 4096])
def test_a_header_without_room_has_fewer_checksums(tmp_path, monkeypatch, room):
    monkeypatch.setattr(writer, "_ROOM", room)
    monkeypatch.setattr(writer, "_ROOM_PER_BLOCK", 0)
    monkeypatch.setattr(layout, "BLOCK", 64)
    source, target = tmp_path / "data.txt", tmp_path / "data.rsd"
    write_data(data(n_rows=500, qid="text"), source)
    convert_to_cache(source, target)
    assert_same(RankingData.load(target), read_data(source))
    content = bytearray(target.read_bytes())
    for place in range(len(content) - 1, 0, -997):
        content[place] ^= 1
        target.write_bytes(content)
        with pytest.raises(DataError):
            RankingData.load(target)
        content[place] ^= 1


@pytest.mark.parametrize("suffix", [".txt", ".txt.gz"])
def test_a_bad_line_is_named_and_nothing_is_left(tmp_path, suffix):
    lines = ["1 qid:1 1:1 2:2"] * 100
    lines[70] = "1 qid:1 1:x"
    source, target = tmp_path / f"data{suffix}", tmp_path / "data.rsd"
    text = "\n".join(lines).encode()
    source.write_bytes(gzip.compress(text) if suffix == ".txt.gz" else text)
    with pytest.raises(ParseError) as raised:
        convert_to_cache(source, target)
    assert (raised.value.line, raised.value.path) == (71, str(source))
    assert os.listdir(tmp_path) == [source.name]


# Names are given, because the bytes of a gzip file hold the time: workers would not collect the same tests.
@pytest.mark.parametrize(
    "content",
    [b"", b"\n\n# nothing\n", gzip.compress(b"")],
    ids=["empty", "comments", "empty gzip"],
)
def test_files_without_data(tmp_path, content):
    (tmp_path / "data.txt").write_bytes(content)
    with pytest.raises(DataError):
        convert_to_cache(tmp_path / "data.txt", tmp_path / "data.rsd")
    assert os.listdir(tmp_path) == ["data.txt"]


def test_truncated_gzip(tmp_path):
    source = tmp_path / "data.txt.gz"
    write_data(data(200), source)
    source.write_bytes(source.read_bytes()[:-20])
    with pytest.raises(ParseError, match="the file is truncated"):
        convert_to_cache(source, tmp_path / "data.rsd")


def test_a_pipe_is_copied_first(tmp_path):
    source, target = tmp_path / "data.txt", tmp_path / "data.rsd"
    write_data(data(), source)
    code = "import sys; from ranksvm.datasets import convert_to_cache; convert_to_cache('-', sys.argv[1])"
    with open(source, "rb") as file:
        text = file.read()
    subprocess.run([sys.executable, "-c", code, target], input=text, check=True)
    assert_same(RankingData.load(target), read_data(source))
    run = subprocess.run([sys.executable, "-c", code, target], input=b"1 qid:1 1:x\n", capture_output=True, check=False)
    assert b"standard input:1:" in run.stderr
    assert sorted(os.listdir(tmp_path)) == ["data.rsd", "data.txt"]
    with pytest.raises(OptionError, match="a cache needs a file"):
        convert_to_cache(source, "/dev/stdout")


FULL_DISK = """
import resource, signal, sys
from ranksvm.datasets import convert_to_cache
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), int(sys.argv[3])))
try:
    convert_to_cache(sys.argv[1], sys.argv[2])
except OSError as error:
    print(error.filename, error.strerror)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no limit of file sizes")
@pytest.mark.parametrize("limit", [1000, 30000])
def test_a_full_disk(tmp_path, limit):
    """In the values of X, or in what waits to follow them: an error that names the target, and nothing left."""
    source, target = tmp_path / "data.txt", tmp_path / "data.rsd"
    write_data(data(3000, 2), source)
    command = [sys.executable, "-c", FULL_DISK, source, target, str(limit)]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == f"{target} File too large"
    assert os.listdir(tmp_path) == ["data.txt"]


PEAK = """
import sys
from ranksvm.datasets import convert_to_cache
convert_to_cache(sys.argv[1], sys.argv[2], n_jobs=2)
with open("/proc/self/status") as status:
    print(next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) * 1024)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the peak of memory is read in /proc")
@pytest.mark.parametrize("suffix", [".txt", ".txt.gz", ".parquet"])
def test_memory_does_not_grow_with_the_file(suffix, tmp_path):
    one = make_ranking(500, 40, 40, random_state=0)  # 7 MB of text
    X = one.X.astype(np.float32)
    write_data(RankingData(X, one.y, one.qid), tmp_path / f"1{suffix}")
    peaks = []
    for times in (16, 48):
        path = tmp_path / f"{times}{suffix}"
        if suffix == ".parquet":
            write_data(RankingData(np.tile(X, (times, 1)), np.tile(one.y, times), np.tile(one.qid, times)), path)
        else:  # compressed texts one after another are one text
            path.write_bytes((tmp_path / f"1{suffix}").read_bytes() * times)
        command = [sys.executable, "-c", PEAK, path, tmp_path / "big.rsd"]
        peaks.append(int(subprocess.run(command, capture_output=True, text=True, check=True).stdout))
    # as text the larger one has 220 MB more, and as arrays 100 MB
    assert peaks[1] - peaks[0] < 24 << 20, peaks
