"""CSV and TSV: the same data as LETOR text and Parquet, as a whole and as a stream."""

import gzip
import io
import os
import re
import signal
import sys
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from ranksvm.datasets import RankingData, convert_to_cache, iter_data, read_data, write_data
from ranksvm.exceptions import DataError, MissingDependencyError, OptionError

pytest.importorskip("pyarrow")

LETOR = "2 qid:7 1:0.5 2:1.25 #docid = a\n0 qid:7 2:-3 #docid = b,c\n1 qid:10 1:1e-3 2:7 #docid = d\n"
CSV = 'docid,x,label,qid,y\na,0.5,2,7,1.25\n"b,c",0,0,7,-3\nd,1e-3,1,10,7\n'


def same(data, wanted):
    assert data.X.dtype == wanted.X.dtype
    np.testing.assert_array_equal(data.X, wanted.X)
    for name in ("y", "qid", "docid"):
        assert getattr(data, name).tolist() == getattr(wanted, name).tolist()
    assert data.qid.dtype == wanted.qid.dtype


@pytest.fixture
def letor(tmp_path):
    path = tmp_path / "data.txt"
    path.write_text(LETOR)
    return read_data(path, dtype=np.float64)


@pytest.mark.parametrize("name", ["data.csv", "data.tsv", "data", "data.csv.gz", "data.gz", "bom.csv", "crlf.csv"])
def test_csv_is_read_as_letor_is(letor, tmp_path, name):
    text = CSV
    if name.endswith("tsv"):
        text = CSV.replace('"b,c"', "b;c").replace(",", "\t").replace(";", ",")
    content = (text.replace("\n", "\r\n") if "crlf" in name else text).encode("utf-8-sig" if "bom" in name else "utf-8")
    path = tmp_path / name
    path.write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    data = read_data(path)
    same(data, letor)
    assert data.feature_names == ("x", "y")
    assert read_data(path, dtype=np.float32).X.dtype == np.float32
    batches = list(iter_data(path))
    assert [batch.qid.tolist() for batch in batches] == [[7, 7], [10]]
    np.testing.assert_array_equal(np.concatenate([batch.X for batch in batches]), letor.X)
    assert batches[0].feature_names == ("x", "y")


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz", ".zst"])
def test_a_first_block_that_decompresses_late(tmp_path, monkeypatch, suffix):
    """The decompressors of bzip2 and zstd return no text before the end of a block, which may be 900,000 bytes."""
    if suffix == ".zst":
        pytest.importorskip("zstandard")
    X = np.random.default_rng(0).normal(size=(3000, 20))
    path, unnamed = tmp_path / f"data.csv{suffix}", tmp_path / "data"
    write_data(RankingData(X, np.arange(3000) % 3, np.arange(3000) // 10), path)
    unnamed.write_bytes(path.read_bytes())
    for each in (path, unnamed):
        np.testing.assert_array_equal(read_data(each).X, X)
        np.testing.assert_array_equal(np.concatenate([batch.X for batch in iter_data(each)]), X)
        convert_to_cache(each, tmp_path / "data.rsd")
        np.testing.assert_array_equal(read_data(tmp_path / "data.rsd").X, X)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(path.read_bytes())))
    np.testing.assert_array_equal(read_data("-").X, X)


