"""``ranksvm explain``."""

import numpy as np
import pytest

import ranksvm as package
from ranksvm.analysis import explain, feature_importance


@pytest.fixture
def explained(folder, model):
    """Data of test.txt, the model, and the explanation from Python."""
    data = package.datasets.read_data(folder / "test.txt")
    ranker = package.load(model)
    return data, ranker, explain(ranker, data.X, data.qid)


def test_without_options(ranksvm_json, folder, model, explained):
    data, ranker, explanation = explained
    document = ranksvm_json("explain", model, folder / "test.txt")
    importance = feature_importance(ranker, data.X, data.qid)
    assert [item["importance"] for item in document["importances"]] == sorted(importance.tolist(), reverse=True)
    assert all(importance[item["column"]] == item["importance"] for item in document["importances"])
    assert sum(item["share"] for item in document["importances"]) == pytest.approx(1)
    first, second = explanation.query(100).rows[:2]
    assert document["query"] is document["document"] is None
    pair = document["pair"]
    assert (pair["row"], pair["other_row"], pair["rank"], pair["other_rank"]) == (first, second, 1, 2)
    assert (pair["docid"], pair["other_docid"]) == (data.docid[first], data.docid[second])
    assert sum(item["contribution"] for item in pair["features"]) == pytest.approx(pair["difference"])


def test_a_query(ranksvm_json, folder, model, explained):
    data, _, explanation = explained
    document = ranksvm_json("explain", model, folder / "test.txt", "--query", 103, "--top", 3)
    found = explanation.query(103)
    assert document["importances"] is None
    assert [item["row"] for item in document["query"]["documents"]] == found.rows[:3].tolist()
    assert [item["docid"] for item in document["query"]["documents"]] == data.docid[found.rows[:3]].tolist()
    assert [item["importance"] for item in document["query"]["features"]] == found.importances[:3].tolist()
    assert document["pair"]["row"] == found.rows[0]
    assert len(document["pair"]["features"]) == 3


def test_a_document_by_id_and_by_row(ranksvm_json, folder, model, explained):
    _, _, explanation = explained
    document = ranksvm_json("explain", model, folder / "test.txt", "--query", 102, "--doc", "D2-5")["document"]
    expected = explanation.document(21)
    assert document["row"] == 21
    assert document["other_row"] is document["other_docid"] is None
    assert [item["contribution"] for item in document["features"]] == expected.contributions.tolist()
    assert ranksvm_json("explain", model, folder / "test.txt", "--doc", "D2-5")["document"] == document
    assert ranksvm_json("explain", model, folder / "test.txt", "--doc", 21)["document"] == document
    anonymous = ranksvm_json("explain", model, folder / "anonymous.txt", "--doc", 9, "--against", 12)["pair"]
    assert (anonymous["query"], anonymous["docid"], anonymous["other_docid"]) == (101, "9", "12")


def test_one_against_another(ranksvm_json, folder, model, explained):
    _, _, explanation = explained
    pair = ranksvm_json("explain", model, folder / "test.txt", "--doc", "D2-5", "--against", "D2-1")["pair"]
    expected = explanation.pair(21, 17)
    assert [item["contribution"] for item in pair["features"]] == expected.contributions.tolist()
    assert pair["rest"] == 0


@pytest.mark.parametrize("scaler", ["standard", "query-minmax"])
def test_a_model_with_a_scaler(ranksvm, ranksvm_json, folder, tmp_path, scaler):
    out = tmp_path / "model"
    ranksvm("train", folder / "train.txt", "--scaler", scaler, "-o", out)
    document = ranksvm_json("explain", out, folder / "test.txt", "--doc", "D3-0")["document"]
    scores = [float(line) for line in ranksvm("predict", out, folder / "test.txt").stdout.split()]
    assert document["score"] == pytest.approx(scores[24])
    assert document["other_score"] == pytest.approx(np.mean(scores[24:32]))


def test_a_person_sees_bars(ranksvm, folder, model):
    stdout = ranksvm("explain", model, folder / "test.txt", "--top", 2).stdout
    for text in ["importance", "█", "contribution", "3 more", "(rank 1 of 8)", "(rank 2)", "all"]:
        assert text in stdout
    stdout = ranksvm("explain", model, folder / "test.txt", "--query", 101).stdout
    assert "Query 101, 8 documents" in stdout
    stdout = ranksvm("explain", model, folder / "test.txt", "--doc", "D1-2").stdout
    assert "why D1-2 (rank" in stdout
    assert "mean of the documents" in stdout


