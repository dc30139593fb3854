"""ClickLog: what is stored, what is refused, files, and the rows of the data."""

import gzip

import numpy as np
import pandas
import polars
import pyarrow
import pyarrow.csv
import pyarrow.parquet
import pytest

from ranksvm import RankingData, make_ranking, metrics
from ranksvm.clicks import ClickLog, simulate_clicks
from ranksvm.exceptions import DataError, LikelyMistakeWarning, OptionError

LISTS = [
    ("i1", "a", "d1", 1, 0),
    ("i1", "a", "d2", 2, 1),
    ("i2", "b", "d2", 1, 1),
    ("i2", "b", "d3", 2, 0),
    ("i2", "b", "d1", 3, 1),
    ("i3", "a", "d2", 1, 0),
]


def log_of(lists=LISTS, **more):
    impression, query, document, rank, clicked = (list(column) for column in zip(*lists, strict=True))
    return ClickLog(query, document, rank, clicked, impression=impression, **more)


def contents(log):
    return [
        (log.query_ids[query], log.document_ids[document], int(rank), bool(clicked))
        for query, document, rank, clicked in zip(log.query, log.document, log.rank, log.clicked, strict=True)
    ]


@pytest.fixture(scope="module")
def data():
    return make_ranking(n_queries=12, n_docs=8, n_features=3, random_state=1)


def test_rows_are_sorted_by_impression_and_rank():
    rng = np.random.default_rng(0)
    shuffled = rng.permutation(len(LISTS))
    mixed = log_of([LISTS[row] for row in shuffled], propensity=(shuffled + 1) / 10, time=shuffled)
    for start, stop in zip(mixed.pointers[:-1], mixed.pointers[1:], strict=True):
        assert mixed.rank[start:stop].tolist() == list(range(1, stop - start + 1))
    assert sorted(contents(mixed)) == sorted(contents(log_of()))
    original = shuffled[mixed.order]
    assert [LISTS[row][3] for row in original] == mixed.rank.tolist()
    np.testing.assert_array_equal(mixed.propensity, (original + 1) / 10)
    np.testing.assert_array_equal(mixed.time, original)


@pytest.mark.parametrize(("dtype", "largest"), [("int8", 100), ("int16", 20_000)])
def test_ids_whose_differences_overflow_stay_different(dtype, largest):
    ids = np.arange(-largest, largest + 1).astype(dtype)
    log = ClickLog(ids, ids, np.ones(len(ids), dtype=int), np.zeros(len(ids), dtype=bool))
    np.testing.assert_array_equal(log.query_ids[log.query], ids)
    np.testing.assert_array_equal(log.document_ids[log.document], ids)


def test_impressions_without_ids_begin_at_rank_one():
    _, query, document, rank, clicked = zip(*LISTS, strict=True)
    log = ClickLog(query, document, rank, clicked)
    assert log.pointers.tolist() == [0, 2, 5, 6]
    assert contents(log) == contents(log_of())


def test_statistics_by_rank():
    found = log_of().by_rank()
    assert found["shown"].tolist() == [3, 2, 1]
    assert found["clicks"].tolist() == [1, 1, 1]
    np.testing.assert_allclose(found["click_rate"], [1 / 3, 1 / 2, 1])
    assert log_of().to_csv().splitlines()[0] == "rank,shown,clicks,click_rate"
    assert log_of().impression.tolist() == [0, 0, 1, 1, 1, 2]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("i", "a", "d1", 1, 0), ("i", "a", "d2", 3, 0)], "impression 'i' shows no document at rank 2"),
        ([("i", "a", "d1", 2, 0), ("i", "a", "d2", 3, 0)], "impression 'i' shows no document at rank 1"),
        ([("i", "a", "d1", 1, 0), ("i", "a", "d2", 1, 0)], "impression 'i' shows two documents at rank 1"),
        ([("i", "a", "d1", 1, 0), ("i", "b", "d2", 2, 0)], "impression 'i' has rows of two queries, 'a' and 'b'"),
        ([("i", "a", "d1", 1, 0), ("i", "a", "d1", 2, 0)], "impression 'i' shows document 'd1' twice"),
        ([("i", "a", "d1", 1, 2)], "clicked is 2 in row 0"),
        ([("i", "a", "d1", 0, 1)], "rank is 0 in row 0"),
        ([("i", "a", "d1", 1.5, 1)], "rank is 1.5 in row 0"),
        ([("i", "a", None, 1, 1)], "document is missing in row 0: every row needs a document id"),
    ],
)
def test_bad_rows(rows, message):
    with pytest.raises(DataError, match=message):
        log_of(rows)