def test_integers_keep_their_digits(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("label,qid,x\n1,1,16777217\n0,1,9007199254740993\n")
    for X in (read_data(path).X, next(iter(iter_data(path))).X):
        assert X.ravel().tolist() == [16777217.0, 9007199254740992.0]


@pytest.mark.parametrize("place", ["whole", "stream", "cache", "pipe"])
def test_an_infinity_made_by_reading_is_named(tmp_path, monkeypatch, place):
    """What the file itself calls infinite is kept."""
    monkeypatch.setattr("ranksvm.datasets.csv._BLOCK", 1 << 6)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=None))
    path = tmp_path / "data.csv"

    def read(text, **options):
        path.write_text(text)
        if place == "whole":
            return read_data(path, **options).X
        if place == "stream":
            return np.concatenate([query.X for query in iter_data(path, **options)])
        if place == "cache":
            convert_to_cache(path, tmp_path / "data.rsd", **options)
            return RankingData.load(tmp_path / "data.rsd").X
        sys.stdin.buffer = io.BytesIO(text.encode())
        return read_data("-", label="label", **options).X

    rows = "".join(f"{row % 2},1,{row},-iNf\n" for row in range(50))
    assert np.isinf(read(f"label,qid,x,y\n{rows}")).sum() == 50
    for text in ("1e400", "-1e999"):
        with pytest.raises(DataError, match=rf"column 'x' of .* has {text} in row 50 \(from 0\), beyond the range of"):
            read(f"label,qid,x,y\n{rows}1,1,{text},2\n0,1,2,3\n")
    with pytest.raises(DataError, match=r"column 'x' of .* beyond the range of float32 in 1 of .* first is row 50 "):
        read(f"label,qid,x,y\n{rows}1,1,1e40,2\n0,1,2,3\n", dtype=np.float32)


def test_a_stream_in_many_blocks_is_the_whole(monkeypatch, tmp_path):
    monkeypatch.setattr("ranksvm.datasets.csv._BLOCK", 1 << 10)
    monkeypatch.setattr("ranksvm.datasets.csv.HEAD", 100)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 4)).astype(np.float32)
    qid = np.repeat([f"{number}" if number < 40 else f"q{number}" for number in range(50)], 10)
    lines = ["label,qid,a,b,c,d", *(f"1,{q},{','.join(map(str, x))}" for q, x in zip(qid, X.tolist(), strict=True))]
    path = tmp_path / "long.csv.gz"
    path.write_bytes(gzip.compress("\n".join(lines).encode()))
    data = read_data(path)
    assert data.qid.tolist() == qid.tolist()
    np.testing.assert_array_equal(data.X, X)
    np.testing.assert_array_equal(np.concatenate([batch.X for batch in iter_data(path, batch_queries=7)]), X)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("label,qid,x\n1,1,0.5\n0,1,\n", "'x' of .* has missing values in 1 of the first 2 rows, the first is row 1"),
        ("label,qid,x\n1,1,0.5\n0,1,many\n", "column 'x' of .* is not numeric: 'many' in line 3. .*--docid"),
        (
            "label,qid,x\n1,1,0\nbad,1,1\n",
            "column 'label' of .* is not numeric: 'bad' in line 3. Labels must be numbers",
        ),
        ("label,qid,flag\n1,1,0.5\n0,1,true\n", "column 'flag' of .* is not numeric: 'true' in line 3"),
        ("label,qid,flag\n1,1,True\n0,1,0.5\n", "column 'flag' of .* is not numeric: '0.5' in line 3"),
        ("grade,qid,x\n1,1,0.5\n", "no column 'label' .*its columns are grade, qid, x. Name .*--label"),
        ("label,qid,x\n1,1,0.5\n0,1\n", "Expected 3 columns, got 2"),
        ("label,qid,x\n1,1,0.5\n0,,2\n", "'qid' of .* has no query id in row 1"),
        ("label,qid,x\nnan,1,0.5\n0,1,2\n", "'label' of .* in row"),
        ("label,qid,x,x\n1,1,1,1\n", "two columns called 'x'"),
        ("label,qid\n1,1\n", "no feature columns"),
        ("label,query_id,x\n1,1,1\n", "column 'query_id' of .* is named like ids of queries"),
        ("label,Session-ID,x\n1,1,1\n", "column 'Session-ID'"),
        ("label,qid,Doc_ID\n1,1,1\n", "column 'Doc_ID' of .* like ids of documents, .*docid='Doc_ID'; --docid Doc_ID"),
        ("label,qid,relevance\n1,1,1\n", "column 'relevance' of .* like labels, .*--label relevance .*ignore it"),
        (",label,qid,x\n0,1,1,1\n", "column '' of .* like an index of pandas, .*: write the file without it"),
        ("Unnamed: 0,label,qid,x\n0,1,1,1\n", "column 'Unnamed: 0' of .* like an index of pandas, .*, ignore it"),
        ("grade,qid,x\n1,1,1\n", "no column 'label' for the labels; its columns are grade, qid, x"),
        ("", "empty"),
    ],
)
def test_what_is_refused(tmp_path, text, message):
    path = tmp_path / "data.csv"
    path.write_text(text)
    for read in (read_data, lambda path: list(iter_data(path))):
        with pytest.raises(DataError, match=message if "nan" not in text else "label"):
            read(path)