def test_names_of_the_features(ranksvm, folder, tmp_path):
    data = package.make_ranking(4, 6, 3, random_state=0)
    named = package.RankingData(data.X, data.y, data.qid, feature_names=["length", "bm25", "age"])
    path = tmp_path / "data.rsd"
    named.save(path)
    package.RankSVM().fit(data.X, data.y, qid=data.qid).save(tmp_path / "model")
    stdout = ranksvm("explain", tmp_path / "model", path).stdout
    assert "feature" in stdout
    assert "bm25" in stdout


def test_an_additive_model(ranksvm, ranksvm_json, folder, tmp_path):
    train, test = (package.datasets.read_data(folder / name) for name in ("train.txt", "test.txt"))
    model = package.AdditiveRankSVM(interactions=1).fit(train.X, train.y, qid=train.qid)
    model.save(tmp_path / "model")
    document = ranksvm_json("explain", tmp_path / "model", folder / "test.txt")
    importance = model.feature_importance(test.X, test.qid)
    assert [item["importance"] for item in document["importances"]] == sorted(importance.tolist(), reverse=True)
    assert document["importances"][0]["weight"] is None
    columns = [*range(train.X.shape[1]), None]
    assert sorted((item["column"] for item in document["importances"]), key=columns.index) == columns
    assert {item["name"] for item in document["importances"] + document["pair"]["features"]} == {None}
    pair = document["pair"]
    assert sum(item["contribution"] for item in pair["features"]) == pytest.approx(pair["difference"])
    stdout = ranksvm("explain", tmp_path / "model", folder / "test.txt").stdout
    first, second = model.interactions_[0] + 1
    assert f"f{first} x f{second}" in stdout
    assert "weight" not in stdout


def test_scores_and_values_of_two_documents_differ(ranksvm, tmp_path):
    data = package.RankingData(np.array([[1e9, 7.0], [1e9 + 300.0, 7.0]]), [0, 1], [1, 1])
    data.save(tmp_path / "data.rsd")
    package.AdditiveRankSVM().fit(data.X, data.y, qid=data.qid).save(tmp_path / "model")
    stdout = ranksvm("explain", tmp_path / "model", tmp_path / "data.rsd").stdout
    title, pair = stdout[stdout.index("why 1") :].split("\n", 1)
    first, _, second = title.rsplit(maxsplit=3)[1:]
    assert first != second
    assert ["f1", "1.0000003e+09", "1e+09"] in [line.split()[:3] for line in pair.splitlines()]


def test_queries_of_one_document_have_no_pair(ranksvm, ranksvm_json, model, tmp_path):
    path = tmp_path / "data.txt"
    path.write_text("1 qid:1 1:1\n0 qid:2 2:1\n")
    document = ranksvm_json("explain", model, path)
    assert document["pair"] is None
    assert all(item["importance"] == 0 for item in document["importances"])
    assert "importance" in ranksvm("explain", model, path).stdout
    assert "rank 1 of 1" in ranksvm("explain", model, path, "--doc", 0).stdout


def test_what_is_not_there(ranksvm, folder, model, tmp_path):
    test = folder / "test.txt"
    assert "has no query '7'" in ranksvm("explain", model, test, "--query", 7, code=1).stderr
    assert "has no document 'X'" in ranksvm("explain", model, test, "--doc", "X", code=1).stderr
    stderr = ranksvm("explain", model, test, "--query", 100, "--doc", "D1-0", code=1).stderr
    assert "query '100' has no document 'D1-0'" in stderr
    stderr = ranksvm("explain", model, test, "--doc", "D0-0", "--against", "D1-0", code=1).stderr
    assert "query '100' has no document 'D1-0'" in stderr
    assert "give --doc too" in ranksvm("explain", model, test, "--against", "D1-0", code=2).stderr
    twice = tmp_path / "twice.txt"
    twice.write_text("1 qid:1 1:1 #docid = A\n0 qid:1 2:1 #docid = B\n0 qid:2 2:1 #docid = A\n1 qid:2 1:1 #docid = A\n")
    assert "2 queries have a document 'A' (1, 2)" in ranksvm("explain", model, twice, "--doc", "A", code=2).stderr
    assert "one of 2, 3" in ranksvm("explain", model, twice, "--query", 2, "--doc", "A", code=2).stderr
    assert ranksvm("explain", model, twice, "--query", 1, "--doc", "A").stdout