def test_bad_columns():
    with pytest.raises(DataError, match="has no rows"):
        ClickLog([], [], [], [])
    with pytest.raises(DataError, match="rank has 2 entries but clicked has 1 rows"):
        ClickLog(["a"], ["d"], [1, 2], [0])
    with pytest.raises(DataError, match="document has 2 entries"):
        ClickLog(["a"], ["d", "e"], [1], [0])
    for wrong in (-0.5, 1.5):
        with pytest.raises(DataError, match=rf"propensity is {wrong} in row 0.* must be in \[0, 1\]"):
            ClickLog(["a"], ["d"], [1], [0], propensity=[wrong])
    with pytest.raises(DataError, match=r"propensity is 0.0 in row 0.* in \(0, 1\], since it was clicked on"):
        ClickLog(["a"], ["d"], [1], [1], propensity=[0.0])
    with pytest.raises(DataError, match="begins at rank 2"):
        ClickLog(["a"], ["d"], [2], [0])
    with pytest.raises(DataError, match=r"time must hold numbers, but row 0 .* are numbers or datetime64"):
        log_of(time=["2026-03-01"] * len(LISTS))
    with pytest.raises(OptionError, match="n_ranks"):
        log_of().top(0)
    with pytest.raises(OptionError, match=r"n_ranks must be a whole number from 1, got 1\.5"):
        log_of().top(1.5)
    with pytest.raises(DataError, match="no row of the log is left"):
        log_of().impressions(np.zeros(3, dtype=bool))


def test_impressions_of_one_ranker_do_not_name_the_others():
    log = ClickLog(["q"] * 3, [1, 2, 1], [1, 1, 1], [0, 1, 1], ranker=["A", "B", "C"])
    some = log.impressions(np.array([True, False, True]))
    assert (some.ranker.tolist(), some.ranker_names) == ([0, 1], ["A", "C"])
    assert "2 rankers" in repr(some)
    data = RankingData(np.zeros((3, 1)), np.zeros(3), ["q"] * 3)
    assert list(metrics.estimate(some, np.zeros(3), "dcg", data=data).unseen_by_ranker) == ["A", "C"]


def test_events():
    lists = [(7, "q", ["x", "y"], "A"), (8, "q", ["y", "z"], "B")]
    log = ClickLog.from_events(lists, [(8, "z"), (7, "x"), (8, "z")])
    assert log.clicked.tolist() == [True, False, False, True]
    assert [log.ranker_names[code] for code in log.ranker] == ["A", "A", "B", "B"]
    with pytest.raises(DataError, match="a click belongs to impression 9, which is not in the log"):
        ClickLog.from_events(lists, [(9, "z")])
    with pytest.raises(DataError, match="a click is on document 'z', which impression 7 did not show"):
        ClickLog.from_events(lists, [(7, "z")])
    with pytest.raises(DataError, match="every impression must be"):
        ClickLog.from_events([(7, "q", ["x"]), (8, "q", ["x"], "A")])
    with pytest.raises(DataError, match="shows document 'x' twice"):
        ClickLog.from_events([(7, "q", ["x", "x"])])


