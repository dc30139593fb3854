"""Parquet, CSV and TSV: columns are known by their names, in files, models and predictions."""

import gzip

import numpy as np
import pytest

import ranksvm as package
from ranksvm.datasets import RankingData, read_data

pytest.importorskip("pyarrow")
import pyarrow
import pyarrow.csv
import pyarrow.parquet

NAMES = ["bm25", "title", "age", "links", "clicks"]
FORMATS = ["parquet", "csv", "tsv", "csv.gz"]


def write(path, data, names, order=None, label="label", qid="qid", **more):
    """A table with some columns, in some order, as another tool would write it."""
    columns = {name: data.X[:, names.index(name)] for name in order or names}
    columns |= {label: data.y, qid: data.qid, **more}
    table = pyarrow.table({name: pyarrow.array(values) for name, values in columns.items() if values is not None})
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(table, path)
        return path
    sink = pyarrow.BufferOutputStream()
    delimiter = "\t" if path.suffix == ".tsv" else ","
    pyarrow.csv.write_csv(table, sink, pyarrow.csv.WriteOptions(delimiter=delimiter))
    text = sink.getvalue().to_pybytes()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


@pytest.fixture(scope="module")
def data(folder):
    return {name: read_data(folder / f"{name}.txt") for name in ("train", "test")}


@pytest.fixture(params=FORMATS)
def suffix(request):
    return request.param


def scores(ranksvm, *arguments):
    return np.array(ranksvm("predict", *arguments, "-q").stdout.split(), dtype=float)


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--scaler", "standard"),
        ("--scaler", "query-minmax"),
        ("--kernel", "rbf"),
        ("--low-rank", "factorized", "--random-state", "0"),
    ],
)
def test_columns_are_matched_by_name(ranksvm, ranksvm_json, data, folder, tmp_path, suffix, options):
    train = write(tmp_path / f"train.{suffix}", data["train"], NAMES)
    test = write(tmp_path / f"test.{suffix}", data["test"], NAMES)
    other = write(tmp_path / f"other.{suffix}", data["test"], NAMES, order=NAMES[::-1])
    model = tmp_path / "model"
    trained = ranksvm_json("train", train, "--test", other, "-o", model, *options)
    same = ranksvm_json("train", train, "--test", test, "-o", model, *options)
    assert trained["metrics"] == same["metrics"]
    wanted = scores(ranksvm, model, test)
    np.testing.assert_array_equal(scores(ranksvm, model, other), wanted)
    reports = [ranksvm_json("evaluate", path, "--model", model)["systems"][0]["metrics"] for path in (test, other)]
    assert reports[0] == reports[1]
    ranked = [ranksvm_json("rank", model, path)["queries"] for path in (test, other)]
    assert ranked[0] == ranked[1]


def test_names_reach_the_model_its_weights_and_explanations(ranksvm, ranksvm_json, data, tmp_path):
    train = write(tmp_path / "train.parquet", data["train"], NAMES)
    other = write(tmp_path / "other.csv", data["train"], NAMES, order=NAMES[::-1])
    plain, scaled = tmp_path / "plain", tmp_path / "scaled"
    ranksvm("train", train, "-o", plain)
    ranksvm("train", train, "-o", scaled, "--scaler", "standard")
    assert list(package.load(plain).feature_names_in_) == NAMES
    assert list(package.load(scaled).feature_names_in_) == NAMES
    for model in (plain, scaled):
        assert {weight["name"] for weight in ranksvm_json("info", model)["weights"]} == set(NAMES)
        explained = [ranksvm_json("explain", model, path) for path in (train, other)]
        assert [part["name"] for part in explained[0]["importances"]] == [
            part["name"] for part in explained[1]["importances"]
        ]
    assert ranksvm_json("analyze", plain, train)["models"] == ranksvm_json("analyze", plain, other)["models"]


