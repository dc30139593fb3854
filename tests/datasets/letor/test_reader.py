"""Reading LETOR text: the rules of the format, the shapes of the result, threads and windows."""

import bz2
import gzip
import io
import lzma
import os
import re
import subprocess
import sys
import threading

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, strategies as st

from ranksvm.datasets import RankingData, read_letor
from ranksvm.datasets.letor import reader, text as letor_text
from ranksvm.exceptions import DataError, MissingDependencyError, OptionError


def read(text, **options):
    return read_letor(io.BytesIO(text if isinstance(text, bytes) else text.encode()), **options)


def dense(data):
    return data.X.toarray() if sp.issparse(data.X) else data.X


def slow_read(text):
    """Oracle: rows of (label, qid, {id: value}, docid) by plain Python."""
    rows = []
    for line in text.splitlines():
        content, _, comment = line.partition("#")
        words = content.split()
        if not words:
            continue
        qid = next((word[4:] for word in words if word.startswith("qid:")), None)
        pairs = [word.split(":") for word in words[1:] if not word.startswith("qid:")]
        words = comment.split("=", 1)[-1].split() if re.match(r"\s*docid\s*=", comment) else comment.split()
        rows.append((float((words and content.split()[0]) or content.split()[0]), qid, dict(pairs), (words or [""])[0]))
    return rows


@pytest.fixture
def many_ranges(monkeypatch):
    """Make even tiny texts go through several ranges and several windows."""
    monkeypatch.setattr(letor_text, "_RANGE", 16)
    monkeypatch.setattr(reader, "WINDOW", 64)


def lines_strategy():
    value = st.sampled_from(["0", "1", "-2.5", "0.125", "+3", "1e-3", ".5"])
    features = st.dictionaries(st.integers(1, 6), value, max_size=6)
    end = st.sampled_from(["", " ", "#docid = a", " # b9", "# docid=c more", "#"])
    line = st.builds(
        lambda label, qid, pairs, order, end: (
            f"{label} qid:{qid} "
            + " ".join(f"{i}:{v}" for i, v in sorted(pairs.items(), key=lambda p: p[0] * order))
            + end
        ),
        st.sampled_from(["0", "+1", "-1", "2.5"]),
        st.integers(-2, 3).map(str),
        features,
        st.sampled_from([1, -1]),
        end,
    )
    noise = st.sampled_from(["", "   ", "# a comment 1:2 qid:3", "\t"])
    return st.lists(st.one_of(line, line, noise), min_size=1, max_size=12)


@given(lines_strategy(), st.sampled_from(["\n", "\r\n"]), st.booleans(), st.booleans(), st.sampled_from([1, 3]))
def test_matches_plain_python(lines, newline, final_newline, mark, n_jobs):
    text = newline.join(lines) + (newline if final_newline else "")
    rows = slow_read("\n".join(lines))
    if not rows:
        return
    smallest, window = letor_text._RANGE, reader.WINDOW
    letor_text._RANGE, reader.WINDOW = 16, 64
    try:
        encoded = (b"\xef\xbb\xbf" if mark else b"") + text.encode()
        results = [
            read(content, n_jobs=n_jobs, sparse=sparse)
            for content in (encoded, gzip.compress(encoded))
            for sparse in (None, True, False)
        ]
    finally:
        letor_text._RANGE, reader.WINDOW = smallest, window
    n = max([1, *(i for _, _, pairs, _ in rows for i in map(int, pairs))])
    X = np.zeros((len(rows), n), dtype=np.float32)
    for row, (_, _, pairs, _) in enumerate(rows):
        for i, value in pairs.items():
            X[row, int(i) - 1] = float(value)
    for data in results:
        assert np.array_equal(dense(data), X)
        assert data.y.tolist() == [label for label, *_ in rows]
        assert data.qid.tolist() == [int(qid) for _, qid, *_ in rows]
        docids = [docid for *_, docid in rows]
        assert (data.docid.tolist() if data.docid is not None else [""] * len(rows)) == docids
    assert [sp.issparse(data.X) for data in results[1:3]] == [True, False]
    assert sp.issparse(results[0].X) == sp.issparse(results[3].X)