@pytest.mark.parametrize("library", [pandas, polars])
def test_frames(library):
    columns = dict(zip(("impression", "query", "doc", "rank", "click"), zip(*LISTS, strict=True), strict=True))
    frame = library.DataFrame({name: list(values) for name, values in columns.items()})
    assert contents(ClickLog.from_frame(frame, document="doc", clicked="click")) == contents(log_of())
    with pytest.raises(DataError, match="has no column 'document'"):
        ClickLog.from_frame(frame)
    with pytest.raises(DataError, match="has no column 'dock'"):
        ClickLog.from_frame(frame, document="dock")
    with pytest.raises(DataError, match="a DataFrame is expected"):
        ClickLog.from_frame([1, 2])


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".tsv"])
def test_files(data, tmp_path, suffix):
    log = simulate_clicks(data, {"x": data.X[:, 0], "y": data.X[:, 1]}, 200, n_ranks=4, swap="top", random_state=0)
    path = tmp_path / f"log{suffix}"
    log.save(path)
    back = ClickLog.read(path)
    assert contents(back) == contents(log)
    assert back.base_rank.tolist() == log.base_rank.tolist()
    assert back.time.tolist() == log.time.tolist()
    names = [[one.ranker_names[code] for code in one.ranker] for one in (back, log)]
    assert names[0] == names[1]


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_files_keep_ids_that_are_floats(tmp_path, suffix):
    rows = RankingData(np.zeros((4, 1)), np.zeros(4), [1, 1, 2, 2], [1, 2, 1, 3])
    log = ClickLog([2.0, 2.0, 1.0], [1.0, 3.0, 2.0], [1, 2, 1], [0, 1, 0])
    for _ in range(2):
        log.save(tmp_path / f"log{suffix}")
        log = ClickLog.read(tmp_path / f"log{suffix}")
        assert log.rows(rows).tolist() == [2, 3, 1]
    ClickLog([2.5, 2.5, 1.0], [1.0, 3.0, 2.0], [1, 2, 1], [0, 1, 0]).save(tmp_path / f"log{suffix}")
    log = ClickLog.read(tmp_path / f"log{suffix}")
    assert log.query_ids[log.query].tolist() == [2.5, 2.5, 1.0]


def test_ids_of_the_same_text_are_not_saved(tmp_path):
    log = ClickLog(["q"] * 3, [1, "1", 2], [1, 2, 3], [0, 1, 0])
    with pytest.raises(DataError, match="has the ids 1 and '1', which a file would not distinguish"):
        log.save(tmp_path / "log.parquet")
    assert not (tmp_path / "log.parquet").exists()


def test_ids_of_files_that_are_nan_are_refused(tmp_path):
    columns = {"query": [1.0, float("nan")], "document": [1, 2], "rank": [1, 1], "clicked": [0, 1]}
    polars.DataFrame(columns).write_parquet(tmp_path / "log.parquet")
    with pytest.raises(DataError, match=r"column 'query' of .* has 1 missing values"):
        ClickLog.read(tmp_path / "log.parquet")


def test_a_file_in_blocks(data, tmp_path, monkeypatch):
    from ranksvm.clicks import log_file

    monkeypatch.setattr(log_file, "_BATCH", 37)
    log = simulate_clicks(data, data.X[:, 0], 100, n_ranks=5, random_state=0)
    log.save(tmp_path / "log.parquet")
    blocks = list(ClickLog.scan(tmp_path / "log.parquet", block_rows=50))
    assert len(blocks) > 5
    assert [row for block in blocks for row in contents(block)] == contents(log)
    with pytest.raises(OptionError, match="block_rows"):
        ClickLog.scan(tmp_path / "log.parquet", block_rows=0)


@pytest.mark.parametrize("order", ["rank", "shuffled"])
def test_blocks_need_the_rows_of_an_impression_together(data, tmp_path, order, monkeypatch):
    from ranksvm.clicks import log_file

    monkeypatch.setattr(log_file, "_BATCH", 37)
    simulate_clicks(data, data.X[:, 0], 100, n_ranks=5, random_state=0).save(tmp_path / "log.parquet")
    frame = pandas.read_parquet(tmp_path / "log.parquet")
    frame = frame.sample(frac=1, random_state=0) if order == "shuffled" else frame.sort_values("rank", kind="stable")
    frame.to_parquet(tmp_path / "log.parquet")
    assert ClickLog.read(tmp_path / "log.parquet").n_impressions == 100
    assert len(list(ClickLog.scan(tmp_path / "log.parquet"))) == 1
    with pytest.raises(DataError, match=r"log\.parquet is read in blocks, so the rows of an impression must be"):
        list(ClickLog.scan(tmp_path / "log.parquet", block_rows=50))


