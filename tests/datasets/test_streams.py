"""Streams of queries: what reading all at once gives, cut into whole queries, in bounded memory; the same errors."""

import bz2
import gzip
import io
import lzma
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, strategies as st

from ranksvm.datasets import (
    RankingData,
    iter_data,
    iter_letor,
    make_ranking,
    parquet as _parquet,
    read_letor,
    streams,
    write_data,
    write_letor,
)
from ranksvm.exceptions import DataError, MissingDependencyError, OptionError, ParseError

COMPRESSIONS = {"plain": bytes, "gzip": gzip.compress, "bzip2": bz2.compress, "xz": lzma.compress}


@pytest.fixture
def small_windows(monkeypatch):
    """Queries go over the borders of windows and blocks."""
    monkeypatch.setattr(streams, "WINDOW", 64)
    monkeypatch.setattr(_parquet, "_STREAM_ROWS", 3)
    monkeypatch.setattr(streams, "_CACHE_ROWS", 3)


def lines_of(queries, prefix=""):
    """Text of queries (id, number of documents), with a document id each."""
    rng = np.random.default_rng(0)
    return "".join(
        f"{rng.integers(3)} qid:{prefix}{query} 1:{rng.random():.3f} 3:{rng.random():.2f} #docid = {query}-{row}\n"
        for query, size in queries
        for row in range(size)
    )


def dense(X):
    return X.toarray() if sp.issparse(X) else X


def joined(batches):
    docid = None if batches[0].docid is None else np.concatenate([batch.docid for batch in batches])
    return RankingData(
        np.concatenate([dense(batch.X) for batch in batches]),
        np.concatenate([batch.y for batch in batches]),
        np.concatenate([batch.qid for batch in batches]),
        docid,
    )


def assert_same_rows(batches, data):
    found = joined(batches)
    np.testing.assert_array_equal(found.X, dense(data.X))
    np.testing.assert_array_equal(found.y, data.y)
    np.testing.assert_array_equal(found.qid.astype(str), data.qid.astype(str))
    if data.docid is not None:
        np.testing.assert_array_equal(found.docid, data.docid)


@given(
    st.lists(st.tuples(st.sampled_from(["1", "2", "3", "b7"]), st.integers(1, 5)), min_size=1, max_size=20),
    st.integers(1, 4),
    st.sampled_from([1, 64, 200]),
    st.sampled_from([None, True, False]),
)
def test_batches_are_runs_of_rows_and_never_two_of_one_id(runs, batch_queries, window, sparse):
    content = lines_of(runs).encode()
    before, streams.WINDOW = streams.WINDOW, window
    try:
        options = {"n_features": 3, "sparse": sparse}
        batches = list(iter_letor(io.BytesIO(content), batch_queries=batch_queries, **options))
    finally:
        streams.WINDOW = before
    data = read_letor(io.BytesIO(content), n_features=3)
    assert_same_rows(batches, data)
    # runs of rows with one id, one by one in plain Python
    expected, last = [], None
    for query in data.qid.astype(str).tolist():
        if query != last:
            if not expected or len(expected[-1]) == batch_queries or query in expected[-1]:
                expected.append([])
            expected[-1].append(query)
        last = query
    assert [batch.queries.ids.astype(str).tolist() for batch in batches] == expected


@pytest.mark.parametrize("kind", COMPRESSIONS)
@pytest.mark.parametrize("batch_queries", [1, 3])
def test_every_kind_of_file(kind, batch_queries, small_windows, tmp_path):
    content = lines_of([(query, query % 4 + 1) for query in range(30)])
    path = tmp_path / "train.txt"
    path.write_bytes(COMPRESSIONS[kind](content.encode()))
    batches = list(iter_data(path, batch_queries=batch_queries))
    assert_same_rows(batches, read_letor(path))
    assert [batch.queries.n_queries for batch in batches] == [batch_queries] * (30 // batch_queries)
    assert {batch.X.shape[1] for batch in batches} == {3}


def test_zstd(tmp_path):
    pytest.importorskip("zstandard")
    data = make_ranking(20, 5, 4, random_state=0)
    write_letor(tmp_path / "train.txt.zst", data)
    assert_same_rows(list(iter_data(tmp_path / "train.txt.zst")), data)


@pytest.mark.parametrize("suffix", [".parquet", ".rsd"])
@pytest.mark.parametrize("kind", ["dense", "csr", "string ids"])
def test_other_formats(suffix, kind, small_windows, tmp_path):
    data = make_ranking(15, 4, 5, random_state=0)
    qid = np.char.add("q", data.qid.astype(str)) if kind == "string ids" else data.qid
    data = RankingData(sp.csr_matrix(data.X) if kind == "csr" else data.X, data.y, qid, feature_names=list("abcde"))
    write_data(data, tmp_path / f"train{suffix}")
    batches = list(iter_data(tmp_path / f"train{suffix}", batch_queries=2))
    assert len(batches) == 8
    assert_same_rows(batches, data)
    assert batches[3].feature_names == data.feature_names
    assert batches[3].X.dtype == data.X.dtype
    assert sp.issparse(batches[3].X) == (kind == "csr")


def test_parquet_that_cannot_be_used(small_windows, tmp_path, monkeypatch):
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = tmp_path / "train.parquet"
    pq.write_table(pa.table({"label": [1.0] * 5, "qid": [1] * 5, "f1": [1.0, 2.0, 3.0, None, 5.0]}), path)
    with pytest.raises(DataError, match=r"column 'f1' of .* has missing values in 1 of .* the first is row 3"):
        list(iter_data(path))
    pq.write_table(pa.table({"label": [1.0], "f1": [1.0]}), path)
    with pytest.raises(DataError, match="has no query ids"):
        list(iter_data(path))
    path.write_bytes(path.read_bytes()[:-20] + b"PAR1")
    with pytest.raises(DataError, match="not a Parquet file, or is damaged"):
        list(iter_data(path))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingDependencyError, match=r'pip install "ranksvm\[parquet\]"'):
        next(iter_data(path))