def test_a_stream_is_matched_by_name_where_it_is_resumed(ranksvm, data, tmp_path):
    train = write(tmp_path / "train.csv", data["train"], NAMES)
    other = write(tmp_path / "other.tsv", data["train"], NAMES, order=NAMES[::-1])
    whole, resumed = tmp_path / "whole", tmp_path / "resumed"
    arguments = "--covariance", "diagonal", "-q"
    ranksvm("online", train, "-o", whole, *arguments)
    ranksvm("online", train, "-o", resumed, *arguments)
    ranksvm("online", other, "-o", resumed, "--resume", *arguments)
    assert list(package.load(whole).feature_names_in_) == NAMES
    np.testing.assert_array_equal(package.load(resumed).coef_, package.load(whole).coef_)
    np.testing.assert_array_equal(scores(ranksvm, whole, other), scores(ranksvm, whole, train))


def test_missing_further_and_unknown_names(ranksvm, data, folder, tmp_path, suffix):
    model = tmp_path / "model"
    ranksvm("train", write(tmp_path / "train.parquet", data["train"], NAMES), "-o", model)
    fewer = write(tmp_path / f"fewer.{suffix}", data["test"], NAMES[:3])
    result = ranksvm("predict", model, fewer, code=1)
    assert "lacks 2 features of the model: 'links', 'clicks'" in result.stderr
    more = write(tmp_path / f"more.{suffix}", data["test"], NAMES, extra=np.ones(120))
    result = ranksvm("predict", model, more)
    assert "has 1 feature that the model lacks, ignored: 'extra'" in result.stderr
    result = ranksvm("predict", model, folder / "test.txt")
    assert "test.txt has none: features are matched by position" in result.stderr


def test_columns_called_as_features_without_names(ranksvm, data, folder, tmp_path, suffix):
    numbered = ["f1", "f2", "f3", "f4", "f5"]
    model, turned = tmp_path / "model", tmp_path / "turned"
    ranksvm("train", folder / "train.txt", "-o", model)
    wanted = scores(ranksvm, model, folder / "test.txt")
    other = write(tmp_path / f"other.{suffix}", data["test"], numbered, order=numbered[::-1])
    # text of tables is read as float64, LETOR text as float32
    np.testing.assert_allclose(scores(ranksvm, model, other), wanted, rtol=1e-5, atol=1e-6)
    more = write(tmp_path / f"more.{suffix}", data["test"], numbered, order=numbered[::-1], extra=np.ones(120))
    assert "ignored: 'extra'" in ranksvm("predict", model, more).stderr
    np.testing.assert_allclose(scores(ranksvm, model, more), wanted, rtol=1e-5, atol=1e-6)
    fewer = write(tmp_path / f"fewer.{suffix}", data["test"], numbered, order=["f1", "f2", "f4", "f5"])
    assert "lacks 1 feature of the model: 'f3'" in ranksvm("predict", model, fewer, code=1).stderr
    ranksvm("train", write(tmp_path / f"train.{suffix}", data["train"], numbered, order=numbered[::-1]), "-o", turned)
    assert list(package.load(turned).feature_names_in_) == numbered[::-1]
    np.testing.assert_allclose(scores(ranksvm, turned, folder / "test.txt"), wanted, rtol=1e-3, atol=1e-3)
    from_0 = write(tmp_path / f"from_0.{suffix}", data["test"], ["f0", *numbered[:4]])
    assert "features are matched by position" in ranksvm("predict", model, from_0).stderr
    np.testing.assert_allclose(scores(ranksvm, model, from_0), wanted, rtol=1e-5, atol=1e-6)