@pytest.mark.parametrize("kind", ["plain", "gz", "bz2", "xz", "zst"])
def test_compressions_are_told_by_content(kind, tmp_path, many_ranges):
    text = "".join(f"{i % 3} qid:{i // 5} 1:{i} 2:{i / 7!r} # d{i}\n" for i in range(200)).encode()
    if kind == "zst":
        packed = pytest.importorskip("zstandard").compress(text)
    else:
        packed = {"plain": bytes, "gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}[kind](text)
    path = tmp_path / "data"
    path.write_bytes(packed)
    data = read_letor(path, dtype=np.float64)
    assert data.X.tolist() == [[i, i / 7] for i in range(200)]
    assert data.qid.tolist() == [i // 5 for i in range(200)]
    assert data.docid.tolist() == [f"d{i}" for i in range(200)]


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_several_streams_and_padding_are_one_text(pack):
    data = read(pack(b"1 1:2\n0 ") + pack(b"1:3\n") + b"\0" * 8)
    assert dense(data).tolist() == [[2], [3]]


def test_compressed_stream_that_changes_its_mind(many_ranges):
    # Wider rows, an id 0 and another density, each long after the first window.
    text = "".join("1 qid:1 1:1 2:2\n" for _ in range(50)) + "1 qid:1 0:5 9:1\n" + "1 qid:2 1:1\n" * 300
    expected = read(text, n_jobs=1)
    assert expected.X.shape == (351, 10)
    assert sp.issparse(expected.X)
    for content in (text.encode(), gzip.compress(text.encode())):
        got = read(content, n_jobs=2)
        assert sp.issparse(got.X)
        assert np.array_equal(dense(got), dense(expected))
    assert dense(expected)[50].tolist() == [5, 0, 0, 0, 0, 0, 0, 0, 0, 1]


def test_labels():
    data = read("+1 1:1\n-2 1:1\n0.1 1:1\n1e3 1:1\n")
    assert data.y.tolist() == [1.0, -2.0, 0.1, 1000.0]
    assert data.y.dtype == np.float64


def test_without_qid():
    data = read("1 1:1\n0 2:1\n")
    assert data.qid is None
    assert data.queries.n_queries == 1


def test_interrupted_queries_keep_the_order_of_rows():
    data = read("1 qid:7 1:1\n0 qid:3 1:2\n0 qid:7 1:3\n")
    assert data.qid.tolist() == [7, 3, 7]
    assert data.qid.dtype == np.int64
    assert data.queries.rows(0).tolist() == [0, 2]


@pytest.mark.parametrize(
    "ids",
    [["a", "7"], ["07", "7"], ["1.0", "1"], ["9223372036854775808", "1"], ["-0", "0"], ["a:b", "c"], ["é", "e"]],
)
def test_string_qids_where_one_is_no_plain_integer(ids, many_ranges):
    text = "".join(f"1 qid:{i} 1:1 2:2\n" for i in [*ids, "12"] * 30)
    for content in (text.encode(), gzip.compress(text.encode())):
        for sparse in (True, False):
            data = read(content, sparse=sparse, n_jobs=2)
            assert data.qid.tolist() == [*ids, "12"] * 30
            assert dense(data).tolist() == [[1, 2]] * 90


def test_string_qids_late_in_a_compressed_file(many_ranges):
    text = "1 qid:5 1:1\n" * 40 + "1 qid:x 1:1\n"
    data = read(gzip.compress(text.encode()))
    assert data.qid.tolist() == ["5"] * 40 + ["x"]
    assert data.qid.dtype.kind == "U"


@pytest.mark.parametrize("qid", ["-9223372036854775808", "9223372036854775807", "0", "-1"])
def test_integer_qids(qid):
    assert read(f"1 qid:{qid} 1:1\n").qid.tolist() == [int(qid)]


def test_zero_based_ids_are_found_anywhere(many_ranges):
    text = "1 1:1 2:1\n" * 100 + "1 0:5\n" + "1 1:1\n" * 100
    for content in (text.encode(), gzip.compress(text.encode())):
        data = read(content, n_jobs=2, sparse=False)
        assert data.X.shape == (201, 3)
        assert data.X[100].tolist() == [5, 0, 0]


def test_zero_based_told():
    assert read("1 1:1 2:3\n", zero_based=True).X.tolist() == [[0, 1, 3]]
    assert read("1 0:1 2:3\n", zero_based=True).X.tolist() == [[1, 0, 3]]


def test_declared_number_of_features():
    assert read("1 1:1 2:3\n", n_features=4).X.tolist() == [[1, 3, 0, 0]]
    assert dense(read("1 1:1\n", n_features=1000)).shape == (1, 1000)


def test_a_wider_row_than_the_sample_showed(many_ranges):
    rows = ["1 1:1 2:2\n"] * 5000
    rows[3777] = "1 1:1 2:2 3:3\n"
    data = read("".join(rows), n_jobs=2)
    assert data.X.shape == (5000, 3)
    assert data.X[3777].tolist() == [1, 2, 3]
    assert data.X.sum() == 3 * 5000 + 3


def test_dense_from_a_quarter_of_the_values():
    line = "1 1:1 8:1\n"
    assert not sp.issparse(read(line * 4).X)
    data = read(line * 3 + "1 8:1\n")
    assert sp.issparse(data.X)
    assert data.X.has_sorted_indices
    # The kind is one of the whole file, not of its beginning.
    many = "1 1:1 2:1 3:1 4:1 5:1 6:1 7:1 8:1\n" * 100 + "1 1:1\n" * 10000
    assert sp.issparse(read(many).X)


def test_stated_zeros_stay_in_sparse_matrices():
    data = read("1 2:0 1:-0\n", sparse=True)
    assert data.X.nnz == 2
    assert data.X.indices.tolist() == [0, 1]


def test_rows_without_features():
    data = read("1 qid:1\n0 qid:1 2:1\n2 qid:1 # x\n", sparse=False)
    assert data.X.tolist() == [[0, 0], [0, 1], [0, 0]]
    assert read("1\n2\n").X.shape == (2, 1)


def test_docids():
    text = "1 1:1 #docid = GX-1 inc = 1 prob = 0.08\n"
    text += "1 1:1 #docid=GX-2\n1 1:1 # GX-3\n1 1:1\n1 1:1 #\tdocid\t=\té x\n1 1:1 #GX#4\n"
    assert read(text).docid.tolist() == ["GX-1", "GX-2", "GX-3", "", "é", "GX#4"]
    assert read(text, docids=False).docid is None
    assert read("1 1:1\n").docid is None
    assert read("1 1:1 # docidx = 3\n1 1:1 # docid\n").docid.tolist() == ["docidx", "docid"]


def test_one_long_docid_does_not_widen_all(many_ranges):
    text = "1 1:1 # a\n" * 1000 + "1 1:1 # " + "b" * 5000 + "\n"
    for content in (text.encode(), gzip.compress(text.encode())):
        docid = read(content).docid
        assert docid.dtype == object
        assert docid[-1] == "b" * 5000


@pytest.mark.parametrize("rest", [b"", b"1 1:1 # bb\n"])
def test_long_docids_in_a_window_of_their_own_do_not_widen_all(monkeypatch, rest):
    monkeypatch.setattr(reader, "WINDOW", 10_000)
    content = b"1 1:1 # a\n" * 1000 + b"1 1:1 # " + b"b" * 5000 + b"\n" + rest
    docid = read(gzip.compress(content)).docid
    assert docid.dtype == object
    assert docid.tolist()[999:1001] == ["a", "b" * 5000]
    assert read(gzip.compress(content.replace(b"b" * 5000, b"bbb"))).docid.dtype == np.dtype("U3")


def test_a_comment_begins_anywhere():
    data = read("1 qid:1#x\n1 qid:1 1:2#y 2:9\n")
    assert data.X.tolist() == [[0], [2]]
    assert data.docid.tolist() == ["x", "y"]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, "float64"])