@pytest.mark.parametrize(
    "text", ["label,qid,é\n1,1,0.5\n".encode("latin-1"), "label,qid,x\n1,1,0.5\n".encode("utf-16")]
)
def test_other_encodings_are_refused(tmp_path, text):
    path = tmp_path / "data.csv"
    path.write_bytes(text)
    for read in (read_data, lambda path: list(iter_data(path))):
        with pytest.raises(DataError, match=r"data\.csv is not text in UTF-8: convert it"):
            read(path)


@pytest.mark.parametrize("letter", ["e", "\u00e9"])
def test_long_lines_lose_no_column(tmp_path, letter):
    """The line of names takes more than the 64 KiB that are read at a time; there, a name ends."""
    path = tmp_path / "data.csv"
    width = 12 - 3 * len(letter.encode())
    names = [f"{letter * 3}{place:0{width}}" for place in range(9000)]
    names[0] = "x" * (((1 << 16) - len("label,qid,")) % 13 + 13)
    values = ["True", *["1"] * 8998, "2"]
    path.write_text(f"label,qid,{','.join(names)}\n1,1,{','.join(values)}\n", encoding="utf-8")
    for data in (read_data(path), next(iter_data(path))):
        assert data.X.shape == (1, 9000)
        assert (data.feature_names[-1], data.X[0, 0], data.X[0, -1]) == (names[-1], 1.0, 2.0)