def test_columns_can_be_named_and_left_out(ranksvm, ranksvm_json, data, tmp_path, suffix):
    more = {"url": np.array(["a b"] * 240), "document": np.array([f"D{row}" for row in range(240)])}
    path = write(tmp_path / f"data.{suffix}", data["train"], NAMES, label="grade", qid="query_id", **more)
    columns = "--label", "grade", "--qid", "query_id", "--docid", "document", "--ignore", "url"
    document = ranksvm_json("info", path, *columns)
    assert (document["queries"], document["features"], document["document_ids"]) == (30, 5, True)
    assert "names: the names in" in ranksvm("convert", path, tmp_path / "out.txt", *columns).stderr
    back = read_data(tmp_path / "out.txt")
    np.testing.assert_allclose(back.X, data["train"].X, rtol=1e-6)
    assert back.qid.tolist() == data["train"].qid.tolist()
    assert back.docid.tolist() == more["document"].tolist()
    for wrong in (["--label", "x"], ["--qid", "x"], ["--docid", "x"], ["--ignore", "x"]):
        assert "no column 'x'" in ranksvm("info", path, *columns, *wrong, code=1).stderr
    assert "three columns" in ranksvm("info", path, "--label", "grade", "--qid", "grade", code=2).stderr
    result = ranksvm("info", path, "--label", "grade", "--ignore", "url,document", code=1)
    assert "column 'query_id'" in result.stderr
    assert "--qid query_id" in result.stderr


def test_scoring_needs_no_labels(ranksvm, data, tmp_path, suffix):
    model = tmp_path / "model"
    ranksvm("train", write(tmp_path / "train.parquet", data["train"], NAMES), "-o", model)
    test = write(tmp_path / f"test.{suffix}", data["test"], NAMES)
    bare = RankingData(data["test"].X, [None] * 120, data["test"].qid)
    bare.y = None
    unlabeled = write(tmp_path / f"bare.{suffix}", bare, NAMES)
    np.testing.assert_array_equal(scores(ranksvm, model, unlabeled), scores(ranksvm, model, test))
    ranksvm("rank", model, unlabeled)
    assert "no column 'label'" in ranksvm("evaluate", unlabeled, "--model", model, code=1).stderr


def test_learning_from_pairs_needs_no_labels(ranksvm, data, tmp_path, suffix):
    pairs = tmp_path / "pairs.txt"
    pairs.write_text("0 1\n9 8\n")
    bare = RankingData(data["train"].X, [None] * 240, data["train"].qid)
    bare.y = None
    unlabeled = write(tmp_path / f"bare.{suffix}", bare, NAMES)
    ranksvm("train", unlabeled, "--pairs", pairs, "-o", tmp_path / "model")
    expected = package.RankSVM().fit(data["train"].X, qid=data["train"].qid, pairs=[[0, 1], [9, 8]])
    np.testing.assert_allclose(package.load(tmp_path / "model").coef_, expected.coef_, rtol=1e-5)
    assert "no column 'label'" in ranksvm("train", unlabeled, "-o", tmp_path / "model", code=1).stderr


@pytest.mark.parametrize("command", ["train", "tune", "online", "info", "convert"])
def test_a_table_without_rows_is_refused(ranksvm, tmp_path, suffix, command):
    empty = RankingData(np.empty((0, 1)), np.empty(0), np.empty(0, dtype=int))
    path = write(tmp_path / f"empty.{suffix}", empty, ["bm25"])
    target = {"info": (), "convert": (tmp_path / "copy.parquet",)}.get(command, ("-o", tmp_path / "model.rsvm"))
    result = ranksvm(command, path, *target, code=1)
    assert f"{path.name} has no row of data." in result.stderr
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_ids_with_tabs_and_line_ends_stay_in_their_column(ranksvm, data, tmp_path, suffix):
    train = data["train"]
    train = RankingData(train.X, train.y, np.char.add("a\t\r\n", train.qid.astype(str)))
    path, model, table = write(tmp_path / f"train.{suffix}", train, NAMES), tmp_path / "model", tmp_path / "table.tsv"
    ranksvm("train", path, "-o", model)
    ranksvm("rank", model, path, "--format", "tsv", "-o", table)
    queries = {line.split("\t")[0] for line in table.read_text().splitlines()[1:]}
    assert queries == {query.replace("a\t\r\n", "a   ") for query in train.qid.tolist()}
    ranksvm("evaluate", path, "--model", model, "--per-query", table)
    assert {line.split("\t")[1] for line in table.read_text().splitlines()[1:]} == queries