def test_dtype_and_layout(dtype):
    data = read("1 1:0.1\n", dtype=dtype)
    assert data.X.dtype == np.dtype(dtype)
    assert data.X.flags.c_contiguous
    assert data.X[0, 0] == np.dtype(dtype).type("0.1")


def test_every_number_of_threads_gives_the_same(many_ranges):
    rng = np.random.default_rng(0)
    text = "".join(f"{rng.integers(3)} qid:{i // 9} " + " ".join(f"{j}:{rng.random():.6f}" for j in range(1, 8)) + "\n"
                   for i in range(500))  # fmt: skip
    first = read(text, n_jobs=1)
    for n_jobs in (2, 3, 8):
        other = read(text, n_jobs=n_jobs)
        assert np.array_equal(first.X, other.X)
        assert np.array_equal(first.qid, other.qid)


def test_lengths_around_the_end_of_the_buffer():
    # The last lines are parsed from a padded copy: every length must work, with and without a newline.
    for length in range(1, 60):
        for end in ("", "\n", "\r\n", " \n", "#c"):
            value = "0." + "1" * length
            data = read(f"1 1:{value}{end}", dtype=np.float64)
            assert data.X[0, 0] == float(value)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=lambda: path.write_bytes(b"1 1:2\n"))
    writer.start()
    assert read_letor(path).X.tolist() == [[2]]
    writer.join()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_features": 0}, "n_features must be None or a positive integer, got 0"),
        ({"n_features": 2.5}, "n_features"),
        ({"n_features": "3"}, "n_features"),
        ({"dtype": np.int32}, "dtype must be numpy.float32 or numpy.float64"),
        ({"dtype": "half a float"}, "dtype must be numpy.float32 or numpy.float64, got 'half a float'"),
        ({"sparse": "auto"}, "sparse must be None, True or False"),
        ({"zero_based": "yes"}, "zero_based must be True, False or 'auto'"),
        ({"n_jobs": 0}, "n_jobs"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(OptionError, match=message):
        read("1 1:1\n", **options)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no line of data"),
        (b"# only\n\n", "no line of data"),
        (gzip.compress(b""), "no line of data"),
        (gzip.compress(b"# only\n"), "no line of data"),
        (b"\xff\xfe1\x00", "UTF-16"),
        (b"\xfe\xff\x001", "UTF-16"),
        (b"PAR1....", "Parquet file: use"),
        (b"ranksvm-data\r\n\x1a\n", "cache: use RankingData.load"),
    ],
    # Named: gzip writes the time into its header, and pytest's workers must find the same tests.
    ids=["empty", "comments", "empty gzip", "comments gzip", "UTF-16 LE", "UTF-16 BE", "Parquet", "cache"],
)
def test_no_text_of_this_kind(content, message):
    with pytest.raises(DataError, match=message):
        read(content)