def test_headers_of_spreadsheets(tmp_path):
    rows = '\ufeff"query","document","rank","clicked"\r\na,x,1,0\r\na,y,2,1\r\n'
    (tmp_path / "log.csv").write_bytes(rows.encode())
    log = ClickLog.read(tmp_path / "log.csv")
    assert log.clicked.tolist() == [False, True]
    assert log.query_ids.tolist() == ["a"]
    (tmp_path / "nothing.csv").write_bytes(b"")
    with pytest.raises(DataError, match="cannot be read as a click log: its first line"):
        ClickLog.read(tmp_path / "nothing.csv")
    (tmp_path / "line.csv").write_bytes(b"a" * 200_000)
    with pytest.raises(DataError, match="cannot be read as a click log: field larger"):
        ClickLog.read(tmp_path / "line.csv")


@pytest.mark.parametrize("last", ["shoe", "1.5"])
@pytest.mark.parametrize("column", ["query", "document", "impression"])
def test_text_after_numbers_in_csv_is_refused_with_its_place(tmp_path, monkeypatch, column, last):
    from ranksvm.clicks import log_file

    monkeypatch.setattr(log_file, "_CSV_BYTES", 64)
    path = tmp_path / "log.csv"
    lines = [f"{number},x,{number},1,0,{number}" for number in range(20)]
    values = {"query": "20", "other": "x", "document": "20", "rank": "1", "clicked": "1", "impression": "20"}
    head = ",".join(values)
    path.write_text("\n".join([head, *lines, ",".join((values | {column: last}).values())]))
    message = f"column '{column}' of .*log.csv holds '{last}' after row 1[0-9] .* cannot be read as int64.*as Parquet"
    with pytest.raises(DataError, match=message):
        ClickLog.read(path)
    with pytest.raises(DataError, match=message):
        list(ClickLog.scan(path, block_rows=5))
    as_text = ClickLog.from_frame(pandas.read_csv(path, dtype={column: str}))
    assert as_text.n_rows == 21


@pytest.mark.parametrize(
    "ids", ["1 2 007 4 5 6 8 9 10 11 12 13", "1.0 2.5 007 4 5 6 8 9 10 11 12 13", "a 2 007 1.0 1 7 x y"]
)
def test_ids_of_csv_are_the_same_in_one_go_and_in_blocks(tmp_path, monkeypatch, ids):
    from ranksvm.clicks import log_file

    monkeypatch.setattr(log_file, "_CSV_BYTES", 48)
    path = tmp_path / "log.csv"
    path.write_text("query,document,rank,clicked\n" + "".join(f"{name},{name},1,0\n" for name in ids.split()))
    blocks = list(ClickLog.scan(path, block_rows=2))
    assert len(blocks) > 2
    found = [row for block in blocks for row in contents(block)]
    assert found == contents(ClickLog.read(path))
    assert [type(row[0]) for row in found] == [type(row[0]) for row in contents(ClickLog.read(path))]