@pytest.mark.parametrize("kind", COMPRESSIONS)
@pytest.mark.parametrize("line", ["1 qid:2 1:x", "1 qid:2 1:1 1:2", "1 1:2", "nan qid:2 1:1"])
@pytest.mark.parametrize("place", [1, 2, 7, 40, 80])
def test_a_bad_line_is_named_as_when_all_is_read_and_comes_after_the_queries_before_it(
    kind, line, place, small_windows
):
    lines = lines_of([(query, 2) for query in range(40)]).splitlines()
    lines.insert(place, line)
    content = COMPRESSIONS[kind]("\n".join(lines).encode())
    with pytest.raises(ParseError) as expected:
        read_letor(io.BytesIO(content))
    stream, queries = iter_letor(io.BytesIO(content)), []
    with pytest.raises(ParseError) as caught:
        queries.extend(stream)
    assert str(caught.value) == str(expected.value)
    assert caught.value.line == place + 1
    found = list(_until_error(iter_letor(io.BytesIO(content))))
    # rows before the line that a row of another query follows
    assert [query.qid[0] for query in found] == list(range((place - 1) // 2))
    found = list(_until_error(iter_letor(io.BytesIO(content), batch_queries=64)))
    assert sum(query.queries.n_queries for query in found) == max(0, (place - 1) // 2)


def _until_error(stream):
    try:
        yield from stream
    except ParseError:
        return


@pytest.mark.parametrize("kind", ["gzip", "bzip2", "xz"])
def test_compressed_data_that_end_early(kind, small_windows):
    text = lines_of([(query, 3) for query in range(3000)]).encode()
    content = COMPRESSIONS[kind](text)[:-9]
    with pytest.raises(ParseError, match=f"the {kind} data end early") as expected:
        read_letor(io.BytesIO(content))
    with pytest.raises(ParseError) as caught:
        list(iter_letor(io.BytesIO(content)))
    assert str(caught.value) == str(expected.value)


def test_what_the_beginning_left_open_is_asked_for(small_windows):
    text = lines_of([(query, 3) for query in range(20)])
    with pytest.raises(
        ParseError, match=r"above n_features=3 .*; this was inferred from the beginning .*: give n_features"
    ) as caught:
        list(iter_letor(io.BytesIO(f"{text}1 qid:99 4:1\n".encode())))
    assert (caught.value.line, caught.value.column) == (61, 10)
    with pytest.raises(ParseError, match=r"the feature id is 0, .*: give zero_based=True"):
        list(iter_letor(io.BytesIO(f"{text}1 qid:99 0:1\n".encode())))
    *_, last = iter_letor(io.BytesIO(f"{text}1 qid:99 0:1 4:2\n".encode()), zero_based=True, n_features=6)
    assert dense(last.X).tolist() == [[1, 0, 0, 0, 2, 0]]
    with pytest.raises(ParseError, match=r"above n_features=3 \(ids start at 1\)$"):
        list(iter_letor(io.BytesIO(f"{text}1 qid:99 4:1\n".encode()), n_features=3, zero_based=False))


def test_the_layout_is_that_of_the_first_window():
    # the first query alone would have one column, and be dense
    batches = list(iter_letor(io.BytesIO(b"1 qid:1 1:1\n0 qid:2 40:1\n")))
    assert [batch.X.shape for batch in batches] == [(1, 40), (1, 40)]
    assert all(sp.issparse(batch.X) for batch in batches)
    batches = list(iter_letor(io.BytesIO(b"1 qid:1 1:1\n0 qid:2 0:1\n")))
    assert [batch.X.tolist() for batch in batches] == [[[0, 1]], [[1, 0]]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "<bytes> has no line of data"),
        (b"# nothing\n\n", "<bytes> has no line of data"),
        (b"1 1:2\n0 1:1\n", r"<bytes> has no query ids \(qid:...\)"),
        (b"PAR1....", "Parquet file"),
        (b"\xff\xfe1\x00", "UTF-16"),
    ],
)
def test_files_without_a_stream_in_them(content, message):
    with pytest.raises(DataError, match=message):
        list(iter_letor(io.BytesIO(content)))


def test_options_are_judged_before_anything_is_read():
    for options in ({"batch_queries": 0}, {"batch_queries": 1.5}, {"n_features": 0}, {"dtype": int}):
        with pytest.raises(OptionError, match=next(iter(options))):
            iter_letor("absent.txt", **options)
    with pytest.raises(OptionError, match="batch_queries"):
        iter_data("absent.parquet", batch_queries=True)


def test_a_pipe_gives_each_query_as_soon_as_the_next_one_begins():
    reader, writer = os.pipe()
    with open(reader, "rb") as source, open(writer, "wb", buffering=0) as sink:
        stream = iter_letor(source, n_features=2, zero_based=False, sparse=False)
        for query in range(5):
            sink.write(b"1 qid:%d 1:1\n0 qid:%d 2:1\n" % (query, query))
            if query:
                assert next(stream).qid.tolist() == [query - 1] * 2
        sink.close()
        assert next(stream).qid.tolist() == [4, 4]
        assert next(stream, None) is None


def test_a_named_pipe_is_opened_once(tmp_path):
    path = tmp_path / "pipe"
    try:
        os.mkfifo(path)
    except (AttributeError, OSError):
        pytest.skip("no named pipes here")
    content = gzip.compress(lines_of([(query, 2) for query in range(9)]).encode())
    writer = threading.Thread(target=path.write_bytes, args=(content,), daemon=True)
    writer.start()
    assert len(list(iter_data(path))) == 9
    writer.join(10)


def test_standard_input():
    program = "import ranksvm.data as d; print([q.qid.tolist() for q in d.iter_data('-')])"
    text = lines_of([(4, 2), (3, 1), (4, 1)])
    done = subprocess.run([sys.executable, "-c", program], input=text, capture_output=True, text=True, check=True)
    assert done.stdout == "[[4, 4], [3], [4]]\n"
    program = "import ranksvm.data as d; list(d.iter_letor('-'))"
    done = subprocess.run([sys.executable, "-c", program], input="1 qid:1 x\n", capture_output=True, text=True)
    assert "<stdin>:1:9: a colon is missing" in done.stderr


def test_a_query_larger_than_many_windows(small_windows):
    content = lines_of([(1, 2), (2, 300), (3, 1)]).encode()
    for batch_queries in (1, 2):
        batches = list(iter_letor(io.BytesIO(content), batch_queries=batch_queries))
        assert_same_rows(batches, read_letor(io.BytesIO(content)))
        assert len(batches) == 4 - batch_queries


PEAK = """
import sys
from ranksvm.datasets import iter_data
rows = sum(batch.n_rows for batch in iter_data(sys.argv[1], batch_queries=10))
with open("/proc/self/status") as status:
    print(rows, next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) * 1024)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of memory is read in /proc")
@pytest.mark.parametrize("suffix", [".txt", ".txt.gz", ".parquet"])
def test_memory_does_not_grow_with_the_file(suffix, tmp_path):
    data = make_ranking(500, 40, 40, random_state=0)  # 7 MB of text
    X = data.X.astype(np.float32)
    write_data(RankingData(X, data.y, data.qid), tmp_path / f"1{suffix}")
    # The smaller one, too, is many windows long: until then the allocator's arenas grow by several MB. The additional
    # rows of the larger one would take 26 MB.
    sizes = 8, 16
    for times in sizes:
        path = tmp_path / f"{times}{suffix}"
        if suffix == ".parquet":
            write_data(RankingData(np.tile(X, (times, 1)), np.tile(data.y, times), np.tile(data.qid, times)), path)
        else:  # compressed texts one after another are one text
            path.write_bytes((tmp_path / f"1{suffix}").read_bytes() * times)
    peaks = []
    for times in sizes:
        command = [sys.executable, "-c", PEAK, tmp_path / f"{times}{suffix}"]
        rows, peak = map(int, subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())
        assert rows == times * data.n_rows
        peaks.append(peak)
    # as text the larger one has 42 MB more, and as arrays 19 MB
    assert peaks[1] - peaks[0] < 8 << 20, peaks
