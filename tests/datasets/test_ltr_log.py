"""Logged features of Elasticsearch and OpenSearch, read as rows."""

import gzip
import json

import numpy as np
import pytest

from ranksvm import RankSVM
from ranksvm.datasets import Qrels, convert_to_cache, iter_data, read_data
from ranksvm.exceptions import DataError, ParseError


def hit(docid, features, log="features"):
    """A hit, as the plugins document it: a feature whose query did not match has a name only."""
    logged = [{"name": name} if value is None else {"name": name, "value": value} for name, value in features.items()]
    return {"_id": docid, "_score": 1.0, "fields": {"_ltrlog": [{log: logged}]}}


def response(qid, *hits):
    return {"qid": qid, "took": 3, "hits": {"total": {"value": len(hits)}, "hits": list(hits)}}


RESPONSES = [
    response(7, hit("a", {"title": 9.5, "body": 10.25}), hit("b", {"title": None, "body": 2})),
    response(9),
    response(8, hit("a", {"body": 0.5, "age": -1.0, "title": 1.5})),
]


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "log.json"
    path.write_text("\n".join(map(json.dumps, RESPONSES)) + "\n\n")
    return path


def read(path, **options):
    return read_data(path, require_labels=False, **options)


def test_a_row_for_each_hit(path):
    data = read(path)
    assert data.feature_names == ("title", "body", "age")
    np.testing.assert_array_equal(data.X, [[9.5, 10.25, 0.0], [0.0, 2.0, 0.0], [1.5, 0.5, -1.0]])
    assert data.X.dtype == np.float32
    assert data.qid.tolist() == [7, 7, 8]
    assert data.docid.tolist() == ["a", "b", "a"]
    assert data.y.tolist() == [0.0, 0.0, 0.0]


def test_missing_values_ignored_features_and_types(path):
    X = read(path, missing=True, ignore=["body"], dtype=np.float64).X
    np.testing.assert_array_equal(X, [[9.5, np.nan], [np.nan, np.nan], [1.5, -1.0]])


def test_compressed(path, tmp_path):
    other = tmp_path / "log.json.gz"
    other.write_bytes(gzip.compress(path.read_bytes()))
    np.testing.assert_array_equal(read(other).X, read(path).X)
    other.write_bytes(other.read_bytes()[:-20])
    with pytest.raises(DataError, match=r"log\.json\.gz"):
        read(other)


def test_queries_that_are_text(tmp_path):
    path = tmp_path / "log"
    path.write_text("\n".join(json.dumps({**each, "qid": str(each["qid"]), "id": "x"}) for each in RESPONSES))
    assert read(path).qid.tolist() == ["7", "7", "8"]
    assert read(path, qid="id").qid.tolist() == ["x", "x", "x"]


def test_labels_are_of_judgments(path):
    with pytest.raises(DataError, match=r"is a log of features, which has no labels: pass relevance judgments"):
        read_data(path)
    data = read(path)
    labels = Qrels.from_dict({"7": {"a": 1, "b": 0}, "8": {"a": 2}}).labels_of(data)
    assert labels.tolist() == [1.0, 0.0, 2.0]
    assert RankSVM().fit(data.X, labels, qid=data.qid).coef_[0] > 0.0


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ({"hits": {"hits": []}}, "has no query id 'qid'"),
        ({"qid": True, "hits": {"hits": []}}, "has no query id"),
        ({"qid": 1, "error": "no such index"}, "no response to a search"),
        ({"qid": 1, "hits": {"hits": [1]}}, "no response to a search"),
        (response(1, {"_id": "a"}), "the document 'a' has no logged features"),
        (response(1, {"_id": "a", "fields": {"_ltrlog": [{"one": [{}]}]}}), "has no logged features"),
        (response(1, {"_id": "a", "fields": {"_ltrlog": [{"one": [], "two": []}]}}), "has 2 logs: log one feature set"),
        (response(1, hit("a", {"title": "x"})), "the value of the feature 'title' is 'x', not a finite number"),
        (response(1, hit("a", {"title": float("nan")})), "is nan, not a finite number"),
        (response(1, hit("a", {"title": 10**400})), r"is 1000+, not a finite number"),
        (response(1, hit("a", {"title": -1e300})), r"is -1e\+300, not a finite number of float32"),
        (response(1, {"fields": hit("a", {"title": 1.0})["fields"]}), "a hit has no _id"),
        (response(1), "has no hit with features"),
    ],
)
def test_what_is_no_log(tmp_path, line, words):
    path = tmp_path / "log.json"
    path.write_text(json.dumps(line))
    with pytest.raises(DataError, match=words):
        read(path)


@pytest.mark.parametrize("text", ['{"qid": 1\n', '{"qid": 1, "hits": {"hits": []}}\n[' + "[" * 100_000])
def test_a_line_that_is_not_json(tmp_path, text):
    path = tmp_path / "log.json"
    path.write_text(text)
    with pytest.raises(ParseError, match=r"a line must be one response in JSON") as caught:
        read(path)
    assert caught.value.line == text.count("\n", 0, -2) + 1


@pytest.mark.parametrize("compressed", [False, True])
def test_a_cache_of_a_log(path, tmp_path, compressed):
    source, cache = path, tmp_path / "log.rsd"
    if compressed:
        source = tmp_path / "log.json.gz"
        source.write_bytes(gzip.compress(path.read_bytes()))
    progress = []
    found = convert_to_cache(source, cache, require_labels=False, progress=lambda *done: progress.append(done))
    assert (found.n_rows, found.n_queries, found.n_features) == (3, 2, 3)
    assert progress[-1][0] == progress[-1][1] == source.stat().st_size
    expected, cached = read(path), read_data(cache)
    np.testing.assert_array_equal(cached.X, expected.X)
    assert (cached.feature_names, cached.docid.tolist()) == (expected.feature_names, expected.docid.tolist())
    with pytest.raises(DataError, match="label"):
        convert_to_cache(source, cache)


def test_queries_of_a_log(path):
    queries = list(iter_data(path, require_labels=False))
    assert [query.qid.tolist() for query in queries] == [[7, 7], [8]]
    np.testing.assert_array_equal(np.vstack([query.X for query in queries]), read(path).X)