def test_ids_of_csv_that_are_numbers_are_compared_as_numbers(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("query,document,rank,clicked\n007,1,1,0\n7,2,1,1\n")
    assert ClickLog.read(path).query_ids.tolist() == [7]


@pytest.mark.parametrize(
    "ids",
    [["10:30", "11:45"], ["2024-01-01 10:00", "2024-01-01 11:00"], ["2024-01-01", "2024-02-01"], ["true", "false"]],
)
def test_ids_of_csv_that_look_like_times_or_booleans_are_text(tmp_path, ids):
    path = tmp_path / "log.csv"
    path.write_text("query,document,rank,clicked\n" + "".join(f"{name},{name},1,TRUE\n" for name in ids))
    for log in (ClickLog.read(path), *ClickLog.scan(path)):
        assert (log.query_ids.tolist(), log.document_ids.tolist(), log.clicked.all()) == (ids, ids, True)
        assert log.rows(RankingData(np.zeros((2, 1)), np.zeros(2), np.array(ids), np.array(ids))).tolist() == [0, 1]


@pytest.mark.parametrize("column", ["query", "document", "impression", "ranker"])
def test_empty_ids_of_csv_are_missing_also_among_text(tmp_path, column):
    path = tmp_path / "log.csv"
    row = {"query": "a", "document": "x", "impression": "i", "ranker": "r", "rank": 1, "clicked": 0}
    pandas.DataFrame([row, row | {"impression": "j", column: None}]).to_csv(path, index=False)
    for read in (ClickLog.read, lambda path: list(ClickLog.scan(path))):
        with pytest.raises(DataError, match=f"column '{column}' of .*log.csv has 1 missing values"):
            read(path)


@pytest.mark.parametrize("smallest", [1, -1])
def test_ids_beyond_64_bits_with_a_sign(tmp_path, smallest):
    ids = [2**63 + 1, 2**63 + 2, smallest]
    frame = pandas.DataFrame({"query": ids, "document": ids, "rank": [1, 1, 1], "clicked": [1, 0, 1]})
    log = ClickLog(ids, ids, [1, 1, 1], [1, 0, 1])
    data = RankingData(np.zeros((3, 1)), np.zeros(3), log.query_ids[log.query], log.document_ids[log.document])
    assert [row[:2] for row in contents(log)] == [(one, one) for one in ids]
    assert log.rows(data).tolist() == [0, 1, 2]
    if smallest > 0:
        path = tmp_path / "log.parquet"
        frame.to_parquet(path)
        assert contents(ClickLog.read(path)) == contents(log)
        assert ClickLog.read(path).rows(data).tolist() == [0, 1, 2]
        blocks = list(ClickLog.scan(path, block_rows=1))
        assert [row for block in blocks for row in block.rows(data).tolist()] == [0, 1, 2]


@pytest.mark.parametrize("column", ["query", "document", "impression"])
def test_ids_of_csv_that_float64_would_round_are_refused(tmp_path, column):
    ids = np.array([2**63 + 1, 2**63 + 2, 5], dtype=np.uint64)
    frame = pandas.DataFrame({"query": [1, 2, 3], "document": [1, 2, 3], "impression": [1, 2, 3]})
    frame = frame.assign(rank=1, clicked=[1, 0, 1], **{column: ids})
    path = tmp_path / "log.csv"
    frame.to_csv(path, index=False)
    for read in (ClickLog.read, lambda path: list(ClickLog.scan(path, block_rows=1))):
        with pytest.raises(
            DataError, match=f"column '{column}' .* holds ids such as 92233720368547758.*, which was rounded"
        ):
            read(path)
    assert ClickLog.from_frame(pandas.read_csv(path, dtype={column: "uint64"})).n_impressions == 3


def test_propensities_of_csv_may_be_fractions_later(tmp_path, monkeypatch):
    from ranksvm.clicks import log_file

    monkeypatch.setattr(log_file, "_CSV_BYTES", 64)
    path = tmp_path / "log.csv"
    lines = [f"{number},{number},1,0,{'0.5' if number == 19 else '1'}\n" for number in range(20)]
    path.write_text("query,document,rank,clicked,propensity\n" + "".join(lines))
    assert ClickLog.read(path).propensity.tolist() == [1.0] * 19 + [0.5]


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_one_column_for_two_fields(tmp_path, suffix):
    path = tmp_path / f"log{suffix}"
    frame = pandas.DataFrame({"q": [1, 1, 2], "document": [5, 6, 5], "rank": [1, 2, 1], "clicked": [0, 1, 0]})
    frame.to_parquet(path) if suffix == ".parquet" else frame.to_csv(path, index=False)
    assert ClickLog.read(path, query="q", impression="q").pointers.tolist() == [0, 2, 3]
    for read in (ClickLog.read, lambda path, **columns: list(ClickLog.scan(path, **columns))):
        with pytest.raises(DataError, match=r"column 'q' of .* is given for both query and document: name one for"):
            read(path, query="q", document="q")
    with pytest.raises(DataError, match="column 'q' of the DataFrame is given for both query and document"):
        ClickLog.from_frame(frame, query="q", document="q")


@pytest.mark.parametrize("name", ["clicked", "propensity"])
def test_two_columns_of_the_same_name(tmp_path, name):
    columns = [["a", "a"], ["x", "y"], [1, 2], [0, 1], [1.0, 1.0], [1, 0]]
    table = pyarrow.table(columns, names=["query", "document", "rank", "clicked", "propensity", name])
    pyarrow.parquet.write_table(table, tmp_path / "log.parquet")
    pyarrow.csv.write_csv(table, tmp_path / "log.csv")
    for path in (tmp_path / "log.parquet", tmp_path / "log.csv"):
        with pytest.raises(DataError, match=f"has two columns '{name}': rename or drop one"):
            ClickLog.read(path)


def test_bad_files(tmp_path):
    path = tmp_path / "log.parquet"
    path.write_bytes(b"no Parquet")
    with pytest.raises(DataError, match=r"cannot be read as a click log in Parquet \(CSV must be decompressed"):
        ClickLog.read(path)
    text = tmp_path / "log.csv.gz"
    text.write_bytes(gzip.compress(b"query,document,rank,clicked\n1,1,1,1\n"))
    with pytest.raises(DataError, match=r"log\.csv\.gz cannot be read .*, in a file named \*\.csv or \*\.tsv"):
        ClickLog.read(text)
    frame = pandas.DataFrame({"query": [1], "document": [None], "rank": [1], "clicked": [0]})
    frame.astype({"document": "string"}).to_parquet(path)
    with pytest.raises(DataError, match=r"column 'document' of .* has 1 missing values"):
        ClickLog.read(path)
    frame.iloc[:0].to_parquet(path)
    with pytest.raises(DataError, match="has no rows"):
        ClickLog.read(path)


def test_rows_of_data(data):
    log = simulate_clicks(data, data.X[:, 0], 50, n_ranks=3, random_state=0)
    rows = log.rows(data)
    assert (data.qid[rows] == log.query_ids[log.query]).all()
    ids = np.array([f"doc{row % 8}" for row in range(data.n_rows)])  # the same in every query
    named = RankingData(data.X, data.y, data.qid, ids)
    again = simulate_clicks(named, data.X[:, 0], 50, n_ranks=3, random_state=0)
    np.testing.assert_array_equal(again.rows(named), rows)


def test_documents_of_several_types():
    ids = np.array(["shoe", 1, "hat", 2, (3, "x")], dtype=object)
    data = RankingData(np.zeros((5, 1)), np.zeros(5), [7, 7, 7, 3, 3], ids)
    log = ClickLog([3, 3, 7, 7], np.array([2, (3, "x"), 1, "shoe"], dtype=object), [1, 2, 1, 2], [1, 0, 0, 1])
    assert log.rows(data).tolist() == [3, 4, 1, 0]
    as_text = ClickLog([3, 7, 7], ["2", "hat", "1"], [1, 1, 2], [1, 0, 1])
    assert as_text.rows(data).tolist() == [3, 2, 1]
    with pytest.raises(DataError, match="the data have no document 2 in query 7"):
        ClickLog([7], [2], [1], [1]).rows(data)
    twice = RankingData(np.zeros((3, 1)), np.zeros(3), [7, 7, 7], np.array(["a", 1, 1], dtype=object))
    with pytest.raises(DataError, match="have document '1' twice in query 7"):
        ClickLog([7], ["a"], [1], [1]).rows(twice)


def test_a_number_and_its_text_are_refused_if_they_are_compared_as_text():
    def column(*ids):
        found = np.empty(len(ids), dtype=object)
        found[:] = ids
        return found

    X, y, one_query = np.zeros((4, 1)), np.zeros(4), ["a"] * 4
    mixed = column(1, "1", "2", 3)
    data = RankingData(X, y, one_query, mixed)
    exact = ClickLog(one_query, column("2", "1", 3, 1), [1, 2, 3, 4], [1, 0, 0, 0])
    assert exact.rows(data).tolist() == [2, 1, 3, 0]
    assert ClickLog(["a"], ["3"], [1], [1]).rows(data).tolist() == [3]  # not one of the two
    for docid, message in [(mixed, r"documents 1 and '1', but"), (mixed[::-1], r"documents '1' and 1, but")]:
        with pytest.raises(DataError, match=f"the data have the {message} the ids of the log are text"):
            ClickLog(["a", "a"], ["2", "1"], [1, 2], [1, 0]).rows(RankingData(X, y, one_query, docid))
    with pytest.raises(DataError, match=r"the log has the documents 1 and '1', but the ids of the data are text"):
        ClickLog(["a"] * 3, column(1, "1", "2"), [1, 2, 3], [1, 0, 0]).rows(RankingData(X, y, one_query, list("1234")))
    queries = RankingData(X, y, column(1, 1, "1", 2), list("abab"))
    with pytest.warns(LikelyMistakeWarning):
        assert ClickLog(["2"], ["b"], [1], [1]).rows(queries).tolist() == [3]
    with pytest.raises(DataError, match=r"the data have the queries 1 and '1', but the ids of the log are text"):
        ClickLog(["1"], ["a"], [1], [1]).rows(queries)


def test_rows_that_the_data_lack(data):
    with pytest.raises(DataError, match="must be row numbers"):
        log_of().rows(data)
    first = data.qid[0]
    with pytest.raises(DataError, match="shows document 999, but the rows of the data are 0 to"):
        ClickLog([first], [999], [1], [0]).rows(data)
    with pytest.raises(DataError, match="shows row 90 of the data for query"):
        ClickLog([first], [90], [1], [0]).rows(data)
    named = RankingData(data.X, data.y, data.qid, np.arange(data.n_rows).astype(str))
    with pytest.raises(DataError, match=r"no document 'd1' in query 'a', which the log shows \(and 5 more rows"):
        log_of().rows(named)
    twice = RankingData(data.X[:2], data.y[:2], data.qid[:2], np.array(["d", "d"]))
    with pytest.raises(DataError, match="have document 'd' twice in query"):
        ClickLog([first], ["d"], [1], [0]).rows(twice)
    with pytest.raises(DataError, match="data must be RankingData"):
        log_of().rows(data.X)


def test_top_and_some_impressions(data):
    log = simulate_clicks(data, data.X[:, 0], 60, n_ranks=5, random_state=0)
    top = log.top(2)
    assert top.n_impressions == 60
    assert top.rank.max() == 2
    assert contents(top) == [row for row in contents(log) if row[2] <= 2]
    some = log.impressions(np.arange(60) % 3 == 0)
    assert some.n_impressions == 20
    np.testing.assert_array_equal(some.clicked, log.clicked[some.order])


def test_plot(data):
    pytest.importorskip("matplotlib").use("agg")
    log = simulate_clicks(data, {"x": data.X[:, 0], "y": data.X[:, 1]}, 200, random_state=0)
    display = log.plot()
    assert len(display.ax_.lines) == 2
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == ["x", "y"]


def test_documents_without_ids_are_places_in_their_query():
    """A service that ranks documents without ids calls them "0", "1", ... as they were sent."""
    data = RankingData(np.zeros((5, 1)), np.zeros(5), [7, 3, 7, 7, 3])
    log = ClickLog(["7", "7", "7", "3", "3"], ["2", "0", "1", "0", "1"], [1, 2, 3, 1, 2], [1, 0, 0, 0, 1])
    assert log.rows(data).tolist() == [3, 0, 2, 1, 4]
    one = RankingData(np.zeros((3, 1)), np.zeros(3))
    assert log.impressions(np.array([True, False])).rows(one).tolist() == [2, 0, 1]
    with pytest.raises(DataError, match="no document '2' in query '3'"):
        ClickLog(["3"], ["2"], [1], [1]).rows(data)
    with pytest.raises(DataError, match="no document '0' in query '9'"):
        ClickLog(["9"], ["0"], [1], [1]).rows(data)
    with pytest.raises(DataError, match="places in their query, from 0, but one is 'shoe'"):
        ClickLog(["3"], ["shoe"], [1], [1]).rows(data)


@pytest.mark.parametrize("which", [[0, 2], [True, False], np.ones((3, 1), dtype=bool)])
def test_impressions_are_chosen_by_one_boolean_each(which):
    with pytest.raises(DataError, match="must be an array of 3 booleans, one for each impression, got shape"):
        log_of().impressions(which)