def test_empty_and_absent_files(tmp_path):
    (tmp_path / "empty").touch()
    with pytest.raises(DataError, match="empty is empty"):
        read_letor(tmp_path / "empty")
    with pytest.raises(FileNotFoundError):
        read_letor(tmp_path / "absent")


def test_zstd_without_its_package_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "zstandard", None)
    monkeypatch.setitem(sys.modules, "compression", None)
    with pytest.raises(MissingDependencyError, match=r'pip install "ranksvm\[zstd\]"'):
        read(b"\x28\xb5\x2f\xfd....")


COUNTS = {
    "MQ2008": (9630, 471, 46, False),
    "OHSUMED": (9219, 63, 45, False),
    "MQ2007-partial": (35969, 1017, 46, False),
    "LightGBM-rank": (3005, 201, 300, False),
    "WikiQA-wordpairs": (20360, 2118, 279643, True),
}


@pytest.mark.parametrize("name", COUNTS)
def test_real_data(name, shared_data):
    rows, queries, features, sparse = COUNTS[name]
    path = shared_data / name / "Fold1" / "train.txt.gz"
    data = read_letor(path)
    assert data.X.shape == (rows, features)
    assert data.queries.n_queries == queries
    assert sp.issparse(data.X) == sparse
    text = gzip.decompress(path.read_bytes())
    for n_jobs in (1, 2):
        plain = read(text, n_jobs=n_jobs)
        assert (plain.X != data.X).sum() == 0
        assert np.array_equal(plain.qid, data.qid)
    for row, (label, qid, pairs, docid) in enumerate(slow_read(text[: 1 << 18].decode().rsplit("\n", 1)[0])):
        assert (data.y[row], data.qid[row]) == (label, int(qid))
        assert docid == ("" if data.docid is None else data.docid[row])
        columns = [int(i) - 1 for i in pairs]
        values = data.X[row].toarray()[0, columns] if sparse else data.X[row, columns]
        assert values.tolist() == [np.float32(value) for value in pairs.values()]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc/self/status")
@pytest.mark.parametrize(("suffix", "limit"), [("", 1.3), (".gz", 2.3)])
def test_peak_memory(suffix, limit, tmp_path):
    # Anonymous memory only: the page cache is not counted. 8 MB of slack for threads and windows.
    line = "1 qid:{} " + " ".join(f"{i}:0.{i:06d}" for i in range(1, 137)) + "\n"
    text = "".join(line.format(i // 100) for i in range(60000)).encode()
    path = tmp_path / f"data.txt{suffix}"
    path.write_bytes(gzip.compress(text, 1) if suffix else text)
    code = """
import io, sys, threading, time
from ranksvm.datasets import read_letor
def anonymous():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("RssAnon")) * 1024
read_letor(io.BytesIO(b"1 1:1\\n"))
before = peak = anonymous()
done = False
def watch():
    global peak
    while not done:
        peak = max(peak, anonymous())
        time.sleep(0.001)
thread = threading.Thread(target=watch); thread.start()
data = read_letor(sys.argv[1], n_jobs=2)
peak = max(peak, anonymous())
done = True; thread.join()
result = data.X.nbytes + data.y.nbytes + data.qid.nbytes
print((peak - before - (8 << 20)) / result)
"""
    out = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=True)
    assert float(out.stdout) <= limit


def test_result_type():
    assert isinstance(read("1 1:1\n"), RankingData)