def test_a_column_that_is_named_or_left_out_is_no_feature(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("label,query_id,session,x\n1,a,5,1\n0,a,6,2\n")
    assert read_data(path, qid="query_id", ignore=["session"]).feature_names == ("x",)
    assert next(iter_data(path, qid="query_id", ignore=["session"])).feature_names == ("x",)
    with pytest.raises(OptionError, match="ignore must be a list"):
        read_data(path, ignore=[1])


@pytest.mark.parametrize("name", ["missing", "require_labels"])
def test_flags_of_readers_are_true_or_false(name, tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("label,qid,x\n1,a,5\n0,a,6\n")
    for read in (read_data, lambda *args, **options: next(iter_data(*args, **options))):
        with pytest.raises(OptionError, match=f"{name} must be True or False, got 'no'"):
            read(path, **{name: "no"})


def test_booleans_are_zeros_and_ones(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("label,qid,new,old,x\nTrue,1,True,false,0.5\nFalse,1,False,true,1.5\n")
    data = read_data(path)
    assert data.y.tolist() == [1.0, 0.0]
    assert data.X.tolist() == [[1.0, 0.0, 0.5], [0.0, 1.0, 1.5]]
    assert [batch.X.tolist() for batch in iter_data(path)] == [data.X.tolist()]


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("n_empty", [1, 5, 999])
def test_booleans_below_empty_cells(n_empty, compressed, tmp_path):
    """The first value of a column in the first thousand rows decides."""
    path = tmp_path / ("data.csv.gz" if compressed else "data.csv")
    text = "label,qid,new,x\n" + "1,1,,0.5\n" * n_empty + "0,1,True,1.5\n0,1,false,"
    path.write_bytes(gzip.compress(text.encode()) if compressed else text.encode())
    X = read_data(path, missing=True).X
    assert np.isnan(X[:n_empty, 0]).all()
    assert X[n_empty:, 0].tolist() == [1.0, 0.0]
    assert np.isnan(X[-1, 1])
    np.testing.assert_array_equal(np.concatenate([batch.X for batch in iter_data(path, missing=True)]), X)


def test_letor_text_with_commas_is_letor(tmp_path):
    path = tmp_path / "data.txt"
    path.write_text("# label,qid\n1 qid:1 1:2 # label,qid\n")
    assert read_data(path).X.tolist() == [[2.0]]


def test_without_pyarrow_the_extra_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    path = tmp_path / "data.csv"
    path.write_text(CSV)
    with pytest.raises(MissingDependencyError, match=r'reading CSV and TSV .* pip install "ranksvm\[parquet\]"'):
        read_data(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
def test_csv_from_a_pipe(letor, tmp_path):
    import threading

    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=(CSV,))
    writer.start()
    same(read_data(pipe), letor)
    writer.join()


@pytest.mark.parametrize("name", ["a.csv", "a.data"])
def test_a_tab_in_quotes_separates_no_columns(tmp_path, name):
    text = 'label,qid,"tab\tin","line\n\tin"\n1,q,1,2\n0,q,3,4\n'
    (tmp_path / name).write_text(text)
    data = read_data(tmp_path / name)
    assert list(data.feature_names) == ["tab\tin", "line\n\tin"]
    assert data.X.tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_a_value_beyond_float32_is_named(tmp_path):
    """It was infinity in CSV, and a RuntimeWarning and infinity in Parquet."""
    path = tmp_path / "data.csv"
    path.write_text("label,qid,a,b\n1,1,1,2\n0,1,2,1e40\n")
    values = "values beyond the range of float32"
    refused = rf"column 'b' of .* has {values} in 1 of the first 2 rows, the first is row 1 \(from 0\)"
    for read in (partial(read_data, dtype=np.float32), lambda path: list(iter_data(path, dtype=np.float32))):
        with pytest.raises(DataError, match=refused):
            read(path)
    read_data(path, dtype=np.float64).to_parquet(tmp_path / "data.parquet")
    with pytest.raises(DataError, match=refused):
        read_data(tmp_path / "data.parquet", dtype=np.float32)
    assert read_data(path, dtype=np.float64).X.max() == 1e40


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_missing_values(tmp_path, kind):
    pandas = pytest.importorskip("pandas")
    flag = pandas.array([True, None, False, True], dtype="boolean")
    count = pandas.array([None, 1, 2, 3], dtype="Int8")
    frame = pandas.DataFrame({"label": [1, 0, 1, 0], "qid": [1, 1, 2, 2], "x": [0.5, 1.5, None, 2.5]})
    frame = frame.assign(flag=flag, count=count)
    path = tmp_path / f"data.{kind}"
    frame.to_csv(path, index=False) if kind == "csv" else frame.to_parquet(path)
    expected = [[0.5, 1, np.nan], [1.5, np.nan, 1], [np.nan, 0, 2], [2.5, 1, 3]]
    np.testing.assert_array_equal(read_data(path, missing=True).X, expected)
    blocks = [query.X for query in iter_data(path, missing=True)]
    np.testing.assert_array_equal(np.concatenate(blocks), expected)
    convert_to_cache(path, tmp_path / "data.rsd", missing=True)
    np.testing.assert_array_equal(RankingData.load(tmp_path / "data.rsd").X, expected)
    counted = r"missing values in 1 of the first 4 rows, the first is row 2"
    message = rf"column 'x' of .* has {counted} .*or accept them .*missing=True"
    with pytest.raises(DataError, match=message):
        read_data(path)
    # labels are never missing
    frame.loc[1, "label"] = None
    frame.to_csv(path, index=False) if kind == "csv" else frame.to_parquet(path)
    with pytest.raises(DataError, match=r"column 'label' of .* has missing values .*: fill or drop them first\.$"):
        read_data(path, missing=True)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_missing_values_are_counted_in_the_rows_up_to_the_last_one_read(tmp_path, monkeypatch, kind):
    """The message said how many rows a block has, as if the file had no more."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    numbers = np.arange(100)
    missing = (numbers >= 70) & (numbers < 75)
    rows = pa.table({"label": numbers % 3, "qid": numbers // 10, "x": pa.array(numbers * 0.5, mask=missing)})
    path = tmp_path / f"data.{kind}"
    pa.csv.write_csv(rows, path) if kind == "csv" else pa.parquet.write_table(rows, path)
    monkeypatch.setattr("ranksvm.datasets.csv._BLOCK", 300)
    monkeypatch.setattr("ranksvm.datasets.csv._BLOCK_OF_COLUMN", 1)
    monkeypatch.setattr("ranksvm.datasets.parquet._ROWS", 40)
    monkeypatch.setattr("ranksvm.datasets.parquet._STREAM_ROWS", 40)
    for read in (read_data, lambda path: list(iter_data(path))):
        with pytest.raises(DataError, match="the first is row 70") as error:
            read(path)
        found = re.search(r"missing values in (\d) of the first (\d+) rows", str(error.value))
        assert int(found[1]) == min(5, int(found[2]) - 70)


@pytest.mark.parametrize("own", [True, False])
def test_a_program_keeps_its_handlers_of_signals_while_csv_is_read(tmp_path, monkeypatch, own):
    """The handlers of pyarrow lost Ctrl-C and SIGTERM in commands; for other programs, pyarrow keeps its setting."""
    pa = pytest.importorskip("pyarrow")
    calls = []
    monkeypatch.setattr(pa, "enable_signal_handlers", calls.append)
    before = signal.signal(signal.SIGTERM, (lambda *_: None) if own else signal.SIG_DFL)
    (tmp_path / "data.csv").write_text("label,qid,x\n1,1,0.5\n0,1,2\n")
    try:
        read_data(tmp_path / "data.csv")
    finally:
        signal.signal(signal.SIGTERM, before)
    assert set(calls) == ({False} if own else set())


def test_lines_longer_than_a_block(tmp_path, monkeypatch):
    monkeypatch.setattr("ranksvm.datasets.csv._BLOCK", 64)
    path, n_features = tmp_path / "data.csv", 30
    header = ",".join(f"a_long_name_of_feature_{feature}" for feature in range(n_features))
    rows = [f"{row // 2},{row % 2}" + f",0.{'1' * (row % 3 * 8 + 1)}" * n_features for row in range(7)]
    path.write_text(f"qid,label,{header}\n" + "".join(f"{row}\n" for row in rows))
    data = read_data(path)
    assert data.X.shape == (7, n_features)
    np.testing.assert_array_equal(np.concatenate([query.X for query in iter_data(path)]), data.X)


def test_features_of_text_and_of_caches_cannot_be_ignored(tmp_path):
    table, text, cache = (tmp_path / name for name in ("data.csv", "data.txt", "data.rsd"))
    table.write_text("label,qid,x,note\n1,1,0.5,2\n0,1,0.25,3\n")
    text.write_text("1 qid:1 1:0.5 2:2\n0 qid:1 1:0.25 2:3\n")
    convert_to_cache(table, cache)
    unnamed = tmp_path / "unnamed.rsd"
    convert_to_cache(text, unnamed)
    for path, name in ((text, "f2"), (text, "2"), (cache, "note"), (unnamed, "f2"), (unnamed, "2")):
        for read in (read_data, lambda *a, **k: next(iter_data(*a, **k))):
            with pytest.raises(OptionError, match=f"'{name}' is to be ignored"):
                read(path, ignore=[name])
        with pytest.raises(OptionError, match=f"'{name}' is to be ignored"):
            convert_to_cache(path, tmp_path / "other.rsd", ignore=[name])
        # the option may be meant for another file of the same command
        assert read_data(path, ignore=["price"]).n_features == 2
    with open(text, "rb") as stream, pytest.raises(OptionError, match="the stream is text"):
        next(iter_data(stream, ignore=["f1"]))


def test_an_ignored_column_holds_neither_ids_nor_labels(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text(CSV)
    assert read_data(path, ignore=["docid"]).docid is None
    assert read_data(path, ignore=["qid"]).qid is None
    with pytest.raises(DataError, match="no column 'label' for the labels; its columns are docid, x, qid, y"):
        read_data(path, ignore=["label"])
    np.testing.assert_array_equal(read_data(path, ignore=["label"], require_labels=False).y, [0, 0, 0])
