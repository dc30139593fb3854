"""``ranksvm convert``."""

import numpy as np
import pytest

import ranksvm as package

SUFFIXES = [".txt.gz", ".rsd", ".parquet"]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_there_and_back(ranksvm, ranksvm_json, folder, tmp_path, suffix):
    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
    there, back = tmp_path / f"data{suffix}", tmp_path / "back.txt"
    document = ranksvm_json("convert", folder / "train.txt", there)
    assert document["bytes"] == there.stat().st_size
    assert (document["rows"], document["queries"], document["features"]) == (240, 30, 5)
    ranksvm("convert", there, back)
    original = package.datasets.read_data(folder / "train.txt")
    for path in (there, back):
        data = package.datasets.read_data(path)
        np.testing.assert_array_equal(data.X, original.X)
        np.testing.assert_array_equal(data.y, original.y)
        assert [str(query) for query in data.qid] == [str(query) for query in original.qid]
        assert list(data.docid) == list(original.docid)


def test_every_command_reads_a_cache(ranksvm, ranksvm_json, folder, model, tmp_path):
    cache = tmp_path / "test.rsd"
    ranksvm("convert", folder / "test.txt", cache)
    assert ranksvm_json("info", cache)["rows"] == 120
    assert ranksvm("predict", model, cache).stdout == ranksvm("predict", model, folder / "test.txt").stdout


def test_the_file_itself_is_not_overwritten(ranksvm, folder):
    result = ranksvm("convert", folder / "train.txt", folder / "train.txt", code=2)
    assert "would overwrite IN" in result.stderr


def test_an_unknown_ending_is_told_before_the_data_are_read(ranksvm, folder, tmp_path):
    result = ranksvm("convert", folder / "train.txt", tmp_path / "out.xyz", code=2)
    assert result.stderr.startswith(f"Error: {tmp_path / 'out.xyz'}: unknown suffix '.xyz'")


def test_bad_data_leave_no_file(ranksvm, tmp_path):
    bad = tmp_path / "bad.txt"
    bad.write_text("1 qid:1 1:0.5\n1 qid:1 2\n")
    assert "bad.txt:2:" in ranksvm("convert", bad, tmp_path / "out.rsd", code=1).stderr
    assert list(tmp_path.iterdir()) == [bad]


def test_of_a_comment_the_document_id_is_kept_alone(ranksvm, tmp_path):
    source, target = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text("# head\n1 qid:1 1:1 # docid = D-1 inc = 1 prob = 0.5\n0 qid:1 1:2 #D-2 more\n")
    ranksvm("convert", source, target)
    assert target.read_text() == "1 qid:1 1:1 #docid = D-1\n0 qid:1 1:2 #docid = D-2\n"


@pytest.mark.parametrize("suffix", [".txt", ".csv", ".parquet"])
def test_data_that_may_not_fit_memory_go_through_a_cache(ranksvm_json, folder, tmp_path, monkeypatch, suffix):
    import ranksvm._util.memory as memory

    expected, found = tmp_path / f"expected{suffix}", tmp_path / f"found{suffix}"
    before = ranksvm_json("convert", folder / "train.txt", expected)
    monkeypatch.setattr(memory, "free_memory", lambda: 1000)
    document = ranksvm_json("convert", folder / "train.txt", found)
    assert found.read_bytes() == expected.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([expected.name, found.name])
    for name in ("rows", "queries", "features", "bytes"):
        assert document[name] == before[name]


def test_labels_of_judgments_in_a_cache(ranksvm, tmp_path):
    source, qrels, target = tmp_path / "in.txt", tmp_path / "q.qrels", tmp_path / "out.rsd"
    source.write_text("0 qid:1 1:1 # a\n0 qid:1 1:2 # b\n0 qid:1 1:3 # c\n")
    qrels.write_text("1 0 a 2\n1 0 c 1\n")
    result = ranksvm("convert", source, "--qrels", qrels, target)
    assert package.RankingData.load(target).y.tolist() == [2.0, 0.0, 1.0]
    assert "1 row without a judgment, counted as not relevant (label 0)" in result.stderr


def test_text_that_a_spreadsheet_takes_for_a_formula_is_escaped_on_request(ranksvm, tmp_path):
    pytest.importorskip("pyarrow")
    data = package.RankingData(
        np.array([[-1.5, 2.0], [0.5, -3.0]]),
        np.array([1.0, 0.0]),
        np.array(["+q", "+q"]),
        np.array(["@d", "plain"]),
        ("=HYPERLINK(1)", "-b"),
    )
    data.to_parquet(tmp_path / "in.parquet")
    ranksvm("convert", tmp_path / "in.parquet", tmp_path / "raw.csv")
    ranksvm("convert", tmp_path / "in.parquet", tmp_path / "safe.csv.gz", "--escape-formulas")
    raw = package.data.read_data(tmp_path / "raw.csv")
    safe = package.data.read_data(tmp_path / "safe.csv.gz")
    assert (raw.feature_names, raw.qid[0], raw.docid.tolist()) == (data.feature_names, "+q", ["@d", "plain"])
    assert (safe.feature_names, safe.qid[0]) == (("'=HYPERLINK(1)", "'-b"), "'+q")
    assert safe.docid.tolist() == ["'@d", "plain"]
    assert np.array_equal(safe.X, data.X)
    stderr = ranksvm("convert", tmp_path / "in.parquet", tmp_path / "x.txt", "--escape-formulas", code=2).stderr
    assert "--escape-formulas is for CSV and TSV" in stderr
